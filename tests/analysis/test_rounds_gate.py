"""The gate of stage 5, and the plan on a real pair: what adds nothing, what is refused, what an older msprobe cannot do."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from dump_analysis.stages import gates
from laying import SAMPLES, Sample
from running import run_command

PAIR = "qwen2-hf-vllm-rms_eps"
STATISTICS = SAMPLES / "statistics/qwen2-24-layers"
DESPITE = ("--despite", "config", "weights", "inputs")
WHY = {"kind": "why_not_verified", "values": {}, "text": "not verified"}
NOT_EFFECTIVE = {
    "schema": "round_result/1", "round": 1, "effective": False, "why_not": WHY,
    "isolated": None, "local": [], "downstream": [], "confirmed": [], "contradicted": [], "next": None, "stop": "evidence_missing",
}  # fmt: skip


@pytest.fixture
def work(sample: Callable[[str], Sample], diagnosed: Callable[[str], Path], tmp_path: Path) -> Path:
    """A finished analysis of a real pair with one fault, and its task card."""
    from running import SCRIPTS

    folder, pair = tmp_path / "work", sample(PAIR)
    shutil.copytree(diagnosed(PAIR), folder)
    card = json.loads((SCRIPTS.parent / "references/task_card.json").read_text(encoding="utf-8"))
    card["dumps"]["train"]["path"], card["dumps"]["infer"]["path"] = str(pair.train), str(pair.infer)
    (folder / "task_card.json").write_text(json.dumps(card), encoding="utf-8")
    return folder


@pytest.fixture
def compared(work: Path) -> Path:
    """The same with nothing recomputed: all behind the first divergence is open."""
    (work / "replay_results.json").unlink()
    assert run_command("conclude.py", "--workdir", work).returncode == 0
    return work


def plan(sample: Callable[[str], Sample], work: Path, *more: str) -> tuple[int, str, Any]:
    pair = sample(PAIR)
    ran = run_command("make_stub_instruction.py", "--train", pair.train, "--infer", pair.infer, "--workdir", work, *more)
    found = json.loads((work / "round_plan.json").read_text(encoding="utf-8")) if (work / "round_plan.json").is_file() else None
    return ran.returncode, ran.stdout + ran.stderr, found


def kinds(work: Path, stage: int = 5) -> list[str]:
    return [gap.what.partition(":")[0] for gap in gates.check(stage, work).gaps if gap.what.partition(" ")[0] != "replay_results.json"]


def test_without_a_plan_only_the_stage_itself_is_shut(work: Path) -> None:
    """An analysis of two dumps alone has no rounds, and its conclusion is no worse for that."""
    assert kinds(work) == ["round_plan.json is missing"]
    assert kinds(work, 7) == []


def test_a_round_that_was_planned_and_not_judged_shuts_the_gate(compared: Path, sample: Callable[[str], Sample]) -> None:
    work = compared
    code, told, found = plan(sample, work, "--all", "--despite", "config", "weights", "inputs")
    assert code == 0, told
    made = json.loads((work / "round1/stub_instruction.json").read_text(encoding="utf-8"))
    assert found["rounds"][0]["round"] == made["round"] == 1
    gaps = gates.check(5, work).gaps
    assert [gap.what for gap in gaps if gap.stage == 5] == ["round1 is planned and not judged"]
    assert all("judge_round.py --train" in gap.repair for gap in gaps if gap.stage == 5)


def test_a_round_that_was_not_effective_shuts_the_gate(compared: Path, sample: Callable[[str], Sample]) -> None:
    work = compared
    plan(sample, work, "--all", "--despite", "config", "weights", "inputs")
    (work / "round1/round_result.json").write_text(json.dumps(NOT_EFFECTIVE), encoding="utf-8")
    assert kinds(work) == ["round1 was not effective"]


def test_a_configuration_that_explains_the_difference_refuses_the_round(work: Path, sample: Callable[[str], Sample]) -> None:
    """The engine's eps is another in every layer: that is mended first, and the next run says so."""
    code, told, found = plan(sample, work, "--all")
    assert (code, found) == (2, None)
    assert told.startswith("Cannot plan a round: config is supported: ")
    assert "--despite config" in told


