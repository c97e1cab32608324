"""When inputs were taken and which release wrote a unit, where stack.json is missing, odd or broken. Real units: test_version_samples."""

from __future__ import annotations

import json
import shutil
import struct
from pathlib import Path
from typing import Any, Dict, List, Sequence

import numpy as np
import pytest
from handmade import VERSIONS, record, write_unit, write_values
from msprobe_files.release import inputs_are, release_of
from msprobe_files.units import Unit, find_units, read_unit

PRE, POST, UNKNOWN = "pre_call", "post_call", "unknown"
NORM = "Module.layers.%d.norm.RMSNorm.forward.0"


def bf16(*values: float) -> bytes:
    """Bytes of values that bfloat16 holds exactly."""
    wide = np.array(values, "<f4").view("<u4")
    assert not (wide & 0xFFFF).any()
    return bytes((wide >> 16).astype("<u2").tobytes())


X, R, SUM = bf16(1.5, -2.0), bf16(0.25, 4.0), bf16(1.75, 2.0)
NORMED, WEIGHT, ZERO = bf16(0.5, -0.5), bf16(1.0, 1.0), bf16(0.0, 0.0)


def call(
    folder: Path, entry: str, inputs: Sequence[bytes], outputs: Sequence[bytes], weight: bool = True, dtype: str = "bfloat16"
) -> Dict[str, Any]:
    """One entry of dump.json, its tensors of two elements written beside it."""
    tensors = folder / "dump_tensor_data"
    tensors.mkdir(parents=True, exist_ok=True)
    content: Dict[str, Any] = {"input_kwargs": {}}
    for slot, category, values in (("input_args", "input", inputs), ("output", "output", outputs)):
        content[slot] = []
        for at, raw in enumerate(values):
            name = "%s.%s.%d.pt" % (entry, category, at)
            write_values(tensors / name, dtype, raw, (2,))
            content[slot].append(record("torch." + dtype, (2,), data_name=name))
    content["parameters"] = {"weight": record("torch." + dtype, (2,))} if weight else {}
    return content


def unit_of(folder: Path, data: Dict[str, Any]) -> Unit:
    (folder / "dump.json").write_text(json.dumps({"task": "tensor", "level": "L0", "data": data}))
    (place,) = find_units(str(folder))
    return read_unit(place)


# --- by the data ---


def test_an_in_place_norm_says_after_the_call(tmp_path: Path) -> None:
    """Fused add + norm before 26.2: both inputs hold the results."""
    data = {NORM % at: call(tmp_path, NORM % at, [NORMED, SUM], [NORMED, SUM]) for at in range(3)}
    assert inputs_are(unit_of(tmp_path, data)) == POST


def test_the_first_norm_without_a_residual_does_not_spoil_it(tmp_path: Path) -> None:
    """It has one input and one output, which it does not make in place."""
    data = {NORM % 0: call(tmp_path, NORM % 0, [X], [NORMED]), NORM % 1: call(tmp_path, NORM % 1, [NORMED, SUM], [NORMED, SUM])}
    assert inputs_are(unit_of(tmp_path, data)) == POST


def test_one_call_that_differs_settles_its_class(tmp_path: Path) -> None:
    """A norm of values that were normalised already returns them: chance, not rule."""
    data = {NORM % at: call(tmp_path, NORM % at, [NORMED, SUM], [NORMED, SUM]) for at in range(3)}
    data[NORM % 3] = call(tmp_path, NORM % 3, [X, R], [NORMED, SUM])
    assert inputs_are(unit_of(tmp_path, data)) == PRE


def test_an_add_and_norm_says_before_the_call(tmp_path: Path) -> None:
    assert inputs_are(unit_of(tmp_path, {NORM % 0: call(tmp_path, NORM % 0, [X, R], [NORMED, SUM])})) == PRE


@pytest.mark.parametrize(
    ("inputs", "outputs", "weight", "why"),
    [
        ([X], [X], False, "an identity without weights: dropout, a quantisation stub"),
        ([X, R], [X, R], False, "the same of two tensors"),
        ([X], [X], True, "an identity with weights: a scale of ones, a fresh adapter"),
        ([X, R], [X], True, "the other input is untouched, or no one can tell"),
        ([X, R], [R, X], True, "the same tensors at other places"),
        ([ZERO, ZERO], [ZERO, ZERO], True, "a dummy run: zeros equal zeros"),
        ([X, ZERO], [NORMED, X], True, "a sum with zero is a copy"),
        ([X, X], [], True, "no outputs"),
        ([], [X], True, "no inputs"),
        ([X, R], [NORMED, R], True, "no sum"),
    ],
)
def test_what_proves_nothing_says_nothing(tmp_path: Path, inputs: List[bytes], outputs: List[bytes], weight: bool, why: str) -> None:
    """A wrong answer here makes the replay take true inputs for results, or results for inputs."""
    assert inputs_are(unit_of(tmp_path, {NORM % 0: call(tmp_path, NORM % 0, inputs, outputs, weight)})) == UNKNOWN, why


