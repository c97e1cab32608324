"""Each operator's variants on programs whose rounding points are known: the right one explains every element, the wrong ones do not."""

import math
from collections.abc import Callable
from functools import partial

import numpy as np
import pytest
import torch
from dump_analysis.replay.emulate import bit_equal, explained, to_format
from dump_analysis.replay.formulas import FORMULAS, Given
from programs import (
    ORDERS,
    Recorded,
    activation,
    embedding,
    fp8_linear,
    gated,
    layer_norm,
    linear,
    log_probs,
    named,
    norm_linear,
    outside,
    recorded,
    residual_add,
    rms_norm,
    values,
)

HALF = ["bfloat16", "float16"]
Program = Callable[[str, int], Recorded]
NORMS = ["cast_before_weight", "cast_after_weight", "rstd_rounded", "all_rounded", "all_rounded_and_root"]
ADDS = [f"{add}+{norm}" for add in ("add_rounded", "add_unrounded") for norm in NORMS[:2]]
SUMS = ["stepwise", "stepwise_ends_first", "stepwise_branches_first", "rounded_once"]
PRODUCTS = ["product_rounded", "product_float32"]
CHAINS = ["cast_after_weight+plain", "1+w+cast_after_weight+plain", "cast_before_weight+bias_after_cast", "layer_norm+float32_inside+plain"]
# (operator, the variant that is right): the program that computes so; more programs of one variant differ in what its name does not say.
CASES: list[tuple[str, str, Program]] = [
    *(("linear", "plain", partial(linear, rounding="plain", sums=sums)) for sums in ORDERS.values()),
    *(("linear", "bias_in_acc", partial(linear, rounding="bias_in_acc", sums=sums)) for sums in ORDERS.values()),
    *(("linear", name, partial(linear, rounding=name)) for name in ("bias_after_cast", "partials_2_rounded", "partials_4_rounded")),
    *(("rms_norm", name, partial(rms_norm, rounding=name)) for name in [*NORMS, *ADDS, "1+w+cast_after_weight"]),
    *(("rms_norm", "cast_before_weight", partial(rms_norm, rounding="cast_before_weight", heads=heads)) for heads in ("one", "each")),
    *(("rms_norm", name, partial(rms_norm, rounding=name, wide_gain=True)) for name in NORMS),
    ("rms_norm", "cast_after_weight", partial(rms_norm, rounding="cast_after_weight", scale=0.03)),
    *(("layer_norm", name, partial(layer_norm, rounding=name)) for name in ("float32_inside", "cast_before_weight")),
    *(("norm_linear", f"{name}+bias_in_acc", partial(norm_linear, rounding=f"{name}+bias_in_acc")) for name in [*NORMS, *ADDS]),
    *(("norm_linear", name, partial(norm_linear, rounding=name)) for name in CHAINS),
    *(("log_softmax", "float32_inside", partial(log_probs, temperature=t, padding=64)) for t in (1.0, 0.7)),
    ("log_prob", "float32_inside", partial(log_probs, chosen=True, padding=64)),
    ("embedding", "gather", partial(embedding, scale=1.0)),
    ("embedding", "scaled", partial(embedding, scale=math.sqrt(50.0))),
    ("residual_add", "stepwise", partial(residual_add, rounding="stepwise", addends=2)),
    *(("residual_add", name, partial(residual_add, rounding=name, addends=3)) for name in SUMS),
    *(("residual_add", name, partial(residual_add, rounding=name, addends=2, multiplier=0.22)) for name in PRODUCTS),
    *(("activation", name, partial(activation, function=name)) for name in ("silu", "gelu_tanh", "gelu_sigmoid", "relu")),
    *(("gated_activation", f"silu+{name}", partial(gated, rounding=f"silu+{name}")) for name in ("act_rounded", "act_float32")),
    ("gated_activation", "gelu_tanh+act_rounded", partial(gated, rounding="gelu_tanh+act_rounded", fused=True)),
]
EACH = pytest.mark.parametrize(("operator", "right", "program"), CASES, ids=[f"{at}-{case[0]}-{case[1]}" for at, case in enumerate(CASES)])
# Pairs that are nearly one function in their operator: gelu's forms differ by little, and the formats tell them apart at few elements.
NEAR = {"gelu_tanh", "gelu_erf"}
ROOTS = ("rstd_rounded", "all_rounded")  # apart by one unit of the root of some rows


