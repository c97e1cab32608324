"""Scales beside quantised weights: what the stored codes are multiplied by, block by block.

Sources: DeepSeek-V3's weight_scale_inv (a number for each 128 x 128 block); compressed-tensors' and vLLM's weight_scale
(one for all, or one a row).
"""

from typing import Any, NamedTuple, Optional, Tuple

from msprobe_files.errors import DumpError
from msprobe_files.pt_archive import ITEM_SIZES

from dump_collection.params.places import matrix_of
from dump_collection.params.sources import Parameter, Shape, located

from .values import numbers, raw_type

_BLOCK = 128  # rows and columns of DeepSeek's blocks


class Scale(NamedTuple):
    """Where ``rows`` x ``columns`` numbers lie, row-major, and how many rows and columns of the weight each is for."""

    path: str
    start: int
    dtype: str
    rows: int
    columns: int
    high: int
    wide: int


def scale_of(weight: Parameter) -> Scale:
    """The scale of a weight. Raises DumpError where its shape is that of no usual quantisation."""
    assert weight.scale is not None
    rows, columns = matrix_of(weight.shape)
    shape = weight.scale.shape
    down, across = _counts(shape)
    high, wide = _block(rows, down), _block(columns, across)
    tensor = located(weight.scale)
    if high is None or wide is None or not tensor.contiguous:
        raise DumpError(
            "Cannot read %s: a scale of shape %s does not fit its %d x %d codes. Dequantise it first."
            % (weight.name, list(shape), rows, columns)
        )
    return Scale(tensor.path, tensor.start, tensor.dtype, down, across, high, wide)


def _counts(shape: Shape) -> Tuple[int, int]:
    """How many scales there are down and across; a list is one a row."""
    if len(shape) < 2:
        return (shape[0] if shape else 1), 1
    rows = 1
    for size in shape[:-1]:
        rows *= size
    return rows, shape[-1]


def _block(whole: int, parts: int) -> Optional[int]:
    if parts == -(-whole // _BLOCK):
        return _BLOCK
    return whole // parts if parts and whole % parts == 0 else None


def times_scale(codes: Any, scale: Optional[Scale], first: int) -> Any:
    """float64 [rows, columns] of codes whose first row is row ``first`` of the weight, times their scales, rounded to float32 once."""
    import numpy as np

    if scale is None:
        return codes
    item = np.dtype(raw_type(scale.dtype, ITEM_SIZES[scale.dtype]))
    start, stop = first // scale.high, (first + len(codes) - 1) // scale.high + 1
    raw = np.fromfile(scale.path, item, (stop - start) * scale.columns, offset=scale.start + start * scale.columns * item.itemsize)
    found = numbers(raw, scale.dtype).reshape(stop - start, scale.columns)
    down = np.arange(first, first + len(codes)) // scale.high - start
    across = np.arange(codes.shape[1]) // scale.wide
    return (codes * found[down][:, across]).astype(np.float32).astype(np.float64)
