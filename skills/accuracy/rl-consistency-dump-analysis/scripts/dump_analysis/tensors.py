"""Tensors as byte ranges: an operand's elements in row-major order, block by block, in bounded memory.

An operand becomes a `Stream`: ``read(start, stop)`` hands out raw elements of its flattened value.
Cuts and shapes (squeeze, slice, take, reshape, permute) are worked out on *offsets per axis*, never on
data, so a strided cut costs no more than the bytes it touches.  Files are read by ``pread`` through
one window a file: several cuts of one fused tensor, walked in step, read its bytes once.
"""

import os
from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

import numpy as np
from msprobe_files import pt_archive, units
from msprobe_files.errors import DumpError
from msprobe_files.operands import Op, Operand, OperandError, axis_of, combined_shape, reshaped, shape_after, slice_of
from msprobe_files.pt_archive import PtTensor

from . import floats
from .floats import Array
from .sides import Place

BLOCK_BYTES = 128 * 1024
_SPARSE = 4  # a block whose span holds more than this many times its own bytes is fetched piece by piece
_GAP_BYTES = 4096  # pieces closer than this are fetched in one read

Axis = range | Array


class Stream(Protocol):
    """The flattened value of an operand. ``pitch``: elements that are best read together."""

    dtype: str
    shape: tuple[int, ...]
    pitch: int

    def read(self, start: int, stop: int) -> Array: ...


def header(place: Place) -> PtTensor:
    """The file of a recorded tensor, described. Raises DumpError where it cannot be read."""
    return pt_archive.read_header(units.tensor_path(place.unit, place.record))


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


class Layout(NamedTuple):
    """Offsets, in elements of the storage, of a cut's elements: ``base`` plus one item of each axis."""

    base: int
    axes: tuple[Axis, ...]

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(len(axis) for axis in self.axes)


