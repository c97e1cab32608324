"""c (x W^T): the head of a model that scales its logits; x [T, K], weight [N, K].

Stepwise: the product and its multiple are each rounded to the stored format. Once: the product stays in float32. Bound: that of the
linear, and one roundoff. Source: vLLM 0.32 LogitsProcessor multiplies in place; transformers 5.19 Granite divides, Cohere multiplies.
"""

from collections.abc import Sequence

from dump_analysis.floats import Array
from dump_analysis.replay.emulate import Emulated
from dump_analysis.replay.formulas.kinds import Formula, Given, Variant
from dump_analysis.replay.formulas.products import compared_with, run_with

SCALE = "logits_scale"


def _stepwise(sums: Sequence[Emulated], _bias: Array | float, given: Given) -> Emulated:
    return sums[0].to_format(given.dtype).times(given.config[SCALE]).roundoffs(1).to_format(given.dtype)


def _once(sums: Sequence[Emulated], _bias: Array | float, given: Given) -> Emulated:
    return sums[0].times(given.config[SCALE]).roundoffs(1).to_format(given.dtype)


def _nominal(given: Given) -> tuple[Array, ...]:
    return (given.config[SCALE] * (given.inputs[0] @ given.weights["weight"].T),)


FORMULA = Formula(
    "scaled_linear",
    (
        Variant("scaled_stepwise", "vLLM 0.32 CPU, transformers 5.19", run_with(_stepwise), compared=compared_with(_stepwise)),
        Variant("scaled_once", "kernels that scale logits in float32", run_with(_once), compared=compared_with(_once)),
    ),
    _nominal,
    config=(SCALE,),
    parameters=frozenset({"weight"}),
    by_weight_rows=True,
)
