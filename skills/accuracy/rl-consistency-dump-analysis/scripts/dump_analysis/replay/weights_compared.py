"""The weights of both sides, compared element by element before either is used."""

from typing import NamedTuple

import numpy as np

from dump_analysis.artefacts.replay_results import WeightReplay, WeightRows
from dump_analysis.artefacts.semantic_mapping import Row, SemanticMapping
from dump_analysis.replay.modules import Pair
from dump_analysis.replay.recorded import CannotReplay, Matrix, value_of
from dump_analysis.tensors import Files

_BLOCK = 1 << 18  # elements
_MOST_ROWS = 64  # listed


class Compared(NamedTuple):
    """A weight: what is written of it, and how many of its elements differ."""

    result: WeightReplay
    unequal: int
    of: int


def compared(mapping: SemanticMapping, pair: Pair) -> list[Compared]:
    """Every weight of the mapping, those that one side lacks as evidence that is missing."""
    found = [_compared(row, pair) for row in mapping.weights]
    lacking = [row.boundary for row in mapping.evidence_missing if row.boundary.endswith((".weight", ".bias"))]
    return found + [Compared(WeightReplay(name, "evidence_missing", None, None), 0, 0) for name in lacking]


def _compared(row: Row, pair: Pair) -> Compared:
    files = Files()
    try:
        train, infer = value_of(files, pair.train, row.train), value_of(files, pair.infer, row.infer)
        if (train.rows, train.columns) != (infer.rows, infer.columns):
            return Compared(WeightReplay(row.boundary, "SHAPE_DIFF", None, None), 0, 0)
        counts = _unequal_by_row(train, infer)
    except CannotReplay:
        return Compared(WeightReplay(row.boundary, "MISSING", None, None), 0, 0)
    finally:
        files.close()
    unequal, elements = int(counts.sum()), train.rows * train.columns
    if not unequal:
        return Compared(WeightReplay(row.boundary, "EXACT", None, None), 0, elements)
    touched = [int(at) for at in np.flatnonzero(counts)]
    kind = "partial" if 2 * len(touched) <= len(counts) else "different"
    listed = WeightRows(touched[:_MOST_ROWS], touched[:_MOST_ROWS], len(counts)) if kind == "partial" else None
    return Compared(WeightReplay(row.boundary, "NOT_EXACT", kind, listed), unequal, elements)


def _unequal_by_row(train: Matrix, infer: Matrix) -> "np.ndarray[tuple[int], np.dtype[np.int64]]":
    """How many elements differ in each row; of a vector, in each element."""
    if train.rows == 1:
        return (train.read(0, 1) != infer.read(0, 1)).reshape(-1).astype(np.int64)
    step = max(1, _BLOCK // train.columns)
    parts = [
        (train.read(at, min(train.rows, at + step)) != infer.read(at, min(train.rows, at + step))).sum(axis=1)
        for at in range(0, train.rows, step)
    ]
    return np.concatenate(parts)
