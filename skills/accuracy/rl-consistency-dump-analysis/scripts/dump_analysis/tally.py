"""What the blocks of one mapping row add up to for the exact gate: unequal elements, zeros of opposite sign, non-finite elements."""

from typing import NamedTuple

import numpy as np

from . import floats
from .floats import Array


class Differing(NamedTuple):
    """One block that is not the same on both sides: where values differ, in how many elements, and which are finite on both
    (None: all)."""

    unequal: Array
    many: int
    finite: Array | None


class Tally:
    """Exact counts of one row's blocks.

    Places are (flat index, side): ``first_apart`` where the non-finite elements of the sides differ.
    """

    def __init__(self, train_dtype: str, infer_dtype: str) -> None:
        self._dtypes = (train_dtype, infer_dtype)
        self._same = train_dtype == infer_dtype
        self.elements = 0
        self.unequal = 0
        self.zero_sign = 0
        self.nan_both = 0
        self.nan = 0
        self.nonfinite = [0, 0]  # train, infer
        self.nonfinite_both = 0
        self.nonfinite_differ = 0
        self.alone = [0, 0]  # non-finite here, finite there
        self.first_nonfinite: tuple[int, str] | None = None
        self.first_apart: tuple[int, str] | None = None

    @property
    def finite(self) -> int:
        """Elements that are finite on both sides."""
        return self.elements - self.nonfinite[0] - self.nonfinite[1] + self.nonfinite_both

    def add(self, start: int, train: Array, infer: Array) -> Differing | None:
        """Count one block, ``start`` the flat index of its first element; None where it is the same on both sides."""
        if self._same and _same_bytes(train, infer):
            self.add_equal(start, train)
            return None
        self.elements += len(train)
        left, right = nonfinite_elements(train, self._dtypes[0]), nonfinite_elements(infer, self._dtypes[1])
        finite = None
        if left is not None or right is not None:
            nothing = np.zeros(len(train), bool)
            left, right = nothing if left is None else left, nothing if right is None else right
            self._count_nonfinite(start, train, infer, left, right)
            finite = ~(left | right)
        unequal = self._unequal(train, infer)
        if finite is not None:
            unequal &= ~self._both_nan(train, infer)
        count = int(np.count_nonzero(unequal))
        self.unequal += count
        return Differing(unequal, count, finite)

    def add_equal(self, start: int, both: Array) -> None:
        """Count a block that is the same on both sides: it may still hold NaN or infinities."""
        self.elements += len(both)
        found = nonfinite_elements(both, self._dtypes[0])
        if found is not None:
            self._count_nonfinite(start, both, both, found, found)

    def _count_nonfinite(self, start: int, train: Array, infer: Array, left: Array, right: Array) -> None:
        """``left``, ``right``: which elements of the two blocks are not finite."""
        at = np.flatnonzero(left | right)
        self.nonfinite[0] += int(left.sum())
        self.nonfinite[1] += int(right.sum())
        self.nonfinite_both += int((left & right).sum())
        self.alone[0] += int((left & ~right).sum())
        self.alone[1] += int((right & ~left).sum())
        a, b = self._numbers(train[at], infer[at])
        nan_left, nan_right = np.isnan(a).any(axis=1), np.isnan(b).any(axis=1)
        apart = (a != b).any(axis=1) & ~(nan_left & nan_right)
        self.nan += int((nan_left | nan_right).sum())
        self.nan_both += int((nan_left & nan_right).sum())
        self.nonfinite_differ += int(apart.sum())
        self.first_nonfinite = self.first_nonfinite or _place(start, int(at[0]), left, right)
        if apart.any():
            self.first_apart = self.first_apart or _place(start, int(at[np.argmax(apart)]), left, right)

    def _unequal(self, train: Array, infer: Array) -> Array:
        """Where values differ; two NaN count as different here. Zeros of opposite sign are counted and are equal."""
        (left, left_dtype, each), (right, right_dtype, others) = (
            floats.parts(raw, dtype) for raw, dtype in zip((train, infer), self._dtypes, strict=True)
        )
        if each != others:  # complex against real
            a, b = self._numbers(train, infer)
            return np.any(a != b, axis=1)
        if self._same:
            unequal, signs = _bits_differ(left, right, left_dtype)
        else:
            a, b = _exact(left, left_dtype), _exact(right, right_dtype)
            unequal = np.not_equal(*_in_one_type(a, b))
            signs = _both_zero(left, left_dtype, right, right_dtype) & (np.signbit(a) != np.signbit(b))
        if signs is not None:
            self.zero_sign += int(np.count_nonzero(signs if each == 1 else signs.reshape(-1, each).any(axis=1)))
        return unequal if each == 1 else np.any(unequal.reshape(-1, each), axis=1)

    def _both_nan(self, train: Array, infer: Array) -> Array:
        a, b = self._numbers(train, infer)
        return np.logical_and(np.isnan(a).any(axis=1), np.isnan(b).any(axis=1))

    def _numbers(self, train: Array, infer: Array) -> tuple[Array, Array]:
        """Values of both sides, shape (elements, 1), or (elements, 2) for complex ones, in a type that holds both exactly."""
        parts = [_values(raw, dtype) for raw, dtype in zip((train, infer), self._dtypes, strict=True)]
        width = max(part.shape[1] for part in parts)
        a, b = (part if part.shape[1] == width else np.column_stack([part, np.zeros_like(part)]) for part in parts)
        return _in_one_type(a, b)


