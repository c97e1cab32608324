"""Siblings that are exchanged in all layers (k and v, gate and up): mapped by their roles, though their values cross.

Weights exchanged when they were loaded make tensors cross that by content alone would be mapped away along with the fault.
"""

from itertools import combinations
from typing import NamedTuple

from dump_analysis.mapping.joining.acceptance import CERTAIN, HALF
from dump_analysis.mapping.joining.calls import crosses, in_one_order, speaks_for
from dump_analysis.mapping.joining.evidence import Evidence
from dump_analysis.mapping.joining.roles import Roles
from dump_analysis.mapping.joining.slots import SlotJoin, slot_join
from dump_analysis.mapping.recorded.nodes import Node

Pairs = dict[int, tuple[Node, Node]]


class Straightened(NamedTuple):
    """Slot joins with crossed siblings put straight. ``exchanged``: places in ``joins`` of two slots that cross.

    ``named``: nodes of train that names have joined.
    """

    joins: list[SlotJoin]
    exchanged: list[tuple[int, int]]
    named: set[Node]


def straighten(evidence: Evidence, joins: list[SlotJoin]) -> Straightened:
    """Put siblings straight that cross in more than half of their layers, where what follows shows that they are exchanged.

    Crossed values and all alike downstream would only be another order of calls, so those stay.  Where a gross fault has
    left neither likeness nor weights to join them, roles decide alone, and nothing is said of an exchange.
    """
    train, infer = Roles(evidence.train), Roles(evidence.infer)
    made, named = in_one_order(evidence, joins)
    exchanged: list[tuple[int, int]] = []
    for one, other in combinations(range(len(joins)), 2):
        if made[one].best[0].width != made[other].best[0].width:
            continue
        open_question = max(made[one].likeness, made[other].likeness) < CERTAIN and max(made[one].weights, made[other].weights) < HALF
        if not open_question and not _shows(evidence, made, made[one], made[other]):
            continue
        left, right = _by_layer(made[one]), _by_layer(made[other])
        common = [(left[layer], right[layer]) for layer in left if layer in right]
        votes = [
            train.siblings(x[0], y[0]) and infer.siblings(x[1], y[1]) and train.first(x[0], y[0]) != infer.first(x[1], y[1])
            for x, y in common
        ]
        if 2 * sum(votes) > len(common):
            made[one] = slot_join(evidence, [(x[0], y[1]) for x, y in common], [])
            made[other] = slot_join(evidence, [(y[0], x[1]) for x, y in common], [])
            exchanged += [] if open_question else [(one, other)]
    return Straightened(made, exchanged, named)


def crossed(evidence: Evidence, pairs: list[tuple[Node, Node]]) -> list[tuple[tuple[Node, Node], tuple[Node, Node]]]:
    """Joined pairs of one layer that neither likeness nor weights join as they stand, and that either joins crosswise."""

    unlike = [pair for pair in pairs if _layer(pair) is not None and not speaks_for(evidence, *pair)]
    return [
        (one, other)
        for one, other in combinations(unlike, 2)
        if _layer(one) == _layer(other) and one[0].width == other[0].width and crosses(evidence, one, other)
    ]


def _layer(pair: tuple[Node, Node]) -> int | None:
    """Columns cut out on one side have their layer from the other."""
    return pair[0].layer if pair[0].layer is not None else pair[1].layer


def _by_layer(join: SlotJoin) -> Pairs:
    return {pair[0].layer: pair for pair in join.pairs if pair[0].layer is not None}


def _shows(evidence: Evidence, joins: list[SlotJoin], one: SlotJoin, other: SlotJoin) -> bool:
    """Whether both crossed pairs are alike in the best layer, and something after them in that layer is not."""
    if min(one.likeness, other.likeness) < CERTAIN:
        return False
    layer = one.best[0].layer
    start = max(pair[0].time for pair in (one.best, _by_layer(other).get(layer or 0, other.best)))
    later = [pair for join in joins for pair in join.pairs if pair[0].layer == layer and pair[0].time > start]
    return any(evidence.likeness(*pair) < CERTAIN for pair in later)
