"""The exact gate: are the two sides of each mapping row equal, bit for bit, and if not, how many elements differ.

Equality first: blocks of both sides are compared as bytes; only a block that differs is widened to
values.  Rows that share a file are walked in step, so that a fused tensor is read once.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import msgspec
import numpy as np
from msprobe_files import release
from msprobe_files.errors import DumpError
from msprobe_files.operands import Operand, OperandError
from msprobe_files.pt_archive import PtTensor, read_bytes
from msprobe_files.units import Record, Unit

from . import floats, tensors
from .artefacts.boundary_results import BoundaryResult, SidesCount, SidesDtype, SidesOperand, SidesShape, Special, Status, Unequal
from .artefacts.common import Worded
from .artefacts.semantic_mapping import MissingRow, Row
from .floats import Array
from .sides import Place, Side, entry_outputs, resolve
from .tensors import BLOCK_BYTES, Files, Stream
from .wording import word

_LARGEST_GROUP = 24  # rows walked in step: bounds windows and open files


class Found(NamedTuple):
    """An operand whose tensors were found: where they are recorded, their files, and the dtype that is theirs."""

    operand: Operand
    places: tuple[Place, ...]
    tensors: tuple[PtTensor, ...]
    dtype: str


class _Gap(Exception):
    """A row that cannot be compared, with its status and reason."""

    def __init__(self, status: Status, reason: Worded) -> None:
        super().__init__(reason.text)
        self.status: Status = status
        self.reason = reason


class _Job(NamedTuple):
    row: Row
    train: Found
    infer: Found


def compare(
    rows: Sequence[Row],
    missing: Sequence[MissingRow],
    train: Side,
    infer: Side,
    *,
    advance: Callable[[], object] = lambda: None,
) -> tuple[list[BoundaryResult], list[Worded]]:
    """The result of every row in the mapping's order, and notes for the user. ``advance`` is called once a row is done.

    Raises DumpError where a glob or a name is ambiguous; all else that goes wrong is a row's status.
    """
    done: list[BoundaryResult] = [BoundaryResult(row.boundary, row.order, "evidence_missing", reason=row.reason) for row in missing]
    jobs: list[_Job] = []
    in_place = _InPlace()
    for row in rows:
        try:
            jobs.append(_Job(row, find(train, row.train, in_place), find(infer, row.infer, in_place)))
        except _Gap as gap:
            done.append(
                BoundaryResult(row.boundary, row.order, gap.status, ops_applied=SidesOperand(row.train, row.infer), reason=gap.reason)
            )
            advance()
    for group in _groups(jobs):
        done += _compare_group(group, advance)
    return sorted(done, key=lambda result: result.order), _dtype_notes(jobs)


# --- finding a row's tensors ---


class _InPlace:
    """Inputs that were recorded after their module had overwritten them, told once per unit."""

    def __init__(self) -> None:
        self._told: dict[str, bool] = {}

    def check(self, side: Side, place: Place) -> None:
        if place.record.category != "input" or not self._post_call(place.unit):
            return
        data = _whole(place.unit, place.record)
        for output in entry_outputs(place):
            if data is not None and output.dtype == place.record.dtype and _whole(place.unit, output) == data:
                reason = word("input_after_call", side=side.label, name=place.record.name, output=output.name)
                raise _Gap("evidence_missing", reason)

    def _post_call(self, unit: Unit) -> bool:
        if unit.place.folder not in self._told:
            self._told[unit.place.folder] = release.inputs_are(unit) == release.POST_CALL
        return self._told[unit.place.folder]


def _whole(unit: Unit, record: Record) -> bytes | None:
    try:
        return read_bytes(tensors.header(Place(unit, record)))
    except DumpError:
        return None


def find(side: Side, operand: Operand, in_place: _InPlace) -> Found:
    places: list[Place] = []
    headers: list[PtTensor] = []
    for source in operand.sources:
        place = resolve(side, source)
        if place is None:
            raise _Gap("MISSING", word("tensor_missing", side=side.label, name=source.name))
        headers.append(_header(side, place))
        in_place.check(side, place)
        places.append(place)
    recorded = places[0].record.dtype
    dtype = recorded if recorded in floats.FORMATS else headers[0].dtype
    for source in operand.sources[:1]:
        for op in source.steps or ():
            dtype = op.dtype if op.op == "cast" else dtype
    return Found(operand, tuple(places), tuple(headers), dtype)


def _header(side: Side, place: Place) -> PtTensor:
    record = place.record
    if record.file is None and record.refused is None:
        empty = record.shape is not None and 0 in record.shape
        raise _Gap("evidence_missing", word("no_elements" if empty else "statistics_only_tensor", side=side.label, name=record.name))
    try:
        tensor = tensors.header(place)
    except DumpError as error:
        raise _Gap("MISSING", word("tensor_unreadable", side=side.label, why=str(error))) from None
    if tensor.elements == 0:
        raise _Gap("evidence_missing", word("no_elements", side=side.label, name=record.name))
    return tensor


# --- walking ---


def _groups(jobs: Sequence[_Job]) -> Iterator[list[_Job]]:
    """Rows that share a file, together and in order; large groups are cut."""
    first_with: dict[str, int] = {}
    leader = list(range(len(jobs)))

    def head(at: int) -> int:
        while leader[at] != at:
            leader[at] = at = leader[leader[at]]
        return at

    for at, job in enumerate(jobs):
        for tensor in job.train.tensors + job.infer.tensors:
            leader[head(at)] = head(first_with.setdefault(tensor.path, at))
    together: dict[int, list[_Job]] = {}
    for at, job in enumerate(jobs):
        together.setdefault(head(at), []).append(job)
    for group in together.values():
        for start in range(0, len(group), _LARGEST_GROUP):
            yield group[start : start + _LARGEST_GROUP]


def _compare_group(group: Sequence[_Job], advance: Callable[[], object]) -> list[BoundaryResult]:
    files = Files()
    widest = max(_file_row(tensor) for job in group for tensor in job.train.tensors + job.infer.tensors)
    done: list[BoundaryResult] = []
    try:
        walks = [_walk(job, files, widest) for job in group]
        while walks:
            left = []
            for walk in walks:
                result = next(walk)
                if result is None:
                    left.append(walk)
                else:
                    done.append(result)
                    advance()
            walks = left
    finally:
        files.close()
    return done


def _file_row(tensor: PtTensor) -> int:
    """Bytes of one row of a file's tensor: what several column cuts of it share."""
    return (tensor.strides[-2] if len(tensor.strides) > 1 else 1) * tensor.item_size


