"""The measures of one mapping row: how much differs, by how many ULPs, in which direction, and with what gain.

`Measure` takes the row's blocks.  Until the first block that differs it only counts; then it reads what came before
once more and sums from there on, so that equal rows cost nothing but their comparison.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from dump_analysis import floats, ulps
from dump_analysis.artefacts.boundary_results import Direction, Sampled, Ulp
from dump_analysis.floats import FEW_DIGITS, Array, finite, shown
from dump_analysis.grids import Grid, pieces
from dump_analysis.tally import Tally
from dump_analysis.tensors import BLOCK_BYTES, Stream

from .figures import Figures


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
    rows = figures.sums.rows
    dd, aa, bb, ab = (np.add.reduce(part) for part in (rows.dd, rows.aa, rows.bb, rows.ab))
    both = np.sqrt(aa) * np.sqrt(bb)
    return Sizes(
        finite(rows.peak.max()),
        shown(figures.d_abs() / count),
        shown(np.sqrt(dd / count)),
        shown(np.sqrt(dd / aa)) if aa else None,
        shown(max(-1.0, min(1.0, float(ab / both)))) if both else None,
        shown(np.sqrt(bb / aa)) if aa else None,
    )


def measured(measure: Measure) -> Figures | None:
    """The sums, where something differs and there is a pair to measure."""
    return measure.figures if measure.tally.finite else None


def ulp(measure: Measure) -> Ulp | None:
    """ULP distances; None where the values have no ULP (integers, complex) or nothing differs."""
    figures = measured(measure)
    if figures is None or figures.steps.ulp_format is None:
        return None
    touched = figures.sums.rows.touched
    peak, scale = figures.sums.rows.peak[touched], figures.sums.rows.scale[touched].astype(np.float64)
    at_scale = float((peak / ulps.spacing(scale, figures.steps.ulp_format)).max()) if len(peak) else None
    return Ulp(
        figures.steps.farthest,
        None if at_scale is None else shown(at_scale, FEW_DIGITS),
        {**figures.steps.histogram.counts(), "opposite_sign": figures.steps.histogram.opposite},
    )


def direction(measure: Measure) -> Direction | None:
    """How many magnitudes are smaller and larger on the engine's side."""
    figures = measured(measure)
    if figures is None:
        return None
    both = figures.steps.smaller + figures.steps.larger
    return Direction(
        figures.steps.smaller,
        figures.steps.larger,
        shown((figures.steps.smaller - figures.steps.larger) / both**0.5, FEW_DIGITS) if both else 0.0,
    )


def sampled(measure: Measure) -> Sampled | None:
    """What comes from a sample of rows, and from which."""
    figures = measure.figures
    if figures is None or figures.sums.stride == 1:
        return None
    told = ["gain", "where.worst.columns", "where.worst.heads"] + (["ulp.histogram"] if figures.steps.ulp_format else [])
    return Sampled(figures.sums.sampled_rows, figures.sums.grid.rows, figures.sums.stride, told)
