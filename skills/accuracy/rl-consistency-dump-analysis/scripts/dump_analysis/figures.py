"""Sums over the blocks of two tensors that differ, by row, by column and by element: all that the measures are made of.

A tensor is seen as a grid (see `grids`); blocks are whole rows, or a part of one row.  Sums are taken in float64
(in extended precision where float64 is a side's own format, or an integer's 64 bits need it), pairwise inside a
block, so that they are right to 1e-12 for 10**8 elements.
"""

from typing import NamedTuple

import numpy as np

from . import floats, ulps
from .floats import Array
from .grids import Grid
from .regression import Sums
from .steps import Steps
from .tally import Differing

_LARGE = 1 << 20  # elements; column sums, regressions and the histogram of larger tensors come from a sample of rows
_SAMPLE = 1 << 18  # elements of that sample, or more
_CANCELLED = 0.05
_FEW = 8  # a block of which less than an eighth differs is summed by what differs
_EXTENDED = frozenset({"float64", "complex128", "int64", "uint64"})
_LARGEST = float(np.finfo(np.float64).max)


class Rows(NamedTuple):
    """Per row of the grid, a of train, b of infer, d = b − a: sums, max |d|, the largest magnitude, how many elements are
    not finite, whether it differs. The sums of a and d are over the sampled rows only."""

    aa: Array
    bb: Array
    ab: Array
    ad: Array
    dd: Array
    d_abs: Array
    a: Array
    d: Array
    peak: Array
    scale: Array
    gone: Array
    touched: Array


class Columns(NamedTuple):
    """Per column of the grid, over the sampled rows; ``touched`` over all rows."""

    aa: Array
    ad: Array
    dd: Array
    a: Array
    d: Array
    gone: Array
    touched: Array


