"""A tensor that several files make up: what is known of a file's tensor, said of the whole, and its parts as an operand.

Ops on the whole are worked out on its parts, so that every cut of it is again a flat operand of contracts' form:
sources with ops, joined once.
"""

from collections.abc import Sequence
from math import prod
from typing import NamedTuple

from msprobe_files.operands import Op, Operand, OperandError, Source, axis_of, combined_shape, reshaped, shape_after, slice_of
from msprobe_files.pt_archive import ITEM_SIZES, PtTensor

Shape = tuple[int, ...]


class Part(NamedTuple):
    """A recorded tensor and the ops that make it a part. ``source`` names rank and dump step."""

    source: Source
    tensor: PtTensor

    @property
    def shape(self) -> Shape:
        return shape_after(self.source.steps or (), self.tensor.shape)


class JoinedTensor(NamedTuple):
    """Parts joined as an operand joins them, then ``steps``; its elements count as row-major and as starting at 0.

    ``path`` tells joined tensors apart, as a file's path tells files. ``combine``: None (one part), ``cat`` on ``axis``, or ``sum``.
    """

    path: str
    dtype: str
    shape: Shape
    parts: tuple[Part, ...]
    combine: str | None
    axis: int | None
    steps: tuple[Op, ...]
    start: int = 0
    storage_start: int = 0

    @property
    def item_size(self) -> int:
        return ITEM_SIZES[self.dtype]

    @property
    def elements(self) -> int:
        return prod(self.shape)

    @property
    def strides(self) -> Shape:
        return tuple(prod(self.shape[axis + 1 :]) for axis in range(len(self.shape)))

    @property
    def contiguous(self) -> bool:
        return True

    def cut(self, steps: Sequence[Op]) -> tuple[Operand, tuple[PtTensor, ...]]:
        """``steps`` of the whole as an operand of its parts, with the file of each source.

        Raises OperandError where an op does not fit, or where no flat operand says the same (a reshape across parts).
        """
        kept = _Pieces([(part, (), part.shape) for part in self.parts], self.combine, self.axis)
        for op in _without_repeated_reshapes((*self.steps, *steps)):
            kept = _applied(kept, op)
        sources = [part.source._replace(steps=(*(part.source.steps or ()), *ops)) for part, ops, _ in kept.pieces]
        return Operand(sources, kept.combine, kept.axis), tuple(part.tensor for part, _, _ in kept.pieces)


def joined(path: str, parts: Sequence[Part], combine: str | None, axis: int | None, steps: Sequence[Op] = ()) -> JoinedTensor:
    """The tensor that parts make. Raises OperandError where they do not fit together, or are of several dtypes."""
    dtypes = sorted({part.tensor.dtype for part in parts})
    if len(dtypes) > 1:
        raise OperandError("order", f"parts of {' and '.join(dtypes)}")
    shape = combined_shape(Operand([part.source for part in parts], combine, axis), [part.shape for part in parts])
    return JoinedTensor(path, dtypes[0], shape_after(steps, shape), tuple(parts), combine, axis, tuple(steps))


# --- ops of the whole on its parts ---


class _Pieces(NamedTuple):
    """What is left of the parts: (part, ops on it, its shape after them), joined as before."""

    pieces: list[tuple[Part, tuple[Op, ...], Shape]]
    combine: str | None
    axis: int | None

    @property
    def shape(self) -> Shape:
        return combined_shape(Operand([part.source for part, _, _ in self.pieces], self.combine, self.axis), [s for _, _, s in self.pieces])


def _without_repeated_reshapes(steps: Sequence[Op]) -> list[Op]:
    """Of reshapes right after each other only the last: what lies between need not be expressible."""
    return [op for at, op in enumerate(steps) if op.op != "reshape" or at + 1 == len(steps) or steps[at + 1].op != "reshape"]


