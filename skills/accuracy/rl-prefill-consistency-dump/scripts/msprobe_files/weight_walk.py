"""Two weights walked side by side, block by block: what differs, digests of rows and columns, and bounds of factors, in one go."""

import math
from typing import Any, Callable, Dict, Iterator, NamedTuple, Tuple

from .weight_grids import FORMATS, rounded, spacing, spacing_exponents
from .weight_order import folded, odd_numbers

BAND = 128  # rows that share a scale, at most: blocks are whole bands where rows are short enough
_BLOCK = 1 << 16  # elements of a block: its arrays stay in the cache, which halves the time of 1 << 18
_GRIDS = ("float16", "bfloat16", "float8_e5m2", "float8_e4m3fn")
_BINADES, _LOWEST = 2200, -1100  # exponents of float64 and the lowest of them


class Weight(NamedTuple):
    """A weight of ``rows`` × ``columns`` in a format. ``read(start, stop)``: its rows as float64, exactly as recorded."""

    dtype: str
    rows: int
    columns: int
    read: Callable[[int, int], Any]


class Walked(NamedTuple):
    """What one walk over train and infer has gathered; its arrays are filled in place.

    ``coarse``: the coarser format of the two, in which all but ``unequal``, keys, ``largest``, ``rounds`` and ``added`` compare.
    ``unequal``, ``moved``, ``column_moved``: elements that differ, by row and by column.  ``row_keys``, ``column_keys``: of each side.
    ``row_factors``, ``column_factors``: [4, n], least and largest factor that explains all, where infer was rounded; where both were.
    They stop where no factor is possible any more: some of each have no factor then, and the rest any.
    ``binades``: [2, exponents], elements and moved ones by their spacing, in rows that moved (of a vector in all).
    ``sums``: moved by one ULP, moved to smaller, to larger; squares of train, of infer, of the difference; its magnitudes.
    ``largest``, ``nonfinite``: of each side, the largest magnitude, and how many elements are no finite numbers.
    ``rounds``: (side, format, towards zero) -> whether that side is the other, rounded; ``added``: side -> whether it is the other plus 1.
    """

    coarse: str
    unequal: Any
    moved: Any
    column_moved: Any
    row_keys: Any
    column_keys: Any
    row_factors: Any
    column_factors: Any
    binades: Any
    sums: Any
    largest: Any
    nonfinite: Any
    rounds: Dict[Tuple[str, str, bool], bool]
    added: Dict[str, bool]


def as_rows(weight: Weight) -> Weight:
    """A vector as a column, so that each of its elements is a row; a matrix as it is."""
    if weight.rows != 1:
        return weight
    return Weight(weight.dtype, weight.columns, 1, lambda start, stop: weight.read(0, 1).reshape(-1, 1)[start:stop])


