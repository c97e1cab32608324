"""Tensors as byte ranges: an operand's elements in row-major order, block by block, in bounded memory.

An operand becomes a `Stream`: ``read(start, stop)`` hands out raw elements of its flattened value.
Cuts and shapes (squeeze, slice, take, reshape, permute) are worked out on *offsets per axis*, never on
data, so a strided cut costs no more than the bytes it touches.  Files are read by ``pread`` through
one window a file: several cuts of one fused tensor, walked in step, read its bytes once.
"""

import math
import os
from collections.abc import Callable, Iterator, Sequence
from typing import Protocol

import numpy as np
from msprobe_files import pt_archive, units
from msprobe_files.errors import DumpError
from msprobe_files.operands import Op, Operand, OperandError, axis_of, combined_shape, shape_after
from msprobe_files.pt_archive import PtTensor

from . import floats
from .floats import Array
from .joined_tensors import JoinedTensor
from .layouts import Axis, flat, layout_of, table, without_last_shapes
from .sides import Place

BLOCK_BYTES = 128 * 1024
_MOST_OPEN = 32  # far below any limit of open files
_SPARSE = 4  # a block whose span holds more than this many times its own bytes is fetched piece by piece
_HEAD = 64  # elements
_GAP_BYTES = 4096  # pieces closer than this are fetched in one read


Tensor = PtTensor | JoinedTensor


class Stream(Protocol):
    """The flattened value of an operand. ``pitch``: elements that are best read together; ``addends``: what a sum adds up."""

    dtype: str
    shape: tuple[int, ...]
    pitch: int
    addends: "Sequence[Stream]"

    def read(self, start: int, stop: int) -> Array: ...


def elements_of(stream: Stream) -> int:
    """How many elements a stream has."""
    return math.prod(stream.shape)


def header(place: Place) -> PtTensor:
    """The file of a recorded tensor, described. Raises DumpError where it cannot be read."""
    return pt_archive.read_header(units.tensor_path(place.unit, place.record))


def described(place: Place) -> Tensor:
    """A recorded tensor described: its file, or the parts that make it. Raises DumpError where a file cannot be read."""
    return header(place) if place.tensor is None else place.tensor


def same(left: "Stream", right: "Stream") -> bool:
    """Whether two streams hold the same bytes of the same dtype, whatever their shapes; compared block by block."""
    count = elements_of(left)
    if left.dtype != right.dtype or count != elements_of(right):
        return False
    step = BLOCK_BYTES // floats.FORMATS[left.dtype].raw.itemsize
    ranges = ((at, min(count, at + (step if at else _HEAD))) for at in _starts(count, step))
    return all(left.read(*part).tobytes() == right.read(*part).tobytes() for part in ranges)


def _starts(count: int, step: int) -> Iterator[int]:
    """A short first block, which tells most unequal tensors apart, then whole ones."""
    yield 0
    yield from range(_HEAD, count, step)


def same_file(left: Tensor, right: Tensor) -> bool:
    """Whether two recorded tensors hold the same elements. Raises DumpError where one cannot be read."""
    files = Files()
    try:
        return same(cut_stream(files, left, ()), cut_stream(files, right, ()))
    finally:
        files.close()


def varies(tensor: Tensor) -> bool:
    """Whether a tensor holds two different elements. Raises DumpError where it cannot be read."""
    files = Files()
    try:
        stream = cut_stream(files, tensor, ())
        count = elements_of(stream)
        step = BLOCK_BYTES // tensor.item_size
        first = stream.read(0, 1) if count else None
        return any(bool((stream.read(at, min(count, at + step)) != first).any()) for at in range(0, count, step))
    finally:
        files.close()


