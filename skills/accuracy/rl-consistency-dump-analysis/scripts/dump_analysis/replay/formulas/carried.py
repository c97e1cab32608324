"""A product of what is only known to lie in intervals."""

import numpy as np

from dump_analysis.floats import Array
from dump_analysis.replay.bounds import rough_sum_of_products, sum_of_products
from dump_analysis.replay.emulate import Emulated, exactly


def carried(x: Emulated, weight: Emulated | Array, *, rough: float = 0.0) -> Emulated:
    """x [T, K] @ weight [N, K] transposed in float32: [T, N]. Bound: `bounds.sum_of_products`, and the intervals of both.

    ``rough``: so many times that of the 4-norms of the rows, which is no smaller and needs no second product; 0: not that.

    What lies in an interval lies about its middle, so that a product lies about that of the middles, at most half the width times |w| away.
    """
    rows = weight if isinstance(weight, Emulated) else exactly(weight)
    sums = x.value @ rows.value.T
    made = Emulated(sums, sums, sums)
    for open_one, other, turned in ((x, rows, False), (rows, x, True)):
        half = (open_one.high - open_one.low) / 2
        columns = np.flatnonzero(half.any(axis=0))
        if len(columns):
            moved, reach = _moved(open_one, half, columns, np.maximum(np.abs(other.low), np.abs(other.high)), other.value)
            made = _about(made, moved.T if turned else moved, reach.T if turned else reach)
    reach = rough * rough_sum_of_products(x.value, rows.value, sums) if rough else sum_of_products(x.value, rows.value, sums)
    return made.widened(reach)


def _moved(one: Emulated, half: Array, columns: Array, largest: Array, other: Array) -> tuple[Array, Array]:
    """How far the middles of ``one`` move the products, and how far they may lie about that."""
    middle = (one.low + half - one.value)[:, columns]
    return middle @ other[:, columns].T, half[:, columns] @ largest[:, columns].T


def _about(made: Emulated, moved: Array, reach: Array) -> Emulated:
    return Emulated(made.value, made.low + moved - reach, made.high + moved + reach)
