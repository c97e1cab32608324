"""Joined rows as a graph: which row a module makes of which, and which row is the sum of others, on either side."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from dump_analysis.floats import Array
from dump_analysis.mapping.joining.joined import Joined
from dump_analysis.mapping.recorded.nodes import Node, SideNodes, Spot

_NORM_COLUMNS = 64  # columns that tell whether a tensor is the norm of another
_NORM_SPREAD = 0.05  # relative; a gain that differs by more from token to token is none
_LINE_TOKENS = 6  # fewer lie near a line by chance


class RowGraph(NamedTuple):
    """``after[n]``: rows that a leaf module makes of row n, ``before`` the reverse. ``alone``: pairs of which that module has
    one input and one whole output. ``sums[n]``: rows that add up to row n, two or three (None: an addend that is no row).
    ``time``: when the trainer has the row, for a sum when its addends exist.  ``looked_up``: rows of tables, by whole numbers.
    """

    rows: Sequence[Joined]
    after: list[set[int]]
    before: list[set[int]]
    alone: set[tuple[int, int]]
    sums: list[list[tuple[int | None, ...]]]
    width: list[int]
    time: list[float]
    looked_up: set[int]

    def made_alone(self, row: int) -> list[int]:
        """The rows of which a module with one input makes this one, earliest first."""
        return sorted((at for at in self.before[row] if (at, row) in self.alone), key=lambda at: self.time[at])


class _Edge(NamedTuple):
    source: Node
    made: Node
    alone: bool


def graph_of(rows: Sequence[Joined], train: SideNodes, infer: SideNodes) -> RowGraph:
    """The graph of the rows, from the data flow of both sides together."""
    graph = RowGraph(
        rows,
        [set() for _ in rows],
        [set() for _ in rows],
        set(),
        [[] for _ in rows],
        [row.train.width for row in rows],
        [min(row.train.time, row.train.ready) for row in rows],
        _looked_up(rows, train) | _looked_up(rows, infer),
    )
    for side, nodes in ((train, [row.train for row in rows]), (infer, [row.infer for row in rows])):
        at = {id(node): n for n, node in enumerate(nodes)}
        for edge in _edges(side):
            source, made = at.get(id(edge.source)), at.get(id(edge.made))
            if source is not None and made is not None and source != made:
                graph.after[source].add(made)
                graph.before[made].add(source)
                if edge.alone:
                    graph.alone.add((source, made))
        for n, node in enumerate(nodes):
            if id(node) in side.sums:
                graph.sums[n].append(tuple(at.get(id(addend)) for addend in side.sums[id(node)]))
    return graph


def lookups(side: SideNodes) -> set[str]:
    """Entries that take whole numbers alone: their matrix is a table of rows, one a token id or a position."""
    floats_in: set[str] = set()
    whole_in: set[str] = set()
    for recorded in side.records.activations:
        if recorded.spot.io != "output":
            (whole_in if recorded.tensor.dtype in ("int64", "int32") else floats_in).add(recorded.spot.entry)
    return whole_in - floats_in


def _looked_up(rows: Sequence[Joined], side: SideNodes) -> set[int]:
    tables = lookups(side) & side.records.times.leaves
    nodes = {id(side.at[entry, "output", "0"]) for entry in tables if (entry, "output", "0") in side.at}
    return {n for n, row in enumerate(rows) if id(row.train) in nodes or id(row.infer) in nodes}


def _edges(side: SideNodes) -> Iterator[_Edge]:
    """Inputs and outputs of leaf modules. Of several outputs each belongs to the inputs of its own width."""
    ends: tuple[dict[str, dict[str, list[Node]]], dict[str, dict[str, list[Node]]]] = (defaultdict(dict), defaultdict(dict))
    hollow = _hollow(side)
    for node in side.nodes:
        for spot in node.spots:
            if spot.leaf and spot.entry not in hollow:
                ends[spot.io == "output"][spot.entry].setdefault(spot.path, []).append(node)
    for (entry, io, path), node in side.at.items():  # a part that is recorded elsewhere too bears that place as its spot
        listed = ends[1][entry].setdefault(path, []) if io == "output" and "[" in path and entry in side.records.times.leaves else [node]
        if node not in listed:
            listed.append(node)
    for entry, outputs in ends[1].items():
        inputs = [node for nodes in ends[0].get(entry, {}).values() for node in nodes]
        one_input = len(ends[0].get(entry, {})) == 1
        alone = one_input and sum("[" not in path for path in outputs) == 1
        yield from _of_added(side, inputs, [node for nodes in outputs.values() for node in nodes])
        for made in (node for nodes in outputs.values() for node in nodes):
            for source in inputs:
                if source is not made and (one_input or len(outputs) == 1 or source.sample.shape == made.sample.shape):
                    yield _Edge(source, made, alone)


def _of_added(side: SideNodes, inputs: Sequence[Node], outputs: Sequence[Node]) -> Iterator[_Edge]:
    """A module that adds its inputs first and returns the sum beside what it makes of it: the sum is what it works on."""
    for added in outputs:
        if id(added) in side.sums and all(any(node is addend for node in inputs) for addend in side.sums[id(added)]):
            yield from (_Edge(added, made, True) for made in outputs if made is not added)


def _hollow(side: SideNodes) -> set[str]:
    """Where nesting is not recorded: entries that only hand on what others returned, or a residual sum, as containers do."""
    if side.records.times.traced:
        return set()
    first: dict[int, str] = {}
    returned: dict[str, list[Node]] = defaultdict(list)
    for recorded in sorted(side.records.activations, key=lambda one: one.spot.time):
        node = side.at.get((recorded.spot.entry, recorded.spot.io, recorded.spot.path)) if recorded.spot.io == "output" else None
        if node is not None:
            first.setdefault(id(node), recorded.spot.entry)
            returned[recorded.spot.entry].append(node)
    return {entry for entry, nodes in returned.items() if all(first[id(node)] != entry or id(node) in side.sums for node in nodes)}


def last_layer(side: SideNodes) -> int:
    """The number of the last layer, −1 without. Less than half a block is none: the norm after the last layer, a head that looks alike."""
    placed = [(node.slot[0], node.layer) for node in side.nodes if node.layer is not None and node.slot is not None]
    deepest = max((module for module, _ in placed), default=0.0)
    return max((layer for module, layer in placed if 2 * module >= max(2.0, deepest)), default=-1)


def first_spot(node: Node) -> Spot:
    """The earliest place of a node; of those at one time the output of the innermost entry."""
    return min(node.spots, key=lambda spot: (spot.time, spot.io != "output", not spot.leaf))


def is_norm(graph: RowGraph, row: int, normed: int) -> bool:
    """Whether a row is the norm of another on either side."""
    return any(normalises(getattr(graph.rows[row], side).sample, getattr(graph.rows[normed], side).sample) for side in ("train", "infer"))


def normalises(x: Array, y: Array) -> bool:
    """Whether y is a root mean square norm (Zhang and Sennrich 2019) or a LayerNorm (Ba et al. 2016) of x. Both [tokens, columns]."""
    return x.shape == y.shape and (_is_root_mean_square_norm(x, y) or _is_layer_norm(x, y))


def _is_root_mean_square_norm(x: Array, y: Array) -> bool:
    """Whether y = x / rms(x) times one gain a column."""
    scale = np.sqrt((x.astype(np.float64) ** 2).mean(1, keepdims=True)) + 1e-20
    some, made = x[:, :_NORM_COLUMNS].astype(np.float64), y[:, :_NORM_COLUMNS]
    large = np.abs(some) > 0.3 * scale  # small elements carry mostly rounding
    enough = large.sum(0) > 3
    if not enough.any():
        return False
    gains = np.where(large, made * scale / np.where(large, some, 1.0), np.nan)[:, enough]
    spread = np.nanstd(gains, 0) / (np.abs(np.nanmean(gains, 0)) + 1e-9)
    return bool(np.median(spread) < _NORM_SPREAD)


def _is_layer_norm(x: Array, y: Array) -> bool:
    """Whether y = (x - mean(x)) / deviation(x) times one gain a column and one shift: a straight line in each column."""
    if len(x) < _LINE_TOKENS:
        return False
    wide = x.astype(np.float64)
    normed = ((wide - wide.mean(1, keepdims=True)) / (wide.std(1, keepdims=True) + 1e-20))[:, :_NORM_COLUMNS]
    made = y[:, :_NORM_COLUMNS].astype(np.float64)
    normed, made = normed - normed.mean(0), made - made.mean(0)
    gains = (normed * made).sum(0) / ((normed**2).sum(0) + 1e-20)
    left = np.linalg.norm(made - gains * normed, axis=0) / (np.linalg.norm(made, axis=0) + 1e-20)
    return bool(np.median(left) < _NORM_SPREAD)


def holds(wide: Array, narrow: Array) -> bool:
    """Whether the first column of a narrower tensor is a column of a wider one. Both [tokens, columns]."""
    if narrow.shape[1] >= wide.shape[1] or len(wide) != len(narrow):
        return False
    at = np.flatnonzero(wide[0] == narrow[0, 0])
    return bool((wide[:, at] == narrow[:, :1]).all(0).any())


def is_made_up(graph: RowGraph, row: int, others: Sequence[int]) -> bool:
    """Whether a row is nothing but two others beside each other: q and k where v alone was recorded apart."""
    inside = [n for n in others if is_slice(graph, n, row)]
    return len(inside) > 1 and sum(graph.width[n] for n in inside) == graph.width[row]


def is_slice(graph: RowGraph, row: int, other: int) -> bool:
    """Whether a row is some columns of another, on either side."""
    pair = graph.rows[row], graph.rows[other]
    return row != other and (holds(pair[1].train.sample, pair[0].train.sample) or holds(pair[1].infer.sample, pair[0].infer.sample))
