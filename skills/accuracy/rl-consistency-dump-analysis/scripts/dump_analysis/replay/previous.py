"""Weights of one side that are those of an earlier checkpoint: matched by the content of their rows, never by name."""

from collections.abc import Mapping, Sequence
from math import prod
from typing import Literal

import numpy as np
from msprobe_files.operands import Op
from msprobe_files.pt_archive import PtTensor
from msprobe_files.weight_grids import FORMATS, rounded
from msprobe_files.weight_kinds import Difference
from msprobe_files.weight_walk import blocks, row_keys

from dump_analysis import floats
from dump_analysis.floats import Array
from dump_analysis.tensors import Files, cut_stream

_SIDES: tuple[Literal["train", "infer"], ...] = ("train", "infer")
_Form = tuple[int, str]  # columns of a row, the format that a side's rows are stored in


def stale_sides(
    differing: Mapping[str, tuple[Difference, tuple[str, str]]], checkpoint: Mapping[str, PtTensor]
) -> dict[str, Literal["train", "infer"]]:
    """Name of a weight -> the side whose rows that differ are all rows of the checkpoint, where the other side's are not.

    ``differing``: by name, how a weight differs and the dtypes of both sides. Numbers of the checkpoint are rounded as each side stores
    them. Raises DumpError where a file of the checkpoint cannot be read.
    """
    wanted = {(_columns(how), dtype) for how, dtypes in differing.values() for dtype in dtypes if dtype in FORMATS}
    keys: dict[_Form, list[Array]] = {form: [] for form in wanted}
    vectors: dict[str, list[Array]] = {dtype: [] for columns, dtype in wanted if columns == 1}
    files = Files()
    try:
        for tensor in checkpoint.values():
            _take(files, tensor, keys, vectors)
    finally:
        files.close()
    known = {form: np.unique(np.concatenate(found)) if found else np.empty(0, np.uint64) for form, found in keys.items()}
    sides: dict[str, Literal["train", "infer"]] = {}
    for name, (how, dtypes) in differing.items():
        equal = [side for at, side in enumerate(_SIDES) if _is_of(how, at, dtypes[at], known, vectors)]
        if len(equal) == 1:
            sides[name] = equal[0]
    return sides


def _columns(how: Difference) -> int:
    return how.of // len(how.keys[0])


def _take(files: Files, tensor: PtTensor, keys: dict[_Form, list[Array]], vectors: dict[str, list[Array]]) -> None:
    """Add the keys of a checkpoint's tensor, where rows of its length or vectors are asked for."""
    if floats.FORMATS[tensor.dtype].kind != "float" or not tensor.elements:
        return
    columns = tensor.shape[-1] if len(tensor.shape) > 1 else 1
    for dtype in [dtype for width, dtype in keys if width == columns]:
        rows = prod(tensor.shape) // columns
        stream = cut_stream(files, tensor, (Op("reshape", shape=(rows, columns)),))
        found = []
        for start, stop in blocks(rows, columns):
            values = floats.values(stream.read(start * columns, stop * columns), tensor.dtype).astype(np.float64)
            found.append(row_keys(rounded(values.reshape(-1, columns), dtype)))
        if columns > 1:
            keys[columns, dtype] += found
        else:
            vectors[dtype].append(np.concatenate(found))


def _is_of(how: Difference, side: int, dtype: str, known: Mapping[_Form, Array], vectors: Mapping[str, Sequence[Array]]) -> bool:
    """Whether a side's rows that differ are in the checkpoint; of a vector all its elements side by side."""
    own = how.keys[side]
    if dtype not in FORMATS:
        return False
    if _columns(how) > 1:
        touched = np.concatenate([own[start:stop] for start, stop in how.rows])
        return bool(np.isin(touched, known[_columns(how), dtype]).all())
    return any(_holds(vector, own) for vector in vectors[dtype])


def _holds(vector: Array, part: Array) -> bool:
    """Whether a vector holds another one somewhere: a bias of q lies in that of a fused matrix."""
    starts = np.flatnonzero(vector[: len(vector) - len(part) + 1] == part[0]) if len(part) <= len(vector) else ()
    return any(np.array_equal(vector[start : start + len(part)], part) for start in starts)
