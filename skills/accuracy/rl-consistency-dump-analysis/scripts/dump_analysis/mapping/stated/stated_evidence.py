"""What speaks for a pair of nodes of which only statistics are stated."""

import math

from dump_analysis.mapping.contents.weights import Modules
from dump_analysis.mapping.joining.evidence import Evidence
from dump_analysis.mapping.recorded.nodes import Node
from dump_analysis.mapping.recorded.signatures import decades
from dump_analysis.mapping.stated.stated import Stated
from dump_analysis.statistics import Facts

_UNKNOWN = 0.0  # decades where nothing can be compared: neither for nor against


class StatedEvidence(Evidence):
    """As the evidence of tensors, with the statistics of two nodes in place of their Gram matrices."""

    def __init__(self, train: Stated, infer: Stated, modules: Modules) -> None:
        super().__init__(train.nodes, infer.nodes, modules, ([], []), slice(None))
        self._facts = {**train.facts, **infer.facts}

    def likeness(self, train: Node, infer: Node) -> float:
        """Decades of agreement of the statistics of two nodes; 0 where no statistic is stated on both sides."""
        known = self._likeness.get((train, infer))
        if known is None:
            apart = distance(self._facts[train], self._facts[infer])
            known = self._likeness[train, infer] = _UNKNOWN if apart is None else decades(apart)
        return known


def distance(one: Facts, other: Facts) -> float | None:
    """How far apart two records are, relative to the size of the values: 0 for equal digests, None where nothing is common.

    The root mean square over the statistics: norms and extremes relative to themselves, means to the root mean square.
    """
    if one.digest is not None and one.digest == other.digest:
        return 0.0
    apart = []
    extreme = max((abs(number) for facts in (one, other) for number in facts.numbers[:2] if number is not None), default=0.0)
    norm = max((facts.norm for facts in (one, other) if facts.norm is not None), default=0.0)
    scales = (extreme, extreme, norm / math.sqrt(max(1, one.elements, other.elements)) or extreme, norm)
    for mine, theirs, scale in zip(one.numbers, other.numbers, scales, strict=True):
        if mine is not None and theirs is not None and math.isfinite(mine) and math.isfinite(theirs):
            apart.append(abs(mine - theirs) / scale if scale else 0.0)
    return math.sqrt(sum(value**2 for value in apart) / len(apart)) if apart else None
