"""Which earlier tensors of one side add up to a residual sum: two, two of which one is multiplied, or three."""

import math
from collections.abc import Sequence
from itertools import combinations

import numpy as np

from dump_analysis.floats import Array
from dump_analysis.mapping.recorded.nodes import Node

_ERROR = 2.0**-7  # of the largest of the parts and the sum, for each addition; bfloat16 rounds by 2⁻⁹
_AMONG_THREE = 16  # the latest nodes, of which three may add up
_SMALLEST_FACTOR = 1e-3

Addends = tuple[Node, ...]


def of_two(node: Node, near: Sequence[Node], probes: Array, wanted: Array) -> Addends | None:
    """x + y. ``probes``: [near, elements], some elements of each near node; ``wanted``: the same elements of the sum."""
    if len(near) < 2:
        return None
    first, second = np.triu_indices(len(near), 1)
    return _closest(node, near, np.stack([first, second], 1), np.stack([probes[first], probes[second]]), wanted)


def of_two_scaled(node: Node, near: Sequence[Node], probes: Array, wanted: Array) -> Addends | None:
    """x + c · y with one number c > 0, as models multiply their branches."""
    if len(near) < 2:
        return None
    first, second = np.nonzero(~np.eye(len(near), dtype=bool))
    x, y = probes[first], probes[second]
    factor = ((wanted - x) * y).sum(1, keepdims=True) / ((y * y).sum(1, keepdims=True) + 1e-30)
    usable = (factor[:, 0] > _SMALLEST_FACTOR) & np.isfinite(factor[:, 0])
    first, second, x, y = first[usable], second[usable], x[usable], (factor * y)[usable]
    return _closest(node, near, np.stack([first, second], 1), np.stack([x, y]), wanted)


def of_three(node: Node, near: Sequence[Node], probes: Array, wanted: Array) -> Addends | None:
    """x + y + z: the stream and both branches of a block that computes them side by side."""
    if len(near) < 3:
        return None
    start = max(0, len(near) - _AMONG_THREE)
    picked = np.array(list(combinations(range(start, len(near)), 3)))
    return _closest(node, near, picked, probes[picked.T], wanted)


def _closest(node: Node, near: Sequence[Node], picked: Array, parts: Array, wanted: Array) -> Addends | None:
    """The choice of near nodes whose sum comes closest, where every element is right within rounding.

    ``picked``: [choices, addends]; ``parts``: [addends, choices, elements].
    """
    fits = (np.abs(parts.sum(0) - wanted) <= _most(parts, wanted)).all(1)
    choices = [tuple(near[at] for at in row) for row in picked[fits].tolist()]
    errors = [_error(choice, node.sample) for choice in choices]
    best = int(np.argmin(errors)) if errors else 0
    return choices[best] if errors and errors[best] < math.inf else None


def _most(parts: Array, total: Array) -> Array:
    """How far rounding may take the sum of parts [addends, …] from its exact value."""
    most: Array = _ERROR * (len(parts) - 1) * np.maximum(np.abs(parts).max(0), np.abs(total))
    return most


def _error(parts: Addends, total: Array) -> float:
    """‖parts − total‖, infinite where an element is off by more than rounding or a part is lost in it."""
    samples = [part.sample for part in parts]
    if len(samples) == 2:
        samples[1] = samples[1] * _factor(samples[0], samples[1], total)
    error = np.abs(np.sum(samples, 0) - total)
    whole = float(np.linalg.norm(error))
    lost = 2 * whole >= min(float(np.linalg.norm(sample)) for sample in samples)
    return math.inf if lost or (error > _most(np.stack(samples), total)).any() else whole


def _factor(x: Array, y: Array, total: Array) -> float:
    """What y is multiplied by; one where that fits."""
    if (np.abs(x + y - total) <= _most(np.stack([x, y]), total)).all():
        return 1.0
    return float(((total - x) * y).sum(dtype=np.float64) / ((y * y).sum(dtype=np.float64) + 1e-30))
