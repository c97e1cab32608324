"""Reported trouble with parameters, each as the smallest pair of configurations that shows it."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
from collection.aligning import align, field_map, waive
from collection.collecting import Collected
from laying import lay_out
from running import run_collection

DENSE = {"num_layers": 2, "hidden_size": 64, "num_attention_heads": 4}
MOE = {"num_experts": 8, "num_experts_per_tok": 2}
MOE_TRAIN = {"num_moe_experts": 8, "moe_router_topk": 2}


@pytest.fixture
def done(tmp_path: Path) -> Collected:
    """A folder in which every stage is done."""
    pair = lay_out("qwen2-hf-vllm-clean", tmp_path)
    folder = tmp_path / "run"
    folder.mkdir()
    return Collected(folder, pair.train, pair.infer)


def test_a01_a_rotary_base_that_fell_back_to_its_default(tmp_path: Path) -> None:
    """An older reader ignores the nested base; nothing warns. The first of the mismatches."""
    nested = {"rope_parameters": {"rope_type": "default", "rope_theta": 500000}}
    found = align(tmp_path, {"rope_theta": 10000.0}, nested)
    item = found.report["items"][0]
    assert (found.code, item["canonical"], item["status"]) == (1, "config.rope_theta", "DIFF")
    assert item["train"] == {"key": "rope_theta", "value": 10000.0, "state": "set"}
    assert item["infer"] == {"key": "rope_parameters.rope_theta", "value": 500000, "state": "set"}
    assert found.report["mismatch_points"][0]["items"] == ["config.rope_theta"]


def test_a02_one_base_in_two_places_is_no_alarm(tmp_path: Path) -> None:
    found = align(
        tmp_path,
        {"rope_theta": 1000000, "rope_scaling": None},
        {"rope_parameters": {"rope_type": "default", "rope_theta": 1e6}},
    )
    assert (found.code, found.item("rope_theta")["status"], found.differing()) == (0, "EXACT", set())


@pytest.mark.parametrize("key", ["type", "rope_type"])
@pytest.mark.parametrize("divisor", [None, 8.0])
def test_a03_linear_scaling_that_was_lost(tmp_path: Path, key: str, divisor: float | None) -> None:
    """Both names mean the number that positions are divided by."""
    found = align(tmp_path, {"seq_len_interpolation_factor": divisor}, {"rope_scaling": {key: "linear", "factor": 8.0}})
    assert found.item("rope_factor")["status"] == ("DIFF" if divisor is None else "EXACT")
    assert found.item("rope_factor")["train"]["state"] == ("null" if divisor is None else "set")
    assert found.code == (1 if divisor is None else 0)


def test_a04_an_eps_that_one_module_does_not_take(tmp_path: Path) -> None:
    """Both files say 1e-6; a constructor's default is in force in one family of norms."""
    train: dict[str, Any] = {"layernorm_epsilon": 1e-06, **DENSE}
    train["modules"] = {
        **{f"layers.{layer}.{norm}.eps": eps for layer in (0, 1) for norm, eps in (("input_norm", 1e-06), ("post_norm", 1e-05))},
        "final_norm.eps": 1e-06,
    }  # fmt: skip
    infer = {"rms_norm_eps": 1e-06, "num_hidden_layers": 2, "hidden_size": 64, "num_attention_heads": 4}
    found = align(tmp_path, train, infer)
    assert (found.code, found.item("norm_eps")["status"]) == (1, "EXACT")
    assert found.differing() == {"modules.layers.N.post_norm.eps"}
    assert found.item("modules.layers.N.input_norm.eps")["status"] == found.item("modules.final_norm.eps")["status"] == "EXACT"
    item = found.item("modules.layers.N.post_norm.eps")
    assert "layers.0.post_norm.eps" in item["note"]
    assert "layers.1.post_norm.eps" in item["note"]
    assert "does not prove what a module uses" in found.report["mismatch_points"][0]["cause"]["text"]
    train["modules"] = {"layers.*.post_norm.eps": 1e-05}
    assert align(tmp_path, train, infer).differing() == {"modules.layers.N.post_norm.eps"}


