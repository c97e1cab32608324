"""Rotation and attention that were recorded apart, said again as one stretch, so that it compares with a side that recorded neither."""

from collections.abc import Sequence

import numpy as np

from dump_analysis.replay import heads
from dump_analysis.replay.emulate import exactly
from dump_analysis.replay.formulas.rotary import MAGNITUDE, PAIRS, angles_of, table_of
from dump_analysis.replay.heads import Heads
from dump_analysis.replay.modules import Work
from dump_analysis.replay.one_side import Replayed
from dump_analysis.replay.recorded import Matrix, held


def stretch_of(turns: Sequence[Replayed], core: Work) -> Work:
    """From q and k before they were turned, the table of their rotation, and v, to the attention's output. ``turns``: of q, then of k."""
    layout = core.heads
    assert layout is not None
    (q, k), v = (turn.work.inputs[0] for turn in turns), _own_rows(core.inputs[2], layout)
    parts = _table(turns[0])
    sequences = tuple(heads.Sequence(one.start, one.stop, one.start, one.stop) for one in layout.sequences)
    roles: tuple[heads.Role, ...] = ("query", "key", "value", "table", "table", "key_table", "key_table")
    turned = turns[0].work.heads
    whole = Heads(layout.width, layout.made, roles, sequences, turned.laid_out if turned is not None else None)
    return core._replace(operators=("rotary_attention",), inputs=(q, k, v, *parts, *parts), heads=whole)


def turn_of(turn: Replayed) -> Work:
    """A rotation by its table, whether that was recorded or follows from angles or positions."""
    layout = turn.work.heads
    assert layout is not None
    whole = layout._replace(roles=("query", "table", "table"))
    return turn.work._replace(inputs=(turn.work.inputs[0], *_table(turn)), heads=whole)


def _own_rows(keys: Matrix, layout: Heads) -> Matrix:
    """What is read by key, without what stands around the sequences."""
    if not any(one.before or one.after for one in layout.sequences):
        return keys
    rows = [keys.read(one.first + one.before, one.last - one.after) for one in layout.sequences]
    return held(keys.name, keys.dtype, np.concatenate(rows))


def _table(turn: Replayed) -> tuple[Matrix, Matrix]:
    """cos and sin as they were recorded, or as they follow from angles or positions, rounded as the rotation rounds them."""
    given = [one.read(0, one.rows) for one in turn.work.inputs[1:]]
    if len(given) == 1:
        config = turn.best.trial.config
        made = table_of(angles_of(given[0], config) if PAIRS in config else exactly(given[0]), config.get(MAGNITUDE, 1.0))
        dtype = "float32" if "table_float32" in turn.best.trial.variant.name else turn.grid
        given = [made.cos.to_format(dtype).value, made.sin.to_format(dtype).value]
    return held("cos", "float32", given[0]), held("sin", "float32", given[1])