def blocks(rows: int, columns: int) -> Iterator[Tuple[int, int]]:
    """Stretches of rows whose elements fit in the processor's cache; whole bands where rows are short enough."""
    step = max(1, _BLOCK // max(columns, 1))
    return _stretches(rows, step // BAND * BAND if step >= BAND else step)


def bands(rows: int, columns: int) -> Iterator[Tuple[int, int]]:
    """Stretches of rows that are whole bands, however wide: as many as fit, at least one."""
    return _stretches(rows, max(1, _BLOCK // max(columns, 1) // BAND) * BAND)


def _stretches(rows: int, step: int) -> Iterator[Tuple[int, int]]:
    for start in range(0, rows, step):
        yield start, min(rows, start + step)


def row_keys(values: Any) -> Any:
    """A uint64 key for each row of float64 values: equal rows have equal keys, others practically never."""
    import numpy as np

    return (folded(values) * odd_numbers(0, values.shape[1])).sum(axis=1, dtype=np.uint64)


def walk(train: Weight, infer: Weight) -> Walked:
    """Both weights of one shape, read once."""
    import numpy as np

    seen = _empty(train, infer)
    dtypes = train.dtype, infer.dtype
    for start, stop in blocks(train.rows, train.columns):
        pair = train.read(start, stop), infer.read(start, stop)
        at = slice(start, stop)
        unequal, bad = pair[0] != pair[1], [~np.isfinite(values) for values in pair]
        counts = [int(one.sum()) for one in bad]
        if any(counts):
            unequal &= ~(np.isnan(pair[0]) & np.isnan(pair[1]))
            seen.nonfinite[:] += counts
        seen.unequal[at] = unequal.sum(axis=1)
        seen.largest[:] = [max(before, one.max(), -one.min()) for before, one in zip(seen.largest, pair)]
        _add_keys(seen, at, pair)
        for side_name, dtype, (less, more) in (("infer", infer.dtype, pair), ("train", train.dtype, pair[::-1])):
            _try_rounding(seen, side_name, less, more)
            seen.added[side_name] = seen.added[side_name] and bool((rounded(less + 1.0, dtype) == more).all())
        _gather(seen, at, *(_coarsened(*one, seen.coarse) for one in zip(pair, counts, dtypes)))
    return seen


def _coarsened(values: Any, nonfinite: int, dtype: str, coarse: str) -> Any:
    """The numbers in the coarser format; infinities as its largest, what is none as zero."""
    import numpy as np

    if nonfinite:
        return np.nan_to_num(rounded(values, coarse))
    return values if dtype == coarse else rounded(values, coarse)


def _add_keys(seen: Walked, at: slice, pair: Tuple[Any, Any]) -> None:
    """Keys of the rows; of the columns as long as each first row of a block holds the same numbers on both sides, in whatever order."""
    import numpy as np

    may_be_columns = bool(seen.column_keys.any()) or at.start == 0
    sought = may_be_columns and np.array_equal(np.sort(pair[0][0]), np.sort(pair[1][0]), equal_nan=True)
    odd = odd_numbers(0, pair[0].shape[1])
    for side, values in enumerate(pair):
        bits = folded(values)
        if sought:
            seen.column_keys[side] += (bits * odd_numbers(at.start, at.stop)[:, None]).sum(axis=0, dtype=np.uint64)
        bits *= odd
        seen.row_keys[side, at] = bits.sum(axis=1, dtype=np.uint64)
    if not sought:
        seen.column_keys[:] = 0


def _empty(train: Weight, infer: Weight) -> Walked:
    import numpy as np

    known = [name for name in (train.dtype, infer.dtype) if name in FORMATS]
    coarse = min(known, key=lambda name: FORMATS[name].bits) if known else "float64"
    fine = (("infer", train.dtype), ("train", infer.dtype))
    rounds = {(side, name, cut): True for side, dtype in fine for name in _GRIDS if _is_coarser(name, dtype) for cut in (False, True)}
    vector = train.columns == 1
    added = {side: vector and dtype in FORMATS for side, dtype in (("infer", infer.dtype), ("train", train.dtype))}
    bounds = np.array([-np.inf, np.inf, -np.inf, np.inf])[:, None]
    unequal, moved, column_moved = (np.zeros(count, np.int64) for count in (train.rows, train.rows, train.columns))
    row_keys, column_keys = (np.zeros((2, count), np.uint64) for count in (train.rows, train.columns))
    row_factors, column_factors = (np.repeat(bounds, count, axis=1) for count in (train.rows, train.columns))
    return Walked(
        coarse, unequal, moved, column_moved, row_keys, column_keys, row_factors, column_factors,
        np.zeros((2, _BINADES), np.int64), np.zeros(7), np.zeros(2), np.zeros(2, np.int64), rounds, added,
    )  # fmt: skip


def _is_coarser(name: str, dtype: str) -> bool:
    """Whether numbers of a dtype may not fit into a format."""
    one, own = FORMATS[name], FORMATS.get(dtype, FORMATS["float64"])
    return one.bits < own.bits or one.smallest > own.smallest


def _try_rounding(seen: Walked, side: str, fine: Any, rough: Any) -> None:
    for key, holds in seen.rounds.items():
        if holds and key[0] == side:
            seen.rounds[key] = bool((rounded(fine, *key[1:]) == rough).all())


def _gather(seen: Walked, at: slice, x: Any, y: Any) -> None:
    """Distances, factors and norms of a block, both sides in the coarser format."""
    import numpy as np

    away, moved = np.abs(y - x), x != y
    sizes = np.abs(x), np.abs(y)
    by_row = moved.sum(axis=1)
    seen.moved[at] = by_row
    seen.column_moved[:] += moved.sum(axis=0)
    exponents = spacing_exponents(np.maximum(*sizes), seen.coarse)
    smaller, near = int((sizes[1] < sizes[0]).sum()), int((moved & (away <= np.ldexp(1.0, exponents))).sum())
    squares = [float((values * values).sum()) for values in (x, y, away)]
    seen.sums[:] += [near, smaller, int(by_row.sum()) - smaller, *squares, away.sum()]
    counted = slice(None) if x.shape[1] == 1 else by_row > 0
    places = np.clip(exponents - _LOWEST, 0, _BINADES - 1)
    seen.binades[0] += np.bincount(places[counted].reshape(-1), minlength=_BINADES)
    seen.binades[1] += np.bincount(places[moved], minlength=_BINADES)
    if not _may_be_scaled(seen):
        return  # bounds only narrow: no later block makes a factor possible again
    for place, bound in enumerate(_factor_bounds(x, y, seen.coarse)):
        worst = np.maximum if place % 2 == 0 else np.minimum
        seen.row_factors[place, at] = worst.reduce(bound, axis=1)
        worst(seen.column_factors[place], worst.reduce(bound, axis=0), out=seen.column_factors[place])


def _may_be_scaled(seen: Walked) -> bool:
    """Whether one factor, or one a row or column, explains all that was walked; the wider bounds decide."""
    return any(bool((bounds[2] <= bounds[3]).all()) for bounds in (seen.row_factors, seen.column_factors))


def usual_share(seen: Walked) -> Tuple[int, int]:
    """How many elements have a spacing of no more than the mean distance, so that a step of that size moves them, and how many moved.

    A step moves an element of spacing s by s with a chance of step / s where the number before rounding was finer, so that the mean
    distance over all elements is that of the step, whatever their formats' spacings.
    """
    elements = int(seen.binades[0].sum())
    mean = float(seen.sums[6]) / max(elements, 1)
    if mean == 0.0:
        return 0, 0
    stop = math.frexp(mean)[1] - 1 - _LOWEST + 1
    return int(seen.binades[0, :stop].sum()), int(seen.binades[1, :stop].sum())


def _factor_bounds(x: Any, y: Any, name: str) -> Tuple[Any, ...]:
    """The least and the largest factor that makes each y of x, rounded once; and if x, too, was rounded from what was multiplied."""
    import numpy as np

    found = []
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        half = spacing(y, name) / 2
        own = spacing(x, name) / 2 * np.abs(np.where(x == 0, 0.0, y / x))
        for reach in (half, half + own):
            ends = np.stack([(y - reach) / x, (y + reach) / x])
            low, high = ends.min(axis=0), ends.max(axis=0)
            low, high = low - np.abs(low) * 2.0**-22, high + np.abs(high) * 2.0**-22  # products are rounded to float32 first
            empty = np.where(np.abs(y) <= reach, np.inf, -np.inf)  # of a zero any factor makes a zero, and no factor anything else
            found += [np.where(x == 0, -empty, low), np.where(x == 0, empty, high)]
    return tuple(found)
