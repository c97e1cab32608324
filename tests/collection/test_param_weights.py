"""Layer (c): weights of two sides compared by value, whatever names and layouts; each difference was made, so its kind is known."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import checkpoint_pairs as pairs
import dumping
import numpy as np
import pytest
import weights_made as made
from checkpoint_pairs import Array, Weights, compared, differing, note
from dump_collection.param_weight_words import PARAM_WEIGHT_WORDS
from dump_collection.params import weights
from dump_collection.wording import text_of
from laying import lay_out
from msprobe_files.errors import DumpError
from running import COLLECTION

SIDES = {"hf": pairs.hf, "engine": pairs.engine, "megatron": pairs.megatron}


def changed(weights: Weights, **new: Array) -> Weights:
    return {**weights, **{name.replace("__", "."): value for name, value in new.items()}}


def moved(weight: Array) -> Array:
    """A step of an optimizer."""
    return made.bfloat16(weight + 1e-3 * np.random.default_rng(9).choice([-1.0, 1.0], weight.shape))


# --- layouts ---


@pytest.mark.parametrize("experts", [0, pairs.EXPERTS])
@pytest.mark.parametrize("infer", SIDES)
@pytest.mark.parametrize("train", SIDES)
def test_equal_weights_in_other_layouts_are_equal(tmp_path: Path, train: str, infer: str, experts: int) -> None:
    """A layout taken for a difference, or a weight left out: every weight of the model must be an item."""
    model = pairs.model(experts=experts)
    told = compared(tmp_path, SIDES[train](model), SIDES[infer](model))
    assert differing(told) == {}
    assert told.groups == ()
    names = {one["canonical"] for one in told.items}
    assert {"embedding.weight", "lm_head.weight", "final_norm.weight", "layers.2.o.weight", "layers.0.input_norm.weight"} <= names
    assert {"layers.1.q.weight", "layers.1.qkv.weight"} & names
    assert (len([name for name in names if "experts" in name]) >= 2 * pairs.LAYERS) == bool(experts)


@pytest.mark.parametrize("train", SIDES)
def test_names_that_say_nothing_are_joined_by_what_they_hold(tmp_path: Path, train: str) -> None:
    """A table of names that decides: every name of the engine is a number here, but for its layers."""
    model = pairs.model()
    infer = {}
    for at, (name, value) in enumerate(pairs.engine(model).items()):
        layer = name.split(".")[2] if ".layers." in name else None
        kind = name.rpartition(".")[2]
        stem = "qkv" if "qkv" in name else f"x{at}"  # weight and bias of one module
        infer[f"net.blocks.{layer}.m{stem.replace('qkv', '9')}.{kind}" if layer else f"net.m{at}.{kind}"] = value
    told = compared(tmp_path, SIDES[train](model), infer)
    assert differing(told) == {}
    keys = [one["infer"]["key"] for one in told.items]
    found = {key.split("[")[0] for some in keys for key in (some if isinstance(some, list) else [some]) if key}
    assert found == set(infer)


@pytest.mark.parametrize("other", ["hf", "engine"])
def test_a_stale_part_is_named_through_the_layout_by_group(tmp_path: Path, other: str) -> None:
    """Only k of layer 1 was not sent; the trainer holds it spread over the groups of a fused matrix."""
    model = pairs.model()
    told = compared(tmp_path, pairs.megatron(model), SIDES[other](changed(model, **{"1.k": moved(model["1.k"])})))
    assert differing(told) == {"layers.1.k.weight": "small_update"}


def test_layers_counted_from_another_number_are_joined_in_order(tmp_path: Path) -> None:
    model = pairs.model()
    train = {
        name.replace("layers.2", "layers.3").replace("layers.1", "layers.2").replace("layers.0", "layers.1"): value
        for name, value in pairs.hf(model).items()
    }
    assert differing(compared(tmp_path, train, pairs.engine(model))) == {}


def test_experts_stored_turned_are_read_so(tmp_path: Path) -> None:
    """[experts, in, out] against [experts, out, in]."""
    model = pairs.model(experts=pairs.EXPERTS)
    train = pairs.hf(model)
    for layer in range(pairs.LAYERS):
        for name in ("gate", "up", "down"):
            parts = [train.pop(f"model.layers.{layer}.mlp.experts.{n}.{name}_proj.weight") for n in range(pairs.EXPERTS)]
            if name == "down":
                train[f"model.layers.{layer}.mlp.experts.down_proj"] = np.stack([part.T for part in parts])
        fused = [pairs.gate_up(model, f"{layer}.experts.{n}").T for n in range(pairs.EXPERTS)]
        train[f"model.layers.{layer}.mlp.experts.gate_up_proj"] = np.stack(fused)
    assert differing(compared(tmp_path, train, pairs.engine(model))) == {}


# --- kinds ---


@pytest.mark.parametrize(
    ("kind", "make"),
    [
        ("small_update", made.step(1e-3, signs=True)),
        ("one_ulp", made.one_step),
        ("swapped", made.other_rows),
        ("scaled", made.times_one_factor),
        ("quantised", made.int8_rows),
        ("partial", made.half_a_step),
        ("different", made.another),
    ],
)
def test_the_kind_is_how_the_difference_was_made(tmp_path: Path, kind: str, make: object) -> None:
    assert callable(make)
    before, after = make(5, pairs.HIDDEN, pairs.HEADS * pairs.WIDTH)
    model = pairs.model()
    told = compared(tmp_path, pairs.hf(changed(model, **{"1.o": before})), pairs.engine(changed(model, **{"1.o": after})))
    assert differing(told) == {"layers.1.o.weight": kind}
    assert [group["items"] for group in told.groups] == [["layers.1.o.weight"]]
    assert {one["priority"] for one in told.items} == {"weight"}


def test_masters_in_float32_and_their_copies_in_bfloat16_are_the_same_weights(tmp_path: Path) -> None:
    """Each weight would differ otherwise; the format and which side holds the copy are said."""
    masters = {name: made.fine(at, 1, value.size).reshape(value.shape) for at, (name, value) in enumerate(pairs.model().items())}
    copies = {name: made.bfloat16(value) for name, value in masters.items()}
    told = weights.compare(
        [pairs.written(tmp_path / "train", pairs.hf(masters), "float32")], [pairs.written(tmp_path / "infer", pairs.engine(copies))]
    )
    assert differing(told) == {}
    assert note(told, "layers.0.o.weight") == "infer holds the other side's values rounded to bfloat16"


def test_exchanged_parts_are_swapped_with_each_other(tmp_path: Path) -> None:
    """v was loaded into k's rows."""
    model = pairs.model()
    told = compared(tmp_path, pairs.hf(model), pairs.engine(changed(model, **{"2.k": model["2.v"], "2.v": model["2.k"]})))
    assert differing(told) == {"layers.2.k.weight": "swapped", "layers.2.v.weight": "swapped"}
    assert "layers.2.v.weight" in note(told, "layers.2.k.weight")
    assert [group["items"] for group in told.groups] == [["layers.2.k.weight", "layers.2.v.weight"]]


