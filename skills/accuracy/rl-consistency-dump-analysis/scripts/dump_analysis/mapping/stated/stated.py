"""One side by what its dump.json states alone, where no tensors were saved: shapes, dtypes, statistics and digests.

A node's sample is then [numbers, columns], the same in every column: they tell its digest, else its statistics, from others.
Places of one side with equal digests, or equal statistics where all four are known and finite, are taken for one node: a guess, for
statistics never show equality, which serves to find rows and decides nothing of what they compare.
"""

import hashlib
import math
from collections import Counter
from dataclasses import dataclass, field
from math import prod
from typing import NamedTuple

import numpy as np
from msprobe_files import names
from msprobe_files.errors import DumpError
from msprobe_files.operands import Operand, Source
from msprobe_files.pt_archive import ITEM_SIZES, PtTensor
from msprobe_files.units import Record, Unit

from dump_analysis import floats
from dump_analysis.floats import Array
from dump_analysis.mapping.recorded.nodes import Node, Parameter, Recorded, SideNodes, SideRecords, Spot, Window, add
from dump_analysis.mapping.recorded.times import times_of
from dump_analysis.mapping.recorded.token_rows import matrix_ops
from dump_analysis.sides import Side
from dump_analysis.statistics import Facts, facts_of

_ACTIVATIONS = ("input", "kwargs", "output")
_SAVED = 0.5  # of the activations of a side with tensors have a file
_FEWEST = 2  # token ids
_NUMBERS = 8  # of 16 bits, in a sample


class Ids(NamedTuple):
    """The token ids of a side, which one entry takes to look up rows of a table, and the entry."""

    recorded: Recorded
    entry: str


@dataclass(eq=False)
class Stated:
    """One side as nodes that hold statistics.

    ``facts``: node -> what is recorded of it.  ``ids``: None where none are recorded.  ``traced``: construct.json told the
    nesting, else the paths did.
    """

    nodes: SideNodes
    facts: dict[Node, Facts]
    ids: Ids | None
    traced: bool
    other: list[Recorded] = field(default_factory=list)

    @property
    def label(self) -> str:
        return self.nodes.records.side.label


def without_files(side: Side) -> bool:
    """Whether a side saved no tensors, or but a few of many, and statistics or digests of all."""
    records = [record for unit in side.units for record in unit.records() if record.category in _ACTIVATIONS and _is_usable(record)]
    saved = sum(record.file is not None for record in records)
    return bool(records) and saved < _SAVED * len(records)


def _is_usable(record: Record) -> bool:
    return record.dtype in ITEM_SIZES and record.shape is not None and 0 not in record.shape


def stated(side: Side) -> Stated:
    """A side of one unit by what it states. Raises DumpError where it has none or several."""
    found = [unit for unit in side.units if unit.entries]
    if len(found) != 1:
        shown = ", ".join(f"step{unit.place.step}/rank{unit.place.rank}" for unit in found) or "none"
        why = f"the {side.label} dump holds {len(found)} units ({shown}), and without tensors nothing tells how they belong together"
        raise DumpError(f"Cannot propose a mapping: {why}. Hand one folder with dump.json.")
    unit = found[0]
    records = _read(side, unit if unit.trace else unit._replace(trace=_trace_by_paths(unit)))
    ids = _ids_of(records)
    window = _window(records, ids)
    nodes = SideNodes(records, window, np.arange(0), Operand([Source("", None, None, ())]), None)
    made = Stated(nodes, {}, ids, bool(unit.trace))
    for recorded in records.activations:
        if floats.FORMATS[recorded.tensor.dtype].kind == "float":
            _add(made, recorded)
        else:
            made.other.append(recorded)
    return made


# --- records ---


def _read(side: Side, unit: Unit) -> SideRecords:
    times = times_of(unit)
    activations: list[Recorded] = []
    parameters: list[Parameter] = []
    for entry in sorted(times.start, key=times.start.__getitem__):
        for record in unit.entries[entry]:
            if not _is_usable(record):
                continue
            if record.category == "parameters":
                parameters.append(Parameter(entry, record.suffix, record, _header(record)))
            elif record.category in _ACTIVATIONS:
                time = times.end[entry] if record.category == "output" else times.start[entry]
                spot = Spot(time, entry, record.category, record.suffix, entry in times.leaves)
                activations.append(Recorded(spot, record, _header(record)))
    return SideRecords(side, unit, times, activations, parameters)


def _header(record: Record) -> PtTensor:
    """What the header of its file would say of dtype and shape, had one been saved."""
    shape = record.shape or ()
    strides = tuple(prod(shape[axis + 1 :]) for axis in range(len(shape)))
    return PtTensor("", record.dtype or "", shape, strides, 0, 0, 0, "")


