"""Slices of joined fused tensors: what one side recorded of them gives the same columns of the other."""

import numpy as np

from dump_analysis.floats import Array
from dump_analysis.mapping.joining.joined import Joined
from dump_analysis.mapping.recorded.columns import column_keys, cut
from dump_analysis.mapping.recorded.keys import places_of
from dump_analysis.mapping.recorded.nodes import Node, SideNodes, Spot, add

_SOON = 60.0  # time between a fused tensor and a slice of it
_SMALLEST = 8  # columns of a slice


def transferred(train: SideNodes, infer: SideNodes, rows: list[Joined]) -> list[Joined]:
    """Inside a joined pair of fused tensors a slice that one side recorded (q of qkv) gives the slice of the other."""
    have = {node for row in rows for node in (row.train, row.infer)}
    found = []
    for row in rows:
        every = np.arange(row.train.width)
        order = every if row.columns is None else row.columns
        for whole, other, side, mate, to_other in (
            (row.infer, row.train, infer, train, order),
            (row.train, row.infer, train, infer, np.argsort(order)),
        ):
            for node, places in slices_of(side, whole, have):
                made = _cut_slice(mate, other, to_other[places])
                if made is not None and made not in have:
                    have |= {made, node}
                    pair = (made, node) if side is infer else (node, made)
                    found.append(Joined(*pair, None, row.weights, row.likeness, "transfer"))
    return found


def slices_of(side: SideNodes, whole: Node, have: set[Node]) -> list[tuple[Node, Array]]:
    """The nodes of a side that are columns of ``whole`` and not joined yet, with these columns."""
    keys, found = column_keys(whole), []
    for node in side.nodes:
        if node.union or node in have or not _SMALLEST <= node.width < whole.width or abs(node.time - whole.time) > _SOON:
            continue
        own = column_keys(node)
        if own[0] in keys:
            places = places_of(keys, own)
            if (places >= 0).all():
                found.append((node, places))
    return found


def _cut_slice(mate: SideNodes, whole: Node, columns: Array) -> Node | None:
    first = whole.spots[0]
    spot = Spot(whole.time + 0.1 + int(columns[0]) * 1e-6, first.entry, "output", f"{first.path}[slice{columns[0]}]", False)
    return add(mate, cut(whole, columns, "part", spot))
