"""Rows of dumps without tensors, one by one: what a digest shows beside its statistics, and what is said where little is known."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from dump_analysis import divergence, stated_rows, stated_words
from dump_analysis.artefacts.boundary_results import BoundaryResult, BoundaryResults
from dump_analysis.artefacts.common import FileDigest, SideLabel
from dump_analysis.artefacts.conclusion import Conclusion
from dump_analysis.artefacts.semantic_mapping import Row
from dump_analysis.conclusion import conclude
from dump_analysis.findings.compared import of_weight
from dump_analysis.mapping.stated.stated import stated
from dump_analysis.sides import Side, open_side
from dump_analysis.statistics import Facts, agreement, together
from dump_analysis.weights import compared
from editing import edit_json, unit_of
from laying import Sample
from msprobe_files.operands import Operand, parse
from running import run_command
from thinning import crc, thinned

OUTPUT, WEIGHT = "Module.m.M.forward.0.output.0", "Module.m.M.forward.0.parameters.weight"
NUMBERS = {"Max": 1.0, "Min": -1.0, "Mean": 0.0, "Norm": 4.0}
NAN = float("nan")


def record(**fields: Any) -> dict[str, Any]:
    return {"type": "torch.Tensor", "dtype": "torch.float32", "shape": [8, 8], **fields}


def side_of(root: Path, label: str, tensor: dict[str, Any], more: dict[str, Any] | None = None) -> Side:
    """A side of one entry, which records one tensor as its output and as its weight."""
    unit = root / label / "step0" / "rank0"
    unit.mkdir(parents=True)
    entry = {"input_args": [], "input_kwargs": {}, "output": [tensor], "parameters": {"weight": tensor}, **(more or {})}
    (unit / "dump.json").write_text(json.dumps({"task": "statistics", "level": "L0", "data": {"Module.m.M.forward.0": entry}}))
    return open_side(label, [str(root / label)])


def operand(name: str, *steps: dict[str, Any]) -> Operand:
    return parse({"sources": [{"name": name, "steps": list(steps)}]})


def row(train: Side, infer: Side, name: str = OUTPUT, *steps: dict[str, Any]) -> BoundaryResult:
    boundary = "m.weight" if name == WEIGHT else "m.out"
    (found,) = stated_rows.results([Row(boundary, 0, operand(name), operand(name, *steps))], train, infer)
    return found


def pair(root: Path, train: dict[str, Any], infer: dict[str, Any]) -> tuple[Side, Side]:
    return side_of(root, "train", record(**train)), side_of(root, "infer", record(**infer))


def kind_of(found: BoundaryResult) -> str:
    assert found.reason is not None
    return found.reason.kind


def concluded(boundaries: list[BoundaryResult], weights: list[BoundaryResult]) -> Conclusion:
    found = BoundaryResults(
        train=SideLabel("train", "0" * 64),
        infer=SideLabel("infer", "0" * 64),
        mapping=FileDigest("0" * 64),
        boundaries=boundaries,
        weights=weights,
        first_divergence=None,
        counts=divergence.counts(boundaries),
        overall=divergence.overall(boundaries, weights),
    )
    return conclude(found, None, None, [])


# --- digests of weights ---


@pytest.mark.parametrize(
    ("numbers", "other", "status", "character"),
    [
        (NUMBERS, {}, "evidence_missing", None),
        (NUMBERS, {"Max": 1.5}, "NOT_EXACT", "logic"),
        (NUMBERS, {"Norm": 4.5}, "NOT_EXACT", "logic"),
        ({}, {}, "NOT_EXACT", "unknown"),
        ({"Max": 1.0, "Min": -1.0}, {}, "NOT_EXACT", "unknown"),
        ({"dtype": "torch.bfloat16", **NUMBERS}, {}, "evidence_missing", None),
        ({"dtype": "torch.bfloat16", **NUMBERS}, {"Mean": 2.0**-12}, "NOT_EXACT", "unknown"),
    ],
)
def test_a_weight_that_lies_otherwise_is_no_fault(
    tmp_path: Path, numbers: dict[str, Any], other: dict[str, float], status: str, character: str | None
) -> None:
    """A square matrix kept as [in, out] has another digest and the same statistics: logic only where those differ too.

    A mean of bfloat16 that moves by less than rounding may be an optimizer's step: found, and not judged.
    """
    sides = pair(tmp_path, {"md5": "00000001", **numbers}, {"md5": "00000002", **numbers, **other})
    found = row(*sides, WEIGHT)
    assert found.status == status
    told = concluded([], [found])
    assert [finding.character for finding in told.findings] == ([] if character is None else [character])
    assert told.consistency == ("inconsistent" if character == "logic" else "undecided")
    if character is None:
        assert kind_of(found) == "digest_order"
    if character == "unknown":
        assert [wanted.kind for wanted in told.would_decide] == ["decide_tensors"]


def test_one_layer_whose_statistics_differ_is_logic_among_others(tmp_path: Path) -> None:
    """Catches an excuse of one layer that is taken for all layers of a place."""
    rows = []
    for layer, numbers in enumerate(({}, NUMBERS)):
        infer = {"md5": "00000002", **numbers, **({"Max": 1.5} if numbers else {})}
        sides = pair(tmp_path / str(layer), {"md5": "00000001", **numbers}, infer)
        (found,) = stated_rows.results([Row(f"layers.{layer}.o.weight", layer, operand(WEIGHT), operand(WEIGHT))], *sides)
        rows.append(found)
    (finding,) = [of_weight(weight, {}) for weight in compared(rows).differing]
    assert finding.character == "logic"


@pytest.mark.parametrize("marks", [("<=26.0", ">=26.1"), (">=26.1", "<=26.0"), ("<=26.0", "<=26.0")])
def test_bfloat16_digests_need_releases_that_are_known(tmp_path: Path, marks: tuple[str, str]) -> None:
    """A unit that may be of 8.1 as well as of 26.0 is not proven to digest bfloat16 as it is, not even against its like."""
    sides = []
    for label, digest, mark in (("train", "00000001", marks[0]), ("infer", "00000002", marks[1])):
        tensor = record(md5=digest, dtype="torch.bfloat16")
        more: dict[str, Any] = {"parameters": {}, **({"is_recompute": False} if mark == "<=26.0" else {})}
        sides.append(side_of(tmp_path, label, tensor, more))
    found = row(sides[0], sides[1])
    assert (found.status, kind_of(found)) == ("evidence_missing", "digest_releases")


# --- shapes and ops ---


def test_an_op_that_does_not_fit_is_said(tmp_path: Path) -> None:
    """Catches "records no tensor" of a tensor that is there."""
    found = row(*pair(tmp_path, NUMBERS, NUMBERS), OUTPUT, {"op": "squeeze", "axis": 0})
    assert found.reason is not None
    assert (found.status, found.reason.kind) == ("MISSING", "op_does_not_fit")
    assert "size 8" in found.reason.text
    assert "infer" in found.reason.text


def test_a_shape_that_is_not_known_is_no_scalar(tmp_path: Path) -> None:
    """Two records without a shape have no elements in common, and no shape that could be equal."""
    sides = [_without_shape(side) for side in pair(tmp_path, NUMBERS, NUMBERS)]
    found = row(sides[0], sides[1])
    assert (found.status, kind_of(found), found.shape) == ("evidence_missing", "shape_not_recorded", None)


def _without_shape(side: Side) -> Side:
    by_name = {
        name: tuple(place._replace(record=place.record._replace(shape=None)) for place in places) for name, places in side.by_name.items()
    }
    return side._replace(by_name=by_name)


def test_axes_of_size_1_are_squeezed_by_the_mapping_or_not_at_all(tmp_path: Path) -> None:
    """EXACT with two shapes: the gate of tensors calls the same pair SHAPE_DIFF."""
    sides = pair(tmp_path, {"md5": "00000001"}, {"md5": "00000001", "shape": [1, 8, 8]})
    found, squeezed = row(*sides), row(*sides, OUTPUT, {"op": "squeeze", "axis": 0})
    assert (found.status, kind_of(found)) == ("SHAPE_DIFF", "shapes_but_ones")
    assert (squeezed.status, squeezed.shape) == ("EXACT", [8, 8])


def test_the_proposed_mapping_squeezes_weights(sample: Callable[[str], Sample], tmp_path: Path) -> None:
    """A weight that one side keeps with an axis of size 1 stays EXACT, by a row that says how."""
    sides = [thinned(sample("qwen2-vllm-onset-kv_swapped").train, tmp_path / side, crc) for side in ("train", "infer")]

    def widen(dump: Any) -> None:
        for entry, content in dump["data"].items():
            if "layers.1.self_attn.o_proj" in entry:
                rows, columns = content["parameters"]["weight"]["shape"]
                content["parameters"]["weight"]["shape"] = [rows, 1, columns]

    edit_json(unit_of(sides[1]) / "dump.json", widen)
    ran = run_command("diagnose.py", "--train", sides[0], "--infer", sides[1], "--output-dir", tmp_path / "out", "--exit-code", "--quiet")
    results = json.loads((tmp_path / "out" / "boundary_results.json").read_text())
    found = {one["boundary"]: one for one in results["weights"]}["layers.1.o_proj.weight"]
    assert (ran.returncode, found["status"]) == (0, "EXACT")
    assert found["ops_applied"]["infer"]["sources"][0]["steps"] == [{"op": "squeeze", "axis": 1}]
    assert len(found["shape"]) == 2


# --- files ---


@pytest.mark.parametrize(("digest", "status"), [("00000001", "EXACT"), (None, "evidence_missing")])
def test_a_damaged_file_is_named(tmp_path: Path, digest: str | None, status: str) -> None:
    """Catches a fall back to dump.json without a word; what dump.json states still counts."""
    train, infer = record(md5=digest, **NUMBERS), record(md5=digest, **NUMBERS, data_name=f"{OUTPUT}.pt")
    found = row(side_of(tmp_path, "train", train), side_of(tmp_path, "infer", infer, {"parameters": {}}))
    assert found.reason is not None
    assert (found.status, found.reason.kind) == (status, "stats_in_place_of_file")
    assert "is not there" in found.reason.text


# --- what is said of statistics ---


def test_unknown_sizes_do_not_agree() -> None:
    """Two records of no known shape are not of as many elements."""
    one = Facts(0, "bfloat16", 1.0, -1.0, 0.0, 4.0)
    assert agreement(one, one).agree == "cannot_tell"
    assert together([one, one._replace(elements=8)]).mean is None
    assert "no shape" in stated_words.told(one, one, agreement(one, one), []).text


@pytest.mark.parametrize(
    ("facts", "other", "said", "unsaid"),
    [
        (Facts(8, "bfloat16", 1.0, -1.0, None, None), {}, "no mean and no norm", "agree"),
        (Facts(8, "bfloat16", 1.0, -1.0, 0.0, None), {"largest": 2.0}, "mean agree", "norm"),
        (Facts(64, "bfloat16", 1.0, -1.0, 0.0, 4.0), {"largest": 2.0}, "norm, mean agree", "disagree"),
        (Facts(8, "bfloat16", None, None, None, None), {}, "no statistic is recorded on both", "finite"),
        (Facts(8, "bfloat16", NAN, 1.0, NAN, NAN), {}, "not finite on both", "step"),
        (Facts(8, "bfloat16", NAN, 1.0, None, None), {"largest": 2.0}, "not finite on one side", "extremes"),
    ],
)
def test_only_what_is_recorded_is_said(facts: Facts, other: dict[str, float], said: str, unsaid: str) -> None:
    """Catches "norm and mean agree" of records that hold neither, and floats without a norm that are called integers."""
    two = facts._replace(**other)  # type: ignore[arg-type]
    text = stated_words.told(facts, two, agreement(facts, two), []).text
    assert said in text
    assert unsaid not in text


def test_no_step_apart_names_the_step_of_that_value() -> None:
    """A mean near 0 beside a norm of 1728: its steps are those of values of root mean square 27, not the norm's of 8."""
    one = Facts(4096, "bfloat16", None, None, 0.5, 1728.0)
    found = agreement(one, one._replace(norm=None))
    assert "0 steps of 0.125 apart" in stated_words.told(one, one._replace(norm=None), found, []).text


