"""Places of the computation that one side records and the other does not: named, so that they stand in the mapping as missing."""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from dump_analysis.artefacts.semantic_mapping import MissingRow, Row
from dump_analysis.mapping.joining.joined import JoinedSides
from dump_analysis.mapping.naming.rowgraph import last_layer
from dump_analysis.mapping.recorded.nodes import Node, SideNodes

# What a projection reads is the norm before it: the last part of a name -> the norm's.
_NORM_BEFORE = {
    "q.out": "input_norm.out", "k.out": "input_norm.out", "v.out": "input_norm.out", "qkv.out": "input_norm.out",
    "q_a.out": "input_norm.out", "kv_a.out": "input_norm.out", "gate.out": "post_norm.out", "up.out": "post_norm.out",
    "router.logits": "post_norm.out",
}  # fmt: skip
_ROTATED = {"q.out": "q_rope.out", "q_norm.out": "q_rope.out", "k.out": "k_rope.out", "k_norm.out": "k_rope.out"}


class Gap(NamedTuple):
    """A place without a row. ``train``, ``infer``: the nodes that the sides have of it; ``after``: index of the row before it."""

    boundary: str
    train: Node | None
    infer: Node | None
    after: int

    def node(self, side: str) -> Node | None:
        return self.train if side == "train" else self.infer


class Extra(NamedTuple):
    """A row or a gap of a place that is no node of the tokens. ``after``: index of the joined row before it."""

    after: int
    item: Row | MissingRow


def gaps_of(joined: JoinedSides, names: Sequence[str]) -> list[Gap]:
    """Rotated q and k and norms that one side alone records, and places that are joined in other layers only."""
    taken = set(names)
    found: dict[str, Gap] = {}
    for label in ("train", "infer"):
        side: SideNodes = getattr(joined, label)
        nodes = [getattr(row, label) for row in joined.rows]
        at = {id(node): n for n, node in enumerate(nodes)}
        for boundary, node in (*_made_of_rows(side, at, names), *_of_other_layers(side, nodes, names)):
            if boundary in taken or id(node) in at:
                continue
            known = found.get(boundary)
            if known is None:
                before = [n for n, other in enumerate(nodes) if other.ready <= node.ready]
                known = Gap(boundary, None, None, max(before, key=lambda n: (nodes[n].ready, n), default=-1))
            if known.node(label) is None:
                known = known._replace(train=node) if label == "train" else known._replace(infer=node)
            found[boundary] = known
    return list(found.values())


def _made_of_rows(side: SideNodes, at: Mapping[int, int], names: Sequence[str]) -> Iterator[tuple[str, Node]]:
    """Nodes that stand between rows of known role: what a leaf returns of q or k beside another input, and what q or gate are made of."""
    inputs: dict[str, list[Node]] = {}
    outputs: dict[str, list[Node]] = {}
    for (entry, io, _), node in side.at.items():
        if entry in side.records.times.leaves:
            (outputs if io == "output" else inputs).setdefault(entry, []).append(node)
    for entry, made in outputs.items():
        sources = inputs.get(entry, [])
        named = [(names[at[id(node)]], node) for node in sources if id(node) in at]
        for name, source in named:
            rotated = _renamed(name, _ROTATED)
            for node in made:
                if rotated is not None and len(sources) > 1 and node.width == source.width:
                    yield rotated, node
        for node in made:
            norm = _renamed(names[at[id(node)]], _NORM_BEFORE) if id(node) in at else None
            if norm is not None and len(sources) == 1:
                yield norm, sources[0]


def _renamed(name: str, table: Mapping[str, str]) -> str | None:
    """The name of a neighbour in the same layer."""
    if name == "logits" and table is _NORM_BEFORE:
        return "final_norm.out"
    parts = name.split(".", 2)
    return f"layers.{parts[1]}.{table[parts[2]]}" if len(parts) > 2 and parts[0] == "layers" and parts[2] in table else None


def _of_other_layers(side: SideNodes, nodes: Sequence[Node], names: Sequence[str]) -> Iterator[tuple[str, Node]]:
    """Nodes without a row whose slot is joined in another layer."""
    last = last_layer(side)
    kinds: dict[object, tuple[str, int]] = {}
    for node, name in zip(nodes, names, strict=True):
        parts = name.split(".", 2)
        if node.slot is not None and node.layer is not None and parts[0] == "layers" and len(parts) > 2:
            kinds.setdefault(node.slot, (parts[2], int(parts[1]) - node.layer))
    for node in side.nodes:
        if node.slot in kinds and node.layer is not None:
            kind, shift = kinds[node.slot]
            after = kind == "input_norm.out" and node.layer > last  # the norm after the layers looks like the next one's beginning
            if after or node.layer <= last:
                yield "final_norm.out" if after else f"layers.{node.layer + shift}.{kind}", node
