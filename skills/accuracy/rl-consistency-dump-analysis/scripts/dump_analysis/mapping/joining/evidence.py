"""What speaks for a pair of nodes: how alike they are, which weights join their modules, and when they occur."""

from dump_analysis.floats import Array
from dump_analysis.mapping.contents.weights import Modules
from dump_analysis.mapping.recorded.nodes import Node, SideNodes
from dump_analysis.mapping.recorded.signatures import decades, distance, gram

Parts = list[tuple[str, Node]]
Made = set[tuple[Node, Node]]

_ALIKE = 1.3  # decades: what a signature alone may join


class Evidence:
    """The evidence for every pair (train node, infer node).

    ``parts``: of each side, (module of the other side, columns that its weights make).  ``rows``: which of the sampled
    tokens speak (the last one does not where its ids differ).
    """

    def __init__(self, train: SideNodes, infer: SideNodes, modules: Modules, parts: tuple[Parts, Parts], rows: slice) -> None:
        self.train, self.infer, self.rows = train, infer, rows
        self.when = {**progress(train), **progress(infer)}
        self._made = _made_alike(train, infer, modules, parts)
        self._shares = _shares(train, infer, modules, self._made)
        self._grams: dict[Node, Array] = {}
        self._likeness: dict[tuple[Node, Node], float] = {}

    def likeness(self, train: Node, infer: Node) -> float:
        """Decades of agreement of two nodes of one width."""
        known = self._likeness.get((train, infer))
        if known is None:
            known = self._likeness[train, infer] = decades(distance(self._gram(train), self._gram(infer)))
        return known

    def share(self, train: Node, infer: Node) -> float:
        """Share of the weights that join modules at whose same side the two nodes stand; 0 without."""
        return self._shares.get((train, infer), 0.0)

    def may_be(self, train: Node, infer: Node) -> bool:
        """Parts side by side are joined by what they hold: where they stand says nothing, as no module need have made them."""
        return not (train.union or infer.union) or self.share(train, infer) > 0 or self.likeness(train, infer) > _ALIKE

    def made_alike(self, train: Node, infer: Node) -> bool:
        """Whether equal rows of weights make exactly these columns."""
        return (train, infer) in self._made

    def _gram(self, node: Node) -> Array:
        if node not in self._grams:
            self._grams[node] = gram(node, self.rows)
        return self._grams[node]


def progress(side: SideNodes) -> dict[Node, float]:
    """0 … 1 along the execution of a side."""
    moments = sorted({node.ready for node in side.nodes})
    rank = {moment: at / max(1, len(moments) - 1) for at, moment in enumerate(moments)}
    return {node: rank[node.ready] for node in side.nodes}


def _shares(train: SideNodes, infer: SideNodes, modules: Modules, made: Made) -> dict[tuple[Node, Node], float]:
    """The joins of modules as joins of their first inputs and outputs, and of the parts cut out of these.

    Where it is known which columns the weights make, no others are joined.
    """
    shares: dict[tuple[Node, Node], float] = {}
    known = {node for pair in made for node in pair}
    at = {id(side): _by_entry(side) for side in (train, infer)}
    for (mine, theirs), (share, how) in modules.items():
        for io in ("output",) if how == "vec" else ("output", "input"):
            for left in at[id(train)].get((mine, io), ()):
                for right in at[id(infer)].get((theirs, io), ()):
                    otherwise = io == "output" and (left, right) not in made and {left, right} <= known
                    if left.width == right.width and not otherwise:
                        shares[left, right] = max(share, shares.get((left, right), 0.0))
    return shares


def _made_alike(train: SideNodes, infer: SideNodes, modules: Modules, parts: tuple[Parts, Parts]) -> Made:
    outputs = [{entry: node for (entry, io, path), node in side.at.items() if (io, path) == ("output", "0")} for side in (train, infer)]
    made = {(outputs[0].get(mine), outputs[1].get(theirs)) for (mine, theirs), (_, how) in modules.items() if how == "rows"}
    made |= {(node, outputs[1].get(entry)) for entry, node in parts[0]} | {(outputs[0].get(entry), node) for entry, node in parts[1]}
    return {(left, right) for left, right in made if left is not None and right is not None and left.width == right.width}


def _by_entry(side: SideNodes) -> dict[tuple[str, str], list[Node]]:
    found: dict[tuple[str, str], list[Node]] = {}
    for (entry, io, path), node in side.at.items():
        if path == "0" or "[part" in path:
            found.setdefault((entry, io), []).append(node)
    return found
