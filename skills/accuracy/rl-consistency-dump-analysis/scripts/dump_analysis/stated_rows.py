"""Results of mapping rows of which a side saved no tensors: decided by digests, else shown by statistics, which decide nothing.

Rows that cut one recorded tensor into parts are taken together: statistics of the parts side by side are those of the whole.
"""

import math
import zlib
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from msprobe_files import release
from msprobe_files.errors import DumpError
from msprobe_files.operands import Op, Operand, OperandError, combined_shape, shape_after, slice_of
from msprobe_files.pt_archive import PtTensor

from . import floats, stated_words, tensors
from .artefacts.boundary_results import BoundaryResult, SidesDtype, SidesOperand, SidesShape, Status, Unequal
from .artefacts.common import Worded
from .artefacts.semantic_mapping import Row
from .sides import Place, Side, resolve
from .statistics import Agreement, Facts, added, agreement, facts_of, is_order_blind, together
from .tensors import BLOCK_BYTES, Files, elements_of
from .wording import word

_SAME_BYTES = ("squeeze", "reshape")
_SAME_NUMBERS = (*_SAME_BYTES, "permute")
_OLD = "<=8.3"  # among these are releases that took digests of bfloat16 as float32
_Run = tuple[int, int]


class _End(NamedTuple):
    """One side of a row. ``facts``: of its value, None where they are not known. ``plain``: its bytes are those of one file.

    ``cut``: the tensor of which it is a part, where the statistics of the whole alone are known.
    """

    places: list[Place]
    shape: tuple[int, ...] | None
    facts: Facts | None
    plain: bool
    cut: "_Cut | None"


class _Cut(NamedTuple):
    """Which run of which axis of a recorded tensor; ``size``: of that axis."""

    name: str
    axis: int
    run: _Run
    size: int
    whole: Facts


class _Stated(NamedTuple):
    row: Row
    train: _End
    infer: _End


def results(rows: Sequence[Row], train: Side, infer: Side) -> list[BoundaryResult]:
    """The results of rows whose tensors are recorded, at least one of them without a file."""
    files = Files()
    try:
        ends = [_Stated(row, _end(train, row.train, files), _end(infer, row.infer, files)) for row in rows]
    finally:
        files.close()
    groups = _groups(ends)
    return [_result(one, groups.get(one.row.boundary) if None in (one.train.facts, one.infer.facts) else None) for one in ends]


# --- what is known of a side ---


def _end(side: Side, operand: Operand, files: Files) -> _End:
    places = [place for source in operand.sources if (place := resolve(side, source)) is not None]
    steps = [source.steps or () for source in operand.sources]
    if len(places) < len(steps):
        return _End(places, None, None, False, None)
    facts = [_facts_after(facts_of(place.record), one) for place, one in zip(places, steps, strict=True)]
    plain = len(places) == 1 and all(op.op in _SAME_BYTES for op in steps[0])
    cut = _cut(places[0], steps[0]) if len(places) == 1 else None
    return _End(places, _shape(operand, places), _measured(operand, places, files) or _joined(operand, facts), plain, cut)


def _joined(operand: Operand, facts: Sequence[Facts | None]) -> Facts | None:
    known = [one for one in facts if one is not None]
    if len(known) < len(facts):
        return None
    if operand.combine is None:
        return known[0]
    return together(known) if operand.combine == "cat" else added(known)


def _facts_after(facts: Facts, steps: Sequence[Op]) -> Facts | None:
    """None where ops leave a part of a tensor, or change its values."""
    if not facts.known and facts.digest is None:
        return None
    kept = [op.op for op in steps if op.op not in _SAME_NUMBERS and not (op.op == "cast" and op.dtype in ("float32", "int64"))]
    return None if kept else facts


def _shape(operand: Operand, places: Sequence[Place]) -> tuple[int, ...] | None:
    try:
        shapes = [shape_after(source.steps or (), place.record.shape or ()) for source, place in zip(operand.sources, places, strict=True)]
        return combined_shape(operand, shapes) if operand.combine is not None else shapes[0]
    except OperandError:
        return None


