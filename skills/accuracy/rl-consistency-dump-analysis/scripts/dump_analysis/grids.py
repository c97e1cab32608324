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


def grid_of(boundary: str, shape: Sequence[int], tokens: Sequence[int] | None, number: int = 8) -> Grid:
    """The grid of a boundary's value. ``tokens``: the shape of the compared input ids, if known; ``number``: bytes of a sum.

    Leading axes that are the ids' axes, or one axis of as many elements, are the rows, which are tokens; where none are,
    the first axis of more than one element, which is rows of unknown meaning. A vector of another length is one row.
    """
    elements = math.prod(shape)
    weight = is_weight(boundary)
    rows, counted = (math.prod(shape[:-1]), False) if weight else _activation_rows(shape, tokens)
    columns = elements // rows
    if max(rows, columns) * number > _MOST_BYTES:
        return Grid(-(-elements // _UNNAMED), _UNNAMED, elements, None)
    return Grid(rows, columns, elements, "tokens" if counted else "rows")


def _activation_rows(shape: Sequence[int], tokens: Sequence[int] | None) -> tuple[int, bool]:
    """How many rows, and whether they are the compared tokens (taken so where the ids are not known)."""
    sizes = [size for size in shape if size != 1]
    if tokens is None:
        if len(shape) == 1:
            return shape[0], True
        kept = list(shape)
        while len(kept) > 2 and kept[0] == 1:
            kept = kept[1:]
        return (kept[0] if kept else 1), True
    axes, count = [size for size in tokens if size != 1], math.prod(tokens)
    if sizes[: len(axes)] == axes or (sizes and sizes[0] == count):
        return count, True
    return (shape[0] if len(shape) == 2 else sizes[0] if len(sizes) > 1 else 1), False


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
