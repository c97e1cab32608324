"""The sum of two or more inputs of one shape [T, H], in the order in which they are given.

Two addends: exact in float64, one rounding. More: each sum is rounded, or all are added in float32 (one roundoff of the sum of the
absolute addends for each) and rounded once. Source: torch 2.13 adds two tensors so; fused kernels add in float32.
"""

import numpy as np

from dump_analysis.floats import Array
from dump_analysis.replay.bounds import FLOAT32_ROUNDOFF
from dump_analysis.replay.emulate import Emulated, exactly
from dump_analysis.replay.formulas.kinds import Formula, Given, Variant


def _stepwise(given: Given) -> tuple[Emulated, ...]:
    total = exactly(given.inputs[0])
    for addend in given.inputs[1:]:
        total = total.plus(addend).to_format(given.dtype)
    return (total,)


def _once(given: Given) -> tuple[Emulated, ...]:
    reach = (len(given.inputs) - 2) * FLOAT32_ROUNDOFF * sum(np.abs(addend) for addend in given.inputs)
    return (exactly(_nominal(given)[0]).widened(reach).to_format(given.dtype),)


def _nominal(given: Given) -> tuple[Array, ...]:
    total = given.inputs[0]
    for addend in given.inputs[1:]:
        total = total + addend
    return (total,)


FORMULA = Formula(
    "residual_add",
    (
        Variant("stepwise", "torch 2.13 adds two tensors and rounds", _stepwise),
        Variant("rounded_once", "kernels that add all of them in float32", _once, lambda given: len(given.inputs) > 2),
    ),
    _nominal,
)
