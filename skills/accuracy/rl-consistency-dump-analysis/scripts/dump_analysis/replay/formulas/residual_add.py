"""The sum of two or more inputs of one shape [T, H], in the order in which they are given.

Two addends: exact in float64, one rounding. More: each sum is rounded, or all are added in float32 and rounded once; the interval is
then the hull of all orders, for a bound would open at every tie, and sums of few 16-bit numbers are often ties. Source: torch 2.13 adds
two tensors so; fused kernels add in float32.
"""

from itertools import permutations

import numpy as np

from dump_analysis.floats import Array
from dump_analysis.replay.emulate import Emulated, exactly, to_format
from dump_analysis.replay.formulas.kinds import Formula, Given, Variant


def _stepwise(given: Given) -> tuple[Emulated, ...]:
    total = exactly(given.inputs[0])
    for addend in given.inputs[1:]:
        total = total.plus(addend).to_format(given.dtype)
    return (total,)


def _once(given: Given) -> tuple[Emulated, ...]:
    sums = [_float32_sum(order) for order in permutations(given.inputs)]
    return (Emulated(sums[0], np.minimum.reduce(sums), np.maximum.reduce(sums)).to_format(given.dtype),)


def _float32_sum(addends: tuple[Array, ...]) -> Array:
    total = addends[0]
    for addend in addends[1:]:
        total = to_format(total + addend, "float32")
    return total


def _nominal(given: Given) -> tuple[Array, ...]:
    total = given.inputs[0]
    for addend in given.inputs[1:]:
        total = total + addend
    return (total,)


FORMULA = Formula(
    "residual_add",
    (
        Variant("stepwise", "torch 2.13 adds two tensors and rounds", _stepwise),
        Variant("rounded_once", "kernels that add three or four in float32", _once, lambda given: len(given.inputs) in (3, 4)),
    ),
    _nominal,
)
