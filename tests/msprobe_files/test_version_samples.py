"""Units of real dumps by msprobe 8.1.2 to 26.2.0. The facts were taken down by hand from their JSON files and folders."""

from __future__ import annotations

import json
import math
import os
import shutil
from pathlib import Path
from typing import Dict, List, NamedTuple, Optional, Tuple

import pytest
from handmade import VERSIONS
from msprobe_files.pt_archive import read_header
from msprobe_files.release import inputs_are, release_of
from msprobe_files.units import Record, Unit, find_units, read_unit, tensor_path


class Fact(NamedTuple):
    """What a sample holds. ``counts``: tensors in input, kwargs, output, parameters, parameters_grad."""

    task: str
    level: str
    entries: int
    counts: Tuple[int, int, int, int, int]
    trace_keys: Optional[int]
    rank: int
    inputs: str
    release: str
    complete: bool = True
    unsaved: int = 0
    stale: int = 0


PRE, POST, UNKNOWN = "pre_call", "post_call", "unknown"
MINI = (4, 1, 9, 5, 0)
FACTS = {
    "8.1.2/mini_tensor/step0/rank": Fact("tensor", "L0", 6, MINI, 3, 0, POST, "<=8.3"),
    "8.3.3/mini_tensor/step0/rank": Fact("tensor", "L0", 6, MINI, 3, 0, POST, "<=8.3", unsaved=2),
    "26.0.0/fp8/step0/proc28303": Fact("tensor", "L0", 1, (1, 0, 1, 0, 0), 1, 0, POST, "<=26.0"),
    "26.0.0/mini_tensor/step0/proc8477": Fact("tensor", "L0", 3, MINI, 3, 0, POST, "26.0", unsaved=2),
    "26.1.0.post1/mini_tensor/step0/proc8632": Fact("tensor", "L0", 3, MINI, 3, 0, POST, "26.1", unsaved=2),
    "26.1.0.post1/norms_infer/step0/proc10525": Fact("tensor", "L0", 5, (8, 0, 8, 3, 0), 16, 0, POST, "26.1"),
    "26.2.0/dtensor_tp/step0/rank0": Fact("tensor", "L0", 3, (3, 0, 3, 2, 0), 3, 0, PRE, ">=26.2", unsaved=1),
    "26.2.0/dtensor_tp/step0/rank1": Fact("tensor", "L0", 3, (3, 0, 3, 2, 0), 3, 1, PRE, ">=26.2", unsaved=1),
    "26.2.0/exception/step0/proc8922": Fact("tensor", "L0", 2, (3, 1, 8, 3, 0), 2, 0, PRE, ">=26.2", unsaved=2),
    "26.2.0/fsdp1_flat/step0/rank0": Fact("tensor", "L0", 5, (5, 0, 5, 2, 0), 5, 0, PRE, ">=26.2"),
    "26.2.0/fsdp1_flat/step0/rank1": Fact("tensor", "L0", 5, (5, 0, 5, 2, 0), 5, 1, PRE, ">=26.2"),
    "26.2.0/fsdp2_stat/step0/rank0": Fact("statistics", "L0", 17, (15, 5, 17, 15, 0), 17, 0, PRE, ">=26.2", unsaved=52),
    "26.2.0/fsdp2_stat/step0/rank1": Fact("statistics", "L0", 17, (15, 5, 17, 15, 0), 17, 1, PRE, ">=26.2", unsaved=52),
    "26.2.0/killed/step0/proc8921": Fact("tensor", "L0", 2, (3, 1, 7, 2, 0), 0, 0, UNKNOWN, "unknown", complete=False),
    "26.2.0/l1_stat/step0/proc9009": Fact("statistics", "L1", 4, (8, 0, 4, 0, 0), 0, 0, UNKNOWN, ">=26.1", unsaved=12),
    "26.2.0/md5/step0/proc9013": Fact("statistics", "L0", 3, MINI, 3, 0, PRE, ">=26.2", unsaved=19),
    "26.2.0/megatron_micro/step0/proc27063": Fact("statistics", "L0", 6, (6, 0, 6, 4, 0), 7, 0, PRE, ">=26.2", unsaved=16),
    "26.2.0/mini_tensor/step0/proc8864": Fact("tensor", "L0", 3, MINI, 3, 0, PRE, ">=26.2", unsaved=2),
    "26.2.0/mix_stat/step0/proc9003": Fact("statistics", "mix", 7, (12, 1, 13, 5, 0), 10, 0, PRE, ">=26.2", unsaved=31),
    "26.2.0/no_extra/step0/proc9075": Fact("tensor", "L0", 1, (1, 0, 1, 2, 0), None, 0, UNKNOWN, ">=26.1"),
    "26.2.0/override/bad/step0/proc9266": Fact("tensor", "L0", 4, (4, 1, 4, 1, 0), 30, 0, PRE, ">=26.2"),
    "26.2.0/override/fixed/step0/proc9268": Fact("tensor", "L0", 4, (4, 1, 4, 1, 0), 30, 0, PRE, ">=26.2"),
    "26.2.0/override/good/step0/proc9224": Fact("tensor", "L0", 4, (4, 1, 4, 1, 0), 30, 0, PRE, ">=26.2"),
    "26.2.0/pair_infer/step0/proc8914": Fact("tensor", "L0", 16, (23, 2, 20, 9, 0), 16, 0, PRE, ">=26.2"),
    "26.2.0/pair_train/step0/proc8911": Fact("tensor", "L0", 17, (15, 5, 17, 15, 0), 17, 0, PRE, ">=26.2"),
    "26.2.0/recompute/step0/proc9139": Fact("tensor", "L0", 11, (8, 0, 6, 10, 6), 8, 0, PRE, ">=26.2"),
    "26.2.0/second_call/step0/proc10670": Fact("tensor", "L0", 4, (4, 0, 4, 4, 0), 4, 0, PRE, ">=26.2"),
    "26.2.0/sliced/step0/proc9109": Fact("tensor", "L0", 1, (1, 0, 1, 2, 0), 1, 0, PRE, ">=26.2"),
    "26.2.0/stale/step0/rank0": Fact("tensor", "L0", 2, (2, 0, 2, 2, 0), 2, 0, PRE, ">=26.2", stale=2),
    "26.2.0/structure/step0/proc9063": Fact("structure", "L0", 0, (0, 0, 0, 0, 0), 3, 0, PRE, ">=26.2", complete=False),
    "26.2.0/two_proc/step0/proc10673": Fact("statistics", "L0", 2, (2, 0, 2, 2, 0), 2, 0, PRE, ">=26.2", unsaved=6),
    "26.2.0/two_proc/step0/proc10674": Fact("statistics", "L0", 2, (2, 0, 2, 2, 0), 2, 0, PRE, ">=26.2", unsaved=6),
    "26.2.0/verl_rule/step0/proc9001": Fact("statistics", "L0", 15, (14, 3, 15, 14, 0), 15, 0, PRE, ">=26.2", unsaved=46),
    "26.2.0/xor/step0/proc9015": Fact("statistics", "L0", 3, MINI, 3, 0, PRE, ">=26.2", unsaved=19),
    "npu_tagged/step0/rank0": Fact("tensor", "L0", 3, MINI, 3, 0, PRE, ">=26.2", unsaved=2),
}
UNITS = sorted(FACTS)


