"""Finding units and reading their JSON files: every form of a path, broken and hostile files, moved and linked dumps."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any, Dict, List, Optional, Tuple

import pytest
from handmade import VERSIONS, record, unit_folder, write_unit, write_values
from hypothesis import given, settings
from hypothesis import strategies as st
from msprobe_files.errors import DumpError
from msprobe_files.pt_archive import read_bytes, read_header
from msprobe_files.units import Record, Unit, find_units, load_json, read_unit, tensor_path

ENTRY = "Module.a.B.forward.0"


def opened(folder: Path) -> Unit:
    (place,) = find_units(str(folder))
    return read_unit(place)


def places(path: Path) -> List[Tuple[str, int, int]]:
    """Folders below ``path`` with step and rank, in the order in which they are found."""
    return [(os.path.relpath(place.folder, path), place.step, place.rank) for place in find_units(str(path))]


def read_or_refused(folder: Path) -> Tuple[Optional[Unit], str]:
    """The unit, or what the DumpError says; any other error is the test's."""
    try:
        return opened(folder), ""
    except DumpError as error:
        return None, str(error)
    except RecursionError:
        return None, "a traceback of a thousand frames, which pytest takes minutes to print"


def only_record(folder: Path) -> Tuple[Unit, Record]:
    unit = opened(folder)
    (found,) = unit.records()
    return unit, found


# --- finding ---