class Files:
    """Open files and one window each. Windows are dropped by `close`; one instance serves one group of rows."""

    def __init__(self) -> None:
        self._open: dict[str, int] = {}
        self._windows: dict[str, tuple[int, bytes]] = {}

    def read(self, path: str, start: int, stop: int) -> bytes:
        """Bytes ``start … stop`` of a file, exactly as many. Raises DumpError where it ends early."""
        at, window = self._windows.get(path, (0, b""))
        if at <= start and stop <= at + len(window):
            return window if (at, len(window)) == (start, stop - start) else window[start - at : stop - at]
        handle = self._open.get(path)
        if handle is None and len(self._open) >= _MOST_OPEN:
            self.close()
        try:
            if handle is None:
                handle = self._open[path] = os.open(path, os.O_RDONLY)
            data = os.pread(handle, stop - start, start)
        except OSError as error:
            raise DumpError(f"Cannot read {os.path.basename(path)}: {error.strerror}. Copy or dump it again.") from None
        if len(data) != stop - start:
            raise DumpError(f"Cannot read {os.path.basename(path)}: it ends inside its data. Copy or dump it again.")
        if len(data) <= 2 * BLOCK_BYTES:
            self._windows[path] = (start, data)
        return data

    def close(self) -> None:
        for handle in self._open.values():
            os.close(handle)
        self._open.clear()
        self._windows.clear()


# --- one file's tensor, cut ---


