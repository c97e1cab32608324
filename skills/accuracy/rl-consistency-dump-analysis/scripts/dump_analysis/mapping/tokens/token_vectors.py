"""Recorded vectors of integers: those that may be token ids, those that count positions, and where sequences begin in them."""

from typing import NamedTuple

import numpy as np
from msprobe_files.errors import DumpError

from dump_analysis import floats
from dump_analysis.floats import Array
from dump_analysis.mapping.recorded.nodes import Recorded, SideRecords
from dump_analysis.tensors import Files, cut_stream, elements_of

FEWEST, MOST = 4, 1 << 20  # ids in a vector
_COUNTS_UP = 0.7  # share of steps of one from which a vector is positions and no ids


class Vector(NamedTuple):
    """A distinct recorded vector of integers. ``starts``: where sequences begin in it, rising from 0."""

    recorded: Recorded
    values: Array
    batch: int
    starts: Array

    def sequence_at(self, place: int) -> tuple[int, int]:
        """Start and stop of the sequence that holds a place."""
        nth = int(np.searchsorted(self.starts, place, "right"))
        return int(self.starts[nth - 1]), int(self.starts[nth]) if nth < len(self.starts) else len(self.values)


class Integers(NamedTuple):
    """The vectors of integers that a side recorded, and those among them that may be ids."""

    all: list[Vector]
    ids: list[Vector]


def integers_of(records: SideRecords) -> Integers:
    """The recorded vectors of integers of a unit, or of one forward of it."""
    found = _integers(records)
    return Integers(found, _ids(records, found))


def starts_in(length: int, batch: int, counted: list[Array]) -> Array:
    """Where sequences begin: at each row of a batch, and where the first vector of positions of that length does not rise."""
    first = next((vector for vector in counted if len(vector) == length), np.arange(length))
    resets = np.flatnonzero(np.diff(first) <= 0) + 1
    return np.union1d(np.arange(0, length, length // batch), resets)


def anew(values: Array) -> Array:
    """Which values are not the one before once more, as padding is."""
    return np.append(True, np.diff(values) != 0)


def counts_up(values: Array) -> bool:
    """Whether integers are positions rather than ids; padding repeats one value."""
    steps = np.diff(values)
    moving = steps[steps != 0]
    return len(moving) > 0 and bool((moving == 1).mean() > _COUNTS_UP)


def _integers(records: SideRecords) -> list[Vector]:
    """The distinct vectors of integers among a unit's activations, earliest first; constant ones are masks or lengths."""
    seen: dict[bytes, tuple[Recorded, Array, int]] = {}
    for recorded in sorted(records.activations, key=lambda item: item.spot.time):
        sizes = [size for size in recorded.tensor.shape if size != 1]
        plain = recorded.tensor.dtype in ("int64", "int32") and 1 <= len(sizes) <= 2
        if not plain or not FEWEST <= recorded.tensor.elements <= MOST:
            continue
        values = values_of(recorded)
        if values is not None and len(np.unique(values[:4096])) > 2:
            seen.setdefault(values.tobytes(), (recorded, values, sizes[0] if len(sizes) == 2 else 1))
    counted = [values for _, values, _ in seen.values() if counts_up(values)]
    return [Vector(*item, starts_in(len(item[1]), item[2], counted)) for item in seen.values()]


def _ids(records: SideRecords, vectors: list[Vector]) -> list[Vector]:
    """The vectors that may be ids: those that are no positions; without any, what enters a leaf that holds a matrix (an embedding)."""
    plain = [vector for vector in vectors if not counts_up(vector.values)]
    holders = {parameter.entry for parameter in records.parameters if len(parameter.tensor.shape) == 2}
    return plain or [vector for vector in vectors if vector.recorded.spot.leaf and vector.recorded.spot.entry in holders]


def values_of(recorded: Recorded) -> Array | None:
    """A recorded tensor of integers, flat, as int64; None where it cannot be read."""
    files = Files()
    try:
        stream = cut_stream(files, recorded.tensor, ())
        return floats.values(stream.read(0, elements_of(stream)), recorded.tensor.dtype).astype(np.int64)
    except DumpError:
        return None
    finally:
        files.close()