def _cut(place: Place, steps: Sequence[Op]) -> _Cut | None:
    """The run that a row takes of one axis of a recorded tensor, where nothing else is done to its values."""
    slices = [at for at, op in enumerate(steps) if op.op == "slice"]
    others = [op for op in steps if op.op not in (*_SAME_BYTES, "slice")]
    if len(slices) != 1 or others or place.record.shape is None:
        return None
    try:
        before = shape_after(steps[: slices[0]], place.record.shape)
        op = steps[slices[0]]
        axis = (op.axis or 0) % len(before)
        return _Cut(place.record.name, axis, slice_of(op, before[axis], "steps"), before[axis], facts_of(place.record))
    except (OperandError, ZeroDivisionError):
        return None


def _measured(operand: Operand, places: Sequence[Place], files: Files) -> Facts | None:
    """The facts of a value whose tensors were saved; None where one has no file, or it is no real float."""
    if any(place.record.file is None or place.tensor is not None for place in places):
        return None
    try:
        headers = [tensors.header(place) for place in places]
        stream = tensors.stream_of(files, operand, [header for header in headers if isinstance(header, PtTensor)])
    except (DumpError, OperandError):
        return None
    count = elements_of(stream)
    if not count or floats.FORMATS[stream.dtype].kind != "float":
        return None
    largest, smallest, total, squares, digest = -math.inf, math.inf, 0.0, 0.0, 0
    step = BLOCK_BYTES // floats.FORMATS[stream.dtype].raw.itemsize
    for start in range(0, count, step):
        raw = stream.read(start, min(count, start + step))
        digest = zlib.crc32(np.ascontiguousarray(raw).tobytes(), digest)
        values = floats.values(raw, stream.dtype).astype(np.float64)
        largest, smallest = max(largest, float(values.max())), min(smallest, float(values.min()))
        total, squares = total + float(values.sum()), squares + float((values**2).sum())
    return Facts(count, stream.dtype, largest, smallest, total / count, math.sqrt(squares), f"{digest:08x}")


# --- parts taken together ---


def _groups(rows: Sequence[_Stated]) -> dict[str, "_Group"]:
    """Boundary -> the rows that cut the same tensor into parts which make up all of it."""
    found: dict[str, _Group] = {}
    for label in ("train", "infer"):
        by_whole: dict[tuple[str, int], list[_Stated]] = {}
        for one in rows:
            cut = getattr(one, label).cut
            if cut is not None:
                by_whole.setdefault((cut.name, cut.axis), []).append(one)
        for members in by_whole.values():
            group = _group(members)
            if group is not None:
                found.update({one.row.boundary: group for one in members if one.row.boundary not in found})
    return found


class _Group(NamedTuple):
    """Rows that are compared together. ``same``: both sides cut one tensor at the same places."""

    names: list[str]
    train: Facts
    infer: Facts
    same: bool


def _group(members: Sequence[_Stated]) -> _Group | None:
    sides: list[Facts] = []
    for label in ("train", "infer"):
        ends: list[_End] = [getattr(one, label) for one in members]
        cuts = [end.cut for end in ends if end.cut is not None and end.facts is None]
        known = [end.facts for end in ends if end.facts is not None]
        if len(known) == len(members):
            sides.append(together(known))
        elif len(cuts) == len(members) and len({cut.name for cut in cuts}) == 1 and _covers([cut.run for cut in cuts], cuts[0].size):
            sides.append(cuts[0].whole)
        else:
            return None
    places = [(one.train.cut, one.infer.cut) for one in members]
    same = all(left is not None and right is not None and left.run == right.run for left, right in places)
    return _Group([one.row.boundary for one in members], sides[0], sides[1], same)


def _covers(runs: Sequence[_Run], size: int) -> bool:
    ordered = sorted(runs)
    ends = [0, *(stop for _, stop in ordered)]
    return [start for start, _ in ordered] == ends[:-1] and ends[-1] == size


# --- one row ---


def _result(one: _Stated, group: _Group | None) -> BoundaryResult:
    status, reason, shown = _judged(one, group)
    dtypes = [end.places[0].record.dtype if end.places else None for end in (one.train, one.infer)]
    shapes = one.train.shape, one.infer.shape
    shape: list[int] | SidesShape | None = None
    if shapes[0] is not None and shapes[1] is not None:
        shape = list(shapes[0]) if shapes[0] == shapes[1] else SidesShape(list(shapes[0]), list(shapes[1]))
    return BoundaryResult(
        one.row.boundary,
        one.row.order,
        status,
        shape=shape,
        dtype=SidesDtype(dtypes[0], dtypes[1]),
        ops_applied=SidesOperand(one.row.train, one.row.infer),
        unequal=Unequal(0, 0.0) if status == "EXACT" else None,
        max_abs_diff=0.0 if status == "EXACT" else None,
        statistics=shown,
        reason=reason,
    )