def test_an_add_out_of_place_does_not_tell_the_releases_apart(tmp_path: Path) -> None:
    """A module x + y shows the same two inputs whenever they were taken: 26.1 must not pass for 26.2."""
    (source,) = (VERSIONS / "26.1.0.post1/mini_tensor").glob("step0/proc*")
    shutil.copytree(source, tmp_path / "rank0")
    folder = tmp_path / "rank0"
    (folder / "stack.json").unlink()
    data = json.loads((folder / "dump.json").read_text())["data"]
    data["Module.add.Add.forward.0"] = call(folder, "Module.add.Add.forward.0", [X, R], [SUM], weight=False)
    assert inputs_are(unit_of(folder, data)) == UNKNOWN


@pytest.mark.parametrize(("direction", "entry"), [("backward", "Module.a.RMSNorm.backward.0"), ("api", "Functional.rms_norm.0.forward")])
def test_only_forwards_of_modules_say_after_the_call(tmp_path: Path, direction: str, entry: str) -> None:
    """APIs' inputs are taken before the call in all releases, and a gradient may pass unchanged."""
    assert inputs_are(unit_of(tmp_path, {entry: call(tmp_path, entry, [NORMED, SUM], [NORMED, SUM])})) == UNKNOWN


@pytest.mark.parametrize(
    ("dtype", "x", "y", "total"),
    [
        ("float32", [1.5, 0.1], [2.25, 0.2], [3.75, np.float32(0.1) + np.float32(0.2)]),
        ("float16", [1.0, 2048.0], [2.0, 1.0], [3.0, 2048.0]),
        ("float16", [1.0, 2048.0], [2.0, 3.0], [3.0, 2052.0]),
        ("bfloat16", [256.0, 1.0], [1.0, 2.0], [256.0, 3.0]),
        ("bfloat16", [256.0, 1.0], [3.0, 2.0], [260.0, 3.0]),
        ("bfloat16", [-256.0, 1.0], [-3.0, 2.0], [-260.0, 3.0]),
    ],
)
def test_sums_are_rounded_to_the_nearest_even(tmp_path: Path, dtype: str, x: List[float], y: List[float], total: List[float]) -> None:
    """257 and 259 lie halfway between bfloat16 neighbours, 2049 and 2051 between those of float16."""
    form = {"float32": lambda v: struct.pack("<2f", *v), "float16": lambda v: struct.pack("<2e", *v), "bfloat16": lambda v: bf16(*v)}[dtype]
    normed, entry = form([0.5, -0.5]), NORM % 0
    made = call(tmp_path, entry, [form(x), form(y)], [normed, form(total)], dtype=dtype)
    assert inputs_are(unit_of(tmp_path, {entry: made})) == PRE
    other = [total[0], total[1] + (8 if abs(total[1]) > 100 else 1)]
    made = call(tmp_path, entry, [form(x), form(y)], [normed, form(other)], dtype=dtype)
    assert inputs_are(unit_of(tmp_path, {entry: made})) == UNKNOWN


@pytest.mark.parametrize(
    ("dtype", "x", "y"),
    [
        ("float16", struct.pack("<2e", 60000, 1), struct.pack("<2e", 60000, 1)),
        ("float32", struct.pack("<2f", 3e38, 1), struct.pack("<2f", 3e38, 1)),
        ("float32", struct.pack("<2f", float("inf"), 1), struct.pack("<2f", float("-inf"), 1)),
        ("bfloat16", struct.pack("<2H", 0x7F80, 0xFFFF), struct.pack("<2H", 0xFF80, 0xFFFF)),
    ],
)
def test_overflow_and_infinities_make_no_noise(tmp_path: Path, dtype: str, x: bytes, y: bytes) -> None:
    """numpy would warn on the user's terminal (here a warning is an error)."""
    entry, other = NORM % 0, {"float32": struct.pack("<2f", 7, 8), "float16": struct.pack("<2e", 7, 8), "bfloat16": bf16(7, 8)}[dtype]
    assert inputs_are(unit_of(tmp_path, {entry: call(tmp_path, entry, [x, y], [other, other], dtype=dtype)})) == UNKNOWN


def test_a_tensor_of_another_size_than_recorded_is_no_evidence(tmp_path: Path) -> None:
    """A file of an earlier run under the same name: not a traceback of numpy."""
    entry = NORM % 0
    data = {entry: call(tmp_path, entry, [X, R], [NORMED, SUM])}
    write_values(tmp_path / "dump_tensor_data" / (entry + ".input.1.pt"), "bfloat16", R + X + R, (6,))
    assert inputs_are(unit_of(tmp_path, data)) == UNKNOWN


@pytest.mark.parametrize("damage", ["cut", "gone", "other dtype"])
def test_a_file_that_cannot_be_read_is_no_evidence(tmp_path: Path, damage: str) -> None:
    """B07, B12: neither may end the probe nor decide."""
    entry = NORM % 0
    data = {entry: call(tmp_path, entry, [NORMED, SUM], [NORMED, SUM])}
    path = tmp_path / "dump_tensor_data" / (entry + ".input.0.pt")
    if damage == "cut":
        path.write_bytes(path.read_bytes()[:200])
    elif damage == "gone":
        path.unlink()
    else:
        write_values(path, "float32", struct.pack("<2f", 0.5, -0.5), (2,))
    assert inputs_are(unit_of(tmp_path, data)) == UNKNOWN


