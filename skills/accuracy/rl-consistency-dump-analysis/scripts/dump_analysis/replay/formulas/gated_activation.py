"""act(gate) * up: inputs (gate, up) [T, I] each, or one [T, 2 I] whose first half is the gate.

Each function has two variants: the activation is rounded before it is multiplied, or stays in float32 (one roundoff more). Bound:
`bounds.ACTIVATION_ROUNDOFFS`. Sources: transformers, Megatron-Core 0.16, vLLM 0.32 and SGLang 0.5 on CPU round it; fused GPU kernels
keep it in float32.
"""

import numpy as np

from dump_analysis.floats import Array
from dump_analysis.replay.emulate import Emulated
from dump_analysis.replay.formulas.functions import ACTIVATIONS, Activation
from dump_analysis.replay.formulas.kinds import Formula, Given, Variant


def _gate_up(given: Given) -> tuple[Array, Array]:
    gate, up = given.inputs if len(given.inputs) == 2 else np.split(given.inputs[0], 2, axis=1)
    return gate, up


def _variant(activation: Activation, *, rounds: bool, exchanged: bool = False) -> Variant:
    def run(given: Given) -> tuple[Emulated, ...]:
        gate, up = reversed(_gate_up(given)) if exchanged else _gate_up(given)
        activated = activation.emulated(gate)
        product = activated.to_format(given.dtype).times(up) if rounds else activated.times(up).roundoffs(1)
        return (product.to_format(given.dtype),)

    def nominal(given: Given) -> tuple[Array, ...]:
        gate, up = reversed(_gate_up(given)) if exchanged else _gate_up(given)
        return (activation.run(gate) * up,)

    ending = "act_rounded" if rounds else "act_float32"
    source = "transformers, Megatron-Core 0.16, vLLM 0.32 and SGLang 0.5 CPU" if rounds else "fused kernels that round once"
    if exchanged:
        ending, source = f"gate_and_up_exchanged+{ending}", "a loader that stacks up over gate"
    function = f"{activation.name} of up" if exchanged else activation.name
    return Variant(f"{activation.name}+{ending}", source, run, function=function, nominal=nominal)


def _nominal(given: Given) -> tuple[Array, ...]:
    gate, up = _gate_up(given)
    return (ACTIVATIONS[0].run(gate) * up,)


_BOTH = tuple((activation, rounds) for activation in ACTIVATIONS for rounds in (True, False))
FORMULA = Formula(
    "gated_activation",
    tuple(_variant(activation, rounds=rounds) for activation, rounds in _BOTH),
    _nominal,
    faults=tuple(_variant(activation, rounds=rounds, exchanged=True) for activation, rounds in _BOTH),
)
