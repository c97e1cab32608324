"""Artefacts on disk: what is refused or ignored when they are read, and how they are written."""

import hashlib
import json
import math
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from dump_analysis.artefacts import io, semantic_mapping
from dump_analysis.artefacts.boundary_results import BoundaryResult, BoundaryResults, FirstDivergence, SidesOperand
from dump_analysis.artefacts.common import FileDigest, SideLabel
from dump_analysis.artefacts.conclusion import Conclusion
from dump_analysis.artefacts.probe import Probe
from dump_analysis.artefacts.semantic_mapping import SemanticMapping
from hypothesis import given, settings
from hypothesis import strategies as st
from msprobe_files.errors import DumpError
from msprobe_files.operands import parse
from running import SCRIPTS

DIGEST = "0" * 64
SIDE = {"label": "train", "digest": DIGEST}


def row(name: str, order: int, **more: Any) -> dict[str, Any]:
    return {
        "boundary": name,
        "order": order,
        "train": f"t.{name}",
        "infer": {"sources": [{"name": "x", "steps": []}], "combine": None},
        **more,
    }


def mapping_of(*rows: Any, **more: Any) -> dict[str, Any]:
    return {"schema": "semantic_mapping/1", "boundaries": list(rows), **more}


def results_of(*rows: BoundaryResult, **more: Any) -> BoundaryResults:
    fields: dict[str, Any] = {"train": SideLabel("train", DIGEST), "infer": SideLabel("infer", DIGEST), "mapping": FileDigest(DIGEST)}
    fields |= {"boundaries": list(rows), "weights": [], "first_divergence": None, "counts": {}, "overall": "exact"}
    return BoundaryResults(**{**fields, **more})


def put(path: Path, value: Any) -> Path:
    path.write_text(json.dumps(value))
    return path


def refused(path: Path) -> str:
    """Why a mapping is refused."""
    with pytest.raises(DumpError) as caught:
        semantic_mapping.read(path)
    assert "\n" not in str(caught.value)
    return str(caught.value)


# --- the path of what is wrong ---

BAD_STEP = {"sources": [{"name": "x", "steps": [{"op": "squeeze", "axis": 0}, {"op": "slide", "axis": 0}]}], "combine": None}


@pytest.mark.parametrize(
    ("bad", "place"),
    [
        (row("a", 3, train=BAD_STEP), "boundaries[3].train.sources[0].steps[1].op: expected one of"),
        (row("a", 3, infer={"sources": [], "combine": "sum"}), "boundaries[3].infer.sources: expected at least one tensor"),
        (row("a", 3, infer={"sources": [{"name": 3}]}), "boundaries[3].infer.sources[0].name: expected a tensor's name"),
        (row("a", 3, infer={"sources": [{"name": "x"}, {"name": "y"}]}), "boundaries[3].infer.combine: 2 sources need"),
        (row("a", 3, infer=7), "boundaries[3].infer: expected an object, found 7"),
        (row("a", "three"), "boundaries[3].order: Expected `int`, got `str`"),
        (row("a", 3, basis=["guess"]), "boundaries[3].basis[0]: Invalid enum value 'guess'"),
        (row("a", 3, confidence="high"), "boundaries[3].confidence: Expected `float`"),
        (row("a", 3, module={"train": "x"}), "boundaries[3].module: Object missing required field `infer`"),
        ({"boundary": "a", "order": 3, "train": "x"}, "boundaries[3]: Object missing required field `infer`"),
        (5, "boundaries[3]: Expected `object`, got `int`"),
    ],
)
def test_an_error_names_its_place(tmp_path: Path, bad: Any, place: str) -> None:
    """File, path, found value: in one line that begins with what cannot be done."""
    path = put(tmp_path / "m.json", mapping_of(row("x", 0), row("y", 1), row("z", 2), bad))
    assert refused(path).startswith(f"Cannot use m.json: {place}")


