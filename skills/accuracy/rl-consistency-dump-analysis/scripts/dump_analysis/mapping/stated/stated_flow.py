"""The data flow of one side from what it states: which leaf makes a node of which, and which node is the sum of two others.

A sum is proposed by structure and tested on statistics: it is no module's only result, one addend is a result that no module
reads, and means, extremes and norms do not contradict it.  All layers speak together.
"""

from collections import Counter, defaultdict
from typing import NamedTuple

import numpy as np

from dump_analysis.mapping.recorded.nodes import Node, Slot
from dump_analysis.mapping.stated.stated import Stated
from dump_analysis.statistics import Bounds, bounds_of, sums_that_may_be

_AMONG = 40  # nodes before a sum
_MOST_LAYERS = 0.7  # of those that have the node
_MATRIX = 2  # axes of a parameter that mixes columns

_Key = tuple[Slot, int] | None
_Pair = tuple[Node, Node]


class Flow(NamedTuple):
    """``takes``, ``gives``: leaf entry -> its float arguments and results, in their order. ``maker``: node -> the leaf whose result
    it first is; ``readers``: node -> the leaves that take it and do not only hand it on."""

    takes: dict[str, list[Node]]
    gives: dict[str, list[Node]]
    maker: dict[Node, str]
    readers: dict[Node, list[str]]


def flow_of(side: Stated) -> Flow:
    """The leaves of a side with the nodes that they take and give."""
    takes: dict[str, list[Node]] = defaultdict(list)
    gives: dict[str, list[Node]] = defaultdict(list)
    maker: dict[Node, str] = {}
    readers: dict[Node, list[str]] = defaultdict(list)
    for recorded in side.nodes.records.activations:
        spot = recorded.spot
        node = side.nodes.at.get((spot.entry, spot.io, spot.path))
        if node is None or not spot.leaf:
            continue
        (gives if spot.io == "output" else takes)[spot.entry].append(node)
    owners = {parameter.entry for parameter in side.nodes.parameters}
    for entry in [entry for entry in gives if entry not in owners and set(gives[entry]) <= set(takes.get(entry, ()))]:
        del gives[entry], takes[entry]  # hands on what it got
    # An input that equals a result of its own entry was taken after the call.
    taken = {entry: [node for node in nodes if node not in gives.get(entry, ())] for entry, nodes in takes.items()}
    for entry in sorted(gives, key=side.nodes.records.times.end.__getitem__):
        for node in gives[entry]:
            maker.setdefault(node, entry)
    for entry, nodes in taken.items():
        for node in nodes:
            readers[node].append(entry)
    return Flow(taken, dict(gives), maker, dict(readers))


def works_on(flow: Flow, made: Node) -> Node | None:
    """The one node that a leaf makes another of: what it takes alone, or the sum that an add and norm gives beside its norm."""
    maker = flow.maker.get(made)
    taken, given = (nodes.get(maker or "", []) for nodes in (flow.takes, flow.gives))
    if len(taken) == 1 and taken[0] is not made:
        return taken[0]
    return given[1] if len(given) == 2 and given[0] is made and len(taken) != 1 else None


def matrices(side: Stated) -> set[str]:
    """Entries with a parameter that mixes columns: no norms."""
    return {parameter.entry for parameter in side.nodes.parameters if len(parameter.tensor.shape) >= _MATRIX}


def find_sums(side: Stated, flow: Flow) -> None:
    """Fill the ``sums`` of a side whose nodes have their slots."""
    found: dict[Node, list[_Pair]] = {}
    by_width: dict[int, list[Node]] = defaultdict(list)
    start = side.nodes.records.times.start
    # At one moment what a leaf returns comes first, then inner containers before outer ones.
    for node in sorted(side.nodes.nodes, key=lambda node: (node.time, _is_handed_on(node), -start[node.spots[0].entry])):
        by_width[node.width].append(node)
    for nodes in by_width.values():
        bounds = bounds_of([side.facts[node] for node in nodes])
        for at, node in enumerate(nodes):
            pairs = _pairs(side, flow, nodes, bounds, at)
            if pairs:
                found[node] = pairs
    for node, pair in _voted(found, Counter(node.slot for node in side.nodes.nodes)).items():
        side.nodes.sums[id(node)] = pair
        node.sum_time = max(addend.time for addend in pair) + 0.2


def _is_handed_on(node: Node) -> bool:
    """Whether a node exists because a container returns it: what its last leaf returns at the same time comes before."""
    return not any(spot.leaf and spot.time == node.time for spot in node.spots)


def _late(pair: _Pair) -> tuple[float, float]:
    return pair[1].time, pair[0].time


def _pairs(side: Stated, flow: Flow, nodes: list[Node], bounds: Bounds, at: int) -> list[_Pair]:
    """The pairs that a node may be the sum of: (what stands there for longer, the result of a module that nothing else reads)."""
    total, first = nodes[at], max(0, at - _AMONG)
    made = flow.maker.get(total)
    if first == at or (made is not None and (len(flow.gives[made]) == 1 or flow.gives[made][0] is total)):
        return []
    before = range(first, at)
    taken = [node for node in flow.takes.get(made or "", []) if node.width == total.width]
    results = [n for n in before if nodes[n] in flow.maker or nodes[n].spots[0].io == "output"]
    open_ends = [n for n in results if all(reader == made for reader in flow.readers.get(nodes[n], ()))]
    fits = sums_that_may_be(
        Bounds(bounds.numbers[first:at], bounds.half[first:at]), Bounds(*(part[at : at + 1] for part in bounds)), side.facts[total].elements
    )
    adds = len(taken) > 1  # an add and norm says itself what it adds, be there statistics or not
    unknown = adds and bool(np.isnan(bounds.numbers[at]).all())
    found = [(nodes[x], nodes[y]) for y in open_ends for x in before if x != y and (unknown or fits[x - first, y - first])]
    return [pair for pair in found if set(pair) <= set(taken)] if adds else found


def _key(total: Node, addend: Node) -> _Key:
    """The slot of an addend and by how many layers it stands away; None for what stands in no layer, as the embedding does."""
    return None if addend.slot is None else (addend.slot, (addend.layer or 0) - (total.layer or 0))


def _voted(found: dict[Node, list[_Pair]], members: Counter[Slot | None]) -> dict[Node, _Pair]:
    """For each node the pair whose slots most layers have: first the module's result, then what stands there for longer.

    ``members``: how many nodes a slot has.
    """
    layers: dict[Slot | None, list[Node]] = defaultdict(list)
    for node in found:
        layers[node.slot].append(node)
    best: dict[Node, _Pair] = {}
    for slot, nodes in layers.items():
        if slot is None:
            best.update({node: max(found[node], key=_late) for node in nodes})
            continue
        added = Counter(key for node in nodes for key in {_key(node, y) for _, y in found[node]})
        kept = Counter(key for node in nodes for key in {_key(node, x) for x, _ in found[node]})
        for node in nodes:
            pair = max(found[node], key=lambda pair: (added[_key(node, pair[1])], kept[_key(node, pair[0])], *_late(pair)))
            if added[_key(node, pair[1])] >= _MOST_LAYERS * members[slot]:
                best[node] = pair
    return best
