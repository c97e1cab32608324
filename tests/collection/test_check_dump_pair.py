"""The gate on real dumps: sample pairs of several engines, dumps of several msprobe releases, and what happens to files."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from laying import SAMPLES, Sample, lay_out
from running import COLLECTION, run_collection

CLEAN = SAMPLES / "qwen2-hf-vllm-clean"
VERSIONS = SAMPLES / "versions"
# What is no fault of comparability is open, whatever else is wrong: weights, norms, rotation (tests/samples/README.md).
SHUT: dict[str, set[str]] = {
    "qwen2-hf-vllm-clean": set(),
    "qwen2-hf-vllm-kv_swapped": set(),
    "qwen2-hf-vllm-rms_eps": set(),
    "qwen2-vllm-onset-stale_o_proj": set(),
    "qwen2-fsdp1_rank0-vllm-clean": set(),
    "qwen2-fsdp2_rank0-vllm-clean": set(),
    "qwen2-hf-sglang-clean": set(),
    "qwen2-hf-sglang512-clean": set(),
    "qwen2-megatron_tp1-sglang-rope_theta": set(),
    "qwen2-megatron_te_shaped-sglang-clean": set(),
    "qwen3_moe-megatron_tp1-sglang-clean": set(),
    "qwen2-toy-26.2.0": set(),
    "several/qwen3-megatron_tp2-sglang_tp2-clean": set(),
    "several/qwen2-megatron_pp2-hf-clean": set(),
    "qwen2-hf-vllm-padding": {"prompt_length", "no_padding", "embedding_shape"},
    "qwen2-hf-vllm-token_diff": {"tokens_equal"},
    "qwen2-hf-vllm_no_weights-two_requests": {"one_request_per_step"},
    "several/qwen2-hf-vllm_no_weights-chunked": {"no_chunked_prefill"},
    "several/qwen2-hf-sglang-cached_prefix": {"no_chunked_prefill"},
}
# Each defect that tests/samples/versions/PROVENANCE.md names has a check of its own; True: it shuts the gate.
DEFECTS = {
    "8.1.2/mini_tensor": ("inputs_before_call", False),
    "8.3.3/mini_tensor": ("inputs_before_call", False),
    "26.0.0/fp8": ("files_as_recorded", False),
    "26.1.0.post1/norms_infer": ("nothing_filtered", False),
    "26.2.0/killed": ("not_killed", True),
    "26.2.0/second_call": ("no_second_call", True),
    "26.2.0/stale": ("no_stale_files", False),
    "26.2.0/two_proc": ("one_dump_per_step", True),
    "26.2.0/verl_rule": ("head_present", True),
    "26.2.0/mix_stat": ("tensors_recorded", True),
    "26.2.0/l1_stat": ("modules_recorded", True),
    "26.2.0/megatron_micro": ("no_second_call", True),
    "26.2.0/md5": ("tensors_recorded", True),
    "26.2.0/xor": ("tensors_recorded", True),
    "26.2.0/structure": ("tensors_recorded", True),
    "26.2.0/no_extra": ("trace_recorded", False),
    "26.2.0/sliced": ("no_slack", False),
    "26.2.0/recompute": ("no_recompute", True),
    "26.2.0/fsdp1_flat": ("weights_by_module", False),
    "26.2.0/dtensor_tp": ("everything_saved", False),
}


def check(tmp_path: Path, train: Path, infer: Path, *more: str | Path, code: int) -> dict[str, Any]:
    """The report of a pair, which the command writes whatever it says."""
    ran = run_collection("check_dump_pair.py", "--train", train, "--infer", infer, "--workdir", tmp_path, *more)
    assert "Traceback" not in ran.stderr
    assert ran.returncode == code, ran.stderr + ran.stdout
    report: dict[str, Any] = json.loads((tmp_path / "dump_pair_report.json").read_text(encoding="utf-8"))
    assert list(report) == ["schema", "train", "infer", "checks", "inputs_are", "comparable"]
    assert report["schema"] == "dump_pair_report/1"
    assert report["comparable"] is (code == 0)
    return report


def found(report: dict[str, Any], ok: object = False) -> set[str]:
    return {one["id"] for one in report["checks"] if one["ok"] is ok}


def shutting(report: dict[str, Any]) -> set[str]:
    return {one["id"] for one in report["checks"] if one["ok"] is False and one["back_to_stage"] is not None}


def evidence(report: dict[str, Any], name: str) -> dict[str, Any]:
    (one,) = [one for one in report["checks"] if one["id"] == name]
    told: dict[str, Any] = one["evidence"]
    return told


def copy(source: Path, target: Path) -> Path:
    shutil.copytree(str(source), str(target))
    (unit,) = [folder.parent for folder in target.rglob("dump.json")]
    return unit


# --- real pairs ---


@pytest.mark.parametrize("name", sorted(SHUT))
def test_a_sample_is_judged_by_what_was_done_to_it(name: str, tmp_path: Path) -> None:
    pair: Sample = lay_out(name, tmp_path / "laid")
    report = check(tmp_path, pair.train, pair.infer, code=1 if SHUT[name] else 0)
    assert shutting(report) == SHUT[name]
    assert found(report) - SHUT[name] == ({"weights_by_module"} if "fsdp1" in name else set()), "remarks: FSDP1 has flat parameters"


def test_statistics_alone_shut_the_gate(tmp_path: Path) -> None:
    statistics = SAMPLES / "statistics/qwen2-24-layers"
    assert shutting(check(tmp_path, statistics / "train", statistics / "infer", code=1)) == {"tensors_recorded"}


@pytest.mark.parametrize("case", sorted(DEFECTS))
def test_a_defect_of_a_release_has_its_own_check(case: str, tmp_path: Path) -> None:
    """The dump against itself: these toys ran no tokens, so the pair stays shut."""
    name, shuts = DEFECTS[case]
    report = check(tmp_path, VERSIONS / case, VERSIONS / case, code=1)
    assert name in found(report)
    assert (name in shutting(report)) is shuts


@pytest.mark.parametrize("case", ["26.2.0/mini_tensor", "26.2.0/pair_train", "26.2.0/pair_infer"])
def test_a_sound_dump_shows_no_defect(case: str, tmp_path: Path) -> None:
    """The mini model takes no tokens: nothing but that is said of it."""
    mini = "mini" in case
    report = check(tmp_path, VERSIONS / case, VERSIONS / case, code=1 if mini else 0)
    assert found(report) == ({"tokens_equal"} if mini else set())


def test_a_release_before_26_2_is_told_from_26_2(tmp_path: Path) -> None:
    """The sample of both: inputs are recorded at different moments."""
    pair = lay_out("mini_tensor-26.1-against-26.2", tmp_path / "laid")
    report = check(tmp_path, pair.train, pair.infer, code=1)
    assert "same_msprobe" in shutting(report)
    assert report["inputs_are"] == {"train": "post_call", "infer": "pre_call"}


def test_what_goes_on_after_an_exception_is_seen_on_the_other_side(tmp_path: Path) -> None:
    report = check(tmp_path, VERSIONS / "26.2.0/exception", VERSIONS / "26.2.0/mini_tensor", code=1)
    assert evidence(report, "forward_ended")["values"]["first"] == ["Module.tied.Linear.forward.0"]


def test_ids_are_compared_by_value(tmp_path: Path) -> None:
    """The trainer records int64, vLLM int32."""
    report = check(tmp_path, CLEAN / "train", CLEAN / "infer", code=0)
    assert evidence(report, "tokens_equal")["values"] == {"n": 14, "of": 14}
    assert evidence(report, "positions_equal")["values"] == {"first": 0, "last": 13}


def test_the_units_that_were_judged_are_named(tmp_path: Path) -> None:
    pair = lay_out("several/qwen2-hf-sglang-cached_prefix", tmp_path / "laid")
    report = check(tmp_path, pair.train, pair.infer, code=1)
    judged = evidence(report, "one_dump_per_step")["values"]["found"]
    assert [one["values"]["units"] for one in judged] == [["step0/rank0"], ["step0/rank0", "step1/rank0"]]


def test_a_later_step_alone_shows_the_cached_prefix(tmp_path: Path) -> None:
    pair = lay_out("several/qwen2-hf-sglang-cached_prefix", tmp_path / "laid")
    report = check(tmp_path, pair.train, pair.infer / "step1", code=1)
    assert shutting(report) == {"no_prefix_cache"}
    assert evidence(report, "no_prefix_cache")["values"] == {"side": "infer", "n": 6, "first": 6}


def test_a_first_chunk_alone_ends_before_the_prompt(tmp_path: Path) -> None:
    pair = lay_out("several/qwen2-hf-vllm_no_weights-chunked", tmp_path / "laid")
    report = check(tmp_path, pair.train, pair.infer / "step0", code=1)
    assert shutting(report) == {"prompt_only", "prompt_length", "embedding_shape"}


# --- files ---


def test_a_missing_file_shuts_the_gate(tmp_path: Path) -> None:
    unit = copy(CLEAN / "infer", tmp_path / "infer")
    gone = min(unit.glob("dump_tensor_data/*.pt"))
    gone.unlink()
    report = check(tmp_path, CLEAN / "train", tmp_path / "infer", code=1)
    assert shutting(report) == {"complete"}
    assert evidence(report, "complete")["values"]["first"] == [gone.name]


def test_a_cut_tensor_shuts_the_gate(tmp_path: Path) -> None:
    unit = copy(CLEAN / "infer", tmp_path / "infer")
    cut = unit / "dump_tensor_data" / "Module.model.norm.RMSNorm.forward.0.output.0.pt"
    cut.write_bytes(cut.read_bytes()[:700])
    assert shutting(check(tmp_path, CLEAN / "train", tmp_path / "infer", code=1)) == {"files_readable"}


def test_a_kill_after_a_flush_is_told_from_an_earlier_run(tmp_path: Path) -> None:
    """construct.json names what ran in this run; a tensor of another module is an earlier run's."""
    unit = copy(CLEAN / "infer", tmp_path / "infer")
    dump = json.loads((unit / "dump.json").read_text())
    lost = "Module.model.norm.RMSNorm.forward.0"
    del dump["data"][lost]
    (unit / "dump.json").write_text(json.dumps(dump))
    assert shutting(check(tmp_path, CLEAN / "train", tmp_path / "infer", code=1)) == {"not_killed"}
    trace = json.loads((unit / "construct.json").read_text())
    del trace[lost]
    (unit / "construct.json").write_text(json.dumps(trace))
    report = check(tmp_path, CLEAN / "train", tmp_path / "infer", code=0)
    assert found(report) == {"no_stale_files"}


