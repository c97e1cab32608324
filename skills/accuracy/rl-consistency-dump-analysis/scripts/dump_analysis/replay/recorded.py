"""Recorded tensors as matrices of float64, read by blocks of rows."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from msprobe_files.errors import DumpError
from msprobe_files.operands import Op, Operand, OperandError, Source
from msprobe_files.units import Record

from dump_analysis import floats
from dump_analysis.artefacts.common import Worded
from dump_analysis.floats import Array
from dump_analysis.joined_tensors import JoinedTensor
from dump_analysis.layouts import layout_of, table
from dump_analysis.mapping.recorded.cuts import cut_op
from dump_analysis.sides import Place, Side, resolve
from dump_analysis.tensors import Files, Stream, Tensor, cut_stream, described, elements_of, header, stream_of
from dump_analysis.wording import word


class CannotReplay(Exception):  # no error: a module that is not recomputed
    """Why a module is not recomputed."""

    def __init__(self, reason: Worded) -> None:
        super().__init__(reason.text)
        self.reason = reason


class Matrix(NamedTuple):
    """A recorded tensor, or a part of it, as [rows, columns]; ``dtype`` is that of the file."""

    name: str
    dtype: str
    rows: int
    columns: int
    stream: Stream

    def stored(self, start: int, stop: int) -> Array:
        """Rows ``start … stop`` [stop - start, columns], values exactly as recorded: float32 for floats of up to 32 bits."""
        raw = self.stream.read(start * self.columns, stop * self.columns)
        return floats.values(raw, self.dtype).reshape(stop - start, self.columns)

    def part(self, rows: slice, columns: slice) -> Array:
        """A part of it as float64; of rows that are longer no more is read than is asked for."""
        width = columns.stop - columns.start
        if width == self.columns:
            return self.read(rows.start, rows.stop)
        starts = range(rows.start * self.columns + columns.start, rows.stop * self.columns + columns.start, self.columns)
        raw = np.stack([self.stream.read(start, start + width) for start in starts])
        found: Array = floats.values(raw, self.dtype).astype(np.float64)
        return found

    def read(self, start: int, stop: int) -> Array:
        """The same as float64."""
        found: Array = self.stored(start, stop).astype(np.float64)
        return found


class Cut(NamedTuple):
    """Which elements of a tensor an operand picks, the tensor being [-1, width]: these rows of it, these columns."""

    place: Place
    width: int
    rows: Array
    columns: Array


def matrix_of(files: Files, place: Place, width: int, rows: Array | None = None, columns: Array | None = None) -> Matrix:
    """A recorded tensor as [-1, width], cut to rows and columns. Raises CannotReplay where its elements do not come out even."""
    tensor = _described(place)
    steps = [Op("reshape", shape=(-1, width))]
    steps += [cut_op(0, rows)] if rows is not None and not _is_all(rows, tensor.elements // width) else []
    steps += [cut_op(1, columns)] if columns is not None and not _is_all(columns, width) else []
    return matrix_by(files, place, steps)


def matrix_by(files: Files, place: Place, steps: Sequence[Op]) -> Matrix:
    """A recorded tensor after some ops; a vector becomes one row. Raises CannotReplay."""
    tensor = _described(place)
    return _matrix(place.record.name, lambda: cut_stream(files, tensor, steps))


def turned(files: Files, place: Place, steps: Sequence[Op]) -> Matrix:
    """A recorded matrix after ops that turn and cut it. Raises CannotReplay where they do not fit."""
    tensor = _described(place)
    return _matrix(place.record.name, lambda: cut_stream(files, tensor, steps))


def value_of(files: Files, side: Side, operand: Operand) -> Matrix:
    """The value of a mapping row's operand before any cast; a vector becomes one row. Raises CannotReplay."""
    places = [place_of(side, source) for source in operand.sources]
    bare = Operand([Source(*source[:3], tuple(_uncast(source))) for source in operand.sources], operand.combine, operand.axis)
    return _matrix(places[0].record.name, lambda: _stream(files, bare, places))


def mapped_value_of(files: Files, side: Side, operand: Operand) -> Matrix:
    """The value that a mapping row compares, after its casts and additions; a vector becomes one row. Raises CannotReplay."""
    places = [place_of(side, source) for source in operand.sources]
    return _matrix(places[0].record.name, lambda: _stream(files, operand, places))


def _stream(files: Files, operand: Operand, places: Sequence[Place]) -> Stream:
    if len(places) == 1:
        return cut_stream(files, described(places[0]), operand.sources[0].steps or ())
    return stream_of(files, operand, [header(place) for place in places])


