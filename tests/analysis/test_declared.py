"""A mapping that people wrote, completed on two dumps: names, ops of bare names, weights, modules, what is left out."""

import json
from pathlib import Path
from typing import Any

import dumping
import numpy as np
import pytest
from dump_analysis import sides
from dump_analysis.artefacts.common import Modules, SideLabel
from dump_analysis.artefacts.semantic_mapping import MissingRow, Row, SemanticMapping
from dump_analysis.mapping import declared
from dump_analysis.sides import Side
from dump_analysis.wording import word
from dumping import Tensor, cut, entry_of, of, output_of, outputs, row_of
from msprobe_files.errors import DumpError
from msprobe_files.operands import Op, parse

NORM = "Module.norm.RMSNorm.forward.0"


def completed(root: Path, rows: list[Row], train: Any, infer: Any = None, trace: Any = None) -> SemanticMapping:
    pair = sides_of(root, train, infer, trace)
    return declared.complete(SemanticMapping(boundaries=rows), *pair)


def sides_of(root: Path, train: Any, infer: Any = None, trace: Any = None) -> tuple[Side, Side]:
    return dumping.side_of(root, "train", train, trace), dumping.side_of(root, "infer", infer or train, trace)


def steps_of(mapping: SemanticMapping) -> list[tuple[Op, ...] | None]:
    return [row.train.sources[0].steps for row in [*mapping.boundaries, *mapping.weights]]


def squeezes(*axes: int) -> tuple[Op, ...]:
    return tuple(Op("squeeze", axis=axis) for axis in axes)


@pytest.mark.parametrize(
    ("tensor", "wanted"),
    [
        (of(np.zeros((1, 5, 8))), squeezes(0)),
        (of(np.zeros((5, 1, 8))), squeezes(1)),
        (of(np.zeros((1, 1, 5, 8))), squeezes(0, 0)),
        (of(np.zeros((1, 5, 1, 8))), squeezes(0, 1)),
        (of(np.zeros((1, 8))), ()),
        (of(np.zeros((2, 5, 8))), ()),
        (of(np.zeros((1, 1, 1))), squeezes(0)),
        (of(np.zeros((1, 5)), "int64"), squeezes(0)),
        (of(np.zeros((5, 1)), "int32"), squeezes(1)),
        (of(np.zeros((1, 1)), "bool"), squeezes(0)),
        (of(np.zeros((3, 5)), "int64"), ()),
        (of(3.0), ()),
    ],
)
def test_a_bare_name_loses_axes_of_size_one(tmp_path: Path, tensor: Tensor, wanted: tuple[Op, ...]) -> None:
    """While more than two are left; ids and positions: more than one. The ops stand in the mapping."""
    assert steps_of(completed(tmp_path, [row_of("a", 0)], outputs({"a": tensor}))) == [wanted]


def test_a_bare_weight_keeps_its_axes(tmp_path: Path) -> None:
    """Named outright or by a glob: a convolution's [8, 1, 4] is no [8, 4]."""
    entries = {NORM: {"output": [of([1.0])], "parameters": {"weight": of(np.zeros((8, 1, 4)))}}}
    name = f"{NORM}.parameters.weight"
    for given in (name, "Module.norm*weight"):
        assert steps_of(completed(tmp_path, [row_of("w", 0, given, given)], entries)) == [()], given


def test_ops_that_are_stated_stay(tmp_path: Path) -> None:
    """An operand without ops is an operand without ops: only a bare name gets some."""
    tensor = of(np.zeros((1, 5, 8)))
    rows = [row_of("a", 0, cut("a"), cut("a", {"op": "reshape", "shape": [40]}))]
    mapping = completed(tmp_path, rows, outputs({"a": tensor}))
    assert mapping.boundaries[0].train.sources[0].steps == ()
    assert mapping.boundaries[0].infer.sources[0].steps == (Op("reshape", shape=(40,)),)


