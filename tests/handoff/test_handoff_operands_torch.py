"""One operand, two readers: what the analysis compares and what the collection writes are the same bits.

The analysis walks bytes with numpy, the collection applies torch: neither knows the other's code, so what they agree on is the meaning.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from collection.instructions import instruction, module, operand, replace, write
from dumping import DTYPES, Tensor, of, of_bits, output_of, write_unit
from handoff.apart import Apart
from handoff.operands_drawn import drawn


def _target(shape: tuple[int, ...], dtype: str) -> Tensor:
    return of_bits(np.zeros(shape, DTYPES[dtype][0]), dtype)


def applied(apart: Apart, folder: Path, value: dict[str, Any]) -> Path:
    """The folder with the tensors that the collection prepared."""
    ran = apart.collection(
        "apply_stub_instruction.py", "--instruction", write(folder, value), "--source-dump", folder / "train", "--target-dump",
        folder / "infer", "--output-dir", folder / "round1",
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    return folder / "round1/stub_source_round1"


def compared(apart: Apart, folder: Path, rows: list[dict[str, Any]], infer: Path) -> dict[str, str]:
    """The status of each row; NaN that stand in the same places on both sides, beside equal elements, are equal here."""
    (folder / "mapping.json").write_text(json.dumps(rows))
    ran = apart.analysis(
        "analyze_dump_boundaries.py", "--train", folder / "train", "--infer", infer, "--mapping", folder / "mapping.json",
        "--output", folder / "results.json", "--quiet",
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    found = {}
    for row in json.loads((folder / "results.json").read_text())["boundaries"]:
        equal = row["status"] == "NONFINITE" and row["special"]["nan_both"] and not row["unequal"]["count"]
        found[row["boundary"]] = "EXACT" if equal and not row["special"]["zero_sign"] else row["status"]
    return found


@pytest.mark.parametrize("seed", [1, 2])
def test_an_operand_means_the_same_to_both_skills(apart: Apart, tmp_path: Path, seed: int) -> None:
    """Two hundred operands over any bits: the collection's files, put in place of the target's inputs, are EXACT to the analysis."""
    operands = list(drawn(200, seed))
    write_unit(
        tmp_path / "train", {f"Module.{name}.M.forward.0": {"output": [tensor]} for one in operands for name, tensor in one.sources.items()}
    )
    target = {f"Module.{one.name}.T.forward.0": {"input": [_target(one.shape, one.dtype)]} for one in operands}
    write_unit(tmp_path / "infer", target)
    modules = [module(f"Module.{one.name}.T.forward.0", replace(0, one.operand, list(one.shape), one.dtype)) for one in operands]
    prepared = applied(apart, tmp_path, instruction("train", "infer", *modules))
    again = tmp_path / "again"
    shutil.copytree(tmp_path / "infer", again)
    shutil.copytree(prepared, again, dirs_exist_ok=True)
    rows = [{"boundary": one.name, "train": one.operand, "infer": operand((f"Module.{one.name}.T.forward.0.input.0",))} for one in operands]
    status = compared(apart, tmp_path, rows, again)
    wrong = {one.name: (status[one.name], one.operand, one.dtype) for one in operands if status[one.name] != "EXACT"}
    assert not wrong
    before = compared(apart, tmp_path, rows, tmp_path / "infer")
    assert sum(one != "EXACT" for one in before.values()) > 0.9 * len(before), "equal without the override: nothing is tested"


def test_an_addend_is_not_rounded_before_it_is_added(apart: Apart, tmp_path: Path) -> None:
    """1 + 0.003909 lies above the middle of bfloat16's 1 and 1.0078125; 0.003909 in bfloat16 is 0.00390625, the middle itself."""
    write_unit(tmp_path / "train", {"Module.a.M.forward.0": {"output": [of([1.0], "bfloat16")]}})
    write_unit(tmp_path / "infer", {"Module.a.T.forward.0": {"input": [of([0.0], "bfloat16")]}})
    what = operand((output_of("a"), {"op": "add", "value": 0.003909}))
    prepared = applied(apart, tmp_path, instruction("train", "infer", module("Module.a.T.forward.0", replace(0, what, [1]))))
    (made,) = prepared.rglob("*.pt")
    assert torch.load(made, weights_only=True).tolist() == [1.0078125]


