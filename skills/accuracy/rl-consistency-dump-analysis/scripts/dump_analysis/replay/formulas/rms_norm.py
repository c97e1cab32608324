"""x / sqrt(mean(x^2) + eps) * weight over the width of the weight; with a second input of the sum of both, which is output too.

inputs: (x,) or (x, residual), [T, H], H a multiple of the weight's width D: a norm per head is H / D norms a token. Outputs: the norm,
and the rounded sum where there are two inputs. Function "1+w": weights are stored less one (Gemma, Megatron's zero-centred gain).
Bound: `bounds.NORM_ROUNDOFFS`, and two for the product with the weight. Sources: counts on the packages that each variant names.
"""

from collections.abc import Callable

import numpy as np

from dump_analysis.floats import Array
from dump_analysis.replay.bounds import NORM_ROUNDOFFS
from dump_analysis.replay.emulate import Emulated, exactly, to_format
from dump_analysis.replay.formulas.kinds import Formula, Given, Variant

_Sum = Callable[[Given], Array]
_Rounding = Callable[[Array, Array, Array, str], Emulated]


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
def _cast_before_weight(x: Array, inverse: Array, gain: Array, dtype: str) -> Emulated:
    return exactly(x * inverse).roundoffs(NORM_ROUNDOFFS).to_format(dtype).times(gain).to_format(dtype)


def _cast_after_weight(x: Array, inverse: Array, gain: Array, dtype: str) -> Emulated:
    return exactly(x * inverse * gain).roundoffs(NORM_ROUNDOFFS + 2).to_format(dtype)


def _rstd_rounded(x: Array, inverse: Array, gain: Array, dtype: str) -> Emulated:
    return exactly(inverse).roundoffs(NORM_ROUNDOFFS).to_format(dtype).times(x).to_format(dtype).times(gain).to_format(dtype)


_ROUNDINGS: tuple[tuple[str, _Rounding, str], ...] = (
    ("cast_before_weight", _cast_before_weight, "transformers' RMSNorm classes; vLLM 0.32 CPU"),
    ("cast_after_weight", _cast_after_weight, "torch F.rms_norm, Megatron-Core 0.16, SGLang 0.5 CPU, transformers' Gemma"),
    ("rstd_rounded", _rstd_rounded, "classes that compute the inverse root in the stored format"),
)


# --- putting them together ---
def _prepared(given: Given, x: Array, offset: float) -> tuple[Array, Array, Array]:
    """x by heads [T * heads, D], the inverse root of each, the gain [D]."""
    gain = given.weights["weight"] + offset if "weight" in given.weights else np.ones(x.shape[1])
    rows = x.reshape(-1, len(gain))
    mean = (rows * rows).mean(axis=1, keepdims=True)
    return rows, 1.0 / np.sqrt(mean + given.config["eps"]), gain


def _runner(summed: _Sum, rounding: _Rounding, offset: float) -> Callable[[Given], tuple[Emulated, ...]]:
    def run(given: Given) -> tuple[Emulated, ...]:
        x = summed(given)
        normed = rounding(*_prepared(given, x, offset), given.dtype).turned_to(*x.shape)
        return (normed, exactly(_rounded_sum(given))) if len(given.inputs) == 2 else (normed,)

    return run


def _nominal_with(offset: float, summed: _Sum) -> Callable[[Given], tuple[Array, ...]]:
    def nominal(given: Given) -> tuple[Array, ...]:
        x = summed(given)
        rows, inverse, gain = _prepared(given, x, offset)
        normed = (rows * inverse * gain).reshape(x.shape)
        return (normed, _sum(given)) if len(given.inputs) == 2 else (normed,)

    return nominal


def _one_input(given: Given) -> bool:
    return len(given.inputs) == 1


def _two_inputs(given: Given) -> bool:
    return len(given.inputs) == 2


def _variants() -> tuple[Variant, ...]:
    """Every rounding of one input, of a rounded and of an unrounded sum; then the same with one added to the weight."""
    found = []
    sums = (("", _input, _one_input), ("add_rounded+", _rounded_sum, _two_inputs), ("add_unrounded+", _float32_sum, _two_inputs))
    for offset, function in ((0.0, ""), (1.0, "1+w")):
        for prefix, summed, applies in sums:
            for name, rounding, source in _ROUNDINGS:
                run, nominal = _runner(summed, rounding, offset), _nominal_with(offset, _sum)
                name = f"{prefix}{name}" if not function else f"{function}+{prefix}{name}"
                found.append(Variant(name, source, run, applies, function, nominal))
    return tuple(found)


def _lost(name: str, summed: _Sum) -> tuple[Variant, ...]:
    return tuple(
        Variant(f"{name}+{ending}", "a module that loses one of its two addends", _losing(summed, rounding), _two_inputs, name,
                _losing_nominal(summed))
        for ending, rounding, _ in _ROUNDINGS
    )  # fmt: skip


def _losing(summed: _Sum, rounding: _Rounding) -> Callable[[Given], tuple[Emulated, ...]]:
    def run(given: Given) -> tuple[Emulated, ...]:
        x = summed(given)
        return rounding(*_prepared(given, x, 0.0), given.dtype).turned_to(*x.shape), exactly(x)

    return run


def _losing_nominal(summed: _Sum) -> Callable[[Given], tuple[Array, ...]]:
    def nominal(given: Given) -> tuple[Array, ...]:
        x = summed(given)
        rows, inverse, gain = _prepared(given, x, 0.0)
        return (rows * inverse * gain).reshape(x.shape), x

    return nominal


FORMULA = Formula(
    "rms_norm",
    _variants(),
    _nominal_with(0.0, _sum),
    config=("eps",),
    parameters=frozenset({"weight"}),
    faults=(*_lost("second_input_lost", _input), *_lost("first_input_lost", lambda given: given.inputs[1])),
)
