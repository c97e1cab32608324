"""Inputs recorded after the call: a module that works in place shows its outputs there, and recomputing from them fails.

The true inputs are what other modules handed on: the two values of which the module's second output is the sum, or a value before the
module from which its output follows. Before 26.2 msprobe took the inputs of a module after its call.
"""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from msprobe_files import release
from msprobe_files.errors import DumpError
from msprobe_files.operands import Operand

from dump_analysis.artefacts.common import Worded
from dump_analysis.mapping.recorded.nodes import Node, Spot
from dump_analysis.replay.flow import Flow, same_tensor
from dump_analysis.replay.one_side import Replayed, Unreplayed, replay
from dump_analysis.replay.origins import is_sum
from dump_analysis.replay.recorded import CannotReplay, Matrix, beside
from dump_analysis.sides import Place, Side
from dump_analysis.tensors import described
from dump_analysis.wording import word

_TRIED = 8  # values before a module, of which one may be its input


class Anew(NamedTuple):
    """A module replayed with its true inputs, and the sentence that says so; or not at all, and why."""

    replayed: Replayed | Unreplayed
    told: tuple[Worded, ...]


def anew(flow: Flow | None, side: Side, operand: Operand, one: Replayed, stated: Mapping[str, float]) -> Anew | None:
    """What a record that nothing explains is worth if its inputs were overwritten; None where they were not. ``operand``: its value's."""
    if one.work.inputs_are == release.PRE_CALL or not _is_overwritten(side, one):
        return None
    found = _with_true_inputs(flow, operand, one, stated) if flow is not None else None
    return found or Anew(Unreplayed(one.work.entry, word("replay_overwritten", side=side.label, entry=one.work.entry)), ())


def _with_true_inputs(flow: Flow, operand: Operand, one: Replayed, stated: Mapping[str, float]) -> Anew | None:
    for nodes, proven in _true_inputs(flow, operand, one):
        try:
            inputs = tuple(_shaped(flow.matrix(node), like=one.work.inputs[0]) for node in nodes)
            found = replay(one.work._replace(inputs=inputs), stated)
        except CannotReplay:
            continue
        if found.explained or proven:
            names = [name for node in nodes for name in flow.names_of(node)]
            return Anew(found, (word("replay_true_inputs", side=flow.label, entry=one.work.entry, names=names),))
    return None


def _is_overwritten(side: Side, one: Replayed) -> bool:
    """Whether an input is bit for bit an output of the same module."""
    for made in one.work.inputs:
        for place in side.by_name.get(made.name, ()):
            records = place.unit.entries.get(place.record.entry, ())
            outputs = [beside(side, place, record) for record in records if record.category == "output" and record.file is not None]
            own = place.record.entry == one.work.entry and place.record.category != "output"
            if own and any(_same(place, output) for output in outputs):
                return True
    return False


def _same(one: Place, other: Place) -> bool:
    try:
        return same_tensor(described(one), described(other))
    except DumpError:
        return False  # the comparison says what is wrong with the file


def _true_inputs(flow: Flow, operand: Operand, one: Replayed) -> Iterator[tuple[tuple[Node, ...], bool]]:
    """What may have been the inputs, and whether that is proven: the addends of an output that is a sum, else a value of the right size
    that was there, of which the output must follow.
    """
    entries = {place.record.entry for place in flow.places_of(operand)}
    nodes = [node for (entry, io, _), node in flow.nodes.at.items() if entry in entries and io == "output"]
    if len(one.work.inputs) > 1:
        for node in nodes:
            addends = flow.nodes.sums.get(id(node), ())
            if addends and is_sum(flow, node, addends):
                yield addends, True
        return
    size, rows = one.work.inputs[0].rows * one.work.inputs[0].columns, len(flow.nodes.window.rows)
    start = min(flow.nodes.records.times.start[entry] for entry in entries)
    before = [node for node in flow.before(Spot(start, "", "input", "", True)) if node.width * rows == size and node not in nodes]
    yield from (((node,), False) for node in before[:_TRIED])


def _shaped(made: Matrix, like: Matrix) -> Matrix:
    """The same elements in rows as long as those of another. Raises CannotReplay where they are not as many."""
    if made.rows * made.columns != like.rows * like.columns:
        raise CannotReplay(word("replay_no_input", entry=like.name))
    return made._replace(rows=like.rows, columns=like.columns)
