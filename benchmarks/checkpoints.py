"""Two generated checkpoints of one model, under a trainer's and an engine's names, for the check of parameters (stage 5 of the collection).

A trainer's shards (Megatron's names: q, k and v of each group together, gate above up) against an engine's (transformers' names,
everything apart), a layer a shard: the shapes of a 7B model, with fewer layers and a vocabulary that grows with them.
"""

import json
import struct
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
from bits import Bits, draw, nearest, plant, wide

ROOT = Path(__file__).resolve().parent.parent
COMMAND = ROOT / "skills/accuracy/rl-prefill-consistency-dump/scripts/param_align_check.py"
Kind = Literal["equal", "sparse", "dense"]
KINDS: tuple[Kind, ...] = ("equal", "sparse", "dense")
ENDS: tuple[Kind, ...] = ("equal", "dense")
EXPECTED = {"sparse": "one_ulp", "dense": "small_update"}  # the kind of difference that is planted
_STEP = 2.0**-9  # of an optimizer: two spacings of the larger half of the values


class Size(NamedTuple):
    """``words`` rows of embedding and head; attention of ``heads`` · ``width``, with ``groups`` of keys."""

    layers: int
    hidden: int
    middle: int
    heads: int
    groups: int
    width: int
    words: int


SEVEN_B = Size(layers=1, hidden=4096, middle=11008, heads=32, groups=32, width=128, words=21000)
TINY = Size(layers=1, hidden=64, middle=96, heads=4, groups=2, width=16, words=128)
SMALL = Size(layers=2, hidden=512, middle=1024, heads=8, groups=2, width=64, words=1000)


def of_layers(layers: int) -> Size:
    """0.75 GB a layer: as many rows of vocabulary with each."""
    return SEVEN_B._replace(layers=layers, words=layers * SEVEN_B.words)


class Parts(NamedTuple):
    """The weights of one shard by canonical name; bfloat16 bits."""

    layer: int | None
    weights: dict[str, Bits]


def shapes(size: Size, layer: int | None) -> dict[str, tuple[int, ...]]:
    """Of a layer, or of what stands outside all."""
    if layer is None:
        outside = {"embedding": (size.words, size.hidden), "lm_head": (size.words, size.hidden)}
        return {**outside, "final_norm": (size.hidden,)}
    rows = {
        "q": size.heads * size.width,
        "k": size.groups * size.width,
        "v": size.groups * size.width,
        "gate": size.middle,
        "up": size.middle,
    }
    wide_ones = {"o": (size.hidden, size.heads * size.width), "down": (size.hidden, size.middle)}
    norms = {"input_norm": (size.hidden,), "post_norm": (size.hidden,)}
    return {**{name: (count, size.hidden) for name, count in rows.items()}, **wide_ones, **norms}


def names(size: Size) -> Iterator[str]:
    """Canonical names of all weights, in one order."""
    for layer in (None, *range(size.layers)):
        stem = "" if layer is None else f"layers.{layer}."
        yield from (f"{stem}{name}.weight" for name in shapes(size, layer))


def differs(size: Size, kind: Kind) -> set[str]:
    """The weights in which an engine's side of this kind differs."""
    every = list(names(size))
    return {name for at, name in enumerate(every) if kind == "dense" or (kind == "sparse" and at % 3 == 1)}


def made(size: Size, layer: int | None, kind: Kind, *, engine: bool) -> Parts:
    """The values of a shard; those of an engine with what is planted."""
    every, touched = list(names(size)), differs(size, kind) if engine else set()
    found = {}
    for name, shape in shapes(size, layer).items():
        canonical = f"{name}.weight" if layer is None else f"layers.{layer}.{name}.weight"
        number = every.index(canonical)
        values = draw(np.random.default_rng([1, number]), shape)
        found[name] = _changed(values, kind, number) if canonical in touched else values
    return Parts(layer, found)


def _changed(values: Bits, kind: Kind, number: int) -> Bits:
    lots = np.random.default_rng([2, number])
    if kind == "sparse":
        return plant(lots, values, dense=False)[1]
    moved = np.empty_like(values)
    for row, old in enumerate(values.reshape(-1, values.shape[-1])):
        signs = lots.integers(0, 2, old.shape, np.int8).astype(np.float32) * 2 - 1
        moved.reshape(-1, values.shape[-1])[row] = nearest(wide(old) + np.float32(_STEP) * signs)
    return moved


# --- layouts ---


