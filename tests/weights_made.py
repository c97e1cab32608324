"""Pairs of weights whose difference is known because it was made: numbers, and formats rounded to by other means than the code tested.

float32 and float16 by numpy's casts, bfloat16 by the bits of float32, float8 by the nearest of all its numbers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import dumping
import numpy as np

if TYPE_CHECKING:
    Array = np.ndarray[Any, Any]
    Made = tuple[Array, Array]
else:
    Array = Made = Any  # Python 3.8 runs this file
_FLOAT8 = {
    name: np.unique([number for code in range(256) if np.isfinite(number := dumping.number_of(code, name))])
    for name in ("float8_e4m3fn", "float8_e5m2")
}


def bfloat16(numbers: Array) -> Array:
    """Nearest, ties to even."""
    bits = numbers.astype(np.float32).view(np.uint32)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) & np.uint32(0xFFFF0000)).view(np.float32).astype(np.float64)


def cut_off(numbers: Array) -> Array:
    """bfloat16 by leaving out the lower half, as a copy of the upper bytes does."""
    return (numbers.astype(np.float32).view(np.uint32) & np.uint32(0xFFFF0000)).view(np.float32).astype(np.float64)


def float16(numbers: Array) -> Array:
    return numbers.astype(np.float16).astype(np.float64)


def float8(numbers: Array, name: str = "float8_e4m3fn") -> Array:
    """The nearest of all finite numbers of the format, of two the one whose code is even."""
    grid = _FLOAT8[name]
    at = np.clip(np.searchsorted(grid, numbers), 1, len(grid) - 1)
    low, high = grid[at - 1], grid[at]
    even = np.where(at % 2 == np.searchsorted(grid, 0.0) % 2, high, low)  # codes count up from zero, on either side of it
    return np.where(numbers - low < high - numbers, low, np.where(numbers - low > high - numbers, high, even))


def neighbour(numbers: Array, up: Array) -> Array:
    """The next bfloat16 away from zero where ``up``, else the next towards it."""
    codes = (numbers.astype(np.float32).view(np.uint32) >> 16).astype(np.uint32)
    return ((codes + np.where(up, 1, -1).astype(np.uint32)) << 16).view(np.float32).astype(np.float64)


def fine(seed: int, rows: int, columns: int) -> Array:
    """Weights as a trainer's float32 masters hold them."""
    return (np.random.default_rng(seed).standard_normal((rows, columns)) * 0.1).astype(np.float32).astype(np.float64)


def weight(seed: int, rows: int, columns: int) -> Array:
    """Weights in bfloat16."""
    return bfloat16(fine(seed, rows, columns))


# --- differences; each takes (seed, rows, columns) and returns what it was made of and what it was made into ---


def other_rows(seed: int, rows: int, columns: int) -> Made:
    made = weight(seed, rows, columns)
    order = np.random.default_rng(seed + 1).permutation(rows)
    return made, made[order if (order != np.arange(rows)).any() else order[::-1]]