class Figures:
    """Sums over blocks handed in by `add` and `add_equal`. ``formats``: the two sides' dtypes; ``ulp_format``: None without ULP."""

    def __init__(self, grid: Grid, formats: tuple[str, str], ulp_format: str | None) -> None:
        self.grid, self._formats = grid, formats
        self._each = 2 if any(floats.FORMATS[dtype].kind == "complex" for dtype in formats) else 1
        self._wide = np.dtype(np.longdouble if _EXTENDED & set(formats) else np.float64)
        self._one_format = formats[0] == formats[1] == ulp_format and self._wide == np.float64
        self.stride = min(grid.rows, grid.elements // _SAMPLE) if grid.elements > _LARGE else 1
        self.rows = Rows(*self._zeros(grid.rows, len(Rows._fields) - 1))
        width = grid.columns if grid.has_columns else 0
        self.columns = Columns(*self._zeros(width, len(Columns._fields) - 1))
        self.steps = Steps(formats, ulp_format)
        self.constant: float | None = None  # the one difference of all elements, of integers
        self._varies = False

    def _zeros(self, size: int, sums: int) -> list[Array]:
        """So many sums, and whether an item is touched."""
        return [*(np.zeros(size, self._wide) for _ in range(sums)), np.zeros(size, bool)]

    @property
    def sampled_rows(self) -> int:
        """How many rows the column sums, the regressions and the histogram come from."""
        return -(-self.grid.rows // self.stride)

    @property
    def complex(self) -> bool:
        """Whether elements have two parts."""
        return self._each == 2

    def row_counts(self) -> Array:
        """How many pairs each line by row is fitted to."""
        count = np.full(self.grid.rows, self.grid.columns, np.int64)
        count[-1] = self.grid.elements - self.grid.columns * (self.grid.rows - 1)
        return (count - self.rows.gone.astype(np.int64))[:: self.stride]

    def column_counts(self) -> Array:
        """How many pairs each line by column is fitted to."""
        return self.sampled_rows - self.columns.gone.astype(np.int64)

    def row_sums(self) -> Sums:
        """For lines by row, over the sampled rows."""
        kept = slice(None, None, self.stride)
        rows = self.rows
        return Sums(rows.a[kept], rows.d[kept], rows.aa[kept], rows.ad[kept], rows.dd[kept])

    def column_sums(self) -> Sums:
        """For lines by column, over the sampled rows."""
        columns = self.columns
        return Sums(columns.a, columns.d, columns.aa, columns.ad, columns.dd)

    def add_equal(self, start: int, raw: Array, dtype: str) -> None:
        """A block that is the same on both sides; elements that are not finite count as zeros."""
        if (strange := _strange(raw, dtype)) is not None:
            raw = np.where(strange, raw.dtype.type(0), raw)
            self._leave_out(start, strange)
        row, rows, column, columns = self.grid.place(start, len(raw))
        self._add_same(row, column, raw.reshape(rows, columns), self._values(raw, dtype).reshape(rows, -1))
        self._see_difference(0.0, 0.0)

    def _add_same(self, row: int, column: int, raw: Array, values: Array) -> None:
        """Σa² and Σa of a block, for both sides."""
        rows = len(raw)
        picked = self._picked(row, rows)
        by_row = np.add.reduce(values * values, axis=1)
        at = slice(row, row + rows)
        for part in (self.rows.aa, self.rows.bb, self.rows.ab):
            part[at] += by_row
        self._raise_scale(at, raw, raw, values, values)
        if picked is None:
            return
        self.rows.a[row + picked.start : row + rows : self.stride] += np.add.reduce(values[picked], axis=1)
        if self.grid.has_columns:
            across = slice(column, column + raw.shape[1])
            self._by_column(self.columns.aa, across, values[picked] * values[picked])
            self._by_column(self.columns.a, across, values[picked])

    def add(self, start: int, train: Array, infer: Array, differing: Differing) -> None:
        """A block that is not the same on both sides; pairs that are not finite count as equal zeros."""
        if differing.finite is not None:
            train, infer = (np.where(differing.finite, raw, raw.dtype.type(0)) for raw in (train, infer))
            self._leave_out(start, ~differing.finite)
        row, rows, column, columns = self.grid.place(start, len(train))
        a = self._values(train, self._formats[0])
        if self._one_format and differing.many * _FEW < len(train):
            few = np.flatnonzero(differing.unequal)
            if self._add_few(row, column, train.reshape(rows, columns), infer.reshape(-1)[few], few, a.reshape(rows, columns)):
                return
        self._add_many(row, column, train.reshape(rows, columns), infer.reshape(rows, columns), a.reshape(rows, -1), differing.unequal)

    def _add_many(self, row: int, column: int, train: Array, infer: Array, a: Array, unequal: Array) -> None:
        """A block of which any number of elements differ."""
        rows, columns = train.shape
        at, across = slice(row, row + rows), slice(column, column + columns)
        unequal = unequal.reshape(rows, columns)
        self.rows.touched[at] |= np.logical_or.reduce(unequal, axis=1)
        if self.grid.has_columns:
            self.columns.touched[across] |= np.logical_or.reduce(unequal, axis=0)
        b = self._values(infer.reshape(-1), self._formats[1]).reshape(rows, -1)
        picked = self._picked(row, rows)
        self._sum(a, b, at, across, picked)
        self.steps.add(train, infer, *self._raise_scale(at, train, infer, a, b), picked)

    def _add_few(self, row: int, column: int, train: Array, infer: Array, few: Array, a: Array) -> bool:
        """A block of which few elements differ (``few``: which; ``infer``: they alone), by what they add to equal sides.

        False, and nothing added, where a row's Σb² would lose its digits that way.
        """
        width = train.shape[1]
        starts = np.searchsorted(few, np.arange(0, train.size + 1, width))
        hit = np.flatnonzero(np.diff(starts))
        first = starts[hit]
        of_row = np.repeat(np.arange(len(train)), np.diff(starts))
        of_column = few - of_row * width
        ours, b = a.reshape(-1)[few], self._values(infer, self._formats[1])
        d = b - ours
        ad, dd = np.add.reduceat(ours * d, first), np.add.reduceat(d * d, first)
        before = np.add.reduceat(ours * ours, first)
        if (before + 2 * ad + dd < _CANCELLED * (before + dd)).any():
            return False
        self._add_same(row, column, train, a)
        rows, hit = self.rows, hit + row
        for target, sums in ((rows.bb, 2 * ad + dd), (rows.ab, ad), (rows.ad, ad), (rows.dd, dd)):
            target[hit] += sums
        sizes = np.abs(d)
        rows.d_abs[hit] += np.add.reduceat(sizes, first)
        rows.peak[hit] = np.maximum(rows.peak[hit], np.maximum.reduceat(sizes, first))
        rows.scale[hit] = np.maximum(rows.scale[hit], np.maximum.reduceat(np.abs(b), first))
        rows.touched[hit] = True
        if self.grid.has_columns:
            self.columns.touched[of_column + column] = True
        sampled = (of_row + row) % self.stride == 0
        rows.d[hit] += np.add.reduceat(np.where(sampled, d, 0), first)
        if self.grid.has_columns:
            here = of_column[sampled]
            for by_column, each in ((self.columns.ad, ours * d), (self.columns.dd, d * d), (self.columns.d, d)):
                by_column[column : column + width] += np.bincount(here, each[sampled], width)
        self.steps.add(train.reshape(-1)[few], infer, np.abs(ours), np.abs(b), sampled)
        return True

    def _leave_out(self, start: int, strange: Array) -> None:
        row, rows, column, columns = self.grid.place(start, len(strange))
        block = strange.reshape(rows, columns)
        self.rows.gone[row : row + rows] += np.add.reduce(block, axis=1)
        picked = self._picked(row, rows)
        if picked is not None and self.grid.has_columns:
            self.columns.gone[column : column + columns] += np.add.reduce(block[picked], axis=0)

    # --- sums ---

    def _sum(self, a: Array, b: Array, at: slice, across: slice, picked: slice | None) -> None:
        rows, columns = self.rows, self.columns
        d = b - a
        sizes = self._sizes(d)
        rows.d_abs[at] += np.add.reduce(sizes, axis=1)
        rows.peak[at] = np.maximum(rows.peak[at], np.maximum.reduce(sizes, axis=1))
        if floats.is_integer(self._formats[0]) and not self._varies:
            self._see_difference(float(d.min()), float(d.max()))
        across_rows = picked is not None and self.grid.has_columns
        sums, product = [], np.empty_like(a)
        for left, right, by_column in ((a, a, columns.aa), (a, d, columns.ad), (d, d, columns.dd)):
            product = np.multiply(left, right, out=product)
            sums.append(np.add.reduce(product, axis=1))
            if across_rows:
                self._by_column(by_column, across, product[picked])
        self._sum_rows(a, b, at, *sums)
        if picked is None:
            return
        where = slice(at.start + picked.start, at.stop, self.stride)
        rows.a[where] += np.add.reduce(a[picked], axis=1)
        rows.d[where] += np.add.reduce(d[picked], axis=1)
        if across_rows:
            self._by_column(columns.a, across, a[picked])
            self._by_column(columns.d, across, d[picked])

    def _sum_rows(self, a: Array, b: Array, at: slice, aa: Array, ad: Array, dd: Array) -> None:
        """Σb² and Σab follow from the others, but where b is small beside a, whose digits would cancel."""
        bb, ab = aa + 2 * ad + dd, aa + ad
        cancelled = bb < _CANCELLED * (aa + dd)
        if cancelled.any():
            bb[cancelled] = np.add.reduce(b[cancelled] * b[cancelled], axis=1)
            ab[cancelled] = np.add.reduce(a[cancelled] * b[cancelled], axis=1)
        for target, sums in zip(self.rows, (aa, bb, ab, ad, dd), strict=False):
            target[at] += sums

    def _by_column(self, target: Array, across: slice, block: Array) -> None:
        sums = np.add.reduce(block, axis=0)
        target[across] += sums if self._each == 1 else sums[::2] + sums[1::2]

    def _see_difference(self, low: float, high: float) -> None:
        """Remember whether all differences are one number."""
        if low != high or (self.constant is not None and low != self.constant):
            self._varies, self.constant = True, None
        elif not self._varies:
            self.constant = low

    # --- sizes and steps ---

    def _raise_scale(self, at: slice, train: Array, infer: Array, a: Array, b: Array) -> tuple[Array, Array]:
        """Take the largest magnitude of each row in; returns numbers in the order of both sides' magnitudes."""
        if self._one_format:
            left = ulps.magnitudes(train, self._formats[0])
            right = left if train is infer else ulps.magnitudes(infer, self._formats[0])
            top = np.maximum.reduce(left, axis=1)
            if left is not right:
                top = np.maximum(top, np.maximum.reduce(right, axis=1))
            largest = floats.values(top, self._formats[0])
        else:
            left, right = self._sizes(a), self._sizes(b)
            largest = np.maximum(np.maximum.reduce(left, axis=1), np.maximum.reduce(right, axis=1))
        self.rows.scale[at] = np.maximum(self.rows.scale[at], largest)
        return left, right

    def _sizes(self, values: Array) -> Array:
        return np.abs(values) if self._each == 1 else np.hypot(values[:, ::2], values[:, 1::2])

    def raise_scale(self, start: int, values: Array) -> None:
        """Let other values of the same places count for a row's scale: the addends of a sum."""
        row, rows, _, columns = self.grid.place(start, len(values))
        largest = np.maximum.reduce(np.abs(values.reshape(rows, columns)), axis=1)
        at = slice(row, row + rows)
        self.rows.scale[at] = np.fmax(self.rows.scale[at], np.where(np.isfinite(largest), largest, 0))

    # --- parts of a block ---

    def _picked(self, row: int, rows: int) -> slice | None:
        """Those rows of a block that are in the sample."""
        first = -row % self.stride
        return slice(first, None, self.stride) if first < rows else None

    def _values(self, raw: Array, dtype: str) -> Array:
        part, part_dtype, each = floats.parts(raw, dtype)
        wide = floats.values(part, part_dtype).astype(self._wide)
        return wide if each == self._each else np.column_stack([wide, np.zeros_like(wide)]).reshape(-1)


def _strange(raw: Array, dtype: str) -> Array | None:
    part, part_dtype, each = floats.parts(raw, dtype)
    found = floats.nonfinite(part, part_dtype)
    return found if found is None or each == 1 else np.any(found.reshape(-1, each), axis=1)


def finite(value: Array | float) -> float:
    """A float64 that JSON can hold: what is beyond its range becomes its largest number."""
    return max(-_LARGEST, min(float(value), _LARGEST))
