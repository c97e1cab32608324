"""x / sqrt(mean(x^2) + eps) * weight over the width of the weight; with a second input of the sum of both, which is output too.

inputs: (x,) or (x, residual), [T, H], H a multiple of the weight's width D: a norm per head is H / D norms a token, each with the same
gain [D] or its own of [H / D, D]. Outputs: the norm, and the rounded sum where there are two inputs. Function "1+w": weights are stored
less one (Gemma, Megatron's zero-centred gain).
Bound: `bounds.NORM_ROUNDOFFS`, and two for the product with the weight. Sources: counts on the packages that each variant names.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from dump_analysis.floats import Array
from dump_analysis.replay.bounds import NORM_ROUNDOFFS
from dump_analysis.replay.emulate import GRIDS, Emulated, exactly, grid_of, on_grid, to_format
from dump_analysis.replay.formulas.kinds import Formula, Given, Variant, always

_Applies = Callable[[Given], bool]
_Sum = Callable[[Given], Array]
_Rounding = Callable[[Array, float, Array, str], Emulated]  # of rows [T, norms, D], eps, the gain and the format of the output


# --- what is normalised ---
def _input(given: Given) -> Array:
    return given.inputs[0]


def _sum(given: Given) -> Array:
    return given.inputs[0] + given.inputs[1] if len(given.inputs) == 2 else given.inputs[0]


def _rounded_sum(given: Given) -> Array:
    return to_format(_sum(given), given.dtype)


def _float32_sum(given: Given) -> Array:
    return to_format(_sum(given), "float32")


# --- where it is rounded ---
def _cast_before_weight(rows: Array, eps: float, gain: Array, dtype: str) -> Emulated:
    return _weighed(exactly(rows * _inverse(rows, eps)).roundoffs(NORM_ROUNDOFFS).to_format(dtype), gain, dtype)


def _cast_after_weight(rows: Array, eps: float, gain: Array, dtype: str) -> Emulated:
    return exactly(rows * _inverse(rows, eps) * gain).roundoffs(NORM_ROUNDOFFS + 2).to_format(dtype)


def _rstd_rounded(rows: Array, eps: float, gain: Array, dtype: str) -> Emulated:
    inverse = exactly(_inverse(rows, eps)).roundoffs(NORM_ROUNDOFFS).to_format(dtype)
    return _weighed(inverse.times(rows).to_format(dtype), gain, dtype)


def _all_rounded(rows: Array, eps: float, gain: Array, dtype: str) -> Emulated:
    squares = to_format(rows * rows, dtype)
    mean = exactly(squares.mean(axis=-1, keepdims=True)).roundoffs(NORM_ROUNDOFFS).to_format(dtype)
    inverse = mean.plus(eps).roundoffs(1).to_format(dtype).mapped(lambda value: 1.0 / np.sqrt(value)).roundoffs(NORM_ROUNDOFFS)
    return _weighed(inverse.to_format(dtype).times(rows).to_format(dtype), gain, dtype)


def _root_rounded(rows: Array, eps: float, gain: Array, dtype: str) -> Emulated:
    """As all_rounded, the root too: torch 2.13's rsqrt of 16-bit tensors on CPU rounds the root, then its reciprocal."""
    squares = to_format(rows * rows, dtype)
    mean = exactly(squares.mean(axis=-1, keepdims=True)).roundoffs(NORM_ROUNDOFFS).to_format(dtype)
    root = mean.plus(eps).roundoffs(1).to_format(dtype).mapped(np.sqrt).roundoffs(1).to_format(dtype)
    inverse = root.mapped(lambda value: 1.0 / value).roundoffs(1).to_format(dtype)
    return _weighed(inverse.times(rows).to_format(dtype), gain, dtype)


def _stored_in(grid: str) -> _Rounding:
    def rounding(rows: Array, eps: float, gain: Array, dtype: str) -> Emulated:
        return _weighed(exactly(rows * _inverse(rows, eps)).roundoffs(NORM_ROUNDOFFS).to_format(grid), gain, dtype)

    return rounding


def _inverse(rows: Array, eps: float) -> Array:
    found: Array = 1.0 / np.sqrt((rows * rows).mean(axis=-1, keepdims=True) + eps)
    return found


def _weighed(normed: Emulated, gain: Array, dtype: str) -> Emulated:
    """Times the gain, which float32 holds exactly where both are of 16 bits."""
    product = normed.times(gain)
    return (product if on_grid(gain, "bfloat16") or on_grid(gain, "float16") else product.roundoffs(1)).to_format(dtype)


def _wider_than(grid: str) -> _Applies:
    """Whether inputs of a 16-bit format became a float32 output."""
    return lambda given: given.dtype == "float32" and grid_of(given.inputs[0]) == grid


