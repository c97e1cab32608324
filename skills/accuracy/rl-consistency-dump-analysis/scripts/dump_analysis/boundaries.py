"""Names of boundaries: what a name says of layer, kind and place. Names never decide what is compared with what."""

import re

INPUTS = ("input_ids", "positions")
_LAYER = re.compile(r"^layers\.([0-9]{1,9})\.(.+)$")
# Where the boundary that a weight makes is not called after it.
_MADE_BY = {"lm_head": "logits", "router": "router.logits"}


def layer_of(boundary: str) -> int | None:
    """The layer number in a boundary's name."""
    found = _LAYER.match(boundary)
    return int(found.group(1)) if found else None


def place_of(boundary: str) -> str:
    """The name with N for the layer number: one place in all layers."""
    found = _LAYER.match(boundary)
    return f"layers.N.{found.group(2)}" if found else boundary


def is_weight(boundary: str) -> bool:
    """Whether a boundary is a weight's, which are counted on their own."""
    return boundary.endswith((".weight", ".bias"))


def made_by(weight: str) -> str:
    """The boundary whose value a weight makes: ``layers.1.q.weight`` makes ``layers.1.q.out``."""
    stem = weight.removesuffix(".weight").removesuffix(".bias")
    prefix, dot, last = stem.rpartition(".")
    return f"{prefix}{dot}{_MADE_BY[last]}" if last in _MADE_BY else f"{stem}.out"
