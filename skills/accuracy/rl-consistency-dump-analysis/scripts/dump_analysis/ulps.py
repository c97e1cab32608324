"""Units in the last place: how many numbers of a format lie between two values, and how far apart they stand.

Definition of the spacing: ``ulp(v) = 2**(floor(log2 |v|) - (p - 1))`` with p significant bits, subnormals at
the smallest exponent (Goldberg 1991; for bfloat16 ``ulp(1.0) = 2**-7``).  The distance of two values is the
distance of their places in the format's numbers sorted by value; both zeros are one place.
"""

from collections.abc import Iterable

import numpy as np

from . import floats
from .floats import Array

# dtype -> significant bits (the implicit one counted), exponent of the smallest normal number
PRECISION = {
    "float64": (53, -1022), "float32": (24, -126), "float16": (11, -14), "bfloat16": (8, -126),
    "float8_e4m3fn": (4, -6), "float8_e5m2": (3, -14), "float8_e4m3fnuz": (4, -7), "float8_e5m2fnuz": (3, -15),
    "float8_e8m0fnu": (1, -127),
}  # fmt: skip
_UNSIGNED = "float8_e8m0fnu"
BINS = ("1", "2", "3-4", "5-8", "9-64", ">64")
_FIRST_OF_BIN = (1, 2, 3, 5, 9, 65)


def coarser(dtypes: Iterable[str | None]) -> str | None:
    """The dtype with the fewest significant bits; None where one is no real float: it has no ULP."""
    known = list(dtypes)
    if not known or any(dtype not in PRECISION for dtype in known):
        return None
    return min((dtype for dtype in known if dtype is not None), key=lambda dtype: PRECISION[dtype])


def magnitudes(raw: Array, dtype: str) -> Array:
    """Raw elements of a real float without their sign: unsigned integers in the order of the absolute values."""
    if dtype == _UNSIGNED:
        return raw
    return raw & raw.dtype.type((1 << (8 * raw.dtype.itemsize - 1)) - 1)


def distance(train: Array, infer: Array, dtype: str) -> tuple[Array, Array | None]:
    """How many places apart raw elements of one real float format are: unsigned, exact, never wraps; no NaN.

    And where one is above and the other below zero (None: nowhere).
    """
    apart = np.maximum(train, infer) - np.minimum(train, infer)  # right where the signs are the same
    if dtype == _UNSIGNED:
        return apart, None
    top = train.dtype.type(1 << (8 * train.dtype.itemsize - 1))
    crossing = (train ^ infer) >= top
    if not crossing.any():
        return apart, None
    left, right = magnitudes(train[crossing], dtype), magnitudes(infer[crossing], dtype)
    apart[crossing] = left + right
    crossing[crossing] = (left != 0) & (right != 0)
    return apart, crossing


def spacing(values: Array, dtype: str) -> Array:
    """The ULP of each value (float64) in a format; of zero that of the smallest numbers."""
    significant, smallest = PRECISION[dtype]
    _, exponent = np.frexp(np.abs(values))  # |v| = m · 2**e with m in [0.5, 1)
    place = np.where(values == 0, smallest, np.maximum(exponent - 1, smallest))
    return np.ldexp(np.float64(1.0), place - (significant - 1))


class Histogram:
    """Distances counted by size, apart for |train| < |infer| and the reverse, and elements of opposite sign."""

    def __init__(self) -> None:
        self._at_least = np.zeros((2, len(BINS)), np.int64)  # smaller, larger
        self.opposite = 0

    def add(self, apart: Array, smaller: Array, larger: Array, opposite: Array | None) -> None:
        """Count one block: distances and, as masks, where |train| is smaller or larger and where the signs are opposite."""
        if opposite is not None:
            self.opposite += int(np.count_nonzero(opposite))
            smaller, larger = smaller & ~opposite, larger & ~opposite
        for way, mask in enumerate((smaller, larger)):
            kept = apart * mask
            for at, first in enumerate(_FIRST_OF_BIN):
                found = int(np.count_nonzero(kept >= first))
                if not found:
                    break
                self._at_least[way, at] += found

    def counts(self) -> dict[str, list[int]]:
        """Bin -> [smaller, larger]."""
        each = self._at_least - np.concatenate([self._at_least[:, 1:], np.zeros((2, 1), np.int64)], axis=1)
        return {name: [int(each[0, at]), int(each[1, at])] for at, name in enumerate(BINS)}


def to_format(raw: Array, dtype: str, target: str) -> Array | None:
    """Raw elements rounded to another float format; None where nothing is rounded to it here."""
    if dtype == target:
        return raw
    values = floats.values(raw, dtype)
    if target == _UNSIGNED:
        return None
    return _nearest_codes(values, target) if target.startswith("float8") else floats.rounded(values, target)


def _nearest_codes(values: Array, dtype: str) -> Array:
    """The float8 numbers nearest to finite values, ties to even codes; what is larger than all becomes the largest."""
    numbers = floats.values(np.arange(128, dtype=np.uint8), dtype).astype(np.float64)
    numbers = numbers[np.isfinite(numbers)]  # in the order of their codes
    sizes, middle = np.abs(values.astype(np.float64)), (numbers[1:] + numbers[:-1]) / 2
    codes = np.searchsorted(middle, sizes)
    tie = np.append(middle, np.inf)[codes] == sizes
    codes = (codes + (tie & (codes % 2 == 1))).astype(np.uint8)
    return np.where((values < 0) & (codes > 0), codes | np.uint8(0x80), codes)