def test_an_error_log_says_that_entries_were_lost(tmp_path: Path) -> None:
    """msprobe 8.x writes it where one module could not be recorded."""
    unit = copy(CLEAN / "train", tmp_path / "train")
    (unit / "dump_error_info.log").write_text("Traceback\n")
    assert shutting(check(tmp_path, tmp_path / "train", CLEAN / "infer", code=1)) == {"nothing_lost"}


def test_a_captured_buffer_shows_one_content_in_every_layer(tmp_path: Path) -> None:
    """A graph writes each layer's output into one place; saved later, all layers hold its last content."""
    unit = copy(CLEAN / "infer", tmp_path / "infer")
    folder = unit / "dump_tensor_data"
    for at in (0, 1):
        name = "Module.model.layers.%d.Qwen2DecoderLayer.forward.0.output.%d.pt"
        for layer in (0, 1):
            shutil.copyfile(str(folder / (name % (2, at))), str(folder / (name % (layer, at))))
    report = check(tmp_path, CLEAN / "train", tmp_path / "infer", code=1)
    assert shutting(report) == {"eager"}
    assert evidence(report, "eager")["kind"] == "one_buffer"


def test_a_folder_of_graph_mode_is_named(tmp_path: Path) -> None:
    """AclGraphDumper writes tensors alone, below pid<N>."""
    unit = copy(CLEAN / "infer", tmp_path / "infer")
    for file in unit.glob("*.json"):
        file.unlink()
    unit.rename(unit.parent / "pid77")
    assert shutting(check(tmp_path, CLEAN / "train", tmp_path / "infer", code=1)) == {"eager"}


