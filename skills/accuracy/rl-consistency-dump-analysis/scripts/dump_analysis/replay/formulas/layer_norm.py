"""(x - mean(x)) / sqrt(variance(x) + eps) * weight + bias over the width of the weight: x [T, H].

Bound: `bounds.NORM_ROUNDOFFS` of the normalised value, and as many of (|x| + |mean|) / deviation for the difference of the two; four
for the product and the sum. Source of the first variant: torch 2.13 F.layer_norm, which rounds once; the second: classes that return to
the stored format before the gain.
"""

import numpy as np

from dump_analysis.floats import Array
from dump_analysis.replay.bounds import FLOAT32_ROUNDOFF, NORM_ROUNDOFFS
from dump_analysis.replay.emulate import Emulated, exactly
from dump_analysis.replay.formulas.kinds import Formula, Given, Variant


def _normed(given: Given) -> Emulated:
    x, mean, inverse = _parts(given)
    reach = NORM_ROUNDOFFS * FLOAT32_ROUNDOFF * (np.abs(x) + np.abs(mean)) * inverse
    return exactly((x - mean) * inverse).roundoffs(NORM_ROUNDOFFS).widened(reach)


def _parts(given: Given) -> tuple[Array, Array, Array]:
    x = given.inputs[0]
    mean = x.mean(axis=1, keepdims=True)
    variance = ((x - mean) ** 2).mean(axis=1, keepdims=True)
    return x, mean, 1.0 / np.sqrt(variance + given.config["eps"])


def _gain(given: Given) -> Array:
    return given.weights.get("weight", np.ones(given.inputs[0].shape[1]))


def _bias(given: Given) -> Array:
    return given.weights.get("bias", np.zeros(given.inputs[0].shape[1]))


def _float32_inside(given: Given) -> tuple[Emulated, ...]:
    product = _normed(given).times(_gain(given))
    reach = 4 * FLOAT32_ROUNDOFF * np.abs(product.value)
    return (product.widened(reach).plus(_bias(given)).roundoffs(1).to_format(given.dtype),)


def _cast_before_weight(given: Given) -> tuple[Emulated, ...]:
    product = _normed(given).to_format(given.dtype).times(_gain(given)).to_format(given.dtype)
    return (product.plus(_bias(given)).to_format(given.dtype) if "bias" in given.weights else product,)


def _nominal(given: Given) -> tuple[Array, ...]:
    x, mean, inverse = _parts(given)
    return ((x - mean) * inverse * _gain(given) + _bias(given),)


FORMULA = Formula(
    "layer_norm",
    (
        Variant("float32_inside", "torch 2.13 F.layer_norm on CPU", _float32_inside),
        Variant("cast_before_weight", "classes that cast the normalised value back before the gain", _cast_before_weight),
    ),
    _nominal,
    config=("eps",),
    parameters=frozenset({"weight", "bias"}),
)
