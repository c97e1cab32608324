"""Ops that cut columns or rows out of an operand: a slice where they are a run, else a take."""

from collections.abc import Sequence

import numpy as np
from msprobe_files.operands import Op, Operand, Source

from dump_analysis.floats import Array


def cut_op(axis: int, picked: Sequence[int] | Array) -> Op:
    """The op that takes these items of an axis, in this order: a slice, or a take by runs where that is shorter."""
    at = np.asarray(picked, np.int64)
    runs = runs_of(at)
    if len(runs) == 1:
        return Op("slice", axis=axis, start=runs[0][0], stop=runs[0][1])
    items = tuple(int(item) for item in at)
    return Op("take", axis=axis, picked=items, runs=runs if 2 * len(runs) < len(items) else ())


def runs_of(items: Array) -> tuple[tuple[int, int], ...]:
    """Runs [start, stop) of items that count up by one, in the order given."""
    if not len(items):
        return ()
    ends = np.append(np.flatnonzero(np.diff(items) != 1), len(items) - 1)
    starts = np.append(0, ends[:-1] + 1)
    return tuple((int(items[low]), int(items[high]) + 1) for low, high in zip(starts, ends, strict=True))


def with_ops(operand: Operand, *ops: Op) -> Operand:
    """The operand with ops behind those of each source. Means the same as on the joined value unless sources stand side by side."""
    sources = [Source(source.name, source.rank, source.dump_step, (*(source.steps or ()), *ops)) for source in operand.sources]
    return Operand(sources, operand.combine, operand.axis)
