"""What the proof says of new dumps that msprobe cannot easily be made to write: other classes, dtypes, ranks, and no news at all."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from collection.instructions import instruction, module, operand, replace, write
from dumping import Entries, Tensor, of, write_unit
from running import run_collection

LAYER = "Module.layers.1.Layer.forward.0"
SOURCE = "Module.layers.0.Layer.forward.0.output.0"
OLD, NEW = of([[1.0, -0.0], [2.0, 3.0]]), of([[1.0, 0.0], [4.0, 5.0]])


class Round:
    """A prepared round over the dumps of two ranks; `verify` proves it by a new dump."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.target, self.new = folder, folder / "infer", folder / "new"
        self.entries: Entries = {LAYER: {"input": [OLD]}}
        for rank in (0, 1):
            write_unit(folder / "train", {"Module.layers.0.Layer.forward.0": {"output": [NEW]}}, rank=rank)
            write_unit(self.target, self.entries, rank=rank)
        self.asked = write(folder, instruction("train", "infer", module(LAYER, replace(0, operand((SOURCE,)), [2, 2], "float32"))))
        ran = self.run()
        assert ran.returncode == 0, ran.stderr

    def run(self, *more: str | Path) -> Any:
        return run_collection(
            "apply_stub_instruction.py", "--instruction", self.asked, "--source-dump", self.folder / "train", "--target-dump", self.target,
            "--output-dir", self.folder / "round1", *more,
        )  # fmt: skip

    def verify(self, *, rank0: Entries, rank1: Entries | None = None, quiet: bool = True) -> Any:
        shutil.rmtree(self.new, ignore_errors=True)
        write_unit(self.new, rank0)
        if rank1 is not None:
            write_unit(self.new, rank1, rank=1)
        return self.run("--verify", self.new, *(["--quiet"] if quiet else []))

    @property
    def outcome(self) -> Any:
        return json.loads((self.folder / "round1/stub_outcome.json").read_text())


@pytest.fixture
def prepared(tmp_path: Path) -> Round:
    return Round(tmp_path)


def called(tensor: Tensor, entry: str = LAYER) -> Entries:
    return {entry: {"input": [tensor]}}


def test_both_ranks_are_proven(prepared: Round) -> None:
    ran = prepared.verify(rank0=called(NEW), rank1=called(NEW))
    assert (ran.returncode, ran.stderr) == (0, "")
    assert [(effect["rank"], effect["overridden"]) for effect in prepared.outcome["effect"]] == [(0, True), (1, True)]


@pytest.mark.parametrize(
    ("rank1", "said"),
    [
        (None, "the new dump holds no rank 1 in step 0; it holds rank0"),
        (called(OLD), "the target kept its value of the earlier dump"),
        (called(of([[1.0, 0.0], [4.0, 6.0]])), "the new dump records another tensor: 3 of 4 elements equal the prepared ones"),
        (called(of([[1.0, -0.0], [4.0, 5.0]])), "3 of 4 elements"),
        (called(of([[1.0, 0.0], [4.0, 5.0]], "float64")), "the new dump records dtype float64, prepared is float32"),
        (called(of([1.0, 0.0, 4.0, 5.0])), "the new dump records shape [4], prepared is [2, 2]"),
        (called(NEW, "Module.layers.1.Block.forward.0"), "the new dump holds Module.layers.1.Block.forward.0 in place of " + LAYER),
        (called(NEW, "Module.layers.1.Layer.forward.1"), "the new dump holds Module.layers.1.Layer.forward.1, not " + LAYER),
        (called(NEW, "Module.layers.2.Layer.forward.0"), f"the new dump holds no {LAYER}: the call did not happen"),
        ({LAYER: {"kwargs": {"x": NEW}}}, f"{LAYER} in the new dump has no tensor input.0; it has kwargs.x"),
    ],
)  # fmt: skip
def test_a_rank_that_was_not_overridden_is_named_with_its_reason(prepared: Round, rank1: Entries | None, said: str) -> None:
    ran = prepared.verify(rank0=called(NEW), rank1=rank1)
    assert ran.returncode == 1
    assert all(said in line for line in ran.stderr.splitlines())
    assert said in ran.stderr
    assert [effect["overridden"] for effect in prepared.outcome["effect"]] == [True, False]
    assert prepared.outcome["effective"] is False


def test_a_rank_that_nothing_was_prepared_for_is_named(prepared: Round) -> None:
    """The target's dump of before was one rank's alone; the run had two."""
    prepared.verify(rank0=called(NEW), rank1=called(NEW))
    write_unit(prepared.new, called(OLD), rank=2)
    ran = prepared.run("--verify", prepared.new, "--quiet")
    assert ran.returncode == 1
    assert "rank 2 of the new dump ran the call too, but nothing was prepared for it" in ran.stderr


