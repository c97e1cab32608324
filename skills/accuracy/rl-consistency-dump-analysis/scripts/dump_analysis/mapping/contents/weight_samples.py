"""Samples of recorded weights: enough to tell whether two cuts hold the same, and whether rows lie elsewhere."""

import numpy as np
from msprobe_files.errors import DumpError
from msprobe_files.operands import Op, OperandError

from dump_analysis import floats, tensors
from dump_analysis.floats import Array
from dump_analysis.tensors import Files, Tensor, cut_stream

_ROWS = 16
_COLUMNS = 16
_FOUND = 0.9  # of the rows, to say that a matrix lies elsewhere


class Cut:
    """A weight and the ops that cut it; its sample is read once."""

    def __init__(self, tensor: Tensor, steps: tuple[Op, ...]) -> None:
        self.tensor, self.steps = tensor, steps
        self._sample: Array | None = None

    def sample(self) -> Array:
        """Up to 16 rows spread over the cut, 16 columns of each from a third on, as float32; empty where it cannot be read."""
        if self._sample is None:
            self._sample = _read(self.tensor, self.steps)
        return self._sample


def agree(left: Cut, right: Cut) -> bool:
    """Whether the samples of two cuts are equal and not all zero."""
    x, y = left.sample(), right.sample()
    return x.shape == y.shape and x.size > 0 and bool((x == y).all()) and bool(x.any())


def lies_elsewhere(left: Cut, right: Cut) -> bool:
    """Whether the rows of one cut stand in the other's whole matrix at other places. Only for cuts of whole rows."""
    try:
        rows, all_rows = _keys(left.tensor, left.steps), _keys(right.tensor, ())
    except (DumpError, OperandError):
        return False
    return len(rows) > 0 and sum(row in all_rows for row in rows) >= _FOUND * len(rows)


def same_bytes(left: Tensor, right: Tensor) -> bool:
    """Whether two weights hold the same bytes."""
    try:
        return left.shape == right.shape and left.dtype == right.dtype and tensors.same_file(left, right)
    except DumpError:
        return False


def _keys(tensor: Tensor, steps: tuple[Op, ...]) -> set[bytes]:
    """16 columns of every row that is not zero there."""
    files = Files()
    try:
        columns = tensor.shape[1]
        first = columns // 3
        op = Op("slice", axis=1, start=first, stop=min(columns, first + _COLUMNS))
        stream = cut_stream(files, tensor, (*steps, op))
        rows = floats.values(stream.read(0, tensors.elements_of(stream)), stream.dtype).astype(np.float32).reshape(stream.shape)
        return {row.tobytes() for row in rows if row.any()}
    finally:
        files.close()


def _read(tensor: Tensor, steps: tuple[Op, ...]) -> Array:
    files = Files()
    try:
        stream = cut_stream(files, tensor, steps)
        width = stream.shape[-1]
        rows = tensors.elements_of(stream) // width if width else 0
        first = width // 3 if rows > 1 else 0
        last = min(width, first + _COLUMNS) if rows > 1 else width
        picked = np.unique(np.linspace(0, rows - 1, min(rows, _ROWS)).astype(np.int64)) if rows else ()
        parts = [stream.read(int(row) * width + first, int(row) * width + last) for row in picked]
        return floats.values(np.stack(parts), stream.dtype).astype(np.float32) if parts else np.empty((0, 0), np.float32)
    except (DumpError, OperandError):
        return np.empty((0, 0), np.float32)
    finally:
        files.close()
