"""Real pairs: what is said of each equals what is known of it by other means (expected.json, written by hand)."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from laying import SAMPLES, Sample

PAIRS = sorted(
    path.parent.relative_to(SAMPLES).as_posix() for pattern in ("*", "several/*") for path in SAMPLES.glob(f"{pattern}/pair.json")
)


@pytest.mark.parametrize("name", PAIRS)
def test_what_is_said_of_a_real_pair(name: str, sample: Callable[[str], Sample], diagnosed: Callable[[str], Path]) -> None:
    """First divergence, uncompared predecessors, findings and the conclusion, against values written by hand."""
    conclusion, results = (json.loads((diagnosed(name) / f"{part}.json").read_text()) for part in ("conclusion", "boundary_results"))
    known = sample(name).expected
    first = conclusion["first_divergence"] or {"boundary": None, "uncompared_before": [], "predecessors_complete": True}
    assert first["boundary"] == known["first_divergence"]
    assert first["uncompared_before"] == known["uncompared_before"]
    assert first["predecessors_complete"] == (not known["uncompared_before"])
    assert (conclusion["overall"], conclusion["consistency"]) == (known["overall"], known["consistency"])
    found = [[finding[key] for key in ("boundary", "layers", "character", "side")] for finding in conclusion["findings"]]
    assert found == known["findings"]
    # Everything before the first divergence was compared and is EXACT, or is listed.
    for row in results["boundaries"]:
        if row["boundary"] == known["first_divergence"]:
            break
        assert row["status"] == "EXACT" or row["boundary"] in known.get("evidence_missing", [])


def test_inputs_recorded_after_the_call_are_no_evidence(sample: Callable[[str], Sample], diagnosed: Callable[[str], Path]) -> None:
    """A module input that a release before 26.2 recorded after the call, and that equals an output, is never NOT_EXACT."""
    pair = sample("mini_tensor-26.1-against-26.2")
    rows = json.loads((diagnosed(pair.name) / "boundary_results.json").read_text())["boundaries"]
    by_status: dict[str, list[str]] = {}
    for row in rows:
        by_status.setdefault(row["status"], []).append(row["boundary"])
    assert by_status["evidence_missing"] == pair.expected["evidence_missing"]
    assert by_status["NONFINITE"] == pair.expected["nonfinite"]
    assert by_status["NOT_EXACT"] == pair.expected["unequal"]
    assert {row["boundary"] for row in rows if row["reason"] and row["reason"]["kind"] == "equal_infinities"} == set(
        pair.expected["equal_infinities"]
    )
