"""Which row of a boundary is which token: rows are numbered as the compared input ids are.

A boundary may hold fewer rows than there are tokens (an engine keeps the logits of the last one); what its train
operand cuts out of the token axis says which they are.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from msprobe_files.operands import OperandError, shape_after
from msprobe_files.pt_archive import PtTensor

from .boundaries import is_weight
from .floats import Array
from .grids import Grid
from .layouts import layout_of, table
from .pairs import Pair

_IDS = "input_ids"


class Tokens(NamedTuple):
    """The shape of the compared ids, how many the trainer recorded, and ``number``: place there -> number among the compared."""

    shape: tuple[int, ...]
    recorded: int
    number: dict[int, int]


def tokens_of(pairs: Sequence[Pair]) -> Tokens | None:
    """The tokens that the row of input ids compares; None without such a row, or where its ops do not fit."""
    ids = next((pair for pair in pairs if pair.row.boundary == _IDS), None)
    if ids is None or len(ids.train.tensors) != 1:
        return None
    tensor = ids.train.tensors[0]
    places = _first_elements(ids, rows=None)
    if places is None:
        return None
    shape = shape_after(ids.row.train.sources[0].steps or (), tensor.shape)
    return Tokens(shape, tensor.elements, {int(place): number for number, place in enumerate(places)})


def numbered(tokens: Tokens | None, pair: Pair, grid: Grid) -> tuple[Grid, list[int] | None]:
    """The grid, and the token of each of its rows; None where row r is token r or where rows are not known to be tokens.

    Rows that the ids do not count (the logits of the last position) are tokens where what the train operand cuts says which.
    """
    if tokens is None or grid.rows_are is None or is_weight(pair.row.boundary):
        return grid, None
    known = _numbers(tokens, pair, grid)
    if known is None:
        return grid, None
    return grid._replace(rows_are="tokens"), None if known == list(range(len(known))) and len(known) == len(tokens.number) else known


def _numbers(tokens: Tokens, pair: Pair, grid: Grid) -> list[int] | None:
    """None where the token axis cannot be told: no axis of so many tokens, or one whose places are no distinct tokens."""
    if len(pair.train.tensors) != 1:
        return None
    shape = pair.train.tensors[0].shape
    axis = next((at for at, size in enumerate(shape) if size == tokens.recorded), None)
    places = None if axis is None else _first_elements(pair, grid.rows)
    if axis is None or places is None:
        return None
    below = int(np.prod(shape[axis + 1 :], dtype=np.int64))
    found = [tokens.number.get(int(place) // below % tokens.recorded) for place in places]
    known = [number for number in found if number is not None]
    return known if len(known) == len(found) == len(set(known)) else None


def _first_elements(pair: Pair, rows: int | None) -> Array | None:
    """Where the first element of each row lies in the recorded train tensor (in its row-major order); rows None: each element."""
    tensor = pair.train.tensors[0]
    if not _row_major(tensor):
        return None
    try:
        layout = layout_of(tensor, pair.row.train.sources[0].steps or ())
    except OperandError:
        return None
    places = np.array([layout.base - (tensor.start - tensor.storage_start) // tensor.item_size])
    for axis in layout.axes:
        if rows is not None and len(places) == rows:
            places = places + table(axis)[0]
        else:
            places = (places[:, None] + table(axis)[None, :]).reshape(-1)
    return places if rows is None or len(places) == rows else None


def _row_major(tensor: PtTensor) -> bool:
    expected = 1
    for size, stride in zip(reversed(tensor.shape), reversed(tensor.strides), strict=True):
        if size != 1 and stride != expected:
            return False
        expected *= size
    return True
