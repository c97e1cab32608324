"""Names of msprobe, on examples that real dumps hold."""

from __future__ import annotations

import pytest
from msprobe_files import names


@pytest.mark.parametrize(
    ("stem", "entry", "category", "suffix"),
    [
        ("Module.model.layers.0.mlp.Qwen2MLP.forward.0.input.0", "Module.model.layers.0.mlp.Qwen2MLP.forward.0", "input", "0"),
        ("Module.odd.Odd.forward.0.kwargs.extra.a.0", "Module.odd.Odd.forward.0", "kwargs", "extra.a.0"),
        ("Module.lm_head.Linear.forward.0.parameters.weight", "Module.lm_head.Linear.forward.0", "parameters", "weight"),
        ("Functional.linear.3.forward.output.0", "Functional.linear.3.forward", "output", "0"),
        ("Module.b.Linear.backward.1.input.0", "Module.b.Linear.backward.1", "input", "0"),
        ("Module.b.Linear.parameters_grad.0.weight", "Module.b.Linear.parameters_grad.0", "parameters_grad", "weight"),
        # A keyword that looks like a direction must not cut the entry short, nor a path that holds a category's name.
        ("Module.input.0.Linear.forward.0.kwargs.forward.0", "Module.input.0.Linear.forward.0", "kwargs", "forward.0"),
    ],
)
def test_tensor_names_come_apart_and_together(stem: str, entry: str, category: str, suffix: str) -> None:
    assert names.parse_tensor(stem) == (entry, category, suffix)
    assert names.tensor_name(entry, category, suffix) == stem