def test_an_error_in_a_bare_list_names_its_row(tmp_path: Path) -> None:
    rows = [{"boundary": name, "train": "t", "infer": "i"} for name in "abc"]
    assert "[3].train.sources[0].steps[1].op: expected one of" in refused(put(tmp_path / "m.json", [*rows, {**rows[0], "train": BAD_STEP}]))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"boundarys": []}, 'boundarys: unknown key; did you mean "boundaries"?'),
        ({"boundaries": [row("a", 0, ordr=1)]}, 'boundaries[0].ordr: unknown key; did you mean "order"?'),
        ({"weights": [row("a", 0, modul={})]}, 'weights[0].modul: unknown key; did you mean "module"?'),
        ({"train": {**SIDE, "lable": "x"}}, 'train.lable: unknown key; did you mean "label"?'),
        (
            {"boundaries": [row("a", 0, train={"sources": [{"name": "x", "step": []}]})]},
            'boundaries[0].train.sources[0].step: unknown key; did you mean "steps"?',
        ),
        (
            {"boundaries": [row("a", 0, train={"sources": [{"name": "x", "steps": [{"op": "squeeze", "axes": 0}]}]})]},
            'boundaries[0].train.sources[0].steps[0].axes: unknown key; did you mean "axis"?',
        ),
    ],
)
def test_a_mapping_with_an_unknown_key_is_refused_with_the_nearest(tmp_path: Path, change: dict[str, Any], message: str) -> None:
    """A misspelt key in a file that people write would be a rule that is silently not applied."""
    assert message in refused(put(tmp_path / "m.json", {**mapping_of(), **change}))


def test_a_bare_list_with_an_unknown_key_is_refused(tmp_path: Path) -> None:
    path = put(tmp_path / "m.json", [{"boundary": "a", "train": "t", "infer": "i", "notes": "?"}])
    assert '[0].notes: unknown key; did you mean "note"?' in refused(path)


def test_machine_files_ignore_unknown_keys_with_a_warning(tmp_path: Path) -> None:
    """A later release of the same major may add fields, at any depth."""
    operand = parse("x")
    value = io.builtins(results_of(BoundaryResult("a", 0, "EXACT", ops_applied=SidesOperand(operand, operand))))
    value["later"] = 1
    value["boundaries"][0]["newer"] = {"x": 1}
    value["train"]["host"] = "h"
    found, warnings = io.read(put(tmp_path / "r.json", value), BoundaryResults)
    assert found.boundaries[0].status == "EXACT"
    assert len(warnings) == 3
    for place in ("r.json: later: unknown key", "r.json: boundaries[0].newer: unknown key", "r.json: train.host: unknown key"):
        assert any(warning.startswith(place) and warning.endswith("ignored") for warning in warnings), place


def test_machine_files_without_unknown_keys_give_no_warning(tmp_path: Path) -> None:
    io.write(tmp_path / "r.json", results_of(BoundaryResult("a", 0, "EXACT")))
    assert io.read(tmp_path / "r.json", BoundaryResults)[1] == []


@pytest.mark.parametrize(
    "operand",
    [
        {"sources": [{"name": "x", "rank": None, "dump_step": None, "steps": []}], "combine": None, "axis": None},
        {"sources": [{"name": "x", "rank": 0, "dump_step": 1}], "combine": None, "axis": 0},
        {"sources": [{"name": "x"}, {"name": "y"}], "combine": "sum", "axis": 0},
        {"sources": [{"name": "x", "steps": [{"op": "take", "axis": 0, "runs": []}]}]},
        {"sources": [{"name": "x", "steps": [{"op": "slice", "axis": 0}]}]},
        {"sources": [{"name": "x", "steps": [{"op": "slice", "axis": 0, "start": None, "stop": 3}]}]},
    ],
)
def test_every_field_of_the_contract_may_stand_in_an_operand(tmp_path: Path, operand: dict[str, Any]) -> None:
    """Known keys with null, or an axis beside a sum: catches "unknown key" for a key that is known."""
    assert semantic_mapping.read(put(tmp_path / "m.json", mapping_of(row("a", 0, train=operand)))).boundaries[0].train == parse(operand)


