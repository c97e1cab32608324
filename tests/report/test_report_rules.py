"""What may not stand together in a report source: each rule by one planted contradiction, told with its path and what to write."""

import copy
from typing import Any

import pytest
from dump_analysis.artefacts import report_source
from dump_analysis.report import rules
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from planting import put

GATE = {
    "same_shape": True, "same_dtype": True, "no_nonfinite": True, "torch_equal": True, "downstream_checked": True,
    "real_path_activation_proved": True, "max_abs_diff": 0.0,
}  # fmt: skip
EXACT = {
    "results.native_prefill_status": "exact", "verification_axes.tensor_prefill.status": "exact", "results.native_exact_gate": GATE,
    "differences": [],
}  # fmt: skip
STILL_DIFFERING = {path: new for path, new in EXACT.items() if path != "differences"}
RESOLVED = {
    "differences[0].status": "resolved", "differences[0].verification_gate": GATE, "differences[0].verification_max_abs_diff": 0.0,
    "differences[0].repair_result": "loaded anew", "verification_axes.weight_sync.status": "exact",
}  # fmt: skip

# fmt: off
CONTRADICTIONS: list[tuple[dict[str, Any], str]] = [
    ({"results.e2e_metric_status": "zero"}, "results.e2e_metric_value"),
    ({"results.e2e_metric_status": "nonzero"}, "results.e2e_metric_value"),
    ({"results.e2e_metric_status": "exact"}, "results.e2e_metric_value"),
    ({"results.e2e_metric_status": "zero", "results.e2e_metric_value": 0.1}, "results.e2e_metric_value"),
    ({"results.e2e_metric_status": "nonzero", "results.e2e_metric_value": 0}, "results.e2e_metric_value"),
    ({"results.e2e_metric_status": "not_run", "results.e2e_metric_value": 0}, "results.e2e_metric_value"),
    ({"results.e2e_metric_status": "evidence_missing", "results.e2e_metric_value": 0.5}, "results.e2e_metric_value"),
    ({"results.native_exact_gate": GATE}, "results.native_exact_gate"),
    ({**EXACT, "results.native_exact_gate": None}, "results.native_exact_gate"),
    *(({**EXACT, "results.native_exact_gate": {**GATE, part: False}}, f"results.native_exact_gate.{part}") for part in list(GATE)[:-1]),
    ({**EXACT, "results.native_exact_gate": {**GATE, "max_abs_diff": 1e-9}}, "results.native_exact_gate.max_abs_diff"),
    (
        {
            **STILL_DIFFERING, "results.unresolved_replay_ids": ["F3"], "differences[0].status": "unresolved_replayed",
            "differences[0].discovery_max_abs_diff": None,
        },
        "results.unresolved_replay_ids",
    ),
    (STILL_DIFFERING, "differences[0].discovery_max_abs_diff"),
    ({"verification_axes.tensor_prefill.status": "exact"}, "verification_axes.tensor_prefill.status"),
    ({"verification_axes.weight_sync.status": "exact"}, "verification_axes.weight_sync.status"),
    ({"verification_axes.long_horizon_e2e.status": "pass"}, "verification_axes.long_horizon_e2e.status"),
    ({"results.unresolved_replay_ids": ["D-7"]}, "results.unresolved_replay_ids[0]"),
    ({"results.unresolved_replay_ids": ["F3"]}, "results.unresolved_replay_ids[0]"),
    ({"differences[0].status": "unresolved_replayed"}, "differences[0].status"),
    (
        {"differences[0].status": "unresolved_replayed", "results.unresolved_replay_ids": ["F3", "F3"]},
        "results.unresolved_replay_ids[1]",
    ),
    ({**RESOLVED, "differences[0].verification_gate": None}, "differences[0].verification_gate"),
    ({**RESOLVED, "differences[0].verification_gate": {**GATE, "torch_equal": False}}, "differences[0].verification_gate.torch_equal"),
    ({**RESOLVED, "differences[0].verification_max_abs_diff": None}, "differences[0].verification_max_abs_diff"),
    ({**RESOLVED, "differences[0].verification_max_abs_diff": 0.1}, "differences[0].verification_max_abs_diff"),
    ({**RESOLVED, "differences[0].repair_result": None}, "differences[0].repair_result"),
    ({"differences[0].verification_gate": GATE}, "differences[0].verification_gate"),
    ({"differences[0].diff_id": " "}, "differences[0].diff_id"),
    ({"differences[0].root_cause_class": "unknown"}, "differences[0].root_cause_confidence"),
    ({"differences[0].discovery_max_abs_diff": -1}, "differences[0].discovery_max_abs_diff"),
    ({"acceptance_contract.required_gates": ["weight_sync", "weight_sync"]}, "acceptance_contract.required_gates"),
    ({"acceptance_contract.long_horizon_required": True}, "acceptance_contract.long_horizon_required"),
    ({"acceptance_contract.required_gates": ["long_horizon_e2e"]}, "acceptance_contract.long_horizon_required"),
    ({"acceptance_contract.historical_failure_step": -1}, "acceptance_contract.historical_failure_step"),
    ({"acceptance_contract.status": "pass"}, "acceptance_contract.status"),
    ({"scope.topology.infer.tp": 0}, "scope.topology.infer.tp"),
    ({"comparison.prompt_token_length": -1}, "comparison.prompt_token_length"),
    ({"comparison.train_prompt_slice": [0, 99]}, "comparison.train_prompt_slice"),
    ({"comparison.train_prompt_slice": [5, 2]}, "comparison.train_prompt_slice"),
    ({"comparison.logit_rows": [1, 2, 3]}, "comparison.logit_rows"),
    ({"provenance.infer.digest": "abc"}, "provenance.infer.digest"),
    ({"artifacts.files[0].digest": "A" * 64}, "artifacts.files[0].digest"),
    ({"artifacts.files[0].name": "../conclusion.json"}, "artifacts.files[0].name"),
    ({"artifacts.files[0].name": "/etc/passwd"}, "artifacts.files[0].name"),
    ({"generated_at": "yesterday"}, "generated_at"),
    ({"generated_at": "2026-13-01"}, "generated_at"),
    ({"acceptance_contract.objective": ""}, "acceptance_contract.objective"),
    ({"scope.model": "  "}, "scope.model"),
    ({"verification_axes.weight_sync.evidence": ""}, "verification_axes.weight_sync.evidence"),
    ({"limitations": ["x", ""]}, "limitations[1]"),
    ({"differences[0].summary": ""}, "differences[0].summary"),
]
# fmt: on


