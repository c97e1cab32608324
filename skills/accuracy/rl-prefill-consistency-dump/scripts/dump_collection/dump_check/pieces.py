"""A forward cut into the sequences that ran in it; what is left over is padding."""

from typing import List, NamedTuple, Optional, Sequence, Tuple

from dump_collection.dump_check.integers import Forward

Span = Tuple[int, int]  # rows: start, stop


class Piece(NamedTuple):
    """Consecutive tokens of one sequence in one forward; ``start``: its first row there."""

    forward: Forward
    start: int
    ids: Tuple[int, ...]
    positions: Optional[Tuple[int, ...]]

    @property
    def constant(self) -> bool:
        """Whether it is one id over and over: padding, or a forward that warms up."""
        return len(self.ids) > 1 and len(set(self.ids)) == 1


class Cut(NamedTuple):
    """A forward as its sequences. ``padding``: rows that belong to none."""

    forward: Forward
    pieces: Tuple[Piece, ...]
    padding: int


def cut(forward: Forward) -> Cut:
    """The sequences of a forward: a row of a batch each, and a new one where positions do not count on.

    So a rank of context parallel has several pieces of one sequence, and a token that another request decodes stands alone.

    Single rows that repeat their neighbour's id, and single rows at position 0 or 1, are padding: a mask leaves them there.
    """
    ids, rows = forward.ids.values, forward.ids.rows
    positions = forward.positions.values if forward.positions else None
    width = len(ids) // rows
    spans: List[Span] = []
    for row in range(rows):
        first = row * width
        for at in range(first + 1, first + width):
            if positions is not None and positions[at] != positions[at - 1] + 1:
                spans.append((first, at))
                first = at
        spans.append((first, (row + 1) * width))
    pieces = [_piece(forward, span, ids, positions) for span in spans if len(spans) == 1 or not _is_padding(span, spans, ids, positions)]
    return Cut(forward, tuple(pieces), len(ids) - sum(len(piece.ids) for piece in pieces))


def _piece(forward: Forward, span: Span, ids: Tuple[int, ...], positions: Optional[Tuple[int, ...]]) -> Piece:
    start, stop = span
    return Piece(forward, start, ids[start:stop], positions[start:stop] if positions is not None else None)


def _is_padding(span: Span, spans: Sequence[Span], ids: Tuple[int, ...], positions: Optional[Tuple[int, ...]]) -> bool:
    start, stop = span
    if stop - start > 1:
        return False
    at = spans.index(span)
    beside = [other for other in spans[max(0, at - 1) : at + 2] if other != span and other[1] - other[0] == 1]
    repeats = any(ids[other[0]] == ids[start] for other in beside)
    return repeats or (positions is not None and positions[start] <= 1)
