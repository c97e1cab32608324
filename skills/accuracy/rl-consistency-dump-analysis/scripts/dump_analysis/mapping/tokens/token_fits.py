"""Which stretches of two vectors of ids hold the same tokens: sequence by sequence, whatever their order and padding.

A few ids in a row that stand on both sides vote for their pair of sequences and the distance between the two places.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from dump_analysis.floats import Array
from dump_analysis.mapping.tokens.token_vectors import FEWEST, Integers, Vector, anew

_SHARE = 0.5  # of the ids of the only joined sequence must agree
_SURE = 0.9  # of the ids of each, where several are joined: another request may share a long beginning
_LEAST = 0.25  # of a sequence's votes for a place where it is tried
_WIDTHS = (3, 1)  # ids in a row that vote together: one alone stands in too many places
_REPEATS = 64  # of what votes
_VOTES = 1 << 22


class Run(NamedTuple):
    """Joined rows of one sequence: row ``train + n`` is row ``infer + n``, n < ``length``. ``matches``: how many ids are equal."""

    train: int
    infer: int
    length: int
    matches: int


class Fit(NamedTuple):
    """The same ids in two vectors. ``runs``: of each joined sequence, in the trainer's order."""

    runs: tuple[Run, ...]
    train: Vector
    infer: Vector

    @property
    def matches(self) -> int:
        return sum(run.matches for run in self.runs)

    @property
    def length(self) -> int:
        return sum(run.length for run in self.runs)

    @property
    def rank(self) -> tuple[float, ...]:
        return self.matches, self.matches / self.length


class _Tried(NamedTuple):
    """A stretch that was looked at. ``sure``: so many ids agree that it may stand beside others."""

    run: Run
    sure: bool


def best_fit(train: Integers, infer: Integers) -> Fit | None:
    """The fit with most equal ids; None where no two vectors agree in half of theirs."""
    fits = [fit for left in train.ids for right in infer.ids if (fit := _fit(left, right)) is not None]
    return max(fits, key=lambda fit: fit.rank, default=None)


def _fit(train: Vector, infer: Vector) -> Fit | None:
    """All sequences that are surely the same; without any, the stretch with most equal ids."""
    for width in _WIDTHS:
        sure, doubtful = _stretches(train, infer, width)
        runs = sure or sorted(doubtful, key=lambda run: (-run.matches, run.length))[:1]
        if runs:
            return Fit(tuple(sorted(runs)), train, infer)
    return None


def _stretches(train: Vector, infer: Vector, width: int) -> tuple[list[Run], list[Run]]:
    """Stretches that are surely the same, none of which shares a token with another, and those that are not sure."""
    free = np.ones(len(train.values), bool), np.ones(len(infer.values), bool)
    sure: list[Run] = []
    doubtful: list[Run] = []
    new = True
    while new:  # ids that stood too often to vote for each of their places have fewer left to vote for
        new = False
        for left, right, at in _likely(train, infer, free, width):
            tried = _stretch(train, infer, (left, right), at, free)
            if tried is not None and tried.sure:
                run, new = tried.run, True
                free[0][run.train : run.train + run.length] = False
                free[1][run.infer : run.infer + run.length] = False
                sure.append(run)
            elif tried is not None:
                doubtful.append(tried.run)
    return sure, doubtful


