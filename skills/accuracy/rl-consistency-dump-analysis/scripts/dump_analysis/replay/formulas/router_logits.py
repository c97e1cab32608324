"""The logits of a router as what follows from them is given them: recorded [T, E], or x [T, H] and the router's ``weight`` [E, H].

Where they were not recorded they are float32 sums, or rounded to the format of x. Bound: `bounds.sum_of_products`. Sources: Megatron-Core
0.16 `TopKRouter`, which records no logits, with moe_router_dtype fp32 and without.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from dump_analysis.floats import Array
from dump_analysis.replay.bounds import sum_of_products
from dump_analysis.replay.emulate import Emulated, exactly, grid_of
from dump_analysis.replay.formulas.kinds import Given
from dump_analysis.replay.formulas.routing import TIE


class Logits(NamedTuple):
    """One way in which they come to be."""

    name: str
    source: str
    made: Callable[[Given], Emulated]
    applies: Callable[[Given], bool]


def _recorded(given: Given) -> Emulated:
    return exactly(given.inputs[0])


def _product(given: Given) -> Emulated:
    x, weight = given.inputs[0], given.weights["weight"]
    sums = x @ weight.T
    reach = sum_of_products(x, weight, sums)
    return Emulated(sums, sums - reach, sums + reach)


def _rounded_product(given: Given) -> Emulated:
    return _product(given).to_format(grid_of(given.inputs[0]))


WAYS = (
    Logits("", "transformers 5.19 and SGLang 0.5, which record logits", _recorded, lambda given: not given.weights),
    Logits("logits_float32", "Megatron-Core 0.16 with moe_router_dtype fp32", _product, lambda given: bool(given.weights)),
    Logits(
        "logits_rounded", "Megatron-Core 0.16 whose router works in the model's format", _rounded_product, lambda given: bool(given.weights)
    ),
)


def greatest(logits: Emulated, experts: Array) -> Array:
    """For which tokens [T] these experts [T, k] have the k greatest logits as far as errors and `TIE` tell."""
    inside = np.zeros(logits.value.shape, bool)
    np.put_along_axis(inside, experts, True, axis=1)
    least = np.where(inside, logits.high, np.inf).min(axis=1)
    most = np.where(inside, -np.inf, logits.low).max(axis=1)
    found: Array = (least >= most - TIE) & (inside.sum(axis=1) == experts.shape[1])
    return found