def _matrix(name: str, made: Callable[[], Stream]) -> Matrix:
    try:
        stream = made()
    except (OperandError, DumpError) as error:
        raise CannotReplay(word("replay_unreadable", name=name, why=str(error))) from None
    columns = stream.shape[-1] if stream.shape else 1
    return Matrix(name, stream.dtype, elements_of(stream) // max(columns, 1), columns, stream)


def place_of(side: Side, source: Source) -> Place:
    """Where a source is recorded. Raises CannotReplay where its tensor is not there or was not saved."""
    place = resolve(side, source)
    if place is None or (place.tensor is None and place.record.file is None):
        raise CannotReplay(word("tensor_missing", side=side.label, name=source.name))
    return place


def beside(side: Side, place: Place, record: Record) -> Place:
    """Another tensor of a unit, put together where the unit is."""
    return next(found for found in side.by_name[record.name] if found.unit is place.unit)


def cut_of(side: Side, operand: Operand, width: int | None = None) -> Cut:
    """Rows and columns that an operand of one tensor picks. ``width``: of the tensor's rows; None: its last axis.

    Raises CannotReplay where they are not all the elements of some rows and columns.
    """
    names = {(source.name, source.rank, source.dump_step) for source in operand.sources}
    if len(names) != 1 or operand.combine not in (None, "cat"):
        raise CannotReplay(word("replay_not_recorded", side=side.label, names=sorted({source.name for source in operand.sources})))
    place = place_of(side, operand.sources[0])
    tensor = _described(place)
    wide = width or tensor.shape[-1]
    try:
        parts = [_picked(tensor.shape, tensor.dtype, _uncast(source), wide) for source in operand.sources]
    except OperandError as error:
        raise CannotReplay(word("op_does_not_fit", side=side.label, where=error.where, why=error.why)) from None
    if any(part is None for part in parts):
        raise CannotReplay(word("replay_scattered", side=side.label, name=place.record.name))
    known = [part for part in parts if part is not None]
    rows, columns = known[0]
    if len(known) > 1:
        if operand.axis in (-1, 1) and all(np.array_equal(part[0], rows) for part in known):
            columns = np.concatenate([part[1] for part in known])
        elif operand.axis == 0 and all(np.array_equal(part[1], columns) for part in known):
            rows = np.concatenate([part[0] for part in known])
        else:
            raise CannotReplay(word("replay_scattered", side=side.label, name=place.record.name))
    return Cut(place, wide, rows, columns)


def _picked(shape: tuple[int, ...], dtype: str, steps: Sequence[Op], width: int) -> tuple[Array, Array] | None:
    """Rows and columns of [-1, width] that steps pick of a tensor; None where they are no such cut."""
    layout = layout_of(JoinedTensor("", dtype, shape, (), None, None, ()), steps)
    axes = [table(axis) for axis in layout.axes] or [np.zeros(1, np.int64)]
    inner = axes[-1]
    outer = np.full(1, layout.base, np.int64)
    for axis in axes[:-1]:
        outer = (outer[:, None] + axis[None, :]).reshape(-1)
    first = outer % width
    if len(inner) and (first == first[0]).all() and first[0] + inner.min() >= 0 and first[0] + inner.max() < width:
        return outer // width, first[0] + inner
    runs = inner.reshape(-1, width) if len(inner) % width == 0 else inner[:0]
    whole = len(runs) and (runs % width == np.arange(width)).all() and (runs // width == runs[:, :1] // width).all()
    if whole and not (outer % width).any():  # whole rows side by side, such as the heads of a token
        return (outer[:, None] // width + runs[None, :, 0] // width).reshape(-1), np.arange(width)
    return None


def _described(place: Place) -> Tensor:
    try:
        return described(place)
    except DumpError as error:
        raise CannotReplay(word("replay_unreadable", name=place.record.name, why=str(error))) from None


def _uncast(source: Source) -> list[Op]:
    return [op for op in source.steps or () if op.op not in ("cast", "add")]


def _is_all(picked: Array, size: int) -> bool:
    return len(picked) == size and bool((picked == np.arange(size)).all())


class _Held:
    """Elements in memory, read as a stream of raw ones."""

    pitch = 1
    addends: Sequence[Stream] = ()

    def __init__(self, dtype: str, shape: tuple[int, ...], raw: Array) -> None:
        self.dtype, self.shape, self.raw = dtype, shape, raw

    def read(self, start: int, stop: int) -> Array:
        found: Array = self.raw[start:stop]
        return found


def held(name: str, dtype: str, numbers: Array) -> Matrix:
    """Numbers [rows, columns] that ``dtype`` holds exactly, as if they had been recorded."""
    rows, columns = numbers.shape
    return Matrix(name, dtype, rows, columns, _Held(dtype, numbers.shape, floats.rounded(numbers, dtype).reshape(-1)))
