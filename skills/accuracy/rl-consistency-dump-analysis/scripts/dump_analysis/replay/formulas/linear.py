"""y = x W^T + b: x [T, K], weight [N, K], bias [N]; the head of the vocabulary is one, too.

A ``handed_bias`` is one that the module returns beside its output, for its caller to add. Bound: `bounds.sum_of_products`, and one
roundoff for a bias that is added in float32. Sources of the variants: mean local errors and counts on torch 2.13, vLLM 0.32 and SGLang
0.5 on CPU and Megatron-Core 0.16, each of which one variant explains to the last element.
"""

import numpy as np

from dump_analysis.floats import Array
from dump_analysis.replay.bounds import sum_of_products
from dump_analysis.replay.emulate import Emulated
from dump_analysis.replay.formulas.kinds import Formula, Given, Variant
from dump_analysis.replay.formulas.linear_casts import CASTS, QUANTISED


def _accumulated(x: Array, weight: Array) -> Emulated:
    sums = x @ weight.T
    reach = sum_of_products(x, weight, sums)
    return Emulated(sums, sums - reach, sums + reach)


def _plain(given: Given) -> tuple[Emulated, ...]:
    return (_accumulated(given.inputs[0], given.weights["weight"]).to_format(given.dtype),)


def _bias_in_acc(given: Given) -> tuple[Emulated, ...]:
    total = _accumulated(given.inputs[0], given.weights["weight"]).plus(given.weights["bias"])
    return (total.roundoffs(1).to_format(given.dtype),)


def _bias_after_cast(given: Given) -> tuple[Emulated, ...]:
    return (_plain(given)[0].plus(given.weights["bias"]).to_format(given.dtype),)


def _partials(count: int) -> Variant:
    def run(given: Given) -> tuple[Emulated, ...]:
        parts = np.array_split(given.inputs[0], count, axis=1), np.array_split(given.weights["weight"], count, axis=1)
        first, *rest = (_accumulated(x, weight).to_format(given.dtype) for x, weight in zip(*parts, strict=True))
        for part in rest:
            first = first.plus(part).to_format(given.dtype)
        return (first.plus(given.weights["bias"]).to_format(given.dtype) if _has_bias(given) else first,)

    def applies(given: Given) -> bool:
        return given.inputs[0].shape[1] % count == 0 and given.inputs[0].shape[1] >= 2 * count

    return Variant(
        f"partials_{count}_rounded", "Megatron-Core 0.16 row-parallel linears: ranks' sums are rounded, then added", run, applies
    )


def _has_bias(given: Given) -> bool:
    return "bias" in given.weights


def _nominal(given: Given) -> tuple[Array, ...]:
    return (_without_bias(given)[0] + (given.weights["bias"] if _has_bias(given) else 0.0),)


def _without_bias(given: Given) -> tuple[Array, ...]:
    return (given.inputs[0] @ given.weights["weight"].T,)


FORMULA = Formula(
    "linear",
    (
        Variant("plain", "torch 2.13 CPU linears without bias", _plain, lambda given: not _has_bias(given)),
        Variant("bias_in_acc", "torch 2.13, vLLM 0.32 and SGLang 0.5 CPU linears with bias", _bias_in_acc, _has_bias),
        Variant("bias_after_cast", "Megatron-Core 0.16 linears with bias", _bias_after_cast, _has_bias),
        *(_partials(count) for count in (2, 4, 8)),
        *CASTS,
    ),
    _nominal,
    parameters=frozenset({"weight", "bias", "handed_bias"}),
    faults=(
        Variant("bias_missing", "a loader or a module that drops the bias", _plain, _has_bias, "without bias", _without_bias),
        QUANTISED,
    ),
    by_weight_rows=True,
)
