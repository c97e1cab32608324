"""The sizes of the model, its prompt, and the one set of weights that both sides hold, made by integer arithmetic alone."""

import math
import zlib

import numpy as np
import torch
from torch import Tensor

from . import arithmetic
from .switches import WINDOW, Switches

HIDDEN, HEADS, GROUPS, WIDTH, MIDDLE, VOCABULARY, TOKENS = 64, 4, 2, 16, 96, 128, 24
QUERY, KEY = HEADS * WIDTH, GROUPS * WIDTH  # channels of q, and of each of k and v
PAD_ID = 0


def weights(switches: Switches) -> dict[str, Tensor]:
    """Every weight by its boundary's name, in the stored format, of a side with these switches."""
    made = {
        "embedding.weight": _matrix("embedding", VOCABULARY, HIDDEN, 0.01953125 if switches.has("small_embeddings") else 0.0625),
        "lm_head.weight": _matrix("lm_head", VOCABULARY, HIDDEN, 0.125),
    }
    if switches.has("tied_head"):
        made["lm_head.weight"] = made["embedding.weight"]
    for layer in range(switches.layers):
        made.update(_of_layer(f"layers.{layer}", switches, layer))
    made["final_norm.weight"] = _gain("final_norm")
    if switches.has("gain_less_one"):  # exact: gains lie near 1, and their distance from it has no more digits than they
        made.update({name: arithmetic.rounded(gain.float() - 1.0) for name, gain in made.items() if name.endswith("norm.weight")})
    return made


def gain_offset(on: Switches, layer: int) -> float:
    """What the input norm of a layer adds to its gains; the other norms of the side add what it adds in a clean layer."""
    return float(on.has("gain_less_one")) + float(on.has("norm_gain_twice", layer))


