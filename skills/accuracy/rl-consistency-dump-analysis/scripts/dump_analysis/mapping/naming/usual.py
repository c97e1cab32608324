"""Which of a tensor's places a row is taken from, where a fault has made two rows one tensor: the one usual in the other layers.

A residual that is not added leaves a stream equal to what attention returned: one tensor for both. In the other layers each has its own.
"""

from collections import Counter, defaultdict
from collections.abc import Sequence

from dump_analysis.boundaries import place_of
from dump_analysis.mapping.naming.producers import Makers, Taken
from dump_analysis.mapping.recorded.nodes import Node

_Seat = tuple[float | None, str, str]  # module inside the repeating block, io, path


def taken_as_usual(makers: Makers, names: Sequence[str], nodes: Sequence[Node]) -> list[Taken]:
    """What each row takes of its node, in the order of the rows."""
    found = [makers.taken(node) for node in nodes]
    held = Counter(id(node) for node in nodes)
    usual: dict[str, Counter[_Seat]] = defaultdict(Counter)
    for name, node, taken in zip(names, nodes, found, strict=True):
        if held[id(node)] == 1:
            usual[place_of(name)][_seat(makers, taken.place)] += 1
    return [
        _moved(makers, node, taken, usual[place_of(name)]) if held[id(node)] > 1 else taken
        for name, node, taken in zip(names, nodes, found, strict=True)
    ]


def _moved(makers: Makers, node: Node, taken: Taken, usual: Counter[_Seat]) -> Taken:
    """The row at its usual place, where the node was recorded there too."""
    if not usual or _seat(makers, taken.place) == (seat := usual.most_common(1)[0][0]):
        return taken
    there = next((spot for spot in node.spots if _seat(makers, (spot.entry, spot.io, spot.path)) == seat), None)
    return taken if there is None else makers.taken_at(node, there) or taken


def _seat(makers: Makers, place: tuple[str, str, str]) -> _Seat:
    entry, io, path = place
    return makers.side.modules.get(entry), io, path
