"""What a formula leaves of a record: its line against the truth, which way it errs, and where, so that the fault can be named."""

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from dump_analysis.artefacts.replay_results import Direction, GainRange, Residual
from dump_analysis.floats import Array, shown
from dump_analysis.replay.blocks import blocks, rows_in_cache, spans
from dump_analysis.replay.modules import Work
from dump_analysis.replay.trials import Touched, Trial

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


def where_of(touched: Touched) -> Where:
    """Where a trial fails."""
    return Where(_numbers(touched.tokens), _numbers(touched.columns), len(touched.tokens), len(touched.columns))


def _numbers(touched: Array) -> tuple[int, ...]:
    return tuple(int(at) for at in np.flatnonzero(touched))


def residual_of(work: Work, trial: Trial, grid: str) -> Residual | None:
    """The record against the truth of a trial's function. None where no finite element is left."""
    whole = np.zeros(7)
    tokens, columns = np.zeros((2, work.output.rows)), np.zeros((2, work.output.columns))
    smaller = larger = 0
    for truth, recorded, token, column in _pieces(work, trial, grid):
        good = np.isfinite(truth) & np.isfinite(recorded)
        t, r = np.where(good, truth, 0.0), np.where(good, recorded, 0.0)
        products, squares, more = t * r, t * t, np.abs(r) - np.abs(t)
        whole += [good.sum(), t.sum(), r.sum(), squares.sum(), products.sum(), ((r - t) ** 2).sum(), (r * r).sum()]
        smaller, larger = smaller + int((more < 0).sum()), larger + int((more > 0).sum())
        tokens[:, token : token + len(t)] += products.sum(1), squares.sum(1)
        columns[:, column : column + t.shape[1]] += products.sum(0), squares.sum(0)
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


def _pieces(work: Work, trial: Trial, grid: str) -> Iterator[tuple[Array, Array, int, int]]:
    """Truth and record [tokens, columns] in parts that stay in a processor's cache, and where they begin."""
    for block in blocks(work, trial.formula, trial.config, grid):
        truth = trial.formula.truth(block.wide(trial.config)[0], trial.variant)[0]
        for start, stop in spans(len(truth), rows_in_cache(truth.shape[1])):
            yield truth[start:stop], block.recorded[start:stop].astype(np.float64), block.token + start, block.column


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
