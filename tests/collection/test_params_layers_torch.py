"""The command over configurations and checkpoints that torch wrote: all three layers in one report."""

from __future__ import annotations

import json
from pathlib import Path

import torch
from collection.aligning import Aligned, compare_files, waive

SHAPES = {
    "model.embed_tokens.weight": (128, 32), "model.layers.0.self_attn.q_proj.weight": (32, 32), "model.norm.weight": (32,),
    "model.layers.0.mlp.gate_proj.weight": (64, 32), "lm_head.weight": (128, 32),
}  # fmt: skip
HEAD = "lm_head.weight"


def checkpoint(folder: Path, seed: int, **changed: torch.Tensor) -> Path:
    generator = torch.Generator().manual_seed(seed)
    weights = {name: torch.randn(shape, generator=generator).bfloat16() for name, shape in SHAPES.items()}
    folder.mkdir()
    torch.save({**weights, **{name.replace("__", "."): tensor for name, tensor in changed.items()}}, folder / "pytorch_model.bin")
    return folder


def check(folder: Path, train: Path, infer: Path, *more: str | Path) -> Aligned:
    for side, key in (("train", "num_layers"), ("infer", "num_hidden_layers")):
        (folder / f"{side}.json").write_text(json.dumps({key: 1}))
    sides = ("--train-weights", train, "--infer-weights", infer)
    return compare_files(folder / "work", folder / "train.json", folder / "infer.json", *sides, *more)


def test_equal_checkpoints_open_all_layers(tmp_path: Path) -> None:
    """Every weight is an item; nothing is waived, nothing left out."""
    found = check(tmp_path, checkpoint(tmp_path / "one", 0), checkpoint(tmp_path / "other", 0))
    assert (found.code, found.report["aligned"]) == (0, True)
    assert set(found.report["layers"].values()) == {"checked"}
    assert HEAD in {item["canonical"] for item in found.report["items"] if item["priority"] == "weight"}
    assert found.instruction["points"] == []


def test_a_weight_that_differs_is_a_point_for_the_weights(tmp_path: Path) -> None:
    one = checkpoint(tmp_path / "one", 0)
    weights = torch.load(one / "pytorch_model.bin", weights_only=True)
    other = checkpoint(tmp_path / "other", 0, lm_head__weight=weights[HEAD] * 2)
    found = check(tmp_path, one, other)
    (point,) = found.report["mismatch_points"]
    assert (found.code, point["id"], point["items"]) == (1, "P1", [HEAD])
    (advice,) = found.instruction["points"]
    assert (advice["method"], advice["id"], HEAD in advice["verify"]) == ("weight", "P1", True)
    path = tmp_path / "waivers.json"
    path.write_text(json.dumps(waive(HEAD)))
    waived = check(tmp_path, one, other, "--waivers", path)
    assert (waived.code, waived.report["mismatch_points"]) == (0, [])
    assert {item["status"] for item in waived.report["items"] if item["canonical"] == HEAD and item["priority"] == "weight"} == {"waived"}


def test_an_earlier_checkpoint_proves_stale(tmp_path: Path) -> None:
    """Without it the same weights differ, and nobody calls them stale."""
    before, after = checkpoint(tmp_path / "before", 0), checkpoint(tmp_path / "after", 1)
    copy = checkpoint(tmp_path / "copy", 0)
    kinds = [
        {item["kind"] for item in check(tmp_path, after, copy, *more).report["items"] if item["priority"] == "weight"}
        for more in ((), ("--previous", before))
    ]
    assert "stale" not in kinds[0]
    assert kinds[1] == {"stale"}


def test_a_parameter_of_one_side_alone_is_listed(tmp_path: Path) -> None:
    one = checkpoint(tmp_path / "one", 0)
    other = checkpoint(tmp_path / "other", 0, model__layers__0__self_attn__q_norm__weight=torch.ones(8).bfloat16())
    found = check(tmp_path, one, other)
    assert (found.code, found.report["train_only_keys"]) == (1, [])
    assert found.report["infer_only_keys"] == ["model.layers.0.self_attn.q_norm.weight"]
    assert "q_norm" in json.dumps(found.report["mismatch_points"])
