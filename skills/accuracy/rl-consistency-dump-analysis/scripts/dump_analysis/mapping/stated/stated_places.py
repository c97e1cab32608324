"""Canonical names of rows that statistics join, from their role in the data flow; no name of a module is read.

As where tensors were saved, the residual stream is followed through its sums; but what cannot be computed is taken from
structure: a norm is what keeps the width and mixes no columns, or what reads the stream first.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from dump_analysis.mapping.joining.joined import Joined
from dump_analysis.mapping.naming.rowgraph import first_spot
from dump_analysis.mapping.recorded.nodes import Node, Slot
from dump_analysis.mapping.stated.stated_flow import Flow, matrices
from dump_analysis.mapping.stated.stated_join import StatedJoin

_HEADS = ("q", "k", "v")


class _Made(NamedTuple):
    """What one leaf of a side makes: numbers of rows (None: no row) of all its arguments and results. ``mixes``: it holds a matrix."""

    takes: list[int | None]
    gives: list[int | None]
    mixes: bool


class _Block(NamedTuple):
    """What lies between two stations of the stream. ``branch``: what is added at its end."""

    prefix: str
    start: int
    end: int
    branch: int
    attention: bool


class _Graph:
    """The rows of a join with the leaves of both sides."""

    def __init__(self, join: StatedJoin) -> None:
        self.rows: Sequence[Joined] = join.rows
        self.time = [row.train.ready for row in join.rows]
        self.width = [row.train.width for row in join.rows]
        self.made: list[_Made] = []
        self.sums: list[set[tuple[int | None, ...]]] = [set() for _ in join.rows]
        for side, flow, label in ((join.train, join.flows[0], "train"), (join.infer, join.flows[1], "infer")):
            nodes: list[Node] = [getattr(row, label) for row in join.rows]
            at = {id(node): n for n, node in enumerate(nodes)}
            self.made += [*_made(flow, at, matrices(side)), *_made_in_part(flow, nodes, at)]
            for n, node in enumerate(nodes):
                addends = side.nodes.sums.get(id(node))
                if addends is not None:
                    self.sums[n].add(tuple(at.get(id(addend)) for addend in addends))

    def of(self, row: int) -> Iterator[_Made]:
        """The leaves that make a row as their first result."""
        return (made for made in self.made if made.gives and made.gives[0] == row)

    def from_alone(self, row: int) -> list[tuple[int, bool]]:
        """What leaves make of a row and nothing else, earliest first, and whether by a matrix."""
        found: dict[int, bool] = {}
        for made in self.made:
            first = made.gives[0] if made.gives else None
            # An add and norm takes the addends and works on the sum that it gives as well.
            works_on = made.takes if len(made.takes) == 1 else made.gives[1:] if len(made.gives) == len(made.takes) == 2 else []
            if first is not None and list(works_on) == [row]:
                found[first] = found.get(first, False) or made.mixes
        return sorted(found.items(), key=lambda item: self.time[item[0]])


def _made(flow: Flow, at: dict[int, int], mixing: set[str]) -> Iterator[_Made]:
    for entry, nodes in flow.gives.items():
        yield _Made([at.get(id(node)) for node in flow.takes.get(entry, [])], [at.get(id(node)) for node in nodes], entry in mixing)


def _made_in_part(flow: Flow, nodes: Sequence[Node], at: dict[int, int]) -> Iterator[_Made]:
    """Columns that were cut out of what a leaf gives."""
    for n, node in enumerate(nodes):
        spot = node.spots[0]
        if node.kind == "part" and spot.io == "output":
            yield _Made([at.get(id(taken)) for taken in flow.takes.get(spot.entry, [])], [n], True)


def names_of(join: StatedJoin) -> list[str]:
    """A unique name for every row, in the order of the rows."""
    if not join.rows:
        return []
    graph = _Graph(join)
    names: dict[int, str] = {}
    stations, branches = _stream(graph)
    if stations:
        names[stations[0]] = "embedding.out"
    for block in _blocks(graph, stations, branches):
        names[block.end] = block.prefix + ("resid_attn" if block.attention else "resid_mlp")
        _name_block(graph, names, block, stations)
    if len(stations) > 1:
        _name_end(graph, names, stations[-1])
    _name_like_other_layers(graph, names)
    return _unique(join.rows, names)


# --- the stream ---


def _stream(graph: _Graph) -> tuple[list[int], list[int | None]]:
    """The stations of the residual stream, and what is added at each (None at the first, or where it is no row)."""
    addends = {n for pairs in graph.sums for pair in pairs for n in pair if n is not None}
    if not addends:
        return [], []
    stations, branches = [min(addends, key=lambda n: graph.time[n])], [None]
    found: list[int | None] = list(branches)
    while True:
        now = stations[-1]
        onward = [n for n, pairs in enumerate(graph.sums) if n not in stations and any(now in pair for pair in pairs)]
        if not onward:
            return stations, found
        station = min(onward, key=lambda n: graph.time[n])
        others = [n for pair in graph.sums[station] if now in pair for n in pair if n is not None and n != now]
        stations.append(station)
        found.append(others[0] if others else None)


def _blocks(graph: _Graph, stations: Sequence[int], branches: Sequence[int | None]) -> list[_Block]:
    """Attention and MLP in turn; where all branches stand at two slots of the layers, the slots and their layers say which."""
    slots: list[Slot] = sorted({slot for n in branches if n is not None and (slot := graph.rows[n].train.slot) is not None})
    blocks: list[_Block] = []
    layer, attention = -1, False
    for start, end, branch in zip(stations, stations[1:], branches[1:], strict=False):
        attention = not attention
        layer += attention
        node = None if branch is None else graph.rows[branch].train
        if node is not None and node.slot is not None and node.layer is not None and len(slots) == 2:
            attention, layer = node.slot == slots[0], node.layer
        if branch is not None:
            blocks.append(_Block(f"layers.{layer}.", start, end, branch, attention))
    return blocks


def _name_end(graph: _Graph, names: dict[int, str], last: int) -> None:
    """The norm of the stream's last station and what a module makes of it."""
    made = [n for n, mixes in graph.from_alone(last) if n not in names and not mixes and graph.width[n] == graph.width[last]]
    if made and not any(
        row.train.layer is not None and row.train.slot[0] >= 1 and row.train.time > graph.time[made[0]]
        for row in graph.rows
        if row.train.slot
    ):
        names[made[0]] = "final_norm.out"
        heads = [n for n, _ in graph.from_alone(made[0]) if n not in names]
        if heads:
            names[heads[0]] = "logits"


