"""Quantised weights beside whole ones: 8-bit codes times their scales are compared as numbers, packed ones are said to be packed."""

from __future__ import annotations

from pathlib import Path

import checkpoint_pairs as pairs
import dumping
import numpy as np
import pytest
from checkpoint_pairs import Array, Weights, differing, note
from checkpoints import write_safetensors
from dump_collection.params import structure, weights

GRID = np.array([dumping.number_of(code, "float8_e4m3fn") for code in range(256)])
LINEAR = {f"layers.{layer}.{name}.weight" for layer in range(pairs.LAYERS) for name in ("q", "k", "v", "o", "gate", "up", "down")}


def coded(values: Array, high: int, wide: int) -> tuple[Array, Array]:
    """The nearest codes of float8_e4m3fn, and a float32 scale for each ``high`` x ``wide`` values; by search, one block after the other."""
    finite = np.flatnonzero(np.isfinite(GRID))
    order = finite[np.argsort(GRID[finite], kind="stable")]
    levels = GRID[order]
    codes = np.zeros(values.shape, np.uint8)
    scales = np.zeros((-(-values.shape[0] // high), -(-values.shape[1] // wide)), np.float32)
    for down in range(scales.shape[0]):
        for across in range(scales.shape[1]):
            block = slice(down * high, (down + 1) * high), slice(across * wide, (across + 1) * wide)
            scales[down, across] = np.abs(values[block]).max() / 448
            sought = values[block] / float(scales[down, across])
            at = np.clip(np.searchsorted(levels, sought), 1, len(levels) - 1)
            codes[block] = order[np.where(sought - levels[at - 1] < levels[at] - sought, at - 1, at)]
    return codes, scales


def quantised(folder: Path, model: Weights, high: int, wide: int, last: str) -> tuple[str, Weights]:
    """A checkpoint whose linear maps are codes with scales beside them, and what its numbers are. 0: of all rows or columns one."""
    tensors, meant = {}, {}
    for name, value in pairs.hf(model).items():
        if name.endswith("_proj.weight"):
            blocks = high or value.shape[0], wide or value.shape[1]
            codes, scales = coded(value, *blocks)
            meant[name] = GRID[codes] * np.kron(scales, np.ones(blocks))[: value.shape[0], : value.shape[1]]
            tensors[name] = ("F8_E4M3", value.shape, codes.tobytes())
            tensors[name + last] = ("F32", (1,) if scales.size == 1 else scales.shape, scales.tobytes())
        else:
            meant[name] = value
            tensors[name] = ("BF16", value.shape, dumping.bits(value, "bfloat16").tobytes())
    write_safetensors(folder / "model.safetensors", tensors)
    return str(folder), meant


FORMS = [(128, 128, "_scale_inv"), (0, 0, "_scale"), (1, 0, "_scale")]


@pytest.mark.parametrize(("high", "wide", "last"), FORMS)
@pytest.mark.parametrize("trainer", ["hf", "megatron"])
def test_an_engine_that_is_quantised_differs_by_that(tmp_path: Path, trainer: str, high: int, wide: int, last: str) -> None:
    """Codes taken for numbers are another model, and a scale taken for a parameter of its own another structure."""
    model = pairs.model()
    train = pairs.written(tmp_path / "train", {"hf": pairs.hf, "megatron": pairs.megatron}[trainer](model))
    infer, _ = quantised(tmp_path / "infer", model, high, wide, last)
    assert differing(structure.compare([train], [infer])) == {}
    told = weights.compare([train], [infer])
    assert differing(told) == dict.fromkeys(LINEAR, "quantised")
    assert [sorted(group["items"]) for group in told.groups] == [sorted(LINEAR)]
    assert note(told, "layers.1.o.weight").startswith("infer lies on levels of float8_e4m3fn")


@pytest.mark.parametrize(("high", "wide", "last"), FORMS)
def test_codes_and_what_they_mean_are_equal(tmp_path: Path, high: int, wide: int, last: str) -> None:
    """A trainer that loaded the same codes as float32; and a scale that is another for one block alone is found there."""
    model = pairs.model()
    infer, meant = quantised(tmp_path / "infer", model, high, wide, last)
    train = pairs.written(tmp_path / "train", meant, "float32")
    assert differing(weights.compare([train], [infer])) == {}
    assert differing(weights.compare([infer], [infer])) == {}
    scaled = {**meant, "model.layers.1.mlp.up_proj.weight": meant["model.layers.1.mlp.up_proj.weight"] * 1.25}
    other = weights.compare([pairs.written(tmp_path / "other", scaled, "float32")], [infer])
    assert differing(other) == {"layers.1.up.weight": "scaled"}


def test_a_scale_of_a_shape_that_fits_nothing_is_named(tmp_path: Path) -> None:
    value = np.ones((96, 64))
    tensors = {"fc.weight": ("F8_E4M3", (96, 64), bytes(96 * 64)), "fc.weight_scale": ("F32", (7, 1), bytes(28))}
    write_safetensors(tmp_path / "infer/model.safetensors", tensors)
    told = weights.compare([pairs.written(tmp_path / "train", {"fc.weight": value})], [str(tmp_path / "infer")])
    assert differing(told) == {"fc.weight": "unreadable"}
    assert "a scale of shape [7, 1] does not fit its 96 x 64 codes" in note(told, "fc.weight")


@pytest.mark.parametrize("leaves", [("qweight", "qzeros", "scales", "g_idx"), ("weight_packed", "weight_scale", "weight_shape")])
def test_weights_of_four_bits_are_said_to_be_packed(tmp_path: Path, leaves: tuple[str, ...]) -> None:
    """Not modules that one side lacks: one cause, and nothing of them is called equal."""
    model = pairs.model()
    tensors = {}
    for name, value in pairs.hf(model).items():
        if name.endswith("_proj.weight"):
            tensors.update({name[: -len("weight")] + leaf: ("I32", (8, 8), bytes(256)) for leaf in leaves})
        else:
            tensors[name] = ("BF16", value.shape, dumping.bits(value, "bfloat16").tobytes())
    write_safetensors(tmp_path / "infer/model.safetensors", tensors)
    train, infer = [pairs.written(tmp_path / "train", pairs.megatron(model))], [str(tmp_path / "infer")]
    told = structure.compare(train, infer)
    assert set(differing(told).values()) <= {"packed", "one_side"}
    assert [group["cause"]["kind"] for group in told.groups][:1] == ["cause_packed"]
    packed = {name for name, kind in differing(told).items() if kind == "packed"}
    assert {"decoder.layers.N.self_attention.linear_proj.weight", f"model.layers.N.mlp.up_proj.{leaves[0]}"} <= packed
    assert not {"layers.0.o.weight", "layers.0.q.weight"} & {one["canonical"] for one in weights.compare(train, infer).items}
