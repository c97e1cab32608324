"""What the blocks of one mapping row add up to: unequal and non-finite elements, the largest difference."""

import numpy as np

from . import floats
from .floats import Array


class Tally:
    """What one row's blocks add up to. Counts are exact; the largest difference is over finite pairs, in float64.

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
        self.nonfinite_differ = 0
        self.max_abs = 0.0
        self.alone = [0, 0]  # non-finite here, finite there
        self.first_nonfinite: tuple[int, str] | None = None
        self.first_apart: tuple[int, str] | None = None

    def add(self, start: int, train: Array, infer: Array) -> None:
        """Count one block; ``start``: the flat index of its first element."""
        if self._same and _same_bytes(train, infer):
            self.add_equal(start, train)
            return
        self.elements += len(train)
        left, right = _nonfinite_elements(train, self._dtypes[0]), _nonfinite_elements(infer, self._dtypes[1])
        if left is not None or right is not None:
            nothing = np.zeros(len(train), bool)
            self._count_nonfinite(start, train, infer, nothing if left is None else left, nothing if right is None else right)
        self._count_unequal(train, infer)

    def add_equal(self, start: int, both: Array) -> None:
        """Count a block that is the same on both sides: it may still hold NaN or infinities."""
        self.elements += len(both)
        found = _nonfinite_elements(both, self._dtypes[0])
        if found is not None:
            self._count_nonfinite(start, both, both, found, found)

    def _count_nonfinite(self, start: int, train: Array, infer: Array, left: Array, right: Array) -> None:
        """``left``, ``right``: which elements of the two blocks are not finite."""
        at = np.flatnonzero(left | right)
        self.nonfinite[0] += int(left.sum())
        self.nonfinite[1] += int(right.sum())
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

    def _count_unequal(self, train: Array, infer: Array) -> None:
        at = np.flatnonzero(_bits_differ(train, infer)) if self._same else np.arange(len(train))
        a, b = self._numbers(train[at], infer[at])
        both_nan = np.isnan(a) & np.isnan(b)
        apart = (a != b) & ~both_nan
        if not any(floats.is_integer(dtype) for dtype in self._dtypes):
            signs = (a == 0) & (b == 0) & (np.signbit(a) != np.signbit(b))
            self.zero_sign += int(signs.any(axis=1).sum())
        self.unequal += int(apart.any(axis=1).sum())
        self.max_abs = max(self.max_abs, _largest(a, b))

    def _numbers(self, train: Array, infer: Array) -> tuple[Array, Array]:
        """Values of both sides, shape (elements, 1), or (elements, 2) for complex ones, in a type that holds both exactly."""
        parts = [_values(raw, dtype) for raw, dtype in zip((train, infer), self._dtypes, strict=True)]
        width = max(part.shape[1] for part in parts)
        a, b = (part if part.shape[1] == width else np.column_stack([part, np.zeros_like(part)]) for part in parts)
        if a.dtype.kind != b.dtype.kind and "f" in (a.dtype.kind, b.dtype.kind):
            return a.astype(np.longdouble), b.astype(np.longdouble)  # 64-bit integers against floats
        return a, b


def _place(start: int, at: int, left: Array, right: Array) -> tuple[int, str]:
    return start + at, "both" if left[at] and right[at] else "train" if left[at] else "infer"


def _same_bytes(train: Array, infer: Array) -> bool:
    if train.nbytes % 8 == 0:  # eight bytes at a time: as fast as memcmp
        return bool(np.logical_and.reduce(train.view(np.uint64) == infer.view(np.uint64)))
    return train.tobytes() == infer.tobytes()


def _bits_differ(train: Array, infer: Array) -> Array:
    if train.dtype.kind == "c":  # numpy would compare values, and lose the sign of zero
        halves: Array = train.view(np.uint64) != infer.view(np.uint64)
        return np.any(halves.reshape(-1, 2), axis=1)
    return np.not_equal(train, infer)


def _nonfinite_elements(raw: Array, dtype: str) -> Array | None:
    part, part_dtype, each = floats.parts(raw, dtype)
    found = floats.nonfinite(part, part_dtype)
    if found is None or each == 1:
        return found
    return np.any(found.reshape(-1, each), axis=1)


def _values(raw: Array, dtype: str) -> Array:
    """float64 for floats (exact for every format), integers as they are; one row an element."""
    part, part_dtype, each = floats.parts(np.ascontiguousarray(raw), dtype)
    found = floats.values(part, part_dtype)
    with np.errstate(invalid="ignore"):  # a signalling NaN
        exact = found.astype(np.float64) if found.dtype.kind == "f" else found
    return exact.reshape(-1, each)


def _largest(a: Array, b: Array) -> float:
    """The largest |a − b| of finite pairs; integers in extended precision, so that 64-bit values stay exact."""
    if a.dtype.kind != "f":
        a, b = a.astype(np.longdouble), b.astype(np.longdouble)
    finite = (np.isfinite(a) & np.isfinite(b)).all(axis=1)
    if not finite.any():
        return 0.0
    with np.errstate(over="ignore"):
        apart = np.abs(a[finite] - b[finite])
        largest = float((apart[:, 0] if apart.shape[1] == 1 else np.hypot(apart[:, 0], apart[:, 1])).max())
    return min(largest, float(np.finfo(np.float64).max))  # two float64 of opposite sign can be further apart