def trainers(size: Size, parts: Parts) -> dict[str, list[Bits]]:
    """Megatron's names; each weight as the stretches that are written one after the other."""
    w = parts.weights
    if parts.layer is None:
        return {
            "embedding.word_embeddings.weight": [w["embedding"]], "output_layer.weight": [w["lm_head"]],
            "decoder.final_layernorm.weight": [w["final_norm"]],
        }  # fmt: skip
    stem = f"decoder.layers.{parts.layer}"
    split = [w[name].reshape(size.groups, -1, size.hidden) for name in "qkv"]
    return {
        f"{stem}.self_attention.linear_qkv.weight": [part[group] for group in range(size.groups) for part in split],
        f"{stem}.self_attention.linear_qkv.layer_norm_weight": [w["input_norm"]],
        f"{stem}.self_attention.linear_proj.weight": [w["o"]],
        f"{stem}.mlp.linear_fc1.layer_norm_weight": [w["post_norm"]],
        f"{stem}.mlp.linear_fc1.weight": [w["gate"], w["up"]],
        f"{stem}.mlp.linear_fc2.weight": [w["down"]],
    }


def engines(parts: Parts) -> dict[str, list[Bits]]:
    """transformers' names."""
    if parts.layer is None:
        usual = {"embedding": "model.embed_tokens", "lm_head": "lm_head", "final_norm": "model.norm"}
        return {f"{usual[name]}.weight": [value] for name, value in parts.weights.items()}
    usual = {name: f"self_attn.{name}_proj" for name in "qkvo"} | {name: f"mlp.{name}_proj" for name in ("gate", "up", "down")}
    usual |= {"input_norm": "input_layernorm", "post_norm": "post_attention_layernorm"}
    return {f"model.layers.{parts.layer}.{usual[name]}.weight": [value] for name, value in parts.weights.items()}


# --- files ---


class Checkpoints(NamedTuple):
    """A pair on disk."""

    folder: Path
    size: Size
    kind: Kind

    @property
    def infer(self) -> Path:
        return self.folder / f"checkpoint-{self.kind}"

    @property
    def train(self) -> Path:
        return self.folder / "checkpoint-train"

    @property
    def report(self) -> Path:
        return self.infer / "param_alignment_report.json"

    def files(self) -> list[str]:
        return sorted(str(path) for folder in (self.train, self.infer) for path in folder.glob("*.safetensors"))

    def command(self) -> list[str]:
        """As users call it."""
        configurations = [part for side in ("train", "infer") for part in (f"--{side}-cfg", str(self.infer / f"{side}.json"))]
        weights = ["--train-weights", str(self.train), "--infer-weights", str(self.infer), "--workdir", str(self.infer)]
        return [sys.executable, str(COMMAND), *configurations, *weights]

    def wrong(self) -> str:
        """What the report says otherwise than was planted; empty where nothing."""
        items = json.loads(self.report.read_text())["items"]
        found = {item["canonical"]: item["kind"] for item in items if item["priority"] == "weight" and item["status"] != "EXACT"}
        compared = {item["canonical"] for item in items if item["priority"] == "weight"}
        expected = dict.fromkeys(differs(self.size, self.kind), EXPECTED.get(self.kind))
        if compared != set(names(self.size)):
            return f"{sorted(compared ^ set(names(self.size)))[:4]} are compared on one side only"
        wrong = {name: (found.get(name), expected.get(name)) for name in {*found, *expected} if found.get(name) != expected.get(name)}
        return f"found and planted differ: {dict(list(wrong.items())[:4])}" if wrong else ""


def write_train(folder: Path, size: Size) -> None:
    """The trainer's side."""
    for at, layer in enumerate((None, *range(size.layers))):
        _write(folder / "checkpoint-train" / f"model-{at}.safetensors", trainers(size, made(size, layer, "equal", engine=False)))


def make(folder: Path, size: Size, kind: Kind) -> Checkpoints:
    """The engine's side beside the trainer's, and both configurations."""
    pair = Checkpoints(folder, size, kind)
    for at, layer in enumerate((None, *range(size.layers))):
        _write(pair.infer / f"model-{at}.safetensors", engines(made(size, layer, kind, engine=True)))
    (pair.infer / "train.json").write_text(json.dumps({"num_layers": size.layers, "num_query_groups": size.groups}))
    (pair.infer / "infer.json").write_text(json.dumps({"num_hidden_layers": size.layers, "num_key_value_heads": size.groups}))
    return pair


def _write(path: Path, tensors: dict[str, list[Bits]]) -> None:
    """A safetensors file, piece by piece (https://github.com/huggingface/safetensors#format)."""
    path.parent.mkdir(parents=True, exist_ok=True)
    header: dict[str, Any] = {}
    end = 0
    for name, pieces in tensors.items():
        shape = [sum(len(piece) for piece in pieces), *pieces[0].shape[1:]]
        start, end = end, end + sum(piece.nbytes for piece in pieces)
        header[name] = {"dtype": "BF16", "shape": shape, "data_offsets": [start, end]}
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with path.open("wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for pieces in tensors.values():
            for piece in pieces:
                file.write(np.ascontiguousarray(piece).data)
