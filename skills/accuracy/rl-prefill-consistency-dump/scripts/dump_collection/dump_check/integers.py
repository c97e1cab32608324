"""Recorded vectors of integers: token ids by what they enter, positions by how they count, and the forwards they make up."""

from typing import Dict, List, NamedTuple, Optional, Sequence, Tuple

from msprobe_files.units import Record, Unit

from dump_collection.dump_check import embedding, modules
from dump_collection.dump_check.embedding import CODES, MOST, counts_up, elements, values_of


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


def forwards_of(unit: Unit) -> Tuple[Forward, ...]:
    """The forwards of a unit, earliest first; empty where no embedding's ids can be read."""
    calls = embedding.calls_of(unit)
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


# --- vectors ---


def _vectors(unit: Unit) -> List[Vector]:
    """Every recorded vector of integers, in the order of dump.json."""
    found = []
    for record in unit.records():
        if record.dtype not in CODES or record.shape is None or not 0 < elements(record) <= MOST:
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
