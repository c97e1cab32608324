"""A side whose ranks are the stages of a pipeline, as one model: each stage counts its own layers from 0 (Megatron-Core)."""

from typing import Dict, List, Optional, Set

from msprobe_files import names

from . import roles
from .places import place_of
from .sources import Parameter, Side


def as_one(side: Side) -> Side:
    """The side with the stages' layers counted on from stage to stage; as it is where its ranks are no stages.

    They are where one rank alone holds the embedding, another alone the last norm, and between these none holds anything outside its
    layers: ranks of any other layout hold parts, or copies, of all of that.
    """
    by_rank: Dict[int, List[Parameter]] = {}
    for one in side.parameters:
        if one.rank is not None:
            by_rank.setdefault(one.rank, []).append(one)
    order = _order(by_rank)
    if order is None:
        return side
    made: List[Parameter] = []
    above = 0
    for rank in order:
        numbers = [place_of(one.name).layer for one in by_rank[rank]]
        made += [one._replace(name=_counted(one.name, above), rank=None) for one in by_rank[rank]]
        above += 1 + max((number for number in numbers if number is not None), default=-1)
    return side._replace(parameters=tuple(made))


def _order(by_rank: Dict[int, List[Parameter]]) -> Optional[List[int]]:
    """The ranks from the first stage to the last; None where they are no stages."""
    held = {rank: _outside(parameters) for rank, parameters in by_rank.items()}
    ends = [[rank for rank, found in held.items() if role in found] for role in ("embedding", "final_norm")]
    if any(len(ranks) != 1 for ranks in ends) or ends[0] == ends[1]:
        return None
    first, last = ends[0][0], ends[1][0]
    middle = sorted(rank for rank in by_rank if rank not in (first, last))
    if any(held[rank] for rank in middle):
        return None
    starts = {min((place_of(one.name).layer or 0 for one in parameters), default=0) for parameters in by_rank.values()}
    return [first, *middle, last] if starts == {0} else None


def _outside(parameters: List[Parameter]) -> Set[str]:
    """The roles, or names, of what stands outside all layers."""
    places = [place_of(one.name) for one in parameters]
    return {roles.role_of(place.module, False) or place.module for place in places if place.layer is None}


def _counted(name: str, above: int) -> str:
    """A name with its layer's number raised."""
    parts = name.split(".")
    at = names.layer_position(tuple(parts))
    if at is not None:
        parts[at] = str(int(parts[at]) + above)
    return ".".join(parts)