# --- sentences and artefacts ---


def test_equal_digests_are_not_called_bits(tmp_path: Path) -> None:
    """32 bits of digest are equal, no tensor was: the first sentence says so, and counts the weights that were not compared."""
    equal = row(*pair(tmp_path / "a", {"md5": "00000001"}, {"md5": "00000001"}))
    turned = row(*pair(tmp_path / "b", {"md5": "00000001", **NUMBERS}, {"md5": "00000002", **NUMBERS}), WEIGHT)
    whole, part = concluded([equal], []).summary[0], concluded([equal], [turned]).summary[0]
    for told in (whole, part):
        assert "CRC-32" in told.text
        assert "no tensor was compared" in told.text
        assert "bit for bit" not in told.text
    assert "0 boundaries and 1 weights" in part.text
    bits = concluded([BoundaryResult("m.out", 0, "EXACT", shape=[8])], [turned]).summary[0]
    assert "bit for bit at 1 boundaries; 0 boundaries and 1 weights" in bits.text


def test_statistics_of_one_side_alone_keep_their_form(tmp_path: Path) -> None:
    """A reader of the artefact finds an object with four fields on both sides, or none at all."""
    sides = pair(tmp_path, NUMBERS, {})
    found, none = row(*sides), row(*pair(tmp_path / "none", {}, {}))
    assert found.statistics is not None
    assert found.statistics["infer"] == dict.fromkeys(("max", "min", "mean", "norm"))
    assert found.statistics["train"] == {"max": 1.0, "min": -1.0, "mean": 0.0, "norm": 4.0}
    assert none.statistics is None


