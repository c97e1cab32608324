"""Logits that are bounded: against a program in float32 with its roundings written out."""

import numpy as np
import pytest
from dump_analysis.replay.emulate import explained, to_format
from dump_analysis.replay.formulas import FORMULAS, Given

CAP = 30.0


def bounded(dtype: str, *, stepwise: bool) -> tuple[Given, "np.ndarray[tuple[int, int], np.dtype[np.float64]]"]:
    """16 tokens of 64 numbers, 300 logits of up to some tens; sums run from the first index to the last."""
    lots = np.random.default_rng(7)
    x, weight = (to_format(lots.standard_normal(shape), dtype) for shape in ((16, 64), (300, 64)))
    total = np.zeros((16, 300), np.float32)
    for at in range(64):
        total = total + (x[:, at : at + 1] * weight[:, at]).astype(np.float32)
    given = Given((x,), {"weight": weight}, dtype, {"soft_cap": CAP})
    if not stepwise:
        return given, to_format((np.tanh(total / np.float32(CAP)) * np.float32(CAP)).astype(np.float64), dtype)
    quotient = to_format((to_format(total.astype(np.float64), dtype).astype(np.float32) / np.float32(CAP)).astype(np.float64), dtype)
    curved = to_format(np.tanh(quotient.astype(np.float32)).astype(np.float64), dtype)
    return given, to_format(curved * CAP, dtype)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
@pytest.mark.parametrize("stepwise", [True, False])
def test_the_right_variant_alone_explains_every_logit(dtype: str, stepwise: bool) -> None:
    given, recorded = bounded(dtype, stepwise=stepwise)
    left = {
        variant.name: float((~explained(recorded, variant.run(given)[0])).mean()) for variant in FORMULAS["soft_capped_linear"].variants
    }
    right, wrong = ("cap_stepwise", "cap_once") if stepwise else ("cap_once", "cap_stepwise")
    assert left[right] == 0
    assert left[wrong] > 0.1
    assert float((~explained(recorded, FORMULAS["linear"].variants[0].run(given)[0])).mean()) > 0.1


def test_the_truth_is_that_of_its_name() -> None:
    given, recorded = bounded("float16", stepwise=False)
    np.testing.assert_allclose(FORMULAS["soft_capped_linear"].nominal(given)[0], recorded, rtol=1e-3, atol=1e-6)