def _of_layer(stem: str, switches: Switches, layer: int) -> dict[str, Tensor]:
    made = {f"{stem}.{name}.weight": _gain(f"{stem}.{name}") for name in ("input_norm", "post_norm")}
    for name, rows in (("q", QUERY), ("k", KEY), ("v", KEY)):
        sharp = 8.0 if switches.has("deep") and name != "v" else 1.0
        made[f"{stem}.{name}.weight"] = _matrix(f"{stem}.{name}", rows, HIDDEN, 0.125 * sharp)
        made[f"{stem}.{name}.bias"] = _matrix(f"{stem}.{name}.bias", rows, 1, 0.25)[:, 0].clone()
    for name in ("gate", "up"):
        made[f"{stem}.{name}.weight"] = _matrix(f"{stem}.{name}", MIDDLE, HIDDEN, 0.125)
    added = 0.5 * 1.5**layer if switches.has("deep") else 0.03125  # small, so that the stream stays small and eps matters
    for name, columns in (("o_proj", QUERY), ("down", MIDDLE)):
        made[f"{stem}.{name}.weight"] = _matrix(f"{stem}.{name}", HIDDEN, columns, added)
    if switches.has("pairs_apart"):
        for name in (f"{stem}.{one}.{kind}" for one in ("q", "k") for kind in ("weight", "bias")):
            made[name] = made[name].view(-1, 2, WIDTH // 2, *made[name].shape[1:]).transpose(1, 2).flatten(0, 2).contiguous()
    if switches.has("kv_swapped", layer):
        for kind in ("weight", "bias"):
            made[f"{stem}.k.{kind}"], made[f"{stem}.v.{kind}"] = made[f"{stem}.v.{kind}"], made[f"{stem}.k.{kind}"]
    if switches.has("updated_weight", layer):
        signs = _matrix(f"{stem}.down.update", HIDDEN, MIDDLE, 1.0).float().sign()
        made[f"{stem}.down.weight"] = arithmetic.rounded(made[f"{stem}.down.weight"].float() - signs * 2.0**-13)
    return made


def fused_qkv(made: dict[str, Tensor], layer: int, on: Switches) -> tuple[Tensor, Tensor]:
    """Weight and bias of q, k and v as one linear holds them: group by group, or in three blocks (fused_in_blocks)."""
    parts = [[made[f"layers.{layer}.{name}.{kind}"] for name in ("q", "k", "v")] for kind in ("weight", "bias")]
    if not on.has("fused_in_blocks"):
        parts = [[part for each in zip(*(one.chunk(GROUPS) for one in three), strict=True) for part in each] for three in parts]
    weight, bias = (torch.cat(each) for each in parts)
    return weight, bias


def prompt(switches: Switches) -> tuple[Tensor, Tensor]:
    """Token ids and positions of one side, int64 [padding + 24]. Padding tokens have position 1, as trainers give them."""
    ids = torch.from_numpy((_integers("prompt", TOKENS) % np.uint64(VOCABULARY - 1)).astype(np.int64)) + 1
    positions = torch.arange(TOKENS) + int(switches.has("positions_off_by_one"))
    padding = switches.padding
    return torch.cat([torch.full((padding,), PAD_ID), ids]), torch.cat([torch.full((padding,), 1), positions])


def embedding_multiplier(on: Switches) -> float | None:
    """What embeddings are multiplied by: None, or sqrt(50) in float32 (the fault) or rounded to bfloat16."""
    if on.has("embedding_multiplier"):
        return math.sqrt(50.0)
    return 7.0625 if on.has("embedding_scaled") else None


def scaled(hidden_states: Tensor, on: Switches) -> Tensor:
    """What the first layer is handed of the embeddings."""
    return (hidden_states.float() * 7.0625).to(hidden_states.dtype) if on.has("stream_scaled") else hidden_states


def attention_scale(on: Switches, layer: int) -> float:
    """What scores are multiplied by in one layer."""
    usual = 1.0 / math.sqrt(2 * WIDTH if on.has("attention_scale", layer) else WIDTH)
    return usual * 1.01 if on.has("scale_up", layer) else usual


def attention(on: Switches, layer: int, q: Tensor, k: Tensor, v: Tensor, seen: Tensor, scale: float) -> Tensor:
    """Heads of one layer by the kernel that is switched on: see `arithmetic.attention`."""
    if on.has("blocked_attention") or on.has("cut_attention"):
        return arithmetic.blocked_attention(q, k, v, seen, scale=scale, cuts=on.has("cut_attention"))
    mixed = arithmetic.attention(q, k, v, seen, scale=scale, round_probabilities=on.has("probs_rounded", layer))
    return mixed * 1.4142 if on.has("attention_scaled", layer) else mixed


def attention_mask(tokens: int, on: Switches, layer: int) -> Tensor:
    """Which keys each token sees in one layer: bool [tokens, tokens]."""
    window = None
    if on.has("window", layer):
        window = WINDOW
    if on.has("window_off_by_one", layer):
        window = WINDOW + 1
    padding = 0 if on.has("padding_left_in", layer) else on.padding
    return arithmetic.visible(tokens, padding=padding, ahead=int(on.has("mask_off_by_one", layer)), window=window)


def _gain(name: str) -> Tensor:
    return arithmetic.rounded(1.0 + _matrix(name, HIDDEN, 1, 0.125)[:, 0].float())


def _matrix(name: str, rows: int, columns: int, deviation: float) -> Tensor:
    """Values around 0 that are nearly normal: four 16-bit parts of each integer added, all exact until they are rounded as stored."""
    integers = _integers(name, rows * columns)
    parts = sum(((integers >> np.uint64(16 * at)) & np.uint64(0xFFFF)).astype(np.float64) for at in range(4))
    values = (parts - 2.0 * 65535.0) / 65536.0 * 1.75 * deviation  # the deviation of four such parts is 1 / sqrt(3)
    return arithmetic.rounded(torch.from_numpy(values.reshape(rows, columns)).float())


def _integers(name: str, count: int) -> "np.ndarray[tuple[int], np.dtype[np.uint64]]":
    """splitmix64 (Steele, Lea, Flood 2014), seeded by the name's CRC-32: uint64 [count]."""
    state = np.uint64(zlib.crc32(name.encode())) + np.arange(1, count + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    state = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    state = (state ^ (state >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    mixed: np.ndarray[tuple[int], np.dtype[np.uint64]] = state ^ (state >> np.uint64(31))
    return mixed