def _in_one_type(a: Array, b: Array) -> tuple[Array, Array]:
    if a.dtype.kind != b.dtype.kind and "f" in (a.dtype.kind, b.dtype.kind):
        return a.astype(np.longdouble), b.astype(np.longdouble)  # 64-bit integers against floats
    return a, b


def _bits_differ(left: Array, right: Array, dtype: str) -> tuple[Array, Array | None]:
    """Where two real blocks of one dtype differ in value, and where both are zeros of opposite sign (None: nowhere)."""
    bits = left ^ right
    unequal = bits != 0
    if floats.is_integer(dtype):
        return unequal, None
    only_sign = bits == bits.dtype.type(1 << (8 * bits.dtype.itemsize - 1))
    if not only_sign.any():
        return unequal, None
    signs = only_sign & _both_zero(left, dtype, right, dtype)
    return unequal ^ signs, signs


def _both_zero(left: Array, left_dtype: str, right: Array, right_dtype: str) -> Array:
    """Where both real elements are zero, of either sign; integers have but one zero."""
    if floats.is_integer(left_dtype) or floats.is_integer(right_dtype):
        return np.zeros(left.shape, bool)
    return floats.zeros(left, left_dtype) & floats.zeros(right, right_dtype)


def _place(start: int, at: int, left: Array, right: Array) -> tuple[int, str]:
    return start + at, "both" if left[at] and right[at] else "train" if left[at] else "infer"


def _same_bytes(train: Array, infer: Array) -> bool:
    if train.nbytes % 8 == 0:  # eight bytes at a time: as fast as memcmp
        return bool(np.logical_and.reduce(train.view(np.uint64) == infer.view(np.uint64)))
    return train.tobytes() == infer.tobytes()


def nonfinite_elements(raw: Array, dtype: str) -> Array | None:
    """Which elements, complex ones included, are NaN or infinite; None: none."""
    part, part_dtype, each = floats.parts(raw, dtype)
    found = floats.nonfinite(part, part_dtype)
    if found is None or each == 1:
        return found
    return np.any(found.reshape(-1, each), axis=1)


def _values(raw: Array, dtype: str) -> Array:
    """float64 for floats (exact for every format), integers as they are; one row an element."""
    part, part_dtype, each = floats.parts(np.ascontiguousarray(raw), dtype)
    return _exact(part, part_dtype).reshape(-1, each)


def _exact(part: Array, dtype: str) -> Array:
    found = floats.values(part, dtype)
    with np.errstate(invalid="ignore"):  # a signalling NaN
        return found.astype(np.float64) if found.dtype.kind == "f" else found
