"""A mapping of several ranks, stages or dump steps said again of the dump that its plan puts together: replay knows one unit a side.

A column-parallel linear is then one linear whose weight's rows lie on several ranks; a row-parallel one has the ranks' partial sums as a
variant of its own; chunks of a prompt are its tokens. The reverse of `assembly.expanded`.
"""

from collections.abc import Mapping, Sequence
from math import prod
from typing import NamedTuple

import msgspec
import numpy as np
from msprobe_files import names
from msprobe_files.operands import Op, Operand, OperandError, Source, combined_shape
from msprobe_files.pt_archive import PtTensor

from dump_analysis.artefacts.common import Modules, Worded
from dump_analysis.artefacts.semantic_mapping import MissingRow, Row, SemanticMapping
from dump_analysis.assembly import AssembledSide, assemble
from dump_analysis.floats import Array
from dump_analysis.joined_tensors import JoinedTensor, Part
from dump_analysis.layouts import Layout, layout_of, table
from dump_analysis.mapping.recorded.cuts import cut_op
from dump_analysis.sides import Side
from dump_analysis.wording import word

_SAMPLED = 64  # elements of a cut that are looked up one by one
_RowsColumns = tuple[Array, Array]


class Whole(NamedTuple):
    """Both sides as one unit each, and the mapping's rows over them.

    ``recorded``: side -> assembled entry -> what units call it; ``left_out``: rows that cannot be said so, and why.
    """

    mapping: SemanticMapping
    train: Side
    infer: Side
    recorded: Mapping[str, Mapping[str, str]]
    left_out: Mapping[str, Worded]


def whole_pair(mapping: SemanticMapping, train: Side, infer: Side) -> Whole:
    """Sides and rows as they are where the mapping has no plan of ranks. Raises DumpError where a plan names a unit that is not there."""
    made: dict[str, AssembledSide] = {}
    for side in (train, infer):
        plan = getattr(mapping.ranks, side.label) if mapping.ranks is not None else None
        if plan is not None:
            made[side.label] = assemble(side, plan)
    if not made:
        return Whole(mapping, train, infer, {}, {})
    rows: list[list[Row]] = [[], []]
    left_out: dict[str, Worded] = {}
    for kept, given in zip(rows, (mapping.boundaries, mapping.weights), strict=True):
        for row in given:
            try:
                kept.append(_row(row, made))
            except OperandError as error:
                left_out[row.boundary] = word("not_flat", why=error.why)
    gaps = [MissingRow(row.boundary, row.order, left_out[row.boundary], [], []) for row in mapping.weights if row.boundary in left_out]
    said = msgspec.structs.replace(mapping, boundaries=rows[0], weights=rows[1], evidence_missing=[*mapping.evidence_missing, *gaps])
    sides = [made[side.label].side if side.label in made else side for side in (train, infer)]
    return Whole(said, sides[0], sides[1], {label: _recorded(whole) for label, whole in made.items()}, left_out)


def _recorded(whole: AssembledSide) -> dict[str, str]:
    found: dict[str, str] = {}
    for (_, _, name), assembled_name in whole.renamed.items():
        own, made = names.parse_tensor(name), names.parse_tensor(assembled_name)
        if own is not None and made is not None:
            found.setdefault(made.entry, own.entry)
    return found


def _row(row: Row, made: Mapping[str, AssembledSide]) -> Row:
    """A row over assembled tensors. Raises OperandError where it is no cut of them."""
    operands = {"train": row.train, "infer": row.infer}
    entries = {label: getattr(row.module, label) if row.module is not None else None for label in operands}
    for label, whole in made.items():
        entries[label] = _entry(operands[label], entries[label], whole)
        operands[label] = gathered(operands[label], whole)
    module = Modules(entries["train"], entries["infer"]) if row.module is not None else None
    return msgspec.structs.replace(row, train=operands["train"], infer=operands["infer"], module=module)


def _entry(operand: Operand, entry: str | None, whole: AssembledSide) -> str | None:
    """What the assembled unit calls an entry of the unit that the operand's first source names."""
    at = operand.sources[0]
    for unit in whole.units:
        if entry in unit.entries and (at.rank, at.dump_step) in ((unit.place.rank, unit.place.step), (None, None)):
            for record in unit.entries[entry]:
                parsed = names.parse_tensor(whole.renamed.get((unit.place.step, unit.place.rank, record.name), ""))
                if parsed is not None:
                    return parsed.entry
    return entry


# --- operands ---


