"""How small a fault may be and still be found: modules of 190 tokens and 896 columns, computed in float32 in a fixed order.

A fault is put into what the formula is given, so that the record is that of another weight, input or constant. It is found where no right
variant explains the record: more elements are outside than a fault-free module may leave by chance.
"""

import math
from collections.abc import Callable
from functools import cache, partial

import numpy as np
import pytest
import torch
from dump_analysis.replay.emulate import explained, to_format, ulp
from dump_analysis.replay.formulas import FORMULAS, Given
from faults import few_weights, lost_bias, one_channel, one_input, one_row, one_token, one_weight, stale_row, with_weight
from programs import DTYPES, FUNCTIONS, Recorded, log_probs, recorded, values
from toys import arithmetic

TOKENS, HIDDEN, OUTPUTS = 190, 896, 896
HALF = ["bfloat16", "float16"]
SEEDS = range(3)
FORMATS = pytest.mark.parametrize("dtype", HALF)
SEEDED = pytest.mark.parametrize("seed", SEEDS)
ROUNDOFF = 2.0**-24
RIGHT = ("", "silu")  # the functions that the modules compute
Change = Callable[[np.random.Generator, Given], Given]


def left(operator: str, made: Recorded) -> int:
    """Elements that the best of the right variants leaves."""
    formula = FORMULAS[operator]
    found = [
        ~explained(made.outputs[0], variant.run(made.given)[0]) for variant in formula.fitting(made.given) if variant.function in RIGHT
    ]
    return min(int(outside.sum()) for outside in found)


def chance(made: Recorded) -> float:
    """Elements that may be outside by chance."""
    return 1 + 2e-6 * made.outputs[0].size


def is_found(operator: str, made: Recorded) -> bool:
    return left(operator, made) > chance(made)


# --- modules ---


@cache
def product(dtype: str, seed: int, outliers: bool) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """x, weight and the product before it is rounded; outliers: three channels of 300 times the others, a first token of 50 times."""
    x, weight = values(seed, TOKENS, HIDDEN, dtype="float32"), values(seed + 1, OUTPUTS, HIDDEN, dtype=dtype, scale=HIDDEN**-0.5)
    if outliers:
        x[:, [5, 300, 800]] *= 300.0
        x[0] *= 50.0
    x = x.to(DTYPES[dtype])
    return x, weight, arithmetic.product(x, weight)


def linear(dtype: str, seed: int, *, outliers: bool = False, gain: float = 1.0) -> Recorded:
    """``gain``: what the product is multiplied by before it is rounded."""
    x, weight, made = product(dtype, seed, outliers)
    return recorded((x,), {"weight": weight}, ((made.double() * gain).to(x.dtype),))


@cache
def rms_norm(dtype: str, seed: int, scale: float, eps: float) -> Recorded:
    to, x, weight = (
        DTYPES[dtype],
        values(seed, TOKENS, HIDDEN, dtype=dtype, scale=scale),
        values(seed + 1, HIDDEN, dtype=dtype, mean=1.0, scale=0.1),
    )
    made = (arithmetic.normalised(x.float(), eps).to(to).float() * weight.float()).to(to)
    return recorded((x,), {"weight": weight}, (made,), eps=1e-6)


@cache
def embedding(dtype: str, seed: int, scale: float) -> Recorded:
    table, ids = values(seed, 64, HIDDEN, dtype=dtype), torch.arange(TOKENS) * 7 % 64
    made = (table[ids].float() * torch.tensor(scale)).to(DTYPES[dtype])
    return recorded((ids[:, None],), {"weight": table}, (made,), scale=scale)


@cache
def residual_add(dtype: str, seed: int) -> Recorded:
    stream, branch = (values(seed + at, TOKENS, HIDDEN, dtype=dtype) for at in (0, 1))
    return recorded((stream, branch), {}, ((stream.float() + branch.float()).to(stream.dtype),), multiplier=1.0)


@cache
def gated(dtype: str, seed: int) -> Recorded:
    gate, up = (values(seed + at, TOKENS, HIDDEN, dtype=dtype) for at in (0, 1))
    acted = FUNCTIONS["silu"](gate.float()).to(gate.dtype)
    return recorded((gate, up), {}, ((acted.float() * up.float()).to(gate.dtype),))