def opened(folder: str) -> Unit:
    (place,) = find_units(str(VERSIONS / folder))
    return read_unit(place)


def records(folder: str) -> Dict[str, Record]:
    return {record.name: record for record in opened(folder).records()}


def test_every_unit_of_the_samples_is_found() -> None:
    found = find_units(str(VERSIONS))
    assert [place.folder for place in found if not place.folder.startswith(str(VERSIONS))] == []
    assert sorted(os.path.relpath(place.folder, VERSIONS) for place in found) == sorted([*UNITS, "npu_tagged"])
    assert {place.step for place in found} == {0}


@pytest.mark.parametrize("folder", UNITS)
def test_facts(folder: str) -> None:
    """Tensors, entries and state of each unit; ``unsaved``: records without a file (statistics, empty, freed, asynchronous)."""
    unit, fact = opened(folder), FACTS[folder]
    kinds = [record.category for record in unit.records()]
    counts = tuple(kinds.count(kind) for kind in ("input", "kwargs", "output", "parameters", "parameters_grad"))
    assert (unit.task, unit.level, len(unit.entries), counts) == (fact.task, fact.level, fact.entries, fact.counts)
    assert (unit.trace_keys, unit.trace is None, unit.place.rank) == (fact.trace_keys or 0, fact.trace_keys is None, fact.rank)
    assert sum(record.file is None for record in unit.records()) == fact.unsaved
    assert (unit.complete, unit.killed, len(unit.stale_files)) == (fact.complete, folder.startswith("26.2.0/killed"), fact.stale)
    assert (unit.missing_files, unit.interrupted) == ((), ())
    assert (unit.place.has_json, unit.order_known) == (True, not unit.killed)


@pytest.mark.parametrize("folder", UNITS)
def test_every_file_agrees_with_its_record(folder: str) -> None:
    """Shapes and dtypes of dump.json against the files. B07: 26.0.0 stored float8 as float32 and recorded float8."""
    unit = opened(folder)
    for record in unit.records():
        if record.file is not None and not unit.killed:
            header = read_header(tensor_path(unit, record))
            recorded = "float32" if record.dtype == "float8_e4m3fn" else record.dtype
            assert (header.dtype, header.shape) == (recorded, record.shape)
            assert record.file == record.name + ".pt"