@pytest.mark.parametrize(
    "part", ["", "step0", "step0/R", "step0/R/dump_tensor_data", "step0/R/dump.json", "step0/R/construct.json", "step0/R/stack.json"]
)
@pytest.mark.parametrize(("case", "rank"), [("26.2.0/pair_train", "proc8911"), ("26.2.0/stale", "rank0"), ("8.1.2/mini_tensor", "rank")])
def test_every_form_of_a_path_means_the_same_unit(case: str, rank: str, part: str, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = str(VERSIONS / case / "step0" / rank)
    wanted = (folder, os.path.join(folder, "dump_tensor_data"), 0, 0, True)
    path = VERSIONS / case / part.replace("R", rank)
    assert find_units(str(path)) == [wanted]
    assert find_units(str(path) + ("/" if path.is_dir() else "")) == [wanted]
    monkeypatch.chdir(path.parent)
    assert find_units(path.name) == [wanted]
    assert find_units(os.path.join(".", "..", path.parent.name, path.name)) == [wanted]


def test_units_are_sorted_by_step_rank_and_folder(tmp_path: Path) -> None:
    """Numbers count as numbers: step10 comes after step2."""
    for folder in ("step10/rank0", "step2/rank10", "step2/rank9", "step2/proc77", "step0/proc5", "step0/proc4", "step0/rank0"):
        write_unit(tmp_path / folder, {})
    assert places(tmp_path) == [
        ("step0/proc4", 0, 0),
        ("step0/proc5", 0, 0),
        ("step0/rank0", 0, 0),
        ("step2/proc77", 2, 0),
        ("step2/rank9", 2, 9),
        ("step2/rank10", 2, 10),
        ("step10/rank0", 10, 0),
    ]


def test_folders_of_integrators_above_and_beside_do_not_hide_units(tmp_path: Path) -> None:
    """verl and others put levels above stepN; an empty step is none."""
    for folder in ("1234/step3/rank1", "step_7/actor/step0/rank2", "update_actor/step1/rank0", "plain", "step4/pid99"):
        write_unit(tmp_path / folder, {})
    (tmp_path / "step9").mkdir()
    (tmp_path / "notes.txt").write_text("x")
    assert sorted(places(tmp_path)) == [
        ("1234/step3/rank1", 3, 1),
        ("plain", 0, 0),
        ("step4/pid99", 4, 0),
        ("step_7/actor/step0/rank2", 0, 2),
        ("update_actor/step1/rank0", 1, 0),
    ]


def test_the_nearest_step_counts(tmp_path: Path) -> None:
    write_unit(tmp_path / "step5" / "actor" / "step2" / "rank0", {})
    assert places(tmp_path) == [("step5/actor/step2/rank0", 2, 0)]


def test_folders_without_dump_json_are_units_of_files(tmp_path: Path) -> None:
    """Graph mode of NPU engines, and runs that ended before stop()."""
    for folder in ("a/step0/rank0/dump_tensor_data", "b/step0/rank3/tensor_data", "c/loose"):
        (tmp_path / folder).mkdir(parents=True)
        shutil.copy(unit_folder("26.2.0/sliced") / "dump_tensor_data" / "Module.0.Linear.forward.0.input.0.pt", tmp_path / folder)
    found = find_units(str(tmp_path))
    assert sorted((os.path.relpath(p.folder, tmp_path), os.path.relpath(p.tensor_folder, p.folder), p.rank, p.has_json) for p in found) == [
        ("a/step0/rank0", "dump_tensor_data", 0, False),
        ("b/step0/rank3", "tensor_data", 3, False),
        ("c/loose", ".", 0, False),
    ]
    assert find_units(str(tmp_path / "b/step0/rank3/tensor_data"))[0].rank == 3


@pytest.mark.parametrize("name", ["nothing", "step0", "dump_tensor_data/../nothing"])
def test_a_path_that_is_not_there(tmp_path: Path, name: str) -> None:
    with pytest.raises(DumpError, match="no such folder") as caught:
        find_units(str(tmp_path / name))
    assert str(tmp_path / name) in str(caught.value)


@pytest.mark.parametrize("name", ["config.json", "Module.a.B.forward.0.input.0.pt", "dump.json.gz"])
def test_a_file_of_another_kind(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("{}")
    with pytest.raises(DumpError, match="it is a file") as caught:
        find_units(str(tmp_path / name))
    assert name in str(caught.value)


def test_a_folder_in_which_nothing_was_dumped_has_no_units(tmp_path: Path) -> None:
    """B02: the commands say what to check; the finder must not make a unit up."""
    (tmp_path / "step0" / "rank0").mkdir(parents=True)
    (tmp_path / "step0" / "config.json").write_text("{}")
    assert find_units(str(tmp_path)) == []


def test_a_linked_dump_is_read_as_if_it_lay_there(tmp_path: Path) -> None:
    """Dumps are kept on other disks: a link to the root, to a rank's folder or to its tensors."""
    real = unit_folder("26.2.0/pair_train")
    (tmp_path / "root").symlink_to(real.parent.parent)
    (tmp_path / "step4").mkdir()
    (tmp_path / "step4" / "rank6").symlink_to(real)
    (tmp_path / "rank1").mkdir()
    shutil.copy(real / "dump.json", tmp_path / "rank1")
    (tmp_path / "rank1" / "dump_tensor_data").symlink_to(real / "dump_tensor_data")
    for path, rank in ((tmp_path / "root", 0), (tmp_path / "step4" / "rank6", 6), (tmp_path / "rank1", 1)):
        unit = opened(path)
        assert (unit.place.rank, unit.missing_files, unit.complete) == (rank, (), True)
        assert sum(read_header(tensor_path(unit, one)).elements for one in unit.records()) > 1000


def test_a_linked_rank_folder_is_found_from_the_root(tmp_path: Path) -> None:
    """Ranks of other nodes are often linked together under one root; none may be left out in silence."""
    write_unit(tmp_path / "far" / "node7", {})
    (tmp_path / "dump" / "step0").mkdir(parents=True)
    write_unit(tmp_path / "dump" / "step0" / "rank0", {})
    (tmp_path / "dump" / "step0" / "rank1").symlink_to(tmp_path / "far" / "node7")
    assert [(step, rank) for _, step, rank in places(tmp_path / "dump")] == [(0, 0), (0, 1)]


def test_links_in_a_circle_end(tmp_path: Path) -> None:
    write_unit(tmp_path / "step0" / "rank0", {})
    (tmp_path / "step0" / "again").symlink_to(tmp_path)
    assert places(tmp_path)[0] == ("step0/rank0", 0, 0)
    assert len(places(tmp_path)) == 1


# --- entries and records ---


def read_data(folder: Path, data: Any, files: Tuple[str, ...] = (), **more: Any) -> Unit:
    return opened(write_unit(folder / "rank0", data, files, **more))


@pytest.mark.parametrize(
    ("value", "suffixes"),
    [
        ([record()], ["0"]),
        ([None, record(), {}], ["1"]),
        ([[record(), [record()]], {"k": record(), "list": [None, record()]}], ["0.0", "0.1.0", "1.k", "1.list.1"]),
        ([{"type": "int", "value": 3}, {"type": "slice", "value": [0, None, 1]}, {"type": "torch.Size", "value": [2, 3]}], []),
        ([{"type": "str", "value": "shape"}, {"type": "float", "value": float("nan")}], []),
        ([{"type": record(), "value": record()}], ["0.type", "0.value"]),
        ([record(type="torch.distributed.tensor.DTensor", device_mesh=[0, 1], placements=[{"Shard": {"dim": 0}}])], ["0"]),
        ([{"type": "torch.ProcessGroup", "group_ranks": [0, 1], "group_id": "x"}], []),
        ([{"1": record(), "a.b": record()}], ["0.1", "0.a.b"]),
        ([{"shape": record(), "dtype": record()}], ["0.shape", "0.dtype"]),
        ({"hidden_states": record(), "cache": {"k": [record()]}}, ["hidden_states", "cache.k.0"]),
        (record(), [""]),
        (None, []),
        ("text", []),
        (7, []),
    ],
    ids=lambda value: "" if isinstance(value, (dict, list)) else None,
)
def test_values_are_walked_however_they_nest(tmp_path: Path, value: Any, suffixes: List[str]) -> None:
    unit = read_data(tmp_path, {ENTRY: {"input_args": value, "output": []}})
    assert [one.suffix for one in unit.records()] == suffixes
    assert [one.name for one in unit.records()] == [(ENTRY + ".input." + suffix).rstrip(".") for suffix in suffixes]
    assert {one.category for one in unit.records()} <= {"input"}


def test_a_dict_of_the_model_that_names_its_own_dtype_and_shape_is_no_tensor(tmp_path: Path) -> None:
    """The tensor in it must not get lost: dtype is a record of its own there, and shape a list of numbers' records."""
    own = {"dtype": {"type": "torch.dtype", "value": "torch.float32"}, "shape": [{"type": "int", "value": 3}], "x": record()}
    assert [one.suffix for one in read_data(tmp_path, {ENTRY: {"input_args": [own], "output": []}}).records()] == ["0.x"]


def test_every_slot_has_its_category(tmp_path: Path) -> None:
    data = {
        ENTRY: {"input_args": [record()], "input_kwargs": {"x": record()}, "output": [record()], "parameters": {"weight": record()}},
        "Module.a.B.backward.0": {"input": [record()], "output": [record()]},
        "Module.a.B.parameters_grad.0": {"weight": [record()], "bias": record()},
        "Functional.linear.0.forward": {"input_args": [record()], "input_kwargs": {}, "output": [record()]},
    }
    assert [one.name for one in read_data(tmp_path, data).records()] == [
        "Module.a.B.forward.0.input.0",
        "Module.a.B.forward.0.kwargs.x",
        "Module.a.B.forward.0.output.0",
        "Module.a.B.forward.0.parameters.weight",
        "Module.a.B.backward.0.input.0",
        "Module.a.B.backward.0.output.0",
        "Module.a.B.parameters_grad.0.weight",
        "Module.a.B.parameters_grad.0.bias",
        "Functional.linear.0.forward.input.0",
        "Functional.linear.0.forward.output.0",
    ]


def test_a_module_named_like_gradients_is_a_module(tmp_path: Path) -> None:
    """Only the end of an entry's name says that it holds gradients."""
    unit = read_data(tmp_path, {"Module.parameters_grad_clip.B.forward.0": {"input_args": [record()], "output": [record()]}})
    assert [one.category for one in unit.records()] == ["input", "output"]


@pytest.mark.parametrize(
    ("fields", "dtype", "shape"),
    [
        ({"dtype": "torch.bfloat16", "shape": [2, 3]}, "bfloat16", (2, 3)),
        ({"dtype": "float32", "shape": []}, "float32", ()),
        ({"dtype": "torch.float8_e4m3fn", "shape": [0]}, "float8_e4m3fn", (0,)),
        ({"dtype": "torch.float32", "shape": [-1, 2]}, "float32", None),
        ({"dtype": "torch.float32", "shape": [2.0]}, "float32", None),
        ({"dtype": "torch.float32", "shape": [True]}, "float32", None),
        ({"dtype": "torch.float32", "shape": ["2"]}, "float32", None),
        ({"dtype": "torch.float32", "shape": [1 << 80]}, "float32", (1 << 80,)),
    ],
)
def test_dtype_and_shape(tmp_path: Path, fields: Dict[str, Any], dtype: Optional[str], shape: Optional[Tuple[int, ...]]) -> None:
    """A shape that is none must not be used as one."""
    _, one = only_record(write_unit(tmp_path / "rank0", {ENTRY: {"input_args": [record(**fields)], "output": []}}))
    assert (one.dtype, one.shape) == (dtype, shape)


@pytest.mark.parametrize("content", [None, [], "x", 3, {"output": "x"}, {"input_args": {"a": 1}}, {"parameters": [[]]}, {}])
def test_entries_of_another_form_have_no_records(tmp_path: Path, content: Any) -> None:
    unit = read_data(tmp_path, {ENTRY: content, "": {}, "x": {"output": [record()]}})
    assert [one.name for one in unit.records()] == ["x.output.0"]
    assert list(unit.entries) == [ENTRY, "", "x"]


KEYS = ["dtype", "shape", "type", "value", "data_name", "input_args", "output", "parameters", "md5", "Max", "a.b"]
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=5),
    max_leaves=25,
)


