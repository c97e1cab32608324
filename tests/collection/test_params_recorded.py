"""Recorded providers beside the configurations that they were built from: what the bridge kept, and what it lost without a word."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from collection.aligning import Aligned, compare_files
from running import ROOT

SAMPLES = ROOT / "tests/samples/providers"


def check(work: Path, name: str) -> Aligned:
    """What the command says of a recorded pair."""
    return compare_files(work, SAMPLES / name / "provider.json", SAMPLES / name / "config.json")


@pytest.mark.parametrize("name", ["qwen2", "qwen3", "qwen3_moe", "deepseek_v3", "llama3", "qwen3_moe-in_force"])
def test_what_the_bridge_kept_opens_the_gate(tmp_path: Path, name: str) -> None:
    """A false alarm here would stop every collection with this model."""
    found = check(tmp_path, name)
    assert (found.code, found.differing(), found.report["mismatch_points"], found.report["aligned"]) == (0, set(), [], True)


@pytest.mark.parametrize("name", ["qwen2", "qwen3", "qwen3_moe", "deepseek_v3", "llama3", "qwen3_moe-in_force"])
def test_one_number_changed_in_the_engines_file_is_named_and_nothing_else(tmp_path: Path, name: str) -> None:
    """The negative control of each pair that is aligned."""
    config = json.loads((SAMPLES / name / "config.json").read_text(encoding="utf-8"))
    changed = tmp_path / "config.json"
    changed.write_text(json.dumps({**config, "rms_norm_eps": 3e-5}), encoding="utf-8")
    found = compare_files(tmp_path / "work", SAMPLES / name / "provider.json", changed)
    item = found.item("norm_eps")
    assert (found.code, found.differing(), item["priority"], item["infer"]["value"]) == (1, {"norm_eps"}, "hyper", 3e-5)


def test_a_derived_head_size_is_equal_and_a_class_says_its_bias(tmp_path: Path) -> None:
    """Qwen2's kv_channels is null (896 / 14), its q, k, v bias stands in no config.json."""
    items = check(tmp_path, "qwen2").items()
    head = items["head_dim"]
    assert (head["status"], head["priority"], head["train"]["state"], head["infer"]["state"]) == ("EXACT", "derived", "null", "default")
    bias = items["attn_bias"]
    assert bias["train"] == {"key": "fields.add_qkv_bias", "value": True, "state": "set"}
    assert (bias["status"], bias["infer"]["state"]) == ("EXACT", "default")


def test_qwen3s_own_head_size_and_its_implied_norms(tmp_path: Path) -> None:
    items = check(tmp_path, "qwen3").items()
    assert items["head_dim"]["train"]["value"] == items["head_dim"]["infer"]["value"] == 128
    assert items["qk_norm"]["status"] == "EXACT"
    assert "qwen3" in items["qk_norm"]["note"]


def test_a_rotary_base_that_the_bridge_lost(tmp_path: Path) -> None:
    """transformers 4 does not know rope_parameters: the base falls back to its class's 10000."""
    found = check(tmp_path, "qwen3-v5-config")
    item = found.item("rope_theta")
    assert (found.code, found.differing(), item["status"], item["priority"]) == (1, {"rope_theta"}, "DIFF", "hyper")
    assert item["train"] == {"key": "fields.rotary_base", "value": 10000.0, "state": "set"}
    assert item["infer"] == {"key": "rope_parameters.rope_theta", "value": 1000000.0, "state": "set"}


def test_yarn_that_was_asked_for_and_is_not_built(tmp_path: Path) -> None:
    """The factors are equal: a check of numbers alone would call it aligned. The switch decides."""
    found = check(tmp_path, "qwen3-yarn")
    report, items = found.report, found.items()
    assert (found.code, report["items"][0]["canonical"]) == (1, "config.pos_embedding")
    assert (items["pos_embedding"]["status"], items["pos_embedding"]["priority"]) == ("DIFF", "switch")
    assert report["requested_not_effective"] == ["config.rope_factor", "config.rope_orig_max"]
    for name in ("rope_factor", "rope_orig_max"):
        item = items[name]
        assert item["train"]["value"] == item["infer"]["value"]
        assert (item["status"], item["kind"], item["priority"]) == ("DIFF", "requested_not_effective", "switch")
    (point,) = report["mismatch_points"]
    assert point["cause"]["kind"] == "switch_overwritten"
    assert point["items"][:3] == ["config.pos_embedding", "config.rope_factor", "config.rope_orig_max"]


def test_normalised_weights_of_the_router_are_one_field_here_and_another_there(tmp_path: Path) -> None:
    item = check(tmp_path, "qwen3_moe").item("router_norm_topk")
    assert (item["train"]["key"], item["infer"]["key"], item["status"]) == ("fields.moe_router_pre_softmax", "norm_topk_prob", "EXACT")


def test_a_next_token_head_is_told_and_does_not_shut(tmp_path: Path) -> None:
    """It is no part of the main model's prefill; what only training reads is not compared at all."""
    found = check(tmp_path, "deepseek_v3")
    report, items = found.report, found.items()
    assert (items["mtp_layers"]["status"], items["mtp_layers"]["priority"]) == ("DIFF", "no_effect")
    assert "fields.moe_aux_loss_coeff" in report["coverage"]["train"]["not_compared"]
    assert "aux_loss_alpha" in report["coverage"]["infer"]["not_compared"]
    for name in ("moe_layers", "shared_ffn", "router_groups", "router_scale", "q_lora_rank", "rope_factor", "softmax_scale"):
        assert items[name]["status"] == "EXACT", name


def test_numbers_that_megatron_holds_in_code_are_named(tmp_path: Path) -> None:
    items = check(tmp_path, "llama3").items()
    for name, value in (("rope_low_freq", 1.0), ("rope_high_freq", 4.0), ("rope_orig_max", 8192)):
        assert items[name]["train"] == {"key": None, "value": value, "state": "default"}
        assert items[name]["status"] == "EXACT"
        assert "constant in megatron-core" in items[name]["note"]
