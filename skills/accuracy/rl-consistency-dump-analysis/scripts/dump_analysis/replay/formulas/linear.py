"""y = x W^T + b: x [T, K], weight [N, K], bias [N]; the head of the vocabulary is one, too.

A ``handed_bias`` is one that the module returns beside its output, for its caller to add. Bound: `bounds.sum_of_products`, and one
roundoff for a bias that is added in float32. Sources of the variants: mean local errors and counts on torch 2.13, vLLM 0.32 and SGLang
0.5 on CPU and Megatron-Core 0.16, each of which one variant explains to the last element.
"""

from collections.abc import Callable, Sequence

from dump_analysis.floats import Array
from dump_analysis.replay.emulate import Emulated
from dump_analysis.replay.formulas.kinds import Formula, Given, Variant, always
from dump_analysis.replay.formulas.linear_casts import CASTS, QUANTISED
from dump_analysis.replay.formulas.products import Ending, compared_with, run_with


def _plain(sums: Sequence[Emulated], _bias: Array | float, given: Given) -> Emulated:
    return sums[0].to_format(given.dtype)


def _bias_in_acc(sums: Sequence[Emulated], bias: Array | float, given: Given) -> Emulated:
    return sums[0].plus(bias).roundoffs(1).to_format(given.dtype)


def _rounded_each(sums: Sequence[Emulated], bias: Array | float, given: Given) -> Emulated:
    """Every part, every sum of parts and the sum with a bias are rounded."""
    first, *rest = (part.to_format(given.dtype) for part in sums)
    for part in rest:
        first = first.plus(part).to_format(given.dtype)
    return first.plus(bias).to_format(given.dtype) if _has_bias(given) else first


def _has_bias(given: Given) -> bool:
    return "bias" in given.weights


def _nominal(given: Given) -> tuple[Array, ...]:
    return (_without_bias(given)[0] + (given.weights["bias"] if _has_bias(given) else 0.0),)


def _without_bias(given: Given) -> tuple[Array, ...]:
    return (given.inputs[0] @ given.weights["weight"].T,)


def _variant(name: str, source: str, ending: Ending, applies: Callable[[Given], bool] = always, parts: int = 1) -> Variant:
    return Variant(name, source, run_with(ending, parts), applies, compared=compared_with(ending, parts))


def _partials(count: int) -> Variant:
    source = "Megatron-Core 0.16 row-parallel linears: ranks' sums are rounded, then added"

    def applies(given: Given) -> bool:
        return given.inputs[0].shape[1] % count == 0 and given.inputs[0].shape[1] >= 2 * count

    return _variant(f"partials_{count}_rounded", source, _rounded_each, applies, count)


_MISSING = _variant("bias_missing", "a loader or a module that drops the bias", _plain, _has_bias)
FORMULA = Formula(
    "linear",
    (
        _variant("plain", "torch 2.13 CPU linears without bias", _plain, lambda given: not _has_bias(given)),
        _variant("bias_in_acc", "torch 2.13, vLLM 0.32 and SGLang 0.5 CPU linears with bias", _bias_in_acc, _has_bias),
        _variant("bias_after_cast", "Megatron-Core 0.16 linears with bias", _rounded_each, _has_bias),
        *(_partials(count) for count in (2, 4, 8)),
        *CASTS,
    ),
    _nominal,
    parameters=frozenset({"weight", "bias", "handed_bias"}),
    faults=(_MISSING._replace(function="without bias", nominal=_without_bias), QUANTISED),
    by_weight_rows=True,
)
