"""Logits that are bounded or scaled: against programs in float32 with their roundings written out."""

from pathlib import Path

import numpy as np
import pytest
from dump_analysis.replay import stated
from dump_analysis.replay.emulate import explained, to_format
from dump_analysis.replay.formulas import FORMULAS, Given

CAP, SCALE = 30.0, 0.3
CONSTANT = {"soft_capped_linear": {"soft_cap": CAP}, "scaled_linear": {"logits_scale": SCALE}}
Numbers = np.ndarray[tuple[int, int], np.dtype[np.float64]]


def single(numbers: Numbers) -> Numbers:
    """The nearest float32 numbers."""
    return numbers.astype(np.float32).astype(np.float64)


def made(operator: str, dtype: str, *, stepwise: bool) -> tuple[Given, Numbers]:
    """16 tokens of 64 numbers, 300 logits of up to some tens; sums run from the first index to the last."""
    lots = np.random.default_rng(7)
    x, weight = (to_format(lots.standard_normal(shape), dtype) for shape in ((16, 64), (300, 64)))
    total = np.zeros((16, 300), np.float32)
    for at in range(64):
        total = total + (x[:, at : at + 1] * weight[:, at]).astype(np.float32)
    given = Given((x,), {"weight": weight}, dtype, CONSTANT[operator])
    kept = (lambda numbers: to_format(numbers, dtype)) if stepwise else single
    logits = kept(total.astype(np.float64))
    if operator == "scaled_linear":
        return given, to_format(single(logits * np.float32(SCALE)), dtype)
    curved = kept(np.tanh(kept(single(logits / np.float32(CAP))).astype(np.float32)).astype(np.float64))
    return given, to_format(single(curved * CAP), dtype)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
@pytest.mark.parametrize("stepwise", [True, False])
@pytest.mark.parametrize("operator", list(CONSTANT))
def test_the_right_variant_alone_explains_every_logit(operator: str, dtype: str, stepwise: bool) -> None:
    given, recorded = made(operator, dtype, stepwise=stepwise)
    left = {variant.name: float((~explained(recorded, variant.run(given)[0])).mean()) for variant in FORMULAS[operator].variants}
    right = next(name for name in left if name.endswith("stepwise" if stepwise else "once"))
    assert left.pop(right) == 0
    assert all(share > 0.1 for share in left.values())
    assert float((~explained(recorded, FORMULAS["linear"].variants[0].run(given)[0])).mean()) > 0.1


@pytest.mark.parametrize("operator", list(CONSTANT))
def test_the_truth_is_that_of_its_name(operator: str) -> None:
    given, recorded = made(operator, "float16", stepwise=False)
    np.testing.assert_allclose(FORMULAS[operator].nominal(given)[0], recorded, rtol=1e-3, atol=1e-6)


@pytest.mark.parametrize(
    ("text", "scale"),
    [('{"logits_scaling": 8.0}', 0.125), ('{"logit_scale": 0.0625}', 0.0625), ('{"logits_scaling": 0}', None), ("{}", None)],
)
def test_a_configuration_divides_or_multiplies_logits(tmp_path: Path, text: str, scale: float | None) -> None:
    """Granite states a divisor, Cohere a factor (transformers 5.19)."""
    (tmp_path / "config.json").write_text(text)
    assert stated.constants(tmp_path / "config.json").get("logits_scale") == scale
