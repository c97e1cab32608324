"""Names of msprobe, on examples that real dumps hold."""

from __future__ import annotations

from typing import Tuple

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msprobe_files import names


@pytest.mark.parametrize(
    ("stem", "entry", "category", "suffix"),
    [
        ("Module.model.layers.0.mlp.Qwen2MLP.forward.0.input.0", "Module.model.layers.0.mlp.Qwen2MLP.forward.0", "input", "0"),
        ("Module.odd.Odd.forward.0.kwargs.extra.a.0", "Module.odd.Odd.forward.0", "kwargs", "extra.a.0"),
        ("Module.odd.Odd.forward.0.output.0.pair.1.0", "Module.odd.Odd.forward.0", "output", "0.pair.1.0"),
        ("Module.lm_head.Linear.forward.0.parameters.weight", "Module.lm_head.Linear.forward.0", "parameters", "weight"),
        ("Functional.linear.3.forward.output.0", "Functional.linear.3.forward", "output", "0"),
        ("Tensor.__mul__.12.backward.input.1", "Tensor.__mul__.12.backward", "input", "1"),
        ("Module.b.Linear.backward.1.input.0", "Module.b.Linear.backward.1", "input", "0"),
        ("Module.b.Linear.parameters_grad.0.weight", "Module.b.Linear.parameters_grad.0", "parameters_grad", "weight"),
        ("Module.b.Linear.parameters_grad.weight", "Module.b.Linear.parameters_grad", "parameters_grad", "weight"),
        ("Module.b.Linear.forward.0.output", "Module.b.Linear.forward.0", "output", ""),
        # A keyword that looks like a direction must not cut the entry short, nor a path that holds a category's name.
        ("Module.input.0.Linear.forward.0.kwargs.forward.0", "Module.input.0.Linear.forward.0", "kwargs", "forward.0"),
        ("Module.output.forward.1.parameters.B.forward.2.input.0", "Module.output.forward.1.parameters.B.forward.2", "input", "0"),
        ("Module.b.B.forward.0.kwargs.0.1.x.y_2", "Module.b.B.forward.0", "kwargs", "0.1.x.y_2"),
    ],
)
def test_tensor_names_come_apart_and_together(stem: str, entry: str, category: str, suffix: str) -> None:
    assert names.parse_tensor(stem) == (entry, category, suffix)
    assert names.tensor_name(entry, category, suffix) == stem


@pytest.mark.parametrize(
    "stem", ["", "dump", "weights", "Module.b.Linear.forward.0", "Module.b.Linear.forward.input.0", "Module.b.Linear.forward.0.inputs.0"]
)
def test_a_stem_of_no_tensor_gives_none(stem: str) -> None:
    assert names.parse_tensor(stem) is None


PARTS = st.sampled_from(["model", "layers", "0", "17", "input", "output", "forward", "kwargs", "q_proj", "_fsdp_wrapped_module", "x1"])
PATHS = st.lists(PARTS, min_size=1, max_size=5).map(".".join)
CALLS = st.integers(0, 999).map(str)
DIRECTIONS = st.sampled_from(["forward", "backward"])
MODULES = st.tuples(st.just("Module"), PATHS, st.sampled_from(["Linear", "Qwen2MLP", "B1"]), DIRECTIONS, CALLS).map(".".join)
APIS = st.tuples(st.sampled_from(["Functional", "Tensor", "_C_ascend"]), st.just("__mul__"), CALLS, DIRECTIONS).map(".".join)
# A suffix that itself holds "forward.0.input" cannot be told from an entry: msprobe's rule leaves that open.
SUFFIXES = st.lists(st.sampled_from(["0", "12", "hidden_states", "input", "parameters", "a-b", "é"]), max_size=4).map(".".join)


@given(st.one_of(MODULES, APIS), st.sampled_from(["input", "kwargs", "output", "parameters"]), SUFFIXES)
def test_what_was_joined_comes_apart_the_same(entry: str, category: str, suffix: str) -> None:
    assert names.parse_tensor(names.tensor_name(entry, category, suffix)) == (entry, category, suffix)


# A path that holds "forward.0.input" is as open here: no module can be called forward.
OWNERS = MODULES.map(lambda entry: entry.rsplit(".", 2)[0]).filter(lambda owner: "forward" not in owner)


