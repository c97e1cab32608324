"""The routed sum of a mixture of experts: sum over a token's experts e of share_e * down_e(act(gate_e x) * up_e x), [T, H].

`routed_experts`: inputs (x [T, H], router logits [T, E]), the choice made of the logits. Two more are for what not every sum has: the
output of a shared expert [T, H] that is added ([T, 0]: none), and the chosen experts [T, k] where equal logits leave them open.
`weighted_experts`: inputs (x, shares of all
experts [T, E], nought for those that are not chosen), as they were recorded. The experts' matrices come from `Given.experts`.
Bounds: `bounds.sum_of_products`, `ACTIVATION_ROUNDOFFS`, `routing.SHARE_ROUNDOFFS`, and k roundoffs of the sum of the absolute terms for
the float32 sum over k experts, in any order. Sources, measured on CPU: transformers 5.19 and SGLang 0.5 round every step of an expert, sum
in float32 and round once; vLLM 0.32's fused kernel keeps gate, up and activation in float32, rounds their product and the shares, leaves
the experts' outputs unrounded; Megatron-Core 0.16 multiplies the share in before the second matrix and adds in the format of the output.
"""

from collections.abc import Callable, Sequence
from itertools import product
from typing import NamedTuple

import numpy as np

from dump_analysis.floats import Array
from dump_analysis.replay.bounds import FLOAT32_ROUNDOFF
from dump_analysis.replay.emulate import Emulated, exactly
from dump_analysis.replay.formulas.carried import carried
from dump_analysis.replay.formulas.functions import ACTIVATIONS, Activation
from dump_analysis.replay.formulas.kinds import Formula, Given, Variant
from dump_analysis.replay.formulas.routing import ROUTED_SCALE, ROUTERS, TOP_K, Choice, Router, choice, choice_of_all, shares_of

_FEW = 16  # tokens
_SHARED, _TAKEN = 2, 3  # which input is a shared expert's output, and which says what experts were chosen
BOUND_SCALE = "bound_scale"  # in the constants of a trial: how many times the bound of sums is allowed inside experts
ROUTED, WEIGHTED = "routed_experts", "weighted_experts"
_Chosen = Callable[[Given], Choice]


class Ending(NamedTuple):
    """What is done to the sum: a shared expert's output is added to it, after it was rounded, or not at all."""

    name: str
    source: str
    rounds: bool = True


ENDINGS = (
    Ending("shared_added", "transformers 5.19 DeepSeek-V2, whose block adds it"),
    Ending("shared_added_once", "fused kernels that add it before they round", rounds=False),
)


class Rounding(NamedTuple):
    """Where a program rounds. ``inner``: gate, up and activation; ``inside``: the share is multiplied in before the second matrix;
    ``output``: each expert's; ``shares``; ``products``: of share and output; ``stepwise``: each sum of two experts, by number."""

    name: str
    source: str
    inner: bool = True
    inside: bool = False
    output: bool = False
    shares: bool = False
    products: bool = False
    stepwise: bool = False


ROUNDINGS = (
    Rounding("experts_rounded+summed_once", "transformers 5.19 grouped experts, SGLang 0.5 CPU", output=True),
    Rounding("experts_float32+shares_rounded+summed_once", "vLLM 0.32 CPU fused experts", inner=False, shares=True),
    Rounding("experts_rounded+shares_rounded+summed_once", "transformers 5.19 experts of 16-bit shares", output=True, shares=True),
    Rounding("experts_rounded+shares_rounded+products_rounded+summed_once", "transformers 5.19 Qwen3-MoE, whose shares are of 16 bits",
             output=True, shares=True, products=True),
    Rounding("products_rounded+summed_once", "vLLM 0.32 and SGLang 0.5 Triton fused_moe with moe_sum", products=True),
    Rounding("experts_rounded+products_rounded+summed_once", "programs that multiply in 16 bits", output=True, products=True),
    Rounding("experts_rounded+products_rounded+summed_stepwise", "transformers' loop over experts",
             output=True, products=True, stepwise=True),
    Rounding("weighted_inside+summed_stepwise", "Megatron-Core 0.16 local experts", inside=True, output=True, stepwise=True),
    Rounding("weighted_inside+summed_once", "Megatron-Core with a fused unpermutation", inside=True, output=True),
    Rounding("experts_float32+summed_once", "fused kernels that round once", inner=False),
    Rounding("output_float32+summed_once", "fused kernels of two products"),
)  # fmt: skip


