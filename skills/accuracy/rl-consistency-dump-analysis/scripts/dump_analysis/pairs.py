"""Mapping rows on two dumps: their tensors found, and both sides walked block by block.

Whoever measures hands in a consumer for each row; rows that share a file are walked in step, so that a
fused tensor is read once.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple, Protocol

import numpy as np
from msprobe_files import release
from msprobe_files.errors import DumpError
from msprobe_files.operands import Operand, OperandError
from msprobe_files.pt_archive import PtTensor
from msprobe_files.units import Unit

from . import floats, tensors
from .artefacts.boundary_results import Status
from .artefacts.common import Worded
from .artefacts.semantic_mapping import Row
from .floats import Array
from .grids import pieces
from .sides import Place, Side, entry_outputs, resolve
from .tensors import BLOCK_BYTES, CutStream, Files, Stream, elements_of
from .wording import word

_REUSED_BYTES = 4 << 20
_LARGEST_GROUP = 24  # rows walked in step: bounds windows and open files


class Found(NamedTuple):
    """The tensors of an operand: where they are recorded, their files, and the dtype that its value has."""

    places: tuple[Place, ...]
    tensors: tuple[PtTensor, ...]
    dtype: str

    def each(self) -> Iterator[tuple[Place, PtTensor]]:
        """Its tensors, where each is recorded and in which file."""
        return zip(self.places, self.tensors, strict=True)


class Pair(NamedTuple):
    """A mapping row whose tensors were found on both sides."""

    row: Row
    train: Found
    infer: Found


class Gap(Exception):  # no error: a row that cannot be compared
    """Why a row cannot be compared, with the status that says so."""

    def __init__(self, status: Status, reason: Worded) -> None:
        super().__init__(reason.text)
        self.status: Status = status
        self.reason = reason


class Consumer(Protocol):
    """What takes the blocks of one row, in order; ``start``: the flat index of a block's first element.

    ``columns``: a block holds whole runs of so many elements, or a part of one.
    """

    @property
    def columns(self) -> int: ...

    def add(self, start: int, train: Array, infer: Array) -> None: ...

    def add_equal(self, start: int, both: Array) -> None: ...


class Walked(NamedTuple):
    """A row whose blocks were all handed out (none, where the two shapes differ)."""

    train: Stream
    infer: Stream


# --- finding ---


def find_pairs(rows: Sequence[Row], train: Side, infer: Side) -> tuple[list[Pair], list[tuple[Row, Gap]]]:
    """The rows that can be compared, and the others. Raises DumpError where a glob or a name is ambiguous."""
    found: list[Pair] = []
    gaps: list[tuple[Row, Gap]] = []
    spoiled = _SpoiledInputs()
    for row in rows:
        try:
            found.append(Pair(row, _find(train, row.train, spoiled), _find(infer, row.infer, spoiled)))
        except Gap as gap:
            gaps.append((row, gap))
    return found, gaps


def _find(side: Side, operand: Operand, spoiled: "_SpoiledInputs") -> Found:
    if operand.combine == "zeros":
        raise Gap("MISSING", word("op_does_not_fit", side=side.label, where="combine", why='"zeros" stands in overrides only'))
    places: list[Place] = []
    headers: list[PtTensor] = []
    for source in operand.sources:
        place = resolve(side, source)
        if place is None:
            raise Gap("MISSING", word("tensor_missing", side=side.label, name=source.name))
        headers.append(_header(side, place))
        spoiled.check(side, place, headers[-1])
        places.append(place)
    recorded = places[0].record.dtype
    casts = [op.dtype for op in operand.sources[0].steps or () if op.op == "cast"]
    dtype = casts[-1] if casts else recorded if recorded in floats.FORMATS else headers[0].dtype
    return Found(tuple(places), tuple(headers), dtype)


def _header(side: Side, place: Place) -> PtTensor:
    record = place.record
    if record.file is None and record.refused is None:
        empty = record.shape is not None and 0 in record.shape
        raise Gap("evidence_missing", word("no_elements" if empty else "statistics_only_tensor", side=side.label, name=record.name))
    try:
        tensor = tensors.header(place)
    except DumpError as error:
        raise Gap("MISSING", word("tensor_unreadable", side=side.label, why=str(error))) from None
    if record.shape is not None and record.shape != tensor.shape:
        raise Gap("MISSING", word("other_shape", side=side.label, name=record.name, recorded=list(record.shape), stored=list(tensor.shape)))
    if tensor.elements == 0:
        raise Gap("evidence_missing", word("no_elements", side=side.label, name=record.name))
    return tensor


class _SpoiledInputs:
    """Inputs that were recorded after their module may have overwritten them; asked of each unit once."""

    def __init__(self) -> None:
        self._post_call: dict[str, bool] = {}

    def check(self, side: Side, place: Place, tensor: PtTensor) -> None:
        """Raise Gap for an input that equals an output of its own entry, in a unit that took inputs after the call."""
        if place.record.category not in ("input", "kwargs") or not self._is_post_call(place.unit):
            return
        for output in entry_outputs(place):
            try:
                same = tensors.same_file(tensor, tensors.header(Place(place.unit, output)))
            except DumpError:
                continue  # an output that cannot be read proves nothing about this input
            if same:
                raise Gap("evidence_missing", word("input_after_call", side=side.label, name=place.record.name, output=output.name))

    def _is_post_call(self, unit: Unit) -> bool:
        if unit.place.folder not in self._post_call:
            self._post_call[unit.place.folder] = release.inputs_are(unit) == release.POST_CALL
        return self._post_call[unit.place.folder]


# --- walking ---


def walk(pairs: Sequence[Pair], consumer_of: Callable[[Pair, Stream, Stream], Consumer]) -> Iterator[tuple[Pair, Walked | Gap]]:
    """Hand every block of every row to its consumer; yields each row once it is done.

    ``consumer_of`` is asked only for rows whose two shapes are equal.
    """
    keep_freed_memory(_REUSED_BYTES)
    for group in _groups(pairs):
        yield from _walk_group(group, consumer_of)


def keep_freed_memory(largest: int) -> None:
    """Make glibc reuse the memory of freed blocks of up to so many bytes (at most 32 MiB) instead of handing it back: fresh pages cost
    more than all the sums.

    Freeing a large block raises its thresholds (mallopt(3), M_MMAP_THRESHOLD: dynamic); its pages are never touched.
    """
    np.empty(largest, np.uint8)


def _groups(pairs: Sequence[Pair]) -> Iterator[list[Pair]]:
    """Rows that share a file, together and in order; large groups are cut."""
    first_with: dict[str, int] = {}
    leader = list(range(len(pairs)))

    def head(at: int) -> int:
        while leader[at] != at:
            leader[at] = at = leader[leader[at]]
        return at

    for at, pair in enumerate(pairs):
        for tensor in pair.train.tensors + pair.infer.tensors:
            leader[head(at)] = head(first_with.setdefault(tensor.path, at))
    together: dict[int, list[Pair]] = {}
    for at, pair in enumerate(pairs):
        together.setdefault(head(at), []).append(pair)
    for group in together.values():
        for start in range(0, len(group), _LARGEST_GROUP):
            yield group[start : start + _LARGEST_GROUP]


def _walk_group(group: Sequence[Pair], consumer_of: Callable[[Pair, Stream, Stream], Consumer]) -> Iterator[tuple[Pair, Walked | Gap]]:
    files = Files()
    widest = max(_file_row(tensor) for pair in group for tensor in pair.train.tensors + pair.infer.tensors)
    try:
        left = [(pair, _walk_pair(pair, files, widest, consumer_of)) for pair in group]
        while left:
            going = []
            for pair, blocks in left:
                ended = next(blocks)
                if ended is None:
                    going.append((pair, blocks))
                else:
                    yield pair, ended
            left = going
    finally:
        files.close()


def _file_row(tensor: PtTensor) -> int:
    """Bytes of one row of a file's tensor: what several column cuts of it share."""
    return (tensor.strides[-2] if len(tensor.strides) > 1 else 1) * tensor.item_size


