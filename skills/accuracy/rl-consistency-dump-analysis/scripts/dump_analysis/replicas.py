"""Tensors that the ranks of one side should hold alike and do not: which boundary each is."""

from collections.abc import Iterator
from typing import Literal, NamedTuple

from msprobe_files import names

from .artefacts.assembly_plan import Disagreement
from .artefacts.semantic_mapping import SemanticMapping
from .boundaries import INPUTS


class DifferingReplica(NamedTuple):
    """One that differs. ``certain``: a weight, ids or positions, which no rounding can part."""

    boundary: str
    side: Literal["train", "infer"]
    found: Disagreement
    certain: bool


def differing(mapping: SemanticMapping | None) -> list[DifferingReplica]:
    """Of each side every weight and input that differs, and without those the earliest activation: later ones may only follow from it.

    The order is that of the mapping's rows; a tensor in no row is called by its own name and stands last.
    """
    return [one for side in _SIDES for one in _of_side(mapping, side)] if mapping is not None and mapping.ranks is not None else []


_SIDES: tuple[Literal["train", "infer"], ...] = ("train", "infer")


def _of_side(mapping: SemanticMapping, side: Literal["train", "infer"]) -> Iterator[DifferingReplica]:
    plan = getattr(mapping.ranks, side)
    if plan is None or not plan.disagree:
        return
    order = {row.boundary: at for at, row in enumerate([*mapping.boundaries, *mapping.weights])}
    found = [DifferingReplica(_boundary(mapping, side, one), side, one, False) for one in plan.disagree]
    found.sort(key=lambda one: order.get(one.boundary, len(order)))
    certain = [one._replace(certain=True) for one in found if one.boundary in INPUTS or _is_parameter(one.found.name)]
    yield from certain or found[:1]


def _boundary(mapping: SemanticMapping, side: str, one: Disagreement) -> str:
    for row in [*mapping.boundaries, *mapping.weights]:
        sources = getattr(row, side).sources
        if any(source.name == one.name and source.rank in (None, *one.ranks) for source in sources):
            return row.boundary
    return one.name


def _is_parameter(name: str) -> bool:
    parsed = names.parse_tensor(name)
    return parsed is not None and parsed.category == "parameters"
