"""Which row of a boundary is which token: rows are numbered as the compared input ids are.

A boundary may hold fewer rows than there are tokens (an engine keeps the logits of the last one); what its train
operand cuts out of the token axis says which they are.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from msprobe_files.operands import OperandError
from msprobe_files.pt_archive import PtTensor

from .floats import Array
from .grids import Grid
from .layouts import layout_of, table
from .pairs import Pair

_IDS = "input_ids"


class Tokens(NamedTuple):
    """How many tokens are compared and how many the trainer recorded; ``number``: place there -> number among the compared."""

    compared: int
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
    return Tokens(len(places), tensor.elements, {int(place): number for number, place in enumerate(places)})


def numbers(tokens: Tokens | None, pair: Pair, grid: Grid) -> list[int] | None:
    """The token of each row of the grid; None where row r is token r, as far as is known."""
    if tokens is None or grid.rows_are != "tokens" or len(pair.train.tensors) != 1:
        return None
    shape = pair.train.tensors[0].shape
    axis = next((at for at, size in enumerate(shape) if size == tokens.recorded), None)
    places = None if axis is None else _first_elements(pair, grid.rows)
    if axis is None or places is None:
        return None
    below = int(np.prod(shape[axis + 1 :], dtype=np.int64))
    found = [tokens.number.get(int(place) // below % tokens.recorded) for place in places]
    known = [number for number in found if number is not None]
    return known if len(known) == len(found) and known != list(range(len(known))) else None


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