LINEAR: dict[str, Change] = {
    "one row x1.004": partial(one_row, factor=1.004),
    "one row x1.01": partial(one_row, factor=1.01),
    "2 % of a row 1 unit": stale_row,
    "one weight 1 unit": one_weight,
    "1e-5 of the weights 5 %": few_weights,
    "one channel x1.004": one_channel,
    "one token x1.004": one_token,
    "one input 1 unit": one_input,
    "bias lost": lost_bias,
}


@SEEDED
@FORMATS
@pytest.mark.parametrize("fault", LINEAR)
def test_a_linear_s_fault_is_found(dtype: str, fault: str, seed: int) -> None:
    """Would catch bounds that are wide enough to hide it."""
    made = linear(dtype, seed)
    assert is_found("linear", made._replace(given=LINEAR[fault](np.random.default_rng(seed), made.given))), fault


@SEEDED
@FORMATS
@pytest.mark.parametrize("outliers", [False, True])
def test_a_gain_before_the_rounding_is_found(dtype: str, outliers: bool, seed: int) -> None:
    """Would catch a bound of a hundredth of a unit: 1e-5 of the product turns a few hundred roundings of 170 thousand."""
    assert is_found("linear", linear(dtype, seed, outliers=outliers, gain=1 + 1e-5))


@SEEDED
@FORMATS
def test_fault_free_modules_are_explained(dtype: str, seed: int) -> None:
    """Would catch limits that are met by calling everything a fault."""
    rounded = linear(dtype, seed)
    cases = [
        ("linear", rounded), ("linear", linear(dtype, seed, outliers=True)), ("rms_norm", rms_norm(dtype, seed, 1.0, 1e-6)),
        ("embedding", embedding(dtype, seed, 1.0)), ("embedding", embedding(dtype, seed, math.sqrt(HIDDEN))),
        ("residual_add", residual_add(dtype, seed)), ("gated_activation", gated(dtype, seed)),
    ]  # fmt: skip
    assert [(operator, left(operator, made)) for operator, made in cases if left(operator, made)] == []


@SEEDED
@FORMATS
@pytest.mark.parametrize("fault", ["one row x1.004", "one token x1.004"])
def test_faults_beside_outliers_are_found(dtype: str, fault: str, seed: int) -> None:
    """Would catch a bound that a few large channels and a large token widen for everybody."""
    made = linear(dtype, seed, outliers=True)
    assert is_found("linear", made._replace(given=LINEAR[fault](np.random.default_rng(seed), made.given)))


@SEEDED
@FORMATS
def test_another_rounding_of_the_output_is_found(dtype: str, seed: int) -> None:
    """Would catch intervals of a whole unit: cut off in place of rounded, and by way of a format of other digits."""
    made = linear(dtype, seed)
    exact = made.given.inputs[0] @ made.given.weights["weight"].T
    cut = np.where(np.abs(made.outputs[0]) > np.abs(exact), made.outputs[0] - np.sign(exact) * ulp(made.outputs[0], dtype), made.outputs[0])
    assert left("linear", made._replace(outputs=(cut,))) > 0.3 * exact.size
    other = "float16" if dtype == "bfloat16" else "bfloat16"
    assert is_found("linear", made._replace(outputs=(to_format(to_format(exact, other), dtype),)))


# Activations of a deviation, and the eps that is found in place of 1e-6: at 1 its effect is 4.5e-6, at 10 it has none.
EPS = [(0.01, 2e-6), (0.01, 1e-5), (0.01, 1e-8), (0.1, 2e-6), (0.1, 1e-5), (0.1, 1e-8), (1.0, 1e-5)]


@SEEDED
@FORMATS
@pytest.mark.parametrize(("scale", "eps"), EPS)
def test_a_norm_s_eps_is_found(dtype: str, scale: float, eps: float, seed: int) -> None:
    """Would catch a bound of the norm that is as wide as what eps does; float16 cannot hold the smallest activations exactly."""
    assert is_found("rms_norm", rms_norm(dtype, seed, scale, eps))


@cache
def norm_linear(dtype: str, eps: float) -> Recorded:
    norm, (_, weight, _) = rms_norm(dtype, 3, 0.1, eps), product(dtype, 3, False)
    made = arithmetic.product(torch.from_numpy(norm.outputs[0]).to(weight.dtype), weight).to(weight.dtype)
    found = recorded((), {"weight": weight}, (made,), eps=1e-6)
    return found._replace(
        given=found.given._replace(inputs=norm.given.inputs, weights={**found.given.weights, "norm_weight": norm.given.weights["weight"]})
    )