@pytest.mark.parametrize(("version", "rounds"), [("26.1.0", 0), ("26.2.0", 1)])
def test_without_load_no_round_is_planned_and_what_stays_open_is_said(
    compared: Path, sample: Callable[[str], Sample], version: str, rounds: int
) -> None:
    """msprobe before 26.2.0 ignores the load section without a word: the analysis ends with what replay proved."""
    work, pair = compared, sample(PAIR)
    for side in (pair.train, pair.infer):  # what tells the release by itself, so that the task card speaks
        copied = work.parent / side.name
        shutil.copytree(side, copied, symlinks=False)
        for stack in copied.rglob("stack.json"):
            stack.unlink()
    path = work / "task_card.json"
    card = json.loads(path.read_text(encoding="utf-8"))
    for side in ("train", "infer"):
        card["environments"][side]["msprobe"] = version
    path.write_text(json.dumps(card), encoding="utf-8")
    pair_flags = ("--train", work.parent / pair.train.name, "--infer", work.parent / pair.infer.name)
    ran = run_command(
        "make_stub_instruction.py", *pair_flags, "--workdir", work, "--all", "--target", "train", "--despite", "config", "weights", "inputs"
    )
    found = json.loads((work / "round_plan.json").read_text(encoding="utf-8"))
    assert ran.returncode == 0, ran.stderr
    assert bool(found["rounds"]) is bool(rounds)
    assert ("has no load" in ran.stdout) is not bool(rounds)
    assert (work / "round1").exists() is bool(rounds)


def report(work: Path) -> tuple[int, str]:
    """The exit code of the report of an analysis, and all that was printed."""
    filled = run_command("generate_alignment_report.py", "--from-results", work, "--lang", "en")
    ran = run_command("generate_alignment_report.py", "--input", work / "report_source.json", "--output-dir", work)
    return filled.returncode or ran.returncode, filled.stderr + ran.stderr


def test_the_configuration_of_a_rounds_run_does_not_keep_a_report_back(compared: Path, sample: Callable[[str], Sample]) -> None:
    """The collection leaves msprobe_load.json, with absolute paths, in the round's folder; no report shows it."""
    work = compared
    plan(sample, work, "--all", *DESPITE)
    (work / "round1/msprobe_load.json").write_text('{"dump_path": "/root/round1/dump", "task": "tensor"}', encoding="utf-8")
    (work / "round1/round_result.json").write_text(json.dumps(NOT_EFFECTIVE), encoding="utf-8")
    assert run_command("conclude.py", "--workdir", work).returncode == 0
    assert report(work)[0] == 0, report(work)
    assert "/root/" not in (work / "alignment_report.html").read_text(encoding="utf-8")
    assert [gap for gap in gates.check(8, work).gaps if gap.stage == 8] == []


def test_what_lies_in_folders_of_other_names_is_of_no_round(compared: Path, sample: Callable[[str], Sample]) -> None:
    """A copy that somebody kept (round1_old) shut stage 6 for good, and its rounds stood in the report."""
    work = compared
    plan(sample, work, "--all", *DESPITE)
    shutil.move(work / "round1", work / "round1_old")
    (work / "round_plan.json").unlink()
    effective = NOT_EFFECTIVE | {"effective": True, "stop": "all_exact"}
    (work / "round1_old/round_result.json").write_text(json.dumps(effective), encoding="utf-8")
    assert run_command("conclude.py", "--workdir", work).returncode == 0
    assert kinds(work, 7) == []
    assert report(work)[0] == 0
    assert "Round 1" not in (work / "alignment_report.md").read_text(encoding="utf-8")
    assert "round1_old" not in (work / "report_source.json").read_text(encoding="utf-8")


