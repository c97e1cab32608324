"""norm(x) W^T + b, the norm and the product being one module: x [T, K] or (x, residual), weight [N, K], bias [N], norm_weight [K],
norm_bias [K].

The norm is any variant of `rms_norm` or `layer_norm`; its interval goes through the product (`carried`). Few elements of the norm are
open (a rounding that float32's error can turn), but each opens every product of its row a little.
Source: Transformer Engine's LayerNormLinear, which Megatron-Core 0.16 uses as TELayerNormColumnParallelLinear; a norm and a linear that
are modules of their own, taken together.
"""

from collections.abc import Callable

from dump_analysis.floats import Array
from dump_analysis.replay.emulate import Emulated
from dump_analysis.replay.formulas import layer_norm, rms_norm
from dump_analysis.replay.formulas.carried import carried
from dump_analysis.replay.formulas.kinds import Formula, Given, Variant

_WHOLE = {"norm_weight": "weight", "norm_bias": "bias"}


def _for_norm(given: Given) -> Given:
    return given._replace(weights={name: given.weights[own] for own, name in _WHOLE.items() if own in given.weights})


def _has_bias(given: Given) -> bool:
    return "bias" in given.weights


def _plain(given: Given, x: Emulated) -> Emulated:
    return carried(x, given.weights["weight"]).to_format(given.dtype)


def _bias_in_acc(given: Given, x: Emulated) -> Emulated:
    return carried(x, given.weights["weight"]).plus(given.weights["bias"]).roundoffs(1).to_format(given.dtype)


def _bias_after_cast(given: Given, x: Emulated) -> Emulated:
    return _plain(given, x).plus(given.weights["bias"]).to_format(given.dtype)


_Ending = tuple[str, Callable[[Given, Emulated], Emulated], Callable[[Given], bool]]
_ENDINGS: tuple[_Ending, ...] = (
    ("plain", _plain, lambda given: not _has_bias(given)),
    ("bias_in_acc", _bias_in_acc, _has_bias),
    ("bias_after_cast", _bias_after_cast, _has_bias),
)


def _variant(norm: Variant, of: Formula, ending: _Ending, *, bias: bool = True) -> Variant:
    """A norm and what follows it. ``bias``: whether the truth adds one that there is."""
    name, multiplied, applies = ending

    def run(given: Given) -> tuple[Emulated, ...]:
        return (multiplied(given, norm.run(_for_norm(given))[0]),)

    def fits(given: Given) -> bool:
        inner = _for_norm(given)
        return applies(given) and of.consumes(inner.weights) and norm.applies(inner)

    def nominal(given: Given) -> tuple[Array, ...]:
        product = of.truth(_for_norm(given), norm)[0] @ given.weights["weight"].T
        return (product + given.weights["bias"] if bias and _has_bias(given) else product,)

    stem, function = (norm.name, norm.function) if of is rms_norm.FORMULA else _of_layers(norm)
    return Variant(f"{stem}+{name}", norm.source, run, fits, function, nominal)


def _of_layers(norm: Variant) -> tuple[str, str]:
    return f"{layer_norm.FORMULA.operator}+{norm.name}", f"{layer_norm.FORMULA.operator} {norm.function}".strip()


def _named(function: str, variants: list[Variant]) -> tuple[Variant, ...]:
    return tuple(one._replace(name=f"bias_missing+{one.name}", function=f"{one.function} {function}".strip()) for one in variants)


_NORMS = [(norm, of) for of in (rms_norm.FORMULA, layer_norm.FORMULA) for norm in of.variants]
_WITHOUT = ("plain", _plain, _has_bias)
_VARIANTS = tuple(_variant(norm, of, ending) for norm, of in _NORMS for ending in _ENDINGS)
FORMULA = Formula(
    "norm_linear",
    _VARIANTS,
    lambda given: _VARIANTS[0].nominal(given) if _VARIANTS[0].nominal else (),
    config=("eps",),
    parameters=frozenset({"weight", "bias", *_WHOLE}),
    faults=_named("without bias", [_variant(norm, of, _WITHOUT, bias=False) for norm, of in _NORMS]),
    by_weight_rows=True,
    whole=frozenset(_WHOLE),
)
