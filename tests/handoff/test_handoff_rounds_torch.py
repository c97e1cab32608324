"""Instructions that the analysis writes for real pairs, carried out by the collection: every file holds what torch makes of the operand."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import reduce
from pathlib import Path
from typing import Any

import pytest
import torch
from handoff.apart import Apart
from laying import Sample, lay_out
from torch import Tensor

Json = dict[str, Any]
CASES = [
    (name, target)
    for name in ("qwen2-megatron_tp1-sglang-rope_theta", "several/qwen3-megatron_tp2-sglang_tp2-clean")
    for target in ("train", "infer")
]
DESPITE = ("--despite", "weights", "inputs", "config")


@pytest.fixture(scope="module")
def analysed(apart: Apart, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], tuple[Sample, Path]]:
    """A sample and the folder of its analysis without replay, so that everything is open and either side worth a round; each once."""
    made: dict[str, tuple[Sample, Path]] = {}
    root = tmp_path_factory.mktemp("analysed")

    def by_name(name: str) -> tuple[Sample, Path]:
        if name not in made:
            pair, work = lay_out(name, root), root / f"{Path(name).name}-analysis"
            flags = ["--train", pair.train, "--infer", pair.infer, "--mapping", pair.mapping, "--output-dir", work]
            ran = apart.analysis("diagnose.py", *flags)
            assert ran.returncode == 0, ran.stderr
            (work / "replay_results.json").unlink()
            assert apart.analysis("conclude.py", "--workdir", work).returncode == 0
            made[name] = pair, work
        return made[name]

    return by_name


def applied(tensor: Tensor, op: Json) -> Tensor:
    """One op by torch's own indexing."""
    kind, axis = op["op"], op.get("axis", 0)
    if kind == "squeeze":
        return tensor.squeeze(axis)
    if kind == "slice":
        return tensor.movedim(axis, 0)[op.get("start") : op.get("stop")].movedim(0, axis)
    if kind == "take":
        index = op["index"] if op.get("index") is not None else [at for first, last in op["runs"] for at in range(first, last)]
        return tensor.movedim(axis, 0)[index].movedim(0, axis)
    if kind == "cast":
        return tensor.to(getattr(torch, op["dtype"]))
    return tensor.reshape(op["shape"]) if kind == "reshape" else tensor.permute(op["axes"])


def made_of(operand: Json, dump: Path, rank: int) -> Tensor:
    """What an operand says, of tensors that torch reads."""
    parts = []
    for source in operand["sources"]:
        step, unit = source.get("dump_step", 0), source.get("rank", rank)
        files = list(dump.glob(f"step{step}/rank{unit}/dump_tensor_data/{source['name']}.pt")) or list(dump.rglob(f"{source['name']}.pt"))
        (file,) = files
        parts.append(reduce(applied, source["steps"], torch.load(file, weights_only=True)))
    if operand["combine"] == "zeros":
        return torch.full_like(parts[0], -0.0)
    if operand["combine"] == "cat":
        return torch.cat(parts, operand["axis"])
    return reduce(lambda left, right: (left.double() + right.double()).to(left.dtype), parts)


@pytest.mark.parametrize(("name", "target"), CASES)
def test_what_analysis_writes_collection_applies(
    apart: Apart, analysed: Callable[[str], tuple[Sample, Path]], tmp_path: Path, name: str, target: str
) -> None:
    """Everything at once, into either side: fused parts, sums, zeros, heads, slices of each rank."""
    pair, work = analysed(name)
    pairs = ["--train", pair.train, "--infer", pair.infer]
    for file in work.glob("*.json"):
        (tmp_path / file.name).write_bytes(file.read_bytes())
    ran = apart.analysis("make_stub_instruction.py", *pairs, "--workdir", tmp_path, "--target", target, "--all", *DESPITE)
    assert ran.returncode == 0, ran.stderr
    asked = json.loads((tmp_path / "round1/stub_instruction.json").read_text())
    dumps = {"train": pair.train, "infer": pair.infer}
    given = ["--source-dump", dumps[asked["source_side"]], "--target-dump", dumps[target], "--workdir", tmp_path]
    ran = apart.collection("apply_stub_instruction.py", "--instruction", tmp_path / "round1/stub_instruction.json", *given)
    assert ran.returncode == 0, ran.stderr
    prepared = tmp_path / "round1/stub_source_round1"
    left = {str(file.relative_to(prepared)) for file in prepared.rglob("*.pt")}
    ranks = {unit.name for unit in dumps[target].glob("step*/rank*")}
    for module in asked["modules"]:
        for item in module["inputs"]:
            label = f"input.{item['index']}" if "index" in item else f"kwargs.{item['kwarg']}"
            for rank in [f"rank{module['rank']}"] if "rank" in module else sorted(ranks):
                file = f"step0/{rank}/dump_tensor_data/{module['target_entry']}.{label}.pt"
                got, wanted = (
                    torch.load(prepared / file, weights_only=True),
                    made_of(item["from"], dumps[asked["source_side"]], int(rank[4:])),
                )
                assert (got.shape, got.dtype) == (wanted.shape, wanted.dtype), file
                assert torch.equal(got.contiguous().view(torch.uint8), wanted.contiguous().view(torch.uint8)), file
                left.remove(file)
    assert not left, "files that the instruction does not ask for"
    assert len(asked["modules"]) > 20


def test_an_instruction_is_the_same_bytes_each_time(apart: Apart, analysed: Callable[[str], tuple[Sample, Path]], tmp_path: Path) -> None:
    """No clock, no path: the digest by which the outcome names it would not hold."""
    pair, work = analysed("qwen2-megatron_tp1-sglang-rope_theta")
    made = []
    for at in ("first", "another place"):
        folder = tmp_path / at
        folder.mkdir()
        for file in work.glob("*.json"):
            (folder / file.name).write_bytes(file.read_bytes())
        flags = ["--train", pair.train, "--infer", pair.infer, "--workdir", folder, "--target", "infer", "--all", *DESPITE]
        assert apart.analysis("make_stub_instruction.py", *flags).returncode == 0
        made.append((folder / "round1/stub_instruction.json").read_bytes())
    assert made[0] == made[1]


def test_the_example_of_both_skills_is_one_file_and_is_carried_out(apart: Apart, tmp_path: Path) -> None:
    """It was written for the pair of a committed sample: what an agent copies must be taken as it stands."""
    name = "references/templates/stub_instruction.example.json"
    assert (apart.analyst / name).read_bytes() == (apart.collector / name).read_bytes()
    pair = lay_out("qwen2-hf-vllm-rounds", tmp_path)
    asked = json.loads((apart.collector / name).read_text())
    dumps = {"train": pair.train, "infer": pair.infer}
    given = [
        "--source-dump",
        dumps[asked["source_side"]],
        "--target-dump",
        dumps[asked["target_side"]],
        "--output-dir",
        tmp_path / "round1",
    ]
    ran = apart.collection("apply_stub_instruction.py", "--instruction", apart.collector / name, *given)
    assert ran.returncode == 0, ran.stderr
    assert "not the one that the instruction was made from" not in ran.stderr
    outcome = json.loads((tmp_path / "round1/stub_outcome.json").read_text())
    assert len(outcome["prepared"]) == sum(len(module["inputs"]) for module in asked["modules"])
