"""Rows of weights found in a flat parameter, which holds the parameters of many modules one after the other (FSDP1)."""

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from dump_analysis import floats
from dump_analysis.floats import Array
from dump_analysis.tensors import Files, Tensor, cut_stream, elements_of

_BLOCK = 1 << 20  # elements
_HEAD = 4  # elements of a row that are looked for first
_PRIMES = (np.uint64(0x9E3779B97F4A7C15), np.uint64(0xC2B2AE3D27D4EB4F), np.uint64(0x165667B19E3779F9), np.uint64(0x27D4EB2F165667C5))


class Rows(NamedTuple):
    """Some rows of a weight: raw elements [n, K] of a dtype, and how many elements of the whole weight stand before each."""

    values: Array
    before: Array
    dtype: str

    @property
    def findable(self) -> bool:
        return self.values.shape[0] > 0 and self.values.shape[1] >= _HEAD


def sample(tensor: Tensor, files: Files, starts: Sequence[int], width: int, before: Array) -> Rows:
    """Rows of ``width`` elements at ``starts`` of a weight, those that are constant left out: zeros stand in many places."""
    stream = cut_stream(files, tensor, ())
    rows = np.stack([stream.read(start, start + width) for start in starts])
    kept = (rows != rows[:, :1]).any(axis=1)
    return Rows(rows[kept], before[kept], tensor.dtype)


def offsets(files: Files, flat: Tensor, wanted: Sequence[Rows]) -> list[int | None]:
    """Where in the flat parameter each weight begins, by most of its rows; None where none of them is found.

    Values of a wider format are compared as the weight's own format rounds them.
    """
    votes: list[Counter[int]] = [Counter() for _ in wanted]
    for dtype in sorted({rows.dtype for rows in wanted}):
        group = [at for at, rows in enumerate(wanted) if rows.dtype == dtype and rows.findable]
        if group:
            _search(_Flat(files, flat, dtype), [wanted[at] for at in group], [votes[at] for at in group])
    return [most[0][0] if (most := count.most_common(1)) else None for count in votes]


class _Flat:
    """A flat parameter as raw elements of one dtype."""

    def __init__(self, files: Files, tensor: Tensor, dtype: str) -> None:
        self._stream = cut_stream(files, tensor, ())
        self._from, self._to = tensor.dtype, dtype
        self.size = elements_of(self._stream)

    def read(self, start: int, stop: int) -> Array:
        raw = self._stream.read(start, stop)
        return raw if self._from == self._to else floats.rounded(floats.values(raw, self._from), self._to)


def _search(flat: _Flat, wanted: Sequence[Rows], votes: Sequence[Counter[int]]) -> None:
    owner = np.repeat(np.arange(len(wanted)), [len(rows.values) for rows in wanted])
    number = np.concatenate([np.arange(len(rows.values)) for rows in wanted])
    heads = np.concatenate([rows.values[:, :_HEAD] for rows in wanted])
    keys = _keys(heads)
    order = np.argsort(keys, kind="stable")
    first = np.zeros(1 << 16, bool)  # by the bits that differ most, so that few places are looked at closely
    first[_top(heads[:, 0])] = True
    for start in range(0, flat.size, _BLOCK):
        block = flat.read(start, min(flat.size, start + _BLOCK + _HEAD - 1))
        places = np.flatnonzero(first[_top(block[: 1 - _HEAD])]) if len(block) >= _HEAD else np.empty(0, np.int64)
        found = _keys(block[places[:, None] + np.arange(_HEAD)])
        low, high = np.searchsorted(keys[order], found), np.searchsorted(keys[order], found, "right")
        for hit in np.flatnonzero(high > low):
            for at in order[low[hit] : high[hit]]:
                _vote(flat, wanted[owner[at]], int(number[at]), start + int(places[hit]), votes[owner[at]])


def _vote(flat: _Flat, rows: Rows, number: int, place: int, votes: Counter[int]) -> None:
    """Count a weight's beginning where the whole row stands at this place."""
    row, begin = rows.values[number], place - int(rows.before[number])
    if begin >= 0 and place + len(row) <= flat.size and np.array_equal(flat.read(place, place + len(row)), row):
        votes[begin] += 1


def _top(raw: Array) -> Array:
    return raw >> raw.dtype.type(8 * raw.dtype.itemsize - 16) if raw.dtype.itemsize > 2 else raw


def _keys(heads: Array) -> Array:
    total = np.zeros(len(heads), np.uint64)
    for column, prime in enumerate(_PRIMES):
        total += heads[:, column].astype(np.uint64) * prime
    return total
