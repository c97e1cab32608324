"""What an instruction may not ask, each refused before anything is written, with its path in the file. Nothing is computed yet."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from collection.instructions import instruction, module, operand, replace, write
from dump_collection import files, override_words, wording
from dumping import Entries, of, write_unit
from running import COLLECTION, run_collection

LAYER, LEAF = "Module.layers.1.Layer.forward.0", "Module.layers.1.down.Linear.forward.0"
SOURCE = "Module.layers.0.Layer.forward.0.output.0"


def values(*shape: int) -> Any:
    count = 1
    for size in shape:
        count *= size
    return of([float(at % 7) for at in range(count)], "bfloat16")._replace(shape=shape)


def target_entries() -> Entries:
    nested = {"dtype": "torch.bfloat16", "shape": [4, 6], "type": "torch.Tensor"}
    return {
        LAYER: {
            "input": [of([0, 1, 2, 3], "int64"), values(4, 6), None],
            "kwargs": {"pair.0": nested, "mask": values(4, 4)},
            "output": [values(4, 6)],
        },
        LEAF: {"input": [values(4, 8)], "output": [values(4, 6)]},
    }  # fmt: skip


def source_entries() -> Entries:
    return {"Module.layers.0.Layer.forward.0": {"output": [values(1, 4, 6)]}, LEAF: {"input": [values(1, 4, 8)]}}


class Case:
    """Two dumps and a folder; `apply` runs the command on an instruction."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.source, self.target = folder / "train", folder / "infer"
        write_unit(self.source, source_entries())
        write_unit(self.target, target_entries())
        dump = self.target / "step0/rank0/dump.json"
        recorded = json.loads(dump.read_text())
        inner = recorded["data"][LAYER]["input_kwargs"].pop("pair.0")
        recorded["data"][LAYER]["input_kwargs"]["pair"] = [inner]
        dump.write_text(json.dumps(recorded))

    def apply(self, value: Any, *more: str | Path) -> subprocess.CompletedProcess[str]:
        return run_collection(
            "apply_stub_instruction.py", "--instruction", write(self.folder, value), "--source-dump", self.source,
            "--target-dump", self.target, "--output-dir", self.folder / "round1", *more,
        )  # fmt: skip

    def refused(self, value: Any, *more: str | Path) -> str:
        ran = self.apply(value, *more)
        assert (ran.returncode, ran.stdout) == (2, ""), ran.stderr
        assert not (self.folder / "round1").exists()
        last = ran.stderr.splitlines()[-1]
        assert re.match(r"Cannot [^:]+: .+\. [A-Z].+\.$", last), last
        return last


@pytest.fixture
def case(tmp_path: Path) -> Case:
    return Case(tmp_path)


def good() -> Any:
    return instruction("train", "infer", module(LAYER, replace(1, operand((SOURCE, {"op": "squeeze", "axis": 0})), [4, 6])))


def test_the_good_one_is_accepted_and_a_dry_run_writes_nothing(case: Case) -> None:
    ran = case.apply(good(), "--dry-run")
    assert ran.returncode == 0, ran.stderr
    assert "step0/rank0/dump_tensor_data/Module.layers.1.Layer.forward.0.input.1.pt  [4, 6] bfloat16" in ran.stdout
    assert not (case.folder / "round1").exists()
    assert f"2 further input(s) of these calls stay as they are ({LAYER}.input.0, {LAYER}.kwargs.mask)" in ran.stderr


def first(value: Any) -> Any:
    return value["modules"][0]["inputs"][0]


