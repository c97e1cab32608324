"""Which token rows of the two sides are the same token, found in the integers that both recorded."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from msprobe_files.errors import DumpError
from msprobe_files.operands import Op, Operand, Source

from dump_analysis import floats
from dump_analysis.artefacts.common import Worded
from dump_analysis.floats import Array
from dump_analysis.tensors import CutStream, Files, elements_of

from .nodes import Recorded, SideRecords, Window
from .token_rows import window_ops

FEWEST, _MOST = 4, 1 << 20  # ids in a vector
_COUNTS_UP = 0.7  # share of steps of one from which a vector is positions and no ids
_SHARE = 0.5  # of the ids must agree
_REPEATS = 64  # of one id that vote on the offset
_TRIED = 16  # offsets with most votes


class Alike(NamedTuple):
    """Forwards that match the other side equally. ``train``, ``infer``: names of the tensors of their ids."""

    reason: Worded
    train: list[str]
    infer: list[str]


class TokenJoin(NamedTuple):
    """The joined tokens: row ``train_start + n`` of the trainer is row ``infer_start + n`` of the engine, n < ``joined``.

    ``agree``: numbers n whose ids are equal, ``matches`` their count.  ``train_total``, ``infer_total``: token rows of each side.
    ``remarks``: which of several forwards of a side the tokens are of, and why; ``alike``: where nothing decides that.
    """

    agree: Array
    matches: int
    joined: int
    train_total: int
    infer_total: int
    train_start: int
    infer_start: int
    remarks: tuple[Worded, ...] = ()
    alike: Alike | None = None


class JoinedTokens(NamedTuple):
    """The join with, for each side, its window and the operands of its ids and positions."""

    join: TokenJoin
    train: Window
    infer: Window
    ids: tuple[Operand, Operand]
    positions: tuple[Operand | None, Operand | None]


class Vector(NamedTuple):
    """A distinct recorded vector of integers. ``starts``: where sequences begin in it."""

    recorded: Recorded
    values: Array
    batch: int
    starts: Array


class Fit(NamedTuple):
    """The same ids in two vectors: ``length`` from the starts on, ``matches`` of them equal."""

    matches: int
    length: int
    train: Vector
    infer: Vector
    train_start: int
    infer_start: int

    @property
    def rank(self) -> tuple[float, ...]:
        return self.matches, self.matches / self.length


class Integers(NamedTuple):
    """The vectors of integers that a side recorded, and those among them that may be ids."""

    all: list[Vector]
    ids: list[Vector]


def integers_of(records: SideRecords) -> Integers:
    """The recorded vectors of integers of a unit, or of one forward of it."""
    found = _integers(records)
    return Integers(found, _ids(records, found))


def best_fit(train: Integers, infer: Integers) -> Fit | None:
    """The fit with most equal ids; None where no two vectors agree in half of theirs."""
    fits = [fit for left in train.ids for right in infer.ids for fit in _fits(left, right)]
    return max(fits, key=lambda fit: fit.rank, default=None)


# --- vectors of integers ---


def _integers(records: SideRecords) -> list[Vector]:
    """The distinct vectors of integers among a unit's activations, earliest first; constant ones are masks or lengths."""
    seen: dict[bytes, tuple[Recorded, Array, int]] = {}
    files = Files()
    try:
        for recorded in sorted(records.activations, key=lambda item: item.spot.time):
            sizes = [size for size in recorded.tensor.shape if size != 1]
            plain = recorded.tensor.dtype in ("int64", "int32") and 1 <= len(sizes) <= 2
            if not plain or not FEWEST <= recorded.tensor.elements <= _MOST:
                continue
            values = _values(files, recorded)
            if values is not None and len(np.unique(values[:4096])) > 2:
                seen.setdefault(values.tobytes(), (recorded, values, sizes[0] if len(sizes) == 2 else 1))
    finally:
        files.close()
    counted = [values for _, values, _ in seen.values() if _counts_up(values)]
    return [Vector(*item, _starts(item[1], item[2], counted)) for item in seen.values()]


