"""What rows hold, by keys of a few of their columns: which modules hold equal rows."""

from typing import Any, Dict, Tuple

from msprobe_files.errors import DumpError
from msprobe_files.weight_grids import rounded
from msprobe_files.weight_walk import row_keys

from dump_collection.params.joining import Likeness
from dump_collection.params.places import Layer

from .matrices import Files, Matrix, matrix_of, read, strided
from .values import numbers

_KEY = 16  # columns
_MOST_ROWS = 1 << 17
_COARSE = "bfloat16"  # what both sides' formats are rounded to: masters in float32 and their copies have equal keys


def sample_of(matrix: Matrix) -> Any:
    """float64 [rows, ``_KEY``] of columns from a third of the width on, rounded to the coarse format; what is no number is zero."""
    import numpy as np

    first = matrix.columns // 3
    found = []
    for run in matrix.runs:
        part = np.array(strided(matrix, run, first, first + _KEY))
        found.append(rounded(np.nan_to_num(numbers(part, matrix.dtype)), _COARSE))
    return np.concatenate(found)


def nearness(one: Any, other: Any) -> float:
    """The mean cosine of the rows of two samples: near 1 where a weight moved a little, near 0 for unrelated rows."""
    import numpy as np

    squares = [(rows * rows).sum(axis=1) for rows in (one, other)]
    length = np.sqrt(squares[0] * squares[1])
    return float(((one * other).sum(axis=1) / np.where(length > 0, length, 1.0)).mean())


def keys_of(matrix: Matrix) -> Any:
    """uint64 [rows] of the sample's rows."""
    return row_keys(sample_of(matrix))


def likeness_of(train: Layer, infer: Layer) -> Likeness:
    """How alike modules of a pair of layers are, by their rows; each module is read once."""
    known: Dict[Tuple[int, str], Any] = {}

    def keys(side: int, module: str) -> Any:
        if (side, module) not in known:
            known[side, module] = _keys_of_module((train, infer)[side], module)
        return known[side, module]

    def likeness(mine: str, theirs: str) -> Tuple[float, float]:
        import numpy as np

        one, other = keys(0, mine), keys(1, theirs)
        if not len(one) or not len(other):
            return 0.0, 0.0
        small, large = (one, other) if len(one) <= len(other) else (other, one)
        places = np.flatnonzero(np.isin(large, small))
        share = float(np.isin(small, large).mean())
        return share, float(places[0]) if len(places) else 0.0

    return likeness


def _keys_of_module(layer: Layer, module: str) -> Any:
    """Keys of a module's first matrix; of a vector one of the whole. Rows of zeros have none."""
    import numpy as np

    kinds = layer.modules[module]
    pieces = [piece for kind in ("weight", "bias") for _, piece in kinds.get(kind, [])[:1]][:1]
    empty = np.empty(0, np.uint64)
    try:
        matrix = matrix_of(pieces)
        if matrix.rows > _MOST_ROWS:
            return empty
        if matrix.columns == 1:
            files = Files()
            vector = np.nan_to_num(read(files, matrix, 0, matrix.rows)).reshape(1, -1)
            files.close()
            return row_keys(rounded(vector, _COARSE)) if (vector != vector[0, 0]).any() else empty
        found = keys_of(matrix)
        return found[found != 0]
    except DumpError:
        return empty  # the comparison says what cannot be read
