"""From which boundaries a boundary's value is made, by what their names mean; a place without a name of its own follows from all before it.

The places stand in the order in which a decoder layer makes them. A place that a model lacks, or that was not compared, is passed through
to what it is made from in turn.
"""

import re
from collections.abc import Mapping

from dump_analysis.boundaries import INPUTS, layer_of

_EXPERT = re.compile(r"experts\.[0-9]+\.out")
STREAM, EXPERTS = "stream", "experts"  # what came into the layer; every expert's output that is known
POSITIONS = INPUTS[1]
# place in a layer -> what it is made from; of places with "|" between them a model has one, the first that is known
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
    "q_rope.out": ("q_norm.out|q.out|q_b.out", POSITIONS),
    "k_rope.out": ("k_norm.out|k.out|kv_b.out", "k_pe.out|", POSITIONS),
    "attn_core.out": ("q_rope.out", "k_rope.out", "v.out|kv_b.out"),
    "o_proj.out": ("attn_core.out",),
    "attn_post_norm.out": ("o_proj.out",),
    "resid_attn": (STREAM, "attn_post_norm.out|o_proj.out"),
    "post_norm.out": ("resid_attn",),
    "gate.out": ("post_norm.out",),
    "up.out": ("post_norm.out",),
    "act_mul.out": ("gate.out|", "up.out"),
    "down.out": ("act_mul.out",),
    "router.logits": ("post_norm.out",),
    "router.weights": ("router.logits",),
    "router.experts": ("router.logits",),
    "shared_expert.out": ("post_norm.out",),
    "moe.out": ("post_norm.out", "router.weights", "router.experts", "shared_expert.out|", EXPERTS),
    "mlp_post_norm.out": ("down.out|moe.out",),
    "resid_mlp": ("resid_attn", "mlp_post_norm.out|down.out|moe.out"),
}
_OF_EXPERT = ("post_norm.out", "router.weights", "router.experts")
_MODEL: dict[str, tuple[str, ...]] = {
    "embedding.out": INPUTS[:1],
    "final_norm.out": (STREAM,),
    "logits": ("final_norm.out",),
    "logprobs": ("logits",),
    "entropy": ("logits",),
}


def made_from(boundary: str, known: Mapping[str, int], layers: int) -> set[str]:
    """The known boundaries that a value is made from. ``known``: those that were compared, with their order; ``layers``: how many."""
    if _stated(boundary) is None:
        return {name for name, order in known.items() if order < known[boundary]}
    return _before(boundary, known, layers)


def _before(boundary: str, known: Mapping[str, int], layers: int) -> set[str]:
    found: set[str] = set()
    for stated in _stated(boundary) or ():
        if stated == EXPERTS:
            stem = f"layers.{layer_of(boundary)}."
            found |= {name for name in known if name.startswith(stem) and _EXPERT.fullmatch(name[len(stem) :])}
            continue
        either = [_named(place, boundary, layers) for place in stated.split("|") if place]
        taken = next((name for name in either if name in known), None)
        if taken is not None:
            found.add(taken)
        elif not stated.endswith("|"):  # what a model may lack is not passed through
            found |= next((before for name in either if name is not None and (before := _before(name, known, layers))), set())
    return found


def _named(place: str, boundary: str, layers: int) -> str | None:
    """A place as the boundary of its layer, or of the model; None for the stream of a model without layers."""
    layer = layer_of(boundary)
    if place == STREAM:
        before = (layers if layer is None else layer) - 1
        return f"layers.{before}.resid_mlp" if before >= 0 else "embedding.out"
    return place if layer is None or place in INPUTS else f"layers.{layer}.{place}"


def _stated(boundary: str) -> tuple[str, ...] | None:
    """What a place is made from; None for a place without a name of its own."""
    if boundary in INPUTS:
        return ()
    layer = layer_of(boundary)
    if layer is None:
        return _MODEL.get(boundary)
    place = boundary[len(f"layers.{layer}.") :]
    return _OF_EXPERT if _EXPERT.fullmatch(place) else _LAYER.get(place)