def test_a05_levels_of_one_file_that_contradict(tmp_path: Path) -> None:
    """The wrapper says tied, its language model says not: which one is read depends on the reader."""
    wrapped = {"tie_word_embeddings": True, "text_config": {"tie_word_embeddings": False, "num_hidden_layers": 2}}
    found = align(tmp_path, {"share_embeddings_and_output_weights": False, "num_layers": 2}, wrapped)
    assert (found.code, found.item("tie_embeddings")["status"]) == (1, "EXACT")
    item = found.item("tie_embeddings.infer_sources")
    assert (item["kind"], item["status"], item["priority"]) == ("conflict", "DIFF", "switch")
    assert item["infer"]["value"] == {"text_config.tie_word_embeddings": False, "tie_word_embeddings": True}
    assert found.instruction["points"][0]["align_side"] == "infer"


def test_a06_tied_on_both_sides(tmp_path: Path) -> None:
    found = align(tmp_path, {"share_embeddings_and_output_weights": True}, {"tie_word_embeddings": True})
    assert (found.code, found.item("tie_embeddings")["status"]) == (0, "EXACT")


@pytest.mark.parametrize(("left", "status"), [(127, "EXACT"), (128, "DIFF"), (126, "DIFF")])
def test_a08_a_window_that_counts_the_token_itself_or_not(tmp_path: Path, left: int, status: str) -> None:
    found = align(tmp_path, {"window_size": [left, 0]}, {"sliding_window": 128})
    item = found.item("sliding_window")
    assert (item["status"], found.code) == (status, int(status == "DIFF"))
    assert ("off by one" in item["note"]) == (status == "DIFF")


def test_a09_the_effective_scale_of_yarn(tmp_path: Path) -> None:
    """0.1 · 0.707 · ln 40 + 1, squared, is 1.5896: transformers multiplies the logits by it; a trainer that reads mscale gets 1."""
    scaling = {"type": "yarn", "factor": 40, "original_max_position_embeddings": 4096}
    infer = {
        "kv_lora_rank": 16, "qk_nope_head_dim": 16, "qk_rope_head_dim": 8, "v_head_dim": 16,
        "rope_scaling": {**scaling, "mscale": 0.0, "mscale_all_dim": 0.707},
    }  # fmt: skip
    train = {
        "multi_latent_attention": True, "kv_lora_rank": 16, "qk_head_dim": 16, "qk_pos_emb_head_dim": 8, "v_head_dim": 16,
        "rope_type": "yarn", "rotary_scaling_factor": 40.0, "original_max_position_embeddings": 4096, "mscale": 0.0, "mscale_all_dim": 0.0,
    }  # fmt: skip
    found = align(tmp_path, train, infer)
    assert found.code == 1
    item = found.item("rope_softmax_factor")
    assert (item["status"], item["priority"], item["train"]["value"]) == ("DIFF", "derived", 1.0)
    assert item["infer"]["value"] == pytest.approx((0.0707 * math.log(40) + 1) ** 2)
    assert round(item["infer"]["value"], 4) == 1.5896
    assert found.item("softmax_scale")["status"] == "DIFF"
    for weight in (0.707, 1.0):
        infer["rope_scaling"] = {**scaling, "mscale": weight, "mscale_all_dim": weight}
        assert align(tmp_path, {**train, "mscale": weight, "mscale_all_dim": weight}, infer).code == 0


def test_a09_a_release_may_take_either_field(tmp_path: Path) -> None:
    """Where mscale and mscale_all_dim differ, the configuration does not tell which one megatron-core squares: said, not guessed."""
    scaling = {"type": "yarn", "factor": 40, "mscale": 1.0, "mscale_all_dim": 0.707}
    train = {"multi_latent_attention": True, "rope_type": "yarn", "rotary_scaling_factor": 40, "mscale": 1.0, "mscale_all_dim": 0.707}
    item = align(tmp_path, train, {"kv_lora_rank": 16, "rope_scaling": scaling}).item("rope_softmax_factor")
    assert (item["status"], len(item["train"]["value"])) == ("DIFF", 2)
    assert "Megatron-LM#1429" in item["note"]