# --- nodes ---


@pytest.mark.parametrize(
    ("one", "other", "nodes"),
    [
        ({}, {}, 2),
        ({"Max": 0.0, "Min": 0.0}, {"Max": 0.0, "Min": 0.0}, 2),
        ({"Max": 1.0, "Min": -1.0}, {"Max": 1.0, "Min": -1.0}, 2),
        ({**NUMBERS, "Mean": NAN}, {**NUMBERS, "Mean": NAN}, 2),
        ({**NUMBERS, "Mean": NAN}, {**NUMBERS, "Mean": -1.0}, 2),
        (NUMBERS, NUMBERS, 1),
        ({"md5": "no hex"}, {"md5": "none, too"}, 2),
        ({"md5": "0badcafe"}, {"md5": "0badcafe"}, 1),
        ({"md5": "0badcafe", **NUMBERS}, {"md5": "0badcaff", **NUMBERS}, 2),
    ],
)
def test_what_is_not_known_makes_no_two_places_one(tmp_path: Path, one: dict[str, Any], other: dict[str, Any], nodes: int) -> None:
    """Missing statistics that count as 0, NaN as −1 and odd digests as 0 would join tensors that have nothing in common."""
    side = side_of(tmp_path, "train", record(**one), {"output": [record(**one), record(**other)]})
    assert len(stated(side).nodes.nodes) == nodes