@settings(max_examples=150, deadline=None)
@given(st.dictionaries(st.sampled_from([ENTRY, "Module.a.B.parameters_grad.0", "Tensor.add.0.forward", "x", ""]), JSON, max_size=4))
def test_any_json_is_read_or_refused(tmp_path_factory: pytest.TempPathFactory, data: Any) -> None:
    """dump.json is written by others: whatever it holds, reading it and asking for its files ends in a value or a DumpError."""
    folder = tmp_path_factory.mktemp("any")
    unit = opened(write_unit(folder / "rank0", data))
    for one in unit.records():
        with pytest.raises(DumpError):
            tensor_path(unit, one)
        assert one.shape is None or all(size >= 0 for size in one.shape)


# --- how a run ended ---


def whole(**more: Any) -> Dict[str, Any]:
    return {"input_args": [record(**more)], "output": [record()]}


def test_an_interrupted_module_has_inputs_and_no_output(tmp_path: Path) -> None:
    """26.2.0 after an exception: the modules around the one that failed."""
    unit = read_data(tmp_path, {"Module.a.B.forward.0": whole(), "Module.c.D.forward.0": {"input_args": [record()]}})
    assert (unit.interrupted, unit.complete) == (("Module.c.D.forward.0",), False)


def test_where_outputs_were_not_asked_for_nothing_was_interrupted(tmp_path: Path) -> None:
    """data_mode ["input"]."""
    unit = read_data(tmp_path, {"Module.a.B.forward.0": {"input_args": [record()]}, "Module.c.D.forward.0": {"input_args": []}})
    assert (unit.interrupted, unit.complete) == ((), True)


