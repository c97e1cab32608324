"""Where a difference lies: which tokens, columns and heads it touches, in what pattern, and what can be said for certain.

A hint is a fact that was checked on the data; none says whether a difference is rounding or a fault.
"""

import itertools
import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from . import measure
from .artefacts.boundary_results import Pattern, Ranked, TokenProfile, Touched, Where, Worst
from .artefacts.common import Worded
from .boundaries import place_of
from .figures import Figures
from .floats import Array
from .measure import Measure, shown
from .tensors import Stream
from .wording import word

_LOG_CHANCE = math.log(1e-6)  # below this, elements spread at random would not leave so much untouched
_DENSE = 0.01
_WORST = 3
_BINS = 40
_DIGITS = 6
_LISTED = 8  # tokens or columns that a hint names one by one
_ONE_SIDED = 16  # elements; a fair coin falls so often on one side once in 30,000 tries
_LEAN = 0.2  # of the elements
_SLACK = 1e-10  # of sums of squares that may be equal
_UNEVEN = 10  # standard errors
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
    grid = figures.grid
    touched = np.flatnonzero(figures.rows.touched)
    by_token = grid.rows_are == "tokens"
    count = Touched(len(touched), grid.rows)
    columns = Touched(int(figures.columns.touched.sum()), grid.columns) if grid.has_columns else None
    head = axes.head if axes.head and grid.columns % axes.head == 0 else None
    pattern = _pattern(found, figures, head)
    token_errors = _relative(figures.rows.dd, figures.rows.aa)
    profiled = by_token and place_of(boundary) in _PROFILED
    return Where(
        onset_token=_number(axes, int(touched[0])) if by_token and len(touched) else None,
        tokens=count if by_token else None,
        columns=columns,
        rows=count if grid.rows_are == "rows" and grid.rows > 1 else None,
        worst=Worst(
            _worst(token_errors, figures.rows.dd, axes) if by_token else None,
            _worst(_relative(figures.columns.dd, figures.columns.aa), figures.columns.dd) if grid.has_columns else None,
            _worst_heads(figures, head) if head else None,
        ),
        pattern=pattern,
        token_profile=_profile(token_errors, axes) if profiled else None,
        hints=_hints(found, figures, axes, pattern, head, train, infer),
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
    dd, aa = (np.add.reduce(part.reshape(-1, head), axis=1) for part in (figures.columns.dd, figures.columns.aa))
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
    grid, count = figures.grid, found.tally.unequal
    few_rows = grid.rows_are is not None and _few(figures.rows.touched, count, alone=grid.columns == 1)
    few_columns = grid.has_columns and _few(figures.columns.touched, count, alone=grid.rows == 1)
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
    by_head = figures.columns.touched.reshape(-1, head).sum(axis=1)
    hit = np.flatnonzero(by_head)
    return [int(at) for at in hit] if len(hit) < len(by_head) and by_head[hit].min() > head / 2 else []


# --- hints ---


def _hints(found: Measure, figures: Figures, axes: Axes, pattern: Pattern, head: int | None, train: Stream, infer: Stream) -> list[Worded]:
    hints = _of_rows(figures, axes)
    if figures.grid.has_columns:
        hints += _of_columns(figures, head if pattern == "heads" else None)
    hints += _of_direction(figures)
    scale = measure.one_scale(found)
    if scale is not None:
        hints.append(word("one_scale", scale=scale[0], stderr=scale[1]))
    if figures.constant:
        hints.append(word("one_offset", offset=figures.constant))
    return hints + _of_other_tokens(figures, axes, train, infer)


def _of_rows(figures: Figures, axes: Axes) -> list[Worded]:
    grid, touched = figures.grid, np.flatnonzero(figures.rows.touched)
    if grid.rows_are is None or grid.rows == 1 or not len(touched):
        return []
    hints = []
    tokens = [_number(axes, int(at)) for at in touched]
    if grid.rows_are == "tokens" and touched[0] > 0:
        hints.append(word("first_tokens_equal", onset=tokens[0]))
    kind, run = ("only_tokens", "only_tokens_run") if grid.rows_are == "tokens" else ("only_rows", "only_rows_run")
    if len(tokens) <= min(_LISTED, grid.rows // 2):
        hints.append(word(kind, at=tokens, of=grid.rows))
    elif _one_run(touched) and len(tokens) < grid.rows and touched[-1] < grid.rows - 1:
        hints.append(word(run, first=tokens[0], last=tokens[-1], of=grid.rows))
    return hints


def _of_columns(figures: Figures, head: int | None) -> list[Worded]:
    touched, of = np.flatnonzero(figures.columns.touched), figures.grid.columns
    if head:
        return [word("only_heads", heads=_whole_heads(figures, head), of=of // head)]
    if len(touched) <= min(_LISTED, of // 2):
        return [word("only_columns", columns=[int(at) for at in touched], of=of)]
    if _one_run(touched) and len(touched) < of:
        return [word("only_columns_run", first=int(touched[0]), last=int(touched[-1]), of=of)]
    return []


def _one_run(touched: Array) -> bool:
    return len(touched) > 1 and int(touched[-1] - touched[0]) == len(touched) - 1


def _of_direction(figures: Figures) -> list[Worded]:
    smaller, larger = figures.steps.smaller, figures.steps.larger
    both = smaller + larger
    if both >= _ONE_SIDED and not (smaller and larger):
        return [word("one_sided", n=both, way=word("larger_on_infer" if smaller else "smaller_on_infer"))]
    if abs(smaller - larger) > max(_LEAN * both, _UNEVEN * both**0.5):
        return [word("uneven", smaller=smaller, larger=larger, z=shown((smaller - larger) / both**0.5, 3))]
    return []


def _of_other_tokens(figures: Figures, axes: Axes, train: Stream, infer: Stream) -> list[Worded]:
    """Rows that are zero on one side, and rows that are another token's row of the train side."""
    grid, rows = figures.grid, figures.rows
    if grid.rows_are != "tokens" or grid.rows == 1 or grid.columns == 1:
        return []
    hints = []
    for side, here, there in (("train", rows.aa, rows.bb), ("infer", rows.bb, rows.aa)):
        empty = np.flatnonzero((here == 0) & (there > 0))
        if len(empty):
            hints.append(word("tokens_zero", side=side, tokens=[_number(axes, int(at)) for at in empty[:_LISTED]], n=len(empty)))
    moved = _moved(figures, train, infer)
    if moved:
        pairs = [(_number(axes, here), _number(axes, there)) for here, there in moved]
        lags = {there - here for here, there in pairs}
        told = [word("token_is", infer=here, train=there) for here, there in pairs[:_LISTED]]
        hints.append(word("tokens_moved", n=len(pairs), tokens=told) if len(lags) > 1 else word("tokens_lag", n=len(pairs), lag=lags.pop()))
    return hints


def _moved(figures: Figures, train: Stream, infer: Stream) -> list[tuple[int, int]]:
    """(row of infer, row of train) that are equal byte for byte; candidates are rows of equal squares."""
    if train.dtype != infer.dtype:
        return []
    rows, width = figures.rows, figures.grid.columns
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
