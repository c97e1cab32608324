"""What each operator computes in truth: in float64, against math, fractions or torch, written in another way."""

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
import torch
from dump_analysis.replay.formulas import FORMULAS
from programs import EPS, gated, layer_norm, linear, log_probs, named, norm_linear, residual_add, rms_norm


def test_nominal_linear() -> None:
    """Would catch a turned weight or a lost bias: each element is a correctly rounded sum of exact products."""
    given = linear("bfloat16", 1, "bias_in_acc").given
    (x,), weight, bias = given.inputs, given.weights["weight"], given.weights["bias"]
    wanted = [[math.fsum([*(x[t] * weight[n]), bias[n]]) for n in range(len(weight))] for t in range(len(x))]
    np.testing.assert_allclose(FORMULAS["linear"].truth(given)[0], wanted, rtol=1e-13, atol=1e-15)


@pytest.mark.parametrize(("prefix", "offset"), [("", 0.0), ("1+w+", 1.0)])
def test_nominal_rms_norm(prefix: str, offset: float) -> None:
    """Would catch an eps outside the root or another width: element by element with math's own root, of the sum of both inputs."""
    made = rms_norm("bfloat16", 1, f"{prefix}add_unrounded+cast_after_weight")
    total = made.given.inputs[0] + made.given.inputs[1]
    wanted = [
        [
            value / math.sqrt(math.fsum(v * v for v in row) / len(row) + EPS) * (gain + offset)
            for value, gain in zip(row, gains, strict=True)
        ]
        for row in total
        for gains in (made.given.weights["weight"],)
    ]
    variant = named(FORMULAS["rms_norm"], f"{prefix}add_unrounded+cast_after_weight")
    normed, stored = FORMULAS["rms_norm"].truth(made.given, variant)
    np.testing.assert_allclose(normed, wanted, rtol=1e-13)
    np.testing.assert_array_equal(stored, total)


def test_nominal_sum_with_a_multiplier() -> None:
    """Would catch a multiplied stream in place of a multiplied branch, in exact fractions."""
    given = residual_add("bfloat16", 1, "product_rounded", 2, 0.22).given
    stream, branch = given.inputs
    wanted = [
        [float(Fraction(a) + Fraction(0.22) * Fraction(b)) for a, b in zip(*rows, strict=True)] for rows in zip(stream, branch, strict=True)
    ]
    np.testing.assert_allclose(FORMULAS["residual_add"].truth(given)[0], wanted, rtol=1e-12, atol=1e-15)


def test_nominal_norm_by_heads() -> None:
    """Would catch a norm over the whole width where the weight has the width of a head."""
    made = rms_norm("bfloat16", 1, "cast_after_weight", heads="one")
    x, gain = made.given.inputs[0], made.given.weights["weight"]
    width = len(gain)
    wanted = np.array([[v / math.sqrt(float(np.mean(np.square(row[at // width * width :][:width]))) + EPS) * gain[at % width]
                        for at, v in enumerate(row)] for row in x])  # fmt: skip
    np.testing.assert_allclose(FORMULAS["rms_norm"].truth(made.given)[0], wanted, rtol=1e-12)


def test_nominal_layer_norm() -> None:
    """Would catch a variance over n - 1 or a bias before the gain."""
    given = layer_norm("bfloat16", 1, "float32_inside").given
    gain, bias = given.weights["weight"], given.weights["bias"]
    wanted = []
    for row in given.inputs[0]:
        mean = math.fsum(row) / len(row)
        deviation = math.sqrt(math.fsum((v - mean) ** 2 for v in row) / len(row) + 1e-5)
        wanted.append([(v - mean) / deviation * g + b for v, g, b in zip(row, gain, bias, strict=True)])
    np.testing.assert_allclose(FORMULAS["layer_norm"].truth(given)[0], wanted, rtol=1e-11, atol=1e-13)


@pytest.mark.parametrize("chosen", [False, True])
def test_nominal_log_probs(chosen: bool) -> None:
    """Would catch a label of another row or a temperature that multiplies: torch's log_softmax in float64."""
    given = log_probs("bfloat16", 1, chosen=chosen, temperature=0.7).given
    wanted = torch.log_softmax(torch.from_numpy(given.inputs[0]) / 0.7, 1)
    wanted = wanted.gather(1, torch.from_numpy(given.inputs[1]).long()) if chosen else wanted
    found = FORMULAS["log_prob" if chosen else "log_softmax"].truth(given)[0]
    np.testing.assert_allclose(found, wanted.numpy(), rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("rounding", ["cast_after_weight+bias_in_acc", "layer_norm+float32_inside+plain"])
def test_nominal_norm_linear(rounding: str) -> None:
    """Would catch a gain on the wrong side of the product: torch's own norm and linear in float64."""
    given = norm_linear("bfloat16", 1, rounding).given
    x, weights = torch.from_numpy(given.inputs[0]), {name: torch.from_numpy(made) for name, made in given.weights.items()}
    gain, width, eps = weights["norm_weight"], (x.shape[1],), given.config["eps"]
    layer = "norm_bias" in weights
    normed = torch.layer_norm(x, width, gain, weights["norm_bias"], eps) if layer else torch.rms_norm(x, width, gain, eps)
    wanted = torch.nn.functional.linear(normed, weights["weight"], weights.get("bias"))
    found = FORMULAS["norm_linear"].truth(given, named(FORMULAS["norm_linear"], rounding))[0]
    np.testing.assert_allclose(found, wanted.numpy(), rtol=1e-11, atol=1e-13)


@pytest.mark.parametrize(
    ("name", "function"),
    [
        ("silu", lambda x: x / (1 + math.exp(-x))),
        ("gelu_erf", lambda x: x * math.erfc(-x / math.sqrt(2)) / 2),
        ("gelu_tanh", lambda x: x / (1 + math.exp(-2 * math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))),
        ("gelu_sigmoid", lambda x: x / (1 + math.exp(-1.702 * x))),
        ("relu", lambda x: max(x, 0.0)),
        ("relu_squared", lambda x: max(x, 0.0) ** 2),
    ],
)
def test_nominal_activations(name: str, function: Callable[[float], float]) -> None:
    """Would catch a wrong constant: against math, written in other forms, alone and times up."""
    made = gated("bfloat16", 1, "silu+act_rounded")
    gate, up = made.given.inputs
    wanted = np.array([[function(float(v)) for v in row] for row in gate])
    alone = made.given._replace(inputs=(gate,))
    np.testing.assert_allclose(FORMULAS["activation"].truth(alone, named(FORMULAS["activation"], name))[0], wanted, rtol=1e-12, atol=1e-14)
    variant = named(FORMULAS["gated_activation"], f"{name}+act_rounded")
    np.testing.assert_allclose(FORMULAS["gated_activation"].truth(made.given, variant)[0], wanted * up, rtol=1e-12, atol=1e-14)