@EACH
@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float32"])
def test_right_variant_explains_every_element(operator: str, right: str, program: Program, dtype: str) -> None:
    """Would catch a rounding point that is missing, and a bound that real arithmetic exceeds; every output is looked at."""
    formula, made = FORMULAS[operator], program(dtype, 1)
    variant = named(formula, right)
    assert variant in formula.fitting(made.given)
    assert [outside(variant, made, at) for at in range(len(made.outputs))] == [0] * len(made.outputs)


@EACH
@pytest.mark.parametrize("dtype", HALF)
def test_right_variant_is_nearly_always_bit_equal(operator: str, right: str, program: Program, dtype: str) -> None:
    """Would catch intervals so wide that they explain anything: the point emulation itself gives 99 of 100 elements or more.

    gelu's left tail is a difference of nearly equal numbers, in which float32 has few digits; one open element of a norm opens all
    products of its row.
    """
    made = program(dtype, 1)
    found = named(FORMULAS[operator], right).run(made.given)[0]
    equal, certain = (0.97, 0.85) if NEAR & {*right.split("+")} or operator == "norm_linear" else (0.99, 0.97)
    assert bit_equal(made.outputs[0], found).mean() > equal
    assert (found.low == found.high).mean() > certain


@EACH
@pytest.mark.parametrize("dtype", HALF)
def test_wrong_variants_leave_a_tenth_unexplained(operator: str, right: str, program: Program, dtype: str) -> None:
    """Would catch variants that cannot be told apart, so that a rounding point would be named at random."""
    formula, made = FORMULAS[operator], program(dtype, 1)
    close = NEAR & {*right.split("+")}
    for variant in (*formula.fitting(made.given), *formula.faults):
        if variant.name == right or not variant.applies(made.given) or (close and variant.name.split("+")[0] in NEAR):
            continue
        if operator == "residual_add" and len(made.given.inputs) == 2 and right == "stepwise":
            continue
        roots = set(ROOTS) <= {*right.split("+"), *variant.name.split("+")}
        assert outside(variant, made) > (0.02 if roots else 0.1) * made.outputs[0].size, variant.name


@pytest.mark.parametrize("seed", range(30))
def test_no_false_alarm(seed: int) -> None:
    """Would catch a bound that holds for most data only: no element of any program over 30 seeds is unexplained, in any format."""
    dtype = ["bfloat16", "float16", "float32"][seed % 3]
    alarms = [
        (operator, right) for operator, right, program in CASES if outside(named(FORMULAS[operator], right), program(dtype, 100 * seed))
    ]
    assert alarms == []


def test_float32_sum_with_the_bias_is_rounded_before_the_output_is() -> None:
    """Would catch an interval of the product alone: 1 + (2^-8 + 2^-26) is a tie in float32, which goes to 1, and above it in truth."""
    given = Given((np.ones((1, 2)),), {"weight": np.array([[2.0**-8, 2.0**-26]]), "bias": np.ones(1)}, "bfloat16", {})
    assert outside(named(FORMULAS["linear"], "bias_in_acc"), Recorded(given, (np.ones((1, 1)),))) == 0


@pytest.mark.parametrize("total", [1.0, 1 + 2.0**-7])
def test_addends_in_any_order(total: float) -> None:
    """Would catch an emulation that knows one order: 1 + 2^-8 loses 2^-24 twice in float32, but not the sum of both."""
    given = Given(tuple(np.full((1, 1), addend) for addend in (1.0, 2.0**-8, 2.0**-24, 2.0**-24)), {}, "bfloat16", {"multiplier": 1.0})
    assert outside(named(FORMULAS["residual_add"], "rounded_once"), Recorded(given, (np.full((1, 1), total),))) == 0


# --- faults ---


