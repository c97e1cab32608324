"""Lines through the two sides' values: one over all elements, one by token, one by column; and when one scale says it all."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from dump_analysis import ulps
from dump_analysis.artefacts.boundary_results import Gain, LinesBeyond, WholeLine
from dump_analysis.floats import FEW_DIGITS, Array, shown

from .gridsums import GridSums
from .regression import Lines, Sums, fit, rounding_error

_CLEAR = 6  # standard errors
_SHOWN = 4
_MOST = 0.5  # of the squared difference
_SLACK = 1e-9  # of a scale, where the standard error is nothing
_NOTHING = 1e-12  # a share below this is rounding of the sums


def gain(sums: GridSums, ulp_format: str | None, numbers: Sequence[int] | None) -> Gain | None:
    """Lines over all elements, by token and by column; None for complex values. ``numbers``: the token of each row."""
    if sums.complex:
        return None
    whole, line = sums.row_sums().whole(), _whole_line(sums)
    rows = range(0, sums.grid.rows, sums.stride)
    names = rows if numbers is None else [numbers[row] for row in rows]
    by_row, by_column = _by_row(sums), _by_column(sums)
    noise = _noise(line, whole, ulp_format)
    return Gain(
        _whole(line, whole),
        None if by_row is None else _beyond(by_row, noise, names),
        None if by_column is None else _beyond(by_column, noise, range(sums.grid.columns)),
    )


class _Way(NamedTuple):
    """Lines of one kind, how many pairs each has, and their sums."""

    lines: Lines
    counts: Array
    of: Sums

    def error(self, noise: float) -> Array:
        """The standard error of each scale: its own, or what the noise of all elements makes of it."""
        found: Array = np.fmax(self.lines.stderr, rounding_error(self.counts, self.of, noise))
        return found


def _noise(line: Lines, whole: Sums, ulp_format: str | None) -> float:
    """What no line explains, as a share of the squares: of each element, where rounding grows with the value.

    Never less than half a step of the format: values that are stored rounded tell no more.
    """
    least = 4.0 ** -ulps.PRECISION[ulp_format][0] if ulp_format else 0.0
    return max(float(line.rest[0] / whole.aa[0]), least) if whole.aa[0] else least


def _whole_line(sums: GridSums) -> Lines:
    return fit(np.add.reduce(sums.row_counts(), keepdims=True), sums.row_sums().whole())


def _by_row(sums: GridSums) -> _Way | None:
    """None where rows mean nothing, are too short for a line, or are one vector of a weight."""
    grid = sums.grid
    if grid.rows_are is None or grid.columns < 3 or (grid.rows == 1 and grid.rows_are == "rows"):
        return None
    return _Way(fit(sums.row_counts(), sums.row_sums()), sums.row_counts(), sums.row_sums())


def _by_column(sums: GridSums) -> _Way | None:
    """None where columns mean nothing or are too short for a line."""
    if not sums.grid.has_columns or sums.sampled_rows < 3:
        return None
    return _Way(fit(sums.column_counts(), sums.column_sums()), sums.column_counts(), sums.column_sums())


def _whole(line: Lines, of: Sums) -> WholeLine | None:
    scale, offset, stderr, rest = (float(part[0]) for part in line)
    if not (np.isfinite(scale) and np.isfinite(stderr)):
        return None
    return WholeLine(shown(scale), shown(offset, FEW_DIGITS), shown(stderr, FEW_DIGITS), _left_over(rest, of))


def _beyond(way: _Way, noise: float, names: Sequence[int]) -> LinesBeyond:
    """``names``: what the artefact calls the lines."""
    scale, error = way.lines.scale, way.error(noise)
    away = np.abs(scale - 1)
    with np.errstate(invalid="ignore"):
        clear = np.where(away > _CLEAR * error + _SLACK, away / np.maximum(error, _SLACK * away), -1.0)
    order = np.argsort(-clear, kind="stable")[:_SHOWN]
    told = [(names[at], shown(scale[at], FEW_DIGITS + 2), shown(error[at], FEW_DIGITS)) for at in order if clear[at] > 0]
    return LinesBeyond(_left_over(float(np.add.reduce(way.lines.rest)), way.of.whole()), told, int((clear > 0).sum()))


def _left_over(rest: float, whole: Sums) -> float:
    total = float(whole.dd[0])
    share = rest / total if total else 0.0
    return shown(share, FEW_DIGITS) if share > _NOTHING else 0.0


# --- one scale everywhere ---


def one_scale(sums: GridSums, ulp_format: str | None) -> tuple[float, float] | None:
    """The scale and its standard error, where it explains most of the difference and each token and column has it.

    From the sampled rows: whoever tells it checks it on every element.
    """
    if sums.complex or sums.grid.rows_are is None:
        return None
    whole, line = sums.row_sums().whole(), _whole_line(sums)
    noise = _noise(line, whole, ulp_format)
    all_pairs = _Way(line, np.add.reduce(sums.row_counts(), keepdims=True), whole)
    scale, stderr = float(line.scale[0]), float(all_pairs.error(noise)[0])
    if not abs(scale - 1) > _CLEAR * stderr + _SLACK or _without_offset(scale - 1, whole) > _MOST * float(whole.dd[0]):
        return None
    for way in _each_way(sums):
        if way is None:
            return None
        differ = way.of.dd > 0
        if (way.of.aa[~differ] > 0).any() or not np.isfinite(way.lines.stderr[differ]).all():
            return None
        error = np.hypot(way.error(noise), stderr)
        if (np.abs(way.lines.scale - scale) > _CLEAR * error + _SLACK)[differ].any():
            return None
    return shown(scale, FEW_DIGITS + 2), shown(stderr, FEW_DIGITS)


def scale_of_all(sums: GridSums, ulp_format: str | None) -> tuple[float, float] | None:
    """The scale over all elements and its standard error, where it is clear of 1."""
    if sums.complex:
        return None
    whole, line = sums.row_sums().whole(), _whole_line(sums)
    pairs = np.add.reduce(sums.row_counts(), keepdims=True)
    scale, error = float(line.scale[0]), float(_Way(line, pairs, whole).error(_noise(line, whole, ulp_format))[0])
    return (shown(scale, FEW_DIGITS + 2), shown(error, FEW_DIGITS)) if abs(scale - 1) > _CLEAR * error + _SLACK else None


def _without_offset(slope: float, whole: Sums) -> float:
    """Σ (d − slope · a)²."""
    return float(whole.dd[0] - 2 * slope * whole.ad[0] + slope * slope * whole.aa[0])


def _each_way(sums: GridSums) -> Iterator[_Way | None]:
    """By row, and by column where columns are more than one."""
    if sums.grid.rows > 1 or not sums.grid.has_columns:
        yield _by_row(sums)
    if sums.grid.has_columns:
        yield _by_column(sums)