# --- a block ---


def _name_block(graph: _Graph, names: dict[int, str], block: _Block, stations: Sequence[int]) -> None:
    branch = _before_its_norm(graph, names, block)
    takes = [made.takes for made in graph.of(branch)]
    core = next((taken[0] for taken in takes if len(taken) == 1 and taken[0] is not None and taken[0] not in stations), None)
    normed = [n for n, mixes in graph.from_alone(block.start) if not mixes and n != branch and graph.width[n] == graph.width[block.start]]
    root = next((n for n in normed if n not in names), block.start)
    if root != block.start:
        names[root] = block.prefix + ("input_norm.out" if block.attention else "post_norm.out")
    core = None if core == root else core
    names.setdefault(branch, block.prefix + ("o_proj.out" if block.attention else "moe.out" if core is None else "down.out"))
    if core is not None:
        names.setdefault(core, block.prefix + ("attn_core.out" if block.attention else "act_mul.out"))
    made = [n for n, _ in graph.from_alone(root) if n not in names]
    if block.attention:
        _name_attention(graph, names, block.prefix, made, core)
    else:
        _name_mlp(graph, names, block.prefix, made, core)


def _before_its_norm(graph: _Graph, names: dict[int, str], block: _Block) -> int:
    """What leaves the last matrix of a block; a norm between that and the stream is named here."""
    branch = block.branch
    for made in graph.of(branch):
        source = made.takes[0] if len(made.takes) == 1 else None
        if source is None or made.mixes or graph.width[source] != graph.width[branch] or any(one.mixes for one in graph.of(branch)):
            continue
        if any(one.mixes for one in graph.of(source)):
            names[branch] = block.prefix + ("attn_post_norm.out" if block.attention else "mlp_post_norm.out")
            return source
    return branch