@pytest.mark.parametrize(
    ("train", "infer", "status"),
    [
        ({"moe_router_pre_softmax": False}, {"norm_topk_prob": True}, "EXACT"),
        ({"moe_router_pre_softmax": False}, {"norm_topk_prob": False}, "DIFF"),
        ({"moe_router_pre_softmax": True}, {"norm_topk_prob": False}, "EXACT"),
        ({"moe_router_pre_softmax": True}, {"norm_topk_prob": True}, "DIFF"),
    ],
)
@pytest.mark.parametrize("sized", [True, False])
def test_a10_soft_max_before_or_after_top_k(tmp_path: Path, train: dict[str, Any], infer: dict[str, Any], status: str, sized: bool) -> None:
    """Soft-max, top-k and renormalising are soft-max over the chosen: the pair of fields decides, not either alone."""
    sides = ({**train, **MOE_TRAIN}, {**infer, **MOE}) if sized else (train, infer)
    item = align(tmp_path, *sides).item("router_norm_topk")
    assert (item["status"], item["priority"]) == (status, "switch")


def test_a10_sigmoid_scores_are_others(tmp_path: Path) -> None:
    train = {"moe_router_score_function": "softmax", "moe_router_pre_softmax": False, **MOE_TRAIN}
    found = align(tmp_path, train, {"scoring_func": "sigmoid", "norm_topk_prob": True, **MOE})
    assert (found.code, found.differing()) == (1, {"router_score"})


def test_a14_requested_and_not_in_force(tmp_path: Path) -> None:
    """A third list: the field and both values. A misspelt name is there as well, with the nearest one."""
    asked = {"bias_activation_fusion": True, "attention_softmax_in_fp32": True, "moe_router_dtyp": "fp32", "num_layers": 2}
    train = {**DENSE, "attention_softmax_in_fp32": False, "moe_router_dtype": None}
    infer = {"num_hidden_layers": 2, "hidden_size": 64, "num_attention_heads": 4}
    found = align(tmp_path, train, infer, requested=asked)
    assert found.code == 1
    assert found.report["requested_not_effective"] == [
        "requested.bias_activation_fusion", "requested.attention_softmax_in_fp32", "requested.moe_router_dtyp",
    ]  # fmt: skip
    items = found.items()
    assert items["requested.num_layers"]["status"] == "EXACT"
    assert items["requested.attention_softmax_in_fp32"]["train"] == {"key": "attention_softmax_in_fp32", "value": False, "state": "set"}
    assert "requested true, in force false" in items["requested.attention_softmax_in_fp32"]["note"]
    assert "the nearest name is moe_router_dtype" in items["requested.moe_router_dtyp"]["note"]
    causes = [point["cause"] for point in found.report["mismatch_points"]]
    assert {cause["values"]["field"]: cause["values"]["requested"] for cause in causes} == {
        "bias_activation_fusion": "true", "attention_softmax_in_fp32": "true", "moe_router_dtyp": "fp32",
    }  # fmt: skip


def test_a14_a_switch_that_the_installed_class_does_not_declare(tmp_path: Path) -> None:
    """Bridge writes enable_hyper_connections; Megatron's main branch declares enable_mhc_connections. Each spelling is right somewhere."""
    infer = {"num_hidden_layers": 2, "hc_mult": 4, "hc_sinkhorn_iters": 20}
    switches = ("enable_mhc_connections", "enable_hyper_connections")
    for declared, written in (switches, switches[::-1]):
        fields = {"num_layers": 2, declared: False, "mhc_sinkhorn_iterations": 20}
        lost = {"fields": fields, "extra": {written: True, "num_residual_streams": 4}}
        found = align(tmp_path, lost, infer)
        assert (found.code, found.report["items"][0]["canonical"]) == (1, "config.mhc_enable")
        assert found.item("mhc_enable")["priority"] == "switch"
        assert found.item("mhc_enable.train_sources")["kind"] == "conflict"
        kept = {"fields": {**fields, declared: True, "num_residual_streams": 4}, "extra": {}}
        assert align(tmp_path, kept, infer).code == 0
        nowhere = {"fields": {"num_layers": 2}, "extra": {written: True}}
        item = align(tmp_path, nowhere, infer).item("mhc_enable")
        assert (item["status"], item["kind"]) == ("DIFF", "undeclared")


def test_a16_what_cannot_change_a_prefill_is_listed(tmp_path: Path) -> None:
    same = {"num_hidden_layers": 2, "hidden_size": 64}
    train = {**same, "eos_token_id": [1, 2], "torch_dtype": "torch.bfloat16", "max_position_embeddings": 4096, "_name_or_path": "a"}
    infer = {**same, "eos_token_id": 1, "torch_dtype": "bfloat16", "max_position_embeddings": 8192, "_name_or_path": "b"}
    found = align(tmp_path, train, infer)
    listed = {name for name, item in found.items().items() if item["status"] == "DIFF"}
    assert listed == {"eos_token_id", "max_positions", "_name_or_path"}
    assert {found.item(name)["priority"] for name in listed} == {"no_effect"}
    assert (found.code, found.item("dtype")["status"], found.report["aligned"]) == (0, "EXACT", True)
    assert "3 difference(s) that cannot change a prefill value" in found.stdout


