"""The roles of siblings in the data flow of one side: which of k and v is rotated, which of gate and up is activated.

Siblings are tensors of one width made from one input: outputs of two modules that read it, or columns of one fused output.
"""

from bisect import bisect_left, bisect_right
from collections import defaultdict
from itertools import islice

import numpy as np

from dump_analysis.mapping.recorded.columns import column_keys
from dump_analysis.mapping.recorded.dataflow import activated
from dump_analysis.mapping.recorded.keys import places_of
from dump_analysis.mapping.recorded.nodes import Node, SideNodes, by_time

_PRODUCT_WITHIN = 10  # nodes after both factors
_FUSED_WITHIN = 60.0  # time from a fused output to its recorded parts
_THROUGH = 3  # modules between a projection and the attention core

Entered = tuple[str, int]  # an entry and the number of its argument


class Roles:
    """The data flow of one side, asked about pairs of nodes."""

    def __init__(self, side: SideNodes) -> None:
        self._nodes = by_time(side)
        self._times = [node.time for node in self._nodes]
        self._inputs: dict[str, list[Node]] = defaultdict(list)
        self._outputs: dict[str, list[Node]] = defaultdict(list)
        self._enters: dict[Node, list[Entered]] = defaultdict(list)
        self._makers: dict[Node, str] = {}
        for recorded in side.records.activations:
            spot = recorded.spot
            node = side.at.get((spot.entry, spot.io, spot.path))
            if node is None:
                continue
            if spot.io == "output":
                self._outputs[spot.entry].append(node)
                if spot.leaf:
                    self._makers.setdefault(node, spot.entry)
            else:
                self._enters[node].append((spot.entry, len(self._inputs[spot.entry])))
                self._inputs[spot.entry].append(node)

    def siblings(self, one: Node, other: Node) -> bool:
        """Whether both are made from one input by one kind of step."""
        if one.width != other.width:
            return False
        readers = [self._inputs[self._makers[node]] for node in (one, other) if node in self._makers]
        return (len(readers) == 2 and len(readers[0]) == 1 and readers[0] == readers[1]) or self._whole(one, other) is not None

    def first(self, one: Node, other: Node) -> bool:
        """Whether ``one`` has the first role of two siblings.

        The factor that is activated is before the other; what enters the attention core as an earlier argument, rotated or
        not, before what enters later; else columns of a fused output and calls of modules stand in the order of roles.
        """
        both = max(one.time, other.time)
        later = self._nodes[bisect_right(self._times, both) :]
        after = list(islice((node for node in later if node.width == one.width), _PRODUCT_WITHIN))
        for product in after:
            by_product = activated(one.sample, other.sample, product.sample)
            if by_product is not None:
                return by_product
        entered = self._entered(one), self._entered(other)
        for entry, argument in entered[0].items():
            if argument != entered[1].get(entry, argument):
                return argument < entered[1][entry]
        whole = self._whole(one, other)
        if whole is not None:
            starts = places_of(column_keys(whole), np.stack([column_keys(node)[0] for node in (one, other)]))
            return bool(starts[0] < starts[1])
        return one.time < other.time

    def _entered(self, node: Node) -> dict[str, int]:
        """Where a node enters, also after modules that hand on as many tensors as they get (norm, rotation)."""
        found: dict[str, int] = {}
        front = [node]
        for _ in range(_THROUGH):
            reached = [entered for each in front for entered in self._enters[each]]
            front = []
            for entry, argument in reached:
                found.setdefault(entry, argument)
                made = self._outputs[entry]
                if len(made) == len(self._inputs[entry]) and made[argument].width == node.width:
                    front.append(made[argument])
        return found

    def _whole(self, one: Node, other: Node) -> Node | None:
        """The fused output that holds the columns of both."""
        recorded = min(one.time, other.time)
        low, high = bisect_left(self._times, recorded - _FUSED_WITHIN), bisect_right(self._times, recorded)
        for whole in self._nodes[low:high]:
            if whole.width > one.width and whole in self._makers:
                keys = column_keys(whole)
                if all((places_of(keys, column_keys(node)) >= 0).all() for node in (one, other)):
                    return whole
        return None
