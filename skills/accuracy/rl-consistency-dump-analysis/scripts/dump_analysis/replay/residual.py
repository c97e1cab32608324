"""What a formula leaves of a record: its line against the truth, which way it errs, and where, so that the fault can be named."""

import math
from typing import NamedTuple

import numpy as np

from dump_analysis.artefacts.replay_results import Direction, GainRange, Residual
from dump_analysis.floats import Array, shown
from dump_analysis.replay import trials
from dump_analysis.replay.modules import Work
from dump_analysis.replay.trials import Trial

_DIGITS = 6  # of estimates


class _Sums(NamedTuple):
    """Sums over elements of 1, t, r, t², t r, (r - t)² and r², t the truth and r the record."""

    elements: float
    truth: float
    record: float
    squares: float
    products: float
    apart: float
    records: float


class Where(NamedTuple):
    """Which tokens and columns hold elements that a trial leaves: numbers among those of the boundary."""

    tokens: tuple[int, ...]
    columns: tuple[int, ...]
    of_tokens: int
    of_columns: int


def where_of(work: Work, trial: Trial, grid: str) -> Where:
    """Where a trial fails."""
    tokens, columns = np.zeros(work.output.rows, bool), np.zeros(work.output.columns, bool)
    for block in trials.blocks(work, trial.formula, trial.config, grid):
        outside = trials.outside(trial, block)
        tokens[block.token : block.token + outside.shape[0]] |= outside.any(axis=1)
        columns[block.column : block.column + outside.shape[1]] |= outside.any(axis=0)
    return Where(_numbers(tokens), _numbers(columns), len(tokens), len(columns))


def _numbers(touched: Array) -> tuple[int, ...]:
    return tuple(int(at) for at in np.flatnonzero(touched))


def residual_of(work: Work, trial: Trial, grid: str) -> Residual | None:
    """The record against the truth of a trial's function. None where no finite element is left."""
    whole = np.zeros(7)
    tokens, columns = np.zeros((2, work.output.rows)), np.zeros((2, work.output.columns))
    smaller = larger = 0
    for block in trials.blocks(work, trial.formula, trial.config, grid):
        truth = trial.formula.truth(block.given, trial.variant)[0]
        good = np.isfinite(truth) & np.isfinite(block.recorded)
        t, r = np.where(good, truth, 0.0), np.where(good, block.recorded, 0.0)
        whole += [good.sum(), t.sum(), r.sum(), (t * t).sum(), (t * r).sum(), ((r - t) ** 2).sum(), (r * r).sum()]
        smaller += int((np.abs(r) < np.abs(t)).sum())
        larger += int((np.abs(r) > np.abs(t)).sum())
        rows, across = slice(block.token, block.token + t.shape[0]), slice(block.column, block.column + t.shape[1])
        tokens[:, rows] += (t * r).sum(1), (t * t).sum(1)
        columns[:, across] += (t * r).sum(0), (t * t).sum(0)
    sums = _Sums(*map(float, whole))
    if not sums.elements or not sums.squares:
        return None
    gain, offset, left, stderr = _line(sums)
    return Residual(
        against=trial.variant.function or trial.formula.operator,
        gain=shown(gain, _DIGITS),
        offset=shown(offset, _DIGITS),
        stderr=shown(stderr, 2),
        direction=Direction(smaller, larger),
        left_over=shown(left / sums.apart if sums.apart else 0.0, 3),
        token=_range(*tokens),
        column=_range(*columns),
    )


def _line(sums: _Sums) -> tuple[float, float, float, float]:
    """Gain, offset, squares that the line leaves, and the gain's standard error."""
    spread = sums.squares - sums.truth**2 / sums.elements
    if spread <= 0:
        return sums.products / sums.squares, 0.0, max(0.0, sums.records - sums.products**2 / sums.squares), 0.0
    gain = (sums.products - sums.truth * sums.record / sums.elements) / spread
    offset = (sums.record - gain * sums.truth) / sums.elements
    left = sums.records - 2 * gain * sums.products - 2 * offset * sums.record
    left += gain * gain * sums.squares + 2 * gain * offset * sums.truth + offset * offset * sums.elements
    left = max(0.0, left)
    return gain, offset, left, math.sqrt(left / max(1.0, sums.elements - 2) / spread)


def _range(products: Array, squares: Array) -> GainRange | None:
    known = squares > 0
    if not known.any():
        return None
    gains = products[known] / squares[known]
    return GainRange([shown(gains.min(), _DIGITS), shown(gains.max(), _DIGITS)])