# --- schema, JSON ---


@pytest.mark.parametrize("schema", ["semantic_mapping/2", "semantic_mapping", "boundary_results/1", "", None, 1])
def test_another_schema_is_refused(tmp_path: Path, schema: Any) -> None:
    message = refused(put(tmp_path / "m.json", {**mapping_of(), "schema": schema}))
    assert "schema: expected 'semantic_mapping/1'" in message
    assert repr(schema) in message


@pytest.mark.parametrize("kind", [Probe, SemanticMapping, BoundaryResults, Conclusion])
def test_a_file_without_a_schema_is_refused(tmp_path: Path, kind: type[msgspec.Struct]) -> None:
    """Even an empty object, which would fit a mapping whose fields all have defaults."""
    for value in ({}, {"schema": "other/1"}, [], "text", None):
        with pytest.raises(DumpError, match=r"^Cannot use x\.json: "):
            io.read(put(tmp_path / "x.json", value), kind)


BROKEN = [
    b"",
    b"{",
    b'{"schema": "semantic_mapping/1",',
    b"\xff\xfe",
    b'{"schema": "\xff"}',
    b"NaN",
    b"[" * 100_000,
    b'{"a": 1e999}',
    b"\0",
]


@pytest.mark.parametrize("raw", BROKEN)
def test_broken_json_is_one_line(tmp_path: Path, raw: bytes) -> None:
    (tmp_path / "m.json").write_bytes(raw)
    assert refused(tmp_path / "m.json").startswith("Cannot ")


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    for path in (tmp_path / "none.json", tmp_path):
        assert refused(path).startswith(f"Cannot read {path}: ")


ODD_TEXTS = ["", "cat", "x", "cast", "a: b - at `c`"]
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 2**65) | st.floats(allow_nan=False) | st.sampled_from(ODD_TEXTS),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["op", "axis", "sources", "name", "steps", "x y"]), inner),
    max_leaves=8,
)
TAKEN = {"sources": [{"name": "x", "steps": [{"op": "take", "axis": 0, "runs": [[0, 2]]}]}], "combine": "cat", "axis": 0}
REASON = {"kind": "no_rows", "values": {}, "text": "t"}
WHOLE = mapping_of(
    row("a", 0, train=TAKEN, note="n"),
    weights=[row("w", 0, basis=["weights"], module={"train": None, "infer": "m"})],
    evidence_missing=[{"boundary": "m", "order": 1, "reason": REASON, "train": ["x"], "infer": []}],
    tokens={"train": [[0, 0, 2]], "infer": [], "coverage": {"joined": 1, "train": 2, "infer": 3}, "remarks": []},
    unmapped={"train": [], "infer": ["x"]},
)


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield path
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        yield from places(item, (*path, key))


PLACES = list(places(WHOLE))


def test_any_value_at_any_place_is_read_or_refused_in_one_line(tmp_path: Path) -> None:
    """Catches every exception that is not the user's own error line."""

    @settings(max_examples=400, deadline=None, derandomize=True)
    @given(st.sampled_from(PLACES), JSON)
    def judge(place: tuple[Any, ...], value: Any) -> None:
        changed = json.loads(json.dumps(WHOLE))
        target = changed
        for key in place[:-1]:
            target = target[key]
        if place:
            target[place[-1]] = value
        message = "Cannot "
        try:
            semantic_mapping.read(put(tmp_path / "m.json", changed if place else value))
        except DumpError as error:
            message = str(error)
        assert message.startswith("Cannot ")
        assert "\n" not in message

    judge()


# --- the two forms of a mapping ---


def test_a_bare_list_takes_its_order_from_its_places(tmp_path: Path) -> None:
    rows = [{"boundary": name, "train": f"t.{name}", "infer": f"i.{name}"} for name in "cab"]
    mapping = semantic_mapping.read(put(tmp_path / "m.json", rows))
    assert [(each.boundary, each.order, each.basis, each.confidence) for each in mapping.boundaries] == [
        (name, at, ["declared"], 1.0) for at, name in enumerate("cab")
    ]
    assert mapping.boundaries[0].train == parse("t.c")


