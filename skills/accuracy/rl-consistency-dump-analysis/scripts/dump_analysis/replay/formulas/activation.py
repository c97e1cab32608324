"""An activation alone: x [T, I] to the same shape, float32 inside, rounded once. Each function is one variant.

Bound: `bounds.ACTIVATION_ROUNDOFFS`. Source: torch 2.13 computes 16-bit activations in float32; transformers keeps it a module of its
own in gated blocks, too.
"""

from dump_analysis.floats import Array
from dump_analysis.replay.emulate import Emulated
from dump_analysis.replay.formulas.functions import ACTIVATIONS, Activation
from dump_analysis.replay.formulas.kinds import Formula, Given, Variant


def _variant(activation: Activation) -> Variant:
    def run(given: Given) -> tuple[Emulated, ...]:
        return (activation.emulated(given.inputs[0]).to_format(given.dtype),)

    def nominal(given: Given) -> tuple[Array, ...]:
        return (activation.run(given.inputs[0]),)

    return Variant(activation.name, "torch 2.13, one rounding", run, function=activation.name, nominal=nominal)


_VARIANTS = tuple(_variant(activation) for activation in ACTIVATIONS)
FORMULA = Formula("activation", _VARIANTS, lambda given: (ACTIVATIONS[0].run(given.inputs[0]),))
