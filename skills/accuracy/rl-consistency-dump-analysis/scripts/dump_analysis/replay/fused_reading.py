"""q, k and v of one fused matrix, read in another order than its rows lie: group by group instead of in three blocks, or the reverse.

A loader that writes all of q, then k, then v into a matrix whose owner reads each group's queries, its k and its v together (Megatron)
leaves every weight and every projection equal to the other side's, row by row, and an attention that follows from none of them.
"""

from collections.abc import Iterator
from typing import NamedTuple

import msgspec
import numpy as np
from msprobe_files.operands import Op, Operand, Source

from dump_analysis.artefacts.semantic_mapping import Row
from dump_analysis.floats import Array
from dump_analysis.mapping.recorded.cuts import cut_op
from dump_analysis.replay.attention_seen import operand_of
from dump_analysis.replay.modules import Pair

_PARTS = ("q.out", "k.out", "v.out")
BLOCKS = 0  # in place of a number of groups


class _Cut(NamedTuple):
    """The source that an operand cuts columns out of, and which."""

    source: Source
    columns: Array


def orders(pair: Pair, layer: str, label: str, width: int) -> Iterator[tuple[int, Pair]]:
    """The other orders in which q, k and v can be read, each as the number of its groups and the pair with the mapping that reads so.

    ``width``: of a head. None where they are no columns of one tensor.
    """
    rows = [pair.rows.get(f"{layer}{name}") for name in _PARTS]
    cuts = [_cut_of(operand_of(row, label)) for row in rows if row is not None]
    known = [cut for cut in cuts if cut is not None]
    sizes = [len(cut.columns) for cut in known]
    if len(known) < len(_PARTS) or len({cut.source for cut in known}) > 1 or sizes[1] != sizes[2] or sizes[1] % width:
        return
    own, groups = np.concatenate([cut.columns for cut in known]), sizes[1] // width
    if len(np.unique(own)) != len(own) or own.max() != len(own) - 1 or sizes[0] % groups:
        return
    for count in (groups, BLOCKS):
        read = _read(sizes, count)
        if not np.array_equal(np.concatenate(read), own):
            made = {row.boundary: _reading(row, label, known[0].source, part) for row, part in zip(rows, read, strict=True) if row}
            yield count, pair._replace(rows={**pair.rows, **made})


def _cut_of(operand: Operand) -> _Cut | None:
    """None where an operand is no tensor, or its last op cuts no columns."""
    steps = operand.sources[0].steps or ()
    if len(operand.sources) > 1 or not steps or steps[-1].axis != 1:
        return None
    source, last = operand.sources[0]._replace(steps=steps[:-1]), steps[-1]
    if last.op == "take":
        return _Cut(source, np.array(last.picked, np.int64))
    return _Cut(source, np.arange(last.start or 0, last.stop)) if last.op == "slice" and last.stop is not None else None


def _read(sizes: list[int], groups: int) -> list[Array]:
    """Which columns are q, k and v."""
    stops = np.cumsum(sizes)
    if groups == BLOCKS:
        return [np.arange(stop - size, stop) for size, stop in zip(sizes, stops, strict=True)]
    each = np.arange(stops[-1]).reshape(groups, -1)
    ends = np.cumsum([size // groups for size in sizes])[:-1]
    return [part.reshape(-1) for part in np.split(each, ends, axis=1)]


def _reading(row: Row, label: str, source: Source, columns: Array) -> Row:
    steps: tuple[Op, ...] = (*(source.steps or ()), cut_op(1, columns))
    return msgspec.structs.replace(row, **{label: Operand([source._replace(steps=steps)])})