def gathered(operand: Operand, whole: AssembledSide) -> Operand:
    """An operand over units as one over assembled tensors. Raises OperandError where it is no cut of them in rows and columns."""
    groups: list[tuple[str, list[Source]]] = []
    for source in operand.sources:
        name = _assembled_name(source, whole)
        if not groups or groups[-1][0] != name or _joined(name, whole).combine is None:
            groups.append((name, []))
        groups[-1][1].append(source)
    made = [_of_one(name, sources, whole, operand) for name, sources in groups]
    if len(made) == 1:
        return made[0]
    if operand.combine == "sum" or all(one.combine in (None, "cat") for one in made):
        return Operand([source for one in made for source in one.sources], operand.combine, operand.axis)
    raise OperandError("combine", f"a {operand.combine} of tensors that are put together themselves")


def _assembled_name(source: Source, whole: AssembledSide) -> str:
    found = whole.renamed.get((source.dump_step or 0, source.rank or 0, source.name))
    if found is None:
        raise OperandError("name", f"{source.name} is no part of the assembled dump")
    return found


def _joined(name: str, whole: AssembledSide) -> JoinedTensor:
    tensor = whole.side.by_name[name][0].tensor
    if not isinstance(tensor, JoinedTensor):
        raise OperandError("name", f"{name} is no assembled tensor")
    return tensor


def _of_one(name: str, sources: Sequence[Source], whole: AssembledSide, operand: Operand) -> Operand:
    """Sources that are parts of one assembled tensor."""
    tensor = _joined(name, whole)
    if tensor.combine == "sum":
        first = sources[0]
        part = next(part for part in tensor.parts if _is_of(part, first))
        kept = (first.steps or ())[len(part.source.steps or ()) :]
        return Operand([Source(name, None, None, tuple(kept))])
    if len(tensor.parts) == 1 and not tensor.steps and not tensor.parts[0].source.steps:  # the file itself under another name
        own = [Source(name, None, None, source.steps) for source in sources]
        return Operand(own, operand.combine, operand.axis) if len(own) > 1 else Operand(own)
    if any(op.op not in ("reshape", "squeeze") for op in tensor.steps):
        raise OperandError("steps", f"{name} is put together and cut again")
    for width in _widths(tensor):
        cuts = [cut for source in sources if (cut := _cut(tensor, source, width)) is not None]
        if len(cuts) == len(sources):
            rows, columns = cuts[0] if len(cuts) == 1 else _side_by_side(cuts, operand)
            steps = _steps(tensor, width, rows.reshape(-1), columns.reshape(-1))
            tensor.cut(steps)  # raises where no flat operand of the parts says the same: nothing could be read then
            return Operand([Source(name, None, None, steps)])
    raise OperandError("steps", f"{sources[0].name} is cut otherwise than in rows and columns of {name}")


def _widths(tensor: JoinedTensor) -> list[int]:
    """The lengths that a row of an assembled tensor can have, a whole token's first, one head's last."""
    shape = combined_shape(Operand([part.source for part in tensor.parts], tensor.combine, tensor.axis), [p.shape for p in tensor.parts])
    last = len(shape) - 1
    return list(dict.fromkeys(prod(shape[axis:]) for axis in range(min(last, 1), last + 1)))


def _side_by_side(cuts: Sequence[_RowsColumns], operand: Operand) -> _RowsColumns:
    """Cuts of one tensor along the axis on which the operand joins them."""
    rows, columns = cuts[0]
    dimensions = rows.ndim + columns.ndim
    axis = (operand.axis or 0) % dimensions
    if operand.combine == "cat" and axis < rows.ndim and all(np.array_equal(cut[1], columns) for cut in cuts):
        return np.concatenate([cut[0] for cut in cuts], axis), columns
    if operand.combine == "cat" and axis >= rows.ndim and all(np.array_equal(cut[0], rows) for cut in cuts):
        return rows, np.concatenate([cut[1] for cut in cuts], axis - rows.ndim)
    raise OperandError(
        "axis", f"parts of an assembled tensor that are joined otherwise than in rows or columns: {operand.combine} on {axis}"
    )