def read(value: dict[str, Any]) -> report_source.ReportSource:
    source, faults = report_source.from_value(value)
    assert source is not None, [fault.line for fault in faults]
    return source


def planted(value: dict[str, Any], changes: dict[str, Any]) -> report_source.ReportSource:
    for path, new in changes.items():
        put(value, path, copy.deepcopy(new))
    return read(value)


@pytest.mark.parametrize(("changes", "path"), CONTRADICTIONS, ids=[path + f"-{at}" for at, (_, path) in enumerate(CONTRADICTIONS)])
def test_a_contradiction_is_told_once_with_its_path(changes: dict[str, Any], path: str, faulty: dict[str, Any]) -> None:
    found = rules.contradictions(planted(faulty, changes))
    assert [fault.path for fault in found] == [path], [fault.line for fault in found]
    assert found[0].why
    assert found[0].remedy.endswith(".")


ALLOWED: list[dict[str, Any]] = [
    {},
    EXACT,
    {**EXACT, "results.native_exact_gate": {**GATE, "real_path_activation_proved": "unknown"}},
    RESOLVED,
    {"results.e2e_metric_status": "zero", "results.e2e_metric_value": 0},
    {"results.e2e_metric_status": "nonzero", "results.e2e_metric_value": -0.25},
    {"results.e2e_metric_status": "not_run"},
    {"differences[0].status": "unresolved_replayed", "results.unresolved_replay_ids": ["F3"]},
    {"differences[0].status": "pending", "differences[0].root_cause_class": "unknown", "differences[0].root_cause_confidence": "CANDIDATE"},
    {"differences[0].status": "rejected_hypothesis"},
    {**EXACT, "acceptance_contract.status": "pass", "verification_axes.weight_sync.status": "exact"},
    {
        "acceptance_contract.required_gates": ["long_horizon_e2e"], "acceptance_contract.long_horizon_required": True,
        "acceptance_contract.historical_failure_step": 40,
    },
    {"scope.topology.train": {"tp": 8, "pp": 2, "ep": 4}, "scope.topology.infer": {"tp": 4, "pp": 1, "ep": 4, "cp": 2, "dp": "unknown"}},
    {"generated_at": "2026-11-29"},
    {"generated_at": "2026-11-29T08:00:00+08:00"},
    {"artifacts.files": [{"name": "round1/round_result.json", "digest": "unknown"}]},
    {"comparison.train_prompt_slice": None, "comparison.logit_rows": "unknown"},
]  # fmt: skip


@pytest.mark.parametrize("changes", ALLOWED, ids=map(str, range(len(ALLOWED))))
def test_what_may_stand_together_passes(changes: dict[str, Any], faulty: dict[str, Any]) -> None:
    """The other side of each rule."""
    assert [fault.line for fault in rules.contradictions(planted(faulty, changes))] == []


def test_exact_said_of_the_metric_is_zero_and_noted(faulty: dict[str, Any]) -> None:
    """Users' files say so."""
    given_so = planted(faulty, {"results.e2e_metric_status": "exact", "results.e2e_metric_value": 0})
    source, notes = rules.as_said(given_so)
    assert source.results.e2e_metric_status == "zero"
    assert [note for note in notes if "e2e_metric_status" in note and "zero" in note]
    assert rules.as_said(source) == (source, [])


def test_all_contradictions_are_told_at_once(faulty: dict[str, Any]) -> None:
    found = rules.contradictions(
        planted(faulty, {"generated_at": "x", "scope.model": "", "verification_axes.tensor_prefill.status": "exact"})
    )
    assert {fault.path for fault in found} == {"generated_at", "scope.model", "verification_axes.tensor_prefill.status"}


def test_the_metric_rule_over_all_statuses_and_values(faulty: dict[str, Any]) -> None:
    """Against the table of the requirement, written out: zero 0, nonzero any other number, the other two null."""
    fits = {"zero": lambda v: v == 0, "exact": lambda v: v == 0, "nonzero": lambda v: v not in (None, 0)}
    fits |= dict.fromkeys(("not_run", "evidence_missing"), lambda v: v is None)

    @settings(max_examples=200, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.function_scoped_fixture])
    @given(
        status=st.sampled_from(sorted(fits)),
        value=st.none() | st.sampled_from([0, 0.0, -0.0]) | st.floats(allow_nan=False, allow_infinity=False),
    )
    def judge(status: str, value: float | None) -> None:
        changed = copy.deepcopy(faulty)
        found = rules.contradictions(planted(changed, {"results.e2e_metric_status": status, "results.e2e_metric_value": value}))
        assert [fault.path for fault in found] == ([] if fits[status](value) else ["results.e2e_metric_value"])

    judge()
