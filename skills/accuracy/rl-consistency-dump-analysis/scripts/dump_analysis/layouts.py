"""Where the elements of a cut tensor lie: offsets per axis, worked out from ops and never from data.

An axis is a range of offsets, or a table of them after a `take`; an element's offset is the base plus one
item of each axis.  Squeeze, slice, take, reshape and permute only rearrange axes.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from msprobe_files.operands import Op, OperandError, axis_of, reshaped, shape_after, slice_of
from msprobe_files.pt_archive import PtTensor

from .floats import Array
from .joined_tensors import JoinedTensor

Axis = range | Array
_LARGEST_TABLE = 1 << 22  # offsets
_LARGEST_INNER = 128 * 1024  # bytes of a table of inner offsets


class Layout(NamedTuple):
    """Offsets, in elements of the storage, of a cut's elements: ``base`` plus one item of each axis."""

    base: int
    axes: tuple[Axis, ...]

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(len(axis) for axis in self.axes)


def layout_of(tensor: PtTensor | JoinedTensor, steps: Sequence[Op]) -> Layout:
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
    return Layout(layout.base, (*before, table(chosen)[np.array(op.picked, np.int64)], *after))


def table(axis: Axis) -> Array:
    return np.arange(axis.start, axis.stop, axis.step, dtype=np.int64) if isinstance(axis, range) else axis


def _reshaped(layout: Layout, wanted: tuple[int, ...], where: str) -> Layout:
    """Match runs of old axes to runs of new ones: merge each run, then split it."""
    if 0 in wanted:
        return Layout(layout.base, tuple(range(size) for size in wanted))
    old, new = list(layout.axes), list(wanted)
    made: list[Axis] = []
    base = layout.base
    while old or new:
        run: Axis = old.pop(0) if old else range(1)
        sizes = [new.pop(0)] if new else []
        while len(run) != (total := int(np.prod(sizes, dtype=np.int64))):
            if len(run) < total:
                run = _merged(run, old.pop(0))
            else:
                sizes.append(new.pop(0))
        if sizes:
            made += _split(run, sizes, where)
        else:  # an axis of one element that the new shape drops
            base += int(run[0])
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
    if len(outer) * len(inner) > _LARGEST_TABLE:
        raise OperandError("steps", "a reshape that merges axes after a take or permute into more than 2**22 places; reshape first")
    merged: Array = (table(outer)[:, None] + table(inner)[None, :]).reshape(-1)
    return merged


def _shifted(axis: Axis, by: int) -> Axis:
    return range(axis.start + by, axis.stop + by, axis.step) if isinstance(axis, range) else axis + by


def _split(run: Axis, sizes: list[int], where: str) -> list[Axis]:
    if len(sizes) == 1:
        return [run]
    rest = int(np.prod(sizes[1:], dtype=np.int64))
    if isinstance(run, range):
        outer: Axis = range(run.start, run.start + sizes[0] * rest * run.step, rest * run.step)
        return [outer, *_split(range(0, rest * run.step, run.step), sizes[1:], where)]
    grid = run.reshape(sizes[0], rest)
    inner = grid[0] - grid[0, 0]
    if not np.array_equal(grid, grid[:, :1] + inner[None, :]):
        raise OperandError(where, "a reshape that splits an axis which a take or permute has made irregular; reshape first")
    return [grid[:, 0], *_split(inner, sizes[1:], where)]


def without_last_shapes(steps: Sequence[Op]) -> Sequence[Op]:
    """The ops without those at the end that leave the row-major order as it is: they only name a shape."""
    end = len(steps)
    while end and steps[end - 1].op in ("reshape", "squeeze", "cast", "add"):
        end -= 1
    return steps[:end]


def flat(layout: Layout) -> tuple[Axis, Axis, int]:
    """Outer and inner offsets whose sum, outer slow, runs through the layout in row-major order; and the base."""
    outer: Axis = range(1)
    inner: Axis = range(1)
    at = len(layout.axes)
    while at > 0:
        axis = layout.axes[at - 1]
        fits = isinstance(axis, range) and isinstance(inner, range) and axis.step == len(inner) * inner.step
        if not fits and len(inner) > 1 and len(axis) * len(inner) * 8 > _LARGEST_INNER:
            break
        inner = _merged(axis, inner)
        at -= 1
    for axis in reversed(layout.axes[:at]):
        outer = _merged(axis, outer)
    # Where one element or one step is all there is, its offset belongs to the base.
    base = layout.base + int(outer[0]) if len(outer) == 1 else layout.base
    outer = range(1) if len(outer) == 1 else outer
    if isinstance(inner, range):
        return outer, range(0, len(inner) * inner.step, inner.step), base + inner.start
    return outer, inner, base
