"""Experts taken for one another, or gate for up: whether a routed sum that nothing explains follows from its experts as they are mistaken.

Experts of a token that follows are themselves; two of the others may be exchanged, or all may be counted from another one on.
"""

from collections.abc import Iterator, Sequence
from itertools import combinations

import numpy as np

from dump_analysis.floats import Array
from dump_analysis.replay import trials
from dump_analysis.replay.blocks import of_tokens
from dump_analysis.replay.formulas.routed_experts import ROUTED
from dump_analysis.replay.formulas.routing import TOP_K, chosen
from dump_analysis.replay.modules import Work
from dump_analysis.replay.one_side import Replayed
from dump_analysis.replay.trials import Trial, Tried

_CANDIDATES, _PROBED = 16, 4  # experts that may be exchanged; tokens on which an order is tried first


def with_experts_exchanged(one: Replayed, ways: Sequence[Trial]) -> Replayed | None:
    """The side as one that mistakes its experts, if all of its record follows so; None where it does not. ``ways``: how it may compute."""
    work, touched = one.work, one.best.touched
    if work.operators != (ROUTED,) or touched is None or work.experts is None or not ways:
        return None
    experts, tokens = _experts_of(work, ways[0]), np.flatnonzero(touched.tokens)
    if (found := _explaining(work._replace(experts=work.experts._replace(up_first=True)), ways, tokens, one.grid)) is not None:
        variant = found.trial.variant._replace(name=f"gate_and_up_exchanged+{found.trial.variant.name}")
        mistaken = found._replace(trial=found.trial._replace(variant=variant, fault=True))
        return one._replace(best=mistaken, residual=None, where=None)
    for order in _orders(experts, tokens, len(work.experts.last)):
        found = _explaining(work._replace(experts=work.experts.in_order(order)), ways, tokens, one.grid)
        if found is not None:
            mistaken = found._replace(trial=found.trial._replace(fault=True))
            return one._replace(best=mistaken, residual=None, where=None, experts_taken=tuple(order))
    return None


def _explaining(work: Work, ways: Sequence[Trial], tokens: Array, grid: str) -> Tried | None:
    """The best of the ways that explain all of a work; a few of the tokens that do not follow without it are tried first."""
    block = of_tokens(work, tokens[:: max(1, len(tokens) // _PROBED)][:_PROBED], grid)
    if not any(not trials.counted(way, block).outside for way in ways):
        return None
    found = [each for each in trials.tried(work, ways, grid) if each.explains]
    return max(found, key=lambda each: each.equal) if found else None


def _experts_of(work: Work, way: Trial) -> Array:
    if len(work.inputs) == 4:
        return work.inputs[3].read(0, work.inputs[3].rows).astype(np.int64)
    return chosen(work.inputs[1].read(0, work.inputs[1].rows), int(way.config[TOP_K]))


def _orders(experts: Array, tokens: Array, count: int) -> Iterator[list[int]]:
    """Which expert's matrices each number may stand for: two exchanged, then all moved on."""
    others = np.setdiff1d(np.arange(len(experts)), tokens)
    open_ones = np.setdiff1d(np.unique(experts[tokens]), np.unique(experts[others])).tolist()
    unused = np.setdiff1d(np.arange(count), np.unique(experts)).tolist()
    for one, other in combinations([*open_ones, *unused][:_CANDIDATES], 2):
        order = list(range(count))
        order[one], order[other] = other, one
        yield order
    for by in range(1, count) if len(open_ones) > 2 else ():
        yield [(at + by) % count for at in range(count)]