@pytest.mark.parametrize("folder", UNITS)
def test_when_inputs_were_taken_and_by_which_release(folder: str) -> None:
    unit, fact = opened(folder), FACTS[folder]
    assert inputs_are(unit) == fact.inputs
    assert release_of(unit, fact.inputs) == fact.release


TOLD_BY_DATA = {"26.1.0.post1/norms_infer/step0/proc10525": (POST, "26.1"), "26.2.0/pair_infer/step0/proc8914": (PRE, ">=26.2")}
BLIND = {"8": "<=8.3", "26.0.0/m": "26.0", "26.0.0/f": "<=26.0", "26.1": ">=26.1", "26.2": ">=26.1", "npu": ">=26.1"}


@pytest.mark.parametrize("folder", UNITS)
def test_the_same_without_stack_json(folder: str, tmp_path: Path) -> None:
    """Then only an engine's add + norm tells; what is said must never contradict what made the unit."""
    here = tmp_path / "step0" / Path(folder).name
    shutil.copytree(VERSIONS / folder, here)
    if here.joinpath("stack.json").exists():
        here.joinpath("stack.json").unlink()
    unit = read_unit(find_units(str(here))[0])
    fallback = "unknown" if FACTS[folder].task == "structure" or unit.killed else next(v for k, v in BLIND.items() if folder.startswith(k))
    inputs, release = TOLD_BY_DATA.get(folder, (UNKNOWN, fallback))
    assert inputs_are(unit) == inputs
    assert release_of(unit, inputs) == release


ENGINES = {
    "qwen2-hf-vllm-clean/infer": PRE,
    "qwen2-hf-vllm-clean/train": UNKNOWN,
    "qwen2-hf-sglang512-clean/infer": PRE,
    "qwen2-megatron_tp1-sglang-clean/infer": PRE,
    "qwen2-megatron_tp1-sglang-clean/train": UNKNOWN,
    "qwen2-megatron_te_shaped-sglang-clean/train": UNKNOWN,
    "qwen2-hf-sglang-clean/train": UNKNOWN,
    "qwen2-fsdp1_rank0-vllm-clean/train": UNKNOWN,
}


@pytest.mark.parametrize("folder", sorted(ENGINES))
def test_real_engines_tell_by_their_data_and_trainers_do_not(folder: str) -> None:
    """All by msprobe 26.2.0 (PROVENANCE.md of each), stack.json left out."""
    (place,) = find_units(str(VERSIONS.parent / folder))
    unit = read_unit(place)
    assert inputs_are(unit._replace(present=("dump.json",))) == ENGINES[folder]


# --- single facts ---


def test_statistics_that_are_no_numbers_are_read() -> None:
    """B08: null is no statistic; NaN and Infinity come as bare tokens."""
    seen = records("26.2.0/mini_tensor")
    of = {key: seen["Module.odd.Odd.forward.0.output.0." + key].statistics for key in ("inf", "nan", "flag", "empty")}
    assert of["inf"] == {"Max": math.inf, "Min": 1.0, "Mean": math.inf, "Norm": math.inf}
    assert all(math.isnan(value) for value in of["nan"].values())
    assert of["flag"] == {"Max": True, "Min": False, "Mean": None, "Norm": None}
    assert of["empty"] == {"Max": None, "Min": None, "Mean": None, "Norm": None}


def test_nested_values_bear_their_path() -> None:
    """Lists and dicts nest as the arguments did; texts, numbers, sizes, nulls and dtypes are no tensors."""
    odd = [name for name in records("26.2.0/mini_tensor") if name.startswith("Module.odd.Odd.forward.0.")]
    wanted = ["input.0", "input.1", "kwargs.extra.a.0", *("output.0." + key for key in ("y", "pair.0", "pair.1.0", "inf", "nan"))]
    wanted += ["output.0.empty", "output.0.flag", "parameters.flat"]
    assert odd == ["Module.odd.Odd.forward.0." + name for name in wanted]


@pytest.mark.parametrize(("folder", "file"), [("8.1.2/mini_tensor", True), ("8.3.3/mini_tensor", False), ("26.2.0/mini_tensor", False)])
def test_empty_tensors(folder: str, file: bool) -> None:
    """8.1 wrote a file for a tensor without elements, later ones write none; both are complete."""
    seen = records(folder)
    for name, shape in (("output.0.empty", (3, 0)), ("parameters.flat", (0,))):
        record = seen["Module.odd.Odd.forward.0." + name]
        assert (record.shape, record.file is not None, record.refused) == (shape, file, None)
    assert opened(folder).complete


