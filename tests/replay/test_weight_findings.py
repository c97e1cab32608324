"""Findings of weights that differ: one cause is one finding, and what is no difference, or only a format, is not called a fault."""

from typing import Any

from dump_analysis import weights
from dump_analysis.artefacts.boundary_results import BoundaryResult, Status, Unequal
from dump_analysis.artefacts.common import FileDigest, SideLabel
from dump_analysis.artefacts.conclusion import Finding
from dump_analysis.artefacts.replay_results import ReplayResults, WeightReplay
from dump_analysis.findings.weights import of_weights
from dump_analysis.wording import word


def result(name: str, status: Status = "NOT_EXACT") -> BoundaryResult:
    return BoundaryResult(name, 0, status, shape=[2, 5], unequal=Unequal(0 if status == "EXACT" else 7, 0.7))


def replay(*listed: WeightReplay) -> ReplayResults:
    label = SideLabel("x", "0" * 64)
    return ReplayResults(
        train=label,
        infer=label,
        mapping=FileDigest("0" * 64),
        modules=[],
        edges=[],
        weights=list(listed),
        calibration={"train": {}, "infer": {}},
    )


def findings(results: list[BoundaryResult], *listed: WeightReplay) -> list[Finding]:
    return of_weights(weights.compared(results), replay(*listed) if listed else None, {})


def step(name: str, **fields: Any) -> WeightReplay:
    told = word("weight_small_update", weight=name, rel_l2=0.02, cosine=1.0, unequal=7, of=10)
    return WeightReplay(name, "NOT_EXACT", "small_update", None, [told], **fields)


NAMES = [f"layers.{layer}.{place}.weight" for layer in range(2) for place in ("q", "k")]


def test_one_cause_in_several_places_is_one_finding() -> None:
    """Not one a place; the sentence of each weight stays among the evidence."""
    equal = WeightReplay("embedding.weight", "EXACT", None, None)
    (found,) = findings([*map(result, NAMES), result("embedding.weight", "EXACT")], *map(step, NAMES), equal)
    assert (found.boundaries, found.layers, found.character, found.side, found.confirmed_by) == (
        NAMES,
        [0, 1],
        "logic",
        "unknown",
        ["weights"],
    )
    assert found.cause.text == "q, k of layers 0–1: moved a little throughout, as by another optimizer step"
    assert [told.kind for told in found.evidence] == ["compared_bytes"] * 4 + ["weight_small_update"] * 4
    assert (found.size.unequal, found.size.of) == (28, 40)


def test_without_replay_each_place_is_a_finding() -> None:
    found = findings(list(map(result, NAMES)))
    assert [one.boundaries for one in found] == [NAMES[::2], NAMES[1::2]]
    assert {one.cause.kind for one in found} == {"weight_differs"}


def test_a_checkpoint_proves_the_side() -> None:
    told = word("weight_stale", weight=NAMES[0], side="infer", other="train")
    (found,) = findings([result(NAMES[0])], WeightReplay(NAMES[0], "NOT_EXACT", "stale", None, [told], side="infer"))
    assert (found.character, found.side, found.resolvable) == ("logic", "infer", "yes")


def test_a_coarser_format_is_rounding() -> None:
    """float32 masters against the engine's bfloat16 are in every mixed precision run."""
    told = word("weight_rounded", weight=NAMES[0], side="infer", other="train", format="bfloat16")
    listed = WeightReplay(NAMES[0], "DTYPE_DIFF", "rounded", None, [told], format_only=True)
    (found,) = findings([result(NAMES[0], "DTYPE_DIFF")], listed)
    assert (found.character, found.side, found.confirmed_by) == ("rounding", "both", ["replay"])
    (found,) = findings([result(NAMES[0], "DTYPE_DIFF")], WeightReplay(NAMES[0], "DTYPE_DIFF", "rounded", None, [told]))
    assert found.character == "logic"


def test_a_gain_stored_less_one_is_no_finding() -> None:
    """The comparison of bytes sees another weight, replay the same gain."""
    name = "layers.0.input_norm.weight"
    told = word("weight_one_added", weight=name, side="infer", other="train")
    assert findings([result(name)], WeightReplay(name, "EXACT", None, None, [told])) == []


def test_what_replay_did_not_compare_is_still_a_finding() -> None:
    found = findings([result(NAMES[0]), result(NAMES[1])], step(NAMES[0]), WeightReplay(NAMES[1], "MISSING", None, None))
    assert [(one.boundaries, one.cause.kind) for one in found] == [([NAMES[0]], "weight_small_update"), ([NAMES[1]], "weight_differs")]
