"""What a boundary's name says of the computation: which module makes it, and from which boundaries a value between modules is made."""

from collections.abc import Collection
from typing import NamedTuple

from dump_analysis.boundaries import layer_of

EMBEDDING, LOGITS = "embedding.out", "logits"
_ROUTED = ".router.logits"
FUSED = ".gate_up.out"  # of one expert: gate and up side by side
# What is added to the residual stream, the last step of it first.
_ATTENTION = ("attn_post_norm.out", "o_proj.out")
_FEED_FORWARD = ("mlp_post_norm.out", "moe.out", "down.out")


class Sources(NamedTuple):
    """A value made between modules: by which operator, from the values of which boundaries."""

    operator: str
    boundaries: tuple[str, ...]


def module_of(boundary: str) -> str:
    """The module's name: that of its weights without what they are."""
    if boundary == LOGITS:
        return "lm_head"
    return boundary.removesuffix(".logits") if boundary.endswith(_ROUTED) else boundary.removesuffix(".out")


def is_between(boundary: str) -> bool:
    """Whether the value is made between modules, whichever entry hands it out."""
    return boundary.rpartition(".")[2] in ("resid_attn", "resid_mlp") or boundary.endswith(".act_mul.out")


def is_norm(boundary: str) -> bool:
    """Whether a norm's place has given the boundary its name."""
    return boundary.endswith("norm.out")


def sources_of(boundary: str, known: Collection[str]) -> Sources | None:
    """From which known boundaries the value is made; None for a value that a module makes, or one whose sources are not known."""
    layer = layer_of(boundary)
    if layer is None:
        return None
    here, place = f"layers.{layer}.", boundary.partition(".")[2].partition(".")[2]
    if place in ("act_mul.out", "shared_expert.act_mul.out"):
        stem = here + place.removesuffix("act_mul.out")
        gated = _all_known("gated_activation", (f"{stem}gate.out", f"{stem}up.out"), known)
        return gated or _all_known("activation", (f"{stem}up.out",), known)
    if place.startswith("experts.") and place.endswith(".act_mul.out"):
        stem = here + place.removesuffix("act_mul.out")
        fused = _all_known("gated_activation", (f"{stem.removesuffix('.')}{FUSED}",), known)
        return fused or _all_known("gated_activation", (f"{stem}gate.out", f"{stem}up.out"), known)
    if place not in ("resid_attn", "resid_mlp"):
        return None
    stream = EMBEDDING if layer == 0 else f"layers.{layer - 1}.resid_mlp"
    attention = next((here + name for name in _ATTENTION if here + name in known), "")
    if place == "resid_attn":
        return _all_known("residual_add", (stream, attention), known)
    added = next((here + name for name in _FEED_FORWARD if here + name in known), "")
    if f"{here}resid_attn" in known:
        return _all_known("residual_add", (f"{here}resid_attn", added), known)
    return _all_known("residual_add", (stream, attention, added), known)  # a parallel block


def _all_known(operator: str, boundaries: tuple[str, ...], known: Collection[str]) -> Sources | None:
    return Sources(operator, boundaries) if all(name in known for name in boundaries) else None
