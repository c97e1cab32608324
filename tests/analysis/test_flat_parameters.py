"""Weights inside flat parameters (FSDP1), on a sample whose flat parameters are written anew: where each lies is known."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import dumping
import numpy as np
import pytest
from dump_analysis import pipeline, tensors
from dump_analysis.artefacts.replay_results import ReplayResults
from dump_analysis.artefacts.semantic_mapping import SemanticMapping
from dump_analysis.sides import open_side
from dump_analysis.tensors import Files
from editing import copy_side, tensor_file, unit_of
from laying import Sample, lay_out

Array = np.ndarray[Any, Any]
Stretch = tuple[int, int]
SAMPLE = "qwen2-fsdp1_rank0-vllm-clean"
LAYERS, ENTRY = 3, "Module._fsdp_wrapped_module.model.layers.{}._fsdp_wrapped_module.Qwen2DecoderLayer.forward.0.parameters._flat_param"


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Sample:
    return lay_out(SAMPLE, tmp_path_factory.mktemp("samples"))


def by_hand(pair: Sample) -> dict[str, Stretch]:
    """Boundary -> the stretch of its layer's flat parameter, from the mapping that the pair's maker wrote."""
    rows = json.loads(pair.mapping.read_text())["weights"]
    found = {row["boundary"]: row["train"]["sources"][0]["steps"][0] for row in rows}
    return {name: (step["start"], step["stop"]) for name, step in found.items()}


def flat(side: Path, layer: int) -> Array:
    """Raw bfloat16 elements."""
    place = open_side("train", [str(side)]).by_name[ENTRY.format(layer)][0]
    stream = tensors.cut_stream(Files(), tensors.described(place), ())
    return stream.read(0, tensors.elements_of(stream))


def rewritten(pair: Sample, root: Path, change: Callable[[int, Array], Array], dtype: str = "bfloat16") -> Path:
    """The trainer's side with other flat parameters of the layers."""
    side = copy_side(pair.train, root / "train")
    dump = unit_of(side) / "dump.json"
    text = json.loads(dump.read_text())
    for layer in range(LAYERS):
        made = change(layer, flat(side, layer))
        dumping.write_pt(tensor_file(side, ENTRY.format(layer)), dumping.of_bits(made, dtype))
        record = text["data"][ENTRY.format(layer).partition(".parameters.")[0]]["parameters"]["_flat_param"]
        record["shape"], record["dtype"] = [len(made)], f"torch.{dtype}"
    dump.write_text(json.dumps(text))
    return side


def proposed(train: Path, infer: Path) -> SemanticMapping:
    return pipeline.mapping_step(*pipeline.open_pair([str(train)], [str(infer)]), None)[0]


def replayed(train: Path, infer: Path, folder: Path) -> ReplayResults:
    sides = pipeline.open_pair([str(train)], [str(infer)])
    mapping, _ = pipeline.mapping_step(*sides, None)
    return pipeline.replay_step(*sides, mapping, "0" * 64, folder / pipeline.REPLAY, {}, quiet=True)[0]


def stretches(mapping: SemanticMapping) -> dict[str, Stretch]:
    steps = {row.boundary: (row.train.sources[0].steps or ())[0] for row in mapping.weights}
    return {name: (step.start or 0, step.stop or 0) for name, step in steps.items() if name.startswith("layers.")}


def test_another_order_and_padding_between(pair: Sample, tmp_path: Path) -> None:
    """Nothing is taken from the order in which one model registers its parameters, nor from their lying close together."""
    known = by_hand(pair)
    names = sorted({name.partition(".")[2].partition(".")[2] for name in known}, reverse=True)
    expected: dict[str, Stretch] = {}

    def change(layer: int, raw: Array) -> Array:
        parts, at = [], 0
        for name in names:
            start, stop = known[f"layers.{layer}.{name}"]
            parts += [raw[start:stop], np.zeros(8 + layer, raw.dtype)]
            expected[f"layers.{layer}.{name}"] = (at, at + stop - start)
            at += stop - start + 8 + layer
        return np.concatenate(parts)

    assert stretches(proposed(rewritten(pair, tmp_path, change), pair.infer)) == expected