# --- the task card ---


def card_of(**fields: Any) -> dict[str, Any]:
    card: dict[str, Any] = json.loads((COLLECTION.parent / "references/task_card.json").read_text(encoding="utf-8"))
    card["dumps"]["train"]["path"], card["dumps"]["infer"]["path"] = str(CLEAN / "train"), str(CLEAN / "infer")
    card.update(fields)
    return card


def with_card(tmp_path: Path, card: dict[str, Any], code: int) -> dict[str, Any]:
    (tmp_path / "task_card.json").write_text(json.dumps(card), encoding="utf-8")
    ran = run_collection("check_dump_pair.py", "--workdir", tmp_path)
    assert ran.returncode == code, ran.stderr
    report: dict[str, Any] = json.loads((tmp_path / "dump_pair_report.json").read_text(encoding="utf-8"))
    return report


def test_paths_of_the_card_are_seen_from_its_folder(tmp_path: Path) -> None:
    """As the gates see them; the command itself is run in the folder of the skill."""
    shutil.copytree(CLEAN / "train", tmp_path / "dumps/train")
    card = card_of()
    card["dumps"]["train"]["path"] = "dumps/train"
    assert shutting(with_card(tmp_path, card, 0)) == set()


def test_b02_a_dump_that_the_card_names_and_no_run_made_has_its_check(tmp_path: Path) -> None:
    """B02: msprobe makes no folder where nothing was recorded; the report of an earlier pair must not stay."""
    with_card(tmp_path, card_of(), 0)
    card = card_of()
    card["dumps"]["infer"]["path"] = str(tmp_path / "dumps/infer")
    report = with_card(tmp_path, card, 1)
    assert shutting(report) == {"dump_found"}
    told = evidence(report, "dump_found")["text"]
    reasons = ["path", "graph mode", "msprobe hook", "msprobe installed", "rank"]
    assert [told.index(reason) for reason in reasons] == sorted(told.index(reason) for reason in reasons)


