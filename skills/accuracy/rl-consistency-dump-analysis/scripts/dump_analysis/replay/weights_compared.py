"""The weights of both sides, compared element by element before either is used, and what kind of difference they have."""

from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple

import msgspec
import numpy as np
from msprobe_files.pt_archive import PtTensor
from msprobe_files.weight_kinds import Difference, difference
from msprobe_files.weight_walk import Weight

from dump_analysis.artefacts.common import Worded
from dump_analysis.artefacts.replay_results import WeightReplay, WeightRows
from dump_analysis.artefacts.semantic_mapping import Row, SemanticMapping
from dump_analysis.replay import weight_words
from dump_analysis.replay.modules import Pair
from dump_analysis.replay.previous import stale_sides
from dump_analysis.replay.recorded import CannotReplay, Matrix, mapped_value_of, place_of
from dump_analysis.replay.weights_exchanged import exchanged
from dump_analysis.tensors import Files, same
from dump_analysis.wording import word

_BLOCK = 1 << 18  # elements
_MOST_ROWS = 64  # listed
_LIKE_PARTS = ("partial", "small_update", "different", "stale")
_LISTED = ("partial", "one_ulp", "scaled", "swapped")  # where few rows differ, which ones


class Compared(NamedTuple):
    """A weight: what is written of it, and how many of its elements differ.

    ``stores_one_more``: the side that stores 1 + w where the other stores w.
    """

    result: WeightReplay
    unequal: int
    of: int
    stores_one_more: Literal["", "train", "infer"] = ""


def compared(mapping: SemanticMapping, pair: Pair, previous: Mapping[str, PtTensor] | None = None) -> list[Compared]:
    """Every weight of the mapping, those that one side lacks as evidence that is missing. ``previous``: an earlier checkpoint's."""
    found: list[Compared] = []
    differing: dict[str, Difference] = {}
    dtypes: dict[str, tuple[str, str]] = {}
    for row in mapping.weights:
        one, how = _compared(row, pair, dtypes)
        found.append(one)
        if how is not None:
            differing[row.boundary] = how
    elsewhere = exchanged(differing)
    found = [_moved(one, elsewhere.get(one.result.name)) for one in found]
    stale = stale_sides({name: (how, dtypes[name]) for name, how in differing.items()}, previous) if previous and differing else {}
    found = [_stale(one, stale.get(one.result.name)) for one in found]
    found = _with_fused(_with_tied_head(found, mapping.weights, pair), mapping.weights, pair)
    lacking = [row.boundary for row in mapping.evidence_missing if row.boundary.endswith((".weight", ".bias"))]
    return found + [Compared(WeightReplay(name, "evidence_missing", None, None), 0, 0) for name in lacking]


def _compared(row: Row, pair: Pair, dtypes: dict[str, tuple[str, str]]) -> tuple[Compared, Difference | None]:
    files = Files()
    try:
        train, infer = mapped_value_of(files, pair.train, row.train), mapped_value_of(files, pair.infer, row.infer)
        if (train.rows, train.columns) != (infer.rows, infer.columns):
            return Compared(WeightReplay(row.boundary, "SHAPE_DIFF", None, None), 0, 0), None
        if _same(train, infer):
            added = _added(row)
            return Compared(WeightReplay(row.boundary, "EXACT", None, None), 0, train.rows * train.columns, added), None
        dtypes[row.boundary] = train.dtype, infer.dtype
        how = difference(_weight(train), _weight(infer))
    except CannotReplay:
        return Compared(WeightReplay(row.boundary, "MISSING", None, None), 0, 0), None
    finally:
        files.close()
    assert how is not None
    return _result(row, how, (train.dtype, infer.dtype)), how


def _weight(made: Matrix) -> Weight:
    return Weight(made.dtype, made.rows, made.columns, made.read)


def _result(row: Row, how: Difference, dtypes: tuple[str, str]) -> Compared:
    status = "NOT_EXACT" if dtypes[0] == dtypes[1] else "DTYPE_DIFF"
    count = how.of // max(1, how.of // max(1, len(how.keys[0])))
    touched = [at for start, stop in how.rows for at in range(start, stop)] if how.kind in _LISTED else []
    few = 0 < 2 * len(touched) <= count or (touched and how.kind == "partial")
    listed = WeightRows(touched[:_MOST_ROWS], touched[:_MOST_ROWS], count) if few else None
    told = weight_words.told(row.boundary, how)
    # A router's constants choose experts: a format too small for them is a fault, as it is not where products are rounded anyway.
    format_only = how.kind == "rounded" and status == "DTYPE_DIFF" and ".router." not in row.boundary
    if how.kind == "one_added":
        stores: Literal["train", "infer"] = how.facts["side"]
        return Compared(WeightReplay(row.boundary, "EXACT", None, None, told), 0, how.of, stores)
    return Compared(WeightReplay(row.boundary, status, how.kind, listed, told, format_only=format_only), how.unequal, how.of)


