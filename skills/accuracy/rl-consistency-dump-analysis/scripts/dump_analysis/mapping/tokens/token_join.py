"""Which token rows of the two sides are the same token: the join, its windows, ids and positions, or why there is none."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from msprobe_files.errors import DumpError
from msprobe_files.operands import Op, Operand, Source

from dump_analysis import floats
from dump_analysis.artefacts.common import Worded
from dump_analysis.floats import Array
from dump_analysis.mapping.recorded.cuts import cut_op
from dump_analysis.mapping.recorded.nodes import Window
from dump_analysis.mapping.recorded.token_rows import window_ops
from dump_analysis.mapping.tokens.token_fits import Fit, Run
from dump_analysis.mapping.tokens.token_vectors import FEWEST, Integers, Vector
from dump_analysis.wording import word


class NotJoined(DumpError):
    """The sides ran different prompts, or nothing tells which token is which. ``reason``: the same as data."""

    def __init__(self, reason: Worded, remedy: str) -> None:
        super().__init__(f"Cannot propose a mapping: {reason.text}. {remedy}")
        self.reason = reason


class OpenIds(NamedTuple):
    """Why ids are not compared. ``train``, ``infer``: names of the tensors of ids that a side recorded."""

    reason: Worded
    train: list[str]
    infer: list[str]


class TokenJoin(NamedTuple):
    """The joined tokens, sequence by sequence: row ``run.train + n`` of the trainer is row ``run.infer + n`` of the engine.

    ``agree``: numbers of the joined tokens whose ids are equal, ``matches`` their count.  ``train_total``, ``infer_total``: token
    rows of each side.  ``remarks``: which of several sequences or forwards the tokens are of, and why; ``alike``: where nothing
    decides which forward.  ``unnamed``: where a side recorded no ids.  ``cached``: the side that took the first tokens from a
    cache, and how many.
    """

    runs: tuple[Run, ...]
    agree: Array
    matches: int
    joined: int
    train_total: int
    infer_total: int
    remarks: tuple[Worded, ...] = ()
    cached: tuple[str, int] | None = None
    alike: OpenIds | None = None
    unnamed: OpenIds | None = None


class JoinedTokens(NamedTuple):
    """The join with, for each side, its window and the operands of its ids and positions."""

    join: TokenJoin
    train: Window
    infer: Window
    ids: tuple[Operand | None, Operand | None]
    positions: tuple[Operand | None, Operand | None]


def joined_tokens(fit: Fit, found: tuple[Integers, Integers]) -> JoinedTokens:
    """The join that a fit makes. Raises NotJoined where the ids agree only at a lag that the positions deny."""
    vectors = fit.train, fit.infer
    windows = [_window(vector, [run[at] for run in fit.runs], fit.runs) for at, vector in enumerate(vectors)]
    cut = [vector.values[window.rows] for vector, window in zip(vectors, windows, strict=True)]
    agree = np.flatnonzero(cut[0] == cut[1])
    positions = _positions([integers.all for integers in found], windows)
    _refuse_lag(fit, positions)
    totals = windows[0].total, windows[1].total
    join = TokenJoin(fit.runs, agree, len(agree), fit.length, *totals, tuple(_remarks(fit, cut[0])), _cached(fit, positions))
    named = all(floats.is_integer(vector.recorded.tensor.dtype) for vector in vectors)
    ids = [_operand(vector, window) if named else None for vector, window in zip(vectors, windows, strict=True)]
    train, infer = (_operand(vector, window) if vector else None for vector, window in zip(positions, windows, strict=True))
    return JoinedTokens(join, windows[0], windows[1], (ids[0], ids[1]), (train, infer))


def _window(vector: Vector, starts: Sequence[int], runs: Sequence[Run]) -> Window:
    """The joined rows of a side. A sequence is what holds a joined run, or more than one token: single ones are padding."""
    spans = [(start, start + run.length) for start, run in zip(starts, runs, strict=True)]
    edges = [*vector.starts.tolist(), len(vector.values)]
    numbers, ran = {}, 0
    held = np.searchsorted(vector.starts, [stop - 1 for _, stop in spans], "right") - 1
    for piece in range(len(vector.starts)):
        inside = sorted((spans[nth], nth) for nth in np.flatnonzero(held == piece))
        numbers.update({int(nth): ran + at for at, (_, nth) in enumerate(inside)})
        ran += len(inside) or int(edges[piece + 1] - edges[piece] > 1)
    return Window(*spans[0], len(vector.values), vector.batch, tuple(spans[1:]), ran, tuple(numbers[nth] for nth in range(len(spans))))


def _remarks(fit: Fit, ids: Array) -> list[Worded]:
    """That several sequences are joined, whether they stand in one order, and whether some cannot be told apart."""
    if len(fit.runs) < 2:
        return []
    infer = [run.infer for run in fit.runs]
    found = [word("sequences_joined" if infer == sorted(infer) else "sequences_permuted", n=len(fit.runs))]
    cuts = np.split(ids, np.cumsum([run.length for run in fit.runs])[:-1])
    same = len(cuts) - len({cut.tobytes() for cut in cuts})
    return found + ([word("sequences_alike", n=same, of=len(cuts))] if same else [])


# --- lags, other prompts ---


def _refuse_lag(fit: Fit, positions: tuple[Vector | None, Vector | None]) -> None:
    """Raise NotJoined where the ids agree only at another lag: a doubled first token, or a shift.

    Then one side has tokens before the joined ones, counts them in its positions, and they are no padding (a run of one id).
    """
    if positions[0] is None or positions[1] is None:
        return
    for run in fit.runs:
        first = fit.train.values[run.train]
        at = [vector.values[run[side] % len(vector.values)] for side, vector in enumerate(positions) if vector is not None]
        for label, vector, start in (("train", fit.train, run.train), ("infer", fit.infer, run.infer)):
            before = vector.values[vector.sequence_at(start)[0] : start]
            padded = len(before) > 1 and len(np.unique(before)) == 1 and before[0] != first
            if len(before) and not padded and at[0] != at[1]:
                what = word("first_twice" if len(before) == 1 and before[0] == first else "shifted")
                raise NotJoined(word("ids_at_lag", n=len(before), side=label, what=what), "Dump one prompt, tokenised once, on both.")


def _cached(fit: Fit, positions: tuple[Vector | None, Vector | None]) -> tuple[str, int] | None:
    """The side that begins a sequence at a position above 0, whose tokens before it the other side ran: it took them from a cache."""
    lacking = {"train": 0, "infer": 0}
    if positions[0] is None or positions[1] is None:
        return None
    for run in fit.runs:
        for side, label in enumerate(("train", "infer")):
            own, other = (fit.train, fit.infer)[side], (fit.train, fit.infer)[1 - side]
            counted = positions[side]
            if counted is None or own.sequence_at(run[side])[0] != run[side]:
                continue
            begins = counted.values[run[side] % len(counted.values)] > 0
            lacking[label] += run[1 - side] - other.sequence_at(run[1 - side])[0] if begins else 0
    label = max(lacking, key=lambda key: lacking[key])
    return (label, lacking[label]) if lacking[label] else None


def apart(found: tuple[Integers, Integers]) -> NotJoined:
    """Two sides whose ids are of different prompts: where they differ."""
    pairs = [(left, right) for left in found[0].ids for right in found[1].ids]
    equal = [_equal(left, right) for left, right in pairs]
    if not pairs:
        return NotJoined(word("no_ids", sides=["train", "infer"], n=FEWEST), "Dump the embedding's input too.")
    at = max(range(len(pairs)), key=lambda nth: equal[nth].sum())
    named = floats.is_integer(pairs[at][0].recorded.tensor.dtype)
    reason = word("ids_apart" if named else "rows_apart", at=np.flatnonzero(~equal[at]).tolist(), of=len(equal[at]))
    return NotJoined(reason, "Dump one prompt, tokenised once, on both" + ("." if named else ", and the embedding's input too."))


def _equal(left: Vector, right: Vector) -> Array:
    """Whether the ids are equal, place by place."""
    length = min(len(left.values), len(right.values))
    same: Array = left.values[:length] == right.values[:length]
    return same


# --- operands ---


def _positions(found: list[list[Vector]], windows: list[Window]) -> tuple[Vector | None, Vector | None]:
    """The vectors that count up by one over each joined sequence: the pair that agrees most, then the earliest."""
    runs = [[vector for vector in vectors if _counts(vector, window)] for vectors, window in zip(found, windows, strict=True)]
    pairs = [(left, right) for left in runs[0] for right in runs[1]]
    if not pairs:
        return runs[0][0] if runs[0] else None, runs[1][0] if runs[1] else None

    def rank(pair: tuple[Vector, Vector]) -> tuple[bool, float]:
        one, other = (vector.values[_rows(vector, window)] for vector, window in zip(pair, windows, strict=True))
        return not np.array_equal(one, other), pair[0].recorded.spot.time + pair[1].recorded.spot.time

    return min(pairs, key=rank)


def _rows(vector: Vector, window: Window) -> Array:
    """Where a vector holds the joined tokens: one value a token, or those of one sequence for every row of a batch."""
    return window.rows % len(vector.values)


def _counts(vector: Vector, window: Window) -> bool:
    if len(vector.values) not in (window.total, window.total // window.batch):
        return False
    steps = np.diff(vector.values[_rows(vector, window)])
    steps[window.lasts[:-1]] = 1
    return bool((steps == 1).all())


def _operand(vector: Vector, window: Window) -> Operand:
    tensor = vector.recorded.tensor
    flat = () if len(tensor.shape) == 1 else (Op("reshape", shape=(tensor.elements,)),)
    cast = () if tensor.dtype == "int64" else (Op("cast", dtype="int64"),)
    if len(vector.values) == window.total:
        taken = window_ops(window)
    else:
        rows = _rows(vector, window)
        taken = () if np.array_equal(rows, np.arange(len(vector.values))) else (cut_op(0, rows),)
    return Operand([Source(vector.recorded.record.name, None, None, flat + taken + cast)])
