"""Where a recorded value differs from what it should be, and how: a few tokens or columns of many, by one factor, or exchanged."""

from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple

import numpy as np

from dump_analysis.floats import Array
from dump_analysis.mapping.recorded.keys import keys_of, places_of
from dump_analysis.replay import emulate
from dump_analysis.replay.recorded import Matrix
from dump_analysis.replay.search import rounded_to_usual

_BLOCK = 1 << 20  # float64 elements of one array: 8 MiB
_FEW = 4  # a change of few rows touches at most one in so many
_SPARSE = 0.25  # of what a change touches; fewer elements that differ by rounding may be another way to round

Expected = Callable[[int, int], Sequence[Array]]  # rows start … stop -> every value that they may have, float64 [rows, columns]
_LEAST = 6  # elements of a row that must have one factor: fewer may have one by chance
How = Literal["gain", "moved", "lost", "rounding", "other"]


class Difference(NamedTuple):
    """How many elements are none of the values expected, and which tokens and columns hold them."""

    unexplained: int
    of: int
    tokens: Array
    columns: Array
    nearest: int  # which of the values expected is the nearest

    @property
    def none(self) -> bool:
        return not self.unexplained


class Change(NamedTuple):
    """A few tokens or a few columns that differ, and no others. ``how``: by a factor (``gain`` where it is one for all of them, None
    where each has its own), rows of other tokens, an addend that is lost, a few elements by rounding, or otherwise.
    """

    tokens: tuple[int, ...]
    columns: tuple[int, ...]
    of_tokens: int
    of_columns: int
    how: How
    gain: float | None


