"""Rows of the first activations in the place of token ids, for sides that recorded none: equal rows are one token."""

from collections import Counter
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from msprobe_files.errors import DumpError

from dump_analysis import floats, ulps
from dump_analysis.floats import Array
from dump_analysis.mapping.recorded.nodes import Recorded, SideRecords
from dump_analysis.mapping.tokens.token_join import NotJoined, OpenIds
from dump_analysis.mapping.tokens.token_vectors import FEWEST, MOST, Integers, Vector, counts_up, integers_of, starts_in
from dump_analysis.tensors import BLOCK_BYTES, Files, cut_stream, elements_of
from dump_analysis.wording import word

_NARROWEST = 8  # columns; rows of fewer may be equal by chance


class TokensOf(NamedTuple):
    """``read``: what stands for the ids of a side, or of one forward of it. ``unnamed``: where these are no ids."""

    read: Callable[[SideRecords], Integers]
    unnamed: OpenIds | None


def reader_of(train: SideRecords, infer: SideRecords) -> TokensOf:
    """The ids where both sides recorded any, else the rows of the first activation as wide as the stream.

    Raises NotJoined where a side has no ids and the sides have no such activation.
    """
    ids = [integers_of(side).ids for side in (train, infer)]
    without = [side.side.label for side, known in zip((train, infer), ids, strict=True) if not known]
    if not without:
        return TokensOf(integers_of, None)
    firsts = [_first(side, _stream_width(side)) for side in (train, infer)]
    if None in firsts or len({_width(first) for first in firsts if first is not None}) > 1:
        raise NotJoined(word("no_ids", sides=without, n=FEWEST), "Dump the embedding's input too.")
    dtype = ulps.coarser([first.tensor.dtype for first in firsts if first is not None])
    width = _width(firsts[0]) if firsts[0] is not None else 0

    def read(records: SideRecords) -> Integers:
        vectors = integers_of(records).all
        first = _first(records, width)
        rows = None if first is None else _rows_as_ids(first, dtype, [vector.values for vector in vectors if counts_up(vector.values)])
        return Integers(vectors, [] if rows is None else [rows])

    names = [[vector.recorded.record.name for vector in known] for known in ids]
    return TokensOf(read, OpenIds(word("joined_by_rows", sides=without), names[0], names[1]))


def _width(recorded: Recorded) -> int:
    return int(recorded.tensor.shape[-1])


def _stream_width(records: SideRecords) -> int:
    """The commonest last axis of what modules take and return: that of the residual stream."""
    found = Counter(_width(one) for one in records.activations if _is_rows(one))
    return max(found, key=lambda width: (found[width], width), default=0)


def _is_rows(recorded: Recorded) -> bool:
    shape = recorded.tensor.shape
    wide = len(shape) >= 2 and shape[-1] >= _NARROWEST and floats.FORMATS[recorded.tensor.dtype].kind == "float"
    return wide and FEWEST <= recorded.tensor.elements // shape[-1] <= MOST


def _first(records: SideRecords, width: int) -> Recorded | None:
    fits = [one for one in records.activations if _is_rows(one) and _width(one) == width]
    return min(fits, key=lambda one: one.spot.time, default=None)


def _rows_as_ids(recorded: Recorded, dtype: str | None, counted: list[Array]) -> Vector | None:
    """A number for each row that is the same for equal rows, in the coarser format of the two sides."""
    width = _width(recorded)
    mix = np.random.default_rng(0).integers(1, 1 << 62, width, np.uint64) | np.uint64(1)
    files = Files()
    try:
        stream = cut_stream(files, recorded.tensor, ())
        count = elements_of(stream) // width
        step = max(1, BLOCK_BYTES // (8 * width))
        codes = [
            _codes(stream.read(at * width, min(count, at + step) * width), recorded.tensor.dtype, dtype) for at in range(0, count, step)
        ]
    except DumpError:
        return None  # the comparison says what is wrong with the file
    finally:
        files.close()
    numbers = np.concatenate([(block.reshape(-1, width).astype(np.uint64) * mix).sum(axis=1) for block in codes]).view(np.int64)
    sizes = [size for size in recorded.tensor.shape[:-1] if size != 1]
    batch = sizes[0] if len(sizes) == 2 else 1
    return Vector(recorded, numbers, batch, starts_in(count, batch, counted))


def _codes(raw: Array, dtype: str, coarser: str | None) -> Array:
    return raw if coarser in (None, dtype) else floats.rounded(floats.values(raw, dtype), coarser or dtype)
