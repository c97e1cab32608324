"""Sums over the rows and the columns of a grid, and which of its rows the finer ones come from."""

from typing import NamedTuple

import numpy as np

from dump_analysis.floats import Array
from dump_analysis.grids import Grid

from .regression import Sums

_LARGE = 1 << 20  # elements; column sums, regressions and the histogram of larger tensors come from a sample of rows
_SAMPLE = 1 << 18  # elements of that sample, or more


class Rows(NamedTuple):
    """Per row of the grid, a of train, b of infer, d = b − a: sums, max |d|, the largest magnitude, whether it differs."""

    aa: Array
    bb: Array
    ab: Array
    dd: Array
    peak: Array
    scale: Array
    touched: Array


class Sampled(NamedTuple):
    """Per sampled row of the grid: Σa, Σd, Σad, Σa⁴, and how many elements are not finite."""

    a: Array
    d: Array
    ad: Array
    fourth: Array
    gone: Array


class Columns(NamedTuple):
    """Per column of the grid, over the sampled rows: sums; ``touched`` over all rows."""

    aa: Array
    ad: Array
    dd: Array
    a: Array
    d: Array
    fourth: Array
    gone: Array
    touched: Array


class GridSums:
    """``each``: numbers of an element, two for complex ones; ``wide``: what the sums are taken in.

    Every ``stride``-th row is in the sample. ``not_finite``: rows with an element that no sum holds.
    """

    def __init__(self, grid: Grid, each: int, wide: "np.dtype[np.floating]") -> None:
        self.grid, self.each, self.wide = grid, each, wide
        self.stride = min(grid.rows, grid.elements // _SAMPLE) if grid.elements > _LARGE else 1
        self.rows = Rows(*self._zeros(grid.rows, len(Rows._fields) - 1))
        self.sample = Sampled(*self._zeros(self.sampled_rows, len(Sampled._fields))[:-1])
        self.not_finite = np.zeros(grid.rows, bool)
        width = grid.columns if grid.has_columns else 0
        self.columns = Columns(*self._zeros(width, len(Columns._fields) - 1))

    def _zeros(self, size: int, sums: int) -> list[Array]:
        """So many sums, and whether an item is touched."""
        return [*(np.zeros(size, self.wide) for _ in range(sums)), np.zeros(size, bool)]

    @property
    def sampled_rows(self) -> int:
        """How many rows the column sums, the regressions and the histogram come from."""
        return -(-self.grid.rows // self.stride)

    @property
    def complex(self) -> bool:
        """Whether elements have two parts."""
        return self.each == 2

    def row_counts(self) -> Array:
        """How many pairs each line by row is fitted to."""
        count = np.full(self.grid.rows, self.grid.columns, np.int64)
        count[-1] = self.grid.elements - self.grid.columns * (self.grid.rows - 1)
        return count[:: self.stride] - self.sample.gone.astype(np.int64)

    def column_counts(self) -> Array:
        """How many pairs each line by column is fitted to."""
        return self.sampled_rows - self.columns.gone.astype(np.int64)

    def row_sums(self) -> Sums:
        """For lines by row, over the sampled rows."""
        kept = slice(None, None, self.stride)
        return Sums(self.sample.a, self.sample.d, self.rows.aa[kept], self.sample.ad, self.rows.dd[kept], self.sample.fourth)

    def column_sums(self) -> Sums:
        """For lines by column, over the sampled rows."""
        columns = self.columns
        return Sums(columns.a, columns.d, columns.aa, columns.ad, columns.dd, columns.fourth)

    # --- adding ---

    def add_powers(self, row: int, rows: int, across: slice, picked: Array) -> None:
        """Σa, Σa² and Σa⁴ of a block's sampled rows."""
        sampled = self.of_sample(row, rows)
        self.sample.a[sampled] += np.add.reduce(picked, axis=1)
        squares = picked * picked
        fourth = squares * squares
        self.sample.fourth[sampled] += np.add.reduce(fourth, axis=1)
        if self.grid.has_columns:
            for target, block in ((self.columns.a, picked), (self.columns.aa, squares), (self.columns.fourth, fourth)):
                self.by_column(target, across, block)

    def add_few(self, rows: Array, d_sums: Array, ad_sums: Array, columns: Array, a: Array, d: Array, sampled: Array) -> None:
        """Σd, Σad and Σd² of elements that differ: by row (``rows`` and their sums), and one by one for their columns."""
        kept = rows % self.stride == 0
        self.sample.d[rows[kept] // self.stride] += d_sums[kept]
        self.sample.ad[rows[kept] // self.stride] += ad_sums[kept]
        if not self.grid.has_columns or not len(columns):
            return
        self.columns.touched[columns] = True
        low, high = int(columns.min()), int(columns.max()) + 1
        for target, each in ((self.columns.d, d), (self.columns.ad, a * d), (self.columns.dd, d * d)):
            target[low:high] += np.bincount(columns[sampled] - low, each[sampled], high - low)

    def leave_out(self, start: int, finite: Array | None) -> None:
        """Count the elements of the sample that no line is fitted to."""
        if finite is None:
            return
        row, rows, column, columns = self.grid.place(start, len(finite))
        block = ~finite.reshape(rows, columns)
        self.not_finite[row : row + rows] |= np.logical_or.reduce(block, axis=1)
        picked = self.picked(row, rows)
        if picked is None:
            return
        self.sample.gone[self.of_sample(row, rows)] += np.add.reduce(block[picked], axis=1)
        if self.grid.has_columns:
            self.columns.gone[column : column + columns] += np.add.reduce(block[picked], axis=0)

    def by_column(self, target: Array, across: slice, block: Array) -> None:
        sums = np.add.reduce(block, axis=0)
        target[across] += sums if self.each == 1 else sums[::2] + sums[1::2]

    def picked(self, row: int, rows: int) -> slice | None:
        """Those rows of a block that are in the sample."""
        first = -row % self.stride
        return slice(first, None, self.stride) if first < rows else None

    def of_sample(self, row: int, rows: int) -> slice:
        """The places in the sample of a block's sampled rows."""
        return slice(-(-row // self.stride), -(-(row + rows) // self.stride))