def _trace_by_paths(unit: Unit) -> dict[str, str | None]:
    """Entry -> its parent, in the order of starts, from paths and the order of ends: a module's path begins with its parent's."""
    by_place: dict[tuple[tuple[str, ...], int], str] = {}
    for entry in unit.entries:
        parsed = names.parse_entry(entry)
        if parsed.kind == "module" and parsed.direction == "forward":
            by_place[parsed.path, parsed.call] = entry
    parents: dict[str, str | None] = {}
    after: str | None = None
    for (path, call), entry in reversed(by_place.items()):
        above = (by_place.get((path[:stop], call)) for stop in range(len(path) - 1, 0, -1))
        parents[entry] = next((one for one in above if one is not None), None)
        if parents[entry] is None and any((path[:stop], 0) in by_place for stop in range(1, len(path))):
            parents[entry] = parents.get(after or "")  # a module that several others share stands beside what ended next
        after = entry
    children: dict[str | None, list[str]] = {}
    for entry in by_place.values():
        children.setdefault(parents[entry], []).append(entry)
    ordered: dict[str, str | None] = {}
    waiting = list(reversed(children.get(None, [])))
    while waiting:
        entry = waiting.pop()
        ordered[entry] = parents[entry]
        waiting += reversed(children.get(entry, []))
    return ordered


# --- tokens ---


def _ids_of(records: SideRecords) -> Ids | None:
    """The first integers of which a leaf makes one row of floats each."""
    outputs = {one.spot.entry: one for one in records.activations if one.spot.io == "output" and _is_float(one)}
    for one in sorted(records.activations, key=lambda recorded: recorded.spot.time):
        made = outputs.get(one.spot.entry)
        if one.spot.io == "output" or not one.spot.leaf or made is None or one.tensor.dtype not in ("int64", "int32"):
            continue
        count = one.tensor.elements
        if count >= _FEWEST and made.tensor.elements > count and count in (made.tensor.shape[0], prod(made.tensor.shape[:2])):
            return Ids(one, one.spot.entry)
    return None


def _is_float(recorded: Recorded) -> bool:
    return floats.FORMATS[recorded.tensor.dtype].kind == "float"


def _window(records: SideRecords, ids: Ids | None) -> Window:
    """All token rows of a side: as many as its ids, else as most outputs of modules have."""
    if ids is not None:
        sizes = [size for size in ids.recorded.tensor.shape if size != 1]
        total = ids.recorded.tensor.elements
        return Window(0, total, total, sizes[0] if len(sizes) == 2 else 1)
    rows = Counter(prod(one.tensor.shape[:-1]) for one in records.activations if one.spot.io == "output" and _is_float(one))
    total = rows.most_common(1)[0][0] if rows else 1
    return Window(0, total, total, 1)


# --- nodes ---


def _add(made: Stated, recorded: Recorded) -> None:
    facts = facts_of(recorded.record)
    steps = matrix_ops(recorded.tensor.shape, made.nodes.window)
    if steps is None:
        made.nodes.tails += [recorded] if recorded.spot.io == "output" else []
        return
    sample = _sample(recorded, facts, recorded.tensor.elements // made.nodes.window.total)
    source = Source(recorded.record.name, None, None, steps)
    node = add(made.nodes, Node(sample, [source], None, "one", [recorded.spot], recorded.spot.time))
    if node is not None:
        made.facts.setdefault(node, facts)


def _sample(recorded: Recorded, facts: Facts, width: int) -> Array:
    """[numbers, columns]: a view of one column of whole numbers that float32 holds; zeros for a tensor of zeros."""
    key = _told_by(facts) or (recorded.spot.entry, recorded.spot.io, recorded.spot.path)
    zero = key == (0.0, 0.0, 0.0, 0.0)
    digest = hashlib.blake2b(repr(key).encode(), digest_size=2 * _NUMBERS).digest()
    column = np.zeros(_NUMBERS, np.float32) if zero else np.frombuffer(digest, "<u2").astype(np.float32)
    return np.broadcast_to(column[:, None], (_NUMBERS, width))


def _told_by(facts: Facts) -> tuple[float | None, ...] | str | None:
    """What tells the values of a tensor from others; None where too little is recorded."""
    if facts.digest is not None:
        return facts.digest
    complete = all(number is not None and math.isfinite(number) for number in facts.numbers)
    return tuple(number + 0.0 for number in facts.numbers if number is not None) if complete else None