def _likely(train: Vector, infer: Vector, free: tuple[Array, Array], width: int) -> Iterator[tuple[int, int, int]]:
    """Places of a sequence of each side and the offset at which many ids are equal: most votes first, then as they stand.

    ``width``: so many ids in a row have one vote.  None that begins with the id before it: padding would outvote all else.
    """
    vectors = train, infer
    keys = [_grams(vector.values, width) for vector in vectors]
    tell = [np.flatnonzero(rows & anew(vector.values)) for rows, vector in zip(free, vectors, strict=True)]
    piece = [np.searchsorted(vector.starts, rows, "right") - 1 for vector, rows in zip(vectors, tell, strict=True)]
    tell, piece = _rare(keys, tell, piece)
    sizes = [np.bincount(of, minlength=len(vector.starts)) for of, vector in zip(piece, vectors, strict=True)]
    mine, theirs = _equal_keys(keys[0][tell[0]], keys[1][tell[1]])
    span = len(train.values) + len(infer.values)
    pairs = piece[0][mine] * len(infer.starts) + piece[1][theirs]
    found, votes = np.unique(pairs * span + tell[0][mine] - tell[1][theirs] + len(infer.values), return_counts=True)
    left, right = np.divmod(found // span, len(infer.starts))
    enough = np.flatnonzero(votes >= _LEAST * np.minimum(sizes[0][left], sizes[1][right]))
    for nth in enough[np.lexsort((right[enough], left[enough], -votes[enough]))]:
        yield int(train.starts[left[nth]]), int(infer.starts[right[nth]]), int(found[nth] % span) - len(infer.values)


def _grams(values: Array, width: int) -> Array:
    """A number for each id with those after it, the same for the same ids."""
    ahead = np.concatenate([values, np.zeros(width, values.dtype)]).astype(np.uint64)
    mix = np.random.default_rng(0).integers(1, 1 << 62, width, np.uint64) | np.uint64(1)
    found: Array = sum(ahead[at : at + len(values)] * mix[at] for at in range(width))
    return found


def _rare(keys: list[Array], tell: list[Array], piece: list[Array]) -> tuple[list[Array], list[Array]]:
    """Only what stands in few places of the engine votes; in a sequence without any, all of it does."""
    known, count = np.unique(keys[1][tell[1]], return_counts=True)
    kept = []
    for side in (0, 1):
        at = np.minimum(np.searchsorted(known, keys[side][tell[side]]), len(known) - 1)
        often = (known[at] == keys[side][tell[side]]) & (count[at] > _REPEATS) if len(known) else np.zeros(len(tell[side]), bool)
        some = np.bincount(piece[side], ~often, minlength=1)
        kept.append(~often | (some[piece[side]] < FEWEST))
    return [rows[keep] for rows, keep in zip(tell, kept, strict=True)], [of[keep] for of, keep in zip(piece, kept, strict=True)]


def _equal_keys(left: Array, right: Array) -> tuple[Array, Array]:
    """Pairs of places (in left, in right) that hold one key; of a key that repeats often only some."""
    order = np.argsort(right, kind="stable")
    low, high = (np.searchsorted(right[order], left, side) for side in ("left", "right"))
    mine, theirs, count = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)], 0
    for nth in range(_REPEATS):
        has = np.flatnonzero(low + nth < high)
        count += len(has)
        if not len(has) or count > _VOTES:
            break
        mine.append(has)
        theirs.append(order[low[has] + nth])
    return np.concatenate(mine), np.concatenate(theirs)


def _stretch(train: Vector, infer: Vector, places: tuple[int, int], at: int, free: tuple[Array, Array]) -> _Tried | None:
    """What two sequences have in common at an offset, without padding; None where less than half of the shorter one agrees."""
    spans = train.sequence_at(places[0]), infer.sequence_at(places[1])
    start, stop = max(spans[0][0], spans[1][0] + at), min(spans[0][1], spans[1][1] + at)
    left, right = train.values[start:stop], infer.values[start - at : stop - at]
    equal = (left == right) & free[0][start:stop] & free[1][start - at : stop - at]
    begin, end = _without_padding(equal, left, right)
    if equal[begin:end].sum() < _SHARE * (end - begin):
        begin, end = _best_run(equal)
    run = Run(begin + start, begin + start - at, end - begin, int(equal[begin:end].sum()))
    if not (free[0][run.train : run.train + run.length].all() and free[1][run.infer : run.infer + run.length].all()):
        return None
    tell = anew(left)
    told = int((equal & tell)[begin:end].sum())
    shorter = min(int(anew(vector.values[slice(*span)]).sum()) for vector, span in zip((train, infer), spans, strict=True))
    if run.matches < FEWEST or told < _SHARE * shorter:
        return None
    return _Tried(run, told >= _SURE * tell[begin:end].sum())


def _best_run(equal: Array) -> tuple[int, int]:
    """The run in which equal ids outnumber the others by most."""
    total = np.concatenate([[0], np.cumsum(np.where(equal, 1, -1))])
    lowest = np.minimum.accumulate(total)
    stop = int((total - lowest).argmax())
    return int(total[: stop + 1].argmin()), stop


def _without_padding(equal: Array, left: Array, right: Array) -> tuple[int, int]:
    """The range without ids at its ends that differ and repeat their neighbour on one side."""

    def padding(at: int, beside: int) -> bool:
        return not equal[at] and bool(left[at] == left[beside] or right[at] == right[beside])

    begin, end = 0, len(equal)
    while end - begin > FEWEST and padding(begin, begin + 1):
        begin += 1
    while end - begin > FEWEST and padding(end - 1, end - 2):
        end -= 1
    return begin, end