def _same(train: Matrix, infer: Matrix) -> bool:
    """Whether all elements are equal; both zeros are, and what is no number on both sides. By their bytes first."""
    if same(train.stream, infer.stream):
        return True
    step = max(1, _BLOCK // max(train.columns, 1))
    parts = ((at, min(train.rows, at + step)) for at in range(0, train.rows, step))
    return all(np.array_equal(train.read(*part), infer.read(*part), equal_nan=True) for part in parts)


def _added(row: Row) -> Literal["", "train", "infer"]:
    """The side that stores 1 + w, where the mapping adds the one to the other."""
    adds = [
        any(op.op == "add" and op.value == 1.0 for source in side.sources for op in source.steps or ()) for side in (row.train, row.infer)
    ]
    return "infer" if adds == [True, False] else "train" if adds == [False, True] else ""


def _moved(one: Compared, told: Worded | None) -> Compared:
    """The weight as swapped, where its rows are those of other weights."""
    if told is None:
        return one
    return one._replace(result=msgspec.structs.replace(one.result, kind="swapped", rows=None, evidence=[told]))


def _stale(one: Compared, side: Literal["train", "infer"] | None) -> Compared:
    """The weight as stale where one side's is the earlier checkpoint's; of a part of it that is a remark."""
    if side is None or one.result.kind not in (*_LIKE_PARTS, "one_ulp", "scaled"):
        return one
    other = "infer" if side == "train" else "train"
    if one.result.kind == "partial":
        told = [*one.result.evidence, word("weight_rows_stale", weight=one.result.name, side=side, other=other)]
        return one._replace(result=msgspec.structs.replace(one.result, evidence=told, side=side))
    told = [word("weight_stale", weight=one.result.name, side=side, other=other), *one.result.evidence]
    return one._replace(result=msgspec.structs.replace(one.result, kind="stale", rows=None, evidence=told, side=side))


def _with_fused(found: Sequence[Compared], rows: Sequence[Row], pair: Pair) -> list[Compared]:
    """Where one fused matrix holds several weights and only some of them differ: a remark for those."""
    status = {one.result.name: one.result.status for one in found}
    told: dict[str, Worded] = {}
    for side in ("train", "infer"):
        holders: dict[tuple[str, int | None, int | None], list[Row]] = {}
        for row in rows:
            sources = getattr(row, side).sources
            if len(sources) == 1 and status.get(row.boundary) in ("EXACT", "NOT_EXACT"):
                holders.setdefault((sources[0].name, sources[0].rank, sources[0].dump_step), []).append(row)
        for (name, _, _), held in holders.items():
            equal = [row.boundary for row in held if status[row.boundary] == "EXACT"]
            if 0 < len(equal) < len(held) and _is_fused(held, pair, side):
                told |= {row.boundary: word("weight_of_fused", weight=row.boundary, name=name, rest=equal) for row in held}
    return [
        _with_remark(one, told[one.result.name]) if one.result.kind in _LIKE_PARTS and one.result.name in told else one for one in found
    ]


def _is_fused(held: Sequence[Row], pair: Pair, side: str) -> bool:
    """Whether one module owns what several weights are cut from: a matrix, or a vector of biases; no flat parameter."""
    shape = place_of(pair.side(side), getattr(held[0], side).sources[0]).record.shape
    return shape is not None and (len(shape) > 1 or all(row.boundary.endswith(".bias") for row in held))


# --- a head that is its own side's embedding ---


def _with_tied_head(found: Sequence[Compared], rows: Sequence[Row], pair: Pair) -> list[Compared]:
    """Where the heads differ: whether one side's is its embedding, and the other's, which was loaded from a head, is not."""
    by_name = {row.boundary: row for row in rows}
    head, embedding = by_name.get("lm_head.weight"), by_name.get("embedding.weight")
    differs = any(one.result.name == "lm_head.weight" and one.unequal for one in found)
    if head is None or embedding is None or not differs:
        return list(found)
    tied: list[Literal["train", "infer"]] = [side for side in ("train", "infer") if _is_tied(pair, side, head, embedding)]
    if len(tied) != 1:
        return list(found)
    told = word("weight_tied", side=tied[0], other="infer" if tied[0] == "train" else "train")
    return [_with_remark(one, told, tied[0]) if one.result.name == "lm_head.weight" else one for one in found]


def _with_remark(one: Compared, told: Worded, side: Literal["train", "infer"] | None = None) -> Compared:
    """``side``: whose fault the remark proves."""
    return one._replace(result=msgspec.structs.replace(one.result, evidence=[*one.result.evidence, told], side=side or one.result.side))


def _is_tied(pair: Pair, side: str, head: Row, embedding: Row) -> bool:
    files = Files()
    try:
        one, other = (mapped_value_of(files, pair.side(side), getattr(row, side)) for row in (head, embedding))
        return (one.rows, one.columns) == (other.rows, other.columns) and _same(one, other)
    except CannotReplay:
        return False
    finally:
        files.close()