def _steps(tensor: JoinedTensor, width: int, rows: Array, columns: Array) -> tuple[Op, ...]:
    vector = len(tensor.shape) == 1
    steps = [] if vector or (len(tensor.shape) == 2 and tensor.shape[1] == width) else [Op("reshape", shape=(-1, width))]
    if not vector and not np.array_equal(rows, np.arange(tensor.elements // width)):
        steps.append(cut_op(0, rows))
    if not np.array_equal(columns, np.arange(width)):
        steps.append(cut_op(0 if vector else 1, columns))
    return tuple(steps)


# --- places of elements ---


def _is_of(part: Part, source: Source) -> bool:
    own = part.source
    return own.name == source.name and own.rank == (source.rank or 0) and own.dump_step == (source.dump_step or 0)


def _cut(tensor: JoinedTensor, source: Source, width: int) -> _RowsColumns | None:
    """Which rows and columns of [-1, width] of an assembled tensor a source picks, in the shape of its outer and inner axes.

    None where it is no such cut. Raises OperandError where the tensor does not hold it.
    """
    parts = _placed(tensor, source)
    if not parts:
        raise OperandError("name", f"{source.name} is no part of {tensor.path}")
    layout = layout_of(parts[0][0], [op for op in source.steps or () if op.op not in ("cast", "add")])
    outer, inner = _lines(layout, width)
    starts, run = outer.reshape(-1), inner.reshape(-1)
    rows, first = np.divmod(_found(starts + run[0], parts, source), width)
    across, columns = np.divmod(_found(starts[0] + run, parts, source), width)
    draw = np.random.default_rng(0)
    one, two = draw.integers(0, len(starts), _SAMPLED), draw.integers(0, len(run), _SAMPLED)
    sampled = _found(starts[one] + run[two], parts, source)
    if (first != first[0]).any() or (across != across[0]).any() or not np.array_equal(sampled, rows[one] * width + columns[two]):
        return None
    return rows.reshape(outer.shape), columns.reshape(inner.shape)


def _lines(layout: Layout, width: int) -> tuple[Array, Array]:
    """Offsets by outer axes, the base among them, and by the inner axes, as many of the last ones as fit into a row.

    A vector is one row.
    """
    axes = [table(axis) for axis in layout.axes] or [np.zeros(1, np.int64)]
    outer, inner = np.full((), layout.base, np.int64), np.zeros((), np.int64)
    fits = len(axes) - 1
    while fits > 1 and np.prod([len(axis) for axis in axes[fits - 1 :]]) <= width:
        fits -= 1
    for axis in axes[:fits]:
        outer = outer[..., None] + axis
    for axis in axes[fits:]:
        inner = inner[..., None] + axis
    return outer, inner


class _Inside(NamedTuple):
    """A part's axes: offsets in its file, sorted, and what each counts in the assembled tensor; ``start``: where its first element is."""

    base: int
    axes: tuple[tuple[Array, Array], ...]
    start: int


def _placed(tensor: JoinedTensor, source: Source) -> list[tuple[PtTensor, _Inside]]:
    """The parts of an assembled tensor that lie in a source's file."""
    found, at = [], 0
    shape = list(tensor.parts[0].shape)
    if tensor.combine == "cat" and tensor.axis is not None:
        shape[tensor.axis] = sum(part.shape[tensor.axis] for part in tensor.parts)
    strides = [int(np.prod(shape[axis + 1 :], dtype=np.int64)) for axis in range(len(shape))]
    for part in tensor.parts:
        if _is_of(part, source):
            layout = layout_of(part.tensor, part.source.steps or ())
            start = at * strides[tensor.axis] if tensor.axis is not None and tensor.combine == "cat" else 0
            found.append((part.tensor, _inside(layout, strides, start)))
        at += part.shape[tensor.axis] if tensor.combine == "cat" and tensor.axis is not None else 0
    return found


def _inside(layout: Layout, strides: Sequence[int], start: int) -> _Inside:
    axes = []
    base = layout.base
    for axis, stride in zip(layout.axes, strides, strict=True):
        offsets = table(axis)
        order = np.argsort(offsets, kind="stable")
        base += int(offsets[order[0]])
        axes.append((offsets[order] - offsets[order[0]], order * stride))
    axes.sort(key=lambda one: -(int(one[0][1]) if len(one[0]) > 1 else 0))  # the slowest in the file first
    return _Inside(base, tuple(axes), start)


def _found(offsets: Array, parts: Sequence[tuple[PtTensor, _Inside]], source: Source) -> Array:
    """The places in the assembled tensor of offsets in a file. Raises OperandError where one is in no part."""
    places = np.full(len(offsets), -1, np.int64)
    for _, part in parts:
        left, place = offsets - part.base, np.full(len(offsets), part.start, np.int64)
        for own, counts in part.axes:
            item = np.clip(np.searchsorted(own, left, side="right") - 1, 0, None)
            left, place = left - own[item], place + counts[item]
        places = np.where((left == 0) & (places < 0), place, places)
    if (places < 0).any():
        raise OperandError("steps", f"{source.name}: elements that the assembled dump does not hold")
    return places