def test_a_run_in_another_kind_of_folder_did_not_find_the_source(prepared: Round) -> None:
    """A single process reads proc…, a distributed one rank…."""
    prepared.verify(rank0=called(OLD), rank1=called(NEW))
    (prepared.new / "step0/rank0").rename(prepared.new / "step0/proc77")
    ran = prepared.run("--verify", prepared.new, "--quiet")
    assert ran.returncode == 1
    assert "the run wrote proc77, so load looked there, but the source lies in rank0" in ran.stderr


def test_values_that_were_there_before_prove_nothing_by_themselves(prepared: Round) -> None:
    earlier = (prepared.target / "step0/rank1/dump_tensor_data" / (LAYER + ".input.0.pt")).read_bytes()
    write_unit(prepared.target, called(NEW), rank=1)
    ran = prepared.verify(rank0=called(NEW), rank1=called(NEW), quiet=False)
    assert ran.returncode == 0
    assert ran.stderr == (
        f"warning: input.0 of {LAYER} held the prepared values already before the override: equality does not prove that load ran\n"
    )
    (prepared.target / "step0/rank1/dump_tensor_data" / (LAYER + ".input.0.pt")).write_bytes(earlier)
    assert prepared.verify(rank0=called(NEW), rank1=called(NEW), quiet=False).stderr == "", "said once more of an earlier try"


def test_a_later_forward_of_the_step_that_got_the_tensor_too_spoils_the_round(prepared: Round) -> None:
    """Another call of the module records the prepared tensor; not where it did so before the override, as a shared module may."""
    again = {LAYER: {"input": [NEW]}, LAYER[:-1] + "1": {"input": [NEW]}}
    ran = prepared.verify(rank0=again, rank1=called(NEW))
    assert ran.returncode == 1
    assert ran.stderr.count("a later forward was overridden too") == 1
    assert [effect["overridden"] for effect in prepared.outcome["effect"]] == [False, True]
    write_unit(prepared.target, {LAYER: {"input": [OLD]}, LAYER[:-1] + "1": {"input": [NEW]}})
    assert prepared.verify(rank0=again, rank1=called(NEW)).returncode == 0


def test_a_damaged_state_is_one_error(prepared: Round) -> None:
    """Whatever a person does to stub_outcome.json."""
    path = prepared.folder / "round1/stub_outcome.json"
    whole = prepared.outcome
    prepared.verify(rank0=called(NEW), rank1=called(NEW))
    for field in ("instruction", "prepared", "warnings"):
        for instead in (None, "x", [], [1], {"y": 1}, [{"file": "../../x.pt", "digest": "0"}]):
            if (field, instead) != ("warnings", []):
                path.write_text(json.dumps({**whole, field: instead}))
                ran = prepared.run("--verify", prepared.new)
                assert (ran.returncode, ran.stdout) == (2, "")
                assert f"Cannot use {path}: {field}" in ran.stderr


def test_an_earlier_dump_and_the_source_itself_are_no_news(prepared: Round) -> None:
    before = prepared.outcome
    for path, said in (
        (prepared.target, "it is the target's dump of before"),
        (prepared.folder / "round1", "it is the prepared source itself"),
    ):
        ran = prepared.run("--verify", path)
        assert (ran.returncode, ran.stdout) == (2, "")
        assert said in ran.stderr
    assert prepared.outcome == before


def test_another_instruction_is_not_proven_by_this_round(prepared: Round) -> None:
    value = json.loads(prepared.asked.read_text())
    prepared.asked.write_text(json.dumps({**value, "kind": "forced"}))
    ran = prepared.run("--verify", prepared.target)
    assert ran.returncode == 2
    assert "was prepared from another instruction" in ran.stderr


def test_a_new_file_that_cannot_be_read_is_no_proof(prepared: Round) -> None:
    prepared.verify(rank0=called(NEW), rank1=called(NEW))
    next((prepared.new / "step0/rank1/dump_tensor_data").iterdir()).write_bytes(b"cut")
    ran = prepared.run("--verify", prepared.new, "--quiet")
    assert ran.returncode == 1
    assert "the new dump's file cannot be read" in ran.stderr


def test_preparing_again_gives_the_same_bytes_and_replaces_what_was_there(prepared: Round) -> None:
    folder = prepared.folder / "round1"
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    assert prepared.run().returncode == 0
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before
    (folder / "stub_source_round1/step0/notes.txt").write_text("mine")
    ran = prepared.run()
    assert ran.returncode == 2
    assert "it is there and holds step0/notes.txt, which this instruction does not make" in ran.stderr
    assert (folder / "stub_source_round1/step0/notes.txt").read_text() == "mine"


def test_answers_in_json_and_in_chinese(prepared: Round) -> None:
    shutil.copytree(prepared.target, prepared.new)
    write_unit(prepared.new, called(NEW))
    ran = prepared.run("--verify", prepared.new, "--json", "--lang", "zh-CN")
    assert ran.returncode == 1
    assert json.loads(ran.stdout) == prepared.outcome
    assert "目标保持了原值" in ran.stderr