def test_a16_lengths_count_where_the_scaling_reads_them(tmp_path: Path) -> None:
    """Dynamic and longrope scaling take the longest length into the angles."""
    scaling = {"rope_scaling": {"rope_type": "dynamic", "factor": 2.0}, "rope_theta": 10000}
    found = align(tmp_path, {**scaling, "max_position_embeddings": 4096}, {**scaling, "max_position_embeddings": 8192})
    assert (found.code, found.item("max_positions")["priority"]) == (1, "hyper")


def test_c16_a_window_longer_than_the_prompt_is_a_difference_all_the_same(tmp_path: Path) -> None:
    """The dumps will not show it: the report says for which prompts it has no effect."""
    found = align(tmp_path, {"window_size": None}, {"sliding_window": 128})
    assert (found.code, found.item("sliding_window")["status"]) == (1, "DIFF")
    assert "no effect on prompts of at most that many tokens" in found.item("sliding_window")["note"]
    assert found.report["mismatch_points"][0]["impact"]["values"] == {"window": 128}


def test_d10_weights_that_nobody_compared_are_not_called_equal(done: Collected) -> None:
    """Equal configurations say nothing of weights: the layer is not checked, and stage 5 stays shut until it is, or is waived."""
    found = align(done.folder, {"num_layers": 2}, {"num_hidden_layers": 2})
    assert (found.code, found.report["layers"]["weights"]) == (0, "not_checked")
    done.parameters = found.report
    assert any("layers.weights is not_checked" in line for line in done.gaps(5))
    waived = align(done.folder, {"num_layers": 2}, {"num_hidden_layers": 2}, waivers=waive("layers.weights", "layers.structure"))
    done.parameters = waived.report
    done.open(5)


def test_a_waiver_lets_one_item_pass_and_no_other(tmp_path: Path) -> None:
    train, infer = {"layernorm_epsilon": 1e-5, "rotary_base": 10000}, {"rms_norm_eps": 1e-6, "rope_theta": 1000000}
    found = align(tmp_path, train, infer, waivers=waive("config.norm_eps", reason="same as upstream"))
    assert (found.code, found.item("norm_eps")["status"], found.differing()) == (1, "waived", {"rope_theta"})
    assert found.report["waivers"] == [{"id": "config.norm_eps", "reason": "same as upstream"}]
    found = align(tmp_path, train, infer, waivers=waive("config.norm_eps", "config.rope_theta", "config.nothing"))
    assert (found.code, found.report["mismatch_points"], found.report["aligned"]) == (0, [], True)
    assert "the waiver of config.nothing fits no item" in found.stderr


def test_a_field_map_joins_what_no_table_knows(tmp_path: Path) -> None:
    """Other names, nested paths, and what one side cannot say."""
    rows = [
        {"canonical": "config.gate", "train": "inner.gate_scale", "infer": "gating.scale", "priority": "hyper"},
        {"canonical": "config.extra_norm", "train": "use_extra_norm", "infer": None, "infer_expected": True, "priority": "switch"},
        {"canonical": "config.typo", "train": "nowhere", "infer": "neither", "priority": "hyper"},
    ]
    train = {"inner": {"gate_scale": "1e-3"}, "use_extra_norm": True}
    found = align(tmp_path, train, {"gating": {"scale": 0.001}}, mapping=field_map(*rows))
    assert (found.code, found.item("gate")["status"], found.item("extra_norm")["infer"]["state"]) == (0, "EXACT", "default")
    assert "config.typo: neither side has nowhere" in found.stderr
    found = align(tmp_path, {**train, "use_extra_norm": False}, {"gating": {"scale": 0.002}}, mapping=field_map(*rows))
    assert (found.code, found.differing()) == (1, {"gate", "extra_norm"})
    assert [item["priority"] for item in found.report["items"]] == ["switch", "hyper"]


