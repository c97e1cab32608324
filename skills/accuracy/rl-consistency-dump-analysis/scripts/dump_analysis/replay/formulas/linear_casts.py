"""Linears whose operands are first brought to another format: autocast, and FP8.

Autocast: a module of float32 parameters under torch.autocast multiplies x, weight and bias as they are in the 16-bit format of the output
(torch 2.13, autocast's op list for linear). FP8: activations by token and weights by row are divided by their greatest magnitude / 448 and
rounded to e4m3 (OCP 8-bit floating point; vLLM and SGLang with quantization "fp8" and dynamic activation scales). A weight is a constant of
the function: where the module holds it in a larger format, rounding it to FP8 is a mistake by name and no other place to round.
Bound: `carried`; an e4m3 number whose quotient lies within three roundoffs of a tie may be either neighbour.
"""

import numpy as np

from dump_analysis.floats import Array
from dump_analysis.replay.emulate import GRIDS, Emulated, exactly, on_grid, to_format
from dump_analysis.replay.formulas.carried import carried
from dump_analysis.replay.formulas.kinds import Given, Variant

_LARGEST, _DIGITS, _SMALLEST = 448.0, 3, -6  # e4m3: its largest number, digits behind the point, smallest exponent


def _is_cast(given: Given) -> bool:
    operands = (*given.inputs, *given.weights.values())
    return given.dtype in GRIDS and not all(on_grid(made, given.dtype) for made in operands)


def _is_cast_with_bias(given: Given) -> bool:
    return _is_cast(given) and "bias" in given.weights


def _is_cast_without(given: Given) -> bool:
    return _is_cast(given) and "bias" not in given.weights


def _cast_product(given: Given) -> Emulated:
    return carried(exactly(to_format(given.inputs[0], given.dtype)), to_format(given.weights["weight"], given.dtype))


def _cast_plain(given: Given) -> tuple[Emulated, ...]:
    return (_cast_product(given).to_format(given.dtype),)


def _cast_bias_in_acc(given: Given) -> tuple[Emulated, ...]:
    return (_cast_product(given).plus(to_format(given.weights["bias"], given.dtype)).roundoffs(1).to_format(given.dtype),)


def _e4m3(rows: Array) -> Emulated:
    """Rows over their greatest magnitude / 448, rounded to e4m3, in their own scale again."""
    scale = np.maximum(np.abs(rows).max(axis=1, keepdims=True), np.finfo(np.float32).tiny) / _LARGEST
    quotient = exactly(rows / scale).roundoffs(3)
    return Emulated(*(_rounded(np.clip(part, -_LARGEST, _LARGEST)) * scale for part in quotient))


def _rounded(numbers: Array) -> Array:
    exponent = np.maximum(np.floor(np.log2(np.maximum(np.abs(numbers), 2.0**_SMALLEST))), _SMALLEST)
    step = 2.0 ** (exponent - _DIGITS)
    found: Array = np.rint(numbers / step) * step
    return found


def _fp8(given: Given) -> tuple[Emulated, ...]:
    product = carried(_e4m3(given.inputs[0]), _e4m3(given.weights["weight"])).roundoffs(2)
    return ((product.plus(given.weights["bias"]).roundoffs(1) if "bias" in given.weights else product).to_format(given.dtype),)


def _fp8_nominal(given: Given) -> tuple[Array, ...]:
    return (_e4m3(given.inputs[0]).value @ _e4m3(given.weights["weight"]).value.T + given.weights.get("bias", np.zeros(1)),)


CASTS = (
    Variant("cast_first+plain", "torch 2.13 autocast of float32 parameters", _cast_plain, _is_cast_without),
    Variant("cast_first+bias_in_acc", "torch 2.13 autocast of float32 parameters", _cast_bias_in_acc, _is_cast_with_bias),
)
QUANTISED = Variant(
    "fp8_by_token_and_row", "vLLM and SGLang with quantization fp8 on weights of 16 bits", _fp8, function="fp8 by token and by weight row",
    nominal=_fp8_nominal,
)  # fmt: skip
