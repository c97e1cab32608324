"""Grids of numbers that weights are kept on: formats that are rounded to, and levels times a scale that they are quantised to.

Every array is float64 and holds numbers exactly as they were recorded.  Formats: IEEE 754; bfloat16; OCP 8-bit floating point
specification (E4M3 up to 448, E5M2 up to 57344).
"""

import math
from typing import Any, Dict, Iterator, NamedTuple, Optional, Tuple


class Format(NamedTuple):
    """Bits after the leading one, exponent of the smallest normal number, largest number."""

    bits: int
    smallest: int
    largest: float


FORMATS: Dict[str, Format] = {
    "float64": Format(52, -1022, float("inf")),
    "float32": Format(23, -126, (2 - 2.0**-23) * 2.0**127),
    "float16": Format(10, -14, 65504.0),
    "bfloat16": Format(7, -126, (2 - 2.0**-7) * 2.0**127),
    "float8_e5m2": Format(2, -14, 57344.0),
    "float8_e4m3fn": Format(3, -6, 448.0),
}
# What quantised weights are made of: the name, and the largest level that the largest number of a block becomes.
# The fewest levels first: those of int4 are also numbers of the 8-bit formats.
_LEVELS: Tuple[Tuple[str, float], ...] = (("int4", 7.0), ("int4", 8.0), ("float8_e5m2", 57344.0), ("float8_e4m3fn", 448.0), ("int8", 127.0))
# Rows and columns that share one scale; None: all of them. Per tensor, per row, DeepSeek's blocks, groups along a row.
_BLOCKS: Tuple[Tuple[Optional[int], Optional[int]], ...] = ((None, None), (1, None), (128, 128), (1, 128), (1, 64), (1, 32))
# Of each, whole blocks from the first on, few enough to be tried quickly: most grids fail in them.
_CORNERS: Dict[Tuple[Optional[int], Optional[int]], Tuple[Optional[int], Optional[int]]] = {
    (None, None): (16, 128), (1, None): (4, None), (128, 128): (128, 128), (1, 128): (16, 128), (1, 64): (16, 128), (1, 32): (16, 128),
}  # fmt: skip
_SCALES = ("own", "other", "power of two")
_BEFORE_CHANCE = -math.log(1e-9)
_SLACK = {"power of two": 2.0**-22, "other": 2.0**-8}  # of a scale: kept exactly; perhaps in bfloat16; own: rounded with the largest number
_PIECE = 1 << 17  # elements tried at once
_IN_CORNER = 0.9  # of its elements: far above chance, far below what a grid leaves outside
_HITS = 0.999  # of the elements: two roundings in a row leave a few outside


def spacing(values: Any, name: str) -> Any:
    """The distance between neighbours in a format at the magnitude of each value."""
    import numpy as np

    return np.ldexp(1.0, spacing_exponents(values, name))


def spacing_exponents(values: Any, name: str) -> Any:
    """The same as powers of two, whole numbers."""
    import numpy as np

    bits, smallest, _ = FORMATS[name]
    return np.maximum(np.frexp(values)[1] - 1, smallest) - bits


def rounded(values: Any, name: str, towards_zero: bool = False) -> Any:
    """Each value's neighbour in a format, ties to even, beyond the largest number that."""
    import numpy as np

    step = spacing(values, name)
    with np.errstate(over="ignore", invalid="ignore"):
        made = (np.trunc if towards_zero else np.rint)(values / step) * step
    return np.clip(made, -FORMATS[name].largest, FORMATS[name].largest)


class Grid(NamedTuple):
    """Levels of a format times a scale for each block.

    ``scale``: how it follows from a block's largest magnitude, its own or that of the other side, perhaps made a power of two.
    """

    levels: str
    top: float
    block: Tuple[Optional[int], Optional[int]]
    scale: str