M, I, S = "modules[0]", "modules[0].inputs[0]", "modules[0].inputs[0].from.sources[0]"  # noqa: E741
OTHER = {"name": SOURCE, "steps": []}
FLOAT = {"name": SOURCE, "steps": [{"op": "cast", "dtype": "float32"}]}
WIDER = {"name": LEAF + ".input.0", "steps": []}
ENTRY = ".target_entry: expected Module.<path>.<Class>.forward.<call>, found"
# what is changed, where, to what ("gone": taken away), and what is said
WRONG: list[tuple[str, dict[str, Any], str]] = [
    ("schema", {"schema": "stub_instruction/2"}, "schema: expected 'stub_instruction/1', found 'stub_instruction/2'"),
    ("round", {"round": 0}, "round: expected a whole number from 1 on, found 0"),
    ("sides", {"target_side": "train"}, "target_side: the source is train as well"),
    ("side", {"source_side": "engine"}, "source_side: expected one of train, infer, found 'engine'"),
    ("kind", {"kind": "half"}, "kind: expected one of cut, forced, found 'half'"),
    ("after", {"dump_after_load": "yes"}, "dump_after_load: expected true or false, found 'yes'"),
    ("level", {"requires.level": "L1"}, "requires.level: expected one of L0, mix, found 'L1'"),
    ("no modules", {"modules": []}, "modules: expected a list that is not empty, found []"),
    ("no inputs", {"modules.0.inputs": []}, M + ".inputs: expected a list that is not empty"),
    ("no entry", {"modules.0.target_entry": "layers.1"}, M + ENTRY),
    ("a tensor", {"modules.0.target_entry": LAYER + ".input.0"}, M + ENTRY),
    ("backward", {"modules.0.target_entry": LAYER.replace("forward", "backward")}, M + ENTRY),
    ("an API", {"modules.0.target_entry": "Functional.linear.0.forward"}, M + ENTRY),
    ("class", {"modules.0.target_entry": "Module.layers.1.Block.forward.0"}, f"layers.1.Block.forward.0; it recorded {LAYER}"),
    ("call", {"modules.0.target_entry": "Module.layers.1.Layer.forward.1"}, f"it recorded {LAYER}"),
    ("path", {"modules.0.target_entry": "Module.layers.7.Layer.forward.0"}, "nor another call of that module"),
    ("odd name", {"modules.0.target_entry": "Module.layers 1.Layer.forward.0"}, "holds a character that msprobe takes in no file name"),
    ("rank", {"modules.0.rank": 3}, M + ".rank: the target recorded this call on rank [0], not on 3"),
    ("index and name", {"modules.0.inputs.0.kwarg": "mask"}, I + ': expected either "index" or "kwarg"'),
    ("index", {"modules.0.inputs.0.index": 5}, "is no tensor there; its tensors: input.0, input.1, kwargs.mask"),
    ("none there", {"modules.0.inputs.0.index": 2}, I + ": input.2 of the target's call is no tensor there"),
    ("nested", {"modules.0.inputs.0.index": "gone", "modules.0.inputs.0.kwarg": "pair"}, "holds its tensors inside (kwargs.pair.0)"),
    ("dotted", {"modules.0.inputs.0.index": "gone", "modules.0.inputs.0.kwarg": "pair.0"}, I + ".kwarg: expected the name of an argument"),
    ("shape", {"modules.0.inputs.0.expect.shape": [1, 4, 6]}, I + ".expect.shape: [1, 4, 6], but the target receives [4, 6]"),
    ("dtype", {"modules.0.inputs.0.expect.dtype": "float32"}, I + ".expect.dtype: float32, but the target receives bfloat16"),
    ("no dtype", {"modules.0.inputs.0.expect.dtype": "half"}, I + ".expect.dtype: expected a dtype, found 'half'"),
    ("no shape", {"modules.0.inputs.0.expect.shape": [-1]}, I + ".expect.shape: expected a list of sizes"),
    ("no expect", {"modules.0.inputs.0.expect": "gone"}, I + ".expect: expected shape and dtype, found None"),
    ("bare", {"modules.0.inputs.0.from": SOURCE}, I + ".from: expected an operand with its sources"),
    ("no source", {"modules.0.inputs.0.from.sources.0.name": SOURCE[:-1] + "1"}, S + ".name: the source dump holds no "),
    ("source rank", {"modules.0.inputs.0.from.sources.0.rank": 1}, "is not there for rank 1 and any step; the source dump holds"),
    ("source step", {"modules.0.inputs.0.from.sources.0.dump_step": 2}, "is not there for rank 0 and step 2"),
    ("op", {"modules.0.inputs.0.from.sources.0.steps.0.op": "squash"}, S + ".steps[0].op: expected one of"),
    ("op's axis", {"modules.0.inputs.0.from.sources.0.steps.0.axis": 1}, S + ".steps[0]: squeeze of axis 1, which has size 4"),
    ("made shape", {"modules.0.inputs.0.from.sources.0.steps": []}, I + ".expect.shape: [4, 6], but the operand makes [1, 4, 6]"),
    ("two dtypes", {"modules.0.inputs.0.from": {"sources": [OTHER, FLOAT], "combine": "sum"}}, "sources[1]: sum of bfloat16 and float32"),
    ("two shapes", {"modules.0.inputs.0.from": {"sources": [OTHER, WIDER], "combine": "sum"}}, "sum of [1, 4, 6] and [1, 4, 8]"),
    ("zeros of a shape", {"modules.0.inputs.0.from": {"sources": [WIDER], "combine": "zeros"}}, "but the operand makes [1, 4, 8]"),
]  # fmt: skip


def put(value: Any, path: str, what: Any) -> None:
    *above, last = (int(part) if part.isdigit() else part for part in path.split("."))
    for part in above:
        value = value[part]
    if what == "gone":
        del value[last]
    else:
        value[last] = what


@pytest.mark.parametrize(("changes", "said"), [pytest.param(changes, said, id=name) for name, changes, said in WRONG])
def test_what_cannot_be_carried_out_is_refused_by_its_path(case: Case, changes: dict[str, Any], said: str) -> None:
    value = good()
    for path, what in changes.items():
        put(value, path, what)
    assert said in case.refused(value)


