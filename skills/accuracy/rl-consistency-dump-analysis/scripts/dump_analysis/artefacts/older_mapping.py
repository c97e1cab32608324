"""The older form of a mapping, which users' files still carry, read as data: its slices are parsed, never run.

A list of rows ``{"name", "semantic_boundary", "layer", "execution_order", "train_glob", "infer_glob", "infer_globs",
"transform", "note"}``. Globs name files of dump_tensor_data; ``infer_globs`` takes the place of ``infer_glob``. A
``transform`` holds, in the order in which they act: ``squeeze`` (axes that are dropped where they have size 1, the last
first) and ``reshape`` on both sides, ``train_slice`` and ``infer_slice`` (``start:stop`` for each axis), and
``infer_concat`` (the tensors of ``infer_globs`` one after the other on axis 0). A row without any of them names its
tensors as a bare name of the current form does.
"""

import re
from typing import Any, Literal, NamedTuple

import msgspec
from msprobe_files.errors import DumpError
from msprobe_files.operands import Op, Operand, Shape, Source

from . import io

_OWN = frozenset({"semantic_boundary", "execution_order", "train_glob", "infer_glob", "infer_globs", "transform"})
_NUMBER = r"-?(?:0|[1-9][0-9]{0,17})"
_AXIS = re.compile(rf"({_NUMBER})?[ \t]*:[ \t]*({_NUMBER})?")
_SHOWN = 40  # characters of a slice that an error repeats


class OlderOperand(Operand):
    """An operand whose squeezes drop only axes of size 1 (see `fitting`): one list of axes served both sides."""

    __slots__ = ()


class Listed(NamedTuple):
    """One row, as the current form has it; ``order`` is its place in the model."""

    boundary: str
    order: int
    train: Operand
    infer: Operand
    note: str | None


class _Transform(msgspec.Struct, frozen=True):
    squeeze: list[int | None] | None = None
    reshape: list[int] | None = None
    train_slice: str | None = None
    infer_slice: str | None = None
    infer_concat: bool | None = None


class _OlderRow(msgspec.Struct, frozen=True):
    name: str
    train_glob: str
    infer_glob: str | None = None
    infer_globs: list[str] | None = None
    semantic_boundary: str | None = None
    layer: int | str | None = None
    execution_order: int | float | None = None
    transform: _Transform | None = None
    note: str | None = None


class _OlderRows(msgspec.Struct, frozen=True):
    rows: list[_OlderRow]
    schema: Literal["rows"] = "rows"


def is_older(value: list[Any]) -> bool:
    """Whether a list of rows is in the older form: a row carries its keys, and no ``boundary``."""
    return any(isinstance(row, dict) and bool(_OWN & row.keys()) and "boundary" not in row for row in value)


def rows(value: list[Any], shown: str) -> list[Listed]:
    """The rows in the order of the model: by ``execution_order``, rows of one number as they are listed, or all as they are listed.

    ``shown`` names the file in messages. Raises DumpError naming the field that is spelt otherwise, and what to write.
    """
    current = next((at for at, row in enumerate(value) if isinstance(row, dict) and "boundary" in row), None)
    if current is not None:
        raise DumpError(f"Cannot use {shown}: rows[{current}] is in the current form and others in the older one. Write all in one form.")
    given, _ = io.of_value({"schema": "rows", "rows": value}, _OlderRows, shown, written_by_people=True)
    orders = [row.execution_order for row in given.rows if row.execution_order is not None]
    if orders and len(orders) < len(given.rows):
        raise DumpError(f"Cannot use {shown}: {len(orders)} of {len(given.rows)} rows state an execution_order. Give it to all or none.")
    places = sorted(range(len(given.rows)), key=lambda at: orders[at] if orders else at)
    return [_listed(given.rows[at], order, f"{shown}: rows[{at}]") for order, at in enumerate(places)]