def _ids(records: SideRecords, vectors: list[Vector]) -> list[Vector]:
    """The vectors that may be ids: those that are no positions; without any, what enters a leaf that holds a matrix (an embedding)."""
    plain = [vector for vector in vectors if not _counts_up(vector.values)]
    holders = {parameter.entry for parameter in records.parameters if len(parameter.tensor.shape) == 2}
    return plain or [vector for vector in vectors if vector.recorded.spot.leaf and vector.recorded.spot.entry in holders]


def _values(files: Files, recorded: Recorded) -> Array | None:
    try:
        stream = CutStream(files, recorded.tensor, ())
        return floats.values(stream.read(0, elements_of(stream)), recorded.tensor.dtype).astype(np.int64)
    except DumpError:
        return None


def _counts_up(values: Array) -> bool:
    return bool((np.diff(values) == 1).mean() > _COUNTS_UP)


def _starts(values: Array, batch: int, counted: list[Array]) -> Array:
    """Where sequences begin: at each row of a batch, and where the first vector of positions of that length does not rise."""
    length = len(values)
    first = next((vector for vector in counted if len(vector) == length), np.arange(length))
    resets = np.flatnonzero(np.diff(first) <= 0) + 1
    return np.union1d(np.arange(0, length, length // batch), resets)


# --- the best offset ---


def _fits(train: Vector, infer: Vector) -> Iterator[Fit]:
    """The window at the offset with most equal ids, where half of the shorter sequence agrees."""
    left, right = train.values, infer.values
    offsets = _likely_offsets(left, right)
    overlaps = [(max(0, at), min(len(left), at + len(right)), at) for at in offsets]
    counted = [(int((left[start:stop] == right[start - at : stop - at]).sum()), stop - start, start, at) for start, stop, at in overlaps]
    matches, length, start, at = max(counted, default=(0, 0, 0, 0))
    if not matches:
        return
    left, right = left[start : start + length], right[start - at : start - at + length]
    equal = left == right
    low, high = _best_run(equal)
    both = [_sequence(vector, (low + high) // 2 + start - shift) for vector, shift in ((train, 0), (infer, at))]
    begin = max(0, both[0][0] - start, both[1][0] + at - start)
    end = min(length, both[0][1] - start, both[1][1] + at - start)
    begin, end = _without_padding(equal, left, right, begin, end)
    if equal[begin:end].sum() < _SHARE * (end - begin):
        begin, end = low, high
    found = int(equal[begin:end].sum())
    shorter = min(_without_runs(vector.values[slice(*span)]) for vector, span in zip((train, infer), both, strict=True))
    if found >= max(FEWEST, _SHARE * shorter):
        yield Fit(found, end - begin, train, infer, begin + start, begin + start - at)


def _likely_offsets(left: Array, right: Array) -> list[int]:
    """Offsets o with left[i + o] == right[i] for most pairs; an id that repeats has few votes for each."""
    order = np.argsort(right, kind="stable")
    low, high = (np.searchsorted(right[order], left, side) for side in ("left", "right"))
    votes = np.zeros(len(left) + len(right), np.int64)
    for nth in range(_REPEATS):
        has = np.flatnonzero(low + nth < high)
        if not len(has):
            break
        votes += np.bincount(has - order[low[has] + nth] + len(right), minlength=len(votes))
    best = np.argsort(-votes, kind="stable")[:_TRIED]
    return [int(at) - len(right) for at in best if votes[at]]


def _best_run(equal: Array) -> tuple[int, int]:
    """The run in which equal ids outnumber the others by most."""
    total = np.concatenate([[0], np.cumsum(np.where(equal, 1, -1))])
    lowest = np.minimum.accumulate(total)
    stop = int((total - lowest).argmax())
    return int(total[: stop + 1].argmin()), stop


def _sequence(vector: Vector, at: int) -> tuple[int, int]:
    """Start and stop of the sequence that holds a place."""
    edges = np.append(vector.starts, len(vector.values))
    nth = int(np.searchsorted(edges, at, "right")) - 1
    return int(edges[nth]), int(edges[nth + 1])


def _without_runs(values: Array) -> int:
    """The length of a sequence without the runs of one value at its ends: padding."""
    changes = np.flatnonzero(np.diff(values))
    if not len(changes):
        return 1
    head, tail = int(changes[0]), len(values) - 2 - int(changes[-1])
    return len(values) - head - tail


def _without_padding(equal: Array, left: Array, right: Array, begin: int, end: int) -> tuple[int, int]:
    """The range without ids at its ends that differ and repeat their neighbour on one side."""

    def padding(at: int, beside: int) -> bool:
        return not equal[at] and bool(left[at] == left[beside] or right[at] == right[beside])

    while end - begin > FEWEST and padding(begin, begin + 1):
        begin += 1
    while end - begin > FEWEST and padding(end - 1, end - 2):
        end -= 1
    return begin, end


# --- operands ---


def joined_tokens(fit: Fit, found: tuple[Integers, Integers]) -> JoinedTokens:
    """The join that a fit makes. Raises DumpError where the ids agree only at a lag that the positions deny."""
    windows = [
        Window(start, start + fit.length, len(vector.values), vector.batch)
        for vector, start in ((fit.train, fit.train_start), (fit.infer, fit.infer_start))
    ]
    cut = [vector.values[window.start : window.stop] for vector, window in zip((fit.train, fit.infer), windows, strict=True)]
    agree = np.flatnonzero(cut[0] == cut[1])
    totals = windows[0].total, windows[1].total
    join = TokenJoin(agree, len(agree), fit.length, *totals, fit.train_start, fit.infer_start)
    ids = _operand(fit.train, windows[0]), _operand(fit.infer, windows[1])
    positions = _positions([integers.all for integers in found], windows)
    _refuse_lag(fit, positions)
    train, infer = (_operand(vector, window) if vector else None for vector, window in zip(positions, windows, strict=True))
    return JoinedTokens(join, windows[0], windows[1], ids, (train, infer))


def _refuse_lag(fit: Fit, positions: tuple[Vector | None, Vector | None]) -> None:
    """Raise DumpError where the ids agree only at another lag: a doubled first token, or a shift.

    Then one side has tokens before the joined ones, counts them in its positions, and they are no padding (a run of one id).
    """
    if positions[0] is None or positions[1] is None:
        return
    at = [positions[0].values[fit.train_start], positions[1].values[fit.infer_start]]
    first = fit.train.values[fit.train_start]
    for label, vector, start in (("train", fit.train, fit.train_start), ("infer", fit.infer, fit.infer_start)):
        before = vector.values[_sequence(vector, start)[0] : start]
        padded = len(before) > 1 and len(np.unique(before)) == 1 and before[0] != first
        if len(before) and not padded and at[0] != at[1]:
            what = "its first token stands twice (double BOS)" if len(before) == 1 and before[0] == first else "it is shifted"
            why = f"the token ids agree only at a lag of {len(before)}: on {label} {len(before)} tokens come before them, {what}"
            raise DumpError(f"Cannot compare the activations: {why}. Dump one prompt, tokenised once, on both.")


def _positions(found: list[list[Vector]], windows: list[Window]) -> tuple[Vector | None, Vector | None]:
    """The vectors that count up by one over the joined tokens: the pair that agrees most, then the earliest."""
    runs = [
        [
            vector
            for vector in vectors
            if len(vector.values) == window.total and (np.diff(vector.values[window.start : window.stop]) == 1).all()
        ]
        for vectors, window in zip(found, windows, strict=True)
    ]
    pairs = [(left, right) for left in runs[0] for right in runs[1]]
    if not pairs:
        return runs[0][0] if runs[0] else None, runs[1][0] if runs[1] else None

    def rank(pair: tuple[Vector, Vector]) -> tuple[bool, float]:
        equal = pair[0].values[windows[0].start] == pair[1].values[windows[1].start]
        return not equal, pair[0].recorded.spot.time + pair[1].recorded.spot.time

    return min(pairs, key=rank)


def _operand(vector: Vector, window: Window) -> Operand:
    tensor = vector.recorded.tensor
    flat = () if len(tensor.shape) == 1 else (Op("reshape", shape=(tensor.elements,)),)
    cast = () if tensor.dtype == "int64" else (Op("cast", dtype="int64"),)
    return Operand([Source(vector.recorded.record.name, None, None, flat + window_ops(window) + cast)])
