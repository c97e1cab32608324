"""The module that turns token ids into vectors, found by what it takes, makes and owns."""

import struct
from typing import Dict, List, NamedTuple, Optional, Sequence, Tuple

from msprobe_files import names, pt_archive
from msprobe_files.errors import DumpError
from msprobe_files.units import Record, Unit, tensor_path

from dump_collection.dump_check import modules

MOST = 1 << 20  # ids in one vector
CODES = {"int64": "q", "int32": "i", "int16": "h", "uint8": "B", "int8": "b"}
MASKS = {**CODES, "bool": "?"}
_COUNTS_UP = 0.7  # share of steps of one from which a vector is positions; padding repeats one value


class Embedding(NamedTuple):
    """One call of the module that turns ids into vectors."""

    entry: str
    ids: Record
    output: Record
    table: Optional[Tuple[int, ...]]


def calls_of(unit: Unit) -> List[Embedding]:
    """The calls of the module that turns ids into vectors: integers in, a float for each, by the module's own matrix.

    Where no module owns a matrix (flat parameters of FSDP1, statistics without weights), the first that does it stands.
    """
    found = [made for entry, records in unit.entries.items() for made in [_as_embedding(entry, records)] if made is not None]
    owners = [made for made in found if made.table is not None]
    first: Dict[Tuple[str, ...], Embedding] = {}
    for made in owners or found[:1]:
        first.setdefault(_module(made.entry), made)
    if not first:
        return []

    def rank(item: Tuple[int, Embedding]) -> Tuple[bool, int, int]:
        at, made = item
        return counts_up(values_of(unit, made.ids) or ()), -(made.table or (0,))[0], at

    _, chosen = min(enumerate(first.values()), key=rank)
    return [made for made in found if _module(made.entry) == _module(chosen.entry)]


def _as_embedding(entry: str, records: Tuple[Record, ...]) -> Optional[Embedding]:
    parsed = names.parse_entry(entry)
    if parsed.kind != "module" or parsed.direction != "forward":
        return None
    taken = [record for record in records if record.category in ("input", "kwargs") and record.shape is not None]
    ids = [record for record in taken if record.dtype in CODES and elements(record) > 0]
    made = [record for record in records if record.category == "output" and record.dtype in modules.FLOATS and record.shape]
    if not ids or not made or any(record.dtype in modules.FLOATS for record in taken):
        return None
    width = (made[0].shape or (0,))[-1]
    tables = [record.shape for record in records if record.category == "parameters" and record.shape and len(record.shape) == 2]
    table = next((shape for shape in tables if shape[1] == width), None)
    rows = elements(made[0]) // width if width else 0
    # With sequence parallelism a rank keeps its part of the rows.
    fits = rows > 0 and elements(ids[0]) % rows == 0
    if not fits or (table is None and rows != elements(ids[0])):
        return None
    return Embedding(entry, ids[0], made[0], table)


def _module(entry: str) -> Tuple[str, ...]:
    parsed = names.parse_entry(entry)
    return parsed.path + (parsed.class_name,)


def values_of(unit: Unit, record: Record) -> Optional[Tuple[int, ...]]:
    """A recorded tensor of integers or truth values, flat; None where it was not saved, cannot be read, or is too large for ids."""
    try:
        tensor = pt_archive.read_header(tensor_path(unit, record))
        if tensor.dtype not in MASKS or tensor.elements > MOST:
            return None
        return struct.unpack("<%d%s" % (tensor.elements, MASKS[tensor.dtype]), pt_archive.read_bytes(tensor))
    except DumpError:
        return None  # the check of the files names it


def counts_up(values: Sequence[int]) -> bool:
    """Whether integers are positions rather than ids."""
    steps = [after - before for before, after in zip(values, values[1:]) if after != before]
    return bool(steps) and sum(step == 1 for step in steps) > _COUNTS_UP * len(steps)


def elements(record: Record) -> int:
    """Elements of a recorded tensor; 1 where its shape is not known."""
    count = 1
    for size in record.shape or ():
        count *= size
    return count
