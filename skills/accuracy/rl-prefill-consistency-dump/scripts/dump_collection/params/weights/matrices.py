"""Matrices made of stretches of rows that lie in files: compared by bytes, read as numbers in blocks, never held whole."""

import os
from collections import OrderedDict
from typing import Any, BinaryIO, Iterator, NamedTuple, Optional, Sequence, Tuple

from msprobe_files.errors import DumpError
from msprobe_files.pt_archive import PtTensor
from msprobe_files.weight_walk import Weight

from dump_collection.params.places import Piece
from dump_collection.params.sources import located

from .scales import Scale, scale_of, times_scale
from .values import numbers, raw_type

_BLOCK = 1 << 18  # bytes
_FIRST = 1 << 12  # bytes; tells most unequal weights apart
_OPEN = 32  # files held open


class Run(NamedTuple):
    """``rows`` rows of a tensor. ``start``: byte of the first element in the file; strides in elements.

    ``first``: the number of its first row in the whole tensor; ``scale``: of codes, what they are multiplied by.
    """

    path: str
    start: int
    rows: int
    row_stride: int
    column_stride: int
    first: int = 0
    scale: Optional[Scale] = None


class Matrix(NamedTuple):
    """Rows side by side, of ``columns`` elements of ``item`` bytes in a dtype."""

    dtype: str
    item: int
    rows: int
    columns: int
    runs: Tuple[Run, ...]

    @property
    def scaled(self) -> bool:
        """Whether the stored numbers are codes, times scales."""
        return any(run.scale is not None for run in self.runs)

    @property
    def in_order(self) -> bool:
        """Whether each run's elements lie one after the other."""
        return all(run.row_stride == self.columns and run.column_stride == 1 for run in self.runs)


class Files:
    """Files held open, the ones used longest ago closed."""

    def __init__(self) -> None:
        self._open: "OrderedDict[str, BinaryIO]" = OrderedDict()
        self._pair = bytearray(_BLOCK), bytearray(_BLOCK)

    def close(self) -> None:
        for file in self._open.values():
            file.close()
        self._open.clear()

    def read(self, path: str, start: int, into: memoryview) -> None:
        """Fill a buffer from a byte on. Raises DumpError where the file cannot be read or ends early."""
        try:
            file = self._open.get(path)
            if file is None:
                if len(self._open) >= _OPEN:
                    self._open.popitem(last=False)[1].close()
                file = self._open[path] = open(path, "rb", buffering=0)  # noqa: SIM115  # closed by close()
            self._open.move_to_end(path)
            file.seek(start)
            done = 0
            while done < len(into):
                count = file.readinto(into[done:])  # type: ignore[attr-defined]
                if not count:
                    raise DumpError(
                        "Cannot read %s: it ends %d bytes before its data does. Copy it again." % (os.path.basename(path), len(into) - done)
                    )
                done += count
        except OSError as error:
            raise DumpError("Cannot read %s: %s. Check the file." % (os.path.basename(path), error.strerror or error)) from None

    def equal(self, train: Matrix, infer: Matrix) -> bool:
        """Whether two matrices of one size and dtype, both in order, hold the same bytes."""
        first = True
        for mine, theirs, count in _together(train, infer):
            done = 0
            while done < count:
                size = min(_FIRST if first else _BLOCK, count - done)
                parts = [memoryview(buffer)[:size] for buffer in self._pair]
                self.read(mine[0], mine[1] + done, parts[0])
                self.read(theirs[0], theirs[1] + done, parts[1])
                # bytearrays compare by memcmp; memoryviews element by element
                if (self._pair[0] != self._pair[1]) if size == _BLOCK else bytes(parts[0]) != bytes(parts[1]):
                    return False
                done, first = done + size, False
        return True


def _together(train: Matrix, infer: Matrix) -> Iterator[Tuple[Tuple[str, int], Tuple[str, int], int]]:
    """(file, byte) of both sides, and how many bytes lie in one stretch on both."""
    width = train.columns * train.item
    sides = [[(run.path, run.start, run.rows * width) for run in one.runs] for one in (train, infer)]
    at, used = [0, 0], [0, 0]
    while at[0] < len(sides[0]) and at[1] < len(sides[1]):
        ends = [sides[side][at[side]] for side in (0, 1)]
        count = min(end[2] - before for end, before in zip(ends, used))
        if count:
            yield (ends[0][0], ends[0][1] + used[0]), (ends[1][0], ends[1][1] + used[1]), count
        for side in (0, 1):
            used[side] += count
            if used[side] == ends[side][2]:
                at[side], used[side] = at[side] + 1, 0