@pytest.mark.parametrize("infer", ["hf", "engine"])
@pytest.mark.parametrize("moves", ["step", "scaled"])
def test_an_order_that_no_row_bears_out_by_equality_is_told_by_nearness(tmp_path: Path, infer: str, moves: str) -> None:
    """Every weight one step on: the layout by group must not be taken for a loader's fault, nor k's rows for q's."""
    model = pairs.model()
    later = {name: moved(value) if moves == "step" else made.bfloat16(value * 1.05) for name, value in model.items()}
    told = compared(tmp_path, pairs.megatron(later), SIDES[infer](model))
    found = differing(told)
    assert {f"layers.{layer}.{part}.weight" for layer in range(pairs.LAYERS) for part in "qkv"} <= set(found)
    assert "swapped" not in found.values()
    assert {found[f"layers.1.{part}.weight"] for part in "qkv"} == {"small_update" if moves == "step" else "scaled"}
    assert (
        differing(compared(tmp_path / "b", pairs.megatron(later, grouped=False), SIDES[infer](model)))["layers.1.qkv.weight"] == "swapped"
    )


def test_unrelated_weights_are_not_called_in_wrong_order(tmp_path: Path) -> None:
    """An engine that started from random weights: nothing says how its rows lie."""
    found = differing(compared(tmp_path, pairs.megatron(pairs.model()), pairs.hf(pairs.model(seed=7000))))
    assert {kind for name, kind in found.items() if "norm" not in name} == {"different"}


# --- previous checkpoint ---


