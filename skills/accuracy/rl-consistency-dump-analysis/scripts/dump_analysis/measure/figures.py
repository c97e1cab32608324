"""Sums over the blocks of two tensors that differ, by row, by column and by element: all that the measures are made of.

A tensor is seen as a grid (see `grids`); blocks are whole rows, or a part of one row.  Sums are taken in float64
(in extended precision where float64 is a side's own format, or an integer's 64 bits need it), pairwise inside a
block, so that they are right to 1e-12 for 10**8 elements.
"""

import numpy as np

from dump_analysis import floats, ulps
from dump_analysis.floats import Array
from dump_analysis.grids import Grid
from dump_analysis.tally import Differing, nonfinite_elements

from .gridsums import GridSums
from .steps import Steps

_CANCELLED = 0.05
_FEW = 8  # a block of which less than an eighth differs is summed by what differs
_EXTENDED = frozenset({"float64", "complex128", "int64", "uint64"})


def width_of(formats: tuple[str, str]) -> "np.dtype[np.floating]":
    """What sums of values of two dtypes are taken in."""
    return np.dtype(np.longdouble if _EXTENDED & set(formats) else np.float64)


class Figures:
    """Sums over blocks handed in by `add` and `add_equal`. ``formats``: the two sides' dtypes; ``ulp_format``: None without ULP."""

    def __init__(self, grid: Grid, formats: tuple[str, str], ulp_format: str | None) -> None:
        self._grid, self._formats = grid, formats
        self._each = 2 if any(floats.FORMATS[dtype].kind == "complex" for dtype in formats) else 1
        self._wide = width_of(formats)
        self._one_format = formats[0] == formats[1] == ulp_format and self._wide == np.float64
        self.sums = GridSums(grid, self._each, self._wide)
        self.steps = Steps(formats, ulp_format)
        self._d_abs: list[Array] = []  # of each block
        self.constant: int | None = None  # the one difference of all elements, of integers
        self._varies = False

    def d_abs(self) -> Array:
        """Σ|d| of all elements."""
        return np.add.reduce(np.array(self._d_abs, self._wide))

    def add_equal(self, start: int, raw: Array, dtype: str) -> None:
        """A block that is the same on both sides; elements that are not finite count as zeros."""
        strange = nonfinite_elements(raw, dtype)
        finite = None if strange is None else ~strange
        raw, values = self._values(raw, dtype, finite)
        self.sums.leave_out(start, finite)
        row, rows, column, columns = self._grid.place(start, len(raw))
        self._add_same(row, column, raw.reshape(rows, columns), values.reshape(rows, -1))
        self._see_difference(0, 0)

    def _add_same(self, row: int, column: int, raw: Array, values: Array) -> None:
        """Σa² and Σa of a block, for both sides."""
        rows = len(raw)
        picked = self.sums.picked(row, rows)
        by_row = np.add.reduce(values * values, axis=1)
        at = slice(row, row + rows)
        for part in (self.sums.rows.aa, self.sums.rows.bb, self.sums.rows.ab):
            part[at] += by_row
        self._raise_scale(at, raw, raw, values, values)
        if picked is None:
            return
        self.sums.add_powers(row, rows, slice(column, column + raw.shape[1]), values[picked])

    def add(self, start: int, train: Array, infer: Array, differing: Differing) -> None:
        """A block that is not the same on both sides; pairs that are not finite count as equal zeros."""
        row, rows, column, columns = self._grid.place(start, len(train))
        train, a = self._values(train, self._formats[0], differing.finite)
        if self._one_format and differing.finite is None and differing.many * _FEW < len(train):
            few = np.flatnonzero(differing.unequal)
            if self._add_few(row, column, train.reshape(rows, columns), infer.reshape(-1)[few], few, a.reshape(rows, columns)):
                return
        infer, b = self._values(infer, self._formats[1], differing.finite)
        self.sums.leave_out(start, differing.finite)
        shape = rows, columns
        self._add_many(
            row,
            column,
            train.reshape(shape),
            infer.reshape(shape),
            a.reshape(rows, -1),
            b.reshape(rows, -1),
            differing.unequal.reshape(shape),
        )

    def _add_many(self, row: int, column: int, train: Array, infer: Array, a: Array, b: Array, unequal: Array) -> None:
        """A block of which any number of elements differ."""
        rows, columns = train.shape
        at, across = slice(row, row + rows), slice(column, column + columns)
        self.sums.rows.touched[at] |= np.logical_or.reduce(unequal, axis=1)
        if self._grid.has_columns:
            self.sums.columns.touched[across] |= np.logical_or.reduce(unequal, axis=0)
        picked = self.sums.picked(row, rows)
        self._sum(a, b, at, across, picked)
        self.steps.add(train, infer, *self._raise_scale(at, train, infer, a, b), picked)

    def _add_few(self, row: int, column: int, train: Array, infer: Array, few: Array, a: Array) -> bool:
        """A block of which few elements differ (``few``: which; ``infer``: they alone), by what they add to equal sides.

        False, and nothing added, where a row's Σb² would lose its digits that way.
        """
        starts = np.searchsorted(few, np.arange(0, train.size + 1, train.shape[1]))
        hit = np.flatnonzero(np.diff(starts))
        first = starts[hit]
        ours, (_, b) = a.reshape(-1)[few], self._values(infer, self._formats[1], None)
        d = b - ours
        aa, ad, dd = (np.add.reduceat(part, first) for part in (ours * ours, ours * d, d * d))
        if (aa + 2 * ad + dd < _CANCELLED * (aa + dd)).any():
            return False
        self._add_same(row, column, train, a)
        rows, at, sizes = self.sums.rows, hit + row, np.abs(d)
        for target, sums in ((rows.bb, 2 * ad + dd), (rows.ab, ad), (rows.dd, dd)):
            target[at] += sums
        self._d_abs.append(np.add.reduce(sizes))
        rows.peak[at] = np.maximum(rows.peak[at], np.maximum.reduceat(sizes, first))
        rows.scale[at] = np.maximum(rows.scale[at], np.maximum.reduceat(np.abs(b), first))
        rows.touched[at] = True
        of_row = np.repeat(np.arange(len(train)), np.diff(starts))
        sampled = (of_row + row) % self.sums.stride == 0
        self.sums.add_few(at, np.add.reduceat(d, first), ad, few - of_row * train.shape[1] + column, ours, d, sampled)
        self.steps.add(train.reshape(-1)[few], infer, np.abs(ours), np.abs(b), sampled)
        return True

    # --- sums ---

    def _sum(self, a: Array, b: Array, at: slice, across: slice, picked: slice | None) -> None:
        rows, columns = self.sums.rows, self.sums.columns
        d = b - a
        sizes = self._sizes(d)
        self._d_abs.append(np.add.reduce(sizes, axis=None))
        rows.peak[at] = np.maximum(rows.peak[at], np.maximum.reduce(sizes, axis=1))
        if all(map(floats.is_integer, self._formats)) and not self._varies:
            self._see_difference(int(d.min()), int(d.max()))
        sums, product = [], np.empty_like(a)
        for left, right, by_column in ((a, a, None), (a, d, columns.ad), (d, d, columns.dd)):
            product = np.multiply(left, right, out=product)
            sums.append(np.add.reduce(product, axis=1))
            if by_column is not None and picked is not None and self._grid.has_columns:
                self.sums.by_column(by_column, across, product[picked])
        self._sum_rows(a, b, at, *sums)
        if picked is None:
            return
        self.sums.add_powers(at.start, len(a), across, a[picked])
        sampled = self.sums.of_sample(at.start, len(a))
        self.sums.sample.d[sampled] += np.add.reduce(d[picked], axis=1)
        self.sums.sample.ad[sampled] += sums[1][picked]
        if self._grid.has_columns:
            self.sums.by_column(columns.d, across, d[picked])

    def _sum_rows(self, a: Array, b: Array, at: slice, aa: Array, ad: Array, dd: Array) -> None:
        """Σb² and Σab follow from the others, but where b is small beside a, whose digits would cancel."""
        bb, ab = aa + 2 * ad + dd, aa + ad
        cancelled = bb < _CANCELLED * (aa + dd)
        if cancelled.any():
            bb[cancelled] = np.add.reduce(b[cancelled] * b[cancelled], axis=1)
            ab[cancelled] = np.add.reduce(a[cancelled] * b[cancelled], axis=1)
        for target, sums in zip(self.sums.rows, (aa, bb, ab, dd), strict=False):
            target[at] += sums

    def _see_difference(self, low: int, high: int) -> None:
        """Remember whether all differences are one number."""
        if low != high or (self.constant is not None and low != self.constant):
            self._varies, self.constant = True, None
        elif not self._varies:
            self.constant = low

    # --- sizes and steps ---

    def _raise_scale(self, at: slice, train: Array, infer: Array, a: Array, b: Array) -> tuple[Array, Array]:
        """Take the largest magnitudes in; returns numbers in the order of both sides' magnitudes."""
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
        self.sums.rows.scale[at] = np.maximum(self.sums.rows.scale[at], largest)
        return left, right

    def _sizes(self, values: Array) -> Array:
        return np.abs(values) if self._each == 1 else np.hypot(values[:, ::2], values[:, 1::2])

    def raise_scale(self, start: int, values: Array) -> None:
        """Let other values of the same places count for a row's scale: the addends of a sum."""
        row, rows, _, columns = self._grid.place(start, len(values))
        largest = np.maximum.reduce(np.abs(values.reshape(rows, columns)), axis=1)
        at = slice(row, row + rows)
        self.sums.rows.scale[at] = np.fmax(self.sums.rows.scale[at], np.where(np.isfinite(largest), largest, 0))

    # --- parts of a block ---

    def _values(self, raw: Array, dtype: str, finite: Array | None) -> tuple[Array, Array]:
        """Raw elements and their values; zeros where they are not finite."""
        part, part_dtype, each = floats.parts(raw, dtype)
        with np.errstate(invalid="ignore"):  # a signalling NaN
            wide = floats.values(part, part_dtype).astype(self._wide)
        if finite is not None:
            raw = np.where(finite, raw, raw.dtype.type(0))
            wide = np.where(np.repeat(finite, each), wide, 0)
        return raw, wide if each == self._each else np.column_stack([wide, np.zeros_like(wide)]).reshape(-1)
