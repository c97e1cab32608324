"""Which entry makes the value of a joined row, and which columns of that entry's output the row holds."""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from msprobe_files.operands import Operand, OperandError, Source

from dump_analysis import tensors
from dump_analysis.floats import Array
from dump_analysis.layouts import layout_of, table
from dump_analysis.mapping.naming.rowgraph import first_spot, holds
from dump_analysis.mapping.recorded.columns import column_keys
from dump_analysis.mapping.recorded.cuts import cut_op, with_ops
from dump_analysis.mapping.recorded.keys import places_of
from dump_analysis.mapping.recorded.nodes import Node, SideNodes, Spot
from dump_analysis.mapping.recorded.token_rows import matrix_ops, window_ops
from dump_analysis.sides import Place, resolve

_Place = tuple[str, str]
_LOOK_BACK = 12  # outputs before a part, in which its columns are looked for


class Producer(NamedTuple):
    """A leaf entry and the place of its output. ``columns``: those that the row holds, ``width``: how many there are."""

    entry: str
    path: str
    columns: Array
    width: int

    @property
    def whole(self) -> bool:
        return len(self.columns) == self.width and bool((self.columns == np.arange(self.width)).all())


class Taken(NamedTuple):
    """What a row takes of a node: its operand, what makes it, the innermost entry in which it is made, and the place, one of the node's."""

    operand: Operand
    made: Producer | None
    module: str | None
    place: tuple[str, str, str]


def maker_of(side: SideNodes, node: Node) -> str | None:
    """The innermost recorded entry in which a node's value is made; None for inputs of the model, or where it is not known.

    The first entry that returns it; where an entry receives it before that, the parent of that entry.
    """
    return _made_in(side, first_spot(node))


def _made_in(side: SideNodes, spot: Spot) -> str | None:
    return spot.entry if spot.io == "output" else parent_of(side, spot.entry)


def parent_of(side: SideNodes, entry: str) -> str | None:
    """The nearest recorded entry around another, from construct.json."""
    trace = side.records.unit.trace or {}
    seen = {entry}
    above = trace.get(entry)
    while above is not None and above not in seen and above not in side.records.times.start:
        seen.add(above)
        above = trace.get(above)
    return above if above is not None and above in side.records.times.start else None