@pytest.mark.parametrize("trainer", ["hf", "megatron"])
@pytest.mark.parametrize("stale", ["train", "infer"])
def test_only_a_previous_checkpoint_proves_what_is_stale(tmp_path: Path, stale: str, trainer: str) -> None:
    """(a) all, (b) experts, (c) one matrix, (d) half of its rows, of one side; without the checkpoint no claim."""
    laid = SIDES[trainer]
    old = pairs.model(experts=pairs.EXPERTS)
    new = {name: moved(value) for name, value in old.items()}
    previous = pairs.written(tmp_path / "previous", pairs.hf(old))
    half = np.concatenate([new["2.q"][:64], old["2.q"][64:]])
    cases: list[tuple[Weights, int, str]] = [
        (old, 1, "stale"),
        ({name: old[name] if "experts" in name else value for name, value in new.items()}, 1, "stale"),
        ({**new, "2.q": old["2.q"]}, 1, "stale"),
        ({**new, "2.q": half}, 1, "partial"),
    ]
    for number, (behind, groups, kind) in enumerate(cases):
        sides = (laid(behind), pairs.engine(new)) if stale == "train" else (laid(new), pairs.engine(behind))
        told = compared(tmp_path / str(number), *sides, previous=previous)
        assert set(differing(told).values()) == {kind}
        assert len(told.groups) == groups
        without = compared(tmp_path / str(number), *sides)
        assert "stale" not in differing(without).values()
        assert set(differing(without)) == set(differing(told))
    assert f"these rows of {stale} are the previous checkpoint's" in note(told, "layers.2.q.weight")


# --- cases ---


def test_a05_a_head_tied_on_one_side(tmp_path: Path) -> None:
    """Infer's head equals its embedding, train's is a real one; also where infer lists no head at all."""
    model = pairs.model()
    tied = changed(model, lm_head=model["embedding"])
    without = pairs.engine(tied)
    del without["lm_head.weight"]
    for number, infer in enumerate((pairs.engine(tied), without)):
        told = compared(tmp_path / str(number), pairs.hf(model), infer)
        assert list(differing(told)) == ["lm_head.weight"]
        assert note(told, "lm_head.weight").startswith("infer's head equals its embedding, train's does not")


def test_a06_tied_on_both_sides_is_no_alarm(tmp_path: Path) -> None:
    model = pairs.model()
    model["lm_head"] = model["embedding"]
    infer = pairs.engine(model)
    del infer["lm_head.weight"]
    told = compared(tmp_path, pairs.megatron(model), infer)
    assert differing(told) == {}
    assert [one["kind"] for one in told.items if one["canonical"] == "lm_head.weight"] == ["tied"]


def test_a07_gains_stored_as_w_or_as_one_plus_w(tmp_path: Path) -> None:
    """Equal once the one is added; in one layer the other way it is a difference."""
    model = pairs.model()
    gains = [name for name in model if "norm" in name]
    small = {name: made.bfloat16(made.fine(at, 1, pairs.HIDDEN)[0]) for at, name in enumerate(gains)}
    train = {**model, **small}
    infer = {**model, **{name: made.bfloat16(1.0 + value) for name, value in small.items()}}
    told = compared(tmp_path, pairs.hf(train), pairs.engine(infer))
    assert differing(told) == {}
    assert note(told, "final_norm.weight").startswith("infer stores 1 + w, the other side w")
    infer["1.input_norm"] = train["1.input_norm"]
    assert differing(compared(tmp_path, pairs.hf(train), pairs.engine(infer))) == {"layers.1.input_norm.weight": "one_added"}


def test_a_bias_that_is_one_larger_is_a_difference(tmp_path: Path) -> None:
    """Only gains are stored as w or 1 + w."""
    model = pairs.model()
    told = compared(tmp_path, pairs.hf(model), pairs.engine(changed(model, **{"1.v.bias": made.bfloat16(1.0 + model["1.v.bias"])})))
    assert differing(told) == {"layers.1.v.bias": "one_added"}


