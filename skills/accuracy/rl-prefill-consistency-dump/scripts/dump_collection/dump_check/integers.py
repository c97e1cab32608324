"""Recorded vectors of integers: positions by how they count, and the forwards that ids and positions make up."""

from typing import Dict, List, NamedTuple, Optional, Sequence, Tuple

from msprobe_files.units import Record, Unit

from dump_collection.dump_check import embedding, modules
from dump_collection.dump_check.embedding import CODES, MASKS, MOST, counts_up, elements, values_of


class Vector(NamedTuple):
    """A recorded tensor of integers. ``rows``: its leading axis where two axes are longer than one, else 1."""

    record: Record
    values: Tuple[int, ...]
    rows: int


class Forward(NamedTuple):
    """One forward of a unit: the ids that entered its embedding, the positions beside them, and the embedding's output.

    ``masked``: tokens that a recorded attention mask of one value a token leaves out.
    """

    unit: Unit
    ids: Vector
    positions: Optional[Vector]
    output: Record
    masked: int


def forwards_of(unit: Unit) -> Tuple[Forward, ...]:
    """The forwards of a unit, earliest first; empty where no embedding's ids can be read."""
    calls = embedding.calls_of(unit)
    most = modules.layer_calls(modules.layers_of(unit))
    # An embedding may be asked several times in one forward (multi-token prediction); then the layers are not.
    calls = calls[: max(1, most)] if most else calls
    order = {entry: at for at, entry in enumerate(unit.entries)}
    edges = [order[call.entry] for call in calls[1:]] + [len(order)]
    taken = [record for record in unit.records() if record.category in ("input", "kwargs") and record.dtype in MASKS and record.shape]
    found, start = [], 0
    for call, stop in zip(calls, edges):
        ids = _vector(unit, call.ids)
        if ids is not None:
            inside = [record for record in taken if start <= order[record.entry] < stop]
            found.append(Forward(unit, ids, _positions(unit, ids, inside), call.output, _masked(unit, ids, inside)))
        start = stop
    return tuple(found)


def _vector(unit: Unit, record: Record) -> Optional[Vector]:
    sizes = [size for size in record.shape or () if size != 1]
    values = values_of(unit, record) if len(sizes) <= 2 else None
    return Vector(record, values, sizes[0] if len(sizes) == 2 else 1) if values else None


def _positions(unit: Unit, ids: Vector, inside: Sequence[Record]) -> Optional[Vector]:
    """The positions of a forward's tokens, one for each id; None where nothing counts them.

    Several vectors may count as tokens do (slots of a cache): an argument that is called a position comes first, then
    unnamed arguments, then the one that most modules take.
    """
    count = len(ids.values)
    sizes = {count, 3 * count, 4 * count, count // ids.rows}
    fits: List[Vector] = []
    for record in inside:
        fitting = record.dtype in CODES and elements(record) in sizes and elements(record) <= MOST
        vector = _vector(unit, record) if fitting else None
        values = _one_each(vector, ids) if vector is not None else ()
        if len(values) == count and values != ids.values and (_is_called_position(record) or counts_up(values)):
            fits.append(Vector(record, values, ids.rows))
    taken: Dict[Tuple[int, ...], int] = {}
    for vector in fits:
        taken[vector.values] = taken.get(vector.values, 0) + 1

    def rank(vector: Vector) -> Tuple[int, int]:
        called = 0 if _is_called_position(vector.record) else 1 if _argument(vector.record).isdigit() else 2
        return called, -taken[vector.values]

    return min(fits, key=rank, default=None)


def _masked(unit: Unit, ids: Vector, inside: Sequence[Record]) -> int:
    """Zeros of an attention mask with one value a token; a mask of token pairs says it of each token anew and is not read."""
    for record in inside:
        if "attention_mask" in _argument(record) and elements(record) == len(ids.values):
            values = values_of(unit, record) or ()
            if set(values) <= {0, 1}:
                return sum(value == 0 for value in values)
    return 0


def _one_each(vector: Vector, ids: Vector) -> Tuple[int, ...]:
    """A value for each id of what may be positions; other lengths come back as they are."""
    count = len(ids.values)
    if vector.rows in (3, 4) and len(vector.values) == vector.rows * count:
        return vector.values[:count]  # rotation in three directions, perhaps with the plain count first: text counts alike in all
    if ids.rows > 1 and len(vector.values) * ids.rows == count:
        return vector.values * ids.rows  # one row for the whole batch
    return vector.values


def _is_called_position(record: Record) -> bool:
    """By the argument's name; a cache_position counts slots and not tokens."""
    return "position" in _argument(record) and "cache" not in _argument(record)


def _argument(record: Record) -> str:
    return record.suffix.split(".")[-1]
