"""What a module pair adds by itself, apart from what its inputs brought in: one side's computation on the other side's inputs.

With f the way in which one side computes, its weights and constants included, and x and y what was recorded,
y_infer - y_train = (y_infer - f_train(x_infer)) + (f_train(x_infer) - y_train): the first part is local, the second propagated.
"""

import math
from typing import NamedTuple

import numpy as np

from dump_analysis import floats, ulps
from dump_analysis.artefacts.replay_results import Local
from dump_analysis.floats import Array, shown
from dump_analysis.replay.blocks import blocks
from dump_analysis.replay.conventions import without_rounded_sum
from dump_analysis.replay.formulas import Given, Variant
from dump_analysis.replay.modules import Work
from dump_analysis.replay.one_side import Replayed
from dump_analysis.replay.recorded import CannotReplay, Matrix
from dump_analysis.replay.trials import Trial

_DIGITS = 6  # of estimates


class _Sums(NamedTuple):
    """Counts and sums of squares over elements that are finite everywhere."""

    unequal: int
    of: int
    ulp_max: int
    smaller: int
    larger: int
    local: float
    propagated: float
    train: float


def local_of(train: Replayed, infer: Replayed) -> Local | None:
    """None where neither side's way of computing is known, or it does not run on what the other side was handed."""
    if train.explained:
        known, other, mirrored = train, infer, False
    elif infer.explained:
        known, other, mirrored = infer, train, True
    else:
        return None
    try:
        sums = _sums(known, other, mirrored=mirrored)
    except CannotReplay:  # ids that the known side's table does not hold
        return None
    return None if sums is None else _written(sums)


def _written(sums: _Sums) -> Local:
    of_train = math.sqrt(sums.train)
    local, propagated = (shown(math.sqrt(squares) / of_train, _DIGITS) if of_train else None for squares in (sums.local, sums.propagated))
    return Local(sums.unequal, sums.of, sums.ulp_max, sums.smaller, sums.larger, local, propagated)


def _sums(known: Replayed, other: Replayed, *, mirrored: bool) -> _Sums | None:
    """``mirrored``: the known side is infer, so that what is computed on the other's inputs stands for infer's record there."""
    mixed = other.work._replace(weights=known.work.weights, experts=known.work.experts, inputs=_inputs(known, other))
    if known.work.operators != other.work.operators and known.work.experts is not None:
        return None  # one's sum follows from logits, the other's from shares
    if _roles(known) != _roles(other) or _size(known.work) != _size(other.work):
        return None
    trial, grid = known.best.trial, ulps.coarser((known.grid, other.grid)) or known.grid
    found = np.zeros(8)
    for block in blocks(mixed, trial.formula, trial.config, known.grid):
        given, recorded = block.wide(trial.config)
        variant = _variant(trial, given)
        if variant is None:
            return None
        made = variant.run(given)[0].value
        rows, columns = slice(block.token, block.token + made.shape[0]), slice(block.column, block.column + made.shape[1])
        own = known.work.output.part(rows, columns)
        good = np.isfinite(made) & np.isfinite(recorded) & np.isfinite(own)
        one, two = (recorded, made) if mirrored else (made, recorded)
        found = _added(found, one[good], two[good], (made - own)[good], (one if mirrored else own)[good], grid)
    unequal, of, ulp_max, smaller, larger = map(int, found[:5])
    return _Sums(unequal, of, ulp_max, smaller, larger, *map(float, found[5:]))


def _roles(side: Replayed) -> tuple[str, ...] | None:
    return side.work.heads.roles if side.work.heads is not None else None


def _inputs(known: Replayed, other: Replayed) -> tuple[Matrix, ...]:
    """The other side's inputs; the table of a rotation belongs to the way in which the known side computes."""
    roles = _roles(known)
    if roles is None or roles != _roles(other):
        return other.work.inputs
    given = zip(roles, known.work.inputs, other.work.inputs, strict=True)
    return tuple(own if role in ("table", "key_table") and own.rows == one.rows else one for role, own, one in given)


def _size(work: Work) -> tuple[int, int, int]:
    """What must be the same for one's way of computing to run on what the other was handed: padded columns, say, are not."""
    return work.output.rows, work.output.columns, work.inputs[0].columns


def _added(sums: Array, train: Array, infer: Array, inherited: Array, recorded: Array, grid: str) -> Array:
    apart = np.flatnonzero(train != infer)
    raw = [floats.rounded(side[apart], grid) for side in (train, infer)]
    most = int(ulps.distance(raw[0], raw[1], grid)[0].max(initial=0))
    one, two = np.abs(train[apart]), np.abs(infer[apart])
    more = [len(apart), train.size, 0, (one < two).sum(), (one > two).sum(), ((infer - train) ** 2).sum()]
    found = sums + np.array([*more, (inherited**2).sum(), (recorded**2).sum()], np.float64)
    found[2] = max(sums[2], most)
    return found


def _variant(trial: Trial, given: Given) -> Variant | None:
    """The trial's variant as it runs on other inputs: a norm of one input is that of a rounded sum where there are two."""
    if trial.variant.applies(given):
        return trial.variant
    wanted = without_rounded_sum(trial.variant.name)
    return next((one for one in trial.formula.fitting(given) if without_rounded_sum(one.name) == wanted), None)