def test_a_file_that_is_listed_and_gone_is_missing(tmp_path: Path) -> None:
    unit = read_data(tmp_path, {ENTRY: whole(data_name="here.pt"), "Module.c.D.forward.0": whole(data_name="gone.pt")}, ("here.pt",))
    assert (unit.missing_files, unit.stale_files, unit.complete) == (("gone.pt",), (), False)


@pytest.mark.parametrize(("entries", "stale", "killed"), [(1000, True, True), (2000, True, True), (1000, False, False), (999, True, False)])
def test_a_run_killed_after_a_flush_leaves_a_multiple_of_1000_entries(tmp_path: Path, entries: int, stale: bool, killed: bool) -> None:
    """Files of later entries lie there unlisted; without them, or at another number, nothing says that it was killed."""
    data = {"Module.a.B.forward.%d" % at: {"output": []} for at in range(entries)}
    unit = read_data(tmp_path, data, ("Module.a.B.forward.5000.output.0.pt",) if stale else ())
    assert (unit.killed, unit.complete, len(unit.stale_files)) == (killed, not killed, int(stale))


def test_a_run_that_ended_before_dump_json_is_known_by_its_files(tmp_path: Path) -> None:
    """B01: dump.json absent. Names alone give entries, in the order of their numbers; dtypes and shapes are not known."""
    names = ["Module.layers.%d.B.forward.0.output.0.pt" % at for at in (10, 9, 1)] + [
        "loose.pt",
        "Module.b.C.forward.0.kwargs.x.1.pt",
        "x.txt",
    ]
    folder = write_unit(tmp_path / "step0" / "rank0", {}, names)
    (folder / "dump.json").unlink()
    unit = opened(tmp_path)
    assert list(unit.entries) == ["Module.b.C.forward.0"] + ["Module.layers.%d.B.forward.0" % at for at in (1, 9, 10)] + ["loose"]
    assert [(one.category, one.suffix, one.dtype, one.shape) for one in unit.entries["Module.b.C.forward.0"]] == [
        ("kwargs", "x.1", None, None)
    ]
    assert (unit.complete, unit.order_known, unit.killed, unit.task, unit.missing_files) == (False, False, False, None, ())
    assert [tensor_path(unit, one) for one in unit.entries["loose"]] == [str(folder / "dump_tensor_data" / "loose.pt")]


