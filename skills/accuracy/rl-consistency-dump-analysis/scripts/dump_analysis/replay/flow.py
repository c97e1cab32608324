"""The recorded tensors of one side as values that pass from module to module: where edges are looked for.

The values are the mapping's nodes (`mapping.recorded`) of the joined tokens; of each a few token rows are held, and all of them are read
where something is proven.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from msprobe_files import release
from msprobe_files.errors import DumpError
from msprobe_files.operands import Operand, Source

from dump_analysis import tensors
from dump_analysis.floats import Array
from dump_analysis.joined_tensors import JoinedTensor
from dump_analysis.mapping.naming.rowgraph import first_spot
from dump_analysis.mapping.recorded import dataflow
from dump_analysis.mapping.recorded.nodes import Node, Recorded, SideNodes, SideRecords, Spot, Window, by_time
from dump_analysis.mapping.recorded.records import nodes_of, picked_tokens, read
from dump_analysis.mapping.recorded.token_rows import matrix_ops, window_ops
from dump_analysis.mapping.tokens.forwards import one_forward
from dump_analysis.replay.recorded import Matrix, value_of
from dump_analysis.sides import Place, Side, resolve
from dump_analysis.tensors import Files, Tensor

_SAMPLE = 8  # token rows of each tensor that are held
_MOST_APART = 24  # further rows
_BLOCK = 1 << 20  # float64 elements of one array: 8 MiB
Where = tuple[str, str, str]  # entry, io, path


class Flow(NamedTuple):
    """One side. ``ordered``: its values as they come to be.

    ``overwritten``: inputs that were recorded after their module had put its outputs there, and so are none of its values.
    """

    nodes: SideNodes
    recorded: Mapping[Where, Recorded]
    ordered: Sequence[Node]
    files: Files
    overwritten: Sequence[Recorded]

    @property
    def label(self) -> str:
        return self.nodes.records.side.label

    def node_at(self, spot: Spot) -> Node | None:
        """The value recorded at a place; None where it is nought, or its rows are no tokens."""
        return self.nodes.at.get((spot.entry, spot.io, spot.path))

    def dtype_of(self, node: Node) -> str:
        """The number format in which a value was first recorded."""
        places = self._side.by_name.get(node.sources[0].name, ())
        return tensors.described(places[0]).dtype if places else ""

    def matrix(self, node: Node) -> Matrix:
        """A value, all joined tokens, from where it was recorded first. Raises CannotReplay."""
        found = self.first(node) if node.combine is None else None
        if found is not None:
            return self.matrix_at(found)
        return value_of(self.files, self._side, Operand(node.sources, node.combine, 1 if node.combine == "cat" else None))

    def matrix_at(self, recorded: Recorded, *, joined: bool = True) -> Matrix:
        """What was recorded at one place: the joined tokens (or all), or all rows where they are no tokens. Raises CannotReplay."""
        steps = matrix_ops(recorded.tensor.shape, self.nodes.window) or ()
        cut = window_ops(self.nodes.window) if joined and self.node_at(recorded.spot) is not None else ()
        return value_of(self.files, self._side, Operand([Source(recorded.record.name, None, None, (*steps, *cut))]))

    def first(self, node: Node) -> Recorded | None:
        """Where a value was recorded first; None for one that was recorded nowhere."""
        spot = first_spot(node)
        return self.recorded.get((spot.entry, spot.io, spot.path))

    def names_of(self, node: Node) -> list[str]:
        """The tensor that first held a value, as the units call it; of a sum that was recorded nowhere its addends."""
        if node.combine is not None:
            return [name for source in node.sources for name in self.recorded_as(source.name)]
        found = self.first(node)
        return self.recorded_as(found.record.name if found is not None else node.sources[0].name)

    def recorded_as(self, name: str) -> list[str]:
        """What the units call a tensor."""
        made = [place.tensor for place in self._side.by_name.get(name, ())]
        parts = [part.source.name for tensor in made if isinstance(tensor, JoinedTensor) for part in tensor.parts]
        return list(dict.fromkeys(parts)) or [name]

    def places_of(self, operand: Operand) -> list[Place]:
        """Where this side holds the tensors of a mapping row's operand; none that it lacks."""
        found = [resolve(self._side, Source(name, None, None, ())) for name in dict.fromkeys(one.name for one in operand.sources)]
        return [place for place in found if place is not None]

    def nodes_in(self, operand: Operand) -> list[Node]:
        """The values that the tensors of a mapping row's operand hold."""
        at = [self.nodes.at.get((one.record.entry, one.record.category, one.record.suffix)) for one in self.places_of(operand)]
        return [node for node in at if node is not None]

    def before(self, spot: Spot) -> list[Node]:
        """The values that exist before one is recorded at a place, the latest first; what a module returns may be its last one's output."""
        return [node for node in reversed(self.ordered) if node.time < spot.time or (node.time == spot.time and self._inside(node, spot))]

    def _inside(self, node: Node, spot: Spot) -> bool:
        first = first_spot(node)
        return spot.io == "output" and not spot.leaf and first.leaf and first.io == "output"

    @property
    def _side(self) -> Side:
        return self.nodes.records.side