def difference(made: Matrix, expected: Expected) -> Difference:
    """A recorded value against what it may be, element by element, in blocks of rows."""
    tallies: list[list[Array]] = []
    step = max(1, _BLOCK // max(1, made.columns))
    for start in range(0, made.rows, step):
        stop = min(made.rows, start + step)
        recorded = made.read(start, stop)
        for at, value in enumerate(expected(start, stop)):
            if at == len(tallies):
                tallies.append([np.zeros(made.rows, np.int64), np.zeros(made.columns, np.int64)])
            apart = ~((recorded == value) | (np.isnan(recorded) & np.isnan(value)))
            tallies[at][0][start:stop] = apart.sum(1)
            tallies[at][1] += apart.sum(0)
    nearest = min(range(len(tallies)), key=lambda at: int(tallies[at][0].sum()))
    tokens, columns = tallies[nearest]
    return Difference(int(tokens.sum()), made.rows * made.columns, tokens > 0, columns > 0, nearest)


def is_few(touched: Array) -> bool:
    """Whether a change touches few of many rows or columns."""
    return bool(touched.any()) and _FEW * int(touched.sum()) <= len(touched)


def change_of(made: Matrix, expected: Expected, found: Difference, addends: Sequence[Matrix]) -> Change | None:
    """How a value is changed; None where the change is in many tokens and many columns. ``addends``: what it should be the sum of."""
    by_token = is_few(found.tokens)
    if not by_token and not is_few(found.columns):
        return None
    recorded, wanted = _touched(made, expected, found, by_token=by_token)
    how, gain = _kind(made, expected, found, (recorded, wanted) if by_token else (recorded.T, wanted.T), addends if by_token else None)
    tokens, columns = (tuple(map(int, np.flatnonzero(touched))) for touched in (found.tokens, found.columns))
    return Change(tokens, columns, made.rows, made.columns, how, gain)


def _kind(
    made: Matrix, expected: Expected, found: Difference, lines: tuple[Array, Array], addends: Sequence[Matrix] | None
) -> tuple[How, float | None]:
    """``lines``: the changed tokens (or columns, then ``addends`` is None) as recorded and as expected."""
    recorded, wanted = lines
    if found.unexplained < _SPARSE * recorded.size and _within(recorded, wanted, made.dtype):
        return "rounding", None
    inner = found.columns if addends is not None else found.tokens
    for touched in (np.ones_like(inner), inner):  # the whole line, else the part of it that differs
        if _gains(recorded[:, touched], wanted[:, touched], made.dtype) is not None:
            return "gain", _one_gain(*_allowed(recorded[:, touched], wanted[:, touched], made.dtype))
    if addends is None:
        return "other", None
    tokens = [int(at) for at in np.flatnonzero(found.tokens)]
    if any(np.array_equal(recorded, np.concatenate([addend.read(at, at + 1) for at in tokens])) for addend in addends):
        return "lost", None
    return ("moved" if _is_moved(recorded, made, expected, found.nearest) else "other"), None


def _touched(made: Matrix, expected: Expected, found: Difference, *, by_token: bool) -> tuple[Array, Array]:
    """The changed tokens, all columns; or all tokens, the changed columns: as recorded, and as expected."""
    if by_token:
        rows = [(made.read(at, at + 1), expected(at, at + 1)[found.nearest]) for at in map(int, np.flatnonzero(found.tokens))]
    else:
        step = max(1, _BLOCK // max(1, made.columns))
        parts = [(start, min(made.rows, start + step)) for start in range(0, made.rows, step)]
        rows = [(made.read(*part)[:, found.columns], expected(*part)[found.nearest][:, found.columns]) for part in parts]
    return np.concatenate([row[0] for row in rows]), np.concatenate([row[1] for row in rows])


def _gains(recorded: Array, wanted: Array, dtype: str) -> Array | None:
    """The factor of each row; None where one has none."""
    squares = (wanted * wanted).sum(1)
    if not (np.isfinite(recorded).all() and np.isfinite(squares).all() and ((wanted != 0).sum(1) >= _LEAST).all()):
        return None
    gains: Array = (recorded * wanted).sum(1) / squares
    return gains if _within(recorded, gains[:, None] * wanted, dtype) else None


def _allowed(recorded: Array, wanted: Array, dtype: str) -> tuple[float, float]:
    """The factors that every element allows, each rounded once: from, to."""
    known = wanted != 0
    half = 0.5 * emulate.ulp(recorded, dtype)[known]
    ends = (recorded[known] - half) / wanted[known], (recorded[known] + half) / wanted[known]
    return float(np.minimum(*ends).max(initial=-np.inf)), float(np.maximum(*ends).min(initial=np.inf))


def _one_gain(low: float, high: float) -> float | None:
    """The shortest decimal number between, as people and programs write them; None where elements allow none together."""
    return rounded_to_usual((low + high) / 2, low, high) if low <= high else None


def _within(recorded: Array, wanted: Array, dtype: str) -> bool:
    """Whether every element is within a rounding of what it should be."""
    unit = emulate.ulp(np.maximum(np.abs(recorded), np.abs(wanted)), dtype)
    return bool((np.abs(recorded - wanted) <= unit).all())


def factor(made: Matrix, wanted: Matrix) -> float | None:
    """The one number by which a value is another, everywhere within rounding; None where there is none."""
    along = squares = 0.0
    low, high = -np.inf, np.inf
    step = max(1, _BLOCK // max(1, made.columns))
    parts = [(start, min(made.rows, start + step)) for start in range(0, made.rows, step)]
    for part in parts:
        recorded, value = made.read(*part), wanted.read(*part)
        along, squares = along + float((recorded * value).sum()), squares + float((value * value).sum())
        least, most = _allowed(recorded, value, made.dtype)
        low, high = max(low, least), min(high, most)
    gain = along / squares if squares and np.isfinite(along) and np.isfinite(squares) else 0.0
    if not gain or not all(_within(made.read(*part), gain * wanted.read(*part), made.dtype) for part in parts):
        return None
    return _one_gain(low, high) or gain


def _is_moved(changed: Array, made: Matrix, expected: Expected, nearest: int) -> bool:
    """Whether every changed row is the expected row of another token."""
    step = max(1, _BLOCK // max(1, made.columns))
    parts = [(start, min(made.rows, start + step)) for start in range(0, made.rows, step)]
    keys = np.concatenate([keys_of(expected(*part)[nearest]) for part in parts])
    return bool((places_of(keys, keys_of(changed)) >= 0).all())