class _Point(NamedTuple):
    """Where a norm is rounded, and what rounds it there."""

    name: str
    run: _Rounding
    source: str
    applies: _Applies = always


_POINTS = (
    _Point("cast_before_weight", _cast_before_weight, "transformers' RMSNorm classes; vLLM 0.32 CPU"),
    _Point("cast_after_weight", _cast_after_weight, "torch F.rms_norm, Megatron-Core 0.16, SGLang 0.5 CPU, transformers' Gemma"),
    _Point("rstd_rounded", _rstd_rounded, "classes that compute the inverse root in the stored format"),
    _Point("all_rounded", _all_rounded, "classes that never leave the stored format: x * rsqrt(x.pow(2).mean(-1) + eps)"),
    _Point("all_rounded_and_root", _root_rounded, "the same on torch 2.13 CPU, whose rsqrt of 16-bit tensors rounds twice"),
)
# transformers' classes multiply what they cast back by a gain that stayed in float32: the output is float32, too.
_WIDENED = tuple(
    _Point(f"cast_to_{grid}_before_weight", _stored_in(grid), "transformers' RMSNorm with float32 gains", _wider_than(grid))
    for grid in GRIDS
)


# --- putting them together ---
def _prepared(given: Given, x: Array, offset: float) -> tuple[Array, Array]:
    """x by norms [T, norms, D], and the gain [D] or [norms, D]."""
    gain = given.weights["weight"] + offset if "weight" in given.weights else np.ones(x.shape[1])
    return x.reshape(len(x), -1, gain.shape[-1]), gain


def _runner(summed: _Sum, rounding: _Rounding, offset: float) -> Callable[[Given], tuple[Emulated, ...]]:
    def run(given: Given) -> tuple[Emulated, ...]:
        x = summed(given)
        rows, gain = _prepared(given, x, offset)
        normed = rounding(rows, given.config["eps"], gain, given.dtype).turned_to(*x.shape)
        return (normed, exactly(_rounded_sum(given))) if len(given.inputs) == 2 else (normed,)

    return run


def _nominal_with(offset: float, summed: _Sum) -> Callable[[Given], tuple[Array, ...]]:
    def nominal(given: Given) -> tuple[Array, ...]:
        x = summed(given)
        rows, gain = _prepared(given, x, offset)
        normed = (rows * _inverse(rows, given.config["eps"]) * gain).reshape(x.shape)
        return (normed, _sum(given)) if len(given.inputs) == 2 else (normed,)

    return nominal


def _one_input(given: Given) -> bool:
    return len(given.inputs) == 1


def _two_inputs(given: Given) -> bool:
    return len(given.inputs) == 2


def _both(one: _Applies, two: _Applies) -> _Applies:
    return lambda given: one(given) and two(given)


def _variants() -> tuple[Variant, ...]:
    """Every rounding of one input, of a rounded and of an unrounded sum; then the same with one added to the weight."""
    found = []
    sums = (("", _input, _one_input), ("add_rounded+", _rounded_sum, _two_inputs), ("add_unrounded+", _float32_sum, _two_inputs))
    for offset, function in ((0.0, ""), (1.0, "1+w")):
        for prefix, summed, applies in sums:
            for point in (*_POINTS, *_WIDENED):
                run, nominal = _runner(summed, point.run, offset), _nominal_with(offset, _sum)
                name = f"{prefix}{point.name}" if not function else f"{function}+{prefix}{point.name}"
                found.append(Variant(name, point.source, run, _both(applies, point.applies), function, nominal))
    return tuple(found)


def _lost(name: str, summed: _Sum) -> tuple[Variant, ...]:
    return tuple(
        Variant(f"{name}+{point.name}", "a module that loses one of its two addends", _losing(summed, point.run), _two_inputs, name,
                _losing_nominal(summed))
        for point in _POINTS
    )  # fmt: skip


def _losing(summed: _Sum, rounding: _Rounding) -> Callable[[Given], tuple[Emulated, ...]]:
    def run(given: Given) -> tuple[Emulated, ...]:
        x = summed(given)
        rows, gain = _prepared(given, x, 0.0)
        return rounding(rows, given.config["eps"], gain, given.dtype).turned_to(*x.shape), exactly(x)

    return run


def _losing_nominal(summed: _Sum) -> Callable[[Given], tuple[Array, ...]]:
    def nominal(given: Given) -> tuple[Array, ...]:
        x = summed(given)
        rows, gain = _prepared(given, x, 0.0)
        return (rows * _inverse(rows, given.config["eps"]) * gain).reshape(x.shape), x

    return nominal


FORMULA = Formula(
    "rms_norm",
    _variants(),
    _nominal_with(0.0, _sum),
    config=("eps",),
    parameters=frozenset({"weight"}),
    faults=(*_lost("second_input_lost", _input), *_lost("first_input_lost", lambda given: given.inputs[1])),
)
