"""Nodes outside the repeating block, joined one by one."""

import numpy as np

from dump_analysis.mapping.joining.assignment import IMPOSSIBLE, assign
from dump_analysis.mapping.joining.evidence import Evidence
from dump_analysis.mapping.recorded.nodes import Node

_WHOLE_WAY = 6.0  # decades that the whole length of the execution costs
_SURE_WEIGHTS, _SURE_LIKENESS = 0.9, 3.0  # from which a pair is an anchor where nothing is joined yet


def join_rest(evidence: Evidence, joined: list[tuple[Node, Node]]) -> list[tuple[Node, Node]]:
    """The best assignment of the nodes that are not joined: likeness, weights, and distance along the order between joined pairs."""
    taken = {node for pair in joined for node in pair}
    train = [node for node in evidence.train.nodes if node not in taken]
    infer = [node for node in evidence.infer.nodes if node not in taken]
    if not train or not infer:
        return []
    when = evidence.when
    anchors = sorted((when[x], when[y]) for x, y in joined) if joined else _chain(evidence, train, infer)
    xs = [0.0, *(x for x, _ in anchors), 1.0]
    ys = [0.0, *np.maximum.accumulate([y for _, y in anchors]), 1.0]
    expected = np.interp([when[node] for node in train], xs, ys)
    score = np.full((len(train), len(infer)), IMPOSSIBLE)
    for row, left in enumerate(train):
        for column, right in enumerate(infer):
            if left.width == right.width and evidence.may_be(left, right):
                apart = abs(expected[row] - when[right])
                score[row, column] = evidence.likeness(left, right) + evidence.share(left, right) - _WHOLE_WAY * apart
    return [(train[row], infer[column]) for row, column in assign(score)]


def _chain(evidence: Evidence, train: list[Node], infer: list[Node]) -> list[tuple[float, float]]:
    """The longest chain of sure pairs that rises on both sides."""
    pairs = [(left, right) for left in train for right in infer if left.width == right.width]
    sure = sorted((evidence.when[x], evidence.when[y]) for x, y in pairs if _sure(evidence, x, y))
    chains: list[list[tuple[float, float]]] = []
    for pair in sure:
        before: list[tuple[float, float]] = max((chain for chain in chains if chain[-1][1] <= pair[1]), key=len, default=[])
        chains.append([*before, pair])
    return max(chains, key=len, default=[])


def _sure(evidence: Evidence, left: Node, right: Node) -> bool:
    return evidence.share(left, right) > _SURE_WEIGHTS or evidence.likeness(left, right) > _SURE_LIKENESS
