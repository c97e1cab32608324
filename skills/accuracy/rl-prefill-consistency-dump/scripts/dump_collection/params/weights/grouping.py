"""Differing weights of one cause taken together: the same kind of difference, in whichever places and layers."""

from typing import Any, Dict, List, Optional, Sequence, Set, Tuple

from dump_collection.params.items import runs
from dump_collection.params.structure import general
from dump_collection.wording import word

from .found import Found
from .told import cause_of

_OF_ONE_PLACE = ("partial", "different", "one_ulp")  # what one place has in several layers; elsewhere it is another cause
_TOLD = (
    "weight_exchanged",
    "weight_zeros",
    "head_tied",
    "misread_group",
    "misread_plain",
    "rotary_unsaid",
    "turns_unsaid",
)  # what says more than the kind

Group = Dict[str, Any]


def grouped(found: Sequence[Found]) -> Tuple[Group, ...]:
    """The weights that differ, those of one cause together, in the order of the first of each.

    One cause: everything that was compared differs in one way, or places that differ in one way in the same layers, or throughout.
    """
    differing = [one for one in found if one.status != "EXACT" and one.note is not None]
    compared = [one for one in found if one.status in ("EXACT", "DIFF")]
    causes = {one.name: _cause(one) for one in differing}
    if len(differing) == len(compared) > 1 and len(set(causes.values())) == 1:
        return (_group(differing, word("weights_all")),)
    layers: Dict[Tuple[Any, ...], Set[Optional[int]]] = {}
    for one in differing:
        layers.setdefault((general(one.name), causes[one.name]), set()).add(one.pair.layer)
    every = {one.pair.layer for one in compared} - {None}
    groups: Dict[Any, List[Found]] = {}
    for one in differing:
        place = general(one.name)
        alone = place if one.kind in _OF_ONE_PLACE and causes[one.name][1] not in _TOLD else ""
        where = layers[place, causes[one.name]]
        # In all layers and outside of them: throughout.
        groups.setdefault((causes[one.name], alone, frozenset(where - {None} if where != every else ())), []).append(one)
    return tuple(_group(some, _which(some)) for some in groups.values())


def _cause(one: Found) -> Tuple[str, ...]:
    assert one.note is not None
    return cause_of(str(one.kind), one.note) + (one.side if one.kind == "stale" else "",)


def _group(found: Sequence[Found], what: Dict[str, Any]) -> Group:
    told = found[0].note
    assert told is not None
    exchanged = told["kind"] == "weight_exchanged"
    how = (
        told
        if len(found) == 1 or (told["kind"] in _TOLD and not exchanged)
        else word("kind_%s" % ("exchanged" if exchanged else found[0].kind))
    )
    router = any(str(one.pair.role).startswith("router") for one in found)
    impact = "impact_router" if router else "impact_unread" if found[0].status == "MISSING_SIDE" else "impact_weights"
    return {"items": [one.name for one in found], "cause": word("weights_so", what=what, how=how), "impact": word(impact)}


def _which(found: Sequence[Found]) -> Dict[str, Any]:
    """Places in the same layers side by side, with these; what stands in no layer by its name."""
    by_place: Dict[str, Set[int]] = {}
    shown: List[Any] = []
    for one in found:
        place = general(one.name).replace("layers.N.", "").replace("experts.N.", "experts.")
        if one.pair.layer is None:
            shown.append(place)
        else:
            by_place.setdefault(place, set()).add(one.pair.layer)
    together: Dict[Tuple[int, ...], List[str]] = {}
    for place, layers in by_place.items():
        together.setdefault(tuple(sorted(layers)), []).append(place)
    parts = [word("weights_of_layers", places=places, layers=runs(layers)) for layers, places in together.items()]
    return word("weights_named", parts=parts + shown)
