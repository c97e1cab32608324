"""Layer (b): names and shapes of two built models, by the standard library alone; what was left out or cut is known."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from typing import Any

import dumping
import numpy as np
import pytest
from dump_collection.params import sources, structure
from hypothesis import given, settings
from hypothesis import strategies as st
from msprobe_files.errors import DumpError

Shapes = dict  # name -> shape; Python 3.8 runs this file
HIDDEN, HEADS, GROUPS, WIDTH, MIDDLE, WORDS = 64, 8, 2, 16, 96, 1000


def hf(layers: int, experts: int = 0, head: bool = True) -> Shapes:
    made: Shapes = {"model.embed_tokens.weight": (WORDS, HIDDEN), "model.norm.weight": (HIDDEN,)}
    made.update({"lm_head.weight": (WORDS, HIDDEN)} if head else {})
    for layer in range(layers):
        stem = f"model.layers.{layer}."
        for name, rows in (("q", HEADS * WIDTH), ("k", GROUPS * WIDTH), ("v", GROUPS * WIDTH)):
            made[f"{stem}self_attn.{name}_proj.weight"] = (rows, HIDDEN)
        made[stem + "self_attn.o_proj.weight"] = (HIDDEN, HEADS * WIDTH)
        made.update({stem + name: (HIDDEN,) for name in ("input_layernorm.weight", "post_attention_layernorm.weight")})
        made.update({stem + "mlp.gate.weight": (experts, HIDDEN)} if experts else {})
        for inside in [f"mlp.experts.{n}." for n in range(experts)] or ["mlp."]:
            made.update({stem + inside + name: (MIDDLE, HIDDEN) for name in ("gate_proj.weight", "up_proj.weight")})
            made[stem + inside + "down_proj.weight"] = (HIDDEN, MIDDLE)
    return made


def megatron(layers: int, experts: int = 0, words: int = WORDS) -> Shapes:
    made: Shapes = {"embedding.word_embeddings.weight": (words, HIDDEN), "decoder.final_layernorm.weight": (HIDDEN,)}
    made["output_layer.weight"] = (words, HIDDEN)
    for layer in range(layers):
        stem = f"decoder.layers.{layer}."
        made[stem + "self_attention.linear_qkv.weight"] = ((HEADS + 2 * GROUPS) * WIDTH, HIDDEN)
        made[stem + "self_attention.linear_qkv.layer_norm_weight"] = (HIDDEN,)
        made[stem + "self_attention.linear_proj.weight"] = (HIDDEN, HEADS * WIDTH)
        made[stem + ("pre_mlp_layernorm.weight" if experts else "mlp.linear_fc1.layer_norm_weight")] = (HIDDEN,)
        made.update({stem + "mlp.router.weight": (experts, HIDDEN)} if experts else {})
        for last in ["mlp.experts.%s.weight" + str(n) for n in range(experts)] or ["mlp.%s.weight"]:
            made[stem + last % "linear_fc1"], made[stem + last % "linear_fc2"] = (2 * MIDDLE, HIDDEN), (HIDDEN, MIDDLE)
    return made


def engine(layers: int, experts: int = 0) -> Shapes:
    made: Shapes = {"model.embed_tokens.weight": (WORDS, HIDDEN), "model.norm.weight": (HIDDEN,), "lm_head.weight": (WORDS, HIDDEN)}
    for layer in range(layers):
        stem = f"model.layers.{layer}."
        made[stem + "self_attn.qkv_proj.weight"] = ((HEADS + 2 * GROUPS) * WIDTH, HIDDEN)
        made[stem + "self_attn.o_proj.weight"] = (HIDDEN, HEADS * WIDTH)
        made.update({stem + name: (HIDDEN,) for name in ("input_layernorm.weight", "post_attention_layernorm.weight")})
        if experts:
            made[stem + "mlp.gate.weight"] = (experts, HIDDEN)
            made[stem + "mlp.experts.w13_weight"] = (experts, 2 * MIDDLE, HIDDEN)
            made[stem + "mlp.experts.w2_weight"] = (experts, HIDDEN, MIDDLE)
        else:
            made[stem + "mlp.gate_up_proj.weight"], made[stem + "mlp.down_proj.weight"] = (2 * MIDDLE, HIDDEN), (HIDDEN, MIDDLE)
    return made


BUILT = {"hf": hf, "megatron": megatron, "engine": engine}


def listed(folder: Path, name: str, shapes: Shapes) -> str:
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(json.dumps(shapes))
    return str(folder / name)


def compared(folder: Path, train: Shapes, infer: Shapes) -> Any:
    return structure.compare([listed(folder, "train.json", train)], [listed(folder, "infer.json", infer)])


def differing(told: Any) -> dict:
    return {one["canonical"]: (one["status"], one["priority"]) for one in told.items if one["status"] != "EXACT"}


@pytest.mark.parametrize("experts", [0, 4])
@pytest.mark.parametrize("infer", BUILT)
@pytest.mark.parametrize("train", BUILT)
def test_one_model_in_three_layouts_has_one_structure(tmp_path: Path, train: str, infer: str, experts: int) -> None:
    """Fused or apart, by group or not, experts stacked or single: no key of either side may be left over."""
    told = compared(tmp_path, BUILT[train](3, experts), BUILT[infer](3, experts))
    assert differing(told) == {}
    assert (told.train_only, told.infer_only, told.groups) == ((), (), ())
    assert "layers.N.o.weight" in {one["canonical"] for one in told.items}


@pytest.mark.parametrize(
    "left_out", ["layers.1.self_attn.o_proj.weight", "layers.1.mlp.down_proj.weight", "norm.weight", "layers.2.input_layernorm.weight"]
)
def test_each_parameter_that_one_side_lacks_is_named(tmp_path: Path, left_out: str) -> None:
    infer = engine(3)
    del infer["model." + left_out]
    told = compared(tmp_path, hf(3), infer)
    assert (told.train_only, told.infer_only) == (("model." + left_out,), ())
    assert list(differing(told).values()) == [("MISSING_SIDE", "structure")]
    assert [group["cause"]["kind"] for group in told.groups] == ["cause_one_side"]


def test_any_one_shape_that_is_cut_is_found_and_nothing_else(tmp_path: Path) -> None:
    """Over all parameters of the engine: only what holds the changed one may differ."""
    train, infer = megatron(3), engine(3)

    @settings(max_examples=40, deadline=None, derandomize=True, database=None)
    @given(st.sampled_from(sorted(infer)), st.integers(1, 3))
    def holds(name: str, less: int) -> None:
        shape = infer[name]
        told = compared(tmp_path, train, {**infer, name: (shape[0] - less, *shape[1:])})
        found = differing(told)
        assert len(found) == 1
        (item,) = (one for one in told.items if one["status"] != "EXACT")
        keys = item["infer"]["key"]
        assert structure.general(name) in (keys if isinstance(keys, list) else [keys])

    holds()


def test_a_layer_more_on_one_side_is_named_as_such(tmp_path: Path) -> None:
    told = compared(tmp_path, hf(4), engine(3))
    assert all(key.startswith("model.layers.3.") for key in told.train_only)
    assert len(told.train_only) == 9
    assert told.infer_only == ()


def test_a_bias_that_one_side_lacks(tmp_path: Path) -> None:
    """The case of a converter that drops the bias of q, k and v."""
    infer = engine(2)
    infer.update({f"model.layers.{layer}.self_attn.qkv_proj.bias": ((HEADS + 2 * GROUPS) * WIDTH,) for layer in range(2)})
    told = compared(tmp_path, hf(2), infer)
    assert told.infer_only == ("model.layers.0.self_attn.qkv_proj.bias", "model.layers.1.self_attn.qkv_proj.bias")
    assert differing(told) == {"model.layers.N.self_attn.qkv_proj.bias": ("MISSING_SIDE", "structure")}


def test_fewer_heads_of_keys_do_not_fit(tmp_path: Path) -> None:
    train = hf(2)
    train.update({f"model.layers.{layer}.self_attn.{name}_proj.weight": (HEADS * WIDTH, HIDDEN) for layer in range(2) for name in "kv"})
    told = compared(tmp_path, train, engine(2))
    assert differing(told) == {"layers.N.qkv.weight": ("DIFF", "structure")}
    (item,) = (one for one in told.items if one["status"] == "DIFF")
    assert item["train"]["value"] == [[128, 64], [128, 64], [128, 64]]
    assert item["infer"]["value"] == [192, 64]


def test_a13_a_padded_vocabulary_is_stated(tmp_path: Path) -> None:
    """1024 rows against 1000; a vocabulary of another size is no padding."""
    told = compared(tmp_path, megatron(2, words=1024), engine(2))
    assert differing(told) == {}
    notes = {one["canonical"]: one["note"] for one in told.items}
    assert notes["embedding.weight"] == "equal but for 24 rows on train that pad the vocabulary"
    assert "embedding.weight" in differing(compared(tmp_path, megatron(2, words=1003), engine(2)))


def test_a06_a_head_that_one_side_does_not_list_is_its_embedding(tmp_path: Path) -> None:
    told = compared(tmp_path, megatron(2), hf(2, head=False))
    assert (differing(told), told.train_only) == ({}, ())
    assert [one["kind"] for one in told.items if one["canonical"] == "lm_head.weight"] == ["tied"]


def test_what_a_side_makes_itself_and_what_predicts_further_shut_nothing(tmp_path: Path) -> None:
    train = {**hf(2), "model.rotary_emb.inv_freq": (8,), "mtp.layers.0.eh_proj.weight": (HIDDEN, 2 * HIDDEN)}
    told = compared(tmp_path, train, engine(2))
    assert set(differing(told).values()) == {("MISSING_SIDE", "no_effect")}
    assert told.train_only == ("mtp.layers.0.eh_proj.weight",)
    assert told.groups == ()


def test_a_module_that_one_side_alone_has_is_seen(tmp_path: Path) -> None:
    """As hyper-connections lost by a converter: a structure switch."""
    infer = {**engine(2), **{f"model.layers.{layer}.mhc.alpha": (4,) for layer in range(2)}}
    told = compared(tmp_path, hf(2), infer)
    assert told.infer_only == ("model.layers.0.mhc.alpha", "model.layers.1.mhc.alpha")


def deepseek(names: str) -> Shapes:
    """Latent attention, a dense layer and one of experts with a shared one, as three frameworks name them."""
    stem, made = ("decoder.layers.", {}) if names == "megatron" else ("model.layers.", {})
    attention = {
        "q_a": ("self_attn.q_a_proj", "self_attention.linear_q_down_proj", (48, HIDDEN)),
        "kv_a": ("self_attn.kv_a_proj_with_mqa", "self_attention.linear_kv_down_proj", (40, HIDDEN)),
        "q_a_norm": ("self_attn.q_a_layernorm", "self_attention.q_layernorm", (48,)),
        "kv_a_norm": ("self_attn.kv_a_layernorm", "self_attention.kv_layernorm", (32,)),
        "q_b": ("self_attn.q_b_proj", "self_attention.linear_q_up_proj", (192, 48)),
        "kv_b": ("self_attn.kv_b_proj", "self_attention.linear_kv_up_proj", (224, 32)),
        "o": ("self_attn.o_proj", "self_attention.linear_proj", (HIDDEN, 112)),
        "input_norm": ("input_layernorm", "input_layernorm", (HIDDEN,)),
        "post_norm": ("post_attention_layernorm", "pre_mlp_layernorm", (HIDDEN,)),
    }
    for layer in range(2):
        at = f"{stem}{layer}."
        for role, (usual, theirs, shape) in attention.items():
            if names == "engine" and role in ("q_a", "kv_a"):
                made[at + "self_attn.fused_qkv_a_proj.weight"] = (88, HIDDEN)
            else:
                made[at + (theirs if names == "megatron" else usual) + ".weight"] = shape
        for inside, middle in [("mlp.", 128)] if layer == 0 else [("mlp.shared_experts.", MIDDLE), ("mlp.experts.", 24)]:
            made.update(feed_forward(names, at + inside, middle, 6 if inside == "mlp.experts." else 0))
        if layer:
            made[at + ("mlp.router.weight" if names == "megatron" else "mlp.gate.weight")] = (6, HIDDEN)
            made[at + ("mlp.router.expert_bias" if names == "megatron" else "mlp.gate.e_score_correction_bias")] = (6,)
    return made


def feed_forward(names: str, stem: str, middle: int, experts: int) -> Shapes:
    fused, down = (2 * middle, HIDDEN), (HIDDEN, middle)
    if names == "megatron":
        numbers = [str(n) for n in range(experts)] or [""]
        return {stem + f"linear_{name}.weight{n}": shape for n in numbers for name, shape in (("fc1", fused), ("fc2", down))}
    if names == "engine":
        stacked = {stem + "w13_weight": (experts, *fused), stem + "w2_weight": (experts, *down)}
        return stacked if experts else {stem + "gate_up_proj.weight": fused, stem + "down_proj.weight": down}
    stems = [f"{stem}{n}." for n in range(experts)] or [stem]
    apart = {"gate": (middle, HIDDEN), "up": (middle, HIDDEN), "down": down}
    return {f"{one}{name}_proj.weight": shape for one in stems for name, shape in apart.items()}


@pytest.mark.parametrize("infer", ["hf", "megatron", "engine"])
@pytest.mark.parametrize("train", ["hf", "megatron", "engine"])
def test_latent_attention_and_shared_experts_have_one_structure(tmp_path: Path, train: str, infer: str) -> None:
    """Projections fused on one side, norms under other names, layers of two kinds."""
    told = compared(tmp_path, deepseek(train), deepseek(infer))
    assert differing(told) == {}
    assert (told.train_only, told.infer_only) == ((), ())


# --- sources ---


def test_forms_of_a_list_read_alike(tmp_path: Path) -> None:
    shapes = hf(1)
    forms = [
        shapes,
        {name: {"shape": shape, "dtype": "torch.bfloat16"} for name, shape in shapes.items()},
        [{"name": "module." + name, "shape": shape} for name, shape in shapes.items()],
        [[name, shape] for name, shape in shapes.items()],
    ]
    read = [sources.read_side("train", [listed(tmp_path, f"{at}.json", form)]) for at, form in enumerate(forms)]
    assert [{one.name: one.shape for one in side.parameters} for side in read] == [shapes] * 4
    assert {one.dtype for one in read[1].parameters} == {"bfloat16"}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "it is no JSON"),
        ('"x"', "expected names and shapes, found a str"),
        ('{"a": 3}', "a: expected a shape, found 3"),
        ('{"a": [2, -1]}', "a: expected a shape"),
        ("[1]", r"\[0\]: expected a name and a shape, found 1"),
        ("{}", "no parameter is recorded"),
    ],
)
def test_a_list_of_another_form_is_refused_with_its_place(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "list.json").write_text(text)
    with pytest.raises(DumpError, match=said):
        sources.read_side("train", [str(tmp_path / "list.json")])


def test_any_json_is_read_or_refused(tmp_path: Path) -> None:
    """No traceback whatever the file holds."""
    leaves = st.none() | st.booleans() | st.integers() | st.text(max_size=5)
    anything = st.recursive(
        leaves, lambda inside: st.lists(inside, max_size=4) | st.dictionaries(st.text(max_size=12), inside, max_size=4), max_leaves=12
    )

    @settings(max_examples=150, deadline=None, derandomize=True, database=None)
    @given(anything)
    def holds(value: Any) -> None:
        path = listed(tmp_path, "any.json", value)
        with contextlib.suppress(DumpError):
            structure.compare([path], [path])

    holds()


def parts(root: Path, ranks: int, *, alike: bool) -> str:
    """A dump of one matrix a rank."""
    for rank in range(ranks):
        weight = np.arange(64.0).reshape(8, 8) + (0 if alike else 64 * rank)
        dumping.write_unit(root, {"Module.fc.Linear.forward.0": {"parameters": {"weight": dumping.of(weight)}}}, rank=rank)
    return str(root)


def test_ranks_that_hold_the_same_are_one_and_parts_pair_by_rank(tmp_path: Path) -> None:
    """One model taken for two shapes, or two parts for one: FSDP gathers on every rank, tensor parallel ranks hold parts."""
    copies, halves = parts(tmp_path / "copies", 2, alike=True), parts(tmp_path / "halves", 2, alike=False)
    assert [one.rank for one in sources.read_side("train", [copies]).parameters] == [None]
    assert [one.rank for one in sources.read_side("train", [halves]).parameters] == [0, 1]
    assert differing(structure.compare([halves], [halves])) == {}
    assert len(structure.compare([halves], [halves]).items) == 1
    with pytest.raises(DumpError, match="train in ranks 0, 1 and infer in one piece, so their parts do not pair"):
        structure.compare([halves], [copies])


def test_two_paths_of_one_side_must_not_contradict_each_other(tmp_path: Path) -> None:
    lists = [listed(tmp_path, name, {"fc.weight": [rows, 8]}) for name, rows in (("a.json", 4), ("b.json", 6))]
    with pytest.raises(DumpError, match=r"fc\.weight is there twice, with shape \[4, 8\] and \[6, 8\]"):
        sources.read_side("infer", lists)


@pytest.mark.parametrize(
    ("file", "said"),
    [
        ("__0_0.distcp", "It is a checkpoint of torch.distributed: make a file of it"),
        ("iter_10/mp_rank_00/model_optim_rng.pt", "Weights lie below it: hand .*/trainer/iter_10/mp_rank_00/model_optim_rng.pt"),
        ("readme.md", "Hand a folder with .safetensors, .bin or .pt files"),
    ],
)
def test_a_folder_in_another_form_is_told_what_to_hand_instead(tmp_path: Path, file: str, said: str) -> None:
    """A trainer's own checkpoint is what users try first."""
    path = tmp_path / "trainer" / file
    path.parent.mkdir(parents=True)
    path.write_bytes(b"x")
    with pytest.raises(DumpError, match=said):
        sources.read_side("train", [str(tmp_path / "trainer")])