def test_zeros_are_negative_so_that_adding_them_keeps_every_bit(apart: Apart, tmp_path: Path) -> None:
    """+0.0 would turn a stream's -0.0 into +0.0."""
    stream = of([[-0.0, 0.0, 1.0]], "bfloat16")
    write_unit(tmp_path / "train", {"Module.a.M.forward.0": {"output": [stream]}})
    write_unit(tmp_path / "infer", {"Module.a.T.forward.0": {"input": [stream, of([[1.0, 2.0, 3.0]], "bfloat16")]}})
    inputs = [replace(0, operand((output_of("a"),)), [1, 3]), replace(1, operand((output_of("a"),), combine="zeros"), [1, 3])]
    prepared = applied(apart, tmp_path, instruction("train", "infer", module("Module.a.T.forward.0", *inputs)))
    kept, zeros = (torch.load(next(prepared.rglob(f"*.input.{at}.pt")), weights_only=True) for at in (0, 1))
    assert torch.signbit(zeros).all()
    assert not zeros.any()
    assert torch.equal((kept + zeros).view(torch.int16), torch.tensor([[-0.0, 0.0, 1.0]], dtype=torch.bfloat16).view(torch.int16))


def test_each_rank_gets_its_slice_of_one_rank_and_of_several(apart: Apart, tmp_path: Path) -> None:
    """Heads of two ranks out of one tensor; and one tensor out of both ranks' parts, in the order that is written down."""
    whole = np.arange(24.0).reshape(3, 8)
    write_unit(tmp_path / "train", {"Module.a.M.forward.0": {"output": [of(whole)]}}, rank=0)
    write_unit(tmp_path / "train", {"Module.a.M.forward.0": {"output": [of(-whole)]}}, rank=1)
    target = {"Module.a.T.forward.0": {"input": [of(np.zeros((3, 4)))]}, "Module.b.T.forward.0": {"input": [of(np.zeros((3, 8)))]}}
    for rank in (0, 1):
        write_unit(tmp_path / "infer", target, rank=rank)

    def cut(rank: int, start: int, stop: int) -> dict[str, Any]:
        return {"name": output_of("a"), "rank": rank, "steps": [{"op": "slice", "axis": 1, "start": start, "stop": stop}]}

    own = [{"sources": [cut(0, 4 * rank, 4 * rank + 4)], "combine": None} for rank in (0, 1)]
    modules = [module("Module.a.T.forward.0", replace(0, own[rank], [3, 4], "float32"), rank=rank) for rank in (0, 1)]
    joined = {"sources": [cut(1, 0, 4), cut(0, 4, 8)], "combine": "cat", "axis": 1}
    modules.append(module("Module.b.T.forward.0", replace(0, joined, [3, 8], "float32")))
    prepared = applied(apart, tmp_path, instruction("train", "infer", *modules))
    for rank in (0, 1):
        folder = prepared / f"step0/rank{rank}/dump_tensor_data"
        got = torch.load(folder / "Module.a.T.forward.0.input.0.pt", weights_only=True)
        assert torch.equal(got, torch.from_numpy(whole[:, 4 * rank : 4 * rank + 4]).float())
        both = torch.load(folder / "Module.b.T.forward.0.input.0.pt", weights_only=True)
        assert torch.equal(both, torch.from_numpy(np.concatenate([-whole[:, :4], whole[:, 4:]], 1)).float())
    assert len(list(prepared.rglob("*.pt"))) == 4


def test_a_source_without_a_rank_is_that_of_the_target(apart: Apart, tmp_path: Path) -> None:
    """A module without a rank is overridden on every rank, each from its own."""
    for rank in (0, 1):
        write_unit(tmp_path / "train", {"Module.a.M.forward.0": {"output": [of([float(rank)])]}}, rank=rank)
        write_unit(tmp_path / "infer", {"Module.a.T.forward.0": {"input": [of([9.0])]}}, rank=rank)
    what = replace(0, operand((output_of("a"),)), [1], "float32")
    prepared = applied(apart, tmp_path, instruction("train", "infer", module("Module.a.T.forward.0", what)))
    made = [torch.load(next(prepared.glob(f"step0/rank{rank}/*/*.pt")), weights_only=True).tolist() for rank in (0, 1)]
    assert made == [[0.0], [1.0]]
