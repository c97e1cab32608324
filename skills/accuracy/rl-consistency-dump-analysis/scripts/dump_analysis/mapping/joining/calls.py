"""Siblings that one layer alone calls in another order: joined with the same module of the other layers.

What such a layer records is also what one with exchanged weights records: the first module called holds what the other side's
second one holds. Only that side's own names tell the two apart, so they are asked last, and only whether they are equal.
"""

from collections.abc import Mapping, Sequence
from itertools import combinations

from dump_analysis.mapping.joining.acceptance import CERTAIN
from dump_analysis.mapping.joining.evidence import Evidence
from dump_analysis.mapping.joining.slots import SlotJoin, slot_join
from dump_analysis.mapping.recorded.nodes import Node

Pair = tuple[Node, Node]


def in_one_order(evidence: Evidence, joins: Sequence[SlotJoin]) -> tuple[list[SlotJoin], set[Node]]:
    """The slot joins, with the calls of single layers in the order of the others; the nodes of train that names have joined.

    Only where values or weights join crosswise, and more than half of at least two other layers bear the names crosswise.
    """
    made, named = list(joins), set()
    for one, other in combinations(range(len(made)), 2):
        if made[one].best[0].width != made[other].best[0].width:
            continue
        left, right = _by_layer(made[one]), _by_layer(made[other])
        for side in (0, 1):
            for layer in _out_of_order(left, right, side):
                x, y = left[layer], right[layer]
                if not crosses(evidence, x, y):
                    continue
                x[side].slot, y[side].slot = y[side].slot, x[side].slot
                left[layer], right[layer] = ((y[0], x[1]), (x[0], y[1])) if side == 0 else ((x[0], y[1]), (y[0], x[1]))
                named |= {x[0], y[0]}
        if named & {x[0] for x in left.values()}:
            made[one] = slot_join(evidence, list(left.values()), made[one].borrowed)
            made[other] = slot_join(evidence, list(right.values()), made[other].borrowed)
    return made, named


def crosses(evidence: Evidence, one: Pair, other: Pair) -> bool:
    """Whether neither likeness nor weights join two pairs of one width as they stand, and either joins both crosswise."""
    crosswise = speaks_for(evidence, one[0], other[1]) and speaks_for(evidence, other[0], one[1])
    return crosswise and not speaks_for(evidence, *one) and not speaks_for(evidence, *other)


def speaks_for(evidence: Evidence, train: Node, infer: Node) -> bool:
    """Whether likeness or equal rows of weights join two nodes of one width."""
    return evidence.likeness(train, infer) >= CERTAIN or evidence.made_alike(train, infer)


def _by_layer(join: SlotJoin) -> dict[int, Pair]:
    return {pair[0].layer: pair for pair in join.pairs if pair[0].layer is not None}


def _out_of_order(left: Mapping[int, Pair], right: Mapping[int, Pair], side: int) -> list[int]:
    """The layers in which two modules of one side bear each other's names, by the names of most other layers."""
    names = {at: (_maker(left[at][side]), _maker(right[at][side])) for at in left if at in right}
    found = []
    for layer, (x, y) in names.items():
        others = [both for at, both in names.items() if at != layer]
        crossed = [_same(x, b) and _same(y, a) and not _same(x, a) and not _same(y, b) for a, b in others]
        if len(others) > 1 and 2 * sum(crossed) > len(others):
            found.append(layer)
    return found


def _maker(node: Node) -> str | None:
    return next((spot.entry for spot in node.spots if spot.leaf and spot.io == "output"), None)


def _same(one: str | None, other: str | None) -> bool:
    """Whether two entries bear one name but for one part of it, as modules of two layers do."""
    if one is None or other is None:
        return False
    parts = one.split("."), other.split(".")
    return len(parts[0]) == len(parts[1]) and sum(a != b for a, b in zip(*parts, strict=True)) <= 1
