"""Seeded sets of independent faults and roundings of the toy, and what an analysis must list of each.

What a switch changes stands in ``toys.switches``; at which boundaries its modules are wrong from equal inputs, and whether dumps prove the
side, is written here by hand.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from toys.switches import LAYERS, SWITCHES, Side, Switches

EVERY_LAYER = "attn_core"  # where rotations are seen, in all layers
# Switch -> boundaries within its layer whose value is wrong although what goes in is equal.
LOGIC = {
    "eps": ["input_norm.out"],
    "norm_gain_twice": ["input_norm.out"],
    "missing_bias": ["q.out", "k.out", "v.out"],
    "kv_swapped": ["k.out", "v.out"],
    "attention_scale": ["attn_core.out"],
    "scale_up": ["attn_core.out"],
    "mask_off_by_one": ["attn_core.out"],
    "attention_scaled": ["attn_core.out"],
    "rope_base": ["attn_core.out"],
    "angles_bf16": ["attn_core.out"],
    "one_channel": ["o_proj.out"],
    "missing_residual": ["resid_attn"],
    "residual_row_lost": ["resid_attn"],
    "gate_up_order": ["act_mul.out"],
    "gelu": ["act_mul.out"],
    "updated_weight": ["down.out"],
    "one_token": ["down.out"],
}
ROUNDING = {
    "norm_cast_order": ["input_norm.out"],
    "rope_stepwise": ["attn_core.out"],
    "probs_rounded": ["attn_core.out"],
    "partial_sums": ["o_proj.out", "down.out"],
    "fused_add_unrounded": ["post_norm.out"],
    "fused_activation": ["act_mul.out"],
}
# There one layer alone would have another module or another output than the rest, which no real kernel does: layers are not told apart.
NOT_OF = {"fused_activation": "train", "fused_add_unrounded": "train"}
ONLY_ON: dict[str, Side] = {
    "residual_row_lost": "train"
}  # on the engine it is lost between two modules: from equal inputs neither is wrong
LAST_SEEN = {"eps": 1}  # there the stream has grown so much that 1e-5 changes no bit of some inputs: no fault that anyone could see
WHOLE_MODEL = ("rope_base", "angles_bf16", "rope_stepwise")
SIDES: tuple[Side, Side] = ("train", "infer")
# Both sides follow from what they were given: the dumps do not say whose weight or constant is right.
SIDE_OPEN = ("kv_swapped", "updated_weight", "rope_base")


class Fault(NamedTuple):
    """One switch on one side. ``side`` of what must be found: ``unknown`` where the dumps do not prove it."""

    name: str
    side: Side
    layer: int

    @property
    def character(self) -> str:
        return "rounding" if self.name in ROUNDING else "logic"

    @property
    def provable(self) -> str:
        """The side that a finding names."""
        return "both" if self.character == "rounding" else "unknown" if self.name in SIDE_OPEN else self.side

    @property
    def boundaries(self) -> list[str]:
        """Where both sides part although they were given the same, in the order of the model."""
        layers = range(LAYERS) if self.name in WHOLE_MODEL else [self.layer]
        return [f"layers.{layer}.{name}" for layer in layers for name in {**LOGIC, **ROUNDING}[self.name]]

    @property
    def also(self) -> list[str]:
        """`boundaries`, and the norm after attention where the sum is lost: the engine's makes both."""
        return [*self.boundaries, *(name.replace("resid_attn", "post_norm.out") for name in self.boundaries if name.endswith("resid_attn"))]

    @property
    def weights(self) -> bool:
        """Whether weights differ: `load` overrides inputs alone."""
        return bool(SWITCHES[self.name].weights)


class FaultSet(NamedTuple):
    """k logic faults and some roundings, on both sides; no two at one place."""

    seed: int
    faults: tuple[Fault, ...]

    def on(self, side: Side) -> Switches:
        """What is switched on one side."""
        return Switches(tuple((fault.name, fault.layer) for fault in self.faults if fault.side == side))

    def of(self, character: str) -> list[Fault]:
        return [fault for fault in self.faults if fault.character == character]

    def without_usual(self, fault: Fault) -> bool:
        """Whether another layer of the three is at fault at the same place of the side: none then says what is usual there."""
        places = {name.split(".", 2)[2] for name in fault.boundaries}
        others = [one for one in self.of("logic") if one != fault and one.side == fault.side]
        return any(name.split(".", 2)[2] in places for one in others for name in one.boundaries)

    @property
    def k(self) -> int:
        """How many logic faults."""
        return len(self.of("logic"))


def drawn(seed: int) -> FaultSet:
    """k = seed mod 5 logic faults and up to three roundings."""
    random = np.random.default_rng(seed)
    taken: set[str] = set()
    faults = [*_pick(random, list(LOGIC), seed % 5, taken), *_pick(random, list(ROUNDING), int(random.integers(0, 4)), taken)]
    return FaultSet(seed, tuple(sorted(faults)))


def _pick(random: np.random.Generator, names: Sequence[str], count: int, taken: set[str]) -> list[Fault]:
    """So many switches, each another, at places that are free."""
    picked: list[Fault] = []
    for name in random.permutation(names):
        sides: list[Side] = [side for side in SIDES if NOT_OF.get(str(name)) != side]
        side = sides[random.integers(len(sides))]
        fault = Fault(str(name), ONLY_ON.get(str(name), side), int(random.integers(LAST_SEEN.get(str(name), LAYERS - 1) + 1)))
        if len(picked) < count and not taken.intersection(_places(fault)):
            picked.append(fault)
            taken.update(_places(fault))
    return picked


def _places(fault: Fault) -> list[str]:
    """Where no second fault of a set may be. With two odd activations of three, no layer would say which is the usual one."""
    return [*fault.also, "activation"] if "act_mul.out" in fault.boundaries[0] and fault.character == "logic" else fault.also