def other_columns(seed: int, rows: int, columns: int) -> Made:
    made = weight(seed, rows, columns)
    return made, np.roll(made, columns // 2, axis=1)


def one_step(seed: int, rows: int, columns: int) -> Made:
    """One element in three its neighbour."""
    made, random = weight(seed, rows, columns), np.random.default_rng(seed + 1)
    return made, np.where(random.random(made.shape) < 1 / 3, neighbour(made, random.random(made.shape) < 0.5), made)


def all_one_step_larger(seed: int, rows: int, columns: int) -> Made:
    made = weight(seed, rows, columns)
    return made, neighbour(made, np.ones(made.shape, bool))


def times_one_factor(seed: int, rows: int, columns: int) -> Made:
    made = weight(seed, rows, columns)
    return made, bfloat16(made * np.random.default_rng(seed + 1).choice([1.05, 0.5, -1.0, 1.4142135, 0.125]))


def one_row_times_a_factor(seed: int, rows: int, columns: int) -> Made:
    made = weight(seed, rows, columns)
    changed = made.copy()
    changed[seed % rows] = bfloat16(made[seed % rows] * 1.05)
    return made, changed


def rows_times_factors(seed: int, rows: int, columns: int) -> Made:
    made = weight(seed, rows, columns)
    return made, bfloat16(made * (1.02 + np.random.default_rng(seed + 1).random((rows, 1))))


def columns_times_factors(seed: int, rows: int, columns: int) -> Made:
    """As where a norm's gain was folded into the linear behind it."""
    made = weight(seed, rows, columns)
    return made, bfloat16(made * (1.02 + np.random.default_rng(seed + 1).random((1, columns))))


def int8_rows(seed: int, rows: int, columns: int) -> Made:
    made = weight(seed, rows, columns)
    scale = np.abs(made).max(axis=1, keepdims=True) / 127
    return made, bfloat16(np.rint(made / scale) * scale)


def int4_groups(seed: int, rows: int, columns: int) -> Made:
    """Groups of 32 along a row, scales kept in float16."""
    made = weight(seed, rows, columns)
    groups = made.reshape(rows, -1, 32)
    scale = float16(np.abs(groups).max(axis=2, keepdims=True) / 7)
    return made, bfloat16((np.rint(groups / scale) * scale).reshape(rows, columns))


def float8_whole(seed: int, rows: int, columns: int) -> Made:
    made = weight(seed, rows, columns)
    scale = np.abs(made).max() / 448
    return made, bfloat16(float8(made / scale) * scale)


def float8_blocks(seed: int, rows: int, columns: int) -> Made:
    """A scale for each 128 rows by 128 columns, as DeepSeek's checkpoints have it."""
    made = weight(seed, rows, columns)
    scale = np.empty_like(made)
    for top in range(0, rows, 128):
        for left in range(0, columns, 128):
            block = slice(top, top + 128), slice(left, left + 128)
            scale[block] = np.abs(made[block]).max() / 448
    return made, bfloat16(float8(made / scale) * scale)


def float8_powers_of_two(seed: int, rows: int, columns: int) -> Made:
    """A scale a row that is a power of two, no smaller than needed."""
    made = weight(seed, rows, columns)
    scale = 2.0 ** np.ceil(np.log2(np.abs(made).max(axis=1, keepdims=True) / 448))
    return made, float8(made / scale) * scale


def step(size: float, *, signs: bool) -> Callable[[int, int, int], Made]:
    """An optimizer's step on float32 masters, both rounded to bfloat16: of one size everywhere (Adam), or normal."""

    def make(seed: int, rows: int, columns: int) -> Made:
        masters, random = fine(seed, rows, columns), np.random.default_rng(seed + 1)
        moved = random.choice([-1.0, 1.0], masters.shape) if signs else random.standard_normal(masters.shape)
        return bfloat16(masters), bfloat16(masters + size * moved)

    return make


def half_a_step(seed: int, rows: int, columns: int) -> Made:
    """Only the first half of the rows was written."""
    made, moved = step(1e-3, signs=False)(seed, rows, columns)
    return made, np.concatenate([moved[: rows // 2], made[rows // 2 :]])


def all_but_two_rows(seed: int, rows: int, columns: int) -> Made:
    made, moved = step(1e-3, signs=True)(seed, rows, columns)
    return made, np.concatenate([made[:2], moved[2:]])


def one_element(seed: int, rows: int, columns: int) -> Made:
    made = weight(seed, rows, columns)
    changed = made.copy()
    changed[seed % rows, seed % columns] += 1.0
    return made, bfloat16(changed)


def another(seed: int, rows: int, columns: int) -> Made:
    return weight(seed, rows, columns), weight(seed + 1, rows, columns)


def noise(seed: int, rows: int, columns: int) -> Made:
    """As large as the weight itself."""
    made = weight(seed, rows, columns)
    return made, bfloat16(made + fine(seed + 1, rows, columns))
