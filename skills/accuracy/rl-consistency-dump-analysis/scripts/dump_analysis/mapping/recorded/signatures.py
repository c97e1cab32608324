"""Activations compared without their columns: X·Xᵀ over the tokens is the same however the columns are permuted."""

import numpy as np

from dump_analysis.floats import Array
from dump_analysis.mapping.recorded.nodes import Node

FLOOR = 1e-4  # distances below it count alike: equal within one rounding of bfloat16
CLOSE = 0.05  # a pair joined by its signature alone is at least this close in one layer; right ones reach 0.035
_TINY = 1e-30


def gram(node: Node, rows: slice) -> Array:
    """X·Xᵀ of the sampled tokens: float32 [tokens, tokens]."""
    sample = node.sample[rows]
    product: Array = sample @ sample.T
    return product


def distance(left: Array, right: Array) -> float:
    """2 · ‖G − H‖ / (‖G‖ + ‖H‖) after both are scaled by the mean of their diagonals, so that no token outweighs others."""
    scale = 1 / np.sqrt((np.diag(left) + np.diag(right)) / 2 + _TINY)
    left, right = (matrix * scale[:, None] * scale for matrix in (left, right))
    return float(2 * np.linalg.norm(left - right) / (np.linalg.norm(left) + np.linalg.norm(right) + _TINY))


def decades(measured: float) -> float:
    """−log₁₀ of a distance: 4 equal within one rounding, 1 a tenth apart, below 0 unrelated."""
    return float(-np.log10(max(measured, FLOOR)))