class CutStream:
    """The elements of one file's tensor after its ops, values rounded or cast where ops say so.

    ``whole``: the elements are one run of the file's bytes, unchanged, so that `data` may be used.
    """

    def __init__(self, files: Files, tensor: PtTensor, steps: Sequence[Op]) -> None:
        self.dtype = tensor.dtype
        self.addends: Sequence[Stream] = ()
        self._files, self._tensor = files, tensor
        self.shape = shape_after(steps, tensor.shape)
        layout = layout_of(tensor, without_last_shapes(steps))
        self._raw, self._item = floats.FORMATS[tensor.dtype].raw, tensor.item_size
        self._changes = _value_ops(tensor.dtype, steps)
        if self._changes:
            self.dtype = self._changes[-1][0]
        self._outer, self._inner, self._base = flat(layout)
        self.pitch = len(self._inner)
        self._one_run = isinstance(self._inner, range) and self._inner.step == 1 and len(self._outer) == 1
        self.whole = self._one_run and not self._changes
        self._row = tensor.strides[-2] if len(tensor.strides) > 1 else 0
        self._origin = (tensor.start - tensor.storage_start) // tensor.item_size

    def read(self, start: int, stop: int) -> Array:
        if start >= stop:
            return np.empty(0, floats.FORMATS[self.dtype].raw)
        raw = np.frombuffer(self.data(start, stop), self._raw) if self._one_run else self._gather(start, stop)
        for _, change in self._changes:
            raw = change(raw)
        return raw

    def data(self, start: int, stop: int) -> bytes:
        """The bytes of elements ``start … stop``, of a stream that is one run."""
        return self._bytes(self._base + start, self._base + stop)

    def _bytes(self, start: int, stop: int) -> bytes:
        """Elements ``start … stop`` of the storage."""
        at = self._tensor.storage_start
        return self._files.read(self._tensor.path, at + start * self._item, at + stop * self._item)

    def _gather(self, start: int, stop: int) -> Array:
        """Whole rows of ``pitch`` elements that cover the range, trimmed."""
        first, last = start // self.pitch, -(-stop // self.pitch)
        skip = start - first * self.pitch
        outer, inner = self._outer[first:last], self._inner
        if last - first == 1:  # a part of one row
            inner, skip = inner[skip : skip + stop - start], 0
        elif self.pitch * self._item > BLOCK_BYTES:  # rows longer than a block: no more of each than is asked for
            rows = ((max(start, row * self.pitch), min(stop, (row + 1) * self.pitch)) for row in range(first, last))
            return np.concatenate([self._gather(*part) for part in rows])
        if isinstance(outer, range) and isinstance(inner, range):
            taken = self._regular_rows(outer, inner).reshape(-1)
        else:
            taken = self._any_rows(outer, inner).reshape(-1)
        return taken if len(taken) == stop - start else taken[skip : skip + stop - start]

    def _regular_rows(self, outer: range, inner: range) -> Array:
        """Rows at equal distances, elements at equal distances: a strided view of one read."""
        low, high = outer[0] + inner[0] + self._base, outer[-1] + inner[-1] + self._base + 1
        if not self._dense(low, high, len(outer) * len(inner)):
            return self._any_rows(outer, inner)
        low, high = self._whole_file_rows(low, high)
        offset = (outer[0] + inner[0] + self._base - low) * self._item
        strides = (outer.step * self._item, inner.step * self._item)
        view: Array = np.ndarray((len(outer), len(inner)), self._raw, self._bytes(low, high), offset, strides)
        return np.ascontiguousarray(view)

    def _any_rows(self, outer: Axis, inner: Axis) -> Array:
        offsets = (table(outer)[:, None] + table(inner)[None, :]).reshape(-1) + self._base
        low, high = int(offsets.min()), int(offsets.max()) + 1
        if not self._dense(low, high, len(offsets)):
            return self._pieces(offsets)
        low, high = self._whole_file_rows(low, high)
        return np.frombuffer(self._bytes(low, high), self._raw)[offsets - low]

    def _dense(self, low: int, high: int, needed: int) -> bool:
        return high - low <= _SPARSE * needed + BLOCK_BYTES // self._item

    def _whole_file_rows(self, low: int, high: int) -> tuple[int, int]:
        """Widened to whole rows of the file: the other cuts of a fused tensor then find their bytes in the window."""
        if not 0 < self._row * self._item <= BLOCK_BYTES:
            return low, high
        first = self._origin % self._row
        low = max(0, (low - first) // self._row * self._row + first)
        high = -(-(high - first) // self._row) * self._row + first
        return low, min(high, self._tensor.storage_bytes // self._item)

    def _pieces(self, offsets: Array) -> Array:
        """Elements far apart: sort the offsets and read what lies close together in one go."""
        order = np.argsort(offsets, kind="stable")
        ordered = offsets[order]
        spread = np.diff(ordered) * self._item > _GAP_BYTES
        breaks = np.flatnonzero(spread | (np.diff(ordered * self._item // BLOCK_BYTES) > 0)) + 1
        taken = np.empty(len(offsets), self._raw)
        for piece in np.split(np.arange(len(ordered)), breaks):
            low = int(ordered[piece[0]])
            near = np.frombuffer(self._bytes(low, int(ordered[piece[-1]]) + 1), self._raw)
            taken[order[piece]] = near[ordered[piece] - low]
        return taken


def _value_ops(dtype: str, steps: Sequence[Op]) -> list[tuple[str, Callable[[Array], Array]]]:
    """The ops that change values, in order, each with the dtype it leaves. They commute with every cut."""
    changes: list[tuple[str, Callable[[Array], Array]]] = []
    for at, op in enumerate(steps):
        if op.op == "cast":
            _need_arithmetic(dtype, f"steps[{at}]", "a cast from")
            _need_arithmetic(op.dtype, f"steps[{at}]", "a cast to")
            changes.append((op.dtype, _caster(dtype, op.dtype)))
            dtype = op.dtype
        elif op.op == "add":
            _need_arithmetic(dtype, f"steps[{at}]", "an addition to")
            changes.append((dtype, _adder(dtype, op.value, f"steps[{at}]")))
    return changes


def _need_arithmetic(dtype: str, where: str, what: str) -> None:
    """Raise OperandError for a dtype whose values are only compared here, never computed with."""
    known = dtype in floats.FORMATS
    if not known or floats.FORMATS[dtype].kind == "complex" or (dtype.startswith("float8") and what != "a cast from"):
        raise OperandError(where, f"{what} {dtype}, which is not done here")


def _caster(before: str, after: str) -> Callable[[Array], Array]:
    return lambda raw: floats.rounded(floats.values(raw, before), after)


# The addition is done in float32 for 16-bit formats; torch rounds an addend that they cannot hold first.
def _adder(dtype: str, value: float, where: str) -> Callable[[Array], Array]:
    if floats.is_integer(dtype):
        limits = np.iinfo(floats.FORMATS[dtype].raw)
        if dtype == "bool" or not value.is_integer() or not limits.min <= value <= limits.max:
            raise OperandError(where, f"an addition of {value} to {dtype}, which cannot hold it")

    def add(raw: Array) -> Array:
        numbers = floats.values(raw, dtype)
        with np.errstate(over="ignore", invalid="ignore"):
            return floats.rounded(numbers + numbers.dtype.type(value), dtype)

    return add


# --- several sources ---


class SumStream:
    """Sources added left to right, rounded to their dtype after each addition."""

    def __init__(self, parts: Sequence[Stream], shape: tuple[int, ...]) -> None:
        self.addends, self.shape = parts, shape
        self.dtype = _one_dtype(parts, "sum")
        _need_arithmetic(self.dtype, "combine", "a sum of")
        self.pitch = max(part.pitch for part in parts)

    def read(self, start: int, stop: int) -> Array:
        total = self.addends[0].read(start, stop)
        with np.errstate(over="ignore", invalid="ignore"):
            for part in self.addends[1:]:
                added = floats.values(total, self.dtype) + floats.values(part.read(start, stop), self.dtype)
                total = floats.rounded(added, self.dtype)
        return total


class CatStream:
    """Sources side by side along one axis."""

    def __init__(self, parts: Sequence[Stream], shape: tuple[int, ...], axis: int) -> None:
        self._parts, self.shape = parts, shape
        self.addends: Sequence[Stream] = ()
        self.dtype = _one_dtype(parts, "cat")
        self._widths = [int(np.prod(part.shape[axis:], dtype=np.int64)) for part in parts]
        self.pitch = sum(self._widths)

    def read(self, start: int, stop: int) -> Array:
        first, last = start // self.pitch, -(-stop // self.pitch)
        if last - first == 1:
            return self._of_one_row(first, start - first * self.pitch, stop - first * self.pitch)
        if self.pitch * floats.FORMATS[self.dtype].raw.itemsize > BLOCK_BYTES:  # no more of a long row than is asked for
            parts = ((max(start, row * self.pitch), min(stop, (row + 1) * self.pitch)) for row in range(first, last))
            return np.concatenate([self.read(*part) for part in parts])
        rows = [
            part.read(first * width, last * width).reshape(last - first, width)
            for part, width in zip(self._parts, self._widths, strict=True)
            if width
        ]
        skip = start - first * self.pitch
        return np.concatenate(rows, axis=1).reshape(-1)[skip : skip + stop - start]

    def _of_one_row(self, row: int, start: int, stop: int) -> Array:
        taken, at = [], 0
        for part, width in zip(self._parts, self._widths, strict=True):
            low, high = max(start, at), min(stop, at + width)
            if low < high:
                taken.append(part.read(row * width + low - at, row * width + high - at))
            at += width
        return taken[0] if len(taken) == 1 else np.concatenate(taken)


def _one_dtype(parts: Sequence[Stream], what: str) -> str:
    dtypes = sorted({part.dtype for part in parts})
    if len(dtypes) > 1:
        raise OperandError("sources", f"a {what} of {' and '.join(dtypes)}; add a cast")
    return dtypes[0]


def cut_stream(files: Files, tensor: Tensor, steps: Sequence[Op]) -> Stream:
    """A recorded tensor after ops. Raises OperandError where they do not fit it, DumpError where parts of a joined one cannot be cut so."""
    if isinstance(tensor, JoinedTensor):
        steps = (*tensor.steps, *steps)
        kept = len(steps)
        while kept and steps[kept - 1].op == "reshape":  # the last one moves no element: it need not be said of the parts
            kept -= 1
        try:
            stream = stream_of(files, *tensor._replace(steps=()).cut(steps[:kept]))
            stream.shape = shape_after(steps[kept:], stream.shape)
            return stream
        except OperandError as error:
            raise DumpError(f"Cannot read {tensor.path}: {error.why}. Assemble the dump first.") from None
    return CutStream(files, tensor, steps)


def stream_of(files: Files, operand: Operand, tensors: Sequence[PtTensor]) -> Stream:
    """The stream of an operand whose sources were found. Raises OperandError where its ops do not fit them."""
    if operand.combine == "zeros":
        raise OperandError("combine", '"zeros" stands in overrides only')
    parts: list[Stream] = []
    for at, (source, tensor) in enumerate(zip(operand.sources, tensors, strict=True)):
        try:
            parts.append(CutStream(files, tensor, source.steps or ()))
        except OperandError as error:
            raise OperandError(f"sources[{at}].{error.where}", error.why) from None
    if operand.combine is None:
        return parts[0]
    shape = combined_shape(operand, [part.shape for part in parts])
    if operand.combine == "cat":
        return CatStream(parts, shape, axis_of(-1 if operand.axis is None else operand.axis, parts[0].shape, "axis"))
    return SumStream(parts, shape)