def _applied(whole: _Pieces, op: Op) -> _Pieces:
    if whole.combine == "sum" and op.op in ("cast", "add"):
        raise OperandError("steps", f"{op.op} of a sum of several tensors")
    if whole.combine != "cat" or op.op in ("cast", "add"):
        return _each(whole, op, whole.axis)
    assert whole.axis is not None
    if op.op == "permute":
        axes = tuple(axis_of(axis, whole.shape, "steps") for axis in op.axes)
        return _each(whole, op, axes.index(whole.axis))
    if op.op == "reshape":
        return _reshaped(whole, reshaped(op.shape, whole.shape, "steps"), whole.axis)
    axis = axis_of(op.axis, whole.shape, "steps")
    if axis != whole.axis:
        op = op._replace(axis=axis)
        return _each(whole, op, whole.axis - (op.op == "squeeze" and axis < whole.axis))
    shape_after([op], whole.shape)  # whether it fits at all
    if op.op == "squeeze":
        kept = [piece for piece in whole.pieces if piece[2][axis] == 1]
        return _each(_Pieces(kept, None, None), op._replace(axis=axis), None)
    return _picked(whole, op, axis)


def _each(whole: _Pieces, op: Op, axis: int | None) -> _Pieces:
    pieces = [(part, (*ops, op), shape_after([op], shape)) for part, ops, shape in whole.pieces]
    return _Pieces(pieces, whole.combine, axis)


def _picked(whole: _Pieces, op: Op, axis: int) -> _Pieces:
    """Items of the axis along which parts lie: of each part those that it holds, in their order."""
    size = whole.shape[axis]
    wanted = range(*slice_of(op, size, "steps")) if op.op == "slice" else [item % size for item in op.picked]
    starts = [0]
    for _, _, shape in whole.pieces:
        starts.append(starts[-1] + shape[axis])
    runs: list[tuple[int, list[int]]] = []
    at = 0
    for item in wanted:
        while not starts[at] <= item < starts[at + 1]:
            at = at + 1 if item >= starts[at + 1] else 0
        if not runs or runs[-1][0] != at:
            runs.append((at, []))
        runs[-1][1].append(item - starts[at])
    pieces = [_cut(whole.pieces[at], items, axis) for at, items in runs] or [_cut(whole.pieces[0], [], axis)]
    return _Pieces(pieces, "cat", axis) if len(pieces) > 1 else _Pieces(pieces, None, None)


def _cut(piece: tuple[Part, tuple[Op, ...], Shape], items: list[int], axis: int) -> tuple[Part, tuple[Op, ...], Shape]:
    part, ops, shape = piece
    if items == list(range(shape[axis])):
        return piece
    first, stop = (items[0], items[-1] + 1) if items else (0, 0)
    one_run = items == list(range(first, stop))
    op = Op("slice", axis=axis, start=first, stop=stop) if one_run else Op("take", axis=axis, picked=tuple(items))
    return part, (*ops, op), shape_after([op], shape)


def _reshaped(whole: _Pieces, wanted: Shape, axis: int) -> _Pieces:
    """A reshape that leaves the parts side by side along one axis: what stands before it must come out even."""
    before, inner = prod(whole.shape[:axis]), prod(whole.shape[axis + 1 :])
    for at in range(len(wanted)):
        if prod(wanted[:at]) != before:
            continue
        after = prod(wanted[at + 1 :])
        lengths = [shape[axis] * inner for _, _, shape in whole.pieces]
        if after and all(length % after == 0 for length in lengths):
            shapes = [(*wanted[:at], length // after, *wanted[at + 1 :]) for length in lengths]
            pieces = [(part, (*ops, Op("reshape", shape=shape)), shape) for (part, ops, _), shape in zip(whole.pieces, shapes, strict=True)]
            return _Pieces(pieces, "cat", at)
    raise OperandError("steps", f"a reshape of {list(whole.shape)} to {list(wanted)} across parts that lie side by side on axis {axis}")