@pytest.mark.parametrize("dtype", HALF)
@pytest.mark.parametrize(
    ("operator", "fault", "program"),
    [
        ("linear", "bias_missing", partial(linear, rounding="bias_missing")),
        ("linear", "fp8_by_token_and_row", fp8_linear),
        ("rms_norm", "second_input_lost+cast_before_weight", partial(rms_norm, rounding="second_input_lost+cast_before_weight")),
        ("gated_activation", "silu+gate_and_up_exchanged+act_rounded", partial(gated, rounding="silu+gate_and_up_exchanged+act_rounded")),
        *(
            (operator, "padding_in_normaliser", partial(log_probs, chosen=operator == "log_prob", padding=64, padded=True))
            for operator in ("log_softmax", "log_prob")
        ),
        (
            "norm_linear",
            "bias_missing+cast_after_weight+plain",
            partial(norm_linear, rounding="cast_after_weight+bias_in_acc", fault="bias_missing"),
        ),
        (
            "gated_activation",
            "silu+gate_and_up_exchanged+act_rounded",
            partial(gated, rounding="silu+gate_and_up_exchanged+act_rounded", fused=True),
        ),
    ],
)
def test_named_faults_explain_themselves_alone(operator: str, fault: str, program: Program, dtype: str) -> None:
    """Would catch a mistake that no right variant is far from, or that its own name does not explain."""
    formula, made = FORMULAS[operator], program(dtype, 3)
    assert outside(named(formula, fault), made) == 0
    assert min(outside(variant, made) for variant in formula.fitting(made.given)) > 0.1 * made.outputs[0].size


@pytest.mark.parametrize(("scale", "share"), [(0.01, 0.5), (0.1, 0.005)])
def test_another_eps_is_seen(scale: float, share: float) -> None:
    """Would catch norms that ignore eps: 1e-5 for 1e-6 moves the inverse root by 4.5 % at activations of .01, by .05 % at .1."""
    made = rms_norm("bfloat16", 5, "cast_before_weight", eps=1e-5, scale=scale)
    assert min(outside(variant, made) for variant in FORMULAS["rms_norm"].fitting(made.given)) > share * made.outputs[0].size


@pytest.mark.parametrize("dtype", HALF)
def test_one_weight_row_is_seen(dtype: str) -> None:
    """Would catch what a few elements can hide: one row of 48 that is .4 % larger than what is recorded, at that row alone."""
    made = linear(dtype, 7, "plain")
    weight = made.given.weights["weight"].copy()
    weight[11] = to_format(weight[11] / 1.004, dtype)
    given = made.given._replace(weights={"weight": weight})
    unexplained = ~explained(made.outputs[0], FORMULAS["linear"].variants[0].run(given)[0])
    assert unexplained[:, 11].mean() > 0.2
    assert not np.delete(unexplained, 11, axis=1).any()


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("rounding", ["cast_first+plain", "cast_first+bias_in_acc"])
@pytest.mark.parametrize("dtype", HALF)
def test_float32_operands_are_cast_before_they_are_multiplied(dtype: str, rounding: str, seed: int) -> None:
    """Would catch a trainer under autocast that is called a fault, and one that multiplies float32 that is not told from it."""
    made, formula = linear(dtype, 100 * seed, rounding), FORMULAS["linear"]
    left = {variant.name: outside(variant, made) for variant in formula.fitting(made.given)}
    assert left.pop(rounding) == 0
    assert all(count > 0.1 * made.outputs[0].size for count in left.values())
    stored = linear(dtype, 100 * seed, rounding.removeprefix("cast_first+"))
    assert not any(variant.name.startswith("cast_first") for variant in formula.fitting(stored.given))


@pytest.mark.parametrize("grid", HALF)
def test_a_gain_that_stayed_in_float32_widens_the_output(grid: str) -> None:
    """Would catch a float32 output of 16-bit inputs that is called a fault: what was cast back stays on its grid before the gain."""
    right, formula = f"cast_to_{grid}_before_weight", FORMULAS["rms_norm"]
    made = rms_norm(grid, 11, right, wide_gain=True)
    assert made.given.dtype == "float32"
    left = {variant.name: outside(variant, made) for variant in formula.fitting(made.given)}
    assert left.pop(right) == 0
    assert all(count > 0.5 * made.outputs[0].size for count in left.values())