def test_digests() -> None:
    """md5 mode writes a CRC-32, xor mode a number under the same key and no statistics."""
    name = "Module.odd.Odd.forward.0.input.0"
    md5, xor, plain = (records(folder)[name] for folder in ("26.2.0/md5", "26.2.0/xor", "26.2.0/mini_tensor"))
    assert (md5.digest, xor.digest, plain.digest) == ("91e79017", "0x3f60000000800000", None)
    assert (md5.statistics["Max"], xor.statistics["Max"]) == (5.0, None)
    assert records("26.2.0/xor")["Module.odd.Odd.forward.0.output.0.empty"].digest is None


def test_dtensor_records_are_their_local_shards() -> None:
    """Shape is the shard's; the asynchronous output has no file and is no gap."""
    seen = records("26.2.0/dtensor_tp/step0/rank0")
    weight = seen["Module.0.0.Linear.forward.0.parameters.weight"]
    assert (weight.dtype, weight.shape, weight.file is not None) == ("float32", (4, 4), True)
    assert [record.file for record in seen.values() if record.name.startswith("Module.0.Sequential.forward.0.output")] == [None]


def test_micro_steps_are_no_parents() -> None:
    """Under Megatron's schedules construct.json holds [parent, micro step] and a counter."""
    unit = opened("26.2.0/megatron_micro")
    assert unit.trace is not None
    assert list(unit.trace.items())[:2] == [
        ("Module.0.Sequential.forward.0", None),
        ("Module.0.0.Linear.forward.0", "Module.0.Sequential.forward.0"),
    ]
    assert len(unit.trace) == 6


def test_entries_are_in_the_order_of_their_ends_and_the_trace_in_that_of_their_starts() -> None:
    unit = opened("26.2.0/pair_infer")
    layer, norm = "Module.model.layers.0.Qwen2DecoderLayer.forward.0", "Module.model.layers.0.input_layernorm.RMSNorm.forward.0"
    ends, starts = list(unit.entries), list(unit.trace or {})
    assert ends.index(norm) < ends.index(layer)
    assert starts.index(layer) < starts.index(norm)


@pytest.mark.parametrize(
    ("folder", "files"), [("26.2.0/no_extra", ["dump.json"]), ("26.2.0/structure", ["dump.json", "construct.json", "stack.json"])]
)
def test_which_json_files_are_there(folder: str, files: List[str]) -> None:
    assert list(opened(folder).present) == files


def test_a_killed_run_is_known_by_its_files_alone() -> None:
    """B01: dump.json is valid and empty, 13 tensors lie there."""
    unit = opened("26.2.0/killed")
    assert [record.dtype for record in unit.records()] == [None] * 13
    assert list(unit.entries) == ["Module.lin.Linear.forward.0", "Module.odd.Odd.forward.0"]
    assert (unit.killed, unit.complete, unit.order_known, unit.stale_files, unit.task) == (True, False, False, (), "tensor")
    assert all(os.path.isfile(tensor_path(unit, record)) for record in unit.records())


def test_files_of_an_earlier_run_are_told_apart() -> None:
    """The second model was smaller: its dump.json no longer lists the Tanh."""
    unit = opened("26.2.0/stale")
    assert unit.stale_files == ("Module.0.1.Tanh.forward.0.input.0.pt", "Module.0.1.Tanh.forward.0.output.0.pt")
    assert not any("Tanh" in record.name for record in unit.records())


def test_two_processes_are_two_units() -> None:
    """B05: proc folders have no rank; each is a unit of step 0, rank 0."""
    found = find_units(str(VERSIONS / "26.2.0/two_proc"))
    assert [(os.path.basename(place.folder), place.step, place.rank) for place in found] == [("proc10673", 0, 0), ("proc10674", 0, 0)]


def test_gradients_and_recomputed_calls() -> None:
    unit = opened("26.2.0/recompute")
    assert [entry for entry in unit.entries if "parameters_grad" in entry] == [
        "Module.%s.Linear.parameters_grad.0" % name for name in json_order("26.2.0/recompute")
    ]
    grads = [record.name for record in unit.records() if record.category == "parameters_grad"]
    assert all(name.endswith(("parameters_grad.0.weight", "parameters_grad.0.bias")) for name in grads)
    assert len(grads) == 6
    assert not any(record.category == "output" for record in unit.entries["Module.b.Linear.forward.1"])


def json_order(folder: str) -> List[str]:
    """Names of the modules that own gradients, as dump.json lists them."""
    (path,) = VERSIONS.joinpath(folder).glob("step0/*/dump.json")
    return [entry.split(".")[1] for entry in json.loads(path.read_text())["data"] if "parameters_grad" in entry]


def test_a_moved_dump_is_read_where_it_lies() -> None:
    """Every sample's dump_data_dir is of another machine; dump_tensor_data beside dump.json is what counts."""
    unit = opened("26.2.0/pair_train")
    for record in unit.records():
        assert tensor_path(unit, record).startswith(str(VERSIONS / "26.2.0/pair_train/step0"))
