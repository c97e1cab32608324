"""The form of a report source: every fault of a file is told, with its path and the nearest word, and nothing that holds is refused."""

import copy
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, get_args

import msgspec
import pytest
from dump_analysis.artefacts import io, report_source
from dump_analysis.artefacts.report_source import ReportSource
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msprobe_files.errors import DumpError
from planting import DELETE, put

SLIPS = [
    ("language", "zh", "language", "zh-CN"),
    ("schema_version", 2, "schema_version", "expected 1"),
    ("title", DELETE, "title", "is missing"),
    ("titel", "x", "titel", 'Did you mean "title"?'),
    ("results.native_prefill_status", "exakt", "results.native_prefill_status", 'Did you mean "exact"?'),
    ("results.conditional_prefill_status", "zero", "results.conditional_prefill_status", "expected"),
    ("results.e2e_metric_status", "measured", "results.e2e_metric_status", '"zero", "nonzero"'),
    ("results.e2e_metric_value", "0", "results.e2e_metric_value", "a number or null"),
    ("results.unresolved_replay_ids", "F1", "results.unresolved_replay_ids", "a list of a text"),
    ("results.native_exact_gate", {}, "results.native_exact_gate.same_shape", "is missing"),
    ("acceptance_contract.status", "ok", "acceptance_contract.status", '"pass", "fail"'),
    ("acceptance_contract.required_gates", ["weights_sync"], "acceptance_contract.required_gates[0]", 'Did you mean "weight_sync"?'),
    ("acceptance_contract.long_horizon_required", 1, "acceptance_contract.long_horizon_required", "true or false"),
    ("scope.phase", "decode", "scope.phase", '"prefill"'),
    ("scope.topology", {"tp": 1, "pp": 1, "ep": 1}, "scope.topology.train", "is missing"),
    ("scope.topology.train.tp", "1", "scope.topology.train.tp", 'a whole number or "unknown"'),
    ("differences[0].status", "solved", "differences[0].status", 'Did you mean "resolved"?'),
    ("differences[0].observation", "replay", "differences[0].observation", '"native" or "conditional"'),
    ("differences[0].root_cause_class", "Weights sync", "differences[0].root_cause_class", 'Did you mean "Weight sync"?'),
    ("differences[0].root_cause_confidence", "confirmed", "differences[0].root_cause_confidence", '"CONFIRMED"'),
    ("differences[0].proof", "seen", "differences[0].proof", "a list of a text"),
    ("differences[0].severity", 1, "differences[0].severity", "unknown key"),
    ("verification_axes.weight_sync.status", "pass", "verification_axes.weight_sync.status", '"exact", "mismatch"'),
    ("verification_axes.stateful_training.status", "not_applicable", "verification_axes.stateful_training.status", '"pass", "fail"'),
    ("verification_axes.performance_regression.status", "n/a", "verification_axes.performance_regression.status", '"not_applicable"'),
    ("verification_axes.stateful_training", DELETE, "verification_axes.stateful_training", "is missing"),
    ("limitations", ["x", 3], "limitations[1]", "a text"),
    ("comparison.train_prompt_slice", "0:14", "comparison.train_prompt_slice", "a list of a whole number"),
    ("artifacts.prompt_included", True, "artifacts.prompt_included", "false"),
    ("artifacts.raw_tensor_included", True, "artifacts.raw_tensor_included", "false"),
    ("provenance.train.versions", [], "provenance.train.versions", "an object"),
]  # fmt: skip


@pytest.mark.parametrize(("path", "new", "told", "words"), SLIPS, ids=[f"{path}={new!r:.20}" for path, new, _, _ in SLIPS])
def test_a_slip_is_told_with_its_path_and_what_is_taken(path: str, new: Any, told: str, words: str, faulty: dict[str, Any]) -> None:
    put(faulty, path, new)
    source, faults = report_source.from_value(faulty)
    assert source is None
    assert any(words in fault.line for fault in faults if fault.path == told), [fault.line for fault in faults]
    assert all(fault.remedy for fault in faults)


def test_every_slip_of_a_file_is_told_at_once(faulty: dict[str, Any]) -> None:
    """A person who mends one and runs again, thirty times, gives up."""
    planted = [
        slip for slip in SLIPS if slip[0] not in ("scope.topology", "results.native_exact_gate", "verification_axes.stateful_training")
    ]
    for path, new, _, _ in planted:
        put(faulty, path, new)
    _, faults = report_source.from_value(faulty)
    assert {fault.path for fault in faults} == {told for _, _, told, _ in planted}


@pytest.mark.parametrize("language", get_args(report_source.ReportLanguage))
def test_what_is_read_is_written_again(language: str, diagnosed: Callable[[str], Path], faulty: dict[str, Any]) -> None:
    faulty["language"] = language
    source, faults = report_source.from_value(faulty)
    assert (source is not None, faults) == (True, [])
    assert json.loads(io.text_of(source)) == faulty


@pytest.mark.parametrize("value", [[], "x", None, 1, {}, {"schema": "report_source/2"}, {"schema_version": 1}])
def test_what_is_no_report_source_is_one_error(value: Any) -> None:
    with pytest.raises(DumpError, match=r"Cannot use report_source\.json"):
        report_source.from_value(value)


# --- against msgspec's own reading ---


def paths(value: Any, path: str = "") -> Iterator[str]:
    """Every place of parsed JSON."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        place = f"{path}[{key}]" if isinstance(value, list) else f"{path}.{key}" if path else key
        yield place
        yield from paths(item, place)


def unknown_keys(value: Any, schema: Any, defs: dict[str, Any]) -> bool:
    """Whether parsed JSON has a key that the exported JSON Schema lacks."""
    options = schema.get("anyOf", [schema])
    options = [defs[one["$ref"].rpartition("/")[2]] if "$ref" in one else one for one in options]
    if isinstance(value, list):
        items = [one["items"] for one in options if "items" in one]
        return any(unknown_keys(item, items[0], defs) for item in value) if items else False
    known = [one["properties"] for one in options if "properties" in one]
    if not isinstance(value, dict) or not known:
        return False
    return any(key not in known[0] or unknown_keys(item, known[0][key], defs) for key, item in value.items())


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=5)
    | st.sampled_from(["unknown", "exact", "pass", "zh-CN", "native", "Config"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5) | st.sampled_from(["tp", "status"]), inner, max_size=3),
    max_leaves=6,
)  # fmt: skip


def test_a_file_is_refused_exactly_where_msgspec_or_its_schema_refuse_it(faulty: dict[str, Any]) -> None:
    """The walk that finds every fault must not be milder or harsher than the types; any value at any place."""
    (schema,), defs = msgspec.json.schema_components([ReportSource])
    places = list(paths(faulty))

    @settings(max_examples=400, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.function_scoped_fixture])
    @given(place=st.sampled_from([place for place in places if place != "schema"]), new=JSON)
    def judge(place: str, new: Any) -> None:
        changed = copy.deepcopy(faulty)
        put(changed, place, new)
        try:
            msgspec.convert(changed, ReportSource)
            refused = unknown_keys(changed, schema, defs)
        except msgspec.ValidationError:
            refused = True
        _, faults = report_source.from_value(changed)
        assert bool(faults) == refused, [fault.line for fault in faults]
        assert all(fault.path.startswith(place) or place.startswith(fault.path) for fault in faults)

    judge()
