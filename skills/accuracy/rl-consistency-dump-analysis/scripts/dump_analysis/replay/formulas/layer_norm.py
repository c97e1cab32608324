"""(x - mean(x)) / sqrt(variance(x) + eps) * weight + bias over the width D of the weight: x [T, H], weight and bias [D] or [H / D, D].

Function "1+w": weights are stored less one (Megatron's layernorm_zero_centered_gamma).

Bound: `bounds.NORM_ROUNDOFFS` of the normalised value, and as many of (|x| + |mean|) / deviation for the difference of the two; four
for the product and the sum. Source of the first variant: torch 2.13 F.layer_norm, which rounds once; the second: classes that return to
the stored format before the gain.
"""

from collections.abc import Callable

import numpy as np

from dump_analysis.floats import Array
from dump_analysis.replay.bounds import FLOAT32_ROUNDOFF, NORM_ROUNDOFFS
from dump_analysis.replay.emulate import Emulated, exactly
from dump_analysis.replay.formulas.kinds import Formula, Given, Variant


def _prepared(given: Given, offset: float) -> tuple[Array, Array]:
    """x by norms [T, norms, D], and the gain [D] or [norms, D]."""
    x = given.inputs[0]
    gain = given.weights["weight"] + offset if "weight" in given.weights else np.ones(x.shape[1])
    return x.reshape(len(x), -1, gain.shape[-1]), gain


def _parts(rows: Array, eps: float) -> tuple[Array, Array]:
    """The rows less their mean, and the inverse of their deviation."""
    centred = rows - rows.mean(axis=-1, keepdims=True)
    return centred, 1.0 / np.sqrt((centred**2).mean(axis=-1, keepdims=True) + eps)


def _normed(rows: Array, eps: float) -> Emulated:
    centred, inverse = _parts(rows, eps)
    reach = NORM_ROUNDOFFS * FLOAT32_ROUNDOFF * (np.abs(rows) + np.abs(rows - centred)) * inverse
    return exactly(centred * inverse).roundoffs(NORM_ROUNDOFFS).widened(reach)


def _bias(given: Given, gain: Array) -> Array:
    return given.weights.get("bias", np.zeros(gain.shape))


def _float32_inside(given: Given, offset: float) -> Emulated:
    rows, gain = _prepared(given, offset)
    product = _normed(rows, given.config["eps"]).times(gain)
    reach = 4 * FLOAT32_ROUNDOFF * np.abs(product.value)
    return product.widened(reach).plus(_bias(given, gain)).roundoffs(1).to_format(given.dtype)


def _cast_before_weight(given: Given, offset: float) -> Emulated:
    rows, gain = _prepared(given, offset)
    product = _normed(rows, given.config["eps"]).to_format(given.dtype).times(gain).to_format(given.dtype)
    return product.plus(_bias(given, gain)).to_format(given.dtype) if "bias" in given.weights else product


def _nominal(given: Given, offset: float) -> tuple[Array, ...]:
    rows, gain = _prepared(given, offset)
    centred, inverse = _parts(rows, given.config["eps"])
    return ((centred * inverse * gain + _bias(given, gain)).reshape(given.inputs[0].shape),)


def _variant(name: str, source: str, rounding: Callable[[Given, float], Emulated], offset: float) -> Variant:
    def run(given: Given) -> tuple[Emulated, ...]:
        return (rounding(given, offset).turned_to(*given.inputs[0].shape),)

    def nominal(given: Given) -> tuple[Array, ...]:
        return _nominal(given, offset)

    return Variant(f"1+w+{name}" if offset else name, source, run, function="1+w" if offset else "", nominal=nominal)


FORMULA = Formula(
    "layer_norm",
    tuple(
        variant
        for offset in (0.0, 1.0)
        for variant in (
            _variant("float32_inside", "torch 2.13 F.layer_norm on CPU", _float32_inside, offset),
            _variant("cast_before_weight", "classes that cast the normalised value back before the gain", _cast_before_weight, offset),
        )
    ),
    lambda given: _nominal(given, 0.0),
    config=("eps",),
    parameters=frozenset({"weight", "bias"}),
)
