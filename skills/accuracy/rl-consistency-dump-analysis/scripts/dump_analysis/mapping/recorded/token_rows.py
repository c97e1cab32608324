"""A recorded tensor as [tokens, columns]: the ops that make it so, and a sample of its rows."""

from collections.abc import Sequence
from functools import cache
from math import prod

import numpy as np
from msprobe_files.operands import Op

from dump_analysis import floats
from dump_analysis.floats import Array
from dump_analysis.mapping.recorded.cuts import cut_op, runs_of
from dump_analysis.mapping.recorded.nodes import Window
from dump_analysis.tensors import BLOCK_BYTES, Files, Tensor, cut_stream

_MOST_HEADS = 256
_LARGEST = 1e15  # far above any activation; sums of squares of all columns stay in float32
_SPARSE = 4  # rows that lie wider apart than this are read one by one


def matrix_ops(shape: tuple[int, ...], window: Window) -> tuple[Op, ...] | None:
    """The ops that bring a recorded shape to [tokens, columns], all tokens of the unit first; None where tokens are not its rows.

    Known: [1, S, H], [S, 1, H], [B, S, H], [S, B, H], [S, heads, D], [B, heads, S, D] and [S · heads, D].
    """
    total, batch = window.total, window.batch
    sizes = tuple(size for size in shape if size != 1)
    if not sizes or 0 in shape:
        return None
    wanted = (total, prod(shape) // total)
    if total == 1:
        return _reshaped(shape, wanted)
    length = total // batch
    if batch > 1 and length != batch and sizes[:2] == (length, batch):
        return _permuted(sizes, (1, 0, *range(2, len(sizes))), wanted)
    if batch > 1 and len(sizes) == 4 and (sizes[0], sizes[2]) == (batch, length) and sizes[1] != length:
        return _permuted(sizes, (0, 2, 1, 3), wanted)
    if len(sizes) == 3 and sizes[1] == total and total not in (sizes[0], sizes[2]):
        return _permuted(sizes, (1, 0, 2), wanted)
    heads = len(sizes) == 2 and sizes[0] % total == 0 and sizes[0] // total <= _MOST_HEADS
    if sizes[0] != total and not heads and not (len(shape) > 2 and shape[0] * shape[1] == total):
        return None
    return _reshaped(shape, wanted)


def _permuted(sizes: tuple[int, ...], axes: tuple[int, ...], wanted: tuple[int, ...]) -> tuple[Op, ...]:
    return Op("reshape", shape=sizes), Op("permute", axes=axes), Op("reshape", shape=wanted)


def _reshaped(shape: tuple[int, ...], wanted: tuple[int, ...]) -> tuple[Op, ...]:
    if shape == wanted:
        return ()
    for axis, size in enumerate(shape):
        if size == 1 and shape[:axis] + shape[axis + 1 :] == wanted:
            return (Op("squeeze", axis=axis),)
    return (Op("reshape", shape=wanted),)


@cache
def window_ops(window: Window) -> tuple[Op, ...]:
    """The op that cuts the joined tokens out of a unit's, in their order; none where all of them are joined as they stand."""
    runs = runs_of(window.rows)
    return () if runs == ((0, window.total),) else (cut_op(0, window.rows),)


def columns_op(columns: Sequence[int]) -> Op:
    """The op that takes columns of a matrix."""
    return cut_op(1, columns)


def rows_of(files: Files, tensor: Tensor, steps: Sequence[Op], rows: Array) -> Array:
    """Some rows of a tensor that ``steps`` make a matrix, as float32 [rows, columns].

    What is not finite becomes zero, and so does what is too large to be squared: a mask's least number.

    Raises DumpError where the file ends early.
    """
    stream = cut_stream(files, tensor, steps)
    width = prod(stream.shape[1:])
    first, last = int(rows.min()), int(rows.max()) + 1
    if (last - first) * width * tensor.item_size <= BLOCK_BYTES or last - first <= _SPARSE * len(rows):
        raw = stream.read(first * width, last * width).reshape(last - first, width)[rows - first]
    else:
        raw = np.stack([stream.read(int(row) * width, (int(row) + 1) * width) for row in rows])
    with np.errstate(over="ignore"):
        numbers = floats.values(raw, tensor.dtype).astype(np.float32)
    usable = np.abs(numbers) <= _LARGEST
    return numbers if usable.all() else np.where(usable, numbers, np.float32(0))