def fitting(steps: tuple[Op, ...], shape: Shape) -> tuple[Op, ...]:
    """The steps without the squeezes of axes that a tensor of this shape lacks, or that are not of size 1."""
    kept: list[Op] = []
    left = list(shape)
    for op in steps:
        if op.op == "squeeze":
            if not -len(left) <= op.axis < len(left) or left[op.axis] != 1:
                continue
            del left[op.axis]
        kept.append(op)
    return tuple(kept)


def slices(text: str) -> tuple[Op, ...]:
    """The ops of ``[start:stop, …]``, one item an axis, brackets or not; a bare ``:`` cuts nothing.

    Raises ValueError with the item that is spelt otherwise.
    """
    inner = text.strip()
    if inner.startswith("[") and inner.endswith("]"):
        inner = inner[1:-1]
    ops: list[Op] = []
    for axis, item in enumerate(inner.split(",")):
        found = _AXIS.fullmatch(item.strip(" \t"))
        if found is None:
            raise ValueError(item.strip(" \t"))
        start, stop = (None if end is None else int(end) for end in found.groups())
        if (start, stop) != (None, None):
            ops.append(Op("slice", axis=axis, start=start, stop=stop))
    return tuple(ops)


def _listed(row: _OlderRow, order: int, where: str) -> Listed:
    transform = row.transform or _Transform()
    both = _on_both_sides(transform)
    of_train = _cut(transform.train_slice, f"{where}.transform.train_slice")
    of_infer = _cut(transform.infer_slice, f"{where}.transform.infer_slice")
    bare = not (both or of_train or of_infer)
    train = _source(row.train_glob, f"{where}.train_glob", None if bare else both + of_train)
    globs = _infer_globs(row, transform, where)
    infer = [_source(glob, f"{where}.{field}", None if bare else both + of_infer) for field, glob in globs]
    told = [text for text in (row.semantic_boundary, row.note) if text and text != row.name]
    joined = OlderOperand(infer, "cat", 0) if len(infer) > 1 else OlderOperand(infer)
    return Listed(row.name, order, OlderOperand([train]), joined, "; ".join(told) or None)


def _on_both_sides(transform: _Transform) -> tuple[Op, ...]:
    axes = sorted((axis for axis in transform.squeeze or () if axis is not None), reverse=True)
    squeezed = tuple(Op("squeeze", axis=axis) for axis in axes)
    return (*squeezed, Op("reshape", shape=tuple(transform.reshape))) if transform.reshape else squeezed


def _cut(text: str | None, where: str) -> tuple[Op, ...]:
    try:
        return slices(text) if text else ()
    except ValueError as error:
        raise DumpError(
            f"Cannot use {where}: {str(error)[:_SHOWN]!r} is not start:stop. Write start:stop for each axis, as in [:, 0:64]; "
            "for anything else write the row in the current form (analyze_dump_boundaries.py --help)."
        ) from None


def _infer_globs(row: _OlderRow, transform: _Transform, where: str) -> list[tuple[str, str]]:
    """The globs of the engine's side, each with the field that it stands in."""
    if row.infer_globs is None:
        if row.infer_glob is None:
            raise DumpError(f"Cannot use {where}.infer_glob: it is missing. Write the name or glob of the engine's file.")
        return [("infer_glob", row.infer_glob)]
    if not row.infer_globs:
        raise DumpError(f"Cannot use {where}.infer_globs: it names no file. Write the names or globs, or remove the field.")
    if len(row.infer_globs) > 1 and not transform.infer_concat:
        raise DumpError(
            f"Cannot use {where}.infer_globs: it names {len(row.infer_globs)} files, and transform.infer_concat is not true. "
            "Write true to join them on axis 0, or name one file."
        )
    return [(f"infer_globs[{at}]", glob) for at, glob in enumerate(row.infer_globs)]


def _source(glob: str, where: str, steps: tuple[Op, ...] | None) -> Source:
    name = glob.removesuffix(".pt")
    if not name or "/" in name:
        raise DumpError(
            f"Cannot use {where}: {glob!r} is no file of dump_tensor_data. Write the file's name or a glob of it, without folders."
        )
    return Source(name, None, None, steps)
