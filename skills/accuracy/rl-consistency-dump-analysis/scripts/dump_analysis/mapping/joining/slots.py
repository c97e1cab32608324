"""Slots of the repeating block against slots: one decision for all layers, so that one faulty layer cannot turn a join."""

from collections import defaultdict
from typing import NamedTuple

import numpy as np

from dump_analysis.floats import Array
from dump_analysis.mapping.joining.assignment import IMPOSSIBLE, assign
from dump_analysis.mapping.joining.evidence import Evidence
from dump_analysis.mapping.recorded.layers import Layers
from dump_analysis.mapping.recorded.nodes import Node, SideNodes, Slot

_SHIFTS = (0, -1, 1)  # layers by which one side may count differently
_BETTER = 1.02
_PER_LAYER = 0.5  # decades that a distance of one layer costs

Members = dict[int, Node]


class SlotJoin(NamedTuple):
    """Two joined slots. ``pairs``: (train, infer) of each layer; ``best``: the most alike; ``weights``: mean share.

    ``borrowed``: pairs of layers where one slot has no node of its own, with the node that another spot puts there: a
    fault may have made two tensors one.
    """

    pairs: list[tuple[Node, Node]]
    best: tuple[Node, Node]
    weights: float
    likeness: float
    borrowed: list[tuple[Node, Node]]


def join_slots(evidence: Evidence, train: Layers, infer: Layers) -> list[SlotJoin]:
    """The best assignment of slots to slots over shifts of the layer number; the best total wins by 2 %."""
    slots = _by_slot(evidence.train), _by_slot(evidence.infer)
    if not slots[0] or not slots[1]:
        return []
    best: tuple[float, int, list[tuple[int, int]]] | None = None
    for shift in _SHIFTS:
        score = _scores(evidence, list(slots[0].values()), list(slots[1].values()), shift)
        pairs = assign(score)
        total = sum(max(0.0, float(score[pair])) for pair in pairs)
        if best is None or total > _BETTER * best[0]:
            best = total, shift, pairs
    assert best is not None
    names = list(slots[0]), list(slots[1])
    shift = best[1]
    joined = []
    for left, right in best[2]:
        members = [
            (slots[side][names[side][at]], layers.members[names[side][at]]) for side, at, layers in ((0, left, train), (1, right, infer))
        ]
        joined.append(_slot_join(evidence, members[0], members[1], shift))
    return joined


def _by_slot(side: SideNodes) -> dict[Slot, Members]:
    slots: dict[Slot, Members] = defaultdict(dict)
    for node in side.nodes:
        if node.slot is not None and node.layer is not None:
            slots[node.slot].setdefault(node.layer, node)
    return slots


def _scores(evidence: Evidence, train: list[Members], infer: list[Members], shift: int) -> Array:
    score = np.full((len(train), len(infer)), IMPOSSIBLE)
    for row, left in enumerate(train):
        for column, right in enumerate(infer):
            pairs = [(node, right[layer + shift]) for layer, node in left.items() if layer + shift in right]
            if 2 * len(pairs) < max(len(left), len(right)) or any(x.width != y.width for x, y in pairs):
                continue
            if any(evidence.may_be(x, y) for x, y in pairs):
                alike = np.mean([evidence.likeness(*pair) for pair in pairs])
                weights = np.mean([evidence.share(*pair) for pair in pairs])
                apart = np.mean([abs(evidence.when[x] - evidence.when[y]) for x, y in pairs]) * len(left)
                score[row, column] = alike + weights - _PER_LAYER * apart
    return score


def _slot_join(evidence: Evidence, train: tuple[Members, Members], infer: tuple[Members, Members], shift: int) -> SlotJoin:
    """The join of two slots, each given by its own nodes and by the nodes that any spot puts there."""
    layers = sorted({*train[0], *(layer - shift for layer in infer[0])})
    own = [layer for layer in layers if layer in train[0] and layer + shift in infer[0]]
    found = [
        (train[0].get(layer) or train[1].get(layer), infer[0].get(layer + shift) or infer[1].get(layer + shift))
        for layer in layers
        if layer not in own
    ]
    borrowed = [(x, y) for x, y in found if x is not None and y is not None and x.width == y.width]
    pairs = [(train[0][layer], infer[0][layer + shift]) for layer in own]
    pairs = [(x, y) for x, y in pairs if x.width == y.width]
    return slot_join(evidence, pairs, borrowed)


def slot_join(evidence: Evidence, pairs: list[tuple[Node, Node]], borrowed: list[tuple[Node, Node]]) -> SlotJoin:
    """What is known of pairs that are joined together."""
    best = max(pairs, key=lambda pair: evidence.likeness(*pair))
    weights = float(np.mean([evidence.share(*pair) for pair in pairs]))
    return SlotJoin(pairs, best, weights, evidence.likeness(*best), borrowed)
