"""The exact gate: are the two sides of each mapping row equal, bit for bit, and if not, what the difference measures."""

from collections.abc import Callable, Sequence

import msgspec

from . import floats, stated_rows, tokens
from .artefacts.boundary_results import BoundaryResult, SidesCount, SidesDtype, SidesOperand, SidesShape, Special, Status, Unequal
from .artefacts.common import Worded
from .artefacts.semantic_mapping import MissingRow, Row
from .grids import grid_of
from .measure import gains, heads
from .measure import row as measured
from .measure.figures import width_of
from .measure.row import Measure
from .measure.where import Axes, where
from .pairs import Found, Gap, Pair, Walked, find_pairs, walk
from .sides import Side
from .tally import Tally
from .tensors import Stream
from .wording import word

_WASTED = 1 << 16  # bytes of a side's files; less is not worth a word


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
    done = [BoundaryResult(row.boundary, row.order, "evidence_missing", reason=row.reason) for row in missing]
    pairs, gaps = find_pairs(rows, train, infer)
    unsaved = [row for row, gap in gaps if gap.reason.kind == "statistics_only_tensor"]
    done += stated_rows.results(unsaved, train, infer)
    for row, gap in gaps:
        if row not in unsaved:
            done.append(_gap_result(row, gap, None))
        advance()
    measures = _Measures(pairs)
    for pair, ended in walk(pairs, measures.measure_of):
        taken, axes = measures.close(pair)
        done.append(_gap_result(pair.row, ended, pair) if isinstance(ended, Gap) else _result(pair, ended, taken, axes))
        advance()
    return sorted(done, key=lambda result: result.order), [*_dtype_notes(pairs), *_storage_notes(pairs)]


class _Measures:
    """The measures of the rows whose blocks are being read."""

    def __init__(self, pairs: Sequence[Pair]) -> None:
        self._tokens = tokens.tokens_of(pairs)
        self._shape = self._tokens.shape if self._tokens else None
        self._widths = heads.widths(pairs, self._shape)
        self._measures: dict[str, Measure] = {}
        self._numbers: dict[str, list[int] | None] = {}

    def measure_of(self, pair: Pair, left: Stream, right: Stream) -> Measure:
        """Begin a row."""
        name = pair.row.boundary
        grid = grid_of(name, left.shape, self._shape, width_of((left.dtype, right.dtype)).itemsize)
        grid, self._numbers[name] = tokens.numbered(self._tokens, pair, grid)
        formats = [place.record.dtype or tensor.dtype for found in (pair.train, pair.infer) for place, tensor in found.each()]
        self._measures[name] = Measure(grid, left, right, formats)
        return self._measures[name]

    def close(self, pair: Pair) -> tuple[Measure | None, Axes]:
        """What was measured of a row, None where it was not begun, and its axes; nothing of it is kept."""
        name = pair.row.boundary
        return self._measures.pop(name, None), Axes(self._numbers.pop(name, None), self._widths.get(name))


def _gap_result(row: Row, gap: Gap, pair: Pair | None) -> BoundaryResult:
    dtype = _recorded(pair) if pair else None
    return BoundaryResult(
        row.boundary, row.order, gap.status, dtype=dtype, ops_applied=SidesOperand(row.train, row.infer), reason=gap.reason
    )


def _recorded(pair: Pair) -> SidesDtype:
    return SidesDtype(*(found.places[0].record.dtype or found.tensors[0].dtype for found in (pair.train, pair.infer)))


def _result(pair: Pair, walked: Walked, taken: Measure | None, axes: Axes) -> BoundaryResult:
    """``taken`` is None where the shapes differ and no block was compared."""
    row, train, infer = pair.row, walked.train.shape, walked.infer.shape
    result = BoundaryResult(row.boundary, row.order, "SHAPE_DIFF", dtype=_recorded(pair), ops_applied=SidesOperand(row.train, row.infer))
    if taken is None:
        but_ones = [size for size in train if size != 1] == [size for size in infer if size != 1]
        reason = word("shapes_but_ones") if but_ones else None
        return msgspec.structs.replace(result, shape=SidesShape(list(train), list(infer)), reason=reason)
    tally, sizes, figures = taken.tally, measured.sizes(taken), measured.measured(taken)
    status = _status(pair.train, pair.infer, tally)
    return msgspec.structs.replace(
        result,
        status=status,
        shape=list(train),
        unequal=Unequal(tally.unequal, tally.unequal / tally.elements),
        special=Special(SidesCount(*tally.nonfinite), tally.zero_sign, tally.nan_both),
        max_abs_diff=sizes.max_abs,
        mean_abs_diff=sizes.mean_abs,
        rms_diff=sizes.rms,
        rel_l2=sizes.rel_l2,
        cosine=sizes.cosine,
        norm_ratio=sizes.norm_ratio,
        ulp=measured.ulp(taken),
        direction=measured.direction(taken),
        where=where(row.boundary, taken, axes, walked.train, walked.infer),
        gain=gains.gain(figures.sums, figures.steps.ulp_format, axes.numbers) if figures is not None else None,
        sampled=measured.sampled(taken),
        reason=_about_nonfinite(tally, status),
    )


def _status(train: Found, infer: Found, tally: Tally) -> Status:
    if tally.nan or tally.nonfinite_differ:
        return "NONFINITE"
    if train.dtype != infer.dtype and not (floats.is_integer(train.dtype) and floats.is_integer(infer.dtype)):
        return "DTYPE_DIFF"
    return "NOT_EXACT" if tally.unequal else "EXACT"


def _about_nonfinite(tally: Tally, status: Status) -> Worded | None:
    """How many, where, on which side; the place named is the first where the sides differ, if one is."""
    first = tally.first_apart or tally.first_nonfinite
    if first is None:
        return None
    if status != "NONFINITE":
        return word("equal_infinities", n=tally.nonfinite[0])
    index, where = first
    return word(
        "nonfinite_found",
        train=tally.nonfinite[0],
        infer=tally.nonfinite[1],
        train_alone=tally.alone[0],
        infer_alone=tally.alone[1],
        nan_both=tally.nan_both,
        index=index,
        first=word("both") if where == "both" else where,
    )


def _storage_notes(pairs: Sequence[Pair]) -> list[Worded]:
    """Once a side: files that hold a larger storage of which the tensor is a view, as torch.save writes them."""
    notes: list[Worded] = []
    for label, found in (("train", [pair.train for pair in pairs]), ("infer", [pair.infer for pair in pairs])):
        wasted = {
            place.record.name: spare
            for each in found
            for place, tensor in each.each()
            if (spare := tensor.storage_bytes - tensor.elements * tensor.item_size) > tensor.elements * tensor.item_size
        }
        if sum(wasted.values()) > _WASTED:
            most = max(wasted, key=lambda name: wasted[name])
            notes.append(word("storage_wasted", side=label, n=len(wasted), bytes=sum(wasted.values()), name=most))
    return notes


def _dtype_notes(pairs: Sequence[Pair]) -> list[Worded]:
    """Once a side: tensors whose file holds another dtype than dump.json says (fp8 of msprobe 26.0 is such a case)."""
    notes: list[Worded] = []
    for label, found in (("train", [pair.train for pair in pairs]), ("infer", [pair.infer for pair in pairs])):
        apart = {
            place.record.name: (place.record.dtype, tensor.dtype)
            for each in found
            for place, tensor in each.each()
            if place.record.dtype not in (None, tensor.dtype)
        }
        for name, (recorded, stored) in list(apart.items())[:1]:
            notes.append(word("dtype_in_file", side=label, n=len(apart), name=name, recorded=recorded, stored=stored))
    return notes