def test_without_a_dump_json_the_file_tells_the_shape(tmp_path: Path) -> None:
    unit = dumping.write_unit(tmp_path, outputs({"a": of(np.zeros((1, 5, 8))), "i": of(np.zeros((1, 5)), "int64")}), listed=False)
    side = sides.open_side("train", [str(unit)])
    mapping = declared.complete(SemanticMapping(boundaries=[row_of("a", 0), row_of("i", 1)]), side, side)
    assert steps_of(mapping) == [squeezes(0), squeezes(0)]


def test_globs_become_names(tmp_path: Path) -> None:
    mapping = completed(tmp_path, [row_of("x", 0, "Module.a*output.0", output_of("b"))], outputs({"a": of([1.0]), "b": of([1.0])}))
    row = mapping.boundaries[0]
    assert (row.train.sources[0].name, row.infer.sources[0].name) == (output_of("a"), output_of("b"))


def test_a_glob_of_two_is_refused_and_a_name_of_none_is_kept(tmp_path: Path) -> None:
    """The comparison says MISSING of it, with the name as it was written."""
    entries = outputs({"a": of([1.0]), "b": of([1.0])})
    with pytest.raises(DumpError, match="matches 2 tensors of train"):
        completed(tmp_path, [row_of("x", 0, "Module.*")], entries)
    row = completed(tmp_path, [row_of("x", 0, "Module.q*"), row_of("gone", 1)], entries).boundaries[0]
    assert row.train.sources[0].name == "Module.q*"


def test_both_sides_are_named_by_their_digests(tmp_path: Path) -> None:
    train, infer = sides_of(tmp_path, outputs({"a": of([1.0])}), outputs({"a": of([1.0]), "b": of([2.0])}))
    mapping = declared.complete(SemanticMapping(boundaries=[row_of("a", 0)], train=SideLabel("train", "0" * 64)), train, infer)
    assert (mapping.train, mapping.infer) == (SideLabel("train", train.digest), SideLabel("infer", infer.digest))


def test_a_bare_list_is_parted_into_boundaries_and_weights(tmp_path: Path) -> None:
    """Weights stand on a line of their own, numbered anew; the boundaries keep their order."""
    entries = {**outputs({"a": of([1.0])}), NORM: {"output": [of([1.0])], "parameters": {"weight": of([1.0]), "bias": of([2.0])}}}
    weight, bias = (f"{NORM}.parameters.{name}" for name in ("weight", "bias"))
    rows = [
        row_of("norm.weight", 0, weight, weight),
        row_of("a", 1),
        row_of("norm.bias", 2, bias, bias),
        row_of("norm", 3, f"{NORM}.output.0", f"{NORM}.output.0"),
    ]
    mapping = completed(tmp_path, rows, entries)
    assert [(row.boundary, row.order) for row in mapping.boundaries] == [("a", 1), ("norm", 3)]
    assert [(row.boundary, row.order) for row in mapping.weights] == [("norm.weight", 0), ("norm.bias", 1)]
    assert {tuple(row.basis) for row in [*mapping.boundaries, *mapping.weights]} == {("declared",)}


def test_a_boundary_is_made_in_the_innermost_entry(tmp_path: Path) -> None:
    """An output: in its own entry. An input: in the parent of the entry that takes it. The model's input: nowhere."""
    entries = {
        "Module.model.inner.I.forward.0": {"input": [of([1.0])], "output": [of([2.0])], "parameters": {"weight": of([3.0])}},
        "Module.model.M.forward.0": {"input": [of([4.0])], "output": [of([5.0])]},
    }
    inner, outer = entries
    names = {"out": f"{inner}.output.0", "in": f"{inner}.input.0", "model_in": f"{outer}.input.0", "w": f"{inner}.parameters.weight"}
    rows = [row_of(name, at, tensor, tensor) for at, (name, tensor) in enumerate(names.items())]
    mapping = completed(tmp_path, rows, entries, trace={inner: outer, outer: None})
    modules = {row.boundary: row.module for row in [*mapping.boundaries, *mapping.weights]}
    assert modules == {
        "out": Modules(inner, inner),
        "in": Modules(outer, outer),
        "model_in": Modules(None, None),
        "w": Modules(inner, inner),
    }


