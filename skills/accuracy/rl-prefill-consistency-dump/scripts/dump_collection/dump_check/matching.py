"""Which forward of each side ran the same tokens, and what is left over on either side."""

import struct
from typing import List, NamedTuple, Optional, Sequence, Tuple

from msprobe_files.units import Unit

from dump_collection.dump_check import pieces
from dump_collection.dump_check.integers import Forward, forwards_of
from dump_collection.dump_check.pieces import Cut, Piece


class Tokens(NamedTuple):
    """The tokens of one request on one side. ``parts``: one piece, or the chunks that make it up."""

    parts: Tuple[Piece, ...]
    ids: Tuple[int, ...]
    positions: Optional[Tuple[int, ...]]


class Fit(NamedTuple):
    """Where two sequences meet: rows from ``train`` and ``infer`` on, ``length`` of them, ``unequal`` places counted there."""

    train: int
    infer: int
    length: int
    unequal: Tuple[int, ...]

    @property
    def equal(self) -> int:
        return self.length - len(self.unequal)


class Match(NamedTuple):
    """The sequences that are compared, and every forward of each side."""

    train: Tokens
    infer: Tokens
    fit: Fit
    cuts: Tuple[Tuple[Cut, ...], Tuple[Cut, ...]]

    def sequence(self, label: str) -> Tokens:
        return self.train if label == "train" else self.infer

    def other(self, label: str) -> Tokens:
        return self.infer if label == "train" else self.train

    def start(self, label: str) -> int:
        """The row of a side's sequence at which the joined tokens begin."""
        return self.fit.train if label == "train" else self.fit.infer

    def cut_of(self, forward: Forward) -> Cut:
        return next(cut for side in self.cuts for cut in side if cut.forward is forward)


def cuts_of(units: Sequence[Unit]) -> Tuple[Cut, ...]:
    """The forwards of units, each as its sequences."""
    return tuple(pieces.cut(forward) for unit in units for forward in forwards_of(unit))


def match(train: Sequence[Cut], infer: Sequence[Cut]) -> Optional[Match]:
    """The pair of sequences of which most tokens agree, the earliest of several; None where a side has no ids.

    Where the best two are not all of both, chunks of one side are put together to what the other side ran at once.
    """
    best = _best(_wholes(train), _wholes(infer))
    if best is None:
        return None
    if best[2].unequal or len(best[0].ids) != len(best[1].ids):
        for target in sorted(_wholes(train), key=lambda one: -len(one.ids)):
            joined = _joined(target, infer)
            if joined is not None and len(target.ids) > best[2].equal:
                best = target, joined, Fit(0, 0, len(target.ids), ())
        for target in sorted(_wholes(infer), key=lambda one: -len(one.ids)):
            joined = _joined(target, train)
            if joined is not None and len(target.ids) > best[2].equal:
                best = joined, target, Fit(0, 0, len(target.ids), ())
    return Match(best[0], best[1], best[2], (tuple(train), tuple(infer)))


def _wholes(cuts: Sequence[Cut]) -> List[Tokens]:
    """Each sequence of each forward; those that are one id over and over only where there is no other."""
    found = [piece for cut in cuts for piece in cut.pieces]
    real = [piece for piece in found if not piece.constant]
    return [Tokens((piece,), piece.ids, piece.positions) for piece in real or found]


def _best(train: Sequence[Tokens], infer: Sequence[Tokens]) -> Optional[Tuple[Tokens, Tokens, Fit]]:
    best: Optional[Tuple[Tokens, Tokens, Fit]] = None
    for left in train:
        for right in infer:
            fit = fit_of(left.ids, right.ids)
            if best is None or _rank(left, right, fit) > _rank(*best):
                best = left, right, fit
    return best


def _rank(left: Tokens, right: Tokens, fit: Fit) -> Tuple[int, int, int]:
    return fit.equal, -len(fit.unequal), -abs(len(left.ids) - len(right.ids))


def fit_of(train: Tuple[int, ...], infer: Tuple[int, ...]) -> Fit:
    """The shorter inside the longer where it stands there whole, else aligned at the start or the end, as agrees more."""
    short, long = (train, infer) if len(train) <= len(infer) else (infer, train)
    at = _find(short, long)
    if at is None:
        places = (0, len(long) - len(short))
        at = max(places, key=lambda place: sum(a == b for a, b in zip(short, long[place:])))
    unequal = tuple(n for n, (a, b) in enumerate(zip(short, long[at:])) if a != b)
    return Fit(0, at, len(short), unequal) if short is train and len(train) <= len(infer) else Fit(at, 0, len(short), unequal)


def _find(short: Tuple[int, ...], long: Tuple[int, ...]) -> Optional[int]:
    needle, hay = (struct.pack("<%dq" % len(ids), *ids) for ids in (short, long))
    at = hay.find(needle)
    while at > 0 and at % 8:
        at = hay.find(needle, at + 1)
    return at // 8 if at >= 0 else None


def _joined(target: Tokens, cuts: Sequence[Cut]) -> Optional[Tokens]:
    """The pieces of several forwards that make up a sequence of the other side; None where they do not.

    Positions say where a piece belongs; without them pieces follow each other. A single token after others is a decode step.
    """
    holder: List[Optional[Piece]] = [None] * len(target.ids)
    filled = 0
    for piece in [piece for cut in cuts for piece in cut.pieces if len(piece.ids) > 1]:
        places = piece.positions if piece.positions is not None else tuple(range(filled, filled + len(piece.ids)))
        inside = all(0 <= place < len(holder) for place in places)
        if not inside or any(holder[place] is not None or target.ids[place] != one for place, one in zip(places, piece.ids)):
            continue
        for place in places:
            holder[place] = piece
        filled += len(places)
    parts: List[Piece] = []
    for held in holder:
        if held is None:
            return None
        parts += [] if any(held is part for part in parts) else [held]
    counted = all(part.positions is not None for part in parts)
    return Tokens(tuple(parts), target.ids, tuple(range(len(holder))) if counted else None)
