"""Files beside the command: the field map to copy, the example of an instruction, and configurations in their several forms."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
from pathlib import Path
from typing import Any

import pytest
from collection.aligning import align, compare_files, field_map
from collection.collecting import Collected
from dump_collection.params import table, written
from laying import lay_out
from running import COLLECTION, ROOT, run_collection

SAMPLES = ROOT / "tests/samples/providers"
REFERENCES = COLLECTION.parent / "references"


def test_the_field_map_to_copy_is_read_and_fits_a_recording(tmp_path: Path) -> None:
    """Its rows name fields of real files: who copies it begins with something that compares."""
    path = COLLECTION / "param_alignment_mapping.example.json"
    assert {row.canonical for row in written.field_map(str(path))} >= {"config.qk_norm", "config.norm_eps"}
    folder = SAMPLES / "qwen3-v5-config"
    found = compare_files(tmp_path, folder / "provider.json", folder / "config.json", "--mapping", path)
    assert (found.code, found.differing()) == (1, {"rope_theta"})
    assert found.item("qk_norm")["infer"] == {"key": None, "value": True, "state": "default"}
    assert found.item("rope_theta")["status"] == "DIFF"


def test_the_example_of_an_instruction_has_the_form_that_the_command_writes(tmp_path: Path) -> None:
    """One point of each method."""
    example = json.loads((REFERENCES / "templates/param_alignment_instruction.example.json").read_text(encoding="utf-8"))
    made = align(tmp_path, {"num_layers": 2}, {"num_hidden_layers": 3}).instruction
    assert example.keys() == made.keys()
    assert {tuple(point) for point in example["points"]} == {tuple(made["points"][0])}
    assert [point["method"] for point in example["points"]] == ["config", "code", "weight"]


def test_items_that_the_reference_names_are_items() -> None:
    """A reader looks them up in the report."""
    text = (REFERENCES / "param-alignment.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| ([a-z_、]+) \|.*\| (?:switch|hyper|derived|no_effect)[^|]*\|", text, re.MULTILINE)
    names = {name for row in rows for name in row.split("、")}
    assert len(names) > 20
    assert names <= set(table.BY_NAME)


def test_priorities_of_fields_stand_beside_their_names_in_the_table() -> None:
    """No field twice, none of an unknown priority, none that is under a field which is not there or comes later."""
    names = [field.name for field in table.FIELDS]
    assert len(names) == len(set(names))
    assert {field.priority for field in table.FIELDS} <= set(table.PRIORITIES)
    for at, field in enumerate(table.FIELDS):
        assert set(field.under) <= set(names[:at]), field.name


def test_two_configurations_of_transformers(tmp_path: Path) -> None:
    """An FSDP trainer has the same names as the engine, in its own version's spelling."""
    train = {"model_type": "qwen3", "num_hidden_layers": 2, "rope_theta": 1e6, "rope_scaling": None, "torch_dtype": "bfloat16"}
    infer = {
        "model_type": "qwen3", "num_hidden_layers": 2, "rope_parameters": {"rope_type": "default", "rope_theta": 1000000},
        "dtype": "torch.bfloat16", "layer_types": ["full_attention"] * 2,
    }  # fmt: skip
    assert align(tmp_path, train, infer).code == 0
    found = align(tmp_path, {**train, "model_type": "qwen2"}, infer)
    assert (found.code, found.report["items"][0]["canonical"]) == (1, "config.model_type")


