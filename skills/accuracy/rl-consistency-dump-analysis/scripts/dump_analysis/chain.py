"""How a difference grows: the residual stream after each layer, or what was measured last in it."""

import itertools
from collections.abc import Sequence
from typing import NamedTuple

from .artefacts.boundary_results import BoundaryResult
from .artefacts.common import Worded
from .boundaries import layer_of, place_of
from .wording import word

_STREAM = ("layers.N.resid_mlp", "layers.N.resid_attn")


class Link(NamedTuple):
    """The difference after one layer: everything that was there by then, its own and what came from before."""

    layer: int
    boundary: str
    rel_l2: float
    max_abs: float


def growth(results: Sequence[BoundaryResult]) -> list[Link]:
    """One link a layer that was measured, in the order of layers."""
    by_layer: dict[int, list[BoundaryResult]] = {}
    for result in results:
        layer = layer_of(result.boundary)
        if layer is not None and result.rel_l2 is not None and result.max_abs_diff is not None:
            by_layer.setdefault(layer, []).append(result)
    return [_link(layer, by_layer[layer]) for layer in sorted(by_layer)]


def _link(layer: int, measured: Sequence[BoundaryResult]) -> Link:
    stream = {place_of(result.boundary): result for result in measured}
    result = next((stream[place] for place in _STREAM if place in stream), measured[-1])
    return Link(layer, result.boundary, result.rel_l2 or 0.0, result.max_abs_diff or 0.0)


def worded(links: Sequence[Link]) -> Worded | None:
    """The growth in a sentence, all layers in its values; None where fewer than two layers were measured."""
    if len(links) < 2:
        return None
    steps = [(later.rel_l2 - earlier.rel_l2, later) for earlier, later in itertools.pairwise(links)]
    most = max(steps, key=lambda step: step[0])[1]
    return word(
        "growth",
        layer=most.layer,
        step=most.rel_l2,
        first=links[0].boundary,
        at_first=links[0].rel_l2,
        last=links[-1].boundary,
        at_last=links[-1].rel_l2,
        layers=[link.layer for link in links],
        rel_l2=[link.rel_l2 for link in links],
        max_abs=[link.max_abs for link in links],
    )