def test_the_card_names_the_dumps_and_the_length(tmp_path: Path) -> None:
    card = card_of()
    assert "prompt_length" in found(with_card(tmp_path, card, 0), None)
    card["sample"]["prompt_length"] = 14
    assert "prompt_length" in found(with_card(tmp_path, card, 0), True)
    card["sample"]["prompt_length"] = 22
    report = with_card(tmp_path, card, 1)
    assert shutting(report) == {"prompt_length"}
    assert "P18" in evidence(report, "prompt_length")["text"]


@pytest.mark.parametrize(
    ("command", "infer"),
    [
        ("bash run.sh", None),
        ("python -m verl.trainer.main_ppo actor_rollout_ref.rollout.enforce_eager=True", "card_eager"),
        ("python -m verl.trainer.main_ppo actor_rollout_ref.rollout.enforce_eager=False", "card_graph"),
        ("python train.py --vllm-enforce-eager", "card_eager"),
        ("python train.py --sglang-disable-cuda-graph", "card_eager"),
        ("python train.py --sglang-msprobe-dump-config c.json", "card_eager"),
    ],
)
def test_the_baseline_command_says_whether_the_engine_is_eager(command: str, infer: str | None, tmp_path: Path) -> None:
    report = with_card(tmp_path, card_of(baseline_command=command), 1 if infer == "card_graph" else 0)
    told = evidence(report, "eager")
    kinds = [one["kind"] for one in told["values"].get("found", [told])]
    assert infer is None or infer == "card_eager" or kinds == ["card_graph"]
    assert ("card_silent" in kinds) is (infer != "card_graph"), "nothing is said of the trainer"
    assert len(kinds) == (2 if infer is None else 1)


def test_other_releases_on_the_card_shut_the_gate(tmp_path: Path) -> None:
    card = card_of()
    card["environments"]["train"]["msprobe"], card["environments"]["infer"]["msprobe"] = "26.2.0", "26.1.0.post1"
    assert shutting(with_card(tmp_path, card, 1)) == {"same_msprobe"}


def test_a_quoted_release_on_the_card_counts_like_a_bare_one(tmp_path: Path) -> None:
    """Stage 1 has the agent quote the command that printed the version."""
    card = card_of()
    for side, version in (("train", "26.2.0"), ("infer", "26.1.0.post1")):
        quote = {"command": "python3.11 -m pip show mindstudio-probe", "output": f"Name: mindstudio-probe\nVersion: {version}"}
        card["environments"][side]["msprobe"] = quote
    report = with_card(tmp_path, card, 1)
    assert shutting(report) == {"same_msprobe"}
    assert evidence(report, "same_msprobe")["values"] == {"train": "26.2.0", "infer": "26.1.0.post1"}


