"""The gates of stages 4 and 6: shut for each verdict or hypothesis that lacks its ground, with a repair that opens them."""

import shlex
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from dump_analysis.pipeline import CONCLUSION, MAPPING, PROBE, REPLAY, RESULTS
from dump_analysis.stages import gates
from dump_analysis.stages.workdir import CARD
from editing import edit_json
from laying import Sample
from msprobe_files import task_card
from running import run_command

PAIR = "qwen3_moe-megatron_tp1-sglang-clean"
Change = Callable[[Any], object]


@pytest.fixture
def work(sample: Callable[[str], Sample], diagnosed: Callable[[str], Path], tmp_path: Path) -> Path:
    """A whole analysis to damage."""
    shutil.copytree(diagnosed(PAIR), tmp_path / "work")
    card = task_card.empty()
    for label, path in (("train", sample(PAIR).train), ("infer", sample(PAIR).infer)):
        card["dumps"][label]["path"] = str(path)
    (tmp_path / "work" / CARD).write_text(task_card.text_of(card))
    return tmp_path / "work"


def put(*path: "str | int", value: Any) -> Change:
    """A change of one field."""

    def change(artefact: Any) -> None:
        for part in path[:-1]:
            artefact = artefact[part]
        artefact[path[-1]] = value

    return change


def first_of(verdict: str, field: str, value: Any) -> Change:
    """A change of the first module with a verdict."""

    def change(replay: Any) -> None:
        next(one for one in replay["modules"] if one["verdict"] == verdict)[field] = value

    return change


def hypothesis(name: str, field: str, value: Any) -> Change:
    def change(conclusion: Any) -> None:
        next(one for one in conclusion["hypotheses"] if one["name"] == name)[field] = value

    return change


def only(stage: int, folder: Path) -> gates.Gap:
    """The only gap, which is one of this stage."""
    (gap,) = gates.check(stage, folder).gaps
    assert gap.stage == stage
    return gap


def repair(gap: gates.Gap, script: str) -> None:
    command = gap.repair.removeprefix("Run: ")
    assert Path(shlex.split(command)[1]).name == script, command
    ran = subprocess.run(command, shell=True, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr


SILENT = [{"kind": "by_hand", "values": {}, "text": " "}]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda replay: replay["modules"].pop(), f"no verdict on modules of {MAPPING}: lm_head"),
        (first_of("unknown", "would_decide", []), "unknown without saying what would decide: layers.0.moe"),
        (first_of("unknown", "would_decide", SILENT), "unknown without saying what would decide: layers.0.moe"),
        (first_of("rounding", "evidence", []), "verdicts without evidence: "),
        (put("mapping", "digest", value="0" * 64), f"from another mapping than {MAPPING}"),
        (put("train", "digest", value="0" * 64), f"is of another train dump than {RESULTS}"),
        (put("infer", "digest", value="0" * 64), f"is of another infer dump than {RESULTS}"),
    ],
)
def test_a_verdict_without_its_ground_is_shut_and_replaying_opens_it(change: Change, words: str, work: Path) -> None:
    """Edited by hand, or of another dump or mapping: what follows would rest on it."""
    edit_json(work / REPLAY, change)
    gap = only(4, work)
    assert words in gap.line
    repair(gap, "replay_boundaries.py")
    assert gates.check(4, work).gaps == []


def test_replay_that_was_not_done_is_shut(work: Path) -> None:
    (work / REPLAY).unlink()
    gap = only(4, work)
    assert gap.what == f"{REPLAY} is missing"
    repair(gap, "replay_boundaries.py")
    assert gates.check(4, work).gaps == []


def test_no_verdict_may_be_invented(work: Path) -> None:
    """A word that is none of the four cannot be read; it is no gap that a command repairs by rote."""
    edit_json(work / REPLAY, first_of("unknown", "verdict", "probably rounding"))
    ran = run_command("check_stage.py", "--stage", "4", "--workdir", work)
    assert (ran.returncode, ran.stdout) == (2, "")
    assert "verdict" in ran.stderr


def hide_a_gap(results: Any) -> None:
    """A row before the first divergence that was not compared after all, and is not named."""
    results["boundaries"][3].update(status="evidence_missing", reason={"kind": "by_hand", "values": {}, "text": "not recorded"})


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (hide_a_gap, "does not name gaps before it: layers.0.input_norm.out"),
        (put("first_divergence", "predecessors_complete", value=True), "says that all before it was compared, and names gaps"),
    ],
)
def test_a_first_divergence_that_hides_what_lies_before_it_is_shut(change: Change, words: str, work: Path) -> None:
    """An earlier source that was not compared is the difference between "from here on" and "at the latest here"."""
    edit_json(work / RESULTS, change)
    (gap,) = [gap for gap in gates.check(4, work).gaps if gap.stage == 4]
    assert words in gap.line
    repair(gap, "analyze_dump_boundaries.py")
    assert gates.check(4, work).gaps == []


def test_an_unknown_order_is_told_and_shuts_nothing(work: Path) -> None:
    """A side of which only tensor files are there: nothing lies before that could be named."""
    edit_json(work / RESULTS, lambda found: found.update(boundaries=[one for one in found["boundaries"] if one["reason"] is None]))
    edit_json(work / RESULTS, put("first_divergence", "uncompared_before", value=[]))
    told = gates.check(4, work)
    assert any("is not known" in warning for warning in told.warnings)
    assert [gap for gap in told.gaps if gap.stage == 4] == []


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda found: found["hypotheses"].pop(0), "hypotheses that are not judged: weights_out_of_sync"),
        (lambda found: found["hypotheses"].clear(), "weights_out_of_sync, input_misaligned, config, parallel_layout … (6 in all)"),
        (lambda found: found["hypotheses"].append(found["hypotheses"][2]), "hypotheses that are judged twice: config"),
        (hypothesis("randomness", "because", SILENT[0]), "hypotheses without a ground: randomness"),
        (hypothesis("config", "would_decide", []), "open hypotheses that do not say what would decide them: config"),
        (hypothesis("config", "would_decide", SILENT), "open hypotheses that do not say what would decide them: config"),
    ],
)
def test_a_hypothesis_without_its_ground_is_shut_and_concluding_opens_it(change: Change, words: str, work: Path) -> None:
    """Five of six is how a cause is forgotten; "open" alone tells nobody what to do."""
    edit_json(work / CONCLUSION, change)
    gap = only(6, work)
    assert words in gap.line
    repair(gap, "conclude.py")
    assert gates.check(7, work).gaps == []


def test_a_hypothesis_that_was_closed_by_hand_is_shut_by_the_next_gate(work: Path) -> None:
    """Excluded with a ground that reads well: stage 7 makes it again and compares."""
    edit_json(work / CONCLUSION, hypothesis("randomness", "state", "excluded"))
    assert gates.check(6, work).gaps == []
    assert "is not what follows from" in only(7, work).line


@pytest.mark.parametrize("name", [PROBE, REPLAY])
def test_hypotheses_of_earlier_files_are_shut(name: str, work: Path) -> None:
    """Replayed again and not concluded again."""
    (work / name).write_text((work / name).read_text() + "\n")
    assert f"was made from another {name}" in only(6, work).line