def equal(files: Files, train: Matrix, infer: Matrix) -> bool:
    """Whether two matrices hold the same bytes in the same format; False where that takes reading numbers."""
    plain = not (train.scaled or infer.scaled)
    return plain and train.dtype == infer.dtype and train.in_order and infer.in_order and files.equal(train, infer)


def matrix_of(pieces: Sequence[Piece]) -> Matrix:
    """The rows of pieces, one piece below the other. Raises DumpError where a file cannot be read, or they are of two dtypes."""
    runs, dtypes = [], {}
    for piece in pieces:
        tensor = located(piece.parameter)
        runs.append(_run(tensor, piece))
        dtypes[tensor.dtype] = tensor.item_size
    if len(dtypes) > 1:
        shown = ", ".join(piece.parameter.name for piece in pieces)
        raise DumpError("Cannot compare %s as one matrix: they are of %s. Save them in one format." % (shown, " and ".join(sorted(dtypes))))
    ((dtype, item),) = dtypes.items()
    return Matrix(dtype, item, sum(piece.rows for piece in pieces), pieces[0].columns, tuple(runs))


def _run(tensor: PtTensor, piece: Piece) -> Run:
    start = tensor.start + piece.start * tensor.item_size
    if piece.parameter.scale is not None:
        if piece.turned or not tensor.contiguous:
            raise DumpError("Cannot read %s: it is stored turned, and its scale is not. Dequantise it first." % piece.parameter.name)
        first = piece.start // piece.columns
        return Run(tensor.path, start, piece.rows, piece.columns, 1, first, scale_of(piece.parameter))
    if piece.turned:
        return Run(tensor.path, start, piece.rows, 1, piece.rows)
    if tensor.contiguous:
        return Run(tensor.path, start, piece.rows, piece.columns, 1)
    if len(tensor.shape) != 2 or piece.start:
        raise DumpError("Cannot compare %s: it is a strided view. Save it with .contiguous()." % piece.parameter.name)
    return Run(tensor.path, start, piece.rows, tensor.strides[0], tensor.strides[1])


def rows_of(matrix: Matrix, start: int, stop: int) -> Matrix:
    """The rows from ``start`` to ``stop``."""
    return picked(matrix, ((start, stop),))


def picked(matrix: Matrix, stretches: Sequence[Tuple[int, int]]) -> Matrix:
    """Stretches of rows, one below the other."""
    runs = []
    for start, stop in stretches:
        above = 0
        for run in matrix.runs:
            first, last = max(start, above), min(stop, above + run.rows)
            if first < last:
                skipped = (first - above) * run.row_stride * matrix.item
                runs.append(run._replace(start=run.start + skipped, rows=last - first, first=run.first + first - above))
            above += run.rows
    return matrix._replace(rows=sum(run.rows for run in runs), runs=tuple(runs))


def read(files: Files, matrix: Matrix, start: int, stop: int) -> Any:
    """Rows as float64 [stop - start, columns]."""
    import numpy as np

    part = rows_of(matrix, start, stop)
    found = [times_scale(numbers(_raw(files, part, run), part.dtype), run.scale, run.first) for run in part.runs]
    return found[0] if len(found) == 1 else np.concatenate(found) if found else np.empty((0, matrix.columns))


def _raw(files: Files, matrix: Matrix, run: Run) -> Any:
    import numpy as np

    kind = raw_type(matrix.dtype, matrix.item)
    if run.row_stride == matrix.columns and run.column_stride == 1:
        data = bytearray(run.rows * matrix.columns * matrix.item)
        files.read(run.path, run.start, memoryview(data))
        return np.frombuffer(data, kind).reshape(run.rows, matrix.columns)
    return np.array(strided(matrix, run, 0, matrix.columns))


def strided(matrix: Matrix, run: Run, start: int, stop: int) -> Any:
    """Some columns of a run where they lie in the file: raw elements [rows, stop - start], mapped."""
    import numpy as np

    kind = np.dtype(raw_type(matrix.dtype, matrix.item))
    count = (run.rows - 1) * run.row_stride + (matrix.columns - 1) * run.column_stride + 1
    flat = np.memmap(run.path, np.uint8, "r", run.start, (count * matrix.item,)).view(kind)
    steps = (run.row_stride * matrix.item, run.column_stride * matrix.item)
    return np.lib.stride_tricks.as_strided(flat, (run.rows, matrix.columns), steps, writeable=False)[:, start:stop]


def weight_of(files: Files, matrix: Matrix) -> Weight:
    """The matrix as what weight_kinds compares; codes times their scales are numbers of float32."""
    return Weight(
        "float32" if matrix.scaled else matrix.dtype, matrix.rows, matrix.columns, lambda start, stop: read(files, matrix, start, stop)
    )
