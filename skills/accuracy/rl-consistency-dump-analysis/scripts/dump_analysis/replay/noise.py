"""Whether what a kernel that nobody has written down leaves of the truth looks like rounding, and nothing else.

z is (recorded - truth) / sigma, sigma the deviation that rounding at any of the usual points makes. A right kernel has mean squares of
about one or less in the whole, in each token and in each column, no gain, and no element far out; a wrong constant, mask or token does
not. Limits: fault-free kernels were seen with a root mean square of .50 to .97 (torch 2.13 and a kernel written for the purpose, 14 to
1100 tokens); a scale that is off by 1e-4 has a gain of ten deviations.
"""

import math
from typing import NamedTuple

import numpy as np

from dump_analysis.floats import Array

_RMS, _GAIN, _LINE, _LARGEST = 1.3, 6.0, 3.0, 8.0
_CHANCE = 4.0  # deviations by which the mean square of a line of few elements may lie above its limit
MOST_OF_A_KERNEL = 4.0  # root mean square of z; a cache of 8 bits leaves more
GROSS = 3.0  # times the usual root mean square, from which a module does not err as its kernel does elsewhere


class Noise(NamedTuple):
    """Root mean square of z, the gain of what is left against the truth in deviations, the largest mean square of a token and of a
    column over its limit, and the largest |z|."""

    rms: float
    gain: float
    token: float
    column: float
    largest: float

    @property
    def is_even(self) -> bool:
        """Whether no gain is seen, and no token or column that errs more than others."""
        return abs(self.gain) < _GAIN and self.token < 1 and self.column < 1

    @property
    def is_rounding(self) -> bool:
        """Whether nothing but rounding is seen."""
        return self.is_even and self.rms < _RMS and self.largest < _LARGEST


class Sums:
    """z by tokens and columns, added up block by block."""

    def __init__(self, tokens: int, columns: int) -> None:
        self._tokens, self._columns = np.zeros((2, tokens)), np.zeros((2, columns))
        self._along = self._against = self._largest = 0.0

    def add(self, z: Array, expected: Array, token: int, column: int) -> None:
        """``expected``: the truth in deviations, of the same shape as z."""
        good = np.isfinite(z)
        z, expected = np.where(good, z, 0.0), np.where(good, expected, 0.0)
        rows, across = slice(token, token + z.shape[0]), slice(column, column + z.shape[1])
        self._tokens[:, rows] += (z * z).sum(1), good.sum(1)
        self._columns[:, across] += (z * z).sum(0), good.sum(0)
        self._along += float((z * expected).sum())
        self._against += float((expected * expected).sum())
        self._largest = max(self._largest, float(np.abs(z).max(initial=0.0)))

    def noise(self) -> Noise:
        squares, count = self._tokens.sum(axis=1)
        gain = self._along / math.sqrt(self._against) if self._against else 0.0
        rms = math.sqrt(squares / count) if count else math.inf
        return Noise(rms, gain, _over(self._tokens), _over(self._columns), self._largest)


def _over(lines: Array) -> float:
    """The largest mean square of a line, over what chance allows one of so many elements."""
    squares, count = lines[:, lines[1] > 0]
    limits = _LINE + _CHANCE * np.sqrt(2.0 / count)
    return float((squares / count / limits).max(initial=0.0))
