"""Experts whose logits are equal: which of them a side took is no function of the logits, and is read from its routed sum."""

import numpy as np

from dump_analysis.floats import Array
from dump_analysis.replay import trials
from dump_analysis.replay.blocks import Block, of_tokens
from dump_analysis.replay.formulas.routing import ROUTERS, TOP_K, alternatives, chosen
from dump_analysis.replay.modules import Work
from dump_analysis.replay.recorded import held
from dump_analysis.replay.trials import Trial


def with_ties_settled(work: Work, trial: Trial, grid: str, tokens: Array) -> Work | None:
    """The work with the experts that it chose as a fourth input, where some of these tokens tie and follow from another choice than the
    first experts; None where none does. ``trial``: the variant that comes nearest."""
    logits, count = work.inputs[1].read(0, work.inputs[1].rows), int(trial.config[TOP_K])
    router = next(one for one in ROUTERS if one.name == trial.variant.function.partition(" ")[0])
    taken = chosen(logits, count)
    moved = False
    for token in tokens:
        ways = alternatives(router, logits[token], count)
        if len(ways) > 1:
            block = of_tokens(work, np.array([token]), grid)
            best = min(ways, key=lambda way: _left(trial, block, way))
            moved = moved or not np.array_equal(best, taken[token])
            taken[token] = best
    if not moved:
        return None
    shared = work.inputs[2] if len(work.inputs) > 2 else held("", "float32", np.zeros((len(taken), 0)))
    return work._replace(inputs=(*work.inputs[:2], shared, held(work.inputs[1].name, "int64", taken.astype(np.float64))))


def _left(trial: Trial, block: Block, way: Array) -> int:
    """How many elements of one token do not follow from a choice."""
    x, logits, *shared = block.given.inputs[:3]
    given = block.given._replace(inputs=(x, logits, shared[0] if shared else np.zeros((1, 0)), way[None]))
    return trials.counted(trial, block._replace(given=given)).outside
