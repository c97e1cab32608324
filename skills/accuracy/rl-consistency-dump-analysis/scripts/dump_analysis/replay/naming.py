"""What would make a record follow that no variant explains: one factor, a factor in a few columns or tokens, a constant in each column.

An element r that a formula makes t of allows the factors between (r - h) / t and (r + h) / t, and the constants between r - h - t and
r + h - t, h what rounding can have moved it by. A factor that all elements allow is a description that the data could have refused
at every one of them: it names a fault, and neither convicts nor acquits.
"""

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from dump_analysis.artefacts.common import Worded
from dump_analysis.floats import Array
from dump_analysis.replay import emulate
from dump_analysis.replay.blocks import blocks, rows_in_cache, spans
from dump_analysis.replay.modules import Work
from dump_analysis.replay.residual import Where
from dump_analysis.replay.trials import Trial
from dump_analysis.wording import word

_ULPS = 1.5  # a rounding inside, as before a weight, and the last one
_FEW = 16  # tokens or columns that are named
_LEAST = 3  # elements that must agree on one number before it says anything


class _Allowed(NamedTuple):
    """The factors, by column and by token, and the constants, by column, that all elements allow; ``elements``: how many there are."""

    column_low: Array
    column_high: Array
    token_low: Array
    token_high: Array
    offset_low: Array
    offset_high: Array
    shape: tuple[int, int]


def named(work: Work, trial: Trial, grid: str, where: Where, side: str) -> Worded | None:
    """The simplest description that every element allows; None where none does."""
    if trial.formula.operator == "residual_add":
        return _addend(work, grid, side)
    if _is_unchanged(work):
        return word("replay_fits_unchanged", side=side, name=work.inputs[0].name)
    found = _allowed(work, lambda: _against_truth(work, trial, grid), grid)
    return _gain(found, where, side) or _offsets(found, where, side)


def _is_unchanged(work: Work) -> bool:
    """Whether a module hands out its first input."""
    made, given = work.output, work.inputs[0]
    if (made.rows, made.columns) != (given.rows, given.columns):
        return False
    step = max(1, (1 << 20) // max(made.columns, 1))
    parts = [(at, min(made.rows, at + step)) for at in range(0, made.rows, step)]
    return all(np.array_equal(made.read(*part), given.read(*part)) for part in parts)


def _gain(found: _Allowed, where: Where, side: str) -> Worded | None:
    tokens, columns = found.shape
    low, high = float(found.column_low.max()), float(found.column_high.min())
    if low <= high and not low <= 1.0 <= high and tokens * columns >= _LEAST:
        return word("replay_fits_gain", side=side, factor=_short(low, high), low=low, high=high)
    for kind, touched, lows, highs, each in (
        ("replay_fits_columns", where.columns, found.column_low, found.column_high, tokens),
        ("replay_fits_tokens", where.tokens, found.token_low, found.token_high, columns),
    ):
        at = np.array(touched, np.int64)
        if len(at) <= _FEW and len(at) < len(lows) and each >= _LEAST and (lows[at] <= highs[at]).all():
            factors = [_short(float(one), float(two)) for one, two in zip(lows[at], highs[at], strict=True)]
            return word(kind, side=side, at=list(touched), factors=factors)
    return None


def _offsets(found: _Allowed, where: Where, side: str) -> Worded | None:
    """A constant in each column, as a bias is: a column of so few tokens would allow one anyway."""
    if found.shape[0] < _LEAST or not (found.offset_low <= found.offset_high).all():
        return None
    apart = (found.offset_low > 0) | (found.offset_high < 0)
    return word("replay_fits_offsets", side=side, n=int(apart.sum()), of=found.shape[1]) if apart.any() and where.columns else None


def _addend(work: Work, grid: str, side: str) -> Worded | None:
    """A factor on one of the addends of a sum."""
    for at, addend in enumerate(work.inputs):
        found = _allowed(work, lambda at=at: _against_addend(work, at), grid)  # type: ignore[misc]
        low, high = float(found.column_low.max()), float(found.column_high.min())
        if low <= high and not low <= 1.0 <= high and found.shape[0] * found.shape[1] >= _LEAST:
            if low <= 0.0 <= high:
                return word("replay_fits_without", side=side, name=addend.name)
            return word("replay_fits_addend", side=side, name=addend.name, factor=_short(low, high), low=low, high=high)
    return None


# --- what elements allow ---


class _Pieces(NamedTuple):
    """What stands against what: made [tokens, columns], recorded likewise, the output that was recorded there, where they begin."""

    made: Array
    recorded: Array
    output: Array
    token: int
    column: int


def _against_truth(work: Work, trial: Trial, grid: str) -> Iterator[_Pieces]:
    for block in blocks(work, trial.formula, trial.config, grid):
        given, recorded = block.wide(trial.config)
        yield _Pieces(trial.formula.truth(given, trial.variant)[0], recorded, recorded, block.token, block.column)


def _against_addend(work: Work, at: int) -> Iterator[_Pieces]:
    for start, stop in spans(work.output.rows, rows_in_cache(work.output.columns)):
        parts, output = [made.read(start, stop) for made in work.inputs], work.output.read(start, stop)
        rest = sum(part for other, part in enumerate(parts) if other != at)
        yield _Pieces(parts[at], output - rest, output, start, 0)


def _allowed(work: Work, pieces: Callable[[], Iterator[_Pieces]], grid: str) -> _Allowed:
    shape = work.output.rows, work.output.columns
    low, high = ([np.full(size, bound) for size in (shape[1], shape[0], shape[1])] for bound in (-np.inf, np.inf))
    for piece in pieces():
        good = np.isfinite(piece.made) & np.isfinite(piece.recorded)
        rows = slice(piece.token, piece.token + good.shape[0])
        across = slice(piece.column, piece.column + good.shape[1])
        reach = _ULPS * emulate.ulp(np.maximum(np.abs(piece.recorded), np.abs(piece.output)), grid)
        with np.errstate(divide="ignore", invalid="ignore"):
            ends = (piece.recorded - reach) / piece.made, (piece.recorded + reach) / piece.made
        known = good & (piece.made != 0)
        least, most = np.where(known, np.minimum(*ends), -np.inf), np.where(known, np.maximum(*ends), np.inf)
        down, up = (np.where(good, piece.recorded - piece.made + by, bound) for by, bound in ((-reach, -np.inf), (reach, np.inf)))
        for at, (place, lower, upper, axis) in enumerate(((across, least, most, 0), (rows, least, most, 1), (across, down, up, 0))):
            low[at][place] = np.maximum(low[at][place], lower.max(axis=axis))
            high[at][place] = np.minimum(high[at][place], upper.min(axis=axis))
    return _Allowed(low[0], high[0], low[1], high[1], low[2], high[2], shape)


def _short(low: float, high: float) -> float:
    """The shortest decimal number between two, as people write constants."""
    middle = (low + high) / 2
    for digits in range(1, 12):
        short = float(f"{middle:.{digits}g}")
        if low <= short <= high:
            return short
    return middle