def layout_of(tensor: PtTensor, steps: Sequence[Op]) -> Layout:
    """Where the elements of ``steps`` applied to ``tensor`` lie. Raises OperandError where an op does not fit."""
    pairs = zip(tensor.shape, tensor.strides, strict=True)
    axes: tuple[Axis, ...] = tuple(range(0, size * stride, stride) if stride else np.zeros(size, np.int64) for size, stride in pairs)
    layout = Layout((tensor.start - tensor.storage_start) // tensor.item_size, axes)
    for at, op in enumerate(steps):
        layout = _cut(layout, op, f"steps[{at}]")
    return layout


def _cut(layout: Layout, op: Op, where: str) -> Layout:
    axes, shape = layout.axes, layout.shape
    if op.op in ("cast", "add"):
        return layout
    if op.op == "reshape":
        return _reshaped(layout, reshaped(op.shape, shape, where), where)
    if op.op == "permute":
        shape_after([op], shape, where)
        return Layout(layout.base, tuple(axes[axis] for axis in op.axes))
    axis = axis_of(op.axis, shape, where)
    before, chosen, after = axes[:axis], axes[axis], axes[axis + 1 :]
    if op.op == "squeeze":
        shape_after([op], shape, where)
        return Layout(layout.base + int(chosen[0]), before + after)
    if op.op == "slice":
        start, stop = slice_of(op, len(chosen), where)
        return Layout(layout.base, (*before, chosen[start:stop], *after))
    shape_after([op], shape, where)
    return Layout(layout.base, (*before, _table(chosen)[np.array(op.picked, np.int64)], *after))


def _table(axis: Axis) -> Array:
    return np.arange(axis.start, axis.stop, axis.step, dtype=np.int64) if isinstance(axis, range) else axis


def _reshaped(layout: Layout, wanted: tuple[int, ...], where: str) -> Layout:
    """Match runs of old axes to runs of new ones: merge each run, then split it."""
    if 0 in wanted:
        return Layout(layout.base, tuple(range(size) for size in wanted))
    old, new = list(layout.axes), list(wanted)
    made: list[Axis] = []
    while old or new:
        run: Axis = old.pop(0) if old else range(1)
        sizes = [new.pop(0)] if new else []
        while len(run) != (total := int(np.prod(sizes, dtype=np.int64))):
            if len(run) < total:
                run = _merged(run, old.pop(0))
            else:
                sizes.append(new.pop(0))
        made += _split(run, sizes, where)
    base = layout.base
    return Layout(base, tuple(made))


def _merged(outer: Axis, inner: Axis) -> Axis:
    """One axis that runs through ``inner`` for each item of ``outer``."""
    if len(inner) == 1:
        return _shifted(outer, int(inner[0]))
    if len(outer) == 1:
        return _shifted(inner, int(outer[0]))
    if isinstance(outer, range) and isinstance(inner, range) and outer.step == len(inner) * inner.step:
        first = outer.start + inner.start
        return range(first, first + len(outer) * outer.step, inner.step)
    merged: Array = (_table(outer)[:, None] + _table(inner)[None, :]).reshape(-1)
    return merged


def _shifted(axis: Axis, by: int) -> Axis:
    return range(axis.start + by, axis.stop + by, axis.step) if isinstance(axis, range) else axis + by


def _split(run: Axis, sizes: list[int], where: str) -> list[Axis]:
    if len(sizes) <= 1:
        return [run] if sizes else []
    rest = int(np.prod(sizes[1:], dtype=np.int64))
    if isinstance(run, range):
        outer: Axis = range(run.start, run.start + sizes[0] * rest * run.step, rest * run.step)
        return [outer, *_split(range(0, rest * run.step, run.step), sizes[1:], where)]
    grid = run.reshape(sizes[0], rest)
    inner = grid[0] - grid[0, 0]
    if not np.array_equal(grid, grid[:, :1] + inner[None, :]):
        raise OperandError(where, "a reshape that splits an axis after a take which is not regular along it; reshape before the take")
    return [grid[:, 0], *_split(inner, sizes[1:], where)]


class CutStream:
    """The elements of one file's tensor after its ops, values rounded or cast where ops say so."""

    def __init__(self, files: Files, tensor: PtTensor, steps: Sequence[Op]) -> None:
        self.dtype = tensor.dtype
        self._files, self._tensor = files, tensor
        layout = layout_of(tensor, steps)
        self.shape = layout.shape
        self._raw = floats.FORMATS[tensor.dtype].raw
        self._changes = _value_ops(tensor.dtype, steps)
        if self._changes:
            self.dtype = self._changes[-1][0]
        self._outer, self._inner, self._base = _flat(layout)
        self.pitch = len(self._inner)
        self._whole = isinstance(self._inner, range) and self._inner.step == 1 and len(self._outer) == 1

    def read(self, start: int, stop: int) -> Array:
        raw = self._run(start, stop) if self._whole else self._gather(start, stop)
        for _, change in self._changes:
            raw = change(raw)
        return raw

    def _run(self, start: int, stop: int) -> Array:
        return self._bytes(self._base + start, self._base + stop)

    def _bytes(self, start: int, stop: int) -> Array:
        """Elements ``start … stop`` of the storage."""
        item, at = self._tensor.item_size, self._tensor.storage_start
        return np.frombuffer(self._files.read(self._tensor.path, at + start * item, at + stop * item), self._raw)

    def _gather(self, start: int, stop: int) -> Array:
        """Whole rows of ``pitch`` elements that cover the range, trimmed."""
        first, last = start // self.pitch, -(-stop // self.pitch)
        outer = _table(self._outer[first:last])
        inner = self._inner
        skip = start - first * self.pitch
        if last - first == 1:  # a part of one long row
            inner, skip = inner[skip : skip + stop - start], 0
        taken = self._fetch(outer + self._base, inner).reshape(-1)
        return taken[skip : skip + stop - start]

    def _fetch(self, outer: Array, inner: Axis) -> Array:
        table = _table(inner)
        low, high = int(outer.min() + table.min()), int(outer.max() + table.max()) + 1
        needed = len(outer) * len(table)
        if high - low > _SPARSE * needed + BLOCK_BYTES // self._tensor.item_size:
            return self._fetch_pieces((outer[:, None] + table[None, :]).reshape(-1))
        # Widen to whole file rows: the other cuts of a fused tensor then find their bytes in the window.
        row = self._tensor.strides[-2] if len(self._tensor.strides) > 1 else 0
        count = self._tensor.storage_bytes // self._tensor.item_size
        if row:
            origin = (self._tensor.start - self._tensor.storage_start) // self._tensor.item_size % row
            low = max(0, (low - origin) // row * row + origin)
            high = min(count, -(-(high - origin) // row) * row + origin)
        window = self._bytes(low, high)
        step = np.diff(outer) if len(outer) > 1 else np.zeros(0, np.int64)
        if isinstance(inner, range) and (len(outer) == 1 or ((step == step[0]).all() and step[0] > 0)):
            size = window.dtype.itemsize
            view = np.lib.stride_tricks.as_strided(
                window[int(outer[0]) - low + inner.start :],
                (len(outer), len(inner)),
                (int(step[0]) * size if len(outer) > 1 else 0, inner.step * size),
                writeable=False,
            )
            return np.ascontiguousarray(view)
        return window[(outer - low)[:, None] + table[None, :]]

    def _fetch_pieces(self, offsets: Array) -> Array:
        """Elements far apart: sort the offsets and read what lies close together in one go."""
        order = np.argsort(offsets, kind="stable")
        ordered = offsets[order]
        item = self._tensor.item_size
        breaks = np.flatnonzero(np.diff(ordered) * item > _GAP_BYTES) + 1
        taken = np.empty(len(offsets), self._raw)
        for piece in np.split(np.arange(len(ordered)), breaks):
            low = int(ordered[piece[0]])
            taken[order[piece]] = self._bytes(low, int(ordered[piece[-1]]) + 1)[ordered[piece] - low]
        return taken


def _flat(layout: Layout) -> tuple[Axis, Axis, int]:
    """Outer and inner offsets whose sum, outer slow, runs through the layout in row-major order; and the base."""
    outer: Axis = range(1)
    inner: Axis = range(1)
    at = len(layout.axes)
    while at > 0:
        axis = layout.axes[at - 1]
        fits = isinstance(axis, range) and isinstance(inner, range) and axis.step == len(inner) * inner.step
        if not fits and len(inner) > 1 and len(axis) * len(inner) * 8 > BLOCK_BYTES:
            break
        inner = _merged(axis, inner)
        at -= 1
    for axis in reversed(layout.axes[:at]):
        outer = _merged(axis, outer)
    if isinstance(inner, range) and inner.step == 1 and inner.start != 0:
        return outer, range(len(inner)), layout.base + inner.start
    return outer, inner, layout.base


def _value_ops(dtype: str, steps: Sequence[Op]) -> list[tuple[str, Callable[[Array], Array]]]:
    """The ops that change values, in order, each with the dtype it leaves. They commute with every cut."""
    changes: list[tuple[str, Callable[[Array], Array]]] = []
    for op in steps:
        if op.op == "cast":
            if op.dtype not in floats.FORMATS or floats.FORMATS[op.dtype].kind == "complex" or op.dtype.startswith("float8"):
                raise OperandError("steps", f"a cast to {op.dtype}, which is not done here")
            changes.append((op.dtype, _caster(dtype, op.dtype)))
            dtype = op.dtype
        elif op.op == "add":
            changes.append((dtype, _adder(dtype, op.value)))
    return changes


def _caster(before: str, after: str) -> Callable[[Array], Array]:
    return lambda raw: floats.rounded(floats.values(raw, before), after)


def _adder(dtype: str, value: float) -> Callable[[Array], Array]:
    def add(raw: Array) -> Array:
        numbers = floats.values(raw, dtype)
        return floats.rounded(numbers + numbers.dtype.type(value), dtype)

    return add


# --- several sources ---


class SumStream:
    """Sources added left to right, rounded to their dtype after each addition."""

    def __init__(self, parts: Sequence[Stream], shape: tuple[int, ...]) -> None:
        self._parts, self.shape = parts, shape
        self.dtype = _one_dtype(parts, "sum")
        self.pitch = max(part.pitch for part in parts)

    def read(self, start: int, stop: int) -> Array:
        total = self._parts[0].read(start, stop)
        with np.errstate(over="ignore", invalid="ignore"):
            for part in self._parts[1:]:
                added = floats.values(total, self.dtype) + floats.values(part.read(start, stop), self.dtype)
                total = floats.rounded(added, self.dtype)
        return total


class CatStream:
    """Sources side by side along one axis."""

    def __init__(self, parts: Sequence[Stream], shape: tuple[int, ...], axis: int) -> None:
        self._parts, self.shape = parts, shape
        self.dtype = _one_dtype(parts, "cat")
        self._widths = [int(np.prod(part.shape[axis:], dtype=np.int64)) for part in parts]
        self.pitch = sum(self._widths)

    def read(self, start: int, stop: int) -> Array:
        first, last = start // self.pitch, -(-stop // self.pitch)
        if last - first == 1:
            return self._of_one_row(first, start - first * self.pitch, stop - first * self.pitch)
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


def stream_of(files: Files, operand: Operand, tensors: Sequence[PtTensor]) -> Stream:
    """The stream of an operand whose sources were found. Raises OperandError where its ops do not fit them."""
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
    if operand.combine == "sum":
        return SumStream(parts, shape)
    raise OperandError("combine", '"zeros" stands in overrides only')