def test_relative_dumps_of_the_card_lie_in_the_collection(tmp_path: Path) -> None:
    """The gates of the stages see them from there, too, wherever the command is run."""
    card = card_of()
    for side in ("train", "infer"):
        copy(CLEAN / side, tmp_path / "dumps" / side)
        card["dumps"][side]["path"] = f"dumps/{side}"
    assert not shutting(with_card(tmp_path, card, 0))


@pytest.mark.parametrize("path", ["", " ", 5, {}, ["dumps"]])
def test_a_path_that_is_none_is_asked_for(path: Any, tmp_path: Path) -> None:
    card = card_of()
    card["dumps"]["infer"]["path"] = path
    (tmp_path / "task_card.json").write_text(json.dumps(card), encoding="utf-8")
    ran = run_collection("check_dump_pair.py", "--workdir", tmp_path)
    assert ran.returncode == 2
    assert ran.stderr.startswith(("Cannot check the pair: no infer dump was named. ", "Cannot use "))
    assert len(ran.stderr.splitlines()) == 1


# --- the command ---


def lines(ran: subprocess.CompletedProcess[str]) -> list[str]:
    return ran.stdout.splitlines()


def test_the_answer_ends_with_what_to_do_next(tmp_path: Path) -> None:
    open_ = run_collection("check_dump_pair.py", "--train", CLEAN / "train", "--infer", CLEAN / "infer", "--workdir", tmp_path)
    assert lines(open_)[0] == "the pair is open: the dumps can be compared"
    assert "check_stage.py --stage 7" in lines(open_)[-1]
    pair = lay_out("qwen2-hf-vllm-padding", tmp_path / "laid")
    shut = run_collection("check_dump_pair.py", "--train", pair.train, "--infer", pair.infer, "--workdir", tmp_path, "--lang", "zh-CN")
    assert lines(shut)[-1].startswith("next: go back to stage 4")
    assert "填充" in shut.stderr


def test_evidence_holds_no_path_of_the_machine(tmp_path: Path) -> None:
    check(tmp_path, VERSIONS / "26.2.0/two_proc", VERSIONS / "26.2.0/stale", code=1)
    assert str(SAMPLES.parent) not in (tmp_path / "dump_pair_report.json").read_text()


def test_the_same_dumps_give_the_same_bytes(tmp_path: Path) -> None:
    check(tmp_path / "a", CLEAN / "train", CLEAN / "infer", code=0)
    check(tmp_path / "b", CLEAN / "train", CLEAN / "infer", code=0)
    assert (tmp_path / "a/dump_pair_report.json").read_bytes() == (tmp_path / "b/dump_pair_report.json").read_bytes()


@pytest.mark.parametrize("arguments", [("--infer", "b"), ("--train", "nowhere", "--infer", "nowhere")])
def test_a_wrong_call_is_one_line_and_exit_2(arguments: Any, tmp_path: Path) -> None:
    ran = run_collection("check_dump_pair.py", *arguments, "--workdir", tmp_path)
    assert ran.returncode == 2
    assert len(ran.stderr.splitlines()) == 1
    assert ran.stderr.startswith("Cannot ")


def test_padding_on_both_sides_is_seen_by_its_mask(tmp_path: Path) -> None:
    """Equal lengths prove nothing: the padded trainer against itself, its positions made to count on through the padding."""
    pair = lay_out("qwen2-hf-vllm-padding", tmp_path / "laid")
    unit = copy(pair.train, tmp_path / "train")
    for file in unit.glob("dump_tensor_data/*"):
        if "position_ids" in file.name or "rotary_emb" in file.name:
            file.unlink()  # no positions at all: the mask alone tells
    dump = json.loads((unit / "dump.json").read_text())
    dump["data"] = {entry: content for entry, content in dump["data"].items() if "rotary_emb" not in entry}
    for content in dump["data"].values():
        content.get("input_kwargs", {}).pop("position_ids", None)
    (unit / "dump.json").write_text(json.dumps(dump))
    report = check(tmp_path, tmp_path / "train", tmp_path / "train", code=1)
    assert shutting(report) == {"no_padding"}
    told = evidence(report, "no_padding")["values"]["found"]
    assert [one["values"] for one in told] == [{"side": side, "n": 8, "of": 22} for side in ("train", "infer")]
