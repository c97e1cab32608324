"""Where a difference lies: which tokens, columns and heads it touches, in what pattern, and what can be said for certain.

A hint is a fact that was checked on the data; none says whether a difference is rounding or a fault.
"""

import itertools
import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from dump_analysis import floats, ulps
from dump_analysis.artefacts.boundary_results import Pattern, Ranked, TokenProfile, Touched, Where, Worst
from dump_analysis.artefacts.common import Worded
from dump_analysis.boundaries import place_of
from dump_analysis.floats import Array, shown
from dump_analysis.grids import pieces
from dump_analysis.tensors import BLOCK_BYTES, Stream
from dump_analysis.wording import word

from .figures import Figures
from .gains import one_scale, scale_of_all
from .row import Measure
from .ways import way_of

_LOG_CHANCE = math.log(1e-6)  # below this, elements spread at random would not leave so much untouched
_DENSE = 0.01
_WORST = 3
_BINS = 40
_DIGITS = 6
_SHOWN = 4  # examples of what may be many
_MANY = 3  # tokens that share a distance by no chance
_LISTED = 8  # tokens or columns that a hint names one by one
_SLACK = 1e-10  # of sums of squares that may be equal
_CERTAIN = 6  # standard errors
_PROFILED = ("layers.N.resid_mlp", "logits")


class Axes(NamedTuple):
    """What is known of a boundary's rows and columns. ``numbers``: the token of each row; ``head``: columns of a head."""

    numbers: Sequence[int] | None
    head: int | None


def where(boundary: str, found: Measure, axes: Axes, train: Stream, infer: Stream) -> Where | None:
    """Where a row of the mapping differs; None where nothing does. The streams are read to check what hints say."""
    figures = found.figures
    if figures is None:
        return None
    grid = figures.sums.grid
    touched = np.flatnonzero(figures.sums.rows.touched)
    by_token = grid.rows_are == "tokens"
    count = Touched(len(touched), grid.rows)
    columns = Touched(int(figures.sums.columns.touched.sum()), grid.columns) if grid.has_columns else None
    head = axes.head if axes.head and grid.columns % axes.head == 0 else None
    pattern = _pattern(found, figures, head)
    token_errors = _relative(figures.sums.rows.dd, figures.sums.rows.aa)
    profiled = by_token and place_of(boundary) in _PROFILED
    return Where(
        onset_token=min(_number(axes, int(at)) for at in touched) if by_token and len(touched) else None,
        tokens=count if by_token else None,
        columns=columns,
        rows=count if grid.rows_are == "rows" and grid.rows > 1 else None,
        worst=Worst(
            _worst(token_errors, figures.sums.rows.dd, axes) if by_token else None,
            _worst(_relative(figures.sums.columns.dd, figures.sums.columns.aa), figures.sums.columns.dd) if grid.has_columns else None,
            _worst_heads(figures, head) if head else None,
        ),
        pattern=pattern,
        token_profile=_profile(token_errors, axes) if profiled else None,
        hints=_hints(figures, axes, pattern, head, train, infer),
    )


def _number(axes: Axes, row: int) -> int:
    return row if axes.numbers is None else axes.numbers[row]


# --- worst ---