def _name_attention(graph: _Graph, names: dict[int, str], prefix: str, made: Sequence[int], core: int | None) -> None:
    """Projections in the order of their modules, their norms, and what the attention core takes as q, k and v."""
    if len(made) == len(_HEADS):
        names.update({n: f"{prefix}{head}.out" for n, head in zip(made, _HEADS, strict=True)})
    elif len(made) == 1:
        names[made[0]] = prefix + "qkv.out"
    for n, head in zip(made, _HEADS[:2], strict=False):
        normed = [m for m, mixes in graph.from_alone(n) if m not in names and not mixes and graph.width[m] == graph.width[n]]
        if normed and len(made) == len(_HEADS):
            names[normed[0]] = f"{prefix}{head}_norm.out"
    for one in graph.of(core) if core is not None else ():
        for taken, name in zip(one.takes, ("q_rope.out", "k_rope.out", "v.out"), strict=False):
            if taken is not None and taken not in names and len(one.takes) >= len(_HEADS) and prefix + name not in names.values():
                names[taken] = prefix + name
    rotated = [prefix + "q_rope.out", prefix + "k_rope.out"]
    for one in graph.made:
        if len(one.takes) == len(one.gives) == len(rotated) and [names.get(n) if n is not None else None for n in one.gives] == rotated:
            for source, head in zip(one.takes, _HEADS, strict=False):
                if source is not None:
                    names.setdefault(source, f"{prefix}{head}.out")


def _name_mlp(graph: _Graph, names: dict[int, str], prefix: str, made: Sequence[int], core: int | None) -> None:
    """Gate and up have the width of the product; without one, the narrowest head chooses experts."""
    if core is None:
        narrow = [n for n in made if graph.width[n] < graph.width[core or 0]] or list(made)
        names.update({min(narrow, key=lambda n: graph.width[n]): prefix + "router.logits"} if narrow else {})
        return
    parts = [n for n in made if graph.width[n] == graph.width[core]]
    names.update(zip(parts[:2], (prefix + "gate.out", prefix + "up.out"), strict=False))
    if not parts:
        names.update({n: prefix + "gate_up.out" for n in made[:1] if graph.width[n] == 2 * graph.width[core]})


# --- names of all ---


def _name_like_other_layers(graph: _Graph, names: dict[int, str]) -> None:
    """Rows without a role, named like the rows of other layers at the same slots."""
    known: dict[tuple[Slot | None, Slot | None], tuple[str, int]] = {}
    for n, name in names.items():
        parts, row = name.split(".", 2), graph.rows[n]
        if parts[0] == "layers" and not parts[2].startswith("resid") and row.train.slot is not None and row.train.layer is not None:
            known.setdefault((row.train.slot, row.infer.slot), (parts[2], int(parts[1]) - row.train.layer))
    last = max((int(name.split(".")[1]) for name in names.values() if name.startswith("layers.")), default=-1)
    taken = set(names.values())
    for n, row in enumerate(graph.rows):
        kind = known.get((row.train.slot, row.infer.slot)) if row.train.slot is not None else None
        if n in names or kind is None or row.train.layer is None or row.train.layer + kind[1] > last:
            continue
        name = f"layers.{row.train.layer + kind[1]}.{kind[0]}"
        if name not in taken:
            names[n] = name
            taken.add(name)


def _unique(rows: Sequence[Joined], names: dict[int, str]) -> list[str]:
    """Every row named once: where two rows claim a name the earlier keeps it; without a role it bears its train entry's."""
    taken: set[str] = set()
    made: dict[int, str] = {}
    for n in sorted(range(len(rows)), key=lambda at: (at not in names, rows[at].train.time)):
        spot = first_spot(rows[n].train)
        full = f"{spot.entry}.{spot.io}.{spot.path}"
        options = [names.get(n), spot.entry, full, *(f"{full}#{count}" for count in range(2, len(rows) + 2))]
        made[n] = next(option for option in options if option is not None and option not in taken)
        taken.add(made[n])
    return [made[n] for n in range(len(rows))]
