"""Context parallel: groups of ranks of a step hold other tokens of one prompt, each one run of it or several.

Known orders: group after group, and zigzag, where group r of n holds pieces r and 2n − 1 − r of 2n, so that causal attention
costs all of them the same (Megatron-core ``get_batch_on_this_cp_rank``). Any other is read from the positions, else from the ids.
"""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Literal, NamedTuple

import numpy as np

from dump_analysis.floats import Array
from dump_analysis.mapping.tokens.token_vectors import Integers, Vector, counts_up

_AGREE = 0.9  # of the ids
_SHORTEST = 2  # ids that make a run of their own
_MOST = 1 << 24  # pairs of ids that are looked at

Layout = Literal["plain", "zigzag", "other"]


class Piece(NamedTuple):
    """Tokens ``start … stop`` of a group of ranks, by its number."""

    group: int
    start: int
    stop: int


class TokenPieces(NamedTuple):
    """The pieces in the order of the prompt. ``ids``: theirs; ``first``: where they begin in the other side's; ``matches``: equal ones."""

    order: list[Piece]
    ids: Array
    first: int
    matches: int
    layout: Layout


def token_pieces(groups: Sequence[Integers], others: Sequence[Integers]) -> TokenPieces | None:
    """How the ids of several groups make up ids of the other side; None where they do not."""
    found: list[TokenPieces] = []
    for vectors in zip(*(group.ids for group in groups), strict=False):
        ids = [vector.values for vector in vectors]
        if len({len(each) for each in ids}) > 1 or any(vector.batch > 1 for vector in vectors):
            continue
        whole = [vector for other in others for vector in other.ids]
        for layout, order in _orders(groups, len(ids[0])):
            fits = (_fit(layout, order, ids, vector) for vector in whole)
            found += [fit for fit in fits if fit is not None]
        if not found:
            found += [
                fit for vector in whole for start, stop in _sequences(vector) if (fit := _by_runs(ids, vector.values[start:stop], start))
            ]
    return max(found, key=lambda pieces: pieces.matches, default=None)


def same_tokens(groups: Sequence[Integers], others: Sequence[Integers]) -> bool:
    """Whether the ids of several groups are those of a sequence of the other side, in whatever order."""
    for vectors in zip(*(group.ids for group in groups), strict=False):
        ours = np.concatenate([vector.values for vector in vectors])
        theirs = [vector.values[start:stop] for other in others for vector in other.ids for start, stop in _sequences(vector)]
        if any(len(each) == len(ours) == _shared(ours, each) for each in theirs):
            return True
    return False


def _shared(one: Array, other: Array) -> int:
    """How many ids of two vectors are the same, whatever their order."""
    ids, counts = np.unique(one, return_counts=True)
    theirs, also = np.unique(other, return_counts=True)
    _, left, right = np.intersect1d(ids, theirs, return_indices=True)
    return int(np.minimum(counts[left], also[right]).sum())


def _sequences(vector: Vector) -> list[tuple[int, int]]:
    return list(pairwise([*vector.starts.tolist(), len(vector.values)]))


def _orders(groups: Sequence[Integers], length: int) -> Iterator[tuple[Layout, list[Piece]]]:
    """The orders that trainers use, then that of the positions where each token has one of its own."""
    count = len(groups)
    plain = [Piece(group, 0, length) for group in range(count)]
    yield "plain", plain
    half = length // 2
    zigzag = [Piece(group, 0, half) for group in range(count)] + [Piece(group, half, length) for group in reversed(range(count))]
    if length % 2 == 0:
        yield "zigzag", zigzag
    counted = [[vector.values for vector in group.all if len(vector.values) == length and counts_up(vector.values)] for group in groups]
    for positions in zip(*counted, strict=False):
        every = np.concatenate(positions)
        if len(np.unique(every)) == len(every):
            yield "other", _pieces(np.argsort(every), length)


def _pieces(order: Array, length: int) -> list[Piece]:
    """Runs of tokens as pieces. ``order``: number of each token among those of all groups, ``length`` each."""
    edges = np.flatnonzero((np.diff(order) != 1) | (order[1:] % length == 0)) + 1
    return [Piece(int(run[0] // length), int(run[0] % length), int(run[-1] % length) + 1) for run in np.split(order, edges)]


def _fit(layout: Layout, order: list[Piece], ids: Sequence[Array], vector: Vector) -> TokenPieces | None:
    """An order whose ids are those of the other side; behind them may be padding, which makes the tokens divide evenly."""
    whole = np.concatenate([ids[piece.group][piece.start : piece.stop] for piece in order])
    most = min(len(whole), len(vector.values))
    if len(whole) - most >= 2 * len(ids):
        return None
    at, matches = _best_place(whole[:most], vector.values)
    edges = np.cumsum([piece.stop - piece.start for piece in order])[:-1]
    # Where the other side begins another sequence the ranks ran other prompts.
    if matches < _AGREE * most or np.isin(at + edges[edges < most], vector.starts).any():
        return None
    return TokenPieces(order, whole, at, matches, layout)


def _best_place(part: Array, whole: Array) -> tuple[int, int]:
    """Where a run of ids fits best into another, and how many are equal there."""
    counted = [int((whole[at : at + len(part)] == part).sum()) for at in range(len(whole) - len(part) + 1)]
    best = int(np.argmax(counted))
    return best, counted[best]


# --- an order that only the ids tell ---


def _by_runs(ids: Sequence[Array], whole: Array, first: int) -> TokenPieces | None:
    """The longest runs of ids that each stand once on the other side, until none is left: packed prompts, each cut into pieces."""
    every, length = np.concatenate(ids), len(ids[0])
    if len(every) * len(whole) > _MOST or _shared(every, whole) < _AGREE * len(whole):
        return None
    equal = every[:, None] == whole[None, :]
    at = np.full(len(whole), -1)
    while True:
        run, stop, end = _longest(equal, length)
        if run < _SHORTEST:
            break
        at[end - run : end] = np.arange(stop - run, stop)
        equal[stop - run : stop] = False
        equal[:, end - run : end] = False
    _bridge(at)
    told = at >= 0
    if told.sum() < _AGREE * len(whole) or not told.all() or len(np.unique(at // length)) < len(ids):
        return None
    return TokenPieces(_pieces(at, length), every[at], first, int((every[at] == whole).sum()), "other")


def _longest(equal: Array, length: int) -> tuple[int, int, int]:
    """The longest diagonal of equal ids within one group: its length, and where it ends on both sides (exclusive)."""
    best, runs = (0, 0, 0), np.zeros(equal.shape[1], np.int64)
    for row in range(len(equal)):
        before = np.zeros(1, np.int64) if row % length == 0 else None
        ahead = np.concatenate([[0], runs[:-1]]) if before is None else 0
        runs = np.where(equal[row], ahead + 1, 0)
        end = int(runs.argmax())
        if runs[end] > best[0]:
            best = int(runs[end]), row + 1, end + 1
    return best


def _bridge(at: Array) -> None:
    """Single ids that differ, between tokens that are neighbours on both sides, go with them."""
    for place in np.flatnonzero(at < 0):
        if place > 0 and at[place - 1] >= 0 and at[place - 1] + 1 not in at:
            at[place] = at[place - 1] + 1
