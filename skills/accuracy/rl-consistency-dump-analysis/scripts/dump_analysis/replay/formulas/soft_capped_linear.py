"""cap * tanh((x W^T) / cap): the head of a model that bounds its logits; x [T, K], weight [N, K].

Stepwise: the product, its quotient by the cap, the tanh and the last product are each rounded to the stored format. Once: all but the last
rounding in float32. Bound: that of the linear, and `bounds.ACTIVATION_ROUNDOFFS` for the tanh. Source: vLLM 0.32 CPU LogitsProcessor
works in place on the stored format; transformers' Gemma2 likewise.
"""

from collections.abc import Sequence

import numpy as np

from dump_analysis.floats import Array
from dump_analysis.replay.bounds import ACTIVATION_ROUNDOFFS
from dump_analysis.replay.emulate import Emulated
from dump_analysis.replay.formulas.kinds import Formula, Given, Variant
from dump_analysis.replay.formulas.products import compared_with, run_with


def _stepwise(sums: Sequence[Emulated], _bias: Array | float, given: Given) -> Emulated:
    cap = given.config["soft_cap"]
    quotient = sums[0].to_format(given.dtype).mapped(lambda value: value / cap).roundoffs(1).to_format(given.dtype)
    bounded = quotient.mapped(np.tanh).roundoffs(ACTIVATION_ROUNDOFFS).to_format(given.dtype)
    return bounded.times(cap).to_format(given.dtype)


def _once(sums: Sequence[Emulated], _bias: Array | float, given: Given) -> Emulated:
    cap = given.config["soft_cap"]
    bounded = sums[0].mapped(lambda value: cap * np.tanh(value / cap)).roundoffs(ACTIVATION_ROUNDOFFS + 2)
    return bounded.to_format(given.dtype)


def _nominal(given: Given) -> tuple[Array, ...]:
    cap = given.config["soft_cap"]
    return (cap * np.tanh(given.inputs[0] @ given.weights["weight"].T / cap),)


FORMULA = Formula(
    "soft_capped_linear",
    (
        Variant("cap_stepwise", "vLLM 0.32 CPU, transformers' Gemma2", run_with(_stepwise), compared=compared_with(_stepwise)),
        Variant("cap_once", "kernels that bound logits in float32", run_with(_once), compared=compared_with(_once)),
    ),
    _nominal,
    config=("soft_cap",),
    parameters=frozenset({"weight"}),
    by_weight_rows=True,
)