@pytest.mark.parametrize("operator", ["linear", "rms_norm"])
def test_float32_still_sees_what_exceeds_its_bound(operator: str) -> None:
    """Would catch float32 dumps that explain everything: an output that is 1e-5 larger is not, though rounding orders are not told."""
    made = linear("float32", 9, "plain") if operator == "linear" else rms_norm("float32", 9, "cast_before_weight")
    larger = Recorded(made.given, (to_format(made.outputs[0] * 1.00001, "float32"),))
    for variant in FORMULAS[operator].fitting(made.given):
        if variant.function == "":
            assert outside(variant, larger) > 0.5 * made.outputs[0].size, variant.name


@pytest.mark.parametrize("dtype", HALF)
def test_a_quotient_that_is_stored_is_told_apart(dtype: str) -> None:
    """Would catch a temperature that is fitted where logits were only rounded again: each variant explains its own program alone."""
    formula = FORMULAS["log_softmax"]
    for name, scaled in (("float32_inside", "float32"), (f"scaled_{dtype}", dtype)):
        made = log_probs(dtype, 1, temperature=0.7, scaled=scaled)
        left = {variant.name: outside(variant, made) for variant in formula.fitting(made.given)}
        assert left.pop(name) == 0
        assert all(count > 0.05 * made.outputs[0].size for count in left.values())
        assert set(left) == {"float32_inside", f"scaled_{dtype}"} - {name}


@pytest.mark.parametrize("words", [1000, 32000, 152064])
def test_log_softmax_of_a_vocabulary(words: int) -> None:
    """Would catch a bound for small vocabularies: torch's own float32, whatever the order of its sums, is inside.

    And one that is too wide: a temperature of .9999 is outside everywhere but where it moves nothing.
    """
    logits = values(words, 4, words, dtype="bfloat16", scale=3.0)
    given = recorded((logits,), {}, (logits,), temperature=1.0).given._replace(dtype="float32")
    found = FORMULAS["log_softmax"].variants[0].run(given)[0]
    error = np.abs(torch.log_softmax(logits.float(), 1).double().numpy() - found.value)
    assert (error <= found.high - found.value).all()
    other = torch.log_softmax(logits.float() / 0.9999, 1).double().numpy()
    assert (~explained(other, found)).mean() > 0.5


# --- what a formula runs on ---


def test_formulas_by_their_names() -> None:
    """Would catch a registration under another name, and two variants that one name cannot tell apart."""
    for name, formula in FORMULAS.items():
        assert formula.operator == name
        names = [variant.name for variant in (*formula.variants, *formula.faults)]
        assert len(set(names)) == len(names)
        assert all(variant.source for variant in (*formula.variants, *formula.faults))


def test_bias_decides_which_variants_run() -> None:
    """Would catch a replay that leaves a recorded bias out without calling it a fault, or asks for one that there is not."""
    formula = FORMULAS["linear"]
    names = [{variant.name for variant in formula.fitting(linear("bfloat16", 1, name).given)} for name in ("plain", "bias_in_acc")]
    assert "plain" in names[0] - names[1]
    assert {"bias_in_acc", "bias_after_cast"} <= names[1] - names[0]
    assert not formula.faults[0].applies(linear("bfloat16", 1, "plain").given)


def test_other_parameters_are_not_consumed() -> None:
    """Would catch a module with a parameter that the formula knows nothing of being judged all the same."""
    assert FORMULAS["linear"].consumes(["weight", "bias"])
    assert not FORMULAS["linear"].consumes(["weight", "layer_norm_weight"])
    assert not FORMULAS["rms_norm"].consumes(["weight", "bias"])


def test_rows_of_a_linear_can_be_taken_apart() -> None:
    """Would catch intervals that depend on other rows: blocks of weight rows give what the whole gives."""
    made = linear("bfloat16", 1, "bias_in_acc")
    variant = named(FORMULAS["linear"], "bias_in_acc")
    whole = variant.run(made.given)[0]
    for rows in (slice(0, 13), slice(13, 48)):
        part = variant.run(made.given._replace(weights={name: weight[rows] for name, weight in made.given.weights.items()}))[0]
        for of_part, of_whole in zip(part, whole, strict=True):
            np.testing.assert_array_equal(of_part, of_whole[:, rows])
