"""A small model's weights under the names and layouts of several frameworks, written as checkpoints. Layouts are made by numpy alone."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import dumping
import numpy as np
import weights_made as made
from checkpoints import Raw, write_safetensors
from dump_collection.params import structure, weights
from dump_collection.params.items import Compared

if TYPE_CHECKING:
    Array = np.ndarray[Any, Any]
    Weights = dict[str, Array]
else:
    Array = Weights = Any  # Python 3.8 runs this file
HIDDEN, HEADS, GROUPS, WIDTH, MIDDLE, WORDS, LAYERS, EXPERTS = 64, 8, 2, 16, 96, 192, 3, 4
NAMES = {"bfloat16": "BF16", "float32": "F32", "float16": "F16"}


def model(seed: int = 0, layers: int = LAYERS, experts: int = 0) -> Weights:
    """Canonical name -> float64 values of bfloat16."""
    made_of: Weights = {
        "embedding": made.weight(seed, WORDS, HIDDEN),
        "lm_head": made.weight(seed + 1, WORDS, HIDDEN),
        "final_norm": gain(seed),
    }
    for layer in range(layers):
        at = seed + 100 * (layer + 1)
        shapes = {"q": HEADS * WIDTH, "k": GROUPS * WIDTH, "v": GROUPS * WIDTH}
        for number, (name, rows) in enumerate(shapes.items()):
            made_of[f"{layer}.{name}"] = made.weight(at + number, rows, HIDDEN)
            made_of[f"{layer}.{name}.bias"] = made.weight(at + 10 + number, 1, rows)[0]
        made_of[f"{layer}.o"] = made.weight(at + 4, HIDDEN, HEADS * WIDTH)
        made_of.update({f"{layer}.input_norm": gain(at + 5), f"{layer}.post_norm": gain(at + 6)})
        stems = [f"{layer}.experts.{expert}" for expert in range(experts)] or [f"{layer}"]
        for number, stem in enumerate(stems):
            for other, name in enumerate(("gate", "up")):
                made_of[f"{stem}.{name}"] = made.weight(at + 20 + 3 * number + other, MIDDLE, HIDDEN)
            made_of[f"{stem}.down"] = made.weight(at + 22 + 3 * number, HIDDEN, MIDDLE)
        if experts:
            made_of[f"{layer}.router"] = made.weight(at + 7, experts, HIDDEN)
    return made_of


def gain(seed: int) -> Array:
    return made.bfloat16(1.0 + made.fine(seed, 1, HIDDEN)[0] / 4)


def layers_of(weights: Weights) -> range:
    return range(sum(name.endswith(".o") for name in weights))


def experts_of(weights: Weights, layer: int) -> range:
    return range(sum(name.startswith(f"{layer}.experts.") and name.endswith(".down") for name in weights))


def hf(weights: Weights) -> Weights:
    """Everything apart, as transformers has it."""
    out = {
        "model.embed_tokens.weight": weights["embedding"],
        "model.norm.weight": weights["final_norm"],
        "lm_head.weight": weights["lm_head"],
    }
    for layer in layers_of(weights):
        stem = f"model.layers.{layer}"
        for name in "qkv":
            out[f"{stem}.self_attn.{name}_proj.weight"] = weights[f"{layer}.{name}"]
            out[f"{stem}.self_attn.{name}_proj.bias"] = weights[f"{layer}.{name}.bias"]
        out.update(norms(weights, layer, stem, "input_layernorm", "post_attention_layernorm"))
        out[f"{stem}.self_attn.o_proj.weight"] = weights[f"{layer}.o"]
        experts = experts_of(weights, layer)
        if experts:
            out[f"{stem}.mlp.gate.weight"] = weights[f"{layer}.router"]
        pairs = [(f"{layer}.experts.{n}", f"{stem}.mlp.experts.{n}") for n in experts] or [(f"{layer}", f"{stem}.mlp")]
        for ours, theirs in pairs:
            out.update({f"{theirs}.{name}_proj.weight": weights[f"{ours}.{name}"] for name in ("gate", "up", "down")})
    return out


def norms(weights: Weights, layer: int, stem: str, first: str, second: str) -> Weights:
    return {f"{stem}.{first}.weight": weights[f"{layer}.input_norm"], f"{stem}.{second}.weight": weights[f"{layer}.post_norm"]}


def engine(weights: Weights) -> Weights:
    """Fused side by side, experts stacked, as vLLM and SGLang have it."""
    out = {
        "model.embed_tokens.weight": weights["embedding"],
        "model.norm.weight": weights["final_norm"],
        "lm_head.weight": weights["lm_head"],
    }
    for layer in layers_of(weights):
        stem = f"model.layers.{layer}"
        for kind, last in (("weight", ""), ("bias", ".bias")):
            out[f"{stem}.self_attn.qkv_proj.{kind}"] = np.concatenate([weights[f"{layer}.{name}{last}"] for name in "qkv"])
        out.update(norms(weights, layer, stem, "input_layernorm", "post_attention_layernorm"))
        out[f"{stem}.self_attn.o_proj.weight"] = weights[f"{layer}.o"]
        experts = experts_of(weights, layer)
        if experts:
            out[f"{stem}.mlp.gate.weight"] = weights[f"{layer}.router"]
            out[f"{stem}.mlp.experts.w13_weight"] = np.stack([gate_up(weights, f"{layer}.experts.{n}") for n in experts])
            out[f"{stem}.mlp.experts.w2_weight"] = np.stack([weights[f"{layer}.experts.{n}.down"] for n in experts])
        else:
            out[f"{stem}.mlp.gate_up_proj.weight"] = gate_up(weights, str(layer))
            out[f"{stem}.mlp.down_proj.weight"] = weights[f"{layer}.down"]
    return out


def gate_up(weights: Weights, stem: str) -> Array:
    return np.concatenate([weights[f"{stem}.gate"], weights[f"{stem}.up"]])


def megatron(weights: Weights, *, grouped: bool = True) -> Weights:
    """q, k and v by group, as linear_qkv reads them; norms inside the linears behind. ``grouped`` False: a loader concatenated them."""
    out = {
        "embedding.word_embeddings.weight": weights["embedding"], "decoder.final_layernorm.weight": weights["final_norm"],
        "output_layer.weight": weights["lm_head"],
    }  # fmt: skip
    for layer in layers_of(weights):
        stem = f"decoder.layers.{layer}"
        for kind, last in (("weight", ""), ("bias", ".bias")):
            parts = [weights[f"{layer}.{name}{last}"] for name in "qkv"]
            out[f"{stem}.self_attention.linear_qkv.{kind}"] = by_group(parts) if grouped else np.concatenate(parts)
        out[f"{stem}.self_attention.linear_qkv.layer_norm_weight"] = weights[f"{layer}.input_norm"]
        out[f"{stem}.self_attention.linear_proj.weight"] = weights[f"{layer}.o"]
        experts = experts_of(weights, layer)
        if experts:
            out[f"{stem}.pre_mlp_layernorm.weight"] = weights[f"{layer}.post_norm"]
            out[f"{stem}.mlp.router.weight"] = weights[f"{layer}.router"]
            for n in experts:
                out[f"{stem}.mlp.experts.linear_fc1.weight{n}"] = gate_up(weights, f"{layer}.experts.{n}")
                out[f"{stem}.mlp.experts.linear_fc2.weight{n}"] = weights[f"{layer}.experts.{n}.down"]
        else:
            out[f"{stem}.mlp.linear_fc1.layer_norm_weight"] = weights[f"{layer}.post_norm"]
            out[f"{stem}.mlp.linear_fc1.weight"] = gate_up(weights, str(layer))
            out[f"{stem}.mlp.linear_fc2.weight"] = weights[f"{layer}.down"]
    return out


def by_group(parts: list[Array]) -> Array:
    """Of each group its queries, then k, then v."""
    split = [part.reshape(GROUPS, -1, *part.shape[1:]) for part in parts]
    return np.concatenate([np.concatenate([part[group] for part in split]) for group in range(GROUPS)])


def written(folder: Path, weights: Mapping[str, Array], dtype: str = "bfloat16") -> str:
    """A checkpoint of one file; its folder."""
    tensors: dict[str, Raw] = {name: (NAMES[dtype], value.shape, dumping.bits(value, dtype).tobytes()) for name, value in weights.items()}
    write_safetensors(folder / "model.safetensors", tensors)
    return str(folder)


def compared(folder: Path, train: Mapping[str, Array], infer: Mapping[str, Array], **options: Any) -> Compared:
    return weights.compare([written(folder / "train", train)], [written(folder / "infer", infer)], **options)


def shaped(folder: Path, train: Mapping[str, Array], infer: Mapping[str, Array]) -> Compared:
    return structure.compare([written(folder / "train", train)], [written(folder / "infer", infer)])


def differing(told: Compared) -> dict[str, str | None]:
    return {one["canonical"]: one["kind"] for one in told.items if one["status"] != "EXACT"}


def note(told: Compared, name: str) -> str:
    return str(next(one["note"] for one in told.items if one["canonical"] == name))
