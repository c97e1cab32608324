"""The values of one side, told apart by their bytes: every boundary's, and every argument that an override could replace."""

import hashlib
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from msprobe_files.errors import DumpError
from msprobe_files.operands import Operand, OperandError
from msprobe_files.pt_archive import PtTensor

from dump_analysis import floats, tensors
from dump_analysis.artefacts.common import SideName
from dump_analysis.artefacts.semantic_mapping import Row
from dump_analysis.floats import Array
from dump_analysis.mapping.recorded.times import Times, times_of
from dump_analysis.pairs import Found, Pair, find_pairs
from dump_analysis.sides import Place, Side
from dump_analysis.tensors import BLOCK_BYTES, Files, Stream, cut_stream, elements_of, stream_of

Digest = tuple[str, int, bytes]  # dtype, elements, and a digest of their bytes in order


class Argument(NamedTuple):
    """A float argument of a call that is itself a tensor: what ``load`` of msprobe replaces. ``label``: ``input.0``, ``kwargs.x``."""

    place: Place
    tensor: PtTensor
    digest: Digest

    @property
    def entry(self) -> str:
        return self.place.record.entry

    @property
    def label(self) -> str:
        return f"{self.place.record.category}.{self.place.record.suffix}"


class Mapped(NamedTuple):
    """A compared boundary: its row, what each side holds, the target's value told by its bytes, and when the target made it."""

    pair: Pair
    digest: Digest | None
    time: float

    @property
    def boundary(self) -> str:
        return self.pair.row.boundary

    @property
    def order(self) -> int:
        return self.pair.row.order


def of_side(pair: Pair, label: str) -> tuple[Operand, Found]:
    """One side of a mapping row: its operand and its tensors."""
    return (pair.row.train, pair.train) if label == "train" else (pair.row.infer, pair.infer)


def arguments(side: Side, files: Files) -> list[Argument]:
    """Every replaceable argument of a side's forward calls, unit by unit, in the order in which the calls started."""
    found: list[Argument] = []
    for unit in side.units:
        times = times_of(unit)
        for entry in sorted(times.start, key=times.start.__getitem__):
            for record in unit.entries[entry]:
                if _replaceable(record.category, record.suffix):
                    found += _argument(Place(unit, record), files)
    return found


def _replaceable(category: str, suffix: str) -> bool:
    """Whether a record is an argument itself, not nested in another (msprobe 26.2.0, `TensorLoader`)."""
    return (category == "input" and suffix.isdigit()) or (category == "kwargs" and "." not in suffix)


def _argument(place: Place, files: Files) -> Iterator[Argument]:
    if place.record.file is None or place.record.refused is not None:
        return
    try:
        tensor = tensors.header(place)
        if tensor.elements and floats.FORMATS[tensor.dtype].kind == "float":
            yield Argument(place, tensor, digest_of(cut_stream(files, tensor, ())))
    except DumpError:
        return  # the comparison names the file and says why it cannot be read


def mapped(rows: Sequence[Row], train: Side, infer: Side, target: SideName, files: Files) -> list[Mapped]:
    """The boundaries that both sides hold, in the order of the mapping."""
    times = {id(unit): times_of(unit) for unit in (train if target == "train" else infer).units}
    found = []
    for pair in find_pairs(rows, train, infer)[0]:
        operand, there = of_side(pair, target)
        try:
            digest = digest_of(stream_of(files, operand, there.tensors))
        except (OperandError, DumpError):
            digest = None  # the comparison says what is wrong with it
        found.append(Mapped(pair, digest, max(made_at(place, times[id(place.unit)]) for place in there.places)))
    return sorted(found, key=lambda one: one.order)


def made_at(place: Place, times: Times) -> float:
    """When a recorded tensor exists: an output when its call ends, an argument when its call starts."""
    record = place.record
    return (times.end if record.category == "output" else times.start)[record.entry]


def digest_of(stream: Stream) -> Digest:
    """What tells a value from others: its format, and its elements' bytes in their order, whatever its shape."""
    count = elements_of(stream)
    step = max(1, BLOCK_BYTES // floats.FORMATS[stream.dtype].raw.itemsize)
    made = hashlib.blake2b(digest_size=16)
    for at in range(0, count, step):
        made.update(stream.read(at, min(count, at + step)).tobytes())
    return stream.dtype, count, made.digest()


def row_digests(stream: Stream, width: int) -> list[bytes]:
    """A digest of each row of ``width`` elements."""
    raw: Array = stream.read(0, elements_of(stream))
    flat = np.ascontiguousarray(raw).reshape(-1, width)
    return [hashlib.blake2b(row.tobytes(), digest_size=16).digest() for row in flat]