def test_a_field_map_wins_over_the_table(tmp_path: Path) -> None:
    """What a person joined is compared once, with the priority that they gave it; the rest of the table still runs."""
    rows = [{"canonical": "config.my_eps", "train": "layernorm_epsilon", "infer": "special_eps", "priority": "hyper", "note": "one site"}]
    infer = {"rms_norm_eps": 1e-5, "special_eps": 1e-6, "num_hidden_layers": 2}
    train = {"layernorm_epsilon": 1e-6, "num_layers": 3}
    found = align(tmp_path, train, infer, mapping=field_map(*rows))
    assert found.item("my_eps")["status"] == "EXACT"
    assert found.item("num_layers")["status"] == "DIFF"


@pytest.mark.parametrize(
    ("flag", "value", "said"),
    [
        ("mapping", {"schema": "param_alignment_field_map/1", "fields": [{"canonical": "x", "trian": "a"}]}, "Did you mean 'train'?"),
        ("mapping", field_map({"canonical": "x", "train": "a", "infer": "b", "priority": "hype"}), "fields[0].priority: expected one of"),
        ("mapping", field_map({"canonical": "x"}), "a path of at least one side"),
        ("mapping", {"schema": "param_alignment_field_map/2", "fields": []}, "expected 'param_alignment_field_map/1'"),
        ("mapping", {"schema": "param_alignment_field_map/1", "fields": [3]}, "expected a list of objects"),
        ("waivers", waive("config.x", reason=" "), "waivers[0].reason: expected a text"),
        (
            "waivers",
            {"schema": "param_alignment_waivers/1", "waivers": [{"item": "a", "reason": "b", "by": "agent"}]},
            "Only the user waives",
        ),
        ("waivers", {"schema": "param_alignment_waivers/1", "waiver": []}, "unknown key 'waiver'"),
        ("requested", {}, "asks for nothing"),
        ("train_cfg", {}, "holds no field"),
    ],
)
def test_files_that_cannot_be_used_are_refused_in_one_line(tmp_path: Path, flag: str, value: dict[str, Any], said: str) -> None:
    sides = {"train": {"num_layers": 2}, "infer": {"num_hidden_layers": 2}}
    if flag == "train_cfg":
        sides["train"] = value
        found = align(tmp_path, **sides)
    else:
        found = align(tmp_path, **sides, **{flag: value})
    assert (found.code, found.report) == (2, {})
    (line,) = found.stderr.splitlines()
    assert said in line


def test_two_files_without_a_common_field_are_no_comparison(tmp_path: Path) -> None:
    """Nothing compared is not open; the report is there all the same and says so."""
    found = align(tmp_path, {"a": 1}, {"b": 2})
    assert (found.code, found.report["layers"]["config"], found.report["items"]) == (2, "not_checked", [])


def test_numbers_are_compared_as_numbers_and_never_with_a_tolerance(tmp_path: Path) -> None:
    path = tmp_path / "infer.json"
    (tmp_path / "train.json").write_text('{"layernorm_epsilon": 1e-6, "rotary_base": 10000, "hidden_size": 64}')
    for eps, code in (("1e-06", 0), ("0.000001", 0), ('"1e-6"', 0), ("1.0000001e-06", 1), ("NaN", 1)):
        path.write_text(f'{{"rms_norm_eps": {eps}, "rope_theta": 10000.0, "hidden_size": 64}}')
        ran = run_collection("param_align_check.py", "--train-cfg", tmp_path / "train.json", "--infer-cfg", path, "--workdir", tmp_path)
        assert ran.returncode == code, (eps, ran.stderr)
        json.loads((tmp_path / "param_alignment_report.json").read_text(), parse_constant=lambda name: pytest.fail(name))


def test_one_is_not_true_and_null_is_not_absent(tmp_path: Path) -> None:
    """q_lora_rank null removes a projection; a key that is missing says nothing of it."""
    mla = {"kv_lora_rank": 16, "multi_latent_attention": True}
    found = align(tmp_path, {**mla, "q_lora_rank": 8}, {"kv_lora_rank": 16, "q_lora_rank": None})
    assert (found.item("q_lora_rank")["status"], found.item("q_lora_rank")["infer"]["state"]) == ("DIFF", "null")
    found = align(tmp_path, {**mla, "q_lora_rank": 8}, {"kv_lora_rank": 16})
    assert (found.item("q_lora_rank")["status"], found.item("q_lora_rank")["infer"]["state"]) == ("MISSING_SIDE", "absent")
    assert align(tmp_path, {"same_key": 1, "hidden_size": 8}, {"same_key": True, "hidden_size": 8}).differing() == {"same_key"}