def test_a_bare_list_may_state_its_order_for_all_or_none(tmp_path: Path) -> None:
    rows = [{"boundary": name, "train": "t", "infer": "i", "order": order} for name, order in (("a", 7), ("b", 2))]
    assert [each.order for each in semantic_mapping.read(put(tmp_path / "m.json", rows)).boundaries] == [7, 2]
    del rows[0]["order"]
    assert "1 of 2 rows state an order" in refused(put(tmp_path / "m.json", rows))


GAP = {"boundary": "a", "order": 1, "reason": REASON, "train": [], "infer": []}
TWICE = [
    {"boundaries": [row("a", 0), row("a", 1)]},
    {"boundaries": [row("a", 0)], "weights": [row("a", 0)]},
    {"boundaries": [row("a", 0)], "evidence_missing": [GAP]},
    {"evidence_missing": [GAP, GAP]},
]


@pytest.mark.parametrize("second", TWICE)
def test_a_boundary_in_two_rows_is_refused(tmp_path: Path, second: dict[str, Any]) -> None:
    assert "boundary a stands in two rows" in refused(put(tmp_path / "m.json", {**mapping_of(), **second}))


def test_an_empty_mapping_is_a_mapping(tmp_path: Path) -> None:
    """It compares nothing, which the comparison says."""
    assert semantic_mapping.read(put(tmp_path / "m.json", [])).boundaries == []
    assert semantic_mapping.read(put(tmp_path / "m.json", mapping_of())).boundaries == []


# --- writing ---


def test_a_written_file_begins_with_its_schema_and_ends_with_a_line(tmp_path: Path) -> None:
    io.write(tmp_path / "r.json", results_of())
    text = (tmp_path / "r.json").read_text(encoding="utf-8")
    assert text.startswith('{\n  "schema": "boundary_results/1",\n  "train": {')
    assert text.endswith("}\n")
    assert list(json.loads(text)) == list(BoundaryResults.__struct_fields__)


def test_the_same_artefact_is_the_same_bytes(tmp_path: Path) -> None:
    first = io.write(tmp_path / "a.json", results_of(BoundaryResult("a", 0, "EXACT", max_abs_diff=1e-7)))
    second = io.write(tmp_path / "b.json", results_of(BoundaryResult("a", 0, "EXACT", max_abs_diff=1e-7)))
    data = (tmp_path / "a.json").read_bytes()
    assert data == (tmp_path / "b.json").read_bytes()
    assert first == second == hashlib.sha256(data).hexdigest() == io.digest_of_file(tmp_path / "a.json")


def test_numbers_come_back_bit_for_bit(tmp_path: Path) -> None:
    for number in (0.1, 1e-45, 1.7976931348623157e308, 2.0**-1074, 1 / 3):
        io.write(tmp_path / "r.json", results_of(BoundaryResult("a", 0, "NOT_EXACT", max_abs_diff=number)))
        assert io.read(tmp_path / "r.json", BoundaryResults)[0].boundaries[0].max_abs_diff == number


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
def test_a_measure_that_is_not_finite_is_not_written(tmp_path: Path, number: float) -> None:
    """JSON has no such number and the encoder would write null; the old file stays."""
    io.write(tmp_path / "r.json", results_of())
    before = (tmp_path / "r.json").read_bytes()
    for bad, place in (
        (BoundaryResult("a", 0, "NOT_EXACT", max_abs_diff=number), r"boundaries\[0\]\.max_abs_diff"),
        (BoundaryResult("a", 0, "NOT_EXACT", gain={"whole": [1.0, number]}), r"boundaries\[0\]\.gain\.whole\[1\]"),
    ):
        with pytest.raises(DumpError, match=f"Cannot write {place}: "):
            io.write(tmp_path / "r.json", results_of(bad))
    assert (tmp_path / "r.json").read_bytes() == before
    assert os.listdir(tmp_path) == ["r.json"]