def _walk(job: _Job, files: Files, widest: int) -> Iterator[BoundaryResult | None]:
    """None after each block, the row's result at the end."""
    try:
        train = _stream(job.train, files, "train")
        infer = _stream(job.infer, files, "infer")
        if train.shape != infer.shape:
            yield _result(job, "SHAPE_DIFF", None, train, infer)
            return
        tally = Tally(train.dtype, infer.dtype)
        total = int(np.prod(train.shape, dtype=np.int64))
        step = _block(min(train.pitch, infer.pitch), max(_item(train), _item(infer)), widest)
        for start in range(0, total, step):
            stop = min(total, start + step)
            tally.add(start, train.read(start, stop), infer.read(start, stop))
            if stop < total:
                yield None
        yield _result(job, _status(job, tally), tally, train, infer)
    except _Gap as gap:
        yield _gap_result(job, gap)
    except DumpError as error:
        yield _gap_result(job, _Gap("MISSING", word("tensor_unreadable", side="train or infer", why=str(error))))


def _stream(found: Found, files: Files, side: str) -> Stream:
    try:
        return tensors.stream_of(files, found.operand, found.tensors)
    except OperandError as error:
        raise _Gap("MISSING", word("op_does_not_fit", side=side, where=error.where, why=error.why)) from None


def _item(stream: Stream) -> int:
    return floats.FORMATS[stream.dtype].raw.itemsize


