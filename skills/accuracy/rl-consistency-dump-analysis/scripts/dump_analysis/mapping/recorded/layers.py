"""The repeating block: layers found by the period of module shapes, whatever the modules are called."""

from collections.abc import Hashable
from typing import NamedTuple

import numpy as np

from dump_analysis import floats
from dump_analysis.floats import Array
from dump_analysis.mapping.recorded.nodes import Node, SideNodes, Slot, Spot
from dump_analysis.mapping.recorded.token_rows import matrix_ops

_SHORTEST = 3  # modules in a block, and kinds of modules
_NEARLY = 0.85  # of what the best block covers


class Place(NamedTuple):
    """The layer of an entry and its number inside the block; between two for an entry with children."""

    layer: int
    module: float


class Layers(NamedTuple):
    """``leaves``: entry -> its place. ``members``: slot -> layer -> node, over all spots and not only the first."""

    leaves: dict[str, Place]
    members: dict[Slot, dict[int, Node]]


def label(side: SideNodes) -> Layers:
    """Give every node of the repeating block its layer and slot, and say who stands in each slot.

    A node's slot is that of its earliest leaf spot, else of an entry with children that lies in one layer.  A fault can
    make two tensors one, whose slot is then only among the ``members``.
    """
    leaves, count = _leaf_places(side)
    parents = _parent_places(side, leaves)
    members: dict[Slot, dict[int, Node]] = {}
    for node in side.nodes:
        first = next((spot for spot in node.spots if spot.leaf), None)
        if first is None:
            first = next((spot for spot in node.spots if spot.entry in parents), None)
        place = None if first is None else leaves.get(first.entry) or parents.get(first.entry)
        if first is not None and place is not None:
            node.layer, node.slot = place.layer, _slot(place, first, node)
        for spot in node.spots:
            place = leaves.get(spot.entry) or parents.get(spot.entry)
            if place is not None:
                members.setdefault(_slot(place, spot, node), {}).setdefault(place.layer, node)
    side.layers = count
    side.modules = {entry: place.module for entry, place in (parents | leaves).items()}
    return Layers(leaves, members)


def _slot(place: Place, spot: Spot, node: Node) -> Slot:
    return place.module, spot.io, spot.path, "sum" if node.kind == "sum" else ""


# --- leaves ---


def _leaf_places(side: SideNodes) -> tuple[dict[str, Place], int]:
    """The places of the leaf modules, and how many whole layers there are.

    Where shapes alone tell too few modules apart (one width for all, no weights), where they stand under their parents helps.
    """
    shapes = _shapes(side)
    entries = list(shapes)
    plain = _codes(list(shapes.values()))
    nested = _codes(list(zip(shapes.values(), _nesting(side, entries), strict=True)))
    for codes in (plain, nested):
        covers = [_cover(codes, plain, start, length) for start, length in _repeated_blocks(codes)]
        if covers:
            most = max(len(cover) for cover in covers)
            best = next(cover for cover in covers if len(cover) >= _NEARLY * most)  # the shortest that explains nearly as much
            last = max(place.module for place in best.values())
            return {entries[at]: place for at, place in best.items()}, sum(place.module == last for place in best.values())
    return {}, 0


def _codes(facts: list[Hashable]) -> Array:
    """Equal facts as equal numbers."""
    numbers: dict[Hashable, int] = {}
    return np.array([numbers.setdefault(fact, len(numbers)) for fact in facts], np.int64)


def _nesting(side: SideNodes, entries: list[str]) -> list[Hashable]:
    """Depth of each entry, and its number among the children of its parent."""
    trace = side.records.unit.trace or {}
    children: dict[str | None, int] = {}
    number = {}
    for entry, parent in trace.items():
        number[entry] = children.get(parent, 0)
        children[parent] = number[entry] + 1
    return [(_depth(trace, entry), number.get(entry)) for entry in entries]


