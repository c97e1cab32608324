"""What is known of one side of a mapping row of which a side saved no tensors: shape, statistics, digest."""

import math
import zlib
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from msprobe_files.errors import DumpError
from msprobe_files.operands import Op, Operand, OperandError, combined_shape, shape_after, slice_of
from msprobe_files.pt_archive import PtTensor

from . import floats, tensors
from .artefacts.boundary_results import Status
from .artefacts.common import Worded
from .sides import Place, Side, resolve
from .statistics import Facts, added, facts_of, together
from .tensors import BLOCK_BYTES, Files, Stream, elements_of
from .wording import word

_SAME_BYTES = ("squeeze", "reshape")
_SAME_NUMBERS = (*_SAME_BYTES, "permute")
Run = tuple[int, int]


class Cut(NamedTuple):
    """Which run of which axis of a recorded tensor; ``size``: of that axis."""

    name: str
    axis: int
    run: Run
    size: int
    whole: Facts


class End(NamedTuple):
    """One side of a row. ``facts``: of its value, None where they are not known. ``plain``: its bytes are those of one file.

    ``shape``: after all ops; None where ``gap`` says why there is none.  ``cut``: the tensor of which it is a part, where the
    statistics of the whole alone are known.  ``damaged``: why a file that was saved is not used.
    """

    places: list[Place]
    shape: tuple[int, ...] | None
    facts: Facts | None
    plain: bool
    cut: Cut | None
    gap: tuple[Status, Worded] | None
    damaged: Worded | None


class _Headers(NamedTuple):
    """The files of a side's sources, None where none was saved or it is damaged, and why the first is."""

    each: list[PtTensor | None]
    damaged: Worded | None


class _NoShape(NamedTuple):
    """Why no shape of a value is known."""

    status: Status
    reason: Worded


def end_of(side: Side, operand: Operand, files: Files) -> End:
    """What a side knows of the value of an operand."""
    found = [resolve(side, source) for source in operand.sources]
    places = [place for place in found if place is not None]
    if len(places) < len(found):
        lacking = next(source.name for source, place in zip(operand.sources, found, strict=True) if place is None)
        return End(places, None, None, False, None, ("MISSING", word("tensor_missing", side=side.label, name=lacking)), None)
    steps = [source.steps or () for source in operand.sources]
    headers = _headers(side, places)
    shape = _shape(side, operand, places, headers)
    if isinstance(shape, _NoShape):
        return End(places, None, None, False, None, (shape.status, shape.reason), headers.damaged)
    facts = [_facts_after(facts_of(place.record), one) for place, one in zip(places, steps, strict=True)]
    plain = len(places) == 1 and all(op.op in _SAME_BYTES for op in steps[0])
    cut = _cut(places[0], steps[0]) if len(places) == 1 else None
    return End(places, shape, _measured(operand, headers, files) or _joined(operand, facts), plain, cut, None, headers.damaged)


def _joined(operand: Operand, facts: Sequence[Facts | None]) -> Facts | None:
    known = [one for one in facts if one is not None]
    if len(known) < len(facts):
        return None
    if operand.combine is None:
        return known[0]
    return together(known) if operand.combine == "cat" else added(known)


def _facts_after(facts: Facts, steps: Sequence[Op]) -> Facts | None:
    """None where ops leave a part of a tensor, or change its values."""
    if not facts.known and facts.digest is None:
        return None
    kept = [op.op for op in steps if op.op not in _SAME_NUMBERS and not (op.op == "cast" and op.dtype in ("float32", "int64"))]
    return None if kept else facts


# --- files and shapes ---


def _headers(side: Side, places: Sequence[Place]) -> _Headers:
    """A file that is damaged, or of another run than dump.json, is not used: statistics stand in for it, and the row says so."""
    each: list[PtTensor | None] = []
    damaged: Worded | None = None
    for place in places:
        header, record = None, place.record
        if place.tensor is None and (record.file is not None or record.refused is not None):
            try:
                header = tensors.header(place)
            except DumpError as error:
                damaged = damaged or word("tensor_unreadable", side=side.label, why=str(error))
        if header is not None and record.shape is not None and header.shape != record.shape:
            stored = list(header.shape)
            other = word("other_shape", side=side.label, name=record.name, recorded=list(record.shape), stored=stored)
            header, damaged = None, damaged or other
        each.append(header)
    return _Headers(each, damaged)


def _shape(side: Side, operand: Operand, places: Sequence[Place], headers: _Headers) -> tuple[int, ...] | _NoShape:
    shapes: list[tuple[int, ...]] = []
    for source, place, header in zip(operand.sources, places, headers.each, strict=True):
        shape = header.shape if header is not None else place.record.shape
        if shape is None and headers.damaged is not None:
            return _NoShape("MISSING", headers.damaged)
        if shape is None:
            return _NoShape("evidence_missing", word("shape_not_recorded", side=side.label, name=place.record.name))
        try:
            shapes.append(shape_after(source.steps or (), shape))
        except OperandError as error:
            return _NoShape("MISSING", word("op_does_not_fit", side=side.label, where=error.where, why=error.why))
    try:
        return combined_shape(operand, shapes) if operand.combine is not None else shapes[0]
    except OperandError as error:
        return _NoShape("MISSING", word("op_does_not_fit", side=side.label, where=error.where, why=error.why))


def _cut(place: Place, steps: Sequence[Op]) -> Cut | None:
    """The run that a row takes of one axis of a recorded tensor, where nothing else is done to its values."""
    slices = [at for at, op in enumerate(steps) if op.op == "slice"]
    others = [op for op in steps if op.op not in (*_SAME_BYTES, "slice")]
    if len(slices) != 1 or others or place.record.shape is None:
        return None
    try:
        before = shape_after(steps[: slices[0]], place.record.shape)
        op = steps[slices[0]]
        axis = (op.axis or 0) % len(before)
        return Cut(place.record.name, axis, slice_of(op, before[axis], "steps"), before[axis], facts_of(place.record))
    except (OperandError, ZeroDivisionError):
        return None


# --- files that were saved ---


def _measured(operand: Operand, headers: _Headers, files: Files) -> Facts | None:
    """The facts of a value whose tensors were saved; None where one has no file, or it is no real float."""
    known = [header for header in headers.each if header is not None]
    if len(known) < len(headers.each):
        return None
    try:
        stream = tensors.stream_of(files, operand, known)
    except OperandError:
        return None
    if not elements_of(stream) or floats.FORMATS[stream.dtype].kind != "float":
        return None
    return measured(stream)


def measured(stream: Stream) -> Facts:
    """The facts of the float values of a stream; one NaN makes all four statistics NaN, as torch's are."""
    count = elements_of(stream)
    largest, smallest, total, squares, digest = -math.inf, math.inf, 0.0, 0.0, 0
    step = BLOCK_BYTES // floats.FORMATS[stream.dtype].raw.itemsize
    for start in range(0, count, step):
        raw = stream.read(start, min(count, start + step))
        digest = zlib.crc32(np.ascontiguousarray(raw).tobytes(), digest)
        with np.errstate(over="ignore", invalid="ignore"):
            values = floats.values(raw, stream.dtype).astype(np.float64)
            largest, smallest = float(np.maximum(largest, values.max())), float(np.minimum(smallest, values.min()))
            total, squares = total + float(values.sum()), squares + float((values**2).sum())
    return Facts(count, stream.dtype, largest, smallest, total / count, math.sqrt(squares), f"{digest:08x}")