class Makers:
    """The leaf entries of a side with what they return first, to look up what makes a node. ``preferred``: entries with parameters."""

    def __init__(self, side: SideNodes) -> None:
        self.side = side
        self.preferred = entries_with_parameters(side)
        self._recorded = {(one.spot.entry, one.spot.io, one.spot.path): one for one in side.records.activations}
        self._places: dict[Node, list[_Place]] = {}
        self._wholes: list[tuple[float, str, Node]] = []
        for (entry, io, path), node in side.at.items():
            if io == "output" and entry in side.records.times.leaves and is_first_output(side, entry, path):
                self._places.setdefault(node, []).append((entry, path))
                if "[" not in path:
                    self._wholes.append((side.records.times.end[entry], entry, node))
        self._wholes.sort(key=lambda whole: whole[0])

    def taken(self, node: Node) -> Taken:
        """What a row of a node takes, from the place where it is made."""
        made, spot = self.of(node), first_spot(node)
        place = (made.entry, "output", made.path) if made is not None else (spot.entry, spot.io, spot.path)
        return Taken(self.operand(node, made), made, made.entry if made is not None else _made_in(self.side, spot), place)

    def taken_at(self, node: Node, spot: Spot) -> Taken | None:
        """The like from one of the node's places; None where its rows are not the tokens."""
        place = spot.entry, spot.io, spot.path
        operand = self._as_recorded(place)
        made = self._first(node, [place[::2]]) if place[::2] in self._places.get(node, ()) else None
        return None if operand is None else Taken(operand, made, _made_in(self.side, spot), place)

    def operand(self, node: Node, made: Producer | None) -> Operand:
        """The operand of a node: from the place where it is made rather than from where another entry received it."""
        recorded = Operand(node.sources, node.combine, 1 if node.combine == "cat" else None)
        if node.combine is not None:
            return recorded
        if made is not None:
            whole = self._as_recorded((made.entry, "output", made.path))
            if whole is not None:
                return whole if made.whole else with_ops(whole, cut_op(1, made.columns))
        spot = first_spot(node)
        return self._as_recorded((spot.entry, spot.io, spot.path)) or recorded

    def _as_recorded(self, place: tuple[str, str, str]) -> Operand | None:
        """The joined tokens of what was recorded at a place; None for a part, or where tokens are not its rows."""
        found = self._recorded.get(place)
        steps = matrix_ops(found.tensor.shape, self.side.window) if found is not None else None
        if found is None or steps is None:
            return None
        return Operand([Source(found.record.name, None, None, (*steps, *window_ops(self.side.window)))])

    def of(self, node: Node) -> Producer | None:
        """The entry whose first output holds the columns of a node: as it is, cut out of it, or found in one that ended before."""
        places = self._places.get(node, [])
        with_parameters = [place for place in places if place[0] in self.preferred]
        found = self._first(node, with_parameters)
        if found is None and node.combine is None and first_spot(node).io != "output":
            found = self._among_earlier(node)
        first = first_spot(node)
        return self._first(node, [(first.entry, first.path)]) if found is None and (first.entry, first.path) in places else found

    def _first(self, node: Node, places: Sequence[_Place]) -> Producer | None:
        for entry, path in places:
            whole = self.side.at.get((entry, "output", path.split("[", maxsplit=1)[0]))
            columns = _columns_within(whole, node) if whole is not None else None
            if whole is not None and columns is not None:
                return Producer(entry, path.split("[", maxsplit=1)[0], columns, whole.width)
        return None

    def _among_earlier(self, node: Node) -> Producer | None:
        """A part that no entry returned: cut out of a wider output by code outside any module."""
        before = [whole for whole in self._wholes if whole[0] <= node.time]
        owning = [whole for whole in before if whole[1] in self.preferred]
        for _, entry, whole in [*reversed(owning[-_LOOK_BACK:]), *reversed(before[-_LOOK_BACK:])]:
            columns = _columns_within(whole, node) if holds(whole.sample, node.sample) else None
            if columns is not None:
                path = next(path for made, path in self._places[whole] if made == entry and "[" not in path)
                return Producer(entry, path, columns, whole.width)
        return None


def entries_with_parameters(side: SideNodes) -> set[str]:
    """Entries that recorded parameters, be they empty."""
    entries = side.records.unit.entries
    return {entry for entry, records in entries.items() if any(record.category == "parameters" for record in records)}


def of_operand(side: SideNodes, operand: Operand) -> Producer | None:
    """The entry of an operand that cuts one entry's first output, by the places of the cut; None for any other operand."""
    source = operand.sources[0]
    place = resolve(side.records.side, source)
    if operand.combine is not None or place is None or place.record.category != "output":
        return None
    if not is_first_output(side, place.record.entry, place.record.suffix):
        return None
    found = _columns_of(place, source, side.window.total)
    return None if found is None else Producer(place.record.entry, place.record.suffix, *found)


def is_first_output(side: SideNodes, entry: str, path: str) -> bool:
    """Whether no output of the entry is recorded before this one: second outputs are residuals and the like."""
    suffixes = [record.suffix for record in side.records.unit.entries.get(entry, ()) if record.category == "output"]
    return bool(suffixes) and suffixes[0] == path.split("[", maxsplit=1)[0]


def _columns_of(place: Place, source: Source, total: int) -> tuple[Array, int] | None:
    """The columns that a cut takes of an output with one row a token (or a sequence), and how many columns there are."""
    tensor = tensors.described(place)
    if not tensor.elements or not tensor.contiguous:
        return None
    leading = [math.prod(tensor.shape[:axes]) for axes in range(1, len(tensor.shape))]
    width = tensor.elements // total if total in leading else tensor.shape[-1]
    try:
        layout = layout_of(tensor, source.steps or ())
    except OperandError:
        return None
    offset = layout.base - (tensor.start - tensor.storage_start) // tensor.item_size
    if len(layout.axes) != 2 or not len(layout.axes[0]):
        return None
    return (offset + int(table(layout.axes[0])[0]) + table(layout.axes[1])) % width, width


def _columns_within(whole: Node, part: Node) -> Array | None:
    """For each column of a part the column of the whole that holds it; None where one is not there."""
    if whole is part:
        return np.arange(whole.width)
    found = places_of(column_keys(whole), column_keys(part))
    return None if (found < 0).any() else found