def test_a_folder_of_tensor_files_alone(tmp_path: Path) -> None:
    raw = bytes(range(8))
    write_values(tmp_path / "Module.a.B.forward.0.output.0.pt", "float32", raw, (2,))
    unit, one = only_record(tmp_path)
    assert (one.entry, unit.present, unit.trace) == (ENTRY, (), None)
    assert read_bytes(read_header(tensor_path(unit, one))) == raw


@pytest.mark.parametrize("name", ["²1.pt", "layers.².pt", "١.pt", "0" * 200 + ".pt", ".pt"])
def test_files_with_odd_names_do_no_harm(tmp_path: Path, name: str) -> None:
    """Characters that are digits to Python and no numbers."""
    (tmp_path / name).write_bytes(b"")
    (tmp_path / "a.pt").write_bytes(b"")
    assert sorted(one.file or "" for one in opened(tmp_path).records()) == sorted([name, "a.pt"])


# --- construct.json and stack.json ---


def test_the_trace_takes_every_form_of_parent(tmp_path: Path) -> None:
    """Text, null, [parent, micro step], an empty list; a number is a counter and no entry."""
    folder = write_unit(tmp_path / "rank0", {ENTRY: whole()})
    lines = {"megatron_micro_step_number": 1, "a": None, "b": "a", "c": ["b", 0], "d": [None, 1], "e": [], "f": {"x": 1}, "g": True}
    (folder / "construct.json").write_text(json.dumps(lines))
    unit = opened(folder)
    assert list((unit.trace or {}).items()) == [("a", None), ("b", "a"), ("c", "b"), ("d", None), ("e", None)]
    assert (unit.trace_keys, unit.present) == (8, ("dump.json", "construct.json"))


def test_missing_and_empty_traces_are_told_apart(tmp_path: Path) -> None:
    """extra_info false writes none; level L1 writes an empty one."""
    folder = write_unit(tmp_path / "rank0", {ENTRY: whole()})
    assert (opened(folder).trace, opened(folder).trace_keys) == (None, 0)
    (folder / "construct.json").write_text("{}")
    assert (opened(folder).trace, opened(folder).trace_keys) == ({}, 0)


def test_a_cut_construct_json_costs_what_a_missing_one_does(tmp_path: Path) -> None:
    folder = write_unit(tmp_path / "rank0", {ENTRY: whole()})
    (folder / "construct.json").write_text('{"a": nul')
    unit = opened(folder)
    assert (unit.trace, unit.broken) == (None, ("construct.json",))
    assert list(unit.entries) == [ENTRY]


# --- broken JSON ---


def cut_message(path: Path) -> str:
    with pytest.raises(DumpError) as caught:
        load_json(str(path))
    return str(caught.value)


