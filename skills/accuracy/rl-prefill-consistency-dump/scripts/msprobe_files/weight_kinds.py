"""What kind of difference two weights have, decided from their numbers, block by block, whatever the size.

Kinds, in the order in which they are looked for:

``different``     some elements are no finite numbers, or one side holds nothing but zeros
``one_added``     a vector of gains w on one side and 1 + w on the other: the same to modules that add the one or do not
``rounded``       one side is the other, rounded to a coarser format
``swapped``       the same rows (or columns) stand in another order
``one_ulp``       what differs is no further apart than one spacing of the coarser format
``scaled``        one factor over all, or one a row or column, explains every element
``quantised``     one side lies on few levels times a scale a block, near the other
``partial``       some rows alone differ; ``within`` says how: small_update or different
``small_update``  the weight moved a little wherever a step of that size can move it, as an optimizer's step moves it
``different``     none of these

A kind says how two weights differ, never which side is right. Thresholds follow from formats and from the chance of an accident.
"""

import math
from typing import Any, Dict, NamedTuple, Optional, Tuple

from .weight_grids import Grid, on_grid, quantised
from .weight_order import order_of, permutation, runs_of
from .weight_walk import BAND, Walked, Weight, as_rows, bands, usual_share, walk

_CONFIRMED = 20  # elements that a factor must explain beyond the first of its row: each confirms it with a chance of a half at most
_MOVED = 0.25  # of what a step could move: of a normal distribution 0.32 lie beyond one deviation
_NEAR = 0.5  # relative distance: nearer to the other weight than half way to zero; unrelated weights are 1.4 apart
_FEW = 8  # elements that say nothing of a share
_MOSTLY = 0.9

_Found = Optional[Tuple[str, Dict[str, Any]]]


class Difference(NamedTuple):
    """How two weights differ: ``unequal`` of ``of`` elements, in stretches of ``rows`` (of a vector, elements).

    ``facts``: what the kind's function below says; ``within``: of a part, the kind inside it.  ``keys``: of the rows of each side,
    uint64 [2, rows].
    """

    kind: str
    unequal: int
    of: int
    rows: Tuple[Tuple[int, int], ...]
    facts: Dict[str, Any]
    within: str
    keys: Any


def difference(train: Weight, infer: Weight) -> Optional[Difference]:
    """The kind of difference of two weights of one shape; None where they are equal."""
    train, infer = as_rows(train), as_rows(infer)
    seen = walk(train, infer)
    unequal = int(seen.unequal.sum())
    if not unequal:
        return None
    kind, facts, within = _kind(train, infer, seen)
    touched = runs_of(seen.unequal.nonzero()[0].tolist())
    return Difference(kind, unequal, train.rows * train.columns, touched, facts, within, seen.row_keys)


def _kind(train: Weight, infer: Weight, seen: Walked) -> Tuple[str, Dict[str, Any], str]:
    found = (
        _nonfinite(seen)
        or _zeros(seen)
        or _one_added(seen)
        or _rounded(seen)
        or _swapped(seen)
        or _one_ulp(seen)
        or _scaled(seen)
        or _quantised(train, infer, seen)
    )
    if found is not None:
        return found[0], found[1], ""
    facts = _sizes(seen)
    small = "small_update" if facts["rel_l2"] <= _NEAR and _is_step(seen) else "different"
    if _is_partial(seen, small):
        return "partial", facts, small
    return small, facts, ""


def _nonfinite(seen: Walked) -> _Found:
    """``train``, ``infer``: how many elements are no finite numbers."""
    train, infer = (int(count) for count in seen.nonfinite)
    return ("different", {"train": train, "infer": infer}) if train or infer else None


def _zeros(seen: Walked) -> _Found:
    """``zeros``: the side that holds nothing but zeros, as a weight that was never loaded."""
    empty = [side for side, square in (("train", seen.sums[3]), ("infer", seen.sums[4])) if square == 0]
    return ("different", {"zeros": empty[0]}) if empty else None


def _one_added(seen: Walked) -> _Found:
    """``side``: the one that holds 1 + w."""
    kept = [side for side, holds in seen.added.items() if holds]
    return ("one_added", {"side": kept[0]}) if kept else None


def _rounded(seen: Walked) -> _Found:
    """``side``: the one that was rounded; ``format``; ``towards_zero``."""
    kept = [tried for tried, holds in seen.rounds.items() if holds]
    if not kept:
        return None
    side, name, cut = kept[0]  # the finest first, ties to even first
    return "rounded", {"side": side, "format": name, "towards_zero": cut}


def _swapped(seen: Walked) -> _Found:
    """``axis``: rows or columns; ``order``: of infer's in terms of train's; ``moved``: how many stand elsewhere."""
    for axis, keys in (("rows", seen.row_keys), ("columns", seen.column_keys)):
        places = permutation(keys[0], keys[1])
        moved = 0 if places is None else int((keys[0] != keys[1]).sum())
        if moved > 1:
            return "swapped", {"axis": axis, "order": order_of(places), "moved": moved}
    return None


