"""A checkpoint as the whole of every matrix: where rows of shards stand in it, by what the rows hold, whatever it calls them."""

from collections.abc import Iterable, Sequence
from itertools import pairwise
from math import prod
from typing import NamedTuple

import numpy as np
from msprobe_files.errors import DumpError
from msprobe_files.operands import Op

from dump_analysis import floats
from dump_analysis.floats import Array
from dump_analysis.mapping.recorded.keys import keys_of
from dump_analysis.tensors import Files, Tensor, cut_stream, elements_of

_KEY = 16  # elements of a row
_KNOWN = 0.9  # of the rows of each shard; vocabularies are padded


class Segment(NamedTuple):
    """Rows ``start … stop`` of a shard that are rows of one matrix of the checkpoint, from its row ``first`` on."""

    start: int
    stop: int
    matrix: int
    first: int


class Reference:
    """The rows of a checkpoint's float matrices, for shards to be found among."""

    def __init__(self, weights: Iterable[Tensor]) -> None:
        matrices = [tensor for tensor in weights if len(tensor.shape) > 1 and floats.FORMATS[tensor.dtype].kind == "float"]
        self._each = each = [row_keys(tensor) for tensor in matrices]
        keys = np.concatenate(each or [np.empty(0, np.uint64)])
        matrix = np.repeat(np.arange(len(each)), [len(found) for found in each])
        rows = np.concatenate([np.arange(len(found)) for found in each] or [np.empty(0, np.int64)])
        order = np.argsort(keys, kind="stable")
        self._keys, self._matrix, self._rows = keys[order], matrix[order], rows[order]
        self._found: dict[Tensor, list[Segment] | None] = {}

    def segments(self, tensor: Tensor) -> list[Segment] | None:
        """The runs of rows of a shard; None where it has other rows than the checkpoint. A row of zeros goes with the one before it."""
        if tensor not in self._found:
            self._found[tensor] = self._segments(row_keys(tensor))
        return self._found[tensor]

    def _segments(self, keys: Array) -> list[Segment] | None:
        if not len(keys) or not len(self._keys):
            return None
        at = np.minimum(np.searchsorted(self._keys, keys), len(self._keys) - 1)
        known = (self._keys[at] == keys) & (keys != 0)
        if known.sum() < _KNOWN * max(1, (keys != 0).sum()) or not known.any():
            return None
        found: list[Segment] = []
        for row in np.flatnonzero(known).tolist():
            if found and self._goes_on(found[-1], row, keys[row]):
                continue
            matrix, number = int(self._matrix[at[row]]), int(self._rows[at[row]])
            found.append(Segment(row, len(keys), matrix, number) if found else Segment(0, len(keys), matrix, number - row))
        return self._merged([one._replace(stop=after.start) for one, after in pairwise(found)] + found[-1:], known, keys)

    def _merged(self, segments: list[Segment], known: Array, keys: Array) -> list[Segment]:
        """Segments, each with what goes before it and would be rows of its own: equal rows were taken for the first such."""
        kept = segments[-1:]
        for one in reversed(segments[:-1]):
            after = kept[-1]
            rows = np.flatnonzero(known[one.start : one.stop]) + one.start
            numbers = rows - after.start + after.first
            ours = self._each[after.matrix]
            if numbers[0] >= 0 and bool((ours[numbers] == keys[rows]).all()):
                kept[-1] = after._replace(start=one.start, first=after.first - (after.start - one.start))
            else:
                kept.append(one)
        return kept[::-1]

    def _goes_on(self, segment: Segment, row: int, key: int) -> bool:
        """Whether a row of a shard is the next one of its segment: of equal rows in several places this one counts."""
        rows, number = self._each[segment.matrix], row - segment.start + segment.first
        return number < len(rows) and bool(rows[number] == key)

    def order(self, shards: Sequence[Tensor]) -> tuple[int, ...] | None:
        """The numbers of shards as their first rows follow each other in one matrix; None where they do not."""
        firsts = [found[0] if (found := self.segments(tensor)) else None for tensor in shards]
        known = [one for one in firsts if one is not None]
        if len(known) < len(shards) or len({one.matrix for one in known}) > 1 or len({one.first for one in known}) < len(shards):
            return None
        return tuple(sorted(range(len(shards)), key=lambda at: known[at].first))

    def runs(self, shards: Sequence[Tensor]) -> list[tuple[int, int, int]] | None:
        """The rows of the whole as (number of the shard, start, stop): matrix by matrix, each in its order; what several hold, once.

        None where shards are no rows of the checkpoint, or not cut alike.
        """
        each = [self.segments(tensor) for tensor in shards]
        parts = [found for found in each if found is not None]
        if len(parts) < len(shards) or len({tuple(one.matrix for one in found) for found in parts}) > 1:
            return None
        if len({one.matrix for one in parts[0]}) < len(parts[0]):  # q, k and v group by group, say
            whole = sorted(range(len(parts)), key=lambda at: parts[at][0].first)
            distinct = len({parts[at][0].first for at in whole}) == len(parts)
            return [(at, 0, parts[at][-1].stop) for at in whole] if distinct else None
        runs: list[tuple[int, int, int]] = []
        for of_matrix in zip(*parts, strict=True):
            seen: set[int] = set()
            for at in sorted(range(len(parts)), key=lambda at: of_matrix[at].first):
                one = of_matrix[at]
                runs += [] if one.first in seen else [(at, one.start, one.stop)]
                seen.add(one.first)
        return runs


def row_keys(tensor: Tensor) -> Array:
    """A key for each row of a matrix or a stack, from 16 elements from a third on; 0 for rows of zeros, none where it cannot be read."""
    rows, width = prod(tensor.shape[:-1]), tensor.shape[-1]
    first = width // 3
    steps = (Op("reshape", shape=(rows, width)), Op("slice", axis=1, start=first, stop=min(width, first + _KEY)))
    files = Files()
    try:
        stream = cut_stream(files, tensor, steps)
        with np.errstate(over="ignore"):
            values = floats.values(stream.read(0, elements_of(stream)), tensor.dtype).astype(np.float32).reshape(stream.shape)
        return np.where(values.any(1), keys_of(values), np.uint64(0))
    except DumpError:
        return np.empty(0, np.uint64)
    finally:
        files.close()