def quantised(values: Any, other: Any, dtype: str, largest: Tuple[float, float]) -> Optional[Grid]:
    """The grid on which the values of one side lie, and the other side's do not; None where there is none.

    [rows, columns] of both sides, whole rows from a row on that is a multiple of 128; ``dtype``: what the values are stored in;
    ``largest``: magnitude in the whole weight, of both sides.
    """
    blocks = [block for block in _BLOCKS if block[1] is None or values.shape[1] > block[1]]
    for grid in (Grid(*one, block, scale) for one in _LEVELS for block in blocks for scale in _SCALES):
        corner = tuple(slice(0, size) for size in _CORNERS[grid.block])
        if _hits(values[corner], other[corner], grid, dtype, largest)[0] < _IN_CORNER:
            continue
        if on_grid(values, other, grid, dtype, largest) and not _hits(other, values, grid, dtype, largest[::-1])[0] > 0.9:
            return grid
    return None


def on_grid(values: Any, other: Any, grid: Grid, dtype: str, largest: Tuple[float, float]) -> bool:
    """Whether values lie on a grid, more of them than can by chance."""
    hits, chance = 0.0, 0.0
    for piece in _pieces(values.shape, grid.block):
        share, log = _hits(values[piece], other[piece], grid, dtype, largest)
        hits, chance = hits + share * values[piece].size, chance + log
    return hits >= _HITS * values.size and chance <= -_BEFORE_CHANCE


def _pieces(shape: Tuple[int, int], block: Tuple[Optional[int], Optional[int]]) -> Iterator[Tuple[slice, slice]]:
    """Parts of [rows, columns] that are whole blocks, small enough for a few arrays of each."""
    rows, columns = shape
    down, across = (max(1, _PIECE // columns), columns) if block == (1, None) else (rows, max(1, _PIECE // rows // 128) * 128)
    for start in range(0, rows, down):
        for left in range(0, columns, across):
            yield slice(start, start + down), slice(left, left + across)


def _hits(values: Any, other: Any, grid: Grid, dtype: str, largest: Tuple[float, float]) -> Tuple[float, float]:
    """The share of the values that lie on the grid as near as their own format can be, and the logarithm of its chance."""
    import numpy as np

    scale = _scales(values, other, grid, largest)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        level = np.where(scale > 0, values / scale, 0.0)
        integers = grid.levels.startswith("int")
        step = np.ones_like(level) if integers else spacing(level, grid.levels)
        nearest = np.rint(level / step) * step
        slack = _SLACK.get(grid.scale, 2.0 ** -(FORMATS[dtype].bits + 1))
        reach = spacing(values, dtype) / 2 / np.where(scale > 0, scale, 1.0) + np.abs(nearest) * slack
        hit = (np.abs(level - nearest) <= reach) & (np.abs(level) <= grid.top * (1 + slack) + reach)
        chance = np.log(np.minimum(1.0, np.maximum(2 * reach / step, 1e-6)))
    counted = values != 0
    return float(hit.mean()), float(chance[counted].sum())


def _scales(values: Any, other: Any, grid: Grid, largest: Tuple[float, float]) -> Any:
    """The scale of each element, broadcast to the values' shape."""
    import numpy as np

    own = grid.scale == "own"
    magnitude = np.abs(values if own else other)
    high, wide = grid.block
    if high is None and wide is None:
        top = np.full((1, 1), largest[0 if own else 1])
    elif wide is None:
        top = magnitude.max(axis=1, keepdims=True)
    else:
        down, across = np.arange(0, magnitude.shape[0], high or 1), np.arange(0, magnitude.shape[1], wide)
        top = np.maximum.reduceat(np.maximum.reduceat(magnitude, down, axis=0), across, axis=1)
        top = np.repeat(np.repeat(top, high or 1, axis=0), wide, axis=1)[: magnitude.shape[0], : magnitude.shape[1]]
    scale = top / grid.top
    if grid.scale == "power of two":
        scale = np.where(scale > 0, np.exp2(np.ceil(np.log2(np.where(scale > 0, scale, 1.0)))), 0.0)
    return np.broadcast_to(scale, values.shape)
