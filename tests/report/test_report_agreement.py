"""A report source against the results beside it: claims that they do not bear are refused, and nothing that was found is left out."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from dump_analysis.report import generating
from planting import DELETE, put
from running import run_command

PAIR = "qwen2-hf-vllm-kv_swapped"  # one fault (F3, weights) beside two roundings (F1, F2)
ROUNDING = "qwen2-hf-vllm-clean"
GATE = {
    "same_shape": True, "same_dtype": True, "no_nonfinite": True, "torch_equal": True, "downstream_checked": True,
    "real_path_activation_proved": "unknown", "max_abs_diff": 0.0,
}  # fmt: skip


def edit(folder: Path, changes: dict[str, Any], name: str = "report_source.json") -> Path:
    """A file of a folder with changes planted; the source's path."""
    value = json.loads((folder / name).read_text(encoding="utf-8"))
    for path, new in changes.items():
        put(value, path, new)
    (folder / name).write_text(json.dumps(value, ensure_ascii=False), encoding="utf-8")
    return folder / "report_source.json"


def faults_of(path: Path) -> list[str]:
    return [fault.path for fault in generating.check(path).faults]


CLAIMS: list[tuple[dict[str, Any], str]] = [
    ({"results.native_prefill_status": "evidence_missing", "verification_axes.tensor_prefill.status": "evidence_missing"},
     "results.native_prefill_status"),
    ({"results.conditional_prefill_status": "exact"}, "results.conditional_prefill_status"),
    ({"provenance.train.digest": "0" * 64}, "provenance.train.digest"),
    ({"differences": []}, "differences"),
    ({"differences[0].status": "pending"}, "differences[0].status"),
    ({"differences[0].status": "rejected_hypothesis"}, "differences[0].status"),
    ({"differences[0].boundary": "layers.0.q.out"}, "differences[0].boundary"),
    ({"differences[0].discovery_max_abs_diff": 0.65}, "differences[0].discovery_max_abs_diff"),
    ({"limitations": []}, "limitations"),
    ({"artifacts.files[0].name": "gone.json"}, "artifacts.files[0].name"),
]  # fmt: skip


@pytest.mark.parametrize(("changes", "path"), CLAIMS, ids=[f"{path}-{at}" for at, (_, path) in enumerate(CLAIMS)])
def test_a_claim_against_the_results_is_refused(changes: dict[str, Any], path: str, folder: Callable[[str], Path]) -> None:
    assert set(faults_of(edit(folder(PAIR), changes))) == {path}


def test_a_fault_that_still_shows_is_never_resolved(folder: Callable[[str], Path]) -> None:
    """Even with all that resolved takes: the conclusion beside it still finds the fault."""
    gate = {**GATE, "real_path_activation_proved": True}
    told = {"status": "resolved", "verification_gate": gate, "verification_max_abs_diff": 0.0, "repair_result": "loaded anew"}
    changes = {f"differences[0].{key}": value for key, value in told.items()}
    assert faults_of(edit(folder(PAIR), changes)) == ["differences[0].status"]


def test_an_id_of_no_finding_is_refused_and_one_of_people_is_not(folder: Callable[[str], Path]) -> None:
    path = folder(PAIR) / "report_source.json"
    (one,) = json.loads(path.read_text(encoding="utf-8"))["differences"]
    for number, refused in (("F9", ["differences[1].diff_id"]), ("D-1", [])):
        assert faults_of(edit(path.parent, {"differences": [one, {**one, "diff_id": number}]})) == refused


def test_weights_are_exact_only_where_all_were_compared(folder: Callable[[str], Path]) -> None:
    """38 of 39 are equal, one was not recorded by itself: that is no proof of the whole."""
    path = edit(folder(ROUNDING), {"verification_axes.weight_sync.status": "exact"})
    assert faults_of(path) == ["verification_axes.weight_sync.status"]


def test_a_file_that_was_edited_since_is_told_and_no_fault(folder: Callable[[str], Path]) -> None:
    path = folder(PAIR) / "report_source.json"
    probe = path.parent / "probe.json"
    probe.write_bytes(probe.read_bytes() + b"\n")
    found = generating.check(path)
    assert found.faults == []
    assert [line for line in found.warnings if "probe.json was made or edited since" in line]


def test_results_are_asked_though_the_source_does_not_name_them(folder: Callable[[str], Path]) -> None:
    """Leaving the list of files empty must not open a way around them."""
    path = edit(folder(PAIR), {"artifacts.files": [], "differences": []})
    assert faults_of(path) == ["differences"]


