"""Sums of products as a matrix product makes them, and what is done to them after: emulated whole, or held against a record at less cost.

Held against a record, sums are computed in float32. Their error has the bound that `bounds` gives for any order of summation, so that
an element which is one number of the format wherever the exact sum may lie is what float64 would give. Float64 is left for the few
others, and for the interval of those that the record does not reproduce. Endings must be monotone in each sum.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from dump_analysis.floats import Array
from dump_analysis.replay.bounds import FLOAT32_ROUNDOFF, error_of_sums, sum_of_products
from dump_analysis.replay.emulate import PRECISION, Emulated, bit_equal, exactly, explained
from dump_analysis.replay.formulas.kinds import Given

# Element by element: the sums of the parts of a product, the biases that belong to them (0.0: none), and what else is given.
Ending = Callable[[Sequence[Emulated], Array | float, Given], Emulated]
_CHUNK = 1 << 16  # elements that stay in a processor's cache
_LARGEST, _SMALLEST = 1e18, 1e-10  # their squares and fourth powers are still in float32's range
# Length of sums, times 4 to the bits of the format: beyond, a tenth is open after float32, and float64 for all costs less.
_FINEST = 2.0**34


def run_with(ending: Ending, parts: int = 1) -> Callable[[Given], tuple[Emulated, ...]]:
    """The emulation of a product in so many parts of its inner axis."""

    def run(given: Given) -> tuple[Emulated, ...]:
        sums = [_accumulated(x, weight) for x, weight in _parts(given, parts)]
        return (ending(sums, given.weights.get("bias", 0.0), given),)

    return run


def _accumulated(x: Array, weight: Array) -> Emulated:
    sums = x @ weight.T
    reach = sum_of_products(x, weight, sums)
    return Emulated(sums, sums - reach, sums + reach)


def _parts(given: Given, count: int) -> list[tuple[Array, Array]]:
    x, weight = given.inputs[0], given.weights["weight"]
    return list(zip(np.array_split(x, count, axis=1), np.array_split(weight, count, axis=1), strict=True))


# --- held against a record ---


class _Part(NamedTuple):
    """A part of the product: its factors, in float64 where rows are compared, their product in float32, and the 4-norm of each row."""

    x: Array
    weight: Array
    sums: Array
    of_x: Array
    of_weight: Array


def compared_with(ending: Ending, parts: int = 1) -> Callable[[Given, Array], tuple[Array, Array]]:
    """What `bit_equal` and not `explained` say of a record [T, N] and the emulation that `run_with` makes; numbers may be float32."""

    def compared(given: Given, record: Array) -> tuple[Array, Array]:
        made = _single(given, parts)
        if made is None:
            emulated = run_with(ending, parts)(_widened(given))[0]
            return bit_equal(record, emulated), ~explained(record, emulated)
        equal, outside = np.empty(record.shape, bool), np.zeros(record.shape, bool)
        step = max(1, _CHUNK // max(record.shape[1], 1))
        for start in range(0, len(record), step):
            at = slice(start, start + step)
            rows = [part._replace(x=part.x[at].astype(np.float64), sums=part.sums[at], of_x=part.of_x[at]) for part in made]
            _compare(rows, ending, given, record[at], equal[at], outside[at])
        return equal, outside

    return compared


def _widened(given: Given) -> Given:
    weights = {name: made.astype(np.float64) for name, made in given.weights.items()}
    return given._replace(inputs=tuple(made.astype(np.float64) for made in given.inputs), weights=weights)


def _single(given: Given, count: int) -> list[_Part] | None:
    """The parts in float32; None where too much would be left to float64, or where numbers are beyond float32."""
    x, weight = given.inputs[0], given.weights["weight"]
    if x.dtype != np.float32 or weight.dtype != np.float32 or x.shape[1] * 4 ** PRECISION[given.dtype] > _FINEST:
        return None
    found = []
    for left, right in _parts(given, count):
        of_x, of_weight = _norms(left), _norms(right)
        if not float(of_x.max(initial=0.0)) * float(of_weight.max(initial=0.0)) * left.shape[1] < _LARGEST:
            return None  # NaN and infinities end here, too
        found.append(_Part(left, right.astype(np.float64), left @ right.T, of_x, of_weight))
    return found


def _norms(rows: Array) -> Array:
    """The 4-norm of each row, or a little more: powers of what is small vanish in float32."""
    with np.errstate(over="ignore", invalid="ignore"):
        squares = np.square(rows)
        found: Array = np.sqrt(np.sqrt(np.einsum("ij,ij->i", squares, squares))) + np.float32(_SMALLEST)
    return found


def _compare(parts: Sequence[_Part], ending: Ending, given: Given, record: Array, equal: Array, outside: Array) -> None:
    """Fill in ``equal`` and ``outside`` of some rows."""
    bias: Array | float = given.weights["bias"].astype(np.float64) if "bias" in given.weights else 0.0
    reaches = [_reach(part) for part in parts]
    # This float32 product is one sum in blocks and lanes: half the bound is four deviations of one that is added term by term. Where it
    # erred by more, an element would be counted as bit equal that is not, and would still be one that the interval explains.
    made = ending([_between(part.sums, reach / 2) for part, reach in zip(parts, reaches, strict=True)], bias, given)
    value = made.low
    rows, columns = _where(value != made.high)
    if len(rows):
        exact = [exactly(_products(part.x, part.weight, rows, columns)) for part in parts]
        value[rows, columns] = ending(exact, _picked(bias, columns), given).value
    equal[...] = bit_equal(record, exactly(value))
    rows, columns = _where(~equal)
    # The interval about a sum in float64 lies within twice the reach of that in float32.
    wide = [_between(part.sums[rows, columns], 2 * reach[rows, columns]) for part, reach in zip(parts, reaches, strict=True)]
    near = explained(record[rows, columns], ending(wide, _picked(bias, columns), given))
    outside[rows, columns] = True
    rows, columns = rows[near], columns[near]
    if len(rows):
        whole = ending([_interval(part, rows, columns) for part in parts], _picked(bias, columns), given)
        outside[rows, columns] = ~explained(record[rows, columns], whole)


def _where(mask: Array) -> tuple[Array, Array]:
    """Rows and columns of what is true: `numpy.nonzero` at a third of its price."""
    rows, columns = np.divmod(np.flatnonzero(mask), mask.shape[1])
    return rows, columns


def _picked(bias: Array | float, columns: Array) -> Array | float:
    return bias[columns] if isinstance(bias, np.ndarray) else bias


def _reach(part: _Part) -> Array:
    """At least the bound of the error of every sum, in float32: the sum of squared terms is at most the product of the squared 4-norms
    (Cauchy and Schwarz); four roundoffs more for what is added to it and taken from it here.
    """
    found = np.square(part.sums)
    found += np.square(part.of_x[:, None] * part.of_weight)
    np.sqrt(found, out=found)
    found *= np.float32(float(error_of_sums(part.x.shape[1], np.ones(()), np.zeros(()))) * (1 + 2.0**-10) + 4 * FLOAT32_ROUNDOFF)
    return found


def _between(sums: Array, reach: Array) -> Emulated:
    low = sums - reach
    return Emulated(low, low, sums + reach)


def _interval(part: _Part, rows: Array, columns: Array) -> Emulated:
    """Some sums in float64 as `run_with` has them."""
    sums = _products(part.x, part.weight, rows, columns)
    reach = error_of_sums(part.x.shape[1], sums, _products(part.x, part.weight, rows, columns, power=2))
    return Emulated(sums, sums - reach, sums + reach)


def _products(x: Array, weight: Array, rows: Array, columns: Array, power: int = 1) -> Array:
    """Some elements of x @ weight transposed, sorted by rows; ``power``: of every factor."""
    found = np.empty(len(rows))
    starts = np.flatnonzero(np.diff(rows, prepend=-1))
    for start, stop in zip(starts, [*starts[1:], len(rows)], strict=True):
        left, right = x[rows[start]], weight[columns[start:stop]]
        found[start:stop] = right @ left if power == 1 else right**power @ left**power
    return found