def stale(pair: Sample, name: str, layers: tuple[int, ...]) -> Callable[[int, Array], Array]:
    """Every element of one weight one bfloat16 further, in some layers."""

    def change(layer: int, raw: Array) -> Array:
        start, stop = by_hand(pair)[f"layers.{layer}.{name}"]
        made = raw.copy()
        made[start:stop] += np.uint16(layer in layers)
        return made

    return change


@pytest.mark.parametrize(("name", "layers"), [("q.weight", (1,)), ("down.weight", (0, 2)), ("q.weight", (0, 1, 2)), ("k.bias", (1,))])
def test_a_weight_none_of_whose_rows_is_found_is_cut_where_it_must_lie(
    pair: Sample, tmp_path: Path, name: str, layers: tuple[int, ...]
) -> None:
    """By the other layers, by the only hole of its size, behind its matrix; a weight that differs must not become a gap."""
    side = rewritten(pair, tmp_path, stale(pair, name, layers))
    mapping = proposed(side, pair.infer)
    assert stretches(mapping) == by_hand(pair)
    results = replayed(side, pair.infer, tmp_path)
    assert {weight.name for weight in results.weights if weight.status != "EXACT"} == {f"layers.{layer}.{name}" for layer in layers}
    assert {weight.kind for weight in results.weights} == {None, "one_ulp"}


def test_some_rows_that_differ_do_not_move_the_others(pair: Sample, tmp_path: Path) -> None:
    def change(layer: int, raw: Array) -> Array:
        start, _ = by_hand(pair)["layers.1.up.weight"]
        made = raw.copy()
        made[start : start + 64 * 64] ^= np.uint16(0x40 * (layer == 1))
        return made

    side = rewritten(pair, tmp_path, change)
    assert stretches(proposed(side, pair.infer)) == by_hand(pair)


def test_masters_in_float32_are_found_by_what_they_round_to(pair: Sample, tmp_path: Path) -> None:
    def change(layer: int, raw: Array) -> Array:
        return (raw.astype(np.uint32) << 16) + np.uint32(0x1234)

    mapping = proposed(rewritten(pair, tmp_path, change, "float32"), pair.infer)
    assert stretches(mapping) == by_hand(pair)


def test_a_bias_that_the_engine_did_not_record_is_what_stands_behind_the_matrix(pair: Sample, tmp_path: Path) -> None:
    """The trainer follows with it; the engine, whose outputs hold it too, does not follow without."""
    infer = copy_side(pair.infer, tmp_path / "infer")
    dump = unit_of(infer) / "dump.json"
    text = json.loads(dump.read_text())
    for entry in text["data"].values():
        entry.get("parameters", {}).pop("bias", None)
    dump.write_text(json.dumps(text))
    modules = {module.module: module for module in replayed(pair.train, infer, tmp_path).modules}
    for layer in range(LAYERS):
        for part in "qkv":
            module = modules[f"layers.{layer}.{part}"]
            assert (module.train.variant, module.train.unexplained) == ("bias_in_acc", 0)
            assert (module.verdict, module.side) == ("logic", "infer")


def test_a_hole_that_is_not_the_weight_convicts_nobody(pair: Sample, tmp_path: Path) -> None:
    """The root's flat parameter ends with the head: with other numbers there the head is unknown, on both sides."""
    side = copy_side(pair.train, tmp_path / "train")
    name = "Module._fsdp_wrapped_module.Qwen2ForCausalLM.forward.0.parameters._flat_param"
    place = open_side("train", [str(side)]).by_name[name][0]
    stream = tensors.cut_stream(Files(), tensors.described(place), ())
    raw = stream.read(0, tensors.elements_of(stream)).copy()
    raw[-256 * 64 :] ^= np.uint16(0x40)
    dumping.write_pt(tensor_file(side, name), dumping.of_bits(raw, "bfloat16"))
    module = next(module for module in replayed(side, pair.infer, tmp_path).modules if module.module == "lm_head")
    assert (module.verdict, module.side) == ("unknown", "unknown")
    assert {told.kind for told in module.would_decide} == {"replay_guessed"}
