"""The measures of one mapping row: how much differs, by how many ULPs, in which direction, and with what gain.

`Measure` takes the row's blocks.  Until the first block that differs it only counts; then it reads what came before
once more and sums from there on, so that equal rows cost nothing but their comparison.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from . import floats, ulps
from .artefacts.boundary_results import Direction, Gain, LinesBeyond, Sampled, Ulp, WholeLine
from .figures import Figures, finite
from .floats import Array
from .grids import Grid, pieces
from .regression import Lines, Sums, fit
from .tally import Tally
from .tensors import BLOCK_BYTES, Stream

_CLEAR = 6  # standard errors from 1
_SHOWN = 4
_DIGITS = 12  # of what is right to 1e-12
_FEW = 6  # of what is an estimate
_MOST = 0.5  # of the squared difference
_SLACK = 1e-9  # of a scale
_NOTHING = 1e-12  # a share below this is rounding of the sums


class Sizes(NamedTuple):
    """Over the elements that are finite on both sides; None where a value is not defined."""

    max_abs: float | None
    mean_abs: float | None
    rms: float | None
    rel_l2: float | None
    cosine: float | None
    norm_ratio: float | None


SAME = Sizes(0.0, 0.0, 0.0, 0.0, 1.0, 1.0)


class Measure:
    """Takes the blocks of one row. ``tally``: the exact counts; ``figures``: None while nothing differs."""

    def __init__(self, grid: Grid, train: Stream, infer: Stream, formats: Sequence[str]) -> None:
        """``formats``: all dtypes that the values have been held in, for the ULP format."""
        self.grid = grid
        self.tally = Tally(train.dtype, infer.dtype)
        self.figures: Figures | None = None
        self._train, self._infer = train, infer
        self._ulp_format = ulps.coarser([train.dtype, infer.dtype, *formats])
        self._addends = [part for stream in (train, infer) for part in stream.addends]

    @property
    def columns(self) -> int:
        """Elements of a row: blocks hold whole rows, or a part of one."""
        return self.grid.columns

    def add(self, start: int, train: Array, infer: Array) -> None:
        differing = self.tally.add(start, train, infer)
        if differing is None:
            self._add_equal_figures(start, train)
            return
        if self.figures is None and self.tally.unequal:
            self.figures = self._caught_up(start)
        if self.figures is not None:
            self.figures.add(start, train, infer, differing)
            self._see_addends(self.figures, start, start + len(train))

    def add_equal(self, start: int, both: Array) -> None:
        self.tally.add_equal(start, both)
        self._add_equal_figures(start, both)

    def _add_equal_figures(self, start: int, both: Array) -> None:
        if self.figures is not None:
            self.figures.add_equal(start, both, self._train.dtype)

    def _caught_up(self, start: int) -> Figures:
        """Sums of the blocks before the first that differs: their values are equal."""
        figures = Figures(self.grid, (self._train.dtype, self._infer.dtype), self._ulp_format)
        most = BLOCK_BYTES // floats.FORMATS[self._train.dtype].raw.itemsize
        for low, high in pieces(0, start, self.columns, most):
            figures.add_equal(low, self._train.read(low, high), self._train.dtype)
            self._see_addends(figures, low, high)
        return figures

    def _see_addends(self, figures: Figures, start: int, stop: int) -> None:
        """A sum's rounding goes by its largest addend: addends that cancel leave a result that is small beside it."""
        for part in self._addends if self._ulp_format is not None else ():
            figures.raise_scale(start, floats.values(part.read(start, stop), part.dtype))


# --- what the sums say ---


def sizes(measure: Measure) -> Sizes:
    """The sizes of the difference."""
    figures, count = measure.figures, measure.tally.finite
    if not count and (figures is not None or measure.tally.nan):
        return Sizes(None, None, None, None, None, None)
    if figures is None:
        return SAME
    rows = figures.rows
    dd, aa, bb, ab = (np.add.reduce(part) for part in (rows.dd, rows.aa, rows.bb, rows.ab))
    both = np.sqrt(aa) * np.sqrt(bb)
    return Sizes(
        finite(rows.peak.max()),
        shown(np.add.reduce(rows.d_abs) / count),
        shown(np.sqrt(dd / count)),
        shown(np.sqrt(dd / aa)) if aa else None,
        shown(max(-1.0, min(1.0, float(ab / both)))) if both else None,
        shown(np.sqrt(bb / aa)) if aa else None,
    )


