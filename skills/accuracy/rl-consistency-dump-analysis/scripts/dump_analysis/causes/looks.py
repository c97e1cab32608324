"""The fingerprint of one boundary: its measures as named signs, each with the figure that it was read from.

A sign is ``dimension.value``. A dimension of which nothing was measured has no sign, and then speaks neither for nor against a cause.
Bounds between values stand beside the measurements that they were read from: torch 2.13 on CPU, bfloat16, 256 tokens, one cause each.
"""

import math
from collections.abc import Iterator

from dump_analysis import ulps
from dump_analysis.artefacts.boundary_results import BoundaryResult, LinesBeyond, SidesShape, elements
from dump_analysis.artefacts.common import Worded
from dump_analysis.boundaries import place_of
from dump_analysis.measure.ways import way_of
from dump_analysis.wording import word

Signs = dict[str, Worded]

_SPARSE, _NEARLY_ALL = 0.01, 0.9  # of the elements: orders of float32 sums touch 0.01 %, every rounding inside a module 12 % or more
_ULPS = (2.0, 8.0)  # at the scale of a row: one or two roundings more; eight partial sums of rank 8
_ROUNDING_SIZE = 1.5  # of a format's roundoff 2**-p, relative L2: sums of eight rounded partials have 1.2, one rounding 0.6
_LARGE = 0.05  # relative L2: no rounding of 8 bits reaches it within one module
_BY_LINE = 0.8  # of the difference that lines leave: roundings 0.88 and more, a variance in 8 bits 0.74, eps and sinks 0.4, factors 0
_EXACT_LINE = 0.05
_SAME_NORM, _TURNED = 0.05, 0.95  # norms within 5 % of each other while the cosine is below: other values of the same size
_FEW_TOKENS = 0.25  # of the tokens
_LATE = 2 / 3  # of the tokens: the three worst all stand behind it by chance once in 27 times
_BFLOAT16_ROUNDOFF = 2.0**-8  # of the scale between a constant and the nearest number of 8 bits, half of it at most
_ROTATED = ("layers.N.q_rope.out", "layers.N.k_rope.out")  # where columns are channels, of which rotation leaves some alone


def fingerprint(result: BoundaryResult) -> Worded | None:
    """What the direction of a boundary's difference looks like; None where nothing was measured."""
    found = result.direction
    if found is None:
        return None
    both = found.smaller + found.larger
    way, share = way_of(found.smaller, found.larger), max(found.smaller, found.larger) / max(both, 1)
    if way == "few":
        return word("fp_few", n=both)
    if way == "one_sided":
        return word("fp_one_sided", n=both)
    return word("fp_leaning" if way == "leaning" else "fp_two_sided", share=share, n=both)


def signs_of(result: BoundaryResult) -> Signs:
    """Every sign of a boundary that differs."""
    found: Signs = {}
    for part in (_of_form, _of_place, _of_direction, _of_size, _of_lines, _of_values):
        found.update(part(result))
    return found


# --- shape, format, what is not finite ---


def _of_form(result: BoundaryResult) -> Iterator[tuple[str, Worded]]:
    if isinstance(result.shape, SidesShape):
        told = word("figure_shapes", train=result.shape.train, infer=result.shape.infer)
        train, infer = result.shape.train, result.shape.infer
        if len(train) == len(infer) and train[1:] == infer[1:]:
            yield "shape.longer", told
        elif len(train) == len(infer) and train[:-1] == infer[:-1]:
            yield "shape.wider", told
        else:
            yield "shape.other", told
    if result.dtype is not None and None not in (result.dtype.train, result.dtype.infer):
        names = [str(result.dtype.train), str(result.dtype.infer)]
        told = word("figure_dtypes", train=names[0], infer=names[1])
        if sum(name in ulps.PRECISION for name in names) == 1:
            yield "dtype.one_integer", told
        elif all(name.startswith("float8") for name in names):
            yield "dtype.float8", told
    if result.special is not None:
        count = result.special.nonfinite
        if bool(count.train) != bool(count.infer):
            yield f"nonfinite.{'train' if count.train else 'infer'}", word("figure_nonfinite", train=count.train, infer=count.infer)


# --- which tokens and columns ---


def _of_place(result: BoundaryResult) -> Iterator[tuple[str, Worded]]:
    where = result.where
    if where is None:
        return
    if where.tokens is not None and where.onset_token is not None:
        touched, of, onset = where.tokens.touched, where.tokens.of, where.onset_token
        told = word("figure_onset", onset=onset, touched=touched, of=of)
        yield ("onset.first" if onset == 0 else "onset.second" if onset == 1 else "onset.later"), told
        if touched <= _FEW_TOKENS * of:
            yield ("tokens.tail" if onset == of - touched else "tokens.few"), told
        else:
            yield "tokens.many", told
        worst = where.worst.tokens
        if worst:
            late = sum(at >= _LATE * of for at, _ in worst) == len(worst)
            yield ("worst.late" if late else "worst.anywhere"), word("figure_worst", tokens=[at for at, _ in worst], of=of)
    if where.columns is not None and place_of(result.boundary) in _ROTATED:
        some = where.columns.touched < where.columns.of
        told = word("figure_columns", touched=where.columns.touched, of=where.columns.of)
        yield ("columns.some" if some else "columns.all"), told
    yield f"pattern.{where.pattern}", word("figure_pattern", pattern=where.pattern)