@given(OWNERS, st.sampled_from([".parameters_grad", ".parameters_grad.0"]))
def test_gradients_come_apart_the_same(module: str, tail: str) -> None:
    assert names.parse_tensor(names.tensor_name(module + tail, "parameters_grad", "weight")) == (module + tail, "parameters_grad", "weight")


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("Module.model.layers.3.mlp.Qwen2MLP.forward.1", ("module", ("model", "layers", "3", "mlp"), "Qwen2MLP", "forward", 1)),
        ("Module.0.1.Tanh.backward.12", ("module", ("0", "1"), "Tanh", "backward", 12)),
        ("Module.root.Toy.forward.0", ("module", ("root",), "Toy", "forward", 0)),
        ("Module.a.forward.0.B.forward.2", ("module", ("a", "forward", "0"), "B", "forward", 2)),
        ("Functional.linear.3.forward", ("api", (), "linear", "forward", 3)),
        ("Torch.ops.npu.rms_norm.0.backward", ("api", (), "ops.npu.rms_norm", "backward", 0)),
        ("Module.b.Linear.parameters_grad.0", ("other", (), "", "", 0)),
        ("megatron_micro_step_number", ("other", (), "", "", 0)),
        ("Module.Linear.forward.0", ("other", (), "", "", 0)),
        ("", ("other", (), "", "", 0)),
    ],
)
def test_entries_come_apart(text: str, wanted: Tuple[str, Tuple[str, ...], str, str, int]) -> None:
    assert names.parse_entry(text) == (text,) + wanted


@given(st.text() | st.lists(PARTS | st.text(max_size=3)).map(".".join))
def test_any_text_is_an_entry_or_none(text: str) -> None:
    """Entry names are keys of a file that others wrote: none may raise, and none may change."""
    entry = names.parse_entry(text)
    assert entry.text == text
    assert entry.kind in ("module", "api", "other")
    parsed = names.parse_tensor(text)
    assert parsed is None or names.tensor_name(*parsed) == text
    assert names.layer_of(tuple(text.split("."))) is None or any(map(str.isdigit, text))


def test_a_call_number_without_end_is_no_error() -> None:
    """Python 3.11 refuses to read more than 4300 digits; `parse_entry` promises never to raise."""
    assert names.parse_entry("Module.a.B.forward." + "1" * 5000).text.endswith("1")
    assert names.parse_entry("Functional.add." + "1" * 5000 + ".forward").text.endswith("forward")


def test_a_digit_that_is_no_number_is_no_layer() -> None:
    """`"²".isdigit()` holds, yet int("²") raises."""
    assert names.layer_of(("model", "²", "mlp")) is None


def test_a_line_break_at_the_end_belongs_to_the_name() -> None:
    """`$` matches before it: the name would come back without it."""
    assert names.parse_tensor("Module.a.B.forward.0.input.0\n") is None
    assert names.parse_entry("Module.a.B.forward.0\n").kind == "other"


@pytest.mark.parametrize(
    ("path", "layer", "pattern"),
    [
        ("model.layers.12.mlp", 12, "model.layers.N.mlp"),
        ("model.layers.2.mlp.experts.7.up_proj", 2, "model.layers.N.mlp.experts.7.up_proj"),
        ("0.decoder.layers.3.mlp", 3, "0.decoder.layers.N.mlp"),
        ("1.module.module.decoder.layers.0", 0, "1.module.module.decoder.layers.N"),
        ("0", None, "0"),
        ("0.decoder.final_layernorm", None, "0.decoder.final_layernorm"),
        ("_fsdp_wrapped_module.model.layers.1._fsdp_wrapped_module.mlp", 1, "_fsdp_wrapped_module.model.layers.N._fsdp_wrapped_module.mlp"),
        ("model.embed_tokens", None, "model.embed_tokens"),
        ("h.007.mlp", 7, "h.N.mlp"),
        ("", None, ""),
    ],
)
def test_the_index_of_a_list_of_models_is_no_layer(path: str, layer: int, pattern: str) -> None:
    """B06: ``Module.0.decoder`` is virtual stage 0, not layer 0."""
    parts = tuple(path.split("."))
    assert names.layer_of(parts) == layer
    assert ".".join(names.layer_pattern(parts)) == pattern


@pytest.mark.parametrize(
    ("path", "plain"),
    [
        ("_fsdp_wrapped_module.model.layers.1._fsdp_wrapped_module.mlp", "model.layers.1.mlp"),
        ("module.module.decoder.layers.0", "decoder.layers.0"),
        ("1.module.module.decoder.layers.0", "decoder.layers.0"),
        ("0.decoder.layers.0", "decoder.layers.0"),
        ("_orig_mod.model.layers.4._checkpoint_wrapped_module.mlp", "model.layers.4.mlp"),
        ("model.layers.0.mlp.experts.3", "model.layers.0.mlp.experts.3"),
        ("model.module_list.0", "model.module_list.0"),
        ("0", "0"),
        ("_orig_mod", ""),
    ],
)
def test_wrappers_and_list_indices_leave_a_path(path: str, plain: str) -> None:
    """B06: both sides' names must meet whatever wrapped them."""
    assert ".".join(names.plain_path(tuple(path.split(".")))) == plain