def flows_of(train: Side, infer: Side) -> dict[str, Flow]:
    """Both sides, of one unit each. Raises DumpError where one has several, or no files of tensors, or where no tokens join them."""
    left, right, tokens = one_forward(read(train), read(infer))
    return {"train": _flow(left, tokens.train), "infer": _flow(right, tokens.infer)}


def _flow(records: SideRecords, window: Window) -> Flow:
    told = release.inputs_are(records.unit)
    overwritten = _overwritten(records) if told != release.PRE_CALL else []
    # Where inputs were taken after the call, those of a module with modules inside may have been overwritten by these.
    late = [one for one in records.activations if told == release.POST_CALL and one.spot.io != "output" and not one.spot.leaf]
    left_out = {one.record.name for one in [*overwritten, *late]}
    kept = [one for one in records.activations if one.record.name not in left_out]
    records = records._replace(activations=kept)
    recorded = {(one.spot.entry, one.spot.io, one.spot.path): one for one in kept}
    joined = len(window.rows)
    picked = picked_tokens(np.arange(joined), joined, _SAMPLE)
    flow = Flow(nodes_of(records, window, picked, None, None), recorded, (), Files(), overwritten)
    further = _told_apart(flow) if joined > len(picked) else picked[:0]
    nodes = nodes_of(records, window, np.union1d(picked, further), None, None) if len(further) else flow.nodes
    dataflow.find_sums(nodes)
    return flow._replace(nodes=nodes, ordered=by_time(nodes))


def _told_apart(flow: Flow) -> Array:
    """Tokens in which places differ that hold one value as far as the sample tells; so many that a new sample tells them apart."""
    apart = np.zeros(len(flow.nodes.window.rows), bool)
    for node in flow.nodes.nodes:
        first = flow.first(node)
        for spot in node.spots:
            other = flow.recorded.get((spot.entry, spot.io, spot.path))
            if first is not None and other is not None and other is not first:
                apart |= _rows_apart(flow.matrix_at(first), flow.matrix_at(other))
    return np.flatnonzero(apart)[:_MOST_APART]


def _rows_apart(one: Matrix, other: Matrix) -> Array:
    found = np.zeros(one.rows, bool)
    if one.dtype == other.dtype and tensors.same(one.stream, other.stream):
        return found
    step = max(1, _BLOCK // max(1, one.columns))
    for start in range(0, one.rows, step):
        stop = min(one.rows, start + step)
        left, right = one.read(start, stop), other.read(start, stop)
        found[start:stop] = ~((left == right) | (np.isnan(left) & np.isnan(right))).all(1)
    return found


# --- inputs recorded after the call ---


def _overwritten(records: SideRecords) -> list[Recorded]:
    """Inputs of modules that own parameters that are bit for bit an output of the same module."""
    owners = {parameter.entry for parameter in records.parameters}
    outputs: dict[str, list[Recorded]] = {}
    for one in records.activations:
        if one.spot.io == "output" and one.spot.entry in owners:
            outputs.setdefault(one.spot.entry, []).append(one)
    inputs = [one for one in records.activations if one.spot.io != "output"]
    return [one for one in inputs if any(same_tensor(one.tensor, made.tensor) for made in outputs.get(one.spot.entry, ()))]


def same_tensor(one: Tensor, other: Tensor) -> bool:
    """Whether two recorded tensors are the same in shape, format and every element."""
    if (one.shape, one.dtype) != (other.shape, other.dtype):
        return False
    try:
        return tensors.same_file(one, other)
    except DumpError:
        return False  # the comparison says what is wrong with the file