def test_coverage_names_what_no_comparison_consumed(tmp_path: Path) -> None:
    train = {"num_layers": 2, "strange": 1, "nested": {"odd": [1, 2]}}
    coverage = align(tmp_path, train, {"num_hidden_layers": 2, "peculiar": None}).report["coverage"]
    assert coverage["train"] == {"compared": 1, "fields": 3, "not_compared": ["nested.odd", "strange"]}
    assert coverage["infer"] == {"compared": 1, "fields": 2, "not_compared": ["peculiar"]}


def test_an_unknown_models_class_is_asked_for_not_guessed(tmp_path: Path) -> None:
    """A qk-norm that only the class could say: the field map or a waiver answers."""
    train, infer = {"qk_layernorm": False, "num_layers": 2}, {"model_type": "brand_new", "num_hidden_layers": 2}
    found = align(tmp_path, train, infer)
    assert (found.code, found.item("qk_norm")["status"]) == (1, "MISSING_SIDE")
    assert "infer_expected" in found.item("qk_norm")["note"]
    row = {"canonical": "config.qk_norm", "train": "qk_layernorm", "infer": None, "infer_expected": True, "priority": "switch"}
    assert align(tmp_path, train, infer, mapping=field_map(row)).item("qk_norm")["status"] == "DIFF"
    assert align(tmp_path, {**train, "qk_layernorm": True}, infer, mapping=field_map(row)).code == 0


def test_the_same_input_gives_the_same_bytes(tmp_path: Path) -> None:
    train, infer = {"num_layers": 2, "b": 1, "a": 2}, {"num_hidden_layers": 3, "a": 2, "b": 1}
    read = []
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        align(tmp_path / name, train, infer)
        read.append([path.read_bytes() for path in sorted((tmp_path / name / "work").iterdir())])
    assert read[0] == read[1]
    assert str(tmp_path).encode() not in b"".join(read[0])


@pytest.mark.parametrize(
    ("model", "pattern", "every"),
    [("gemma2", {}, 2), ("gemma3_text", {}, 6), ("gemma3_text", {"sliding_window_pattern": 3}, 3), ("cohere2", {}, 4)],
)
def test_layers_with_the_window_are_the_same_in_both_spellings(tmp_path: Path, model: str, pattern: dict[str, int], every: int) -> None:
    """transformers 4 files leave the layers to the class, 5 lists them: one model, and another where one layer is another."""
    older = {"model_type": model, "num_hidden_layers": 12, "sliding_window": 8, **pattern}
    kinds = ["full_attention" if (layer + 1) % every == 0 else "sliding_attention" for layer in range(12)]
    newer = {"model_type": model, "num_hidden_layers": 12, "sliding_window": 8, "layer_types": kinds}
    assert align(tmp_path, older, newer).differing() == set()
    found = align(
        tmp_path,
        older,
        {**newer, "layer_types": [*kinds[:-1], "sliding_attention"]},
    )
    assert found.differing() == {"window_layers"}


@pytest.mark.parametrize(
    ("train", "infer", "status"),
    [
        ({"vocab_size": 1024}, 1000, "EXACT"),
        ({"vocab_size": 1000}, 1000, "EXACT"),
        ({"vocab_size": 1003}, 1000, "DIFF"),
        ({"vocab_size": 960}, 1000, "DIFF"),
        ({"vocab_size": 1024, "make_vocab_size_divisible_by": 128, "should_pad_vocab": True}, 1000, "DIFF"),
    ],
)
def test_a13_the_size_of_a_built_model_counts_its_padding(tmp_path: Path, train: dict[str, Any], infer: int, status: str) -> None:
    """GPTModel holds the padded size; a provider says the words' own and how to pad: there another number is another vocabulary."""
    found = align(
        tmp_path, {"num_layers": 2, "num_query_groups": 2, **train}, {"num_hidden_layers": 2, "num_key_value_heads": 2, "vocab_size": infer}
    )
    item = found.item("vocab_size")
    assert (item["status"], found.code) == (status, int(status == "DIFF"))
    assert ("24 rows of train pad the vocabulary" in str(item["note"])) == (status == "EXACT" and train["vocab_size"] == 1024)
