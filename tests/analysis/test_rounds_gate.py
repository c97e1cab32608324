"""The gate of stage 5, and the plan on a real pair: what adds nothing, what is refused, what an older msprobe cannot do."""

from __future__ import annotations

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
from laying import Sample
from running import run_command

PAIR = "qwen2-hf-vllm-rms_eps"


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
    why = {"kind": "why_not_verified", "values": {}, "text": "not verified"}
    result = {
        "schema": "round_result/1", "round": 1, "effective": False, "why_not": why,
        "isolated": None, "local": [], "downstream": [], "confirmed": [], "contradicted": [], "next": None, "stop": "evidence_missing",
    }  # fmt: skip
    (work / "round1/round_result.json").write_text(json.dumps(result), encoding="utf-8")
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
    history.withdraw(compared, history.rounds_of(compared)[0])
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
