"""Differing weights of one cause taken together: the same kind of difference, in whichever places and layers."""

import re
from collections.abc import Sequence
from typing import NamedTuple

from msprobe_files.weight_order import runs_of

from dump_analysis.artefacts.common import Worded
from dump_analysis.artefacts.replay_results import WeightReplay
from dump_analysis.boundaries import layer_of, place_of
from dump_analysis.wording import word

_KINDS = {
    "small_update": "kind_small_update", "one_ulp": "kind_one_ulp", "swapped": "kind_swapped", "scaled": "kind_scaled",
    "quantised": "kind_quantised", "rounded": "kind_rounded", "partial": "kind_partial", "different": "kind_different",
    "stale": "kind_stale",
}  # fmt: skip
_COMPARED = ("EXACT", "NOT_EXACT", "DTYPE_DIFF")
_EXPERT = re.compile(r"\bexperts\.[0-9]+\.")
_TOLD = {"weight_exchanged": "kind_exchanged", "weight_grouped": "kind_grouped", "weight_zeros": "kind_zeros"}  # what says more
_OF_ONE_PLACE = ("partial", "different", "one_ulp")  # what one place has in several layers; elsewhere it is another cause
_CAUSE = (
    "side",
    "other",
    "format",
    "levels",
    "axis",
    "order",
    "block",
    "each",
    "plain",
    "fused",
    "groups",
)  # values that tell causes apart


class WeightGroup(NamedTuple):
    """Weights that differ in one way. ``kind`` is that of each; ``what`` says which they are; ``text``: that and how they differ."""

    kind: str
    names: tuple[str, ...]
    layers: tuple[int, ...]
    what: Worded
    text: Worded


def grouped(weights: Sequence[WeightReplay]) -> list[WeightGroup]:
    """The weights that differ, those of one cause together, in the order of the first of each.

    One cause: everything that was compared differs in one way, or places that differ in one way in the same layers.
    """
    differing = [one for one in weights if one.kind in _KINDS]
    compared = [one.name for one in weights if one.status in _COMPARED]
    if len(differing) == len(compared) > 1 and len({_cause(one) for one in differing}) == 1:
        return [_group(differing, compared)]
    layers: dict[tuple[str, tuple[str, ...]], set[int | None]] = {}
    for one in differing:
        layers.setdefault((place_of(one.name), _cause(one)), set()).add(layer_of(one.name))
    groups: dict[object, list[WeightReplay]] = {}
    for one in differing:
        place = place_of(one.name)
        alone = place if one.kind in _OF_ONE_PLACE and _cause(one)[1] not in _TOLD else ""
        groups.setdefault((_cause(one), alone, frozenset(layers[place, _cause(one)])), []).append(one)
    return [_group(found, compared) for found in groups.values()]


def _cause(one: WeightReplay) -> tuple[str, ...]:
    told = one.evidence[0] if one.evidence else None
    values = [str(told.values[key]) for key in _CAUSE if key in told.values] if told is not None else []
    return (one.kind or "", told.kind if told is not None else "", *values)


def _group(found: Sequence[WeightReplay], compared: Sequence[str]) -> WeightGroup:
    kind, names = found[0].kind or "", tuple(one.name for one in found)
    what = word("weights_all") if len(found) == len(compared) > 1 else word("weights_named", parts=_parts(names))
    layers = tuple(sorted({layer for layer in map(layer_of, names) if layer is not None}))
    how = found[0].evidence[0] if len(found) == 1 and found[0].evidence else word("weights_differ_so", what=what, how=_how(found[0]))
    return WeightGroup(kind, names, layers, what, how)


def _how(one: WeightReplay) -> Worded:
    told = one.evidence[0] if one.evidence else None
    if told is not None and told.kind in _TOLD:
        return word(_TOLD[told.kind], **{key: told.values[key] for key in ("side",) if key in told.values})
    return word(_KINDS[one.kind or ""])


def _parts(names: Sequence[str]) -> list[Worded]:
    """Places that differ in the same layers side by side, with these; what stands in no layer by its name."""
    by_place: dict[str, set[int]] = {}
    outside: list[str] = []
    for name in names:
        layer = layer_of(name)
        matrix = f"{name.removesuffix('.bias')}.weight"
        place = _EXPERT.sub("experts.", place_of(matrix if matrix in names else name)).removesuffix(".weight")
        if layer is None:
            outside += [place] if place not in outside else []
        else:
            by_place.setdefault(place.removeprefix("layers.N."), set()).add(layer)
    together: dict[tuple[int, ...], list[str]] = {}
    for place, layers in by_place.items():
        together.setdefault(tuple(sorted(layers)), []).append(place)
    found = [
        word("weights_of_layer" if len(layers) == 1 else "weights_of_layers", places=places, layers=_shown(layers))
        for layers, places in together.items()
    ]
    return [*found, *(word("weights_outside", place=place) for place in outside)]


def _shown(layers: Sequence[int]) -> list[str]:
    return [str(start) if stop - start == 1 else f"{start}–{stop - 1}" for start, stop in runs_of(layers)]
