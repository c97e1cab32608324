"""Low precision in float64: rounding to a number format at named points, and intervals carried through them.

Numbers are float64 and exact; a format is a torch name. The sign of zero is not kept.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from dump_analysis.floats import Array
from dump_analysis.replay.bounds import FLOAT32_ROUNDOFF

# name -> (bits of precision with the hidden one, smallest and largest exponent of a normal number)
_FORMATS = {"bfloat16": (8, -126, 127), "float16": (11, -14, 15), "float32": (24, -126, 127)}
_EXPONENT = np.int64(0x7FF0000000000000)
FORMATS = tuple(_FORMATS)
GRIDS = ("bfloat16", "float16")  # of 16 bits; the coarser first


def to_format(numbers: Array, dtype: str) -> Array:
    """``numbers`` on the grid of ``dtype``: one rounding to nearest, ties to even, with subnormals and infinities of the format.

    Adding and taking away 1.5 * 2^52 units of the last place rounds once, where a way through float32 would round twice.
    Raises KeyError for a format that is not in `FORMATS`.
    """
    precision, _, largest = _FORMATS[dtype]
    if not numbers.size:
        return numbers
    binade = _binade(numbers, dtype)
    if float(binade.max()) < 2.0**largest:
        return _rounded(numbers, binade, precision)
    limit = 2.0 ** (largest + 1)
    numbers = np.clip(numbers, -limit, limit)  # keeps NaN
    found = _rounded(numbers, _binade(numbers, dtype), precision)
    return np.where(np.abs(found) >= limit, np.copysign(np.inf, found), found)


def _rounded(numbers: Array, binade: Array, precision: int) -> Array:
    half_even = binade * (1.5 * 2.0 ** (53 - precision))
    found: Array = (numbers + half_even) - half_even
    return found


def on_grid(numbers: Array, dtype: str) -> bool:
    """Whether a format holds every number as it is."""
    return bool(((to_format(numbers, dtype) == numbers) | np.isnan(numbers)).all())


def grid_of(numbers: Array) -> str:
    """The coarsest format that holds every number as it is: of 16 bits, or float32."""
    return next((grid for grid in GRIDS if on_grid(numbers, grid)), "float32")


def ulp(numbers: Array, dtype: str) -> Array:
    """The distance between neighbours of ``dtype`` in the binade of every number."""
    return _binade(numbers, dtype) * 2.0 ** (1 - _FORMATS[dtype][0])


def _binade(numbers: Array, dtype: str) -> Array:
    """The power of two below each number, not under the smallest normal number."""
    bits = np.asarray(numbers, np.float64).view(np.int64) & _EXPONENT
    return np.maximum(bits.view(np.float64), 2.0 ** _FORMATS[dtype][1])


class Emulated(NamedTuple):
    """What a program computes if its unknown errors are nought, and the interval that they leave: float64 of one shape."""

    value: Array
    low: Array
    high: Array

    def to_format(self, dtype: str) -> "Emulated":
        """A rounding point: all three are rounded, for rounding is monotone."""
        value = to_format(self.value, dtype)
        if self.low is self.value and self.high is self.value:
            return Emulated(value, value, value)
        return Emulated(value, to_format(self.low, dtype), to_format(self.high, dtype))

    def widened(self, by: Array | float) -> "Emulated":
        """An unknown absolute error of at most ``by``."""
        return Emulated(self.value, self.low - by, self.high + by)

    def roundoffs(self, count: float) -> "Emulated":
        """An unknown relative error of ``count`` roundoffs of float32."""
        part = count * FLOAT32_ROUNDOFF
        return Emulated(self.value, self.low - part * np.abs(self.low), self.high + part * np.abs(self.high))

    def plus(self, other: "Emulated | Array | float") -> "Emulated":
        """The exact sum."""
        added = _as_emulated(other)
        return Emulated(self.value + added.value, self.low + added.low, self.high + added.high)

    def times(self, other: "Emulated | Array | float") -> "Emulated":
        """The exact product; its interval is hulled over the four corners."""
        factor = _as_emulated(other)
        corners = [one * two for one in {id(x): x for x in (self.low, self.high)}.values() for two in (factor.low, factor.high)]
        low, high = corners[0], corners[0]
        for corner in corners[1:]:
            low, high = np.minimum(low, corner), np.maximum(high, corner)
        return Emulated(self.value * factor.value, low, high)

    def mapped(self, function: Callable[[Array], Array]) -> "Emulated":
        """Through a function that is monotone over each interval."""
        value, one, two = function(self.value), function(self.low), function(self.high)
        return Emulated(value, np.minimum(one, two), np.maximum(one, two))

    def turned_to(self, *shape: int) -> "Emulated":
        """With another shape."""
        return Emulated(*(part.reshape(shape) for part in self))


def exactly(numbers: Array) -> Emulated:
    """Numbers that are known: an interval of one point."""
    return Emulated(numbers, numbers, numbers)


def _as_emulated(numbers: "Emulated | Array | float") -> Emulated:
    return numbers if isinstance(numbers, Emulated) else exactly(np.asarray(numbers, np.float64))


def bit_equal(recorded: Array, emulated: Emulated) -> Array:
    """Which recorded elements are the emulated ones (by value: zeros of both signs are equal)."""
    found: Array = (recorded == emulated.value) | (np.isnan(recorded) & np.isnan(emulated.value))
    return found


def explained(recorded: Array, emulated: Emulated) -> Array:
    """Which recorded elements lie in their interval or are the emulated ones."""
    inside: Array = (recorded >= emulated.low) & (recorded <= emulated.high)
    return inside | bit_equal(recorded, emulated)
