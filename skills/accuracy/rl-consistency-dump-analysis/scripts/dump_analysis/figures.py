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
from .tally import Differing
from .ulps import Histogram

_SAMPLE = 1 << 20  # elements; column sums and the histogram of larger tensors come from a sample of rows
_CANCELLED = 0.05
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
        self.grid, self._formats, self.ulp_format = grid, formats, ulp_format
        self._each = 2 if any(floats.FORMATS[dtype].kind == "complex" for dtype in formats) else 1
        self._wide = np.dtype(np.longdouble if _EXTENDED & set(formats) else np.float64)
        self._one_format = formats[0] == formats[1] == ulp_format
        self.stride = max(1, min(grid.rows, grid.elements // _SAMPLE))
        self.rows = Rows(*self._zeros(grid.rows, len(Rows._fields) - 1))
        width = grid.columns if grid.has_columns else 0
        self.columns = Columns(*self._zeros(width, len(Columns._fields) - 1))
        self.smaller = self.larger = 0
        self.ulp_max = 0
        self.histogram = Histogram()
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
        row, rows, column, columns = self._place(start, len(raw))
        values = self._values(raw, dtype).reshape(rows, -1)
        picked = self._picked(row, rows)
        squares = values * values
        by_row = np.add.reduce(squares, axis=1)
        at = slice(row, row + rows)
        for part in (self.rows.aa, self.rows.bb, self.rows.ab):
            part[at] += by_row
        raw = raw.reshape(rows, columns)
        self._raise_scale(at, raw, raw, values, values)
        self._see_difference(0.0, 0.0)
        if picked is None:
            return
        self.rows.a[row + picked.start : row + rows : self.stride] += np.add.reduce(values[picked], axis=1)
        if self.grid.has_columns:
            across = slice(column, column + columns)
            self._by_column(self.columns.aa, across, squares[picked])
            self._by_column(self.columns.a, across, values[picked])

    def add(self, start: int, train: Array, infer: Array, differing: Differing) -> None:
        """A block that is not the same on both sides; pairs that are not finite count as equal zeros."""
        if differing.finite is not None:
            train, infer = (np.where(differing.finite, raw, raw.dtype.type(0)) for raw in (train, infer))
            self._leave_out(start, ~differing.finite)
        row, rows, column, columns = self._place(start, len(train))
        at, across = slice(row, row + rows), slice(column, column + columns)
        unequal = differing.unequal.reshape(rows, columns)
        self.rows.touched[at] |= np.logical_or.reduce(unequal, axis=1)
        if self.grid.has_columns:
            self.columns.touched[across] |= np.logical_or.reduce(unequal, axis=0)
        a = self._values(train, self._formats[0]).reshape(rows, -1)
        b = self._values(infer, self._formats[1]).reshape(rows, -1)
        train, infer = train.reshape(rows, columns), infer.reshape(rows, columns)
        picked = self._picked(row, rows)
        self._sum(a, b, at, across, picked)
        smaller, larger = self._directions(at, train, infer, a, b)
        if self.ulp_format is not None:
            self._count_ulps(train, infer, smaller, larger, picked)

    def _leave_out(self, start: int, strange: Array) -> None:
        row, rows, column, columns = self._place(start, len(strange))
        block = strange.reshape(rows, columns)
        self.rows.gone[row : row + rows] += np.add.reduce(block, axis=1)
        picked = self._picked(row, rows)
        if picked is not None and self.grid.has_columns:
            self.columns.gone[column : column + columns] += np.add.reduce(block[picked], axis=0)

    # --- sums ---

    def _sum(self, a: Array, b: Array, at: slice, across: slice, picked: slice | None) -> None:
        rows, columns = self.rows, self.columns
        d = b - a
        sizes = np.abs(d) if self._each == 1 else np.hypot(d[:, ::2], d[:, 1::2])
        rows.d_abs[at] += np.add.reduce(sizes, axis=1)
        rows.peak[at] = np.maximum(rows.peak[at], np.maximum.reduce(sizes, axis=1))
        if floats.is_integer(self._formats[0]) and not self._varies:
            self._see_difference(float(d.min()), float(d.max()))
        across_rows = picked is not None and self.grid.has_columns
        sums = []
        for left, right, by_column in ((a, a, columns.aa), (a, d, columns.ad), (d, d, columns.dd)):
            product = left * right
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

    def _directions(self, at: slice, train: Array, infer: Array, a: Array, b: Array) -> tuple[Array, Array]:
        left, right = self._raise_scale(at, train, infer, a, b)
        smaller, larger = left < right, left > right
        self.smaller += int(np.count_nonzero(smaller))
        self.larger += int(np.count_nonzero(larger))
        return smaller, larger

    def _raise_scale(self, at: slice, train: Array, infer: Array, a: Array, b: Array) -> tuple[Array, Array]:
        """Take the largest magnitude of each row in; returns numbers in the order of both sides' magnitudes."""
        if self._one_format and self.ulp_format is not None:
            left = ulps.magnitudes(train, self.ulp_format)
            right = left if train is infer else ulps.magnitudes(infer, self.ulp_format)
            top = np.maximum.reduce(left, axis=1)
            if left is not right:
                top = np.maximum(top, np.maximum.reduce(right, axis=1))
            largest = floats.values(top, self.ulp_format)
        else:
            left, right = self._sizes(a), self._sizes(b)
            largest = np.maximum(np.maximum.reduce(left, axis=1), np.maximum.reduce(right, axis=1))
        self.rows.scale[at] = np.maximum(self.rows.scale[at], largest)
        return left, right

    def _sizes(self, values: Array) -> Array:
        return np.abs(values) if self._each == 1 else np.hypot(values[:, ::2], values[:, 1::2])

    def raise_scale(self, start: int, values: Array) -> None:
        """Let other values of the same places count for a row's scale: the addends of a sum."""
        row, rows, _, columns = self._place(start, len(values))
        largest = np.maximum.reduce(np.abs(values.reshape(rows, columns)), axis=1)
        at = slice(row, row + rows)
        self.rows.scale[at] = np.fmax(self.rows.scale[at], np.where(np.isfinite(largest), largest, 0))

    def _count_ulps(self, train: Array, infer: Array, smaller: Array, larger: Array, picked: slice | None) -> None:
        if self.ulp_format is None:
            return
        left, right = (ulps.to_format(raw, dtype, self.ulp_format) for raw, dtype in zip((train, infer), self._formats, strict=True))
        if left is None or right is None:
            self.ulp_format = None
            return
        apart = ulps.distance(left, right, self.ulp_format)
        self.ulp_max = max(self.ulp_max, int(np.maximum.reduce(apart, axis=None)))
        if picked is not None:
            crossing = ulps.opposite_signs(left[picked], right[picked], self.ulp_format)
            self.histogram.add(apart[picked], smaller[picked], larger[picked], crossing)

    # --- places ---

    def _place(self, start: int, count: int) -> tuple[int, int, int, int]:
        """First row, rows, first column, columns of a block."""
        row, column = divmod(start, self.grid.columns)
        if column or count < self.grid.columns:
            return row, 1, column, count
        return row, count // self.grid.columns, 0, self.grid.columns

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