def _depth(trace: dict[str, str | None], entry: str) -> int:
    climbed = {entry}
    parent = trace.get(entry)
    while parent is not None and parent not in climbed:
        climbed.add(parent)
        parent = trace.get(parent)
    return len(climbed)


def _shapes(side: SideNodes) -> dict[str, Hashable]:
    """The leaf entries with an output, in the order of starts: widths of first input and output, shapes of parameters.

    Modules that run on some tokens are left out, and their like: which experts run, and on which tokens, differs from layer to layer.
    """
    found: dict[str, set[tuple[str, tuple[int, ...]]]] = {}
    some: set[str] = set()
    for recorded in side.records.activations:
        spot = recorded.spot
        if spot.leaf and spot.path == "0" and floats.FORMATS[recorded.tensor.dtype].kind == "float":
            found.setdefault(spot.entry, set()).add((spot.io, recorded.tensor.shape[-1:]))
            some |= set() if _of_all_tokens(side, recorded.tensor.shape) else {spot.entry}
    outputs = {entry: facts for entry, facts in found.items() if any(io == "output" for io, _ in facts)}
    for parameter in side.parameters:
        if parameter.entry in outputs:
            outputs[parameter.entry].add(("parameters", parameter.tensor.shape))
    shapes: dict[str, Hashable] = {entry: frozenset(facts) for entry, facts in outputs.items()}
    left_out = {shapes[entry] for entry in some & shapes.keys()}
    return {entry: shape for entry, shape in shapes.items() if shape not in left_out}


def _of_all_tokens(side: SideNodes, shape: tuple[int, ...]) -> bool:
    """Whether a tensor holds something of every token."""
    sizes = {side.window.total, side.window.total // side.window.batch}
    return bool(sizes & set(shape)) or matrix_ops(shape, side.window) is not None


def _repeated_blocks(codes: Array) -> list[tuple[int, int]]:
    """For each length, shortest first, where the first block of several kinds of modules starts that stands twice in a row."""
    blocks = []
    for length in range(_SHORTEST, len(codes) // 2 + 1):
        equal = np.concatenate([[0], np.cumsum(codes[:-length] == codes[length:])])
        for start in np.flatnonzero(equal[length:] - equal[:-length] == length).tolist():
            if len(np.unique(codes[start : start + length])) >= _SHORTEST:
                blocks.append((start, length))
                break
    return blocks


def _cover(codes: Array, plain: Array, start: int, length: int) -> dict[int, Place]:
    """Where the block at ``start`` stands: whole ones, and the beginning of one, by shapes alone, right after a whole one: the
    norm after the last layer."""
    found: dict[int, Place] = {}
    layer, at = 0, 0
    while at < len(codes):
        run = _run(codes, start, length, at)
        if run < length:
            after_whole = at - 1 in found and found[at - 1].module == length - 1
            run = _run(plain, start, length, at) if after_whole else 0
        found.update({at + nth: Place(layer, float(nth)) for nth in range(run)})
        layer, at = layer + (run > 0), at + max(1, run)
    return found


def _run(codes: Array, start: int, length: int, at: int) -> int:
    """How many modules from ``at`` on equal those of the block."""
    here = codes[at : at + length]
    equal = here == codes[start : start + len(here)]
    return len(here) if equal.all() else int(equal.argmin())


# --- entries with children ---


def _parent_places(side: SideNodes, leaves: dict[str, Place]) -> dict[str, Place]:
    """The places of entries with children whose first and last leaf lie in one layer: half a module after the first."""
    times = side.records.times
    starts = sorted((times.start[entry], place) for entry, place in leaves.items())
    moments = [start for start, _ in starts]
    found = {}
    for entry, start in times.start.items():
        if entry in times.leaves:
            continue
        low, high = np.searchsorted(moments, start, "right"), np.searchsorted(moments, times.end[entry])
        if low < high and starts[low][1].layer == starts[high - 1][1].layer:
            found[entry] = Place(starts[low][1].layer, starts[low][1].module + 0.5)
    return found