def _walk_pair(
    pair: Pair, files: Files, widest: int, consumer_of: Callable[[Pair, Stream, Stream], Consumer]
) -> Iterator[Walked | Gap | None]:
    """None after each block but the last, then how the row ended."""
    try:
        train = _stream(files, pair.row.train, pair.train, "train")
        infer = _stream(files, pair.row.infer, pair.infer, "infer")
        if train.shape == infer.shape:
            total = elements_of(train)
            if not total:
                raise Gap("evidence_missing", word("nothing_left"))
            consumer = consumer_of(pair, train, infer)
            for start, stop in _blocks(total, consumer.columns, train, infer, widest):
                _hand_out(consumer, start, stop, train, infer)
                if stop < total:
                    yield None
        yield Walked(train, infer)
    except Gap as gap:
        yield gap
    except DumpError as error:
        yield Gap("MISSING", word("file_changed", why=str(error)))


def _hand_out(consumer: Consumer, start: int, stop: int, train: Stream, infer: Stream) -> None:
    """One block: as bytes where both sides are plain runs of a file, which is what equal dumps mostly are."""
    if isinstance(train, CutStream) and isinstance(infer, CutStream) and train.whole and infer.whole and train.dtype == infer.dtype:
        left, right = train.data(start, stop), infer.data(start, stop)
        raw = floats.FORMATS[train.dtype].raw
        if left == right:
            consumer.add_equal(start, np.frombuffer(left, raw))
        else:
            consumer.add(start, np.frombuffer(left, raw), np.frombuffer(right, raw))
    else:
        consumer.add(start, train.read(start, stop), infer.read(start, stop))


def _stream(files: Files, operand: Operand, found: Found, side: str) -> Stream:
    try:
        return tensors.stream_of(files, operand, found.tensors)
    except OperandError as error:
        raise Gap("MISSING", word("op_does_not_fit", side=side, where=error.where, why=error.why)) from None


def _blocks(total: int, columns: int, train: Stream, infer: Stream, widest: int) -> Iterator[tuple[int, int]]:
    """Blocks of whole rows: of scattered cuts so many as the widest file row of the group allows to stay in step."""
    item = max(floats.FORMATS[stream.dtype].raw.itemsize for stream in (train, infer))
    most = max(1, BLOCK_BYTES // item)
    pitch = min(train.pitch, infer.pitch)
    if pitch >= most:
        return pieces(0, total, columns, most)
    if columns * item > widest:  # a row of the value is no part of a file's row: so many runs as lie near each other
        return pieces(0, total, columns, pitch * max(1, BLOCK_BYTES // max(pitch * item, widest)))
    return pieces(0, total, columns, most, BLOCK_BYTES // widest)