def _judged(one: _Stated, group: _Group | None) -> tuple[Status, Worded, dict[str, Any] | None]:
    for label, end in (("train", one.train), ("infer", one.infer)):
        if end.shape is None:
            return "MISSING", word("tensor_missing", side=label, name=[source.name for source in getattr(one.row, label).sources]), None
    train, infer = (group.train, group.infer) if group is not None else (one.train.facts, one.infer.facts)
    computed = any(place.record.category != "parameters" for place in (*one.train.places, *one.infer.places))
    found = Agreement("cannot_tell", None, {})
    if train is not None and infer is not None:
        found = agreement(train, infer, computed=computed)
    sums = [label for label in ("train", "infer") if getattr(one.row, label).combine == "sum"]
    if sums and found.agree == "yes":
        found = found._replace(agree="cannot_tell")
    shown = {
        "train": None if train is None else train.as_json(),
        "infer": None if infer is None else infer.as_json(),
        "agree": found.agree,
        "resolution": found.resolution,
    }
    known = (train is not None and train.known) or (infer is not None and infer.known)
    by_digest = _by_digest(one, group)
    if by_digest is not None:
        return (*by_digest, shown if known else None)
    names = group.names if group is not None else []
    reason = _without_statistics(one, group)
    if reason is None and train is not None and infer is not None:
        reason = stated_words.told(train, infer, found, sums)
    reason = reason or word("no_reason")
    return "evidence_missing", word("stats_together", names=names, what=reason) if names else reason, shown if known else None


def _without_statistics(one: _Stated, group: _Group | None) -> Worded | None:
    """Why the statistics of a row are not known; None where both sides have some."""
    for label, end in (("train", one.train), ("infer", one.infer)):
        recorded = [facts_of(place.record) for place in end.places]
        if not any(facts.known for facts in recorded) and (end.facts is None or not end.facts.known):
            digests = any(facts.digest is not None for facts in recorded)
            return word("digest_no_rows") if digests else word("statistics_only_tensor", side=label, name=end.places[0].record.name)
        if end.facts is None and group is None:
            return word("stats_untold", why=word("stats_of_part", side=label))
    return None


def _by_digest(one: _Stated, group: _Group | None) -> tuple[Status, Worded] | None:
    """What the digests of a row decide; None where they are not of the same elements, or there are none."""
    ends = (one.train, one.infer)
    if group is not None:
        digests = (group.train.digest, group.infer.digest) if group.same and group.train.dtype == group.infer.dtype else (None, None)
        if None in digests or (digests[0] == digests[1] and is_order_blind(digests[0] or "")):
            return None
        if digests[0] == digests[1]:
            return "EXACT", word("digest_equal", digest=digests[0])
        return "evidence_missing", word("digest_fused", names=group.names, train=digests[0], infer=digests[1])
    if not all(end.plain and end.facts is not None and end.facts.digest is not None for end in ends):
        return None
    (left, right), (train, infer) = [(end.facts, end.shape or ()) for end in ends], [end.facts for end in ends]
    sizes = [[size for size in shape if size != 1] for _, shape in (left, right)]
    if train is None or infer is None or train.dtype != infer.dtype or sizes[0] != sizes[1]:
        return None
    digests = train.digest or "", infer.digest or ""
    if is_order_blind(digests[0]) != is_order_blind(digests[1]):
        return None
    if digests[0] == digests[1]:
        blind = is_order_blind(digests[0])
        return (
            ("evidence_missing", word("digest_blind", digest=digests[0])) if blind else ("EXACT", word("digest_equal", digest=digests[0]))
        )
    if train.dtype == "bfloat16" and len({_is_old(end.places[0]) for end in ends}) > 1:
        return "evidence_missing", word("digest_releases")
    kind = "digest_differs_alike" if train.known and train.numbers == infer.numbers else "digest_differs"
    return "NOT_EXACT", word(kind, train=digests[0], infer=digests[1])


def _is_old(place: Place) -> bool:
    """Whether a unit is of the releases among which some took digests of bfloat16 widened to float32. Measured files are not."""
    return place.record.file is None and release.release_of(place.unit, release.UNKNOWN) == _OLD
