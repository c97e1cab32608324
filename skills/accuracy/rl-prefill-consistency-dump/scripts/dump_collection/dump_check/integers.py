"""Recorded vectors of integers: token ids by what they enter, positions by how they count, and the forwards they make up."""

import struct
from typing import Dict, List, NamedTuple, Optional, Sequence, Tuple

from msprobe_files import names, pt_archive
from msprobe_files.errors import DumpError
from msprobe_files.units import Record, Unit, tensor_path

from dump_collection.dump_check import modules

MOST = 1 << 20  # ids in one vector
_CODES = {"int64": "q", "int32": "i", "int16": "h", "uint8": "B", "int8": "b"}
_COUNTS_UP = 0.7  # share of steps of one from which a vector is positions; padding repeats one value


class Vector(NamedTuple):
    """A recorded tensor of integers. ``rows``: its leading axis where two axes are longer than one, else 1."""

    record: Record
    values: Tuple[int, ...]
    rows: int


class Forward(NamedTuple):
    """One forward of a unit: the ids that entered its embedding, the positions beside them, and the embedding's output.

    ``table``: shape of the embedding's matrix, None where it was not recorded with the module.
    """

    unit: Unit
    ids: Vector
    positions: Optional[Vector]
    output: Record
    table: Optional[Tuple[int, ...]]


class _Embedding(NamedTuple):
    entry: str
    ids: Record
    output: Record
    table: Optional[Tuple[int, ...]]


def forwards_of(unit: Unit) -> Tuple[Forward, ...]:
    """The forwards of a unit, earliest first; empty where no embedding's ids can be read."""
    calls = _embedding_calls(unit)
    most = modules.layer_calls(modules.layers_of(unit))
    # An embedding may be asked several times in one forward (multi-token prediction); then the layers are not.
    calls = calls[: max(1, most)] if most else calls
    order = {entry: at for at, entry in enumerate(unit.entries)}
    edges = [order[call.entry] for call in calls[1:]] + [len(order)]
    vectors = [vector for vector in _vectors(unit) if vector.record.category in ("input", "kwargs")]
    found, start = [], 0
    for call, stop in zip(calls, edges):
        ids = next((vector for vector in vectors if vector.record.name == call.ids.name), None)
        if ids is not None:
            inside = [vector for vector in vectors if start <= order[vector.record.entry] < stop]
            found.append(Forward(unit, ids, _positions(ids, inside), call.output, call.table))
        start = stop
    return tuple(found)


def embedding_calls(unit: Unit) -> int:
    """How often the embedding was called, whether or not its ids were saved."""
    return len(_embedding_calls(unit))


def table_of(unit: Unit) -> Optional[Tuple[int, ...]]:
    """Shape of the embedding's matrix, None where none was recorded."""
    calls = _embedding_calls(unit)
    return calls[0].table if calls else None


def values_of(unit: Unit, record: Record) -> Optional[Tuple[int, ...]]:
    """A recorded tensor of integers, flat; None where it was not saved, cannot be read, or is too large for ids."""
    try:
        tensor = pt_archive.read_header(tensor_path(unit, record))
        if tensor.dtype not in _CODES or tensor.elements > MOST:
            return None
        return struct.unpack("<%d%s" % (tensor.elements, _CODES[tensor.dtype]), pt_archive.read_bytes(tensor))
    except DumpError:
        return None  # the check of the files names it


def counts_up(values: Sequence[int]) -> bool:
    """Whether integers are positions rather than ids."""
    steps = [after - before for before, after in zip(values, values[1:]) if after != before]
    return bool(steps) and sum(step == 1 for step in steps) > _COUNTS_UP * len(steps)


# --- the embedding ---