def _relative(dd: Array, aa: Array) -> Array:
    """Relative L2 of each item; infinite where the train side is zero and the difference is not."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        found: Array = np.where(dd > 0, np.sqrt(dd / aa), 0).astype(np.float64)
    return found


def _worst(errors: Array, dd: Array, axes: Axes | None = None) -> Ranked:
    order = np.lexsort((np.arange(len(errors)), -errors))[:_WORST]
    numbers = axes if axes is not None else Axes(None, None)
    return [(_number(numbers, int(at)), _shown_error(errors[at])) for at in order if dd[at] > 0]


def _worst_heads(figures: Figures, head: int) -> Ranked:
    dd, aa = (np.add.reduce(part.reshape(-1, head), axis=1) for part in (figures.sums.columns.dd, figures.sums.columns.aa))
    return _worst(_relative(dd, aa), dd)


def _shown_error(error: Array | float) -> float | None:
    return shown(error, _DIGITS) if np.isfinite(error) else None


def _profile(errors: Array, axes: Axes) -> TokenProfile:
    edges = np.unique(np.linspace(0, len(errors), min(len(errors), _BINS) + 1).astype(np.int64))
    largest = [_shown_error(errors[low:high].max()) for low, high in itertools.pairwise(edges)]
    last = _number(axes, len(errors) - 1) + 1
    return TokenProfile([_number(axes, int(edge)) for edge in edges[:-1]] + [last], largest)


# --- pattern ---


def _pattern(found: Measure, figures: Figures, head: int | None) -> Pattern:
    """A pattern is named where elements spread at random would leave so much untouched less than once in a million times."""
    grid, count = figures.sums.grid, found.tally.unequal
    few_rows = grid.rows_are is not None and _few(figures.sums.rows.touched, count, alone=grid.columns == 1)
    few_columns = grid.has_columns and _few(figures.sums.columns.touched, count, alone=grid.rows == 1)
    if (few_rows and few_columns) or (few_rows and grid.rows_are == "rows"):
        return "block"
    if few_rows:
        return "tokens"
    if few_columns:
        return "heads" if head and len(_whole_heads(figures, head)) else "columns"
    return "dense" if count >= _DENSE * found.tally.elements else "scattered"


def _few(touched: Array, count: int, *, alone: bool) -> bool:
    """Whether at most half are touched, and not by chance; ``alone``: each element is one of them."""
    hit, of = int(touched.sum()), len(touched)
    if not hit or hit > of / 2:
        return False
    ways = math.lgamma(of + 1) - math.lgamma(hit + 1) - math.lgamma(of - hit + 1)
    return alone or ways + count * math.log(hit / of) < _LOG_CHANCE


def _whole_heads(figures: Figures, head: int) -> list[int]:
    """The heads that hold every touched column, where most of their columns are touched and other heads are not."""
    by_head = figures.sums.columns.touched.reshape(-1, head).sum(axis=1)
    hit = np.flatnonzero(by_head)
    return [int(at) for at in hit] if len(hit) < len(by_head) and by_head[hit].min() > head / 2 else []


# --- hints ---


def _hints(figures: Figures, axes: Axes, pattern: Pattern, head: int | None, train: Stream, infer: Stream) -> list[Worded]:
    hints = _of_rows(figures, axes)
    if figures.sums.grid.has_columns:
        hints += _of_columns(figures, head if pattern == "heads" else None)
    hints += _of_direction(figures)
    scale = one_scale(figures.sums, figures.steps.ulp_format) if figures.steps.ulp_format else None
    if scale is not None and _scaled_everywhere(figures, *scale, train, infer):
        hints.append(word("one_scale", scale=scale[0], stderr=scale[1]))
    elif (scale := scale_of_all(figures.sums, figures.steps.ulp_format)) is not None and figures.constant is None:
        hints.append(word("scale_of_all", scale=scale[0], stderr=scale[1]))
    if figures.constant:
        hints.append(word("one_offset", offset=figures.constant))
    return hints + _of_other_tokens(figures, axes, train, infer)


def _of_rows(figures: Figures, axes: Axes) -> list[Worded]:
    grid, touched = figures.sums.grid, np.flatnonzero(figures.sums.rows.touched)
    if grid.rows_are is None or grid.rows == 1 or not len(touched):
        return []
    hints = []
    tokens = sorted(_number(axes, int(at)) for at in touched)
    before = tokens[0] if axes.numbers is None else sum(number < tokens[0] for number in axes.numbers)
    if grid.rows_are == "tokens" and 0 < before == tokens[0]:  # all of them were compared
        hints.append(word("first_tokens_equal", onset=tokens[0]))
    kind, run = ("only_tokens", "only_tokens_run") if grid.rows_are == "tokens" else ("only_rows", "only_rows_run")
    if len(tokens) <= min(_LISTED, grid.rows // 2):
        hints.append(word(kind, at=tokens, of=grid.rows))
    elif tokens[-1] < max(axes.numbers or [grid.rows - 1]) and tokens[-1] - tokens[0] == len(tokens) - 1:
        hints.append(word(run, first=tokens[0], last=tokens[-1], of=grid.rows))
    return hints


def _of_columns(figures: Figures, head: int | None) -> list[Worded]:
    touched, of = np.flatnonzero(figures.sums.columns.touched), figures.sums.grid.columns
    if head:
        return [word("only_heads", heads=_whole_heads(figures, head), of=of // head)]
    if len(touched) <= min(_LISTED, of // 2):
        return [word("only_columns", columns=[int(at) for at in touched], of=of)]
    if len(touched) < of and int(touched[-1] - touched[0]) == len(touched) - 1:
        return [word("only_columns_run", first=int(touched[0]), last=int(touched[-1]), of=of)]
    return []


def _of_direction(figures: Figures) -> list[Worded]:
    smaller, larger = figures.steps.smaller, figures.steps.larger
    way = way_of(smaller, larger)
    if way == "one_sided":
        return [word("one_sided", n=smaller + larger, way=word("larger_on_infer" if smaller else "smaller_on_infer"))]
    if way == "leaning":
        return [word("uneven", smaller=smaller, larger=larger, z=shown((smaller - larger) / (smaller + larger) ** 0.5, 3))]
    return []


def _scaled_everywhere(figures: Figures, scale: float, stderr: float, train: Stream, infer: Stream) -> bool:
    """Whether each element of infer is the scaled one of train, up to the rounding of both and the error of the scale."""
    grid, step = figures.sums.grid, figures.steps.ulp_format
    item = max(floats.FORMATS[stream.dtype].raw.itemsize for stream in (train, infer))
    for start, stop in pieces(0, grid.elements, grid.columns, BLOCK_BYTES // item):
        with np.errstate(invalid="ignore"):  # a signalling NaN
            a, b = (floats.values(stream.read(start, stop), stream.dtype).astype(np.float64) for stream in (train, infer))
        finite = np.isfinite(a) & np.isfinite(b)
        a, b = a[finite], b[finite]
        rounding = (ulps.spacing(b, step) + abs(scale) * ulps.spacing(a, step)) / 2 if step else 0.0
        if (np.abs(b - scale * a) > rounding + _CERTAIN * stderr * np.abs(a)).any():
            return False
    return True


def _of_other_tokens(figures: Figures, axes: Axes, train: Stream, infer: Stream) -> list[Worded]:
    """Rows that are zero on one side, and rows that are another token's row of the train side."""
    sums = figures.sums
    if sums.grid.rows_are != "tokens" or sums.grid.rows == 1 or sums.grid.columns == 1:
        return []
    hints = []
    for side, here, there in (("train", sums.rows.aa, sums.rows.bb), ("infer", sums.rows.bb, sums.rows.aa)):
        empty = np.flatnonzero((here == 0) & (there > 0) & ~sums.not_finite)
        if len(empty):
            hints.append(word("tokens_zero", side=side, tokens=[_number(axes, int(at)) for at in empty[:_SHOWN]], n=len(empty)))
    moved = [(_number(axes, here), _number(axes, there)) for here, there in _moved(figures, train, infer)]
    lags = {there - here for here, there in moved}
    if len(moved) >= _MANY and len(lags) == 1:
        hints.append(word("tokens_lag", n=len(moved), lag=lags.pop()))
    elif moved:
        told = [word("token_is", infer=here, train=there) for here, there in moved[:_SHOWN]]
        hints.append(word("tokens_moved", n=len(moved), tokens=told))
    return hints


def _moved(figures: Figures, train: Stream, infer: Stream) -> list[tuple[int, int]]:
    """(row of infer, row of train) that are equal byte for byte; candidates are rows of equal squares.

    None where an element is not finite: the squares leave it out.
    """
    if train.dtype != infer.dtype or figures.sums.not_finite.any():
        return []
    rows, width = figures.sums.rows, figures.sums.grid.columns
    order = np.argsort(rows.aa, kind="stable")
    low, high = (np.searchsorted(rows.aa[order], rows.bb * (1 + slack)) for slack in (-_SLACK, _SLACK))
    found = []
    for here in np.flatnonzero(rows.touched & (rows.bb > 0) & (high > low)):
        ours = infer.read(here * width, (here + 1) * width).tobytes()
        for there in order[low[here] : min(high[here], low[here] + _LISTED)]:
            if there != here and train.read(there * width, (there + 1) * width).tobytes() == ours:
                found.append((int(here), int(there)))
                break
    return found
