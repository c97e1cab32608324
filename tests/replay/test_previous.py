"""Weights of an earlier checkpoint, told by the content of their rows whatever the names: which side is stale, or only a part of it."""

import json
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import dumping
import numpy as np
import pytest
from dump_analysis import floats
from dump_analysis.artefacts import io
from dump_analysis.artefacts.replay_results import ReplayResults
from dump_analysis.artefacts.semantic_mapping import Row, SemanticMapping
from dump_analysis.replay.modules import pair_of
from dump_analysis.replay.weights_compared import Compared, compared
from dump_analysis.sides import open_side
from dump_analysis.tensors import Files, cut_stream, described
from laying import Sample
from msprobe_files import checkpoint
from msprobe_files.operands import parse
from running import run_command

sys.path.insert(0, str(Path(__file__).parents[1] / "msprobe_files"))
import weights_made as made

Array = np.ndarray[Any, Any]
PARTS = {"q": (0, 32), "k": (32, 48), "v": (48, 64)}
STEP = made.step(1e-3, signs=False)


def safetensors(path: Path, weights: Mapping[str, Array], dtype: str = "bfloat16") -> Path:
    """A file of the format, written by its description: the header's length, the header, the data."""
    header, data = {}, b""
    for name, x in weights.items():
        raw = dumping.bits(x, dtype).tobytes()
        kind = {"bfloat16": "BF16", "float32": "F32"}[dtype]
        header[name] = {"dtype": kind, "shape": list(x.shape), "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + data)
    return path


def told(root: Path, train: Array, infer: Array, previous: Path) -> dict[str, Compared]:
    """A fused matrix on both sides, compared part by part."""
    entry = dumping.entry_of("qkv")
    sides = [
        dumping.side_of(root, label, {entry: {"parameters": {"weight": dumping.of(x, "bfloat16")}}})
        for label, x in (("train", train), ("infer", infer))
    ]
    rows = []
    for name, (start, stop) in PARTS.items():
        cut = {"sources": [{"name": f"{entry}.parameters.weight", "steps": [{"op": "slice", "axis": 0, "start": start, "stop": stop}]}]}
        rows.append(Row(f"layers.2.{name}.weight", len(rows), parse(cut), parse(cut)))
    mapping = SemanticMapping(weights=rows)
    return {one.result.name[9]: one for one in compared(mapping, pair_of(mapping, *sides), checkpoint.read(previous))}


@pytest.mark.parametrize("side", ["train", "infer"])
@pytest.mark.parametrize("dtype", ["bfloat16", "float32"])
def test_the_side_that_holds_the_earlier_rows_is_named(tmp_path: Path, side: str, dtype: str) -> None:
    """Though the checkpoint keeps q, k and v apart and calls them otherwise, in another format perhaps."""
    old, new = STEP(0, 64, 48)
    masters = made.fine(0, 64, 48) if dtype == "float32" else old
    names = {"x.0": masters[:32], "x.1": masters[48:], "x.2": masters[32:48], "gain": masters[0]}
    previous = safetensors(tmp_path / "model.safetensors", names, dtype)
    found = told(tmp_path, *((old, new) if side == "train" else (new, old)), previous)
    assert [(one.result.kind, one.result.side) for one in found.values()] == [("stale", side)] * 3
    assert found["q"].result.evidence[0].values["side"] == side


def test_rows_of_no_checkpoint_are_not_called_stale(tmp_path: Path) -> None:
    """Another optimizer step it may be: of another checkpoint than the one given."""
    old, new = STEP(0, 64, 48)
    previous = safetensors(tmp_path / "model.safetensors", {"w": made.weight(9, 64, 48)})
    found = told(tmp_path, new, old, previous)
    assert [(one.result.kind, one.result.side) for one in found.values()] == [("small_update", "unknown")] * 3


def test_rows_that_were_left_out_stay_a_part(tmp_path: Path) -> None:
    """A17 d: partial with and without the checkpoint, which then says whose rows they are."""
    old, new = STEP(0, 64, 48)
    previous = safetensors(tmp_path / "model.safetensors", {"w": old})
    found = told(tmp_path, new, np.concatenate([old[:20], new[20:]]), previous)
    assert [(one.result.kind, one.result.side) for one in found.values()] == [("partial", "infer"), (None, "unknown"), (None, "unknown")]
    assert "weight_rows_stale" in [sentence.kind for sentence in found["q"].result.evidence]


def test_what_the_checkpoint_holds_on_both_sides_proves_nothing(tmp_path: Path) -> None:
    """Exchanged rows are in every checkpoint."""
    old = made.weight(0, 64, 48)
    previous = safetensors(tmp_path / "model.safetensors", {"w": old})
    found = told(tmp_path, old, np.concatenate([old[:32], old[48:], old[32:48]]), previous)
    assert [(one.result.kind, one.result.side) for one in found.values()] == [
        (None, "unknown"),
        ("swapped", "unknown"),
        ("swapped", "unknown"),
    ]


def test_a_vector_is_found_whole_or_inside_another(tmp_path: Path) -> None:
    """A bias of q lies in that of a fused matrix."""
    old = made.weight(0, 1, 64)[0]
    new = old.copy()
    new[:32] = made.bfloat16(new[:32] + 0.01)
    entry, name = dumping.entry_of("q"), f"{dumping.entry_of('q')}.parameters.bias"
    sides = [
        dumping.side_of(tmp_path, label, {entry: {"parameters": {"bias": dumping.of(x[:32], "bfloat16")}}})
        for label, x in (("train", new), ("infer", old))
    ]
    mapping = SemanticMapping(weights=[Row("layers.0.q.bias", 0, parse(name), parse(name))])
    previous = checkpoint.read(safetensors(tmp_path / "model.safetensors", {"qkv": old}))
    (found,) = compared(mapping, pair_of(mapping, *sides), previous)
    assert (found.result.kind, found.result.side) == ("stale", "infer")


def test_the_command_names_the_stale_side(sample: Callable[[str], Sample], tmp_path: Path) -> None:
    """Two dumps of one engine, the weight of one an update old: without the checkpoint nobody knows which."""
    pair = sample("qwen2-vllm-onset-stale_o_proj")
    name = "Module.model.layers.1.self_attn.o_proj.RowParallelLinear.forward.0.parameters.weight"
    side = open_side("infer", [str(pair.infer)])
    stream = cut_stream(Files(), described(side.by_name[name][0]), ())
    old = floats.values(stream.read(0, 64 * 64), "bfloat16").reshape(64, 64).astype(np.float64)
    previous = safetensors(tmp_path / "model.safetensors", {"anything": old})
    arguments = ("--train", pair.train, "--infer", pair.infer, "--mapping", pair.mapping)
    found = []
    for at, further in enumerate([(), ("--previous", previous)]):
        output = tmp_path / f"{at}.json"
        ran = run_command("replay_boundaries.py", *arguments, *further, "--output", output)
        assert (ran.returncode, ran.stderr) == (0, "")
        results, _ = io.read(output, ReplayResults)
        module = next(module for module in results.modules if module.module == "layers.1.o_proj")
        weight = next(weight for weight in results.weights if weight.kind is not None)
        found.append((weight.name, weight.kind, module.verdict, module.side, bool(module.would_decide)))
    assert found == [
        ("layers.1.o_proj.weight", "small_update", "logic", "unknown", True), ("layers.1.o_proj.weight", "stale", "logic", "infer", False),
    ]  # fmt: skip


def test_a_checkpoint_that_is_none_is_one_line(sample: Callable[[str], Sample], tmp_path: Path) -> None:
    pair = sample("qwen2-hf-vllm-clean")
    ran = run_command(
        "replay_boundaries.py", "--train", pair.train, "--infer", pair.infer, "--mapping", pair.mapping, "--previous", tmp_path,
        "--output", tmp_path / "out.json",
    )  # fmt: skip
    assert ran.returncode == 2
    assert ran.stderr.startswith("Cannot read the checkpoint")
    assert len(ran.stderr.splitlines()) == 1
