"""From which boundaries a boundary's value is made, by what their names mean; a place without a name of its own follows from all before it.

The places stand in the order in which a decoder layer makes them. A place that a model lacks, or that was not compared, is passed through
to what it is made from in turn.
"""

import re
from collections.abc import Collection, Mapping

from dump_analysis.boundaries import INPUTS, layer_of

_EXPERT = re.compile(r"experts\.[0-9]+\.out")
_ROUTING = ("router.weights", "router.experts", "router.logits")
# place in a layer -> the places in that layer that it is made from; STREAM: what came into the layer
STREAM = "stream"
POSITIONS = INPUTS[1]
_LAYER: dict[str, tuple[str, ...]] = {
    "input_norm.out": (STREAM,),
    "q.out": ("input_norm.out",),
    "k.out": ("input_norm.out",),
    "v.out": ("input_norm.out",),
    "q_a.out": ("input_norm.out",),
    "q_a_norm.out": ("q_a.out",),
    "q_b.out": ("q_a_norm.out",),
    "kv_a.out": ("input_norm.out",),
    "kv_a_norm.out": ("kv_a.out",),
    "kv_b.out": ("kv_a_norm.out",),
    "k_pe.out": ("kv_a.out",),
    "q_norm.out": ("q.out",),
    "k_norm.out": ("k.out",),
    "q_rope.out": ("q_norm.out", "q_b.out", POSITIONS),
    "k_rope.out": ("k_norm.out", "kv_b.out", "k_pe.out", POSITIONS),
    "attn_core.out": ("q_rope.out", "k_rope.out", "v.out", "kv_b.out"),
    "o_proj.out": ("attn_core.out",),
    "attn_post_norm.out": ("o_proj.out",),
    "resid_attn": (STREAM, "attn_post_norm.out"),
    "post_norm.out": ("resid_attn",),
    "gate.out": ("post_norm.out",),
    "up.out": ("post_norm.out",),
    "act_mul.out": ("gate.out", "up.out"),
    "down.out": ("act_mul.out",),
    "router.logits": ("post_norm.out",),
    "router.weights": ("router.logits",),
    "router.experts": ("router.logits",),
    "shared_expert.out": ("post_norm.out",),
    "moe.out": ("post_norm.out", *_ROUTING, "shared_expert.out", "experts"),
    "mlp_post_norm.out": ("moe.out", "down.out"),
    "resid_mlp": ("resid_attn", "mlp_post_norm.out"),
}
_MODEL: dict[str, tuple[str, ...]] = {
    "embedding.out": INPUTS[:1],
    "final_norm.out": (STREAM,),
    "logits": ("final_norm.out",),
    "logprobs": ("logits",),
    "entropy": ("logits",),
}


def made_from(boundary: str, known: Mapping[str, int], layers: int) -> set[str]:
    """The known boundaries that a value is made from. ``known``: those that were compared, with their order; ``layers``: how many."""
    before = _before(boundary, known, layers)
    if before is None:
        return {name for name, order in known.items() if order < known[boundary]}
    found: set[str] = set()
    waiting, passed = list(before), {boundary}
    while waiting:
        name = waiting.pop()
        if name in passed:
            continue
        passed.add(name)
        if name in known:
            found.add(name)
        else:
            waiting += _before(name, known, layers) or ()
    return found


def _before(boundary: str, known: Collection[str], layers: int) -> tuple[str, ...] | None:
    """What a place is made from, known or not; None for a place without a name of its own."""
    layer = layer_of(boundary)
    if layer is None:
        stated = _MODEL.get(boundary, () if boundary in INPUTS else None)
        return None if stated is None else tuple(f"layers.{layers - 1}.resid_mlp" if name == STREAM and layers else name for name in stated)
    stem = f"layers.{layer}."
    place = boundary[len(stem) :]
    if _EXPERT.fullmatch(place):
        return tuple(stem + name for name in ("post_norm.out", *_ROUTING))
    stated = _LAYER.get(place)
    if stated is None:
        return None
    found: list[str] = []
    for name in stated:
        if name == STREAM:
            found.append("embedding.out" if layer == 0 else f"layers.{layer - 1}.resid_mlp")
        elif name == POSITIONS:
            found.append(name)
        elif name == "experts":
            found += [other for other in known if other.startswith(stem) and _EXPERT.fullmatch(other[len(stem) :])]
        else:
            found.append(stem + name)
    return tuple(found)