def test_a_language_model_inside_others(tmp_path: Path) -> None:
    """What describes the language model is the authority; vision has its own hidden size."""
    infer = {
        "model_type": "qwen2_5_vl", "vision_config": {"hidden_size": 1280, "num_heads": 16},
        "text_config": {"model_type": "qwen2_text", "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "head_dim": 16},
    }  # fmt: skip
    train = {"hidden_size": 64, "num_layers": 2, "num_attention_heads": 4, "kv_channels": None, "add_qkv_bias": True}
    found = align(tmp_path, train, infer)
    assert (found.code, found.item("hidden_size")["infer"]["key"]) == (0, "text_config.hidden_size")
    assert found.item("attn_bias")["status"] == "EXACT"
    assert "vision_config.hidden_size" in found.report["coverage"]["infer"]["not_compared"]


def test_gemmas_nested_rotary_parameters(tmp_path: Path) -> None:
    """Two bases, one for each kind of layer."""
    nested = {"full_attention": {"rope_type": "default", "rope_theta": 1e6}, "sliding_attention": {"rope_theta": 10000.0}}
    flat = {"rope_theta": 1000000, "rope_local_base_freq": 10000, "num_hidden_layers": 2}
    found = align(tmp_path, flat, {"rope_parameters": nested, "num_hidden_layers": 2})
    assert (found.code, found.item("rope_theta")["status"], found.item("rope_local_theta")["status"]) == (0, "EXACT", "EXACT")
    nested["sliding_attention"]["rope_theta"] = 1e6
    assert align(tmp_path, flat, {"rope_parameters": nested, "num_hidden_layers": 2}).differing() == {"rope_local_theta"}


def test_two_spellings_of_one_value_that_disagree(tmp_path: Path) -> None:
    infer = {
        "rope_theta": 10000,
        "rope_parameters": {"rope_theta": 1000000, "rope_type": "default"},
        "torch_dtype": "float16",
        "dtype": "bf16",
    }
    found = align(tmp_path, {"rotary_base": 1000000, "params_dtype": "torch.bfloat16"}, infer)
    assert found.differing() == {"rope_theta.infer_sources", "dtype.infer_sources"}
    assert {item["kind"] for item in found.report["items"] if item["canonical"].endswith("_sources")} == {"conflict"}


def test_an_expectation_that_the_engine_does_not_meet(tmp_path: Path) -> None:
    row = {"canonical": "gate", "train": "gate", "infer": "gating", "infer_expected": "sigmoid", "priority": "switch"}
    found = align(tmp_path, {"gate": "tanh"}, {"gating": "tanh"}, mapping=field_map(row))
    assert (found.code, found.item("gate")["kind"], found.item("gate")["priority"]) == (1, "expectation", "switch")
    assert align(tmp_path, {"gate": "sigmoid"}, {"gating": "sigmoid"}, mapping=field_map(row)).code == 0
    assert align(tmp_path, {"gate": "sigmoid"}, {"other": 1}, mapping=field_map(row)).code == 0
    assert align(tmp_path, {"gate": "tanh"}, {"other": 1}, mapping=field_map(row)).code == 1


def test_a_module_that_the_engine_always_has_and_the_trainer_never_names(tmp_path: Path) -> None:
    """The mHC case: no key on either side says it; the person who knows the engine does."""
    row = {"canonical": "config.mhc_enable", "train": "enable_mhc_connections", "infer": None, "infer_expected": True, "priority": "switch"}
    sides = ({"num_layers": 2}, {"num_hidden_layers": 2})
    found = align(tmp_path, *sides, mapping=field_map(row))
    assert (found.code, found.item("mhc_enable")["status"], found.item("mhc_enable")["priority"]) == (1, "MISSING_SIDE", "switch")


def test_a_mapped_switch_leads_its_point(tmp_path: Path) -> None:
    """What follows from a switch stays with it, whoever joined the switch."""
    folder = SAMPLES / "qwen3-yarn"
    joined = {
        "config.pos_embedding": ("fields.position_embedding_type", "rope_scaling.rope_type", "switch"),
        "config.rope_factor": ("extra.yarn_rotary_scaling_factor", "rope_scaling.factor", "hyper"),
    }
    rows = [{"canonical": name, "train": row[0], "infer": row[1], "priority": row[2]} for name, row in joined.items()]
    path = tmp_path / "map.json"
    path.write_text(json.dumps(field_map(*rows)))
    found = compare_files(tmp_path, folder / "provider.json", folder / "config.json", "--mapping", path)
    assert [point["items"][0] for point in found.report["mismatch_points"]] == ["config.pos_embedding"]
    assert found.report["requested_not_effective"] == ["config.rope_factor", "config.rope_orig_max"]


@pytest.fixture
def done(tmp_path: Path) -> Collected:
    """A folder in which every stage is done."""
    pair = lay_out("qwen2-hf-vllm-clean", tmp_path)
    folder = tmp_path / "run"
    folder.mkdir()
    return Collected(folder, pair.train, pair.infer)


def test_stage_5_opens_on_what_the_command_wrote(done: Collected) -> None:
    """The command's report, as it stands in the folder, with differences that cannot change a prefill."""
    folder = SAMPLES / "deepseek_v3"
    shapes = done.folder / "shapes.json"
    shapes.write_text(json.dumps({"model.embed_tokens.weight": [128, 32]}))
    waivers = done.folder / "w.json"
    waivers.write_text(
        json.dumps({"schema": written.WAIVERS, "waivers": [{"item": "layers.weights", "reason": "same checkpoint", "by": "user"}]})
    )
    found = compare_files(
        done.folder, folder / "provider.json", folder / "config.json",
        "--train-weights", shapes, "--infer-weights", shapes, "--waivers", waivers,
    )  # fmt: skip
    assert found.code == 0
    assert {item["status"] for item in found.report["items"]} >= {"EXACT", "DIFF"}
    done.parameters = found.report
    done.open(5)
    last = found.stdout.splitlines()[-1]
    assert last.startswith("next: ")
    ran = subprocess.run(shlex.split(last.replace("next: ", "", 1)), capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr


@pytest.mark.parametrize("layer", ["structure", "weights"])
def test_a_layer_that_nobody_checked_shuts_stage_5_and_6(done: Collected, layer: str) -> None:
    done.parameters["layers"][layer] = "not_checked"
    for stage in (5, 6):
        (line,) = [line for line in done.gaps(stage) if "stage 5" in line]
        assert f"layers.{layer} is not_checked" in line
        assert "--train-weights and --infer-weights" in line
    done.parameters["waivers"] = [{"id": f"layers.{layer}", "reason": "the user accepts it"}]
    done.open(5)


@pytest.mark.parametrize("language", ["en", "zh-CN"])
def test_each_point_is_one_line_in_either_language(tmp_path: Path, language: str) -> None:
    folder = SAMPLES / "qwen3-yarn"
    more: list[Any] = ["--lang", language]
    found = compare_files(tmp_path, folder / "provider.json", folder / "config.json", *more)
    (line,) = found.stderr.splitlines()
    assert line.startswith("param P1")
    assert "position_embedding_type" in line
    assert len(found.stdout) < 2000
    assert found.stdout.splitlines()[-1].startswith("next: ")
    ran = run_collection(
        "param_align_check.py", "--train-cfg", folder / "provider.json", "--infer-cfg", folder / "config.json", "--workdir", tmp_path,
        "--json", "--output", tmp_path / "other.json", "--instruction", tmp_path / "what.json",
    )  # fmt: skip
    assert json.loads(ran.stdout) == json.loads((tmp_path / "other.json").read_text()) == found.report
    assert json.loads((tmp_path / "what.json").read_text()) == found.instruction


@pytest.mark.parametrize(
    ("asked", "train", "meets"),
    [
        ({"rope_theta": 1000000}, {"rotary_base": 1e6}, True),
        ({"rope_theta": 1000000}, {"rotary_base": 1e4}, False),
        ({"norm_topk_prob": True}, {"moe_router_pre_softmax": False}, True),
        ({"norm_topk_prob": True}, {"moe_router_pre_softmax": True}, False),
        ({"sliding_window": 128}, {"window_size": [127, 0]}, True),
        ({"num_key_value_heads": 2}, {"num_query_groups": 4}, False),
        ({"fields": {"num_layers": 2}}, {"fields": {"num_layers": 2}}, True),
        ({"fused": True}, {"fields": {"num_layers": 2}, "extra": {"fused": True}}, False),
    ],
)
def test_a_request_is_met_by_what_is_in_force_under_any_name(
    tmp_path: Path, asked: dict[str, Any], train: dict[str, Any], meets: bool
) -> None:
    """A run asks in the names that it knows; an attribute that nothing reads does not meet it."""
    found = align(tmp_path, train, {"num_hidden_layers": 2}, requested=asked)
    (item,) = [item for item in found.report["items"] if item["canonical"].startswith("requested.")]
    assert (item["status"] == "EXACT") == meets
    assert (item["canonical"] in found.report["requested_not_effective"]) != meets


def test_a_model_without_experts_says_so_in_several_ways(tmp_path: Path) -> None:
    for none in (None, 0):
        assert (
            align(tmp_path, {"num_moe_experts": None}, {"num_experts": none, "num_hidden_layers": 2}).item("num_experts")["status"]
            == "EXACT"
        )


def test_yarn_without_mscale_is_the_same_scale(tmp_path: Path) -> None:
    """Megatron's fields have defaults where config.json has no key: what they amount to decides."""
    infer = {"kv_lora_rank": 16, "rope_scaling": {"type": "yarn", "factor": 4.0, "original_max_position_embeddings": 4096}}
    train = {
        "multi_latent_attention": True, "kv_lora_rank": 16, "rope_type": "yarn", "rotary_scaling_factor": 4, "mscale": 1.0,
        "mscale_all_dim": 0.0, "original_max_position_embeddings": 4096, "beta_fast": 32, "beta_slow": 1,
    }  # fmt: skip
    found = align(tmp_path, train, infer)
    assert found.differing() == {"rope_softmax_factor"}  # of the two fields only one gives the factor 1: the release decides
    assert found.item("rope_cos_sin_factor")["status"] == "EXACT"