def test_a_round_of_other_dumps_says_nothing_and_is_not_written_over(compared: Path, sample: Callable[[str], Sample]) -> None:
    """Left from an earlier pair in the same folder: the next round takes the next number, and no gate or report asks for it."""
    work = compared
    plan(sample, work, "--all", *DESPITE)
    path = work / "round1/stub_instruction.json"
    made = json.loads(path.read_text(encoding="utf-8"))
    made["source_dump"]["digest"] = "0" * 64
    path.write_text(json.dumps(made), encoding="utf-8")
    (work / "round1/round_result.json").write_text(json.dumps(NOT_EFFECTIVE), encoding="utf-8")
    before = path.read_bytes()
    code, told, found = plan(sample, work, "--all", *DESPITE)
    assert (code, found["rounds"][0]["round"]) == (0, 2), told
    assert "warning: round1 is of other dumps and is not used" in told
    assert path.read_bytes() == before
    assert kinds(work) == ["round2 is planned and not judged"]
    assert run_command("conclude.py", "--workdir", work).returncode == 0
    assert kinds(work, 7) == ["round2 is planned and not judged"]
    assert report(work)[0] == 0
    assert "not verified" not in (work / "alignment_report.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(("left", "number"), [(None, 1), ("round_result.json", 2)])
def test_a_round_is_planned_where_nothing_of_another_lies(
    compared: Path, sample: Callable[[str], Sample], left: str | None, number: int
) -> None:
    """A result whose instruction is gone would be taken for that of the new one; an empty folder is free."""
    (compared / "round1").mkdir()
    if left is not None:
        (compared / "round1" / left).write_text(json.dumps(NOT_EFFECTIVE), encoding="utf-8")
    code, told, found = plan(sample, compared, "--all", *DESPITE)
    assert (code, found["rounds"][0]["round"]) == (0, number), told


@pytest.mark.parametrize("name", ["stub_instruction.json", "round_result.json"])
def test_the_files_of_a_round_of_another_number_are_refused(compared: Path, sample: Callable[[str], Sample], name: str) -> None:
    """A copied folder would count one round twice."""
    work = compared
    plan(sample, work, "--all", *DESPITE)
    (work / "round1/round_result.json").write_text(json.dumps(NOT_EFFECTIVE), encoding="utf-8")
    path = work / "round1" / name
    path.write_text(json.dumps(json.loads(path.read_text(encoding="utf-8")) | {"round": 7}), encoding="utf-8")
    for command in (["conclude.py"], ["check_stage.py", "--stage", "5"], ["check_stage.py", "--stage", "8"]):
        ran = run_command(*command, "--workdir", work)
        assert (ran.returncode, ran.stdout) == (2, "")
        assert f"Cannot use round1/{name}: round: 7, and its folder is round1. " in ran.stderr


@pytest.mark.parametrize("name", ["round1/stub_instruction.json", "round1/stub_outcome.json", "semantic_mapping.json", "task_card.json"])
def test_a_judgement_never_takes_the_place_of_what_it_reads(compared: Path, sample: Callable[[str], Sample], name: str) -> None:
    work, pair = compared, sample(PAIR)
    plan(sample, work, "--all", *DESPITE)
    digest = hashlib.sha256((work / "round1/stub_instruction.json").read_bytes()).hexdigest()
    outcome = {"schema": "stub_outcome/1", "round": 1, "instruction": {"digest": digest}, "load_config": {}, "prepared": []}
    (work / "round1/stub_outcome.json").write_text(json.dumps(outcome), encoding="utf-8")
    before = (work / name).read_bytes()
    judge = ("judge_round.py", "--train", pair.train, "--infer", pair.infer, "--workdir", work, "--round", "1")
    ran = run_command(*judge, "--output", work / name)
    assert (ran.returncode, ran.stdout) == (2, "")
    assert ran.stderr == f"Cannot write to {work / name}: it is an input. Choose another place.\n"
    assert (work / name).read_bytes() == before
    assert run_command(*judge).returncode == 0


def test_a_noise_floor_of_nothing_is_no_answer(sample: Callable[[str], Sample], tmp_path: Path) -> None:
    """One dump against itself, two sides of other modules, and statistics alone: none of them has a floor of 0."""
    pair = sample(PAIR)
    for runs, why in (
        ((pair.train, pair.train), f"--run names {pair.train} twice"),
        ((pair.train, pair.infer), "no boundary was compared"),
        ((STATISTICS / "infer", STATISTICS / "infer_stale_o_proj"), "no file was saved"),
    ):
        given = [part for run in runs for part in ("--run", run)]
        ran = run_command("measure_noise_floor.py", *given, "--output", tmp_path / "noise_floor.json")
        assert (ran.returncode, ran.stdout) == (2, "")
        assert ran.stderr.startswith("Cannot measure a noise floor: ")
        assert why in ran.stderr
        assert not (tmp_path / "noise_floor.json").exists()