def test_a12_a_router_correction_in_bfloat16(tmp_path: Path) -> None:
    """255 values between 6.817 and 7.063 become 9: rounding that changes which experts are chosen, whatever the dtypes."""
    bias = np.linspace(6.817, 7.063, 255).astype(np.float32).astype(np.float64)
    assert len(np.unique(made.bfloat16(bias))) == 9
    model = pairs.model(layers=1)
    told = weights.compare(
        [pairs.written(tmp_path / "train", {**pairs.megatron(model), "decoder.layers.0.mlp.router.expert_bias": bias}, "float32")],
        [
            pairs.written(
                tmp_path / "infer", {**pairs.engine(model), "model.layers.0.mlp.gate.e_score_correction_bias": made.bfloat16(bias)}
            )
        ],
    )
    assert differing(told) == {"layers.0.router_correction.bias": "rounded"}
    assert "can change expert choice" in note(told, "layers.0.router_correction.bias")
    (item,) = (one for one in told.items if one["status"] == "DIFF")
    assert (item["train"]["value"]["dtype"], item["infer"]["value"]["dtype"]) == ("float32", "bfloat16")
    assert told.groups[0]["impact"]["text"] == "other experts may be chosen for a token"


@pytest.mark.parametrize("infer_rows", [192, 180])
def test_a13_a_padded_vocabulary(tmp_path: Path, infer_rows: int) -> None:
    """Equal after slicing, stated as padding; a difference in the rows that both have is still seen."""
    model = pairs.model()
    model["embedding"], model["lm_head"] = (np.concatenate([model[name], np.zeros((64, 64))]) for name in ("embedding", "lm_head"))
    cut = {**model, **{name: model[name][:infer_rows] for name in ("embedding", "lm_head")}}
    told = compared(tmp_path, pairs.megatron(model), pairs.engine(cut))
    assert differing(told) == {}
    assert note(told, "embedding.weight") == f"equal but for {256 - infer_rows} rows on train that pad the vocabulary"
    cut["embedding"] = np.concatenate([cut["embedding"][:-1], -cut["embedding"][-1:]])
    assert list(differing(compared(tmp_path, pairs.megatron(model), pairs.engine(cut)))) == ["embedding.weight"]


@pytest.mark.parametrize("other", ["hf", "engine"])
def test_a18_qkv_concatenated_where_it_is_read_by_group(tmp_path: Path, other: str) -> None:
    """(a) by group on the trainer's side is its layout; (b) side by side there is a loader's fault, though all rows are equal."""
    model = pairs.model()
    assert differing(compared(tmp_path / "a", pairs.megatron(model), SIDES[other](model))) == {}
    told = compared(tmp_path / "b", pairs.megatron(model, grouped=False), SIDES[other](model))
    assert set(differing(told)) == {f"layers.{layer}.qkv.{kind}" for layer in range(pairs.LAYERS) for kind in ("weight", "bias")}
    assert set(differing(told).values()) == {"swapped"}
    side = "train" if other == "hf" else "one of both sides"
    assert note(told, "layers.0.qkv.weight").startswith(f"rows of fused qkv in wrong order on {side}: ")
    assert "where per-group order is read" in note(told, "layers.0.qkv.weight")
    assert len(told.groups) == 1
    assert (
        differing(compared(tmp_path / "b", pairs.megatron(model, grouped=False), SIDES[other](model), stated=weights.Stated(kv_groups=1)))
        == {}
    )


def test_an_engine_whose_rows_are_by_group_is_a_fault_too(tmp_path: Path) -> None:
    model = pairs.model()
    infer = pairs.engine(model)
    name = "model.layers.1.self_attn.qkv_proj.weight"
    infer[name] = pairs.by_group([model[f"1.{part}"] for part in "qkv"])
    told = compared(tmp_path, pairs.hf(model), infer)
    assert "layers.1.qkv.weight" in differing(told)
    assert "on infer: they stand by group" in note(told, "layers.1.qkv.weight")


# --- without numpy ---

BARE = """
import sys
sys.path.insert(0, sys.argv[1])
from dump_collection.params import structure, weights
from msprobe_files.errors import DumpError
train, infer, stale = ([path] for path in sys.argv[2:])
assert all(one["status"] == "EXACT" for one in structure.compare(train, infer).items)
assert all(one["status"] == "EXACT" for one in weights.compare(train, infer).items)
try:
    weights.compare(train, stale)
except DumpError as error:
    print(error)
"""


