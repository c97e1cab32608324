"""Straight lines through pairs of values, from sums alone: infer = scale · train + offset by least squares.

The sums are of the train values a and of the *differences* d = infer − train, so that a scale near 1 keeps its
digits.  Formulas: simple linear regression (e.g. Draper and Smith, Applied Regression Analysis, §1.2–1.4).
"""

from typing import NamedTuple

import numpy as np

from dump_analysis.floats import Array

_CONSTANT = 1e-11  # a spread of the train values below this share of their squares is rounding of the sums


class Sums(NamedTuple):
    """Sums over n pairs; arrays of one shape, an item a line to fit."""

    a: Array
    d: Array
    aa: Array
    ad: Array
    dd: Array
    fourth: Array  # Σa⁴

    def whole(self) -> "Sums":
        """All pairs together."""
        return Sums(*(np.add.reduce(part, keepdims=True) for part in self))


class Lines(NamedTuple):
    """Fitted lines: scale, offset, standard error of the scale, squared difference that stays. NaN where no scale can be told."""

    scale: Array
    offset: Array
    stderr: Array
    rest: Array


def spread(n: Array, sums: Sums) -> Array:
    """Σ (a − mean of a)² of each line."""
    return sums.aa - sums.a * sums.a / n


def fit(n: Array, sums: Sums) -> Lines:
    """Fit each line; ``n`` pairs each. Where the train values are all equal, only an offset is fitted."""
    with np.errstate(divide="ignore", invalid="ignore"):
        around_mean = spread(n, sums)
        tilted = sums.ad - sums.a * sums.d / n
        around = np.maximum(sums.dd - sums.d * sums.d / n, 0)
        known = (around_mean > _CONSTANT * sums.aa) & (n > 2)
        slope = np.where(known, tilted / around_mean, np.nan)
        rest = np.where(known, np.maximum(around - slope * tilted, 0), around)
        offset = np.where(known, (sums.d - slope * sums.a) / n, sums.d / n)
        stderr = np.sqrt(np.where(known, rest / (n - 2) / around_mean, np.nan))
    return Lines(1 + slope, offset, stderr, rest)


def rounding_error(n: Array, sums: Sums, noise: float) -> Array:
    """The standard error of each scale if every pair has noise of ``noise`` times its own a².

    Rounding is such: a line leans on its largest values, which are the least exact, and a few large ones are fitted
    so well that what is left over tells too little (the variance by White 1980, for this noise).
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        error: Array = np.sqrt(noise * sums.fourth) / spread(n, sums)
    return error
