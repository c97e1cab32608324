"""A report on parameters weighed in a conclusion: what is open forbids `consistent`, what was let stand is told."""

import json
from pathlib import Path
from typing import Any

import pytest
from running import ROOT, run_command

SAMPLE = ROOT / "tests/samples/qwen2-hf-vllm-clean"
ITEM = {
    "canonical": "config.rope_theta",
    "train": {"key": "rotary_base", "value": 10000.0, "state": "set"},
    "infer": {"key": "rope_parameters.rope_theta", "value": 1000000.0, "state": "set"},
    "status": "DIFF", "priority": "hyper", "kind": "value", "note": None,
}  # fmt: skip
POINT = {"id": "P1", "items": ["config.rope_theta"], "cause": {"kind": "lost", "values": {}, "text": "the base is lost"}, "impact": None}


def report(**changes: Any) -> dict[str, Any]:
    made = {
        "schema": "param_alignment_report/1", "layers": {"config": "checked"}, "items": [ITEM], "mismatch_points": [POINT],
        "requested_not_effective": [], "train_only_keys": [], "infer_only_keys": [], "coverage": {}, "waivers": [], "aligned": False,
    }  # fmt: skip
    return {**made, **changes}


def concluded(folder: Path, made: dict[str, Any] | None) -> tuple[int, dict[str, Any], str]:
    """Exit code, conclusion and what was printed, of a pair whose dumps differ by rounding only."""
    (folder / "report.json").write_text(json.dumps(made))
    given = ("--param-report", folder / "report.json") if made is not None else ()
    pair = ("--train", SAMPLE / "train", "--infer", SAMPLE / "infer")
    ran = run_command("diagnose.py", *pair, "--output-dir", folder / "out", "--exit-code", *given)
    assert ran.stderr == ""
    return ran.returncode, json.loads((folder / "out/conclusion.json").read_text()), ran.stdout


def points(conclusion: dict[str, Any]) -> dict[str, str]:
    return {one["name"]: one["state"] for one in conclusion["hypotheses"] if one["name"].startswith("param_")}


def test_an_open_point_keeps_a_pair_from_being_consistent(tmp_path: Path) -> None:
    code, found, printed = concluded(tmp_path, report())
    assert (code, found["consistency"], points(found)) == (3, "undecided", {"param_P1": "supported"})
    assert [told["kind"] for told in found["would_decide"]] == ["param_decides"]
    assert "param report" in [one["label"] for one in found["inputs"]]
    headline, first = printed.splitlines()[:2]
    assert headline == "? Undecided: open parameters could hide a fault"
    assert first.endswith("But parameters of the two sides differ and are let stand by nobody: P1.")
    assert found["summary"][0]["values"]["verdict"]["kind"] == "sum_rounding"


@pytest.mark.parametrize(
    "changes",
    [
        {"waivers": [{"id": "P1", "reason": "known, agreed"}]},
        {"waivers": [{"id": "config.rope_theta", "reason": "known, agreed"}]},
        {"items": [{**ITEM, "status": "waived"}], "waivers": [{"id": "config.rope_theta", "reason": "known, agreed"}]},
    ],
)
def test_a_point_that_was_let_stand_is_told_and_decides_nothing(tmp_path: Path, changes: dict[str, Any]) -> None:
    code, found, _ = concluded(tmp_path, report(**changes))
    assert (code, found["consistency"], points(found)) == (0, "consistent", {"param_P1": "open"})
    (told,) = [one["because"] for one in found["hypotheses"] if one["name"] == "param_P1"]
    assert "known, agreed" in told["text"]


def test_what_differs_outside_every_point_is_open_too(tmp_path: Path) -> None:
    """A report that says it is not aligned must not read as one that is; a field without effect is none of that."""
    code, found, _ = concluded(tmp_path, report(mismatch_points=[]))
    assert (code, points(found)) == (3, {"param_other": "supported"})
    code, found, _ = concluded(tmp_path, report(mismatch_points=[], items=[{**ITEM, "priority": "no_effect"}], aligned=True))
    assert (code, points(found)) == (0, {})


def test_a_report_of_aligned_sides_changes_nothing(tmp_path: Path) -> None:
    made = report(items=[{**ITEM, "status": "EXACT"}], mismatch_points=[], aligned=True)
    code, found, _ = concluded(tmp_path, made)
    assert (code, points(found)) == (0, {})


def test_another_file_is_refused_by_name(tmp_path: Path) -> None:
    (tmp_path / "report.json").write_text('{"schema": "task_card/1"}')
    ran = run_command(
        "diagnose.py", "--train", SAMPLE / "train", "--infer", SAMPLE / "infer", "--output-dir", tmp_path / "out",
        "--param-report", tmp_path / "report.json",
    )  # fmt: skip
    assert ran.returncode == 2
    assert "report.json: schema: expected 'param_alignment_report/1', found 'task_card/1'" in ran.stderr