def test_json_cut_anywhere_names_the_file_and_the_byte_where_it_ends(tmp_path: Path) -> None:
    """B01. The reader is told how much of the file there is, wherever the cut fell: in a text, a number, a word, between values."""
    raw = (unit_folder("26.2.0/mini_tensor") / "dump.json").read_bytes()
    path = tmp_path / "rank0" / "dump.json"
    path.parent.mkdir()
    wrong = []
    for length in range(0, len(raw) - 1, 5):
        path.write_bytes(raw[:length])
        message = cut_message(path)
        if not message.startswith("Cannot read rank0/dump.json: it ends at byte %d in the middle" % length):
            wrong.append(message)
    assert wrong == []


@pytest.mark.parametrize(
    ("raw", "words"),
    [
        (b"", "byte 0"),
        (b"{} x", "no JSON at byte 3"),
        (b'{"a": 1,}', "no JSON at byte "),
        (b'{"data": {"a" 1}}', "no JSON at byte 14"),
        ('{"é": 1, x}'.encode(), "no JSON at byte 10"),
        (b'{"a": "\xe9"}', "no JSON of msprobe"),
        (b"\xff\xfe{\x00}\x00", "no JSON of msprobe"),
        (b"\xef\xbb\xbf{}", "byte 0"),
        (b"[]", "expected a JSON object, found a list"),
        (b"null", "found a NoneType"),
        (b'"text"', "found a str"),
        (b"NaN", "found a float"),
        (b"\x00" * 50, "at byte "),
    ],
    ids=[
        "empty",
        "after",
        "comma",
        "colon",
        "bytes not characters",
        "latin-1",
        "utf-16",
        "bom",
        "list",
        "null",
        "text",
        "nan",
        "zeros",
    ],
)
def test_what_is_no_json_of_msprobe_is_refused(tmp_path: Path, raw: bytes, words: str) -> None:
    """The place is counted in bytes, as an editor or head -c would."""
    (tmp_path / "dump.json").write_bytes(raw)
    message = cut_message(tmp_path / "dump.json")
    assert words in message
    assert message.startswith("Cannot read %s/dump.json: " % tmp_path.name)


def test_a_number_without_end_is_read_or_refused(tmp_path: Path) -> None:
    """Newer Pythons refuse to read it, older ones take their time."""
    folder = write_unit(tmp_path / "rank0", {})
    (folder / "dump.json").write_text('{"data": {"%s": %s}}' % (ENTRY, "9" * 5000))
    unit, refusal = read_or_refused(folder)
    assert list(unit.entries) == [ENTRY] if unit else "rank0/dump.json" in refusal


@pytest.mark.parametrize("depth", [100, 700, 900, 940, 960, 980, 990, 1500, 5000, 30000])
@pytest.mark.parametrize(("left", "right"), [("[", "]"), ('{"a":', "}")])
def test_json_that_nests_without_end_is_read_or_refused(tmp_path: Path, depth: int, left: str, right: str) -> None:
    """Newer Pythons parse deeper than Python code may then call itself."""
    folder = write_unit(tmp_path / "rank0", {})
    nested = left * depth + "1" + right * depth
    (folder / "dump.json").write_text('{"data": {"%s": {"input_args": %s, "output": []}}}' % (ENTRY, nested))
    unit, refusal = read_or_refused(folder)
    assert list(unit.entries) == [ENTRY] if unit else "rank0/dump.json" in refusal
    assert unit or depth > 300


@pytest.mark.parametrize("text", ["{}", '{"data": null}', '{"data": []}', '{"task": "tensor"}'])
def test_json_without_data_is_no_dump(tmp_path: Path, text: str) -> None:
    folder = write_unit(tmp_path / "rank0", {})
    (folder / "dump.json").write_text(text)
    with pytest.raises(DumpError, match=r'rank0/dump\.json: it has no "data" object'):
        opened(folder)


def test_a_folder_where_json_is_due(tmp_path: Path) -> None:
    with pytest.raises(DumpError, match="Is a directory"):
        load_json(str(tmp_path))
    with pytest.raises(DumpError, match="No such file"):
        load_json(str(tmp_path / "dump.json"))


# --- names that leave the dump ---