def _one_ulp(seen: Walked) -> _Found:
    """``smaller``, ``larger``: how many of infer's magnitudes are so; ``format``: whose spacing it is.

    Not where one factor explains which elements moved and which did not.
    """
    total = int(seen.moved.sum())
    if not total or int(seen.sums[0]) != total:
        return None
    stayed = len(seen.moved) * len(seen.column_moved) - total
    if stayed >= _CONFIRMED and _by_one_factor(seen, 0) is not None:
        return None
    return "one_ulp", {"smaller": int(seen.sums[1]), "larger": int(seen.sums[2]), "format": seen.coarse}


def _scaled(seen: Walked) -> _Found:
    """``by``: whole, row or column; ``low``, ``high``: of one factor the interval that explains everything, of several the extremes."""
    for loose in (0, 2):
        whole = _by_one_factor(seen, loose)
        if whole is not None:
            return whole
        for by, factors, moved in (("row", seen.row_factors, seen.moved), ("column", seen.column_factors, seen.column_moved)):
            low, high = factors[loose], factors[loose + 1]
            if _holds(low, high, moved):
                middle = ((low + high) / 2)[moved > 0]
                return "scaled", {"by": by, "low": float(middle.min()), "high": float(middle.max())}
    return None


def _by_one_factor(seen: Walked, loose: int) -> _Found:
    low, high = seen.row_factors[loose].max(keepdims=True), seen.row_factors[loose + 1].min(keepdims=True)
    if not _holds(low, high, seen.moved.sum(keepdims=True)):
        return None
    return "scaled", {"by": "whole", "low": float(low[0]), "high": float(high[0])}


def _holds(low: Any, high: Any, moved: Any) -> bool:
    """Whether a factor other than 1 explains each group that moved, and enough elements say so."""
    touched = moved > 0
    apart = (low[touched] <= high[touched]) & ((low[touched] > 1) | (high[touched] < 1))
    return bool(apart.all()) and int((moved[touched] - 1).sum()) >= _CONFIRMED


def _quantised(train: Weight, infer: Weight, seen: Walked) -> _Found:
    """``side``: the one on levels; ``levels``: of which format; ``block``: rows and columns that share a scale (None: all of them)."""
    if train.columns < 2 or seen.sums[5] > _NEAR**2 * max(seen.sums[3], seen.sums[4]):
        return None
    first = next(bands(min(train.rows, 2 * BAND), train.columns))
    for side, one, other, own in (("infer", infer, train, 1), ("train", train, infer, 0)):
        ends = float(seen.largest[own]), float(seen.largest[1 - own])
        grid = quantised(one.read(*first), other.read(*first), seen.coarse, ends)
        if grid is not None and all(_stays(one, other, grid, seen.coarse, ends, part) for part in bands(train.rows, train.columns)):
            return "quantised", {"side": side, "levels": grid.levels, "block": grid.block, "scale": grid.scale}
    return None


def _stays(one: Weight, other: Weight, grid: Grid, dtype: str, largest: Tuple[float, float], part: Tuple[int, int]) -> bool:
    values = one.read(*part)
    return not values.any() or on_grid(values, other.read(*part), grid, dtype, largest)


def _sizes(seen: Walked) -> Dict[str, Any]:
    """``rel_l2``: of infer against train; ``cosine``."""
    left, right, apart = (float(one) for one in seen.sums[3:6])
    cosine = (left + right - apart) / 2 / math.sqrt(left * right) if left and right else 0.0
    return {"rel_l2": math.sqrt(apart / left) if left else math.inf, "cosine": cosine}


def _is_step(seen: Walked) -> bool:
    """Whether most elements moved that a step of this size moves; where there are too few, whether most moved by one spacing."""
    could, did = usual_share(seen)
    if could < _FEW:
        return bool(seen.sums[0] >= _MOSTLY * seen.moved.sum())
    return did >= _MOVED * could


def _is_partial(seen: Walked, kind: str) -> bool:
    """Whether rows are untouched that chance would have touched, if it touches each element of the others alike (Poisson).

    What is no step and touches no more than half of the rows is a part in any case.
    """
    touched = seen.moved > 0
    count, left = int(touched.sum()), int((~touched & (seen.row_keys[0] != 0)).sum())  # rows of zeros, as of padding, say nothing
    if kind == "different" and 2 * count <= len(touched):
        return True
    if len(seen.column_moved) == 1 or not count:  # of a vector each element is a row
        return False
    mean = float(seen.moved[touched].mean())
    rate = mean
    for _ in range(50):  # the mean of those that are touched is rate / (1 - exp(-rate))
        rate = mean * -math.expm1(-rate)
    return (count + left) * math.exp(-rate) < 0.05 * left