def test_what_is_asked_twice_is_refused(case: Case) -> None:
    value = good()
    value["modules"][0]["inputs"].append(first(value))
    assert "modules[0].inputs[1]: input.1 stands twice" in case.refused(value)
    value = good()
    value["modules"].append(value["modules"][0])
    assert f"modules[1].target_entry: {LAYER} stands twice for one rank" in case.refused(value)


def test_a_dtype_that_the_ops_do_not_make_is_refused(case: Case) -> None:
    value = good()
    first(value)["from"]["sources"][0]["steps"].append({"op": "cast", "dtype": "float16"})
    assert I + ".expect.dtype: bfloat16, but the operand makes float16" in case.refused(value)


def test_keys_of_a_later_release_are_ignored_with_a_warning(case: Case) -> None:
    value = good()
    value["hint"] = first(value)["hint"] = first(value)["from"]["hint"] = 1
    ran = case.apply(value, "--dry-run")
    assert ran.returncode == 0
    assert ran.stderr.count("does not know; they are ignored") == 3


def test_each_rank_of_the_target_gets_that_rank_of_the_source(case: Case) -> None:
    write_unit(case.target, target_entries(), rank=1)
    write_unit(case.source, source_entries(), rank=1)
    ran = case.apply(good(), "--dry-run")
    assert ran.returncode == 0, ran.stderr
    assert [line.split("/")[1] for line in ran.stdout.splitlines()[1:-1]] == ["rank0", "rank1"]
    write_unit(case.source, source_entries(), step=1)
    assert "is in several units, step0/rank0, step1/rank0: say rank and dump_step" in case.refused(good())
    value = good()
    first(value)["from"]["sources"][0]["dump_step"] = 0
    assert case.apply(value, "--dry-run").returncode == 0


def test_of_several_steps_of_the_target_the_one_with_the_expected_shape_is_taken(case: Case) -> None:
    """A chunk, a decode step: the same calls with other shapes. Two prefills leave it open."""
    entries = dict(target_entries())
    write_unit(case.target, {LAYER: {"input": [of([4], "int64"), values(1, 6), None]}}, step=1)
    ran = case.apply(good(), "--dry-run")
    assert ran.returncode == 0, ran.stderr
    assert "step0/rank0/" in ran.stdout
    write_unit(case.target, entries, step=2)
    assert "the steps 0, 2 record these calls. Hand one stepN as --target-dump." in case.refused(good())
    assert case.apply(good(), "--dry-run", "--target-dump", case.target / "step2").stdout.count("step2/rank0/") == 1


def test_a_dump_is_never_written_into(case: Case) -> None:
    for inside in (case.source, case.target / "step0"):
        ran = case.apply(good(), "--output-dir", inside)
        assert ran.returncode == 2
        assert "it would lie in the dump" in ran.stderr
    link = case.folder / "link"
    link.symlink_to(case.target)
    assert "it would lie in the dump" in case.apply(good(), "--output-dir", link / "round1").stderr
    assert sorted(path.name for path in case.target.iterdir()) == ["step0"]


def test_a_path_that_msprobe_does_not_take_is_refused(case: Case) -> None:
    said = case.refused(good(), "--output-dir", case.folder / "a + b")
    assert "msprobe refuses paths with ' ', '+'; it takes letters, digits and _ . : / - alone" in said


def test_an_earlier_run_in_the_folder_is_not_dumped_into(case: Case) -> None:
    """Its tensors would stand among the new ones."""
    write_unit(case.folder / "round1/dump", target_entries())
    ran = case.apply(good(), "--dry-run")
    assert (ran.returncode, "it holds an earlier run, and msprobe deletes nothing" in ran.stderr) == (2, True)
    assert case.apply(good(), "--dry-run", "--no-dump").returncode == 0


def test_a_target_folder_that_tells_no_rank_is_refused(case: Case) -> None:
    (case.target / "step0/rank0").rename(case.target / "step0/copy")
    assert "does not lie in a stepN/rankM or stepN/procP" in case.refused(good())


def test_a_source_of_apis_alone_is_refused(case: Case) -> None:
    dump = case.source / "step0/rank0/dump.json"
    dump.write_text(dump.read_text().replace('"L0"', '"L1"'))
    assert "it is of level L1 and holds no modules" in case.refused(good())