def test_structure_and_equal_weights_need_the_standard_library_alone(tmp_path: Path) -> None:
    """Containers of trainers and engines; where numbers must be read, one line says what is missing."""
    model = pairs.model()
    stale = changed(model, **{"1.o": moved(model["1.o"])})
    built = {"train": pairs.hf(model), "infer": pairs.engine(model), "stale": pairs.engine(stale)}
    paths = [pairs.written(tmp_path / name, made_of) for name, made_of in built.items()]
    ran = subprocess.run([sys.executable, "-I", "-S", "-c", BARE, COLLECTION, *paths], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.startswith("Cannot say how weights differ: numpy is not installed. Run 'python3 -m pip install numpy'")


# --- dumps and broken files ---


def flat_unit(root: Path, model: Weights, dtype: str = "bfloat16") -> Path:
    """A dump of FSDP1: one vector a layer and one outside, in the order of transformers' modules, padded to a multiple of 8."""
    flat: dict[str, list[Array]] = {}
    for name, value in pairs.hf(model).items():
        path = name.split(".")
        stem = ".".join([*path[:3], "_fsdp_wrapped_module", "Qwen2DecoderLayer"]) if path[1] == "layers" else "Qwen2ForCausalLM"
        flat.setdefault(f"Module._fsdp_wrapped_module.{stem}.forward.0", []).append(value.reshape(-1))
    entries = {}
    for entry, values in flat.items():
        whole = np.concatenate(values)
        entries[entry] = {"parameters": {"_flat_param": dumping.of(np.concatenate([whole, np.zeros(-len(whole) % 8)]), dtype)}}
    return dumping.write_unit(root, entries)


@pytest.mark.parametrize("dtype", ["bfloat16", "float32"])
def test_flat_parameters_are_compared_with_what_they_hold(tmp_path: Path, dtype: str) -> None:
    """Parts of fused matrices lie apart in it; a weight that moved, all of it, is put where the hole is."""
    model = pairs.model()
    infer = pairs.written(tmp_path / "infer", pairs.engine(model))
    told = weights.compare([str(flat_unit(tmp_path / "clean", model, dtype))], [infer])
    assert differing(told) == {}
    assert {"layers.1.q.weight", "layers.1.k.bias", "layers.2.gate_up.weight", "lm_head.weight"} <= {one["canonical"] for one in told.items}
    stale = changed(
        model, **{"1.o": moved(model["1.o"]), "2.k": moved(model["2.k"]), "0.input_norm": made.bfloat16(model["0.input_norm"] * 1.25)}
    )
    found = differing(weights.compare([str(flat_unit(tmp_path / "stale", stale, dtype))], [infer]))
    assert set(found) == {"layers.1.o.weight", "layers.2.k.weight", "layers.0.input_norm.weight"}
    assert (found["layers.1.o.weight"], found["layers.2.k.weight"]) == ("small_update", "small_update")


def test_flat_parameters_hold_the_experts_of_a_stack_one_by_one(tmp_path: Path) -> None:
    """A trainer under FSDP1 against an engine's stacked experts: the one that is stale is named by its number."""
    model = pairs.model(experts=pairs.EXPERTS)
    infer = pairs.written(tmp_path / "infer", pairs.engine(model))
    told = weights.compare([str(flat_unit(tmp_path / "clean", model))], [infer])
    assert differing(told) == {}
    held = [one["canonical"] for one in told.items if "experts" in one["canonical"]]
    assert sorted(held) == sorted(f"layers.{layer}.experts.{part}.weight" for layer in range(pairs.LAYERS) for part in ("gate_up", "down"))
    stale = {name: moved(model[name]) for name in ("0.experts.2.down", "1.experts.3.up", "2.o")}
    told = weights.compare([str(flat_unit(tmp_path / "stale", {**model, **stale}))], [infer])
    assert differing(told) == {
        "layers.0.experts.2.down.weight": "small_update",
        "layers.1.experts.3.gate_up.weight": "partial",
        "layers.2.o.weight": "small_update",
    }


@pytest.mark.parametrize("part", ["q", "v", "first row", "last row"])
def test_stale_ends_of_a_fused_matrix_keep_their_place_in_a_flat_parameter(tmp_path: Path, part: str) -> None:
    """What was found of a matrix must not be drawn out over its neighbour."""
    model = pairs.model()
    stale = dict(model)
    if part in "qv":
        stale[f"1.{part}"] = moved(model[f"1.{part}"])
        expected = f"layers.1.{part}.weight"
    else:
        stale["1.o"] = model["1.o"].copy()
        row = 0 if part == "first row" else -1
        stale["1.o"][row] = moved(model["1.o"][row])
        expected = "layers.1.o.weight"
    told = weights.compare([str(flat_unit(tmp_path / "train", stale))], [pairs.written(tmp_path / "infer", pairs.engine(model))])
    assert differing(told) == {expected: "small_update" if part in "qv" else "partial"}


def test_parts_of_ranks_are_compared_rank_by_rank(tmp_path: Path) -> None:
    """Tensor parallel on both sides: k of rank 1 alone is stale, and exchanged ranks are seen."""
    halves = [pairs.model(seed=at) for at in (0, 50)]
    for name, made_of, builder in (
        ("train", halves, pairs.megatron),
        ("infer", halves, pairs.engine),
        ("stale", [halves[0], {**halves[1], "1.k": moved(halves[1]["1.k"])}], pairs.engine),
        ("exchanged", halves[::-1], pairs.engine),
    ):
        for rank, model in enumerate(made_of):
            dumping.write_unit(tmp_path / name, entries_of(builder(model)), rank=rank)
    train, infer, stale, exchanged = (str(tmp_path / name) for name in ("train", "infer", "stale", "exchanged"))
    assert differing(weights.compare([train], [infer])) == {}
    told = weights.compare([train], [stale])
    assert differing(told) == {"rank1.layers.1.k.weight": "small_update"}
    assert [group["items"] for group in told.groups] == [["rank1.layers.1.k.weight"]]
    assert "layers.1.o.weight" in differing(weights.compare([train], [exchanged])) or "rank0.layers.1.o.weight" in differing(
        weights.compare([train], [exchanged])
    )


def entries_of(model: Weights) -> dict:
    entries: dict = {}
    for name, value in model.items():
        path, _, kind = name.rpartition(".")
        entries.setdefault(f"Module.{path}.Linear.forward.0", {"parameters": {}})["parameters"][kind] = dumping.of(value, "bfloat16")
    return entries


def test_shards_are_read_by_their_index_and_a_missing_one_is_named(tmp_path: Path) -> None:
    """An index that lists a file that was never copied must not make its weights missing in silence."""
    model = pairs.engine(pairs.model())
    names = list(model)
    for at in (0, 1):
        pairs.written(tmp_path / str(at), {name: model[name] for name in names[at::2]})
    folder = tmp_path / "infer"
    folder.mkdir()
    for at in (0, 1):
        (tmp_path / str(at) / "model.safetensors").rename(folder / f"model-{at}.safetensors")
    index = {"weight_map": {name: f"model-{at % 2}.safetensors" for at, name in enumerate(names)}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    train = [pairs.written(tmp_path / "train", pairs.hf(pairs.model()))]
    assert differing(weights.compare(train, [str(folder)])) == {}
    (folder / "model-1.safetensors").unlink()
    with pytest.raises(DumpError, match=r"Cannot read the checkpoint model-1.safetensors"):
        weights.compare(train, [str(folder)])


def test_a_cut_file_is_named(tmp_path: Path) -> None:
    model = pairs.model()
    train, infer = pairs.written(tmp_path / "train", pairs.hf(model)), pairs.written(tmp_path / "infer", pairs.engine(model))
    file = tmp_path / "infer/model.safetensors"
    file.write_bytes(file.read_bytes()[:-100])
    with pytest.raises(DumpError, match=r"Cannot read the checkpoint model.safetensors: .* does not fit"):
        weights.compare([train], [infer])


def test_a_file_of_a_dump_that_is_gone_costs_its_own_weight_alone(tmp_path: Path) -> None:
    model = pairs.model(layers=1)
    unit = dumping.write_unit(tmp_path / "train", entries_of(pairs.hf(model)))
    file = next((unit / "dump_tensor_data").glob("*o_proj*"))
    file.write_bytes(file.read_bytes()[:300])
    told = weights.compare([str(tmp_path / "train")], [pairs.written(tmp_path / "infer", pairs.engine(model))])
    assert differing(told) == {"layers.0.o.weight": "unreadable"}
    assert file.name in note(told, "layers.0.o.weight")


def test_names_and_shapes_alone_cannot_be_compared_by_value(tmp_path: Path) -> None:
    listed = tmp_path / "shapes.json"
    listed.write_text(json.dumps({name: value.shape for name, value in pairs.hf(pairs.model()).items()}))
    with pytest.raises(DumpError, match="the train side gives names and shapes only"):
        weights.compare([str(listed)], [pairs.written(tmp_path / "infer", pairs.engine(pairs.model()))])


def test_every_sentence_can_be_worded_in_both_languages(tmp_path: Path) -> None:
    """A placeholder that one language lacks."""
    fields = {kind: [sorted(set(re.findall(r"{(\w+)}", text))) for text in texts] for kind, texts in PARAM_WEIGHT_WORDS.items()}
    assert [kind for kind, (english, chinese) in fields.items() if english != chinese] == []
    model = pairs.model()
    told = compared(tmp_path, pairs.hf(model), pairs.engine(changed(model, **{"1.o": moved(model["1.o"])})))
    assert "优化器" in text_of(told.groups[0]["cause"], "zh-CN")


# --- real dumps ---

CLEAN = [
    "qwen2-hf-vllm-clean", "qwen2-hf-sglang-clean", "qwen2-fsdp1_rank0-vllm-clean", "qwen2-megatron_tp1-sglang-clean",
    "qwen2-megatron_te_shaped-sglang-clean", "qwen3_moe-megatron_tp1-sglang-clean",
]  # fmt: skip


@pytest.mark.parametrize("name", CLEAN)
def test_a_clean_pair_of_real_dumps_has_equal_weights(tmp_path: Path, name: str) -> None:
    """Trainers against engines as msprobe recorded them; what an engine never dumps, its head, is not called equal."""
    sample = lay_out(name, tmp_path)
    told = weights.compare([str(sample.train)], [str(sample.infer)])
    assert set(differing(told).values()) <= {"one_side"}
    assert set(differing(told)) <= {"lm_head.weight", "_flat_param"}
    assert len(told.items) > 10


def test_keys_and_values_exchanged_in_a_real_engine(tmp_path: Path) -> None:
    sample = lay_out("qwen2-hf-vllm-kv_swapped", tmp_path)
    found = differing(weights.compare([str(sample.train)], [str(sample.infer)]))
    assert [name for name, kind in found.items() if kind == "swapped"] == ["layers.1.k.weight", "layers.1.v.weight"]


def staged(folder: Path, model: Weights, cuts: tuple[int, ...]) -> str:
    """A dump of Megatron's pipeline: each stage counts its own layers from 0; the middle ones hold nothing outside of them."""
    whole = pairs.megatron(model)
    edges = [0, *cuts, pairs.LAYERS]
    for rank in range(len(cuts) + 1):
        start, stop = edges[rank : rank + 2]
        held = {}
        for name, value in whole.items():
            if ".layers." in name:
                number = int(name.split(".")[2])
                if start <= number < stop:
                    held[name.replace(f".{number}.", f".{number - start}.", 1)] = value
            elif rank == (0 if name.startswith("embedding") else len(cuts)):
                held[name] = value
        dumping.write_unit(folder, entries_of(held), rank=rank)
    return str(folder)


@pytest.mark.parametrize("cuts", [(1,), (2,), (1, 2)])
def test_stages_of_a_pipeline_are_one_model(tmp_path: Path, cuts: tuple[int, ...]) -> None:
    """Against an engine in one piece: every layer, and the one that differs by its number in the whole."""
    model = pairs.model()
    train = staged(tmp_path / "train", model, cuts)
    for other in (model, changed(model, **{"2.o": moved(model["2.o"])})):
        told = weights.compare([train], [pairs.written(tmp_path / "infer", pairs.engine(other))])
        assert differing(told) == ({} if other is model else {"layers.2.o.weight": "small_update"})
        assert {"embedding.weight", "lm_head.weight", "layers.0.q.weight", "layers.2.down.weight"} <= {
            one["canonical"] for one in told.items
        }
    assert differing(weights.compare([train], [staged(tmp_path / "other", model, (2,))])) == {}


def test_one_checkpoint_handed_twice_is_one(tmp_path: Path) -> None:
    """And a copy elsewhere; another one is refused, with the weight that contradicts."""
    model = pairs.model(layers=1)
    train, copy = (pairs.written(tmp_path / name, pairs.hf(model)) for name in ("train", "copy"))
    infer = pairs.written(tmp_path / "infer", pairs.engine(model))
    for paths in ([train, train], [train, copy]):
        assert differing(weights.compare(paths, [infer])) == {}
    other = pairs.written(tmp_path / "other", pairs.hf(changed(model, **{"0.o": moved(model["0.o"])})))
    with pytest.raises(DumpError, match=r"layers\.0\.self_attn\.o_proj\.weight is there twice"):
        weights.compare([train, other], [infer])
