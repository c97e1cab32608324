"""Which of the proposed pairs are believed, and which of the doubtful ones follow from those."""

from collections import Counter

from dump_analysis.mapping.joining.evidence import Evidence
from dump_analysis.mapping.recorded.nodes import Node
from dump_analysis.mapping.recorded.signatures import CLOSE, decades

CERTAIN = decades(CLOSE)
HALF = 0.5  # share of weights, and decades, from which a join by weights is believed
_NEAR = 12  # joined pairs that judge a doubtful one
_CROSSED = 2  # of them may cross it
_FOLLOWS = 0.4  # decades by which it may be less alike than what comes after
_NEXT = 6  # joined pairs after a pair that say whether the difference lives on
_LATE = 0.7  # of the way: if nothing is joined beyond, order alone decides
_SLOTS = 2  # other slots at which two modules are joined already


def certain(likeness: float, weights: float, *, aligned: bool) -> bool:
    """Close by signature with columns that agree, or joined by weights and not unrelated."""
    return likeness >= HALF and (likeness >= CERTAIN or weights >= HALF) and (aligned or weights >= HALF)


class Accepted:
    """The pairs joined so far."""

    def __init__(self, evidence: Evidence) -> None:
        self.evidence = evidence
        self.pairs: list[tuple[Node, Node]] = []
        self._places: list[tuple[float, float, float]] = []  # progress of train and infer, likeness
        self._modules: Counter[tuple[str, str]] = Counter()

    def add(self, train: Node, infer: Node) -> None:
        self.pairs.append((train, infer))
        when = self.evidence.when
        self._places.append((when[train], when[infer], self.evidence.likeness(train, infer)))
        self._modules.update(_shared_modules(train, infer))

    @property
    def blind(self) -> bool:
        """Whether nothing certain is joined in the last third of the way."""
        return not self._places or max(train for train, _, _ in self._places) < _LATE

    def joined_by_weights(self, train: Node, infer: Node, weights: float) -> bool:
        """Whether weights join the pair and nothing says that its modules return different quantities."""
        return weights >= HALF and not self._other_quantity(train, infer)

    def _other_quantity(self, train: Node, infer: Node) -> bool:
        """Unrelated, while everything after agrees: the modules return different things (probabilities and logits)."""
        at = self.evidence.when[train]
        after = sorted(place for place in self._places if place[0] > at)[:_NEXT]
        return self.evidence.likeness(train, infer) < HALF and bool(after) and min(place[2] for place in after) > CERTAIN

    def plausible(self, train: Node, infer: Node) -> bool:
        """Whether its modules are joined at two other slots; or it keeps the order, is a sum on both sides or on neither,
        and is as close as what follows: a difference that nothing downstream shows is a wrong pair."""
        if any(self._modules[pair] >= _SLOTS for pair in _shared_modules(train, infer)):
            return True
        if not self._places:
            return False
        x, y = self.evidence.when[train], self.evidence.when[infer]
        near = sorted(self._places, key=lambda place: abs(place[0] - x) + abs(place[1] - y))[:_NEAR]
        if sum((place[0] - x) * (place[1] - y) < 0 for place in near) > _CROSSED:
            return False
        if (id(train) in self.evidence.train.sums) != (id(infer) in self.evidence.infer.sums):
            return False
        after = [place[2] for place in near if place[0] >= x]
        if not after and self.blind:
            return True
        return self.evidence.likeness(train, infer) >= min(after or [place[2] for place in near]) - _FOLLOWS


def _shared_modules(train: Node, infer: Node) -> list[tuple[str, str]]:
    """The pairs of leaf entries at whose same argument or result the two nodes stand."""
    leaves = [(spot.io, spot.path, spot.entry) for spot in infer.spots if spot.leaf]
    return [(spot.entry, entry) for spot in train.spots if spot.leaf for io, path, entry in leaves if (io, path) == (spot.io, spot.path)]