# --- D07: zero because it was not computed ---


@pytest.fixture
def not_computed(folder: Callable[[str], Path], tmp_path: Path) -> Path:
    """The folder of a rounding pair, concluded with a log that says valid 0, mean 0."""
    log = tmp_path / "train.log"
    log.write_text("step:1 - training/rollout_probs_diff_valid:0 - training/rollout_probs_diff_mean:0.0\n")
    work = folder(ROUNDING)
    assert run_command("conclude.py", "--workdir", work, "--train-log", log).returncode == 0
    assert run_command("generate_alignment_report.py", "--from-results", work, "--lang", "en").returncode == 0
    return work


def test_a_metric_that_was_not_computed_is_not_run_and_null(not_computed: Path) -> None:
    results = json.loads((not_computed / "report_source.json").read_text())["results"]
    assert (results["e2e_metric_status"], results["e2e_metric_value"]) == ("not_run", None)
    assert "was not computed" in results["e2e_metric_evidence"]
    assert faults_of(not_computed / "report_source.json") == []


@pytest.mark.parametrize(("status", "value"), [("zero", 0), ("exact", 0), ("nonzero", 0.01)])
def test_a_source_that_claims_a_value_of_it_is_refused(status: str, value: float, not_computed: Path, tmp_path: Path) -> None:
    """D07: exit 2, the field is named, and no report is left."""
    path = edit(not_computed, {"results.e2e_metric_status": status, "results.e2e_metric_value": value})
    ran = run_command("generate_alignment_report.py", "--input", path, "--output-dir", tmp_path / "out")
    assert (ran.returncode, ran.stdout) == (2, "")
    assert "results.e2e_metric_status" in ran.stderr
    assert "valid 0" in ran.stderr
    assert not (tmp_path / "out").exists()


def test_a_measured_metric_stands_as_the_log_has_it(folder: Callable[[str], Path], tmp_path: Path) -> None:
    log = tmp_path / "train.log"
    log.write_text("step:3 - training/rollout_probs_diff_valid:1 - training/rollout_probs_diff_mean:0.0123456789\n")
    work = folder(ROUNDING)
    assert run_command("conclude.py", "--workdir", work, "--train-log", log).returncode == 0
    assert run_command("generate_alignment_report.py", "--from-results", work).returncode == 0
    results = json.loads((work / "report_source.json").read_text(encoding="utf-8"))["results"]
    assert (results["e2e_metric_status"], results["e2e_metric_value"]) == ("nonzero", 0.0123456789)
    assert faults_of(edit(work, {"results.e2e_metric_value": 0.0123})) == ["results.e2e_metric_value"]


# --- D14: a known gap stays visible ---


def test_a_rounding_pair_cannot_be_called_exact(folder: Callable[[str], Path]) -> None:
    changes = {
        "results.native_prefill_status": "exact", "verification_axes.tensor_prefill.status": "exact",
        "results.native_exact_gate": GATE,
    }  # fmt: skip
    assert faults_of(edit(folder(ROUNDING), changes)) == ["results.native_prefill_status"]


@pytest.mark.parametrize("left", [0, 5, 11])
def test_none_of_twelve_rounding_points_goes_out_of_sight(left: int, folder: Callable[[str], Path]) -> None:
    """Each with its cause, its count and its largest size; the report is refused where one is taken out, and none is resolved."""
    work = folder(ROUNDING)
    path = work / "conclusion.json"
    conclusion = json.loads(path.read_text())
    one = conclusion["findings"][1]
    conclusion["findings"] = [{**one, "id": f"F{n}", "size": {**one["size"], "unequal": 100 + n}} for n in range(1, 13)]
    path.write_text(json.dumps(conclusion))
    assert run_command("generate_alignment_report.py", "--from-results", work, "--lang", "en").returncode == 0
    source = json.loads((work / "report_source.json").read_text(encoding="utf-8"))
    told = [text for text in source["limitations"] if text.startswith("F")]
    assert [text.split(" ")[0] for text in told] == [f"F{n}" for n in range(1, 13)]
    assert all(f"{100 + n} of {one['size']['of']} elements" in text for n, text in enumerate(told, 1))
    assert all(f"{one['size']['ulp_max']} ULP" in text and one["cause"]["text"] in text for text in told)
    assert source["differences"] == []
    assert faults_of(work / "report_source.json") == []
    at = source["limitations"].index(told[left])
    assert faults_of(edit(work, {f"limitations[{at}]": DELETE})) == ["limitations"]