# --- one expert ---


def _activated(gate: Emulated, activation: Activation) -> Emulated:
    """Over an interval an activation may turn round: by no more than the interval's width."""
    made, width = activation.emulated(gate.value), gate.high - gate.low
    if not width.any():
        return made
    reach = (made.high - made.low) / 2 + width
    ends = activation.run(gate.low), activation.run(gate.high)
    return Emulated(made.value, np.minimum(*ends) - reach, np.maximum(*ends) + reach)


def _one(given: Given, token: Array, share: Emulated, matrices: tuple[Array, Array], activation: Activation, way: Rounding) -> Emulated:
    """The output of an expert for some tokens, not rounded; ``share`` [t, 1] is multiplied in where that is done inside."""
    (first, last), dtype, wider = matrices, given.dtype, given.config.get(BOUND_SCALE, 1.0)
    made = carried(exactly(given.inputs[0][token]), first, rough=wider)
    made = made.to_format(dtype) if way.inner else made
    gate, up = (Emulated(*parts) for parts in zip(*(np.split(part, 2, axis=1) for part in made), strict=True))
    active = _activated(gate, activation)
    inner = active.to_format(dtype).times(up) if way.inner else active.times(up).roundoffs(1)
    inner = inner.to_format(dtype)
    if way.inside:
        inner = inner.times(share).roundoffs(1).to_format(dtype)
    return carried(inner, last, rough=wider)


def _outputs(given: Given, chosen: Choice, activation: Activation, way: Rounding) -> Emulated:
    """The outputs of every token's experts [T, k, H], those that an equal way of running them has made on this part before again."""
    assert given.experts is not None
    x, (count, most) = given.inputs[0], chosen.experts.shape
    made = Emulated(*(np.zeros((count, most, x.shape[1])) for _ in range(3)))
    for expert in np.unique(chosen.experts):
        token, nth = np.nonzero(chosen.experts == expert)
        share = Emulated(*(part[token, nth][:, None] for part in chosen.shares))
        wider = given.config.get(BOUND_SCALE, 1.0)
        key = (int(expert), activation.name, way.inner, way.inside and share.value.tobytes(), token.tobytes(), wider)
        if key not in given.experts.made:
            given.experts.made[key] = _one(given, token, share, given.experts.matrices(int(expert)), activation, way)
        for whole, part in zip(made, given.experts.made[key], strict=True):
            whole[token, nth] = part
    return made.to_format(given.dtype) if way.output else made


# --- the sum ---


def _summed(given: Given, chosen: Choice, activation: Activation, way: Rounding, ending: Ending | None) -> Emulated:
    total = _routed(given, chosen, activation, way)
    if ending is None:
        return total.to_format(given.dtype)
    total = total.to_format(given.dtype) if ending.rounds else total
    return total.plus(given.inputs[_SHARED]).roundoffs(1).to_format(given.dtype)


def _routed(given: Given, chosen: Choice, activation: Activation, way: Rounding) -> Emulated:
    """The routed sum before it is rounded for the last time."""
    outputs = _outputs(given, chosen, activation, way)
    terms = outputs
    if not way.inside:
        shares = chosen.shares.to_format(given.dtype) if way.shares else chosen.shares
        terms = outputs.times(Emulated(*(part[:, :, None] for part in shares))).roundoffs(1)
        terms = terms.to_format(given.dtype) if way.products else terms
    if not way.stepwise:
        reach = terms.value.shape[1] * FLOAT32_ROUNDOFF * np.abs(terms.value).sum(axis=1)
        return Emulated(*(part.sum(axis=1) for part in terms)).widened(reach)
    first, *rest = (Emulated(*(part[:, nth] for part in terms)) for nth in range(terms.value.shape[1]))
    for term in rest:
        first = first.plus(term).to_format(given.dtype)
    return first


