"""Weights of one side that are those of an earlier checkpoint: matched by the content of their rows, never by name."""

from typing import Any, Dict, List, Sequence, Tuple

from msprobe_files import checkpoint
from msprobe_files.pt_archive import PtTensor
from msprobe_files.weight_grids import FORMATS, rounded
from msprobe_files.weight_kinds import Difference
from msprobe_files.weight_walk import blocks, row_keys

from dump_collection.params.places import Piece, matrix_of
from dump_collection.params.sources import Parameter
from dump_collection.wording import word

from .found import Found
from .matrices import Files, read
from .matrices import matrix_of as laid

_SIDES = ("train", "infer")
_LIKE_PARTS = ("partial", "small_update", "different", "stale", "one_ulp", "scaled")
_Form = Tuple[int, str]  # columns of a row, the format that a side's rows are stored in


def stale_sides(files: Files, found: Sequence[Found], previous: str) -> List[Found]:
    """The weights, as stale where one side's rows that differ are all rows of the earlier checkpoint, and the other side's are not.

    Its numbers are rounded as each side stores them.  Raises DumpError where the checkpoint cannot be read.
    """
    differing = [(at, one.how, one.dtypes) for at, one in enumerate(found) if one.how is not None and one.kind in _LIKE_PARTS]
    wanted = {(_columns(how), dtype) for _, how, dtypes in differing for dtype in dtypes if dtype in FORMATS}
    keys: Dict[_Form, List[Any]] = {form: [] for form in wanted}
    for name, tensor in checkpoint.read(previous).items():
        _take(files, name, tensor, keys)
    told = list(found)
    for at, how, dtypes in differing:
        held = [side for number, side in enumerate(_SIDES) if _is_of(how, number, dtypes[number], keys)]
        if len(held) == 1:
            told[at] = _stale(found[at], held[0])
    return told


def _columns(how: Difference) -> int:
    return how.of // len(how.keys[0])


def _stale(one: Found, side: str) -> Found:
    other = "infer" if side == "train" else "train"
    if one.kind == "partial":
        return one._replace(note=word("weight_rows_stale", side=side, other=other, how=one.note), side=side)
    return one._replace(kind="stale", note=word("weight_stale", side=side, other=other), side=side)


def _take(files: Files, name: str, tensor: PtTensor, keys: Dict[_Form, List[Any]]) -> None:
    """Add the keys of a checkpoint's tensor, where rows of its length are asked for; of vectors those of each element."""
    rows, columns = matrix_of(tensor.shape)
    for dtype in [dtype for width, dtype in keys if width == columns and tensor.dtype in FORMATS and rows]:
        matrix = laid([Piece(Parameter(name, tensor.shape, tensor.dtype, tensor), 0, rows, columns)])
        for start, stop in blocks(rows, columns):
            keys[columns, dtype].append(row_keys(rounded(read(files, matrix, start, stop), dtype)))
        if columns == 1:  # a vector counts as a whole
            whole = keys[1, dtype][-len(list(blocks(rows, 1))) :]
            del keys[1, dtype][-len(whole) :]
            keys[1, dtype].append(_joined(whole))


def _joined(parts: Sequence[Any]) -> Any:
    import numpy as np

    return np.concatenate(parts)


def _is_of(how: Difference, side: int, dtype: str, known: Dict[_Form, List[Any]]) -> bool:
    """Whether a side's rows that differ are in the checkpoint; of a vector all its elements side by side."""
    import numpy as np

    held = known.get((_columns(how), dtype), [])
    if not held:
        return False
    if _columns(how) == 1:
        return any(_holds(vector, how.keys[side]) for vector in held)
    touched = np.concatenate([how.keys[side][start:stop] for start, stop in how.rows])
    return bool(np.isin(touched, np.concatenate(held)).all())


def _holds(vector: Any, part: Any) -> bool:
    """Whether a vector holds another one somewhere: a bias of q lies in that of a fused matrix."""
    import numpy as np

    starts = np.flatnonzero(vector[: len(vector) - len(part) + 1] == part[0]) if len(part) <= len(vector) else ()
    return any(np.array_equal(vector[start : start + len(part)], part) for start in starts)
