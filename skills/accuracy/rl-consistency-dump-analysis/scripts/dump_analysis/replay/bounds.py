"""How far float32 arithmetic of an unknown order, library and processor may be from the truth.

A rigorous bound of a sum (its length times the roundoff times the sum of the absolute terms) is hundreds of times wider than any error
that occurs; so sums have a bound in probability, derived below, with a wide margin. Functions have the largest error that was seen.
"""

import numpy as np

from dump_analysis.floats import Array

FLOAT32_ROUNDOFF = 2.0**-24
# Largest relative errors seen in torch 2.13 and numpy 2: a norm's x / rms 3.4 roundoffs (64 to 8192 columns), exp 1, silu 2.9.
NORM_ROUNDOFFS = 16.0
ACTIVATION_ROUNDOFFS = 24.0
# gelu's error is bounded by |x|, not by its value, which nearly vanishes left of nought: 6 |x| (erf) and 1.8 |x| (tanh) roundoffs seen.
GELU_ROUNDOFFS = 8.0
_SUM_DEVIATIONS = 2.0


def sum_of_products(left: Array, right: Array, sums: Array) -> Array:
    """Bound of the float32 error of ``left`` [T, K] @ ``right`` [N, K] transposed, whose exact result is ``sums`` [T, N].

    The error of a sum added term by term is the sum of d_k S_k over its partial sums S_k, each d_k a rounding with standard deviation
    .42 roundoffs. Terms in no special order have partial sums with mean square y^2 / 3 + (sum of squared terms) / 6 (the slope and the
    Brownian bridge about it), so the deviation is at most .42 sqrt(K (y^2 / 3 + q / 6)) roundoffs. Here: 2 sqrt(K (y^2 + q)), eight
    deviations of a sum of one sign and eleven of one of mixed signs, for bridges vary. Sums in lanes or blocks err less.
    """
    return error_of_sums(left.shape[1], sums, _squares(left, right))


def rough_sum_of_products(left: Array, right: Array, sums: Array) -> Array:
    """The same or more: the sum of squared products is at most the product of the squared 4-norms of the rows (Cauchy and Schwarz)."""
    squares = [np.sqrt(np.einsum("ij,ij->i", part, part)) for part in (left * left, right * right)]
    return error_of_sums(left.shape[1], sums, squares[0][:, None] * squares[1])


def error_of_sums(count: int, sums: Array, squares: Array) -> Array:
    """The same bound of sums of ``count`` terms from the sums of their squares."""
    found: Array = _SUM_DEVIATIONS * FLOAT32_ROUNDOFF * np.sqrt(count * (sums * sums + squares))
    return found


def of_terms(bound: Array, count: int) -> Array:
    """From the bound of sums of ``count`` terms the root of y^2 + q, of which it is made."""
    found: Array = bound / (_SUM_DEVIATIONS * FLOAT32_ROUNDOFF * count**0.5)
    return found


def _squares(left: Array, right: Array) -> Array:
    """Sums over K of (left right)^2, in float32 for speed (no terms cancel); rows are scaled, so that squares stay in its range."""
    (one, one_scale), (two, two_scale) = _scaled(left), _scaled(right)
    found: Array = (one @ two.T).astype(np.float64) * (one_scale[:, None] * two_scale) ** 2
    return found


def _scaled(rows: Array) -> tuple[Array, Array]:
    scale = np.maximum(np.abs(rows).max(axis=1, initial=0.0), np.finfo(np.float64).tiny)
    return ((rows / scale[:, None]) ** 2).astype(np.float32), scale
