"""The gate of stage 5, and the plan on a real pair: what adds nothing, what is refused, what an older msprobe cannot do."""

from __future__ import annotations

import hashlib
import json
import shlex
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from dump_analysis import round_steps
from dump_analysis.rounds import history
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
    (what,) = [gap.what for gap in gaps if gap.stage == 5]
    assert what == "round1 is planned and not judged (if it cannot be run, move round1 and round_plan.json away)"
    assert all("judge_round.py --train" in gap.repair for gap in gaps if gap.stage == 5)


def test_a_round_that_was_not_effective_shuts_the_gate(compared: Path, sample: Callable[[str], Sample]) -> None:
    work = compared
    plan(sample, work, "--all", "--despite", "config", "weights", "inputs")
    (work / "round1/round_result.json").write_text(json.dumps(NOT_EFFECTIVE), encoding="utf-8")
    assert kinds(work) == ["round1 was not effective"]
    repairs = [gap.repair for gap in gates.check(5, work).gaps if gap.stage == 5]
    assert all(repair.endswith("--round 1") and "judge_round.py" in repair for repair in repairs)  # the same round again, no other
    (work / "round_plan.json").unlink()
    assert "round_plan.json" not in "".join(kinds(work, 7))  # rounds that cannot be gone on with keep no conclusion shut


def test_a_configuration_that_explains_the_difference_refuses_the_round(work: Path, sample: Callable[[str], Sample]) -> None:
    """The engine's eps is another in every layer: that is mended first, and the next run says so."""
    code, told, found = plan(sample, work, "--all")
    assert (code, found) == (2, None)
    assert told.startswith("Cannot plan a round: config is supported: ")
    assert "--despite config" in told


def test_all_that_is_not_ruled_out_is_said_at_once_and_in_the_language_asked_for(sample: Callable[[str], Sample], compared: Path) -> None:
    """One refusal names what the next call needs, that of before included; what is passed over is worded as everything else."""
    path = compared / "conclusion.json"
    value = json.loads(path.read_text(encoding="utf-8"))
    for one in value["hypotheses"]:
        if one["name"] in ("weights_out_of_sync", "input_misaligned"):
            one["state"] = "open"
            one["would_decide"] = one["would_decide"] or [one["because"]]
    path.write_text(json.dumps(value), encoding="utf-8")
    code, told, _ = plan(sample, compared, "--all")
    assert code == 2
    assert "weights_out_of_sync is open: " in told
    assert "input_misaligned is open: " in told
    needed = told.split("--despite ")[1].rstrip(".\n").split()
    assert needed[:2] == ["weights", "inputs"]
    code, told, found = plan(sample, compared, "--all", "--despite", *needed, "--lang", "zh-CN")
    assert code == 0, told
    english = [one["values"]["why"]["text"] for one in found["remarks"] if one["kind"] == "round_despite"]
    assert english
    assert not any(text in told for text in english)


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


def test_the_next_plan_is_asked_for_as_the_last_one_was(compared: Path, sample: Callable[[str], Sample]) -> None:
    """Without --despite the command that a judged round hands on would be refused; without --all it would plan another kind."""
    code, told, _ = plan(sample, compared, "--all", "--target", "infer", "--despite", "config", "weights", "inputs")
    assert code == 0, told
    flags = round_steps.as_planned(compared)
    assert flags[:4] == ["--all", "--target", "infer", "--despite"]
    made = (compared / "round1/stub_instruction.json").read_bytes()
    code, told, _ = plan(sample, compared, *flags)
    assert code == 0, told
    assert (compared / "round1/stub_instruction.json").read_bytes() == made


@pytest.mark.parametrize("begun", [False, True])
def test_a_planned_round_that_adds_nothing_any_more_is_withdrawn_unless_it_was_begun(
    begun: bool, compared: Path, sample: Callable[[str], Sample]
) -> None:
    """Left there, it would keep the gate shut for ever; what the collection has prepared is not taken from it."""
    plan(sample, compared, "--all", "--despite", "config", "weights", "inputs")
    if begun:
        (compared / "round1/stub_outcome.json").write_text("{}", encoding="utf-8")
    rounds = history.rounds_of(compared)[0]
    history.withdraw(compared, rounds, {one.digest for one in rounds})
    assert (compared / "round1/stub_instruction.json").exists() is begun
    assert (compared / "round1").exists() is begun


