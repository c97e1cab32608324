"""Rotation of q and k, then attention, where the rotated q and k were not recorded: one head, queries q [R, D] to [R, V].

inputs: those of `attention` with q and k before they are turned, then cos and sin of the queries [R, pairs] and of the keys [T, pairs].
Variants are named turn and kernel; the intervals of what is turned are carried into the scores.
"""

from collections.abc import Sequence

from dump_analysis.floats import Array
from dump_analysis.replay.emulate import Emulated, exactly
from dump_analysis.replay.formulas import attention, rotary
from dump_analysis.replay.formulas.attention import CAUSAL, CONFIG, Mask, applies_from, handed, sink_of
from dump_analysis.replay.formulas.attention_kernels import KERNELS, Named, head_of, truth
from dump_analysis.replay.formulas.kinds import Formula, Given, Variant
from dump_analysis.replay.formulas.rotary import TURNS, Table, Turn


def _table(parts: Sequence[Array]) -> Table:
    return Table(exactly(parts[0]), exactly(parts[1]))


def _variant(turn: Turn, kernel: Named, mask: Mask) -> Variant:
    def run(given: Given) -> tuple[Emulated, ...]:
        (k, v, cos, sin), seen = handed(given, mask)
        turned = turn.run(given.inputs[0], _table(given.inputs[5:7]), given.dtype), turn.run(k, _table((cos, sin)), given.dtype)
        head = head_of(*turned, v, seen, given.config, sink_of(given))
        return (kernel.kernel(head, given.dtype),)

    def nominal(given: Given) -> tuple[Array, ...]:
        return (_truth(given, mask, interleaved=turn.interleaved),)

    name = f"{mask.name}+{turn.name}+{kernel.name}" if mask.name else f"{turn.name}+{kernel.name}"
    from_keys = applies_from(kernel.keys, mask)
    return Variant(name, kernel.source, run, lambda given: from_keys(given) and _fits(turn, given), turn.function, nominal)


def _fits(turn: Turn, given: Given) -> bool:
    """A table says itself whether it is rounded."""
    return rotary.is_stored(given.inputs[5:7], given.dtype) == turn.rounded_table


def _truth(given: Given, mask: Mask, *, interleaved: bool) -> Array:
    (k, v, cos, sin), seen = handed(given, mask)
    q = rotary.truth(given.inputs[0], _table(given.inputs[5:7]), interleaved=interleaved)
    k = rotary.truth(k, _table((cos, sin)), interleaved=interleaved)
    return truth(q, k, v, seen, given.config, sink_of(given))


def _nominal(given: Given) -> tuple[Array, ...]:
    return (_truth(given, CAUSAL, interleaved=False),)


FORMULA = Formula(
    "rotary_attention",
    tuple(_variant(turn, kernel, CAUSAL) for turn in TURNS for kernel in KERNELS),
    _nominal,
    config=CONFIG,
    parameters=frozenset({"sinks"}),
    faults=tuple(_variant(turn, kernel, mask) for mask in attention.MISTAKES for turn in TURNS for kernel in KERNELS),
)