def _block(pitch: int, item: int, widest: int) -> int:
    """Elements of a block: whole rows, as many as the widest file row of the group allows to stay in step."""
    most = max(1, BLOCK_BYTES // item)
    return most if pitch >= most else pitch * max(1, BLOCK_BYTES // max(pitch * item, widest))


# --- counting ---


class Tally:
    """What one row's blocks add up to. Counts are exact; the largest difference is over finite pairs, in float64."""

    def __init__(self, train_dtype: str, infer_dtype: str) -> None:
        self._dtypes = (train_dtype, infer_dtype)
        self._same = train_dtype == infer_dtype
        self.elements = 0
        self.unequal = 0
        self.zero_sign = 0
        self.nan_both = 0
        self.nan = 0
        self.nonfinite = [0, 0]
        self.nonfinite_differ = 0
        self.max_abs = 0.0
        self.first_unequal: int | None = None
        self.first_nonfinite: tuple[int, str] | None = None

    def add(self, start: int, train: Array, infer: Array) -> None:
        """Count one block; ``start``: the flat index of its first element."""
        self.elements += len(train)
        if self._same and _same_bytes(train, infer):
            found = _nonfinite_elements(train, self._dtypes[0])
            if found is not None:
                self._count_nonfinite(start, train, train, found, found)
            return
        left, right = _nonfinite_elements(train, self._dtypes[0]), _nonfinite_elements(infer, self._dtypes[1])
        if left is not None or right is not None:
            nothing = np.zeros(len(train), bool)
            self._count_nonfinite(start, train, infer, nothing if left is None else left, nothing if right is None else right)
        self._count_unequal(start, train, infer)

    def _count_nonfinite(self, start: int, train: Array, infer: Array, left: Array, right: Array) -> None:
        at = np.flatnonzero(left | right)
        if self.first_nonfinite is None:
            first = int(at[0])
            where = "both" if left[first] and right[first] else "train" if left[first] else "infer"
            self.first_nonfinite = (start + first, where)
        self.nonfinite[0] += int(left.sum())
        self.nonfinite[1] += int(right.sum())
        a, b = _numbers(train[at], self._dtypes[0]), _numbers(infer[at], self._dtypes[1])
        nan_left, nan_right = _folded(np.isnan(a), at), _folded(np.isnan(b), at)
        self.nan += int((nan_left | nan_right).sum())
        self.nan_both += int((nan_left & nan_right).sum())
        with np.errstate(invalid="ignore"):
            self.nonfinite_differ += int(_folded(a != b, at).sum())

    def _count_unequal(self, start: int, train: Array, infer: Array) -> None:
        at = np.flatnonzero(train != infer) if self._same else np.arange(len(train))
        a, b = _numbers(train[at], self._dtypes[0]), _numbers(infer[at], self._dtypes[1])
        if a.dtype.kind == "f" and b.dtype.kind == "f":
            both_nan = np.isnan(a) & np.isnan(b)
            signs = (a == 0) & (b == 0) & (np.signbit(a) != np.signbit(b))
            self.zero_sign += int(_folded(signs, at).sum())
            apart = (a != b) & ~both_nan
        else:
            apart = a != b
        differs = _folded(apart, at)
        self.unequal += int(differs.sum())
        if self.first_unequal is None and differs.any():
            self.first_unequal = start + int(at[np.flatnonzero(differs)[0]])
        self.max_abs = max(self.max_abs, _largest(a[apart], b[apart]))


def _same_bytes(train: Array, infer: Array) -> bool:
    if train.nbytes % 8 == 0:  # eight bytes at a time: as fast as memcmp
        return bool((train.view(np.uint64) == infer.view(np.uint64)).all())
    return train.tobytes() == infer.tobytes()


def _nonfinite_elements(raw: Array, dtype: str) -> Array | None:
    part, part_dtype, each = floats.parts(raw, dtype)
    found = floats.nonfinite(part, part_dtype)
    if found is None or each == 1:
        return found
    return np.any(found.reshape(-1, each), axis=1)


def _numbers(raw: Array, dtype: str) -> Array:
    """Values to compare: float64 for floats (exact for every format), integers as they are."""
    part, part_dtype, _ = floats.parts(np.ascontiguousarray(raw), dtype)
    found = floats.values(part, part_dtype)
    return found.astype(np.float64) if found.dtype.kind == "f" else found


def _folded(mask: Array, at: Array) -> Array:
    """One answer an element where real and imaginary parts stand one after the other."""
    if len(mask) == len(at):
        return mask
    return np.any(mask.reshape(len(at), -1), axis=1)


def _largest(a: Array, b: Array) -> float:
    """The largest |a − b| of finite pairs; integers in extended precision, so that 64-bit values stay exact."""
    if a.dtype.kind != "f" or b.dtype.kind != "f":
        a, b = a.astype(np.longdouble), b.astype(np.longdouble)
    finite = np.isfinite(a) & np.isfinite(b)
    if not finite.any():
        return 0.0
    with np.errstate(over="ignore"):
        largest = float(np.abs(a[finite] - b[finite]).max())
    return min(largest, float(np.finfo(np.float64).max))  # two float64 of opposite sign can be further apart


# --- results ---


def _status(job: _Job, tally: Tally) -> Status:
    if tally.nan or tally.nonfinite_differ:
        return "NONFINITE"
    train, infer = job.train.dtype, job.infer.dtype
    if train != infer and not (floats.is_integer(train) and floats.is_integer(infer)):
        return "DTYPE_DIFF"
    return "NOT_EXACT" if tally.unequal else "EXACT"


def _gap_result(job: _Job, gap: _Gap) -> BoundaryResult:
    return BoundaryResult(
        job.row.boundary,
        job.row.order,
        gap.status,
        dtype=_recorded(job),
        ops_applied=SidesOperand(job.row.train, job.row.infer),
        reason=gap.reason,
    )


def _recorded(job: _Job) -> SidesDtype:
    return SidesDtype(*(found.places[0].record.dtype or found.tensors[0].dtype for found in (job.train, job.infer)))


def _result(job: _Job, status: Status, tally: Tally | None, train: Stream, infer: Stream) -> BoundaryResult:
    shape: list[int] | SidesShape = list(train.shape)
    if train.shape != infer.shape:
        shape = SidesShape(list(train.shape), list(infer.shape))
    result = BoundaryResult(
        job.row.boundary,
        job.row.order,
        status,
        shape=shape,
        dtype=_recorded(job),
        ops_applied=SidesOperand(job.row.train, job.row.infer),
    )
    if tally is None:
        return result
    result = msgspec.structs.replace(
        result,
        unequal=Unequal(tally.unequal, float(f"{tally.unequal / tally.elements:.4g}")),
        special=Special(SidesCount(*tally.nonfinite), tally.zero_sign, tally.nan_both),
        max_abs_diff=tally.max_abs,
        reason=_special_reason(tally, status),
    )
    if status == "EXACT":
        result = msgspec.structs.replace(result, mean_abs_diff=0.0, rms_diff=0.0, rel_l2=0.0, cosine=1.0, norm_ratio=1.0)
    return result


def _special_reason(tally: Tally, status: Status) -> Worded | None:
    if tally.first_nonfinite is None:
        return None
    if status != "NONFINITE":
        return word("equal_infinities", n=tally.nonfinite[0])
    index, where = tally.first_nonfinite
    first = word("both") if where == "both" else where
    return word("nonfinite_found", train=tally.nonfinite[0], infer=tally.nonfinite[1], index=index, first=first, nan_both=tally.nan_both)


def _dtype_notes(jobs: Sequence[_Job]) -> list[Worded]:
    """Once a side: tensors whose file holds another dtype than dump.json says (fp8 of msprobe 26.0 is such a case)."""
    notes: list[Worded] = []
    for label in ("train", "infer"):
        apart = {
            place.record.name: (place.record.dtype, tensor.dtype)
            for job in jobs
            for place, tensor in zip(getattr(job, label).places, getattr(job, label).tensors, strict=True)
            if place.record.dtype not in (None, tensor.dtype)
        }
        for name, (recorded, stored) in list(apart.items())[:1]:
            notes.append(word("dtype_in_file", side=label, n=len(apart), name=name, recorded=recorded, stored=stored))
    return notes