def ulp(measure: Measure) -> Ulp | None:
    """ULP distances; None where the values have no ULP (integers, complex) or nothing differs."""
    figures = measure.figures
    if figures is None or figures.steps.ulp_format is None:
        return None
    touched = figures.rows.touched
    peak, scale = figures.rows.peak[touched].astype(np.float64), figures.rows.scale[touched].astype(np.float64)
    at_scale = float((peak / ulps.spacing(scale, figures.steps.ulp_format)).max()) if len(peak) else None
    return Ulp(
        figures.steps.farthest,
        None if at_scale is None else shown(at_scale, _FEW),
        {**figures.steps.histogram.counts(), "opposite_sign": figures.steps.histogram.opposite},
    )


def direction(measure: Measure) -> Direction | None:
    """How many magnitudes are smaller and larger on the engine's side."""
    figures = measure.figures
    if figures is None:
        return None
    both = figures.steps.smaller + figures.steps.larger
    return Direction(
        figures.steps.smaller,
        figures.steps.larger,
        shown((figures.steps.smaller - figures.steps.larger) / both**0.5, _FEW) if both else 0.0,
    )


def gain(measure: Measure) -> Gain | None:
    """Lines over all elements, by token and by column; None where a line has no meaning (complex, nothing differs)."""
    figures = measure.figures
    if figures is None or figures.complex or not measure.tally.finite:
        return None
    grid, by_row, by_column = figures.grid, figures.row_sums(), figures.column_sums()
    whole, count = by_row.whole(), figures.row_counts()
    token = column = None
    if grid.rows_are is not None and grid.rows > 1 and grid.columns > 2:
        token = _beyond(fit(count, by_row), whole, figures.stride)
    elif grid.rows_are == "tokens" and grid.columns > 2:
        token = _beyond(fit(count, by_row), whole, 1)
    if grid.has_columns and figures.sampled_rows > 2:
        column = _beyond(fit(figures.column_counts(), by_column), whole, 1)
    return Gain(_whole(fit(np.add.reduce(count, keepdims=True), whole), whole), token, column)


def _whole(line: Lines, sums: Sums) -> WholeLine | None:
    scale, offset, stderr, rest = (float(part[0]) for part in line)
    if not (np.isfinite(scale) and np.isfinite(stderr)):
        return None
    return WholeLine(shown(scale, _DIGITS), shown(offset, _FEW), shown(stderr, _FEW), _left_over(rest, sums))


def _beyond(lines: Lines, sums: Sums, stride: int) -> LinesBeyond:
    """``stride``: the distance of the lines' indices."""
    away = np.abs(lines.scale - 1)
    with np.errstate(divide="ignore", invalid="ignore"):
        clear = np.where(away > _CLEAR * lines.stderr, away / lines.stderr, -1.0)
    order = np.argsort(-clear, kind="stable")[:_SHOWN]
    shown_lines = [(int(at) * stride, shown(lines.scale[at], _FEW + 2), shown(lines.stderr[at], _FEW)) for at in order if clear[at] > 0]
    return LinesBeyond(_left_over(float(np.add.reduce(lines.rest)), sums), shown_lines, int((clear > 0).sum()))


def _left_over(rest: float, sums: Sums) -> float:
    total = float(sums.dd[0])
    share = rest / total if total else 0.0
    return shown(share, _FEW) if share > _NOTHING else 0.0


def one_scale(measure: Measure) -> tuple[float, float] | None:
    """The scale and its standard error, where one scale explains most of the difference and every token and column has it."""
    figures = measure.figures
    if figures is None or figures.complex or figures.grid.rows_are is None:
        return None
    count, by_row, by_column = figures.row_counts(), figures.row_sums(), figures.column_sums()
    whole = by_row.whole()
    line = fit(np.add.reduce(count, keepdims=True), whole)
    scale, stderr = float(line.scale[0]), float(line.stderr[0])
    if not abs(scale - 1) > _CLEAR * stderr + _NOTHING or float(line.rest[0]) > _MOST * float(whole.dd[0]):
        return None
    lines = [fit(count, by_row), fit(figures.column_counts(), by_column)] if figures.grid.has_columns else [fit(count, by_row)]
    for each in lines:
        known = np.isfinite(each.scale) & np.isfinite(each.stderr)
        if (np.abs(each.scale - scale) > _CLEAR * np.hypot(each.stderr, stderr) + _SLACK)[known].any():
            return None
    return shown(scale, _FEW + 2), shown(stderr, _FEW)


def sampled(measure: Measure) -> Sampled | None:
    """What comes from a sample of rows, and from which."""
    figures = measure.figures
    if figures is None or figures.stride == 1:
        return None
    told = ["gain", "where.worst.columns", "where.worst.heads"] + (["ulp.histogram"] if figures.steps.ulp_format else [])
    return Sampled(figures.sampled_rows, figures.grid.rows, figures.stride, told)


def shown(value: Array | float, digits: int = _DIGITS) -> float:
    """A float64 with so many significant digits: what is beyond them is noise of the order of summation."""
    return float(f"{finite(value):.{digits}g}")