@pytest.mark.parametrize(
    "name", ["../secret.pt", "/etc/passwd", "sub/x.pt", "./x.pt", "..", ".", "", "x.pt/", "\0.pt", "a\0b.pt", "\ud800.pt", 7, [], {}, True]
)
def test_a_data_name_that_is_no_bare_file_name_is_never_opened(tmp_path: Path, name: Any) -> None:
    """One record is refused with its name and reason; the rest of the dump is read."""
    (tmp_path / "secret.pt").write_bytes(b"x")
    folder = write_unit(
        tmp_path / "rank0", {ENTRY: {"input_args": [record(data_name=name), record(data_name="good.pt")], "output": []}}, ["good.pt"]
    )
    unit = opened(folder)
    bad, good = unit.records()
    with pytest.raises(DumpError) as caught:
        tensor_path(unit, bad)
    assert "leads outside" in str(caught.value)
    assert bad.name in str(caught.value)
    assert (bad.name, bad.file) == (ENTRY + ".input.0", None)
    assert tensor_path(unit, good) == str(folder / "dump_tensor_data" / "good.pt")


def test_a_file_that_links_out_of_the_dump_is_never_opened(tmp_path: Path) -> None:
    """A dump from elsewhere could point at any file of the reader's machine; one that stays inside is as good as a copy."""
    names = ["out.pt", "up.pt", "in.pt", "nowhere.pt", "circle.pt", "folder.pt", "real.pt"]
    folder = write_unit(tmp_path / "rank0", {ENTRY: {"input_args": [record(data_name=name) for name in names], "output": []}}, ["real.pt"])
    tensors = folder / "dump_tensor_data"
    (tmp_path / "secret.pt").write_bytes(b"x")
    (tensors / "out.pt").symlink_to(tmp_path / "secret.pt")
    (tensors / "up.pt").symlink_to("../dump.json")
    (tensors / "in.pt").symlink_to("real.pt")
    (tensors / "nowhere.pt").symlink_to("gone.pt")
    (tensors / "circle.pt").symlink_to("circle.pt")
    (tensors / "folder.pt").mkdir()
    unit, told = opened(folder), []
    for one in unit.records():
        try:
            told.append(os.path.relpath(tensor_path(unit, one), tensors))
        except DumpError as error:
            told.append(str(error))
    assert told[:2] == ["out.pt leads outside its dump_tensor_data", "up.pt leads outside its dump_tensor_data"]
    assert told[2:5] == ["in.pt", "nowhere.pt is not there", "circle.pt is not there"]
    assert told[5].startswith("folder.pt is ")
    assert told[6] == "real.pt"


def test_a_pipe_is_no_file(tmp_path: Path) -> None:
    """Opening it would wait for ever."""
    unit, one = only_record(write_unit(tmp_path / "rank0", {ENTRY: {"input_args": [record(data_name="p.pt")], "output": []}}))
    os.mkfifo(tmp_path / "rank0" / "dump_tensor_data" / "p.pt")
    with pytest.raises(DumpError, match=r"p\.pt"):
        tensor_path(unit, one)


def test_a_tensor_folder_that_links_to_itself(tmp_path: Path) -> None:
    folder = write_unit(tmp_path / "rank0", {ENTRY: whole(data_name="a.pt")})
    (folder / "dump_tensor_data").rmdir()
    (folder / "dump_tensor_data").symlink_to("dump_tensor_data")
    unit, refusal = read_or_refused(folder)
    assert unit.missing_files == ("a.pt",) if unit else "dump_tensor_data" in refusal


def test_a_record_without_a_file_says_so(tmp_path: Path) -> None:
    unit, one = only_record(write_unit(tmp_path / "rank0", {ENTRY: {"input_args": [record()], "output": []}}))
    with pytest.raises(DumpError, match=r"Module\.a\.B\.forward\.0\.input\.0: no file was saved for it"):
        tensor_path(unit, one)


def test_one_truncated_file_spoils_only_itself(tmp_path: Path) -> None:
    """B12: the unit is read, the file is named when its tensor is asked for."""
    shutil.copytree(unit_folder("26.2.0/pair_train"), tmp_path / "rank0")
    unit = opened(tmp_path)
    first, second = list(unit.records())[:2]
    path = Path(tensor_path(unit, first))
    path.write_bytes(path.read_bytes()[:700])
    unit = opened(tmp_path)
    assert unit.missing_files == ()
    with pytest.raises(DumpError, match=path.name):
        read_header(tensor_path(unit, first))
    assert read_header(tensor_path(unit, second)).shape == second.shape