def test_a_module_that_is_stated_stays(tmp_path: Path) -> None:
    stated = Row("a", 0, parse(output_of("a")), parse(output_of("a")), module=Modules("mine", None))
    assert completed(tmp_path, [stated], outputs({"a": of([1.0])})).boundaries[0].module == Modules("mine", None)


def test_completing_twice_changes_nothing(tmp_path: Path) -> None:
    """The written mapping is fed on."""
    pair = sides_of(tmp_path, outputs({"a": of(np.zeros((1, 5, 8))), "b": of([1.0])}))
    once = declared.complete(SemanticMapping(boundaries=[row_of("a", 0), row_of("b", 1, "Module.b*")]), *pair)
    assert declared.complete(once, *pair) == once


def unmapped(mapping: SemanticMapping, *pair: Side) -> tuple[list[str], list[str]]:
    found = declared.with_unmapped(mapping, *pair).unmapped
    assert found is not None
    return found.train, found.infer


def test_what_the_mapping_leaves_out_is_listed_by_name(tmp_path: Path) -> None:
    """Neither named, nor named by a gap, nor equal to a named tensor whatever its shape, nor the value of a row."""
    entries = {
        entry_of("a"): {"input": [of([1.0, 2.0])], "output": [of([[3.0], [4.0]])]},
        entry_of("twin"): {"input": [of([[3.0, 4.0]])], "output": [of([5.0, 6.0])]},
        entry_of("half"): {"output": [of([7.0, 8.0, 9.0])]},
        entry_of("cut"): {"output": [of([8.0, 9.0])]},
        entry_of("told"): {"output": [of([10.0])]},
    }
    rows = [
        row_of("a", 0),
        row_of("h", 1, cut("half", {"op": "slice", "axis": 0, "start": 1}), cut("half", {"op": "slice", "axis": 0, "start": 1})),
    ]
    gap = MissingRow("gap", 2, word("no_rows"), [output_of("told")], [])
    wanted = [f"{entry_of('a')}.input.0", output_of("twin")]
    mapping = SemanticMapping(boundaries=rows, evidence_missing=[gap])
    assert unmapped(mapping, *sides_of(tmp_path, entries)) == (wanted, sorted([*wanted, output_of("told")]))


def test_another_dtype_of_the_same_bytes_is_another_tensor(tmp_path: Path) -> None:
    entries = outputs({"a": of([0, 0], "int32"), "b": of([0.0, 0.0])})
    assert unmapped(SemanticMapping(boundaries=[row_of("a", 0)]), *sides_of(tmp_path, entries))[0] == [output_of("b")]


def test_gradients_are_not_asked_for(tmp_path: Path) -> None:
    """Only the forward is compared."""
    name = "Module.a.M.parameters_grad.0.weight"
    unit = dumping.write_unit(tmp_path / "train", outputs({"a": of([1.0])}))
    dump = json.loads((unit / "dump.json").read_text())
    dump["data"]["Module.a.M.parameters_grad.0"] = {"weight": [{**dumping.record_of(of([1.0, 2.0])), "data_name": f"{name}.pt"}]}
    (unit / "dump.json").write_text(json.dumps(dump))
    dumping.write_pt(unit / "dump_tensor_data" / f"{name}.pt", of([1.0, 2.0]))
    train, infer = sides.open_side("train", [str(unit)]), dumping.side_of(tmp_path, "infer", outputs({"a": of([1.0])}))
    assert name in train.by_name
    assert unmapped(SemanticMapping(boundaries=[row_of("a", 0)]), train, infer) == ([], [])
