"""Rows that are all there in another order: a layout where the configurations say so, else named as what it is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import checkpoint_pairs as pairs
import numpy as np
import pytest
import weights_made as made
from checkpoint_pairs import Array, Weights, compared, differing, note
from collection.aligning import compare_files
from dump_collection.params.weights import Stated

SIDES = {"hf": pairs.hf, "megatron": pairs.megatron, "engine": pairs.engine}
SAID = Stated(kv_groups=pairs.GROUPS, neighbours=(False, True))
SHUT = Stated(kv_groups=pairs.GROUPS, neighbours=(False, False))
HEADS = [f"layers.{layer}.{part}.{kind}" for layer in range(pairs.LAYERS) for part in "qk" for kind in ("weight", "bias")]


def neighbours(model: Weights) -> Weights:
    """The same model for code that rotates neighbouring channels: of each head channel i of the first half, then i of the second."""
    changed = dict(model)
    for name in model:
        if name.split(".")[1:2] in (["q"], ["k"]):
            heads = model[name].reshape(-1, 2, pairs.WIDTH // 2, *model[name].shape[1:])
            changed[name] = np.stack([heads[:, 0], heads[:, 1]], axis=2).reshape(model[name].shape)
    return changed


@pytest.mark.parametrize("infer", ["hf", "engine"])
@pytest.mark.parametrize("train", ["hf", "megatron"])
def test_rotary_pairs_as_neighbours_are_a_layout_where_the_engine_rotates_them_so(tmp_path: Path, train: str, infer: str) -> None:
    """Through q, k and v side by side or by group; where the configurations say nothing, or the same of both, it is named and shuts."""
    model = pairs.model()
    sides = SIDES[train](model), SIDES[infer](neighbours(model))
    told = compared(tmp_path, *sides, stated=SAID)
    assert differing(told) == {}
    assert {one["canonical"] for one in told.items if one["kind"] == "neighbours"} == set(HEADS)
    for stated in (SHUT, Stated(), Stated(neighbours=(True, False))):
        told = compared(tmp_path, *sides, stated=stated)
        assert differing(told) == dict.fromkeys(HEADS, "swapped")
        assert "of each head of 16 the rotary pairs are neighbours on infer" in note(told, "layers.1.q.weight")
        assert [sorted(group["items"]) for group in told.groups] == [sorted(HEADS)]


def test_a_row_that_differs_besides_is_no_layout(tmp_path: Path) -> None:
    """Stale k under another order: nothing says that it is the same."""
    model, later = pairs.model(), neighbours(pairs.model())
    later["1.k"] = made.bfloat16(later["1.k"] * 1.5)
    told = compared(tmp_path, pairs.megatron(model), pairs.hf(later), stated=SAID)
    assert set(differing(told)) == {"layers.1.k.weight"}


def test_the_switch_of_the_rotation_is_equal_where_the_rows_follow_it(tmp_path: Path) -> None:
    """Both say how they rotate, differently, and each holds its rows so: one model."""
    model = pairs.model()
    train = pairs.written(tmp_path / "train", pairs.megatron(model))
    for name, later, code in (("follow", neighbours(model), 0), ("stay", model, 1)):
        infer = pairs.written(tmp_path / name, pairs.hf(later))
        for side, text in (
            ("t", '"num_query_groups": 2, "rotary_interleaved": false'),
            ("i", '"num_key_value_heads": 2, "is_neox_style": false'),
        ):
            (tmp_path / f"{side}.json").write_text("{" + text + "}")
        more = ["--train-weights", train, "--infer-weights", infer]
        found = compare_files(tmp_path / "work", tmp_path / "t.json", tmp_path / "i.json", *more)
        assert (found.code, found.item("rotary_interleaved")["status"]) == (code, "DIFF" if code else "EXACT")


def by_turns(gate: Array, up: Array, block: int) -> Array:
    rows: list[Any] = []
    for start in range(0, len(gate), block):
        rows += [gate[start : start + block], up[start : start + block]]
    return np.concatenate(rows)


@pytest.mark.parametrize("train", SIDES)
@pytest.mark.parametrize("block", [1, 32])
def test_gate_and_up_by_turns_are_a_layout_where_a_configuration_says_so(tmp_path: Path, block: int, train: str) -> None:
    """As gpt-oss stores them, or Megatron with moe_mlp_glu_interleave_size; one that is stale is still named by its own name."""
    model = pairs.model()
    infer = pairs.engine(model)
    for layer in range(pairs.LAYERS):
        infer[f"model.layers.{layer}.mlp.gate_up_proj.weight"] = by_turns(model[f"{layer}.gate"], model[f"{layer}.up"], block)
    assert differing(compared(tmp_path, SIDES[train](model), infer, stated=Stated(turns=(None, block)))) == {}
    told = compared(tmp_path, SIDES[train](model), infer, stated=Stated(turns=(None, 2 * block)))
    parts = ("gate", "up") if train == "hf" else ("gate_up",)
    assert differing(told) == {f"layers.{layer}.{part}.weight": "swapped" for layer in range(pairs.LAYERS) for part in parts}
    assert f"gate and up stand by turns on infer, {block} rows each" in note(told, f"layers.1.{parts[0]}.weight")
    if train == "hf":
        moved = {**model, **{f"{layer}.up": made.bfloat16(model[f"{layer}.up"] * 1.5) for layer in range(pairs.LAYERS)}}
        told = compared(tmp_path, pairs.hf(moved), infer, stated=Stated(turns=(None, block)))
        assert differing(told) == {f"layers.{layer}.up.weight": "scaled" for layer in range(pairs.LAYERS)}
