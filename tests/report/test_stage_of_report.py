"""check_stage.py --stage 8: the report follows from its source, the source from the conclusion that is there now."""

import json
import shlex
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from dump_analysis.stages import gates
from laying import Sample
from running import SCRIPTS, run_command

PAIR = "qwen2-hf-vllm-kv_swapped"


@pytest.fixture
def work(folder: Callable[[str], Path], sample: Callable[[str], Sample]) -> Path:
    """A finished analysis with its task card."""
    made, pair = folder(PAIR), sample(PAIR)
    card = json.loads((SCRIPTS.parent / "references/task_card.json").read_text(encoding="utf-8"))
    card["dumps"]["train"]["path"], card["dumps"]["infer"]["path"] = str(pair.train), str(pair.infer)
    (made / "task_card.json").write_text(json.dumps(card), encoding="utf-8")
    return made


def lines(work: Path) -> list[str]:
    return [gap.line for gap in gates.check(8, work).gaps]


def edit(work: Path, change: Callable[[Any], None]) -> None:
    path = work / "report_source.json"
    value = json.loads(path.read_text(encoding="utf-8"))
    change(value)
    path.write_text(json.dumps(value, ensure_ascii=False), encoding="utf-8")


def test_what_diagnose_leaves_is_open(work: Path) -> None:
    ran = run_command("check_stage.py", "--stage", "8", "--workdir", work)
    assert (ran.returncode, ran.stdout.splitlines()[0]) == (0, "stage 8 is open")
    assert "still says unknown" in ran.stderr
    assert "alignment_report.html" in ran.stdout.splitlines()[-1]


@pytest.mark.parametrize("language", ["en", "zh-CN"])
def test_either_language_of_the_source_is_open(language: str, work: Path) -> None:
    source = work / "report_source.json"
    assert run_command("generate_alignment_report.py", "--input", source, "--output-dir", work, "--lang", language).returncode == 0
    assert lines(work) == []


GAPS: list[tuple[str, Callable[[Path], object], str, str]] = [
    ("no source", lambda work: (work / "report_source.json").unlink(), "report_source.json is missing", "--from-results"),
    ("no page", lambda work: (work / "alignment_report.html").unlink(), "alignment_report.html is missing", "--input"),
    ("no report", lambda work: [(work / f"alignment_report.{end}").unlink() for end in ("md", "html")], "are missing", "--input"),
    (
        "edited report",
        lambda work: (work / "alignment_report.md").write_text("# all is well\n"),
        "are not what report_source.json gives",
        "--input",
    ),
    ("source filled since", lambda work: edit(work, lambda v: v.update(generated_at="2026-11-29")), "are not what", "--input"),
]


@pytest.mark.parametrize(("spoil", "what", "repair"), [gap[1:] for gap in GAPS], ids=[gap[0] for gap in GAPS])
def test_a_gap_shuts_it_and_its_repair_opens_it(spoil: Callable[[Path], object], what: str, repair: str, work: Path) -> None:
    spoil(work)
    (gap,) = gates.check(8, work).gaps
    assert (gap.stage, what in gap.what, repair in gap.repair) == (8, True, True), gap.line
    for _ in range(2):  # a source that was filled anew is rendered anew
        for found in gates.check(8, work).gaps:
            assert subprocess.run(shlex.split(found.repair.removeprefix("Run: ")), capture_output=True, check=False).returncode == 0
    assert lines(work) == []


@pytest.mark.parametrize(
    ("change", "path"),
    [
        (lambda v: v["differences"].clear(), "differences"),
        (lambda v: v.update(titel="x"), "titel"),
        (lambda v: v["limitations"].append("on host 10.0.0.7"), "limitations["),
        (lambda v: v["verification_axes"]["tensor_prefill"].update(status="exact"), "verification_axes.tensor_prefill.status"),
    ],
)
def test_a_source_that_would_be_refused_shuts_it(change: Callable[[Any], None], path: str, work: Path) -> None:
    edit(work, change)
    (line,) = lines(work)
    assert line.startswith(f"stage 8: report_source.json: {path}")
    assert "--input" in line


def test_a_conclusion_made_since_shuts_it(work: Path, tmp_path: Path) -> None:
    """The report of an older conclusion must not be handed over."""
    log = tmp_path / "train.log"
    log.write_text("step:1 - training/rollout_probs_diff_valid:1 - training/rollout_probs_diff_mean:0.01\n")
    assert run_command("conclude.py", "--workdir", work, "--train-log", log).returncode == 0
    found = lines(work)
    assert len(found) >= 1
    assert all(line.startswith("stage 8: report_source.json") for line in found)
    assert run_command("generate_alignment_report.py", "--from-results", work, "--lang", "en").returncode == 0
    assert run_command("generate_alignment_report.py", "--input", work / "report_source.json", "--output-dir", work).returncode == 0
    assert lines(work) == []


def test_earlier_stages_do_not_ask_for_the_report(work: Path) -> None:
    (work / "report_source.json").unlink()
    assert gates.check(7, work).gaps == []


def test_a_source_of_an_earlier_conclusion_is_not_called_edited(work: Path) -> None:
    """Nobody wrote in it: a round or another mapping has made the conclusion anew."""
    (work / "replay_results.json").unlink()
    assert run_command("conclude.py", "--workdir", work).returncode == 0
    ran = run_command("generate_alignment_report.py", "--from-results", work)
    assert ran.returncode == 0
    assert "is of an earlier conclusion, or was edited by people: it is kept as report_source.edited1.json" in ran.stderr
