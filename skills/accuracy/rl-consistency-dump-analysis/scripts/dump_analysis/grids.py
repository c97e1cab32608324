"""A tensor's elements as rows and columns: tokens and channels of an activation, matrix rows and columns of a weight."""

import math
from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple

from .boundaries import is_weight

_MOST_BYTES = 2_400_000  # of one sum for each row or column; the largest vocabularies have 2**18 words and some padding
_UNNAMED = 1 << 16


class Grid(NamedTuple):
    """``rows`` × ``columns``, the last row perhaps cut short. ``rows_are``: None where rows and columns mean nothing."""

    rows: int
    columns: int
    elements: int
    rows_are: Literal["tokens", "rows"] | None

    @property
    def has_columns(self) -> bool:
        """Whether a column is one thing in every row: not where rows mean nothing or a row is one element."""
        return self.rows_are is not None and self.columns > 1

    def place(self, start: int, count: int) -> tuple[int, int, int, int]:
        """First row, rows, first column and columns of a block: whole rows, or a part of one."""
        row, column = divmod(start, self.columns)
        if column or count < self.columns:
            return row, 1, column, count
        return row, count // self.columns, 0, self.columns


def grid_of(boundary: str, shape: Sequence[int], tokens: int | None, number: int = 8) -> Grid:
    """The grid of a boundary's value. ``tokens``: how many tokens were compared, if known; ``number``: bytes of a sum.

    The leading axes that together count the tokens are the rows; where none do, the first axis of more than one
    element (of a matrix: the first). A vector that does not count tokens, and the weight vector, is one row.
    """
    elements = math.prod(shape)
    rows = _weight_rows(shape) if is_weight(boundary) else _activation_rows(shape, tokens)
    columns = elements // rows
    if max(rows, columns) * number > _MOST_BYTES:
        return Grid(-(-elements // _UNNAMED), _UNNAMED, elements, None)
    return Grid(rows, columns, elements, "rows" if is_weight(boundary) else "tokens")


def _weight_rows(shape: Sequence[int]) -> int:
    return math.prod(shape[:-1])


def _activation_rows(shape: Sequence[int], tokens: int | None) -> int:
    counted = 1
    for size in shape[:-1] if len(shape) > 1 else shape:
        counted *= size
        if counted == tokens and size > 1:
            return counted
    kept = list(shape)
    while len(kept) > 2 and kept[0] == 1:
        kept = kept[1:]
    if len(kept) == 1:
        return kept[0] if tokens is None else 1
    return kept[0] if kept else 1


def pieces(start: int, stop: int, columns: int, most: int, rows: int | None = None) -> Iterator[tuple[int, int]]:
    """Cut elements ``start … stop`` into blocks of whole rows, ``rows`` of them or as many as ``most`` elements hold;
    rows longer than that into parts. ``start`` is the beginning of a block."""
    if columns > most:
        while start < stop:
            end = min(stop, start + most, (start // columns + 1) * columns)
            yield start, end
            start = end
        return
    step = columns * max(1, rows if rows is not None else most // columns)
    for at in range(start, stop, step):
        yield at, min(stop, at + step)