# --- which way, how many, how far ---


def _of_direction(result: BoundaryResult) -> Iterator[tuple[str, Worded]]:
    found = result.direction
    if found is None:
        return
    told = word("figure_direction", smaller=found.smaller, larger=found.larger)
    way = way_of(found.smaller, found.larger)
    yield f"way.{way}", told
    if way in ("one_sided", "leaning"):
        yield f"smaller.{'train' if found.smaller > found.larger else 'infer'}", told


def _of_size(result: BoundaryResult) -> Iterator[tuple[str, Worded]]:
    if result.unequal is not None and (of := elements(result)):
        share = result.unequal.share
        name = "sparse" if share < _SPARSE else "nearly_all" if share >= _NEARLY_ALL else "part"
        yield f"share.{name}", word("figure_share", unequal=result.unequal.count, of=of)
    far = result.ulp.max_at_row_scale if result.ulp is not None else None
    if far is not None:
        name = "within_2" if far <= _ULPS[0] else "within_8" if far <= _ULPS[1] else "beyond_8"
        yield f"ulp.{name}", word("figure_ulps", ulps=far)
    if result.rel_l2 is not None and (roundoff := _roundoff(result)) is not None:
        name = "rounding" if result.rel_l2 <= _ROUNDING_SIZE * roundoff else "large" if result.rel_l2 >= _LARGE else "middle"
        yield f"rel.{name}", word("figure_rel", rel=result.rel_l2)


def _roundoff(result: BoundaryResult) -> float | None:
    """2**-p of the coarser format, p its significant bits."""
    dtype = ulps.coarser((result.dtype.train, result.dtype.infer)) if result.dtype is not None else None
    return 2.0 ** -ulps.PRECISION[dtype][0] if dtype is not None else None


# --- lines through the values ---


def _of_lines(result: BoundaryResult) -> Iterator[tuple[str, Worded]]:
    gain = result.gain
    if gain is None:
        return
    for axis, lines in (("token", gain.token), ("column", gain.column)):
        if lines is not None:
            yield from _of_axis(axis, lines, _lines_of(result, axis))
    scale = _hinted(result, "one_scale")
    overall = scale if scale is not None else _hinted(result, "scale_of_all")
    if overall is not None and abs(overall - 1) <= _BFLOAT16_ROUNDOFF:
        yield "scale.rounded_constant", word("figure_scale", scale=overall)
    if scale is None:
        yield "scale.none", word("figure_no_scale")
        return
    told = word("figure_scale", scale=scale)
    yield "scale.one", told
    width = result.shape[-1] if isinstance(result.shape, list) and result.shape else 0
    root = max(scale, 1 / scale) if scale > 0 else 0.0
    if width and math.isclose(root, math.sqrt(width), rel_tol=_BFLOAT16_ROUNDOFF):
        yield "scale.root_of_width", told


def _of_axis(axis: str, lines: LinesBeyond, count: int | None) -> Iterator[tuple[str, Worded]]:
    told = word(f"figure_by_{axis}", left=lines.left_over, beyond=lines.beyond_count)
    if lines.left_over <= _EXACT_LINE and lines.beyond_count == 0:
        yield f"by_{axis}.offset", told
    elif lines.left_over <= _EXACT_LINE and count is not None and 2 * lines.beyond_count >= count:
        yield f"by_{axis}.scale", told
    elif lines.left_over <= _BY_LINE:
        yield f"by_{axis}.partly", told
    else:
        yield f"by_{axis}.no", told


def _lines_of(result: BoundaryResult, axis: str) -> int | None:
    """How many tokens or columns have a line."""
    touched = (result.where.tokens if axis == "token" else result.where.columns) if result.where is not None else None
    return touched.of if touched is not None else None


def _hinted(result: BoundaryResult, kind: str) -> float | None:
    """The scale of a hint: of ``one_scale`` one that was checked on every element, of ``scale_of_all`` a regression's."""
    for hint in result.where.hints if result.where is not None else ():
        if hint.kind == kind and isinstance(scale := hint.values.get("scale"), (int, float)):
            return float(scale)
    return None


# --- the values themselves ---


def _of_values(result: BoundaryResult) -> Iterator[tuple[str, Worded]]:
    kinds = {hint.kind for hint in result.where.hints} if result.where is not None else set()
    if result.norm_ratio == 0 or (result.unequal is not None and result.norm_ratio is None and result.max_abs_diff):
        side = "infer" if result.norm_ratio == 0 else "train"
        yield f"zero.{side}", word("figure_zero", side=side)
    elif "tokens_zero" in kinds:
        yield "zero.tokens", word("figure_hints")
    if result.ulp is not None:  # integers of few values equal each other by chance
        if "tokens_lag" in kinds:
            yield "moved.lag", word("figure_hints")
        elif "tokens_moved" in kinds:
            yield "moved.some", word("figure_hints")
    if "one_offset" in kinds:
        yield "offset.one", word("figure_hints")
    if result.norm_ratio is not None and result.cosine is not None:
        turned = abs(result.norm_ratio - 1) <= _SAME_NORM and result.cosine < _TURNED
        told = word("figure_norm_cosine", ratio=result.norm_ratio, cosine=result.cosine)
        yield ("values.other_of_same_size" if turned else "values.near_or_scaled"), told