def _has_shared(given: Given) -> bool:
    return len(given.inputs) > _SHARED and given.inputs[_SHARED].shape[1] > 0


def _has_none(given: Given) -> bool:
    return not _has_shared(given)


def _scaled(chosen: Choice, given: Given) -> Choice:
    scale = given.config.get(ROUTED_SCALE, 1.0)
    return chosen if scale == 1.0 else chosen._replace(shares=chosen.shares.times(scale).roundoffs(1))


def _by(router: Router) -> _Chosen:
    def chosen(given: Given) -> Choice:
        logits, count = given.inputs[1], int(given.config[TOP_K])
        taken = given.inputs[_TAKEN].astype(np.int64) if len(given.inputs) > _TAKEN else None
        if taken is None or taken.shape[1] != count:
            return choice(router, logits, count)
        return Choice(taken, shares_of(router, logits, taken))

    return chosen


def _as_recorded(given: Given) -> Choice:
    return choice_of_all(given.inputs[1])


def _truth(given: Given, chosen: Choice, activation: Activation) -> Array:
    found = given.inputs[_SHARED].copy() if _has_shared(given) else np.zeros_like(given.inputs[0])
    for expert in np.unique(chosen.experts):
        token, nth = np.nonzero(chosen.experts == expert)
        found[token] += chosen.shares.value[token, nth][:, None] * _true_output(given, int(expert), token, activation)
    return found


def _true_output(given: Given, expert: int, token: Array, activation: Activation) -> Array:
    """The output of an expert for some tokens in float64. Of few tokens all are run at once, for other choices ask for the others."""
    assert given.experts is not None
    x = given.inputs[0]
    whole = len(x) <= _FEW
    key = ("truth", activation.name, expert, b"" if whole else token.tobytes())
    if key not in given.experts.made:
        first, last = given.experts.matrices(expert)
        gate, up = np.split((x if whole else x[token]) @ first.T, 2, axis=1)
        given.experts.made[key] = exactly((activation.run(gate) * up) @ last.T)
    made = given.experts.made[key].value
    found: Array = made[token] if whole else made
    return found


def _variant(label: str, chosen: _Chosen, activation: Activation, way: Rounding, ending: Ending | None) -> Variant:
    def run(given: Given) -> tuple[Emulated, ...]:
        return (_summed(given, _scaled(chosen(given), given), activation, way, ending),)

    def nominal(given: Given) -> tuple[Array, ...]:
        return (_truth(given, _scaled(chosen(given), given), activation),)

    name = "+".join(part for part in (label, activation.name, way.name, ending.name if ending is not None else "") if part)
    function = " ".join(part for part in (label, activation.name) if part)
    return Variant(name, way.source, run, _has_none if ending is None else _has_shared, function, nominal)


def _all(choices: Sequence[tuple[str, _Chosen]]) -> tuple[Variant, ...]:
    ways = product(choices, ACTIVATIONS, ROUNDINGS, (None, *ENDINGS))
    return tuple(_variant(label, chosen, *rest) for (label, chosen), *rest in ways)


def _nominal(given: Given) -> tuple[Array, ...]:
    return (_truth(given, _scaled(_by(ROUTERS[0])(given), given), ACTIVATIONS[0]),)


def _nominal_as_recorded(given: Given) -> tuple[Array, ...]:
    return (_truth(given, _scaled(_as_recorded(given), given), ACTIVATIONS[0]),)


FORMULA = Formula(ROUTED, _all([(router.name, _by(router)) for router in ROUTERS]), _nominal, config=(TOP_K, ROUTED_SCALE))
AS_RECORDED = Formula(WEIGHTED, _all([("", _as_recorded)]), _nominal_as_recorded, config=(ROUTED_SCALE,))