@pytest.mark.parametrize(("mask", "mode"), [(0o022, 0o644), (0o077, 0o600), (0o002, 0o664), (0o027, 0o640)])
def test_the_files_mode_is_what_the_user_asks_of_the_system(tmp_path: Path, mask: int, mode: int) -> None:
    """A temporary file is private: catches a report that colleagues cannot read, and one that they should not."""
    before = os.umask(mask)
    try:
        io.write(tmp_path / "r.json", results_of())
        assert os.umask(mask) == mask
    finally:
        os.umask(before)
    assert (tmp_path / "r.json").stat().st_mode & 0o777 == mode


def test_folders_are_made_and_a_file_in_the_way_is_named(tmp_path: Path) -> None:
    io.write(tmp_path / "new" / "deep" / "r.json", results_of())
    with pytest.raises(DumpError, match="Cannot write "):
        io.write(tmp_path / "new" / "deep" / "r.json" / "x.json", results_of())
    with pytest.raises(DumpError, match="Cannot write "):
        io.write(tmp_path / "new", results_of())
    assert sorted(os.listdir(tmp_path)) == ["new"]


def test_an_interrupt_leaves_the_old_file_and_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    io.write_bytes(tmp_path / "r.json", b"old")

    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", stop)
    with pytest.raises(KeyboardInterrupt):
        io.write_bytes(tmp_path / "r.json", b"new")
    assert (tmp_path / "r.json").read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["r.json"]


WRITER = """
import sys
sys.path.insert(0, sys.argv[1])
from dump_analysis.artefacts import io
print("ready", flush=True)
while True:
    for letter in (b"a", b"b"):
        io.write_bytes(sys.argv[2], letter * 8_000_000)
"""


@pytest.mark.parametrize("after", [0.0, 0.004, 0.011, 0.027, 0.06])
def test_a_kill_at_any_moment_leaves_a_whole_file_or_none(tmp_path: Path, after: float) -> None:
    """SIGKILL: no handler runs. The final name holds all of one writing, never a part."""
    path = tmp_path / "r.json"
    writer = subprocess.Popen([sys.executable, "-c", WRITER, str(SCRIPTS), str(path)], stdout=subprocess.PIPE, text=True)
    assert writer.stdout is not None
    assert writer.stdout.readline() == "ready\n"
    time.sleep(after)
    writer.send_signal(signal.SIGKILL)
    writer.wait()
    writer.stdout.close()
    if path.exists():
        data = path.read_bytes()
        assert len(data) == 8_000_000
        assert data == data[:1] * len(data)


HALTED = """
import os, sys, time
sys.path.insert(0, sys.argv[1])
from dump_analysis.artefacts import io
def halt(*_):
    print("written", flush=True)
    time.sleep(60)
os.replace = halt
io.write_bytes(sys.argv[2], b"new")
"""


@pytest.mark.parametrize("old", [None, b"old"])
def test_a_kill_before_the_last_step_leaves_what_was_there(tmp_path: Path, old: bytes | None) -> None:
    path = tmp_path / "r.json"
    if old is not None:
        path.write_bytes(old)
    writer = subprocess.Popen([sys.executable, "-c", HALTED, str(SCRIPTS), str(path)], stdout=subprocess.PIPE, text=True)
    assert writer.stdout is not None
    assert writer.stdout.readline() == "written\n"
    writer.kill()
    writer.wait()
    writer.stdout.close()
    assert (path.read_bytes() if path.exists() else None) == old


def test_first_divergence_null_and_given_both_come_back(tmp_path: Path) -> None:
    for first in (None, FirstDivergence("a", 0, False, ["x"])):
        io.write(tmp_path / "r.json", results_of(first_divergence=first, overall="nonzero"))
        assert io.read(tmp_path / "r.json", BoundaryResults)[0].first_divergence == first
