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
PRECISION = {name: precision for name, (precision, _, _) in _FORMATS.items()}


def to_format(numbers: Array, dtype: str) -> Array:
    """``numbers`` on the grid of ``dtype``: one rounding to nearest, ties to even, with subnormals and infinities of the format.

    Adding and taking away 1.5 * 2^52 units of the last place rounds once, where a way through float32 would round twice. Numbers that
    are float32 stay so. Raises KeyError for a format that is not in `FORMATS`.
    """
    precision, _, largest = _FORMATS[dtype]
    if not numbers.size:
        return numbers
    if numbers.dtype == np.float32:
        return _of_single(numbers, dtype)
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


def _of_single(numbers: Array, dtype: str) -> Array:
    """The same of float32 numbers, on their bits."""
    if dtype == "float32":
        return numbers
    if dtype == "float16":
        with np.errstate(over="ignore"):
            return numbers.astype(np.float16).astype(np.float32)
    bits = numbers.view(np.uint32)
    nearest = bits >> np.uint32(16)
    nearest &= np.uint32(1)
    nearest += np.uint32(0x7FFF)
    nearest += bits
    nearest &= np.uint32(0xFFFF0000)
    found = nearest.view(np.float32)
    return np.where(np.isnan(numbers), numbers, found) if np.isnan(numbers.max()) else found


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
    """What a program computes if its unknown errors are nought, and the interval that they leave: float64 of one shape.

    Numbers that float32 holds may be handed in so; all that is not a rounding is done in float64.
    """

    value: Array
    low: Array
    high: Array

    def to_format(self, dtype: str) -> "Emulated":
        """A rounding point: all three are rounded, for rounding is monotone."""
        return self._each(lambda part: to_format(part, dtype))

    def widened(self, by: Array | float) -> "Emulated":
        """An unknown absolute error of at most ``by``."""
        return Emulated(self.value, np.subtract(self.low, by, dtype=np.float64), np.add(self.high, by, dtype=np.float64))

    def roundoffs(self, count: float) -> "Emulated":
        """An unknown relative error of ``count`` roundoffs of float32."""
        part = np.float64(count * FLOAT32_ROUNDOFF)
        below = part * np.abs(self.low)
        return Emulated(self.value, self.low - below, self.high + (below if self.high is self.low else part * np.abs(self.high)))

    def plus(self, other: "Emulated | Array | float") -> "Emulated":
        """The exact sum."""
        added = _as_emulated(other)
        if added.low is added.value is added.high:
            return self._each(lambda part: np.add(part, added.value, dtype=np.float64))
        return Emulated(*(np.add(one, two, dtype=np.float64) for one, two in zip(self, added, strict=True)))

    def times(self, other: "Emulated | Array | float") -> "Emulated":
        """The exact product; its interval is hulled over the four corners."""
        factor = _as_emulated(other)
        if factor.low is factor.value is factor.high and self.low is self.value is self.high:
            return exactly(np.multiply(self.value, factor.value, dtype=np.float64))
        ends = [{id(end): end for end in (one.low, one.high)}.values() for one in (self, factor)]
        corners = [np.multiply(one, two, dtype=np.float64) for one in ends[0] for two in ends[1]]
        low, high = corners[0], corners[0]
        for corner in corners[1:]:
            low, high = np.minimum(low, corner), np.maximum(high, corner)
        return Emulated(np.multiply(self.value, factor.value, dtype=np.float64), low, high)

    def mapped(self, function: Callable[[Array], Array]) -> "Emulated":
        """Through a function that is monotone over each interval."""
        value, one, two = self._each(lambda part: function(part.astype(np.float64, copy=False)))
        return Emulated(value, one, two) if one is two else Emulated(value, np.minimum(one, two), np.maximum(one, two))

    def turned_to(self, *shape: int) -> "Emulated":
        """With another shape."""
        return self._each(lambda part: part.reshape(shape))

    def _each(self, function: Callable[[Array], Array]) -> "Emulated":
        """Value and both ends through a function, each array once: what is known exactly stays one array."""
        value = function(self.value)
        low = value if self.low is self.value else function(self.low)
        return Emulated(value, low, low if self.high is self.low else function(self.high))


def exactly(numbers: Array) -> Emulated:
    """Numbers that are known: an interval of one point."""
    return Emulated(numbers, numbers, numbers)


def _as_emulated(numbers: "Emulated | Array | float") -> Emulated:
    return numbers if isinstance(numbers, Emulated) else exactly(np.asarray(numbers, np.float64))


def bit_equal(recorded: Array, emulated: Emulated) -> Array:
    """Which recorded elements are the emulated ones (by value: zeros of both signs are equal)."""
    found: Array = recorded == emulated.value
    return found if found.all() else found | (np.isnan(recorded) & np.isnan(emulated.value))


def explained(recorded: Array, emulated: Emulated) -> Array:
    """Which recorded elements lie in their interval or are the emulated ones."""
    inside: Array = (recorded >= emulated.low) & (recorded <= emulated.high)
    return inside | bit_equal(recorded, emulated)
