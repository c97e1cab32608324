"""What a unit recorded, opened: headers of all tensors of its forward entries, and the nodes of its float activations."""

import numpy as np
from msprobe_files.errors import DumpError
from msprobe_files.operands import Operand, Source
from msprobe_files.units import Record

from dump_analysis import floats
from dump_analysis.floats import Array
from dump_analysis.mapping.recorded.nodes import Node, Parameter, Recorded, SideNodes, SideRecords, Spot, Window, add
from dump_analysis.mapping.recorded.times import Times, times_of
from dump_analysis.mapping.recorded.token_rows import matrix_ops, rows_of, window_ops
from dump_analysis.sides import Place, Side
from dump_analysis.tensors import Files, Tensor, described

_ACTIVATIONS = ("input", "kwargs", "output")


def read(side: Side) -> SideRecords:
    """Open a side of one unit. Raises DumpError where it has none or several."""
    found = [unit for unit in side.units if unit.entries]
    if len(found) != 1:
        shown = ", ".join(f"step{unit.place.step}/rank{unit.place.rank}" for unit in found) or "none"
        why = f"the {side.label} dump holds {len(found)} units with tensors ({shown})"
        raise DumpError(f"Cannot propose a mapping: {why}. Hand one folder with dump.json.")
    unit = found[0]
    times = times_of(unit)
    places = {name: next(place for place in found if place.unit is unit) for name, found in side.by_name.items()}
    activations: list[Recorded] = []
    parameters: list[Parameter] = []
    for entry in sorted(times.start, key=times.start.__getitem__):
        for record in unit.entries[entry]:
            tensor = _opened(places[record.name])
            if tensor is None:
                continue
            if record.category == "parameters":
                parameters.append(Parameter(entry, record.suffix, record, tensor))
            elif record.category in _ACTIVATIONS:
                activations.append(Recorded(_spot(times, record), record, tensor))
    if not activations and not parameters:
        why = f"the {side.label} dump holds no files of tensors of a forward"
        raise DumpError(f'Cannot propose a mapping: {why}. Dump with task "tensor", or hand a mapping.')
    return SideRecords(side, unit, times, activations, parameters)


def _opened(place: Place) -> Tensor | None:
    if place.record.file is None:
        return None
    try:
        tensor = described(place)
    except DumpError:
        return None  # the comparison names the file and says why it cannot be read
    return tensor if tensor.elements else None


def _spot(times: Times, record: Record) -> Spot:
    time = times.end[record.entry] if record.category == "output" else times.start[record.entry]
    return Spot(time, record.entry, record.category, record.suffix, record.entry in times.leaves)


def nodes_of(records: SideRecords, window: Window, picked: Array, ids: Operand | None, positions: Operand | None) -> SideNodes:
    """The float activations of a unit as nodes, sampled at the joined tokens ``picked``."""
    side = SideNodes(records, window, picked, ids, positions)
    files = Files()
    try:
        for recorded in records.activations:
            if floats.FORMATS[recorded.tensor.dtype].kind == "float":
                _add_recorded(side, recorded, files)
    finally:
        files.close()
    return side


def _add_recorded(side: SideNodes, recorded: Recorded, files: Files) -> None:
    steps = matrix_ops(recorded.tensor.shape, side.window)
    if steps is None:
        if recorded.spot.io == "output":
            side.tails.append(recorded)
        return
    try:
        sample = rows_of(files, recorded.tensor, steps, side.window.rows[side.picked])
    except DumpError:
        return  # the comparison says what is wrong with the file
    source = Source(recorded.record.name, None, None, steps + window_ops(side.window))
    add(side, Node(sample, [source], None, "one", [recorded.spot], recorded.spot.time))


def picked_tokens(agree: Array, joined: int, most: int) -> Array:
    """Numbers of the joined tokens to sample: a seeded choice of those whose ids agree, and always the last one."""
    rows = agree[agree < joined - 1]
    if len(rows) >= most:
        rows = np.sort(np.random.default_rng(0).choice(rows, most - 1, replace=False))
    return np.append(rows, joined - 1)