# --- by stack.json ---

BEFORE = "File /x/module.py, line 1, in _call_impl, \n args_kwargs_result = hook(self, args, kwargs)"
AFTER = "File /x/module.py, line 1, in _call_impl, \n hook_result = hook(self, args, kwargs, result)"


def stacked(folder: Path, text: str) -> Unit:
    write_unit(folder, {NORM % 0: {"input_args": [], "output": []}})
    (folder / "stack.json").write_text(text, "utf-8")
    (place,) = find_units(str(folder))
    return read_unit(place)


@pytest.mark.parametrize(
    ("groups", "said"),
    [
        ({"0": [[NORM % 0], [BEFORE, "File y"]]}, PRE),
        ({"0": [[NORM % 0], [AFTER, BEFORE]]}, POST),
        ({"0": [["Functional.add.0.forward"], [AFTER]], "1": [[NORM % 0], [BEFORE]]}, PRE),
        ({"0": [[NORM % 0], ["File y"]], "1": [[NORM % 1], [AFTER]]}, POST),
        ({"0": [["Functional.add.0.forward"], [AFTER]]}, UNKNOWN),
        ({"0": [[NORM % 0], ["File y", AFTER]]}, UNKNOWN),
        (
            {"0": [[], [AFTER]], "1": [[NORM % 0], []], "2": [NORM % 0, AFTER], "3": None, "4": [[NORM % 0]], "5": [[None], [AFTER]]},
            UNKNOWN,
        ),
        ({}, UNKNOWN),
        ([], UNKNOWN),
        (None, UNKNOWN),
    ],
)
def test_the_top_frame_of_a_module_tells(tmp_path: Path, groups: Any, said: str) -> None:
    """Frames below it are the user's, and those of APIs say nothing of modules."""
    assert inputs_are(stacked(tmp_path / "rank0", json.dumps(groups))) == said


@pytest.mark.parametrize("text", ["", "{", "[" * 100000, '{"0": [["Module.a"], ["' + "x" * 100, '{"0": ' + "9" * 5000 + "}"])
def test_a_broken_stack_json_costs_only_the_hint(tmp_path: Path, text: str) -> None:
    assert inputs_are(stacked(tmp_path / "rank0", text)) == UNKNOWN


def test_a_stack_json_of_other_bytes_costs_only_the_hint(tmp_path: Path) -> None:
    unit = stacked(tmp_path / "rank0", "{}")
    (tmp_path / "rank0" / "stack.json").write_bytes(b'{"0": [["Module.\xe9"], ["hook_result"]]}')
    assert inputs_are(unit) == UNKNOWN
    (tmp_path / "rank0" / "stack.json").unlink()
    assert inputs_are(unit) == UNKNOWN


# --- the release ---

OWNER = {"input_args": [record()], "output": [record()], "parameters": {"weight": record()}}
PLAIN = {"input_args": [record()], "output": [record()], "parameters": {}}


@pytest.mark.parametrize(
    ("folder", "data", "inputs", "release"),
    [
        ("rank", {"Module.a.B.forward.0": PLAIN}, UNKNOWN, "<=8.3"),
        ("rank0", {"Module.a.B.forward.0": OWNER, "Module.a.B.parameters_grad": {"weight": [None]}}, UNKNOWN, "<=8.3"),
        ("rank0", {"Module.a.B.forward.0": dict(OWNER, is_recompute=False)}, POST, "26.0"),
        ("rank0", {"Module.a.B.forward.0": dict(OWNER, is_recompute=True), "Module.a.B.parameters_grad.0": {}}, UNKNOWN, "26.0"),
        ("rank0", {"Module.a.B.forward.0": dict(PLAIN, is_recompute=False)}, UNKNOWN, "<=26.0"),
        ("rank0", {"Module.a.B.forward.0": OWNER}, POST, "26.1"),
        ("rank0", {"Module.a.B.forward.0": OWNER}, UNKNOWN, ">=26.1"),
        ("rank0", {"Module.a.B.forward.0": OWNER}, PRE, ">=26.2"),
        ("rank", {}, UNKNOWN, "<=8.3"),
        ("rank0", {}, UNKNOWN, "unknown"),
        ("proc12", {}, PRE, ">=26.2"),
    ],
)
def test_marks_leave_a_range_of_releases(tmp_path: Path, folder: str, data: Any, inputs: str, release: str) -> None:
    write_unit(tmp_path / folder, data)
    (place,) = find_units(str(tmp_path))
    assert release_of(read_unit(place), inputs) == release


def test_files_alone_tell_no_release(tmp_path: Path) -> None:
    """Their names are the same in all."""
    folder = write_unit(tmp_path / "rank0", {}, ["Module.a.B.forward.0.output.0.pt"])
    (folder / "dump.json").unlink()
    (place,) = find_units(str(folder))
    assert release_of(read_unit(place), UNKNOWN) == "unknown"
