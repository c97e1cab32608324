"""Modules that take another value than the same module takes in the other layers: each is right by itself, and so is every edge.

A value is told by the mapped boundary that holds it. What a module takes is said relative to its layer, so that layers and sides can be
held against each other; a residual sum that a module makes of two inputs itself counts as that sum.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import product
from typing import NamedTuple

from dump_analysis.artefacts.common import SideName
from dump_analysis.artefacts.semantic_mapping import Row
from dump_analysis.boundaries import layer_of, place_of
from dump_analysis.mapping.recorded.nodes import Node
from dump_analysis.replay import places
from dump_analysis.replay.alterations import SIDES, View

_STREAM = "layers.N.resid_mlp"
Taken = tuple[str, int]  # place of a boundary, and how many layers before the module's own it is


class Elsewhere(NamedTuple):
    """A module's input that is taken from another place: ``held``, the boundary that it is; ``usual``, the one that it should be."""

    side: SideName
    boundary: str
    input: str
    held: str
    usual: str


class _Known(NamedTuple):
    """Rows of boundaries, and the residual sums by the boundaries that they are made of."""

    rows: Mapping[str, Row]
    sums: Mapping[frozenset[str], str]


def taken_elsewhere(rows: Sequence[Row], view: View) -> list[Elsewhere]:
    """One for each value, at the first module that takes it. Only where both sides and most layers agree on what is usual."""
    known = {row.boundary: row for row in rows}
    made_of = {row.boundary: places.sources_of(row.boundary, known) for row in rows if ".resid_" in row.boundary}
    all_known = _Known(known, {frozenset(made.boundaries): name for name, made in made_of.items() if made is not None})
    inner = [row for row in rows if layer_of(row.boundary) is not None]
    taken = {(row.boundary, side): _taken(view, all_known, row, side) for row in inner for side in SIDES}
    usual = {place: _usual([own for (name, _), own in taken.items() if place_of(name) == place]) for place in map(_place, inner)}
    found: dict[tuple[SideName, str], Elsewhere] = {}
    for row in inner:
        for side, other in zip(SIDES, reversed(SIDES), strict=True):
            own, wanted = taken[row.boundary, side], usual[_place(row)]
            if wanted is not None and own and wanted not in own and wanted in taken[row.boundary, other]:
                held = next(iter(own.values()))
                found.setdefault((side, held), Elsewhere(side, row.boundary, _inputs(view, row, side)[0], held, _name(row, wanted)))
    return list(found.values())


def _place(row: Row) -> str:
    return place_of(row.boundary)


def _usual(alike: Sequence[Mapping[Taken, str]]) -> Taken | None:
    """What most modules of a place take, in all layers of both sides."""
    told = [own for own in alike if own]
    votes = Counter(one for own in told for one in own)
    best = max(votes, key=lambda one: votes[one], default=None)
    return best if best is not None and votes[best] > 2 and 2 * votes[best] > len(told) else None


def _taken(view: View, known: _Known, row: Row, side: SideName) -> dict[Taken, str]:
    """The boundaries that a module's inputs hold, by where they are as seen from it; none where an input holds none."""
    nodes = _nodes(view, row, side)
    names = _summed(view, known, nodes, side)
    if len(nodes) == 1:
        names = {*_held(view, nodes[0], side), *names, *_summed(view, known, view.flows[side].nodes.sums.get(id(nodes[0]), ()), side)}
    return {_seen_from(row, name): name for name in sorted(names)}


def _entry(view: View, row: Row, side: SideName) -> str | None:
    return next((entry for entry, made in view.mapped[side].made_by.items() if row in made), None)


def _nodes(view: View, row: Row, side: SideName) -> list[Node]:
    entry = _entry(view, row, side)
    inputs = [one for one in view.found[side] if one.recorded.spot.entry == entry and one.recorded.spot.leaf]
    nodes = [one.node for one in inputs if one.node is not None]
    return nodes if len(nodes) == len(inputs) else []


def _inputs(view: View, row: Row, side: SideName) -> list[str]:
    entry, flow = _entry(view, row, side), view.flows[side]
    return [flow.recorded_as(one.recorded.record.name)[0] for one in view.found[side] if one.recorded.spot.entry == entry]


def _held(view: View, node: Node, side: SideName) -> list[str]:
    return [row.boundary for row in view.mapped[side].holding.get(node, ())]


def _summed(view: View, known: _Known, nodes: Sequence[Node], side: SideName) -> set[str]:
    """The residual sums that two or three values are the addends of."""
    held = [_held(view, node, side) for node in nodes]
    choices = product(*held) if len(held) > 1 and all(held) else ()
    return {known.sums[frozenset(choice)] for choice in choices if frozenset(choice) in known.sums}


def _seen_from(row: Row, name: str) -> Taken:
    """The embedding stands for the stream before the first layer."""
    own = layer_of(row.boundary) or 0
    if name == places.EMBEDDING:
        return _STREAM, own + 1
    layer = layer_of(name)
    return place_of(name), own - layer if layer is not None else 0


def _name(row: Row, taken: Taken) -> str:
    layer = (layer_of(row.boundary) or 0) - taken[1]
    return places.EMBEDDING if layer < 0 else taken[0].replace(".N.", f".{layer}.")
