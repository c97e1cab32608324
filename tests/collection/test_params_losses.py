"""What a bridge loses without a word, from its own recordings: each is found, as the switch or the number that it is."""

from __future__ import annotations

from pathlib import Path

import pytest
from collection.aligning import Aligned, compare_files
from running import ROOT

SAMPLES = ROOT / "tests/samples/providers"


def check(work: Path, name: str) -> Aligned:
    return compare_files(work, SAMPLES / name / "provider.json", SAMPLES / name / "config.json")


@pytest.mark.parametrize(
    ("name", "lost", "priority", "point"),
    [
        ("qwen2-v5-config", "rope_theta", "hyper", {"rope_theta"}),
        ("llama3-linear", "rope_type", "switch", {"rope_type", "rope_factor"}),
        ("qwen2-yarn", "pos_embedding", "switch", {"pos_embedding", "rope_factor", "rope_orig_max", "rope_cos_sin_factor"}),
        ("qwen2-window", "sliding_window", "switch", {"sliding_window", "window_layers"}),
        ("gpt_oss", "sliding_window", "switch", {"sliding_window"}),
        ("deepseek_v3-no_scoring_func", "router_score", "switch", {"router_score", "router_norm_topk"}),
    ],
)
def test_a_lost_field_is_one_point_and_the_first(tmp_path: Path, name: str, lost: str, priority: str, point: set[str]) -> None:
    """Nothing else differs: a check that cries for more is not believed."""
    found = check(tmp_path, name)
    assert (found.code, found.differing()) == (1, point)
    assert found.item(lost)["priority"] == priority
    (told,) = found.report["mismatch_points"]
    assert told["items"][0] == "config." + lost
    assert {item.replace("config.", "", 1) for item in told["items"]} == point


def test_a_window_one_token_too_wide(tmp_path: Path) -> None:
    item = check(tmp_path, "gpt_oss").item("sliding_window")
    assert (item["train"]["value"], item["infer"]["value"]) == ([128, 0], 128)
    assert "off by one: 129 against 128" in item["note"]


def test_attributes_that_the_code_reads_are_in_force(tmp_path: Path) -> None:
    """gpt-oss's yarn_* are no fields of its class either, but its position embedding is YaRN: GPTModel reads them by name."""
    found = check(tmp_path, "gpt_oss")
    assert found.item("rope_factor")["train"] == {"key": "extra.yarn_rotary_scaling_factor", "value": 32.0, "state": "set"}
    assert found.item("rope_factor")["status"] == found.item("rope_truncate")["status"] == "EXACT"
    assert found.report["requested_not_effective"] == []


def test_a_next_token_head_that_training_lacks(tmp_path: Path) -> None:
    found = check(tmp_path, "deepseek_v3")
    item = found.item("mtp_layers")
    assert (item["status"], item["priority"], item["train"]["state"], found.code) == ("DIFF", "no_effect", "null", 0)


def test_a_name_that_is_no_field(tmp_path: Path) -> None:
    """The provider took it, finalize() passed, nothing reads it."""
    found = check(tmp_path, "qwen3-hyper")
    assert (found.code, found.differing()) == (1, {"mhc_enable", "extra.num_residual_streams"})
    assert found.item("mhc_enable")["kind"] == "undeclared"
    assert set(found.report["requested_not_effective"]) == {"config.mhc_enable", "config.extra.num_residual_streams"}
    assert {point["method"] for point in found.instruction["points"]} == {"code"}


def test_a_value_that_equals_its_librarys_default_is_called_lost(tmp_path: Path) -> None:
    (point,) = check(tmp_path, "qwen2-v5-config").report["mismatch_points"]
    assert point["cause"]["kind"] == "value_lost"
    assert point["cause"]["values"] == {"field": "rotary_base", "train": 10000.0, "infer": 1000000.0}
