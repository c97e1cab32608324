"""What to switch on one side where no module input can be overridden in its place."""

from dump_analysis.artefacts.common import SideName, Worded
from dump_analysis.artefacts.round_plan import Ablation
from dump_analysis.boundaries import place_of
from dump_analysis.wording import word

# The last part of a place -> the switch that leaves the function as it is and changes how it is computed.
_ATTENTION = ("attn_core.out", "q_rope.out", "k_rope.out", "kv_b.out", "k_pe.out")
_ROUTED = ("router.logits", "router.weights", "router.experts", "moe.out", "shared_expert.out")


def ablation(boundary: str, side: SideName) -> Ablation:
    """One switch that tells whether a boundary differs by how it is computed."""
    return Ablation(_switch(boundary), side, boundary, word("ablation_expect", boundary=boundary))


def _switch(boundary: str) -> Worded:
    place = place_of(boundary).removeprefix("layers.N.")
    if place in _ATTENTION:
        return word("ablate_attention")
    if place in _ROUTED or place.startswith("experts."):
        return word("ablate_routing")
    if place.endswith("norm.out") or place in ("resid_attn", "resid_mlp"):
        return word("ablate_norm")
    if place in ("logits", "logprobs", "entropy"):
        return word("ablate_head")
    return word("ablate_float32")