@FORMATS
def test_faults_behind_a_norm_inside_a_linear_are_found(dtype: str) -> None:
    """Would catch an interval that grows so wide on its way through the product that eps or one gain are lost in it."""
    made = norm_linear(dtype, 1e-6)
    assert left("norm_linear", made) == 0
    assert is_found("norm_linear", norm_linear(dtype, 1e-5))
    gains = made.given.weights["norm_weight"].copy()
    gains[7] = to_format(gains[7] * 1.05, dtype)
    assert is_found("norm_linear", made._replace(given=made.given._replace(weights={**made.given.weights, "norm_weight": gains})))
    stale = one_row(np.random.default_rng(3), made.given, factor=1.01)
    assert is_found("norm_linear", made._replace(given=stale))


@SEEDED
@FORMATS
@pytest.mark.parametrize("fault", ["one gain 1 unit", "one token x1.004", "gain 1e-4 of the second"])
def test_an_elementwise_fault_is_found(dtype: str, fault: str, seed: int) -> None:
    """Would catch a bound that is not of the element's own size: norms, sums, activations and embeddings."""
    rng = np.random.default_rng(seed)
    norm, add, act, table = rms_norm(dtype, seed, 1.0, 1e-6), residual_add(dtype, seed), gated(dtype, seed), embedding(dtype, seed, 1.0)
    if fault == "one gain 1 unit":
        weight, rows = norm.given.weights["weight"].copy(), table.given.weights["weight"].copy()
        weight[7] += ulp(weight[7], dtype)
        rows[7, 5:8] += ulp(rows[7, 5:8], dtype)
        cases = [
            ("rms_norm", norm._replace(given=with_weight(norm.given, weight))),
            ("embedding", table._replace(given=with_weight(table.given, rows))),
        ]
    elif fault == "one token x1.004":
        cases = [
            (name, made._replace(given=one_token(rng, made.given))) for name, made in (("residual_add", add), ("gated_activation", act))
        ]
    else:
        cases = []
        for name, made in (("residual_add", add), ("gated_activation", act)):
            second = made.given.inputs[1] * (1 + 1e-4)
            cases.append((name, made._replace(given=made.given._replace(inputs=(made.given.inputs[0], second)))))
    assert [name for name, made in cases if not is_found(name, made)] == []


@SEEDED
@FORMATS
@pytest.mark.parametrize(("scale", "wrong"), [(math.sqrt(1152), 34.0), (12.0, 12.001)])
def test_a_scale_of_the_embedding_is_found(dtype: str, scale: float, wrong: float, seed: int) -> None:
    """Would catch a multiplier rounded to bfloat16 that passes, and smaller errors of it."""
    made = embedding(dtype, seed, scale)
    assert is_found("embedding", made._replace(given=made.given._replace(config={"scale": wrong})))


@SEEDED
@FORMATS
def test_a_temperature_of_log_probabilities_is_found(dtype: str, seed: int) -> None:
    """Would catch a normaliser whose bound hides it: 1.0005 on 24 tokens of 48 words."""
    assert left("log_softmax", log_probs(dtype, seed)) == 0
    made = log_probs(dtype, seed, temperature=1.0005)
    assert is_found("log_softmax", made._replace(given=made.given._replace(config={"temperature": 1.0})))


# --- float32: no rounding point shows, the bound of what float32 leaves is the floor ---


@SEEDED
@pytest.mark.parametrize("operator", ["linear", "rms_norm"])
def test_the_floor_of_float32(operator: str, seed: int) -> None:
    """Would catch float32 dumps that explain anything: twice the floor is found, an eighth of it is not called a fault.

    The floor is what the sum of K products may err by, 2 sqrt(K (y^2 + sum of squares)) roundoffs, against the output's size; of a norm 18
    roundoffs.
    """
    made = linear("float32", seed) if operator == "linear" else rms_norm("float32", seed, 1.0, 1e-6)
    if operator == "linear":
        x, weight = made.given.inputs[0], made.given.weights["weight"]
        reach = 2 * ROUNDOFF * np.sqrt(HIDDEN * (made.outputs[0] ** 2 + (x * x) @ (weight * weight).T))
        floor = float(np.median(reach / np.abs(made.outputs[0])))
        assert floor < 2e-5
    else:
        floor = 18 * ROUNDOFF
    scaled = [made._replace(outputs=(to_format(made.outputs[0] * (1 + factor * floor), "float32"),)) for factor in (2.0, 0.125)]
    assert left(operator, made) == 0
    assert left(operator, scaled[0]) > 0.4 * made.outputs[0].size
    assert left(operator, scaled[1]) <= chance(made)