def test_a_source_file_that_is_gone_or_cut_is_refused(case: Case) -> None:
    file = case.source / "step0/rank0/dump_tensor_data" / (SOURCE + ".pt")
    whole = file.read_bytes()
    file.write_bytes(whole[: len(whole) // 2])
    assert "modules[0].inputs[0].from.sources[0].name" in case.refused(good())
    file.unlink()
    assert "is not there" in case.refused(good())


def test_a_source_that_is_another_dump_is_said(case: Case) -> None:
    value = good()
    value["source_dump"]["digest"] = files.digest_of_file(case.source / "step0/rank0/dump.json")
    assert "the instruction was made from" not in case.apply(value, "--dry-run").stderr
    value["source_dump"]["digest"] = "0" * 64
    assert "the source dump is not the one that the instruction was made from" in case.apply(value, "--dry-run").stderr


# --- msprobe ---


def old(case: Case, mark: dict[str, Any]) -> None:
    """The target's dump as an older msprobe makes it."""
    dump = case.target / "step0/rank0/dump.json"
    recorded = json.loads(dump.read_text())
    for entry in recorded["data"].values():
        entry.update(mark)
    dump.write_text(json.dumps(recorded))


def test_a_target_dumped_before_load_was_there_is_refused_with_how_to_get_it(case: Case) -> None:
    old(case, {"is_recompute": False})
    said = case.refused(good())
    assert "the target's dump was made by msprobe <=26.0" in said
    assert "pip install mindstudio-probe==26.2.0" in said


def test_the_task_card_tells_the_version_where_the_dump_does_not(case: Case) -> None:
    card = json.loads((COLLECTION.parent / "references/task_card.json").read_text())
    card["environments"]["infer"]["msprobe"] = "26.1.0.post1"
    (case.folder / "task_card.json").write_text(json.dumps(card))
    assert "the task card says msprobe 26.1.0.post1 for infer" in case.refused(good(), "--workdir", case.folder)
    card["environments"]["infer"]["msprobe"] = "26.2.0"
    (case.folder / "task_card.json").write_text(json.dumps(card))
    assert case.apply(good(), "--dry-run", "--workdir", case.folder).returncode == 0


def bare(case: Case, *more: str) -> subprocess.CompletedProcess[str]:
    """The command by an interpreter that has nothing installed, but what lies in ``site`` of the case."""
    arguments = [
        "--instruction", str(write(case.folder, good())), "--source-dump", str(case.source), "--target-dump", str(case.target),
        "--output-dir", str(case.folder / "round1"), *more,
    ]  # fmt: skip
    script, paths = str(COLLECTION / "apply_stub_instruction.py"), [str(case.folder / "site"), str(COLLECTION)]
    code = (
        f"import runpy, sys; sys.path[:0] = {paths!r}; sys.argv = {[script, *arguments]!r}; runpy.run_path({script!r}, run_name='__main__')"
    )
    return subprocess.run([sys.executable, "-I", "-S", "-c", code], capture_output=True, text=True, check=False)


@pytest.mark.parametrize(("made", "code"), [("none", 0), ("without", 2), ("with", 0)])
def test_the_msprobe_that_is_installed_is_looked_at_last(case: Case, made: str, code: int) -> None:
    """It is not imported: a broken one would end the command."""
    package = case.folder / "site/msprobe"
    if made != "none":
        package.mkdir(parents=True)
        (package / "__init__.py").write_text("raise SystemError")
    if made == "with":
        loader = package / "pytorch/dump/module_load/tensor_loader.py"
        loader.parent.mkdir(parents=True)
        loader.touch()
    ran = bare(case, "--dry-run")
    assert ran.returncode == code, ran.stderr
    assert ("nothing here tells which msprobe" in ran.stderr) == (made == "none")
    assert ("has no pytorch/dump/module_load/tensor_loader.py" in ran.stderr) == (made == "without")


def test_without_torch_nothing_is_prepared_and_nothing_judged(case: Case) -> None:
    """A round that cannot be looked at is not one without effect."""
    ran = bare(case)
    assert (ran.returncode, ran.stdout, (case.folder / "round1").exists()) == (2, "", False)
    assert "torch is not installed here. Run this where the model runs" in ran.stderr
    (case.folder / "round1").mkdir()
    (case.folder / "round1/stub_outcome.json").write_text("{}")
    ran = bare(case, "--verify", str(case.target))
    assert (ran.returncode, "torch is not installed here" in ran.stderr) == (2, True)
    assert (case.folder / "round1/stub_outcome.json").read_text() == "{}"


# --- words ---


def test_every_sentence_has_the_same_values_in_both_languages() -> None:
    for kind, (english, chinese) in override_words.OVERRIDE_WORDS.items():
        assert sorted(re.findall(r"{(\w+)}", english)) == sorted(re.findall(r"{(\w+)}", chinese)), kind
        assert kind in wording.TABLE


def test_a_folder_that_cannot_be_made_is_refused_with_the_way_out(case: Case) -> None:
    (case.folder / "file").write_text("")
    for folder in (case.folder / "file", case.folder / "file/round1"):
        assert "Choose another --output-dir" in case.refused(good(), "--output-dir", folder)