def _embedding_calls(unit: Unit) -> List[_Embedding]:
    """The calls of the module that turns ids into vectors: integers in, a float for each, by the module's own matrix.

    Where no module owns a matrix (flat parameters of FSDP1, statistics without weights), the first that does it stands.
    """
    found = [made for entry, records in unit.entries.items() for made in [_as_embedding(entry, records)] if made is not None]
    owners = [made for made in found if made.table is not None]
    first: Dict[Tuple[str, ...], _Embedding] = {}
    for made in owners or found[:1]:
        first.setdefault(_module(made.entry), made)
    if not first:
        return []

    def rank(item: Tuple[int, _Embedding]) -> Tuple[bool, int, int]:
        at, made = item
        return counts_up(values_of(unit, made.ids) or ()), -(made.table or (0,))[0], at

    _, chosen = min(enumerate(first.values()), key=rank)
    return [made for made in found if _module(made.entry) == _module(chosen.entry)]


def _as_embedding(entry: str, records: Tuple[Record, ...]) -> Optional[_Embedding]:
    parsed = names.parse_entry(entry)
    if parsed.kind != "module" or parsed.direction != "forward":
        return None
    taken = [record for record in records if record.category in ("input", "kwargs") and record.shape is not None]
    ids = [record for record in taken if record.dtype in _CODES and _elements(record) > 0]
    made = [record for record in records if record.category == "output" and record.dtype in modules.FLOATS and record.shape]
    if not ids or not made or any(record.dtype in modules.FLOATS for record in taken):
        return None
    width = (made[0].shape or (0,))[-1]
    tables = [record.shape for record in records if record.category == "parameters" and record.shape and len(record.shape) == 2]
    table = next((shape for shape in tables if shape[1] == width), None)
    rows = _elements(made[0]) // width if width else 0
    # With sequence parallelism a rank keeps its part of the rows.
    fits = rows > 0 and _elements(ids[0]) % rows == 0
    if not fits or (table is None and rows != _elements(ids[0])):
        return None
    return _Embedding(entry, ids[0], made[0], table)


def _module(entry: str) -> Tuple[str, ...]:
    parsed = names.parse_entry(entry)
    return parsed.path + (parsed.class_name,)


def _elements(record: Record) -> int:
    count = 1
    for size in record.shape or ():
        count *= size
    return count


# --- vectors ---


def _vectors(unit: Unit) -> List[Vector]:
    """Every recorded vector of integers, in the order of dump.json."""
    found = []
    for record in unit.records():
        if record.dtype not in _CODES or record.shape is None or not 0 < _elements(record) <= MOST:
            continue
        sizes = [size for size in record.shape if size != 1]
        values = values_of(unit, record) if len(sizes) <= 2 else None
        if values:
            found.append(Vector(record, values, sizes[0] if len(sizes) == 2 else 1))
    return found


def _positions(ids: Vector, inside: Sequence[Vector]) -> Optional[Vector]:
    """The positions of a forward's tokens, one for each id; None where nothing counts them.

    Several vectors may count as tokens do (slots of a cache): an argument that is called a position comes first, then
    unnamed arguments, then the one that most modules take.
    """
    count = len(ids.values)
    fits: List[Vector] = []
    for vector in inside:
        values = vector.values
        if vector.rows == 3 and len(values) == 3 * count:
            values = values[:count]  # rotation in three directions: text counts alike in all
        elif ids.rows > 1 and len(values) * ids.rows == count:
            values = values * ids.rows  # one row for the whole batch
        named = "position" in _argument(vector.record) and "cache" not in _argument(vector.record)
        if len(values) == count and vector.values != ids.values and (named or counts_up(values)):
            fits.append(Vector(vector.record, values, ids.rows))
    taken: Dict[Tuple[int, ...], int] = {}
    for vector in fits:
        taken[vector.values] = taken.get(vector.values, 0) + 1

    def rank(vector: Vector) -> Tuple[int, int]:
        argument = _argument(vector.record)
        called = 0 if "position" in argument and "cache" not in argument else 1 if argument.isdigit() else 2
        return called, -taken[vector.values]

    return min(fits, key=rank, default=None)


def _argument(record: Record) -> str:
    return record.suffix.split(".")[-1]
