"""A boundary's value of the source side, shaped as an argument of the target's call: ops and shapes only, no data."""

from collections.abc import Sequence

from msprobe_files.operands import Op, Operand, Source, combined_shape, shape_after

Shape = tuple[int, ...]


class CannotFit(Exception):  # no error: an argument that is left as it is
    """Why a value cannot be given an argument's shape by the ops that an instruction has."""


def value_shape(operand: Operand, shapes: Sequence[Shape]) -> Shape:
    """The shape of an operand whose sources have these shapes. Raises OperandError where its ops do not fit them."""
    made = [shape_after(source.steps or (), shape) for source, shape in zip(operand.sources, shapes, strict=True)]
    return made[0] if operand.combine is None else combined_shape(operand, made)


def shaped(operand: Operand, shapes: Sequence[Shape], wanted: Shape) -> Operand:
    """The operand with the elements of its value, in their order, in the shape of an argument.

    A cat keeps its axis, so there only axes of size 1 may differ. Raises CannotFit.
    """
    if value_shape(operand, shapes) == wanted:
        return operand
    if operand.combine != "cat":
        steps = Op("reshape", shape=wanted)
        return Operand([_then(source, steps) for source in operand.sources], operand.combine)
    parts = [shape_after(source.steps or (), shape) for source, shape in zip(operand.sources, shapes, strict=True)]
    at = _axis(operand) % len(parts[0])
    axis = _same_axis(combined_shape(operand, parts), at, wanted)
    sizes = [(*wanted[:axis], part[at], *wanted[axis + 1 :]) for part in parts]
    sources = [_then(source, Op("reshape", shape=size)) for source, size in zip(operand.sources, sizes, strict=True)]
    return Operand(sources, "cat", axis)


def columns(operand: Operand, shapes: Sequence[Shape], start: int, stop: int) -> Operand:
    """Columns ``start … stop`` of the last axis of the value; of a cat along it, those of each tensor that has some."""
    whole = value_shape(operand, shapes)
    if (start, stop) == (0, whole[-1]):
        return operand
    if operand.combine != "cat" or _axis(operand) not in (-1, len(whole) - 1):
        cut = Op("slice", axis=-1, start=start, stop=stop)
        return Operand([_then(source, cut) for source in operand.sources], operand.combine, operand.axis)
    taken, at = [], 0
    for source, shape in zip(operand.sources, shapes, strict=True):
        width = shape_after(source.steps or (), shape)[-1]
        low, high = max(start, at) - at, min(stop, at + width) - at
        if low < high:
            taken.append((source if (low, high) == (0, width) else _then(source, Op("slice", axis=-1, start=low, stop=high)), shape))
        at += width
    sources = [source for source, _ in taken]
    return Operand(sources, "cat", operand.axis) if len(sources) > 1 else Operand(sources)


def shapes_of(operand: Operand, shapes: Sequence[Shape], made: Operand) -> list[Shape]:
    """The recorded shapes of the tensors of ``made``, which are some of the operand's."""
    known = {(source.name, source.rank, source.dump_step): shape for source, shape in zip(operand.sources, shapes, strict=True)}
    return [known[source.name, source.rank, source.dump_step] for source in made.sources]


def rows(operand: Operand, shapes: Sequence[Shape], picked: Sequence[int]) -> Operand:
    """Some rows of the first axis of the value. Raises CannotFit where a cat is along it."""
    if operand.combine == "cat" and _axis(operand) % len(value_shape(operand, shapes)) == 0:
        raise CannotFit("rows that several tensors hold")
    cut = Op("take", axis=0, picked=tuple(picked))
    return Operand([_then(source, cut) for source in operand.sources], operand.combine, operand.axis)


def side_by_side(parts: Sequence[tuple[Operand, Sequence[Shape]]], wanted: Shape) -> Operand:
    """Values beside each other on the last axis of an argument, as a fused projection hands them on. Raises CannotFit."""
    sources: list[Source] = []
    for operand, shapes in parts:
        flat = (operand, shapes) if operand.combine in (None, "cat") else None
        if flat is None or (operand.combine == "cat" and _axis(operand) not in (-1, len(value_shape(operand, shapes)) - 1)):
            raise CannotFit("a sum beside another value")
        for source, shape in zip(operand.sources, shapes, strict=True):
            width = shape_after(source.steps or (), shape)[-1]
            sources.append(_then(source, Op("reshape", shape=(*wanted[:-1], width))))
    return Operand(sources, "cat", len(wanted) - 1) if len(sources) > 1 else Operand(sources)


def widened(operand: Operand, dtype: str) -> Operand:
    """The value in another format, cast after all else."""
    return Operand([_then(source, Op("cast", dtype=dtype)) for source in operand.sources], operand.combine, operand.axis)


def zeros_like(operand: Operand) -> Operand:
    """An operand whose fill is −0.0 and whose shape is that of these sources: what is added to it keeps every bit."""
    return Operand(operand.sources[:1] if operand.combine in (None, "sum") else (), "zeros")


def _then(source: Source, op: Op) -> Source:
    return source._replace(steps=(*(source.steps or ()), op))


def _axis(operand: Operand) -> int:
    return -1 if operand.axis is None else operand.axis


def _same_axis(shape: Shape, axis: int, wanted: Shape) -> int:
    """The axis of ``wanted`` that ``axis`` of ``shape`` becomes, where only axes of size 1 came or went."""
    kept = [at for at, size in enumerate(shape) if size != 1 or at == axis]
    found = [at for at, size in enumerate(wanted) if size != 1]
    if [shape[at] for at in kept] != [wanted[at] for at in found]:
        raise CannotFit(f"several tensors make {list(shape)}, which is no {list(wanted)}")
    return found[kept.index(axis)]