def test_a_round_planned_since_the_conclusion_is_not_called_an_edit(compared: Path, sample: Callable[[str], Sample]) -> None:
    """Nobody edited conclusion.json; an agent that is told so looks for who did."""
    plan(sample, compared, "--all", "--despite", "config", "weights", "inputs")
    said = [gap.what for gap in gates.check(7, compared).gaps if gap.stage == 7]
    assert said == ["conclusion.json does not hold the rounds as they are planned now"]


@pytest.mark.parametrize(
    ("command", "doing"), [(["make_stub_instruction.py"], "plan a round"), (["judge_round.py", "--round", "2"], "judge round 2")]
)
def test_before_the_analysis_each_names_itself_and_a_command_that_runs(
    command: list[str], doing: str, sample: Callable[[str], Sample], tmp_path: Path
) -> None:
    """In a folder with a space in its name, which a shell would take apart."""
    work, pair = tmp_path / "an analysis", sample(PAIR)
    work.mkdir()
    ran = run_command(*command, "--train", pair.train, "--infer", pair.infer, "--workdir", work)
    assert ran.returncode == 2
    assert ran.stderr.startswith(f"Cannot {doing}: {work / 'semantic_mapping.json'} is missing. ")
    again = shlex.split(ran.stderr.split("first: ")[1])
    assert again[1].endswith("diagnose.py")
    assert again[-2:] == ["--output-dir", str(work)]


def test_a_round_that_was_not_planned_or_not_carried_out_says_which(compared: Path, sample: Callable[[str], Sample]) -> None:
    pair = sample(PAIR)
    judge = ["judge_round.py", "--train", pair.train, "--infer", pair.infer, "--workdir", compared, "--round", "1"]
    assert "Plan it with make_stub_instruction.py first" in run_command(*judge).stderr
    plan(sample, compared, "--all", "--despite", "config", "weights", "inputs")
    assert "stub_outcome.json is missing. Carry the round out" in run_command(*judge).stderr


def report(work: Path) -> tuple[int, str]:
    """The exit code of the report of an analysis, and all that was printed."""
    filled = run_command("generate_alignment_report.py", "--from-results", work, "--lang", "en")
    ran = run_command("generate_alignment_report.py", "--input", work / "report_source.json", "--output-dir", work)
    return filled.returncode or ran.returncode, filled.stderr + ran.stderr


def test_the_configuration_of_a_rounds_run_does_not_keep_a_report_back(compared: Path, sample: Callable[[str], Sample]) -> None:
    """The collection leaves msprobe_load.json, with absolute paths, in the round's folder; no report shows it."""
    work = compared
    plan(sample, work, "--all", *DESPITE)
    (work / "round1/msprobe_load.json").write_text('{"dump_path": "/home/alice/round1/dump", "task": "tensor"}', encoding="utf-8")
    (work / "round1/round_result.json").write_text(json.dumps(NOT_EFFECTIVE), encoding="utf-8")
    assert run_command("conclude.py", "--workdir", work).returncode == 0
    assert report(work)[0] == 0, report(work)
    assert "/home/alice" not in (work / "alignment_report.html").read_text(encoding="utf-8")
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
    assert kinds(work) == ["round2 is planned and not judged (if it cannot be run, move round2 and round_plan.json away)"]
    assert run_command("conclude.py", "--workdir", work).returncode == 0
    assert kinds(work, 7) == ["round2 is planned and not judged (if it cannot be run, move round2 and round_plan.json away)"]
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


def test_an_instruction_that_people_edited_is_not_written_over(compared: Path, sample: Callable[[str], Sample]) -> None:
    """Arguments taken out by hand, then the same plan again: what was edited would be lost without a word."""
    ask = ("--all", "--target", "infer", "--despite", "config", "weights", "inputs")
    plan(sample, compared, *ask)
    path = compared / "round1/stub_instruction.json"
    instruction = json.loads(path.read_text(encoding="utf-8"))
    instruction["modules"] = instruction["modules"][:1]
    path.write_text(json.dumps(instruction), encoding="utf-8")
    edited = path.read_bytes()
    code, told, _ = plan(sample, compared, *ask)
    assert (code, path.read_bytes()) == (2, edited)
    assert "round1/stub_instruction.json was edited" in told
    history.withdraw(compared, history.rounds_of(compared)[0], set())
    assert path.read_bytes() == edited
