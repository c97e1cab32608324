"""The sum of two or more inputs of one shape [T, H]; of two, the second may be multiplied first (1: it is not).

Two addends: exact in float64, one rounding; the product is rounded before it is added, or kept in float32. More: each sum is rounded, in
one order or another, or all are added in float32 and rounded once; the interval is then the hull of all orders, for a bound would open
at every tie, and sums of few 16-bit numbers are often ties. Sources: torch 2.13 adds two tensors so; fused kernels add in float32;
transformers' Granite multiplies each branch by its residual_multiplier.
"""

from collections.abc import Callable
from itertools import permutations

import numpy as np

from dump_analysis.floats import Array
from dump_analysis.replay.emulate import Emulated, exactly, to_format
from dump_analysis.replay.formulas.kinds import Formula, Given, Variant


def _stepwise(order: tuple[int, ...]) -> Callable[[Given], tuple[Emulated, ...]]:
    def run(given: Given) -> tuple[Emulated, ...]:
        first, *rest = (given.inputs[at] for at in (order or range(len(given.inputs))))
        total = exactly(first)
        for addend in rest:
            total = total.plus(addend).to_format(given.dtype)
        return (total,)

    return run


def _once(given: Given) -> tuple[Emulated, ...]:
    sums = [_float32_sum(order) for order in permutations(given.inputs)]
    return (Emulated(sums[0], np.minimum.reduce(sums), np.maximum.reduce(sums)).to_format(given.dtype),)


def _float32_sum(addends: tuple[Array, ...]) -> Array:
    total = addends[0]
    for addend in addends[1:]:
        total = to_format(total + addend, "float32")
    return total


def _product(given: Given) -> Emulated:
    return exactly(given.inputs[1] * to_format(np.array(given.config["multiplier"]), "float32")).roundoffs(1)


def _product_rounded(given: Given) -> tuple[Emulated, ...]:
    return (_product(given).to_format(given.dtype).plus(given.inputs[0]).to_format(given.dtype),)


def _product_float32(given: Given) -> tuple[Emulated, ...]:
    return (_product(given).plus(given.inputs[0]).roundoffs(1).to_format(given.dtype),)


def _nominal(given: Given) -> tuple[Array, ...]:
    total = given.inputs[0]
    for addend in given.inputs[1:]:
        total = total + (addend * given.config["multiplier"] if len(given.inputs) == 2 else addend)
    return (total,)


def _is_multiplied(given: Given) -> bool:
    return given.config["multiplier"] != 1.0 and len(given.inputs) == 2


def _adds(*counts: int) -> Callable[[Given], bool]:
    return lambda given: not _is_multiplied(given) and len(given.inputs) in counts


FORMULA = Formula(
    "residual_add",
    (
        Variant("stepwise", "torch 2.13 adds two tensors and rounds", _stepwise(()), lambda given: not _is_multiplied(given)),
        Variant("stepwise_ends_first", "a block that adds the stream to its last branch first", _stepwise((0, 2, 1)), _adds(3)),
        Variant("stepwise_branches_first", "transformers' GPT-NeoX and Falcon: mlp + attention + residual", _stepwise((1, 2, 0)), _adds(3)),
        Variant("rounded_once", "kernels that add three or four in float32", _once, _adds(3, 4)),
        Variant("product_rounded", "transformers' Granite: residual + branch * residual_multiplier", _product_rounded, _is_multiplied),
        Variant("product_float32", "kernels that multiply and add in float32", _product_float32, _is_multiplied),
    ),
    _nominal,
    config=("multiplier",),
)
