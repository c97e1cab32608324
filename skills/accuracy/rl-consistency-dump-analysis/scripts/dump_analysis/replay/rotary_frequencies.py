"""The frequency of each pair of columns of a rotation, as an interval, from what was recorded of cos and sin, or of x before and after.

Position p turns pair i by p f_i. Each recorded element allows an interval of angles, so of frequencies; positions in their order make it
narrow and say how many whole turns a large angle has made. An empty intersection: no frequency explains the record, as where angles
were rounded. Frequencies lie between 0 and 1, as those of every base do.
"""

from typing import NamedTuple

import numpy as np

from dump_analysis.floats import Array
from dump_analysis.replay.bounds import FLOAT32_ROUNDOFF
from dump_analysis.replay.emulate import ulp
from dump_analysis.replay.formulas.rotary import ANGLE_ROUNDOFFS

_SECOND_ORDER = 1.1  # of bounds that are derived to first order
_ROUNDINGS = 2.0  # of each product before the last rounding: the table's and its own
_WHOLE = 2 * np.pi


class Frequencies(NamedTuple):
    """Intervals of the frequencies, [pairs] each."""

    low: Array
    high: Array

    @property
    def middle(self) -> Array:
        found: Array = (self.low + self.high) / 2
        return found


def of_table(cos: Array, sin: Array, positions: Array, dtype: str) -> Frequencies | None:
    """From cos and sin [tokens, pairs], each rounded once to ``dtype``. None where no frequencies explain them, or none can be told."""
    squares = np.maximum(cos * cos + sin * sin, 1e-300)
    half = [ulp(one, dtype) / 2 + 2 * FLOAT32_ROUNDOFF for one in (cos, sin)]
    reach = (np.abs(sin) * half[0] + np.abs(cos) * half[1]) / squares
    return _narrowed(np.arctan2(sin, cos), _SECOND_ORDER * reach, positions)


def of_angles(angles: Array, positions: Array) -> Frequencies | None:
    """From angles [tokens, pairs] in float32."""
    return _narrowed(angles, np.zeros_like(angles), positions, turns=False)


def of_rotation(before: Array, after: Array, positions: Array, dtype: str) -> Frequencies | None:
    """From x before and after, complex [tokens, heads, pairs], the second after each pair of the first was turned and rounded."""
    unit = float(ulp(np.ones(1), dtype)[0]) / 2
    sizes = np.abs(before)
    moved = _ROUNDINGS * unit * (np.abs(before.real) + np.abs(before.imag)) * np.sqrt(2)
    moved = moved + np.hypot(ulp(after.real, dtype), ulp(after.imag, dtype)) / 2
    with np.errstate(divide="ignore", invalid="ignore"):
        reach = np.where(sizes > 0, _SECOND_ORDER * moved / sizes, np.inf)
    best = np.argmin(reach, axis=1)[:, None, :]  # one head tells as much as is needed
    angle = np.angle(after * np.conj(before))
    nearest = [np.take_along_axis(one, best, 1)[:, 0] for one in (angle, reach)]
    return _narrowed(nearest[0], nearest[1], positions)


def _narrowed(angles: Array, reach: Array, positions: Array, *, turns: bool = True) -> Frequencies | None:
    """``angles`` within ``reach``, [tokens, pairs], but for whole ``turns``."""
    low, high = np.zeros(angles.shape[1]), np.full(angles.shape[1], 1.0 + 2 * FLOAT32_ROUNDOFF)
    for row in np.argsort(positions, kind="stable"):
        place = positions[row]
        told = (place * (high - low) + reach[row] < np.pi) if place > 0 else np.zeros(len(low), bool)
        if not told.any():
            continue
        middle = place * (low + high) / 2
        angle = angles[row] + (_WHOLE * np.round((middle - angles[row]) / _WHOLE) if turns else 0.0)
        by = reach[row] + (ANGLE_ROUNDOFFS + 2) * FLOAT32_ROUNDOFF * np.abs(angle)
        low = np.where(told, np.maximum(low, (angle - by) / place), low)
        high = np.where(told, np.minimum(high, (angle + by) / place), high)
        if (low > high).any():
            return None
    return Frequencies(low, high) if (high < 1.0 + 1e-6).all() and (high - low < 1.0).all() else None


def base_of(found: Frequencies) -> tuple[float, float] | None:
    """The bases that all frequencies allow, f_i = base^(-i / pairs); None where there is none."""
    pairs = len(found.low)
    turns = np.arange(1, pairs)
    if not pairs > 1 or not found.low[0] <= 1.0 <= found.high[0]:
        return None
    with np.errstate(divide="ignore", over="ignore"):
        least = -np.log(found.high[1:]) * pairs / turns
        most = np.where(found.low[1:] > 0, -np.log(np.maximum(found.low[1:], 1e-300)) * pairs / turns, np.inf)
    low, high = float(least.max()), float(most.min())
    return (float(np.exp(low)), float(np.exp(high))) if 0 < low <= high < 60 else None
