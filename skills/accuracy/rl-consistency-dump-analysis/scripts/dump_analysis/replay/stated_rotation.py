"""What a configuration states of a rotation: its base, how many pairs of columns it turns, and by which frequencies where it scales them.

Sources: transformers 5.19 modeling_rope_utils (linear, llama3, yarn), vLLM 0.32 rotary_embedding, which compute the same; the paper of
YaRN (arXiv 2309.00071). Types whose frequencies depend on the length of the prompt are not stated.
"""

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from dump_analysis.floats import Array
from dump_analysis.replay.formulas.rotary import MAGNITUDE, PAIRS, THETA, frequencies, frequency_name

_BASE = ("rope_theta", "rotary_base")
_SHARE = ("partial_rotary_factor", "rotary_pct", "rotary_percent")
_COUNT = ("rotary_dim", "rope_dim")
_LATENT = ("kv_lora_rank", "qk_rope_head_dim")  # attention that turns columns of their own
Part = Mapping[str, Any]


def base_of(part: Part) -> float | None:
    """The base of angles that are not scaled further; None where they are, or where layers have different ones."""
    rope = _rope(part)
    return None if rope is None or _kind(rope) != "default" else number(rope, *_BASE) or number(part, *_BASE)


def rotation_constants(part: Part, head: float | None) -> dict[str, float]:
    """``head``: columns of one, None: not stated."""
    rope = _rope(part)
    base = None if rope is None else number(rope, *_BASE) or number(part, *_BASE)
    if rope is None or base is None or any(part.get(key) for key in _LATENT):
        return {}
    turned, told = _turned(part, rope, head)
    if _kind(rope) == "default":
        pairs = {PAIRS: float(turned // 2)} if turned is not None and told else {}
        return {THETA: base, **pairs}
    made = _SCALED.get(_kind(rope))
    found = made(rope, part, base, turned) if made is not None and turned is not None else None
    if found is None:
        return {}
    each, magnitude = found
    own = {frequency_name(at): float(value) for at, value in enumerate(each)}
    return {THETA: base, PAIRS: float(len(each)), MAGNITUDE: magnitude, **own}


def number(part: Part, *keys: str) -> float | None:
    """The first positive number under some keys."""
    values = [part[key] for key in keys if key in part]
    numbers = [float(value) for value in values if isinstance(value, (int, float)) and not isinstance(value, bool) and value > 0]
    return numbers[0] if numbers else None


def _rope(part: Part) -> Part | None:
    """The object that holds the rotation's parameters; None where each kind of layer has one of its own."""
    rope = part.get("rope_parameters") or part.get("rope_scaling") or {}
    if not isinstance(rope, Mapping) or any(isinstance(value, Mapping) for value in rope.values()):
        return None
    return rope


def _kind(rope: Part) -> str:
    return str(rope.get("rope_type", rope.get("type", "default")))


def _turned(part: Part, rope: Part, head: float | None) -> tuple[int | None, bool]:
    """How many columns of a head are turned, and whether the configuration says so itself."""
    count = number(rope, *_COUNT) or number(part, *_COUNT)
    share = number(rope, *_SHARE) or number(part, *_SHARE)
    if count is not None:
        return int(count), True
    return (None if head is None else int(head * (share or 1.0))), share is not None


# --- scaled angles ---

Scaled = tuple[Array, float]  # frequencies [pairs], and what cos and sin are multiplied by


def _linear(rope: Part, _part: Part, base: float, turned: int) -> Scaled | None:
    factor = number(rope, "factor")
    return None if factor is None else (frequencies(base, turned // 2) / factor, 1.0)


def _llama3(rope: Part, _part: Part, base: float, turned: int) -> Scaled | None:
    """Slow pairs are slowed down by the factor, fast ones left, those between blended."""
    given = [number(rope, key) for key in ("factor", "low_freq_factor", "high_freq_factor", "original_max_position_embeddings")]
    if None in given:
        return None
    factor, low, high, length = (float(value or 0.0) for value in given)
    own = frequencies(base, turned // 2)
    turns = length * own / (2 * math.pi)  # of a pair over the original context
    smooth = np.clip((turns - low) / (high - low), 0.0, 1.0)
    return (1 - smooth) * own / factor + smooth * own, 1.0


def _yarn(rope: Part, part: Part, base: float, turned: int) -> Scaled | None:
    length = number(rope, "original_max_position_embeddings")
    longest = number(part, "max_position_embeddings")
    factor = number(rope, "factor") or (longest / length if longest and length else None)
    if length is None or factor is None:
        return None
    ends = [
        turned * math.log(length / (number(rope, key) or usual) / (2 * math.pi)) / (2 * math.log(base))
        for key, usual in (("beta_fast", 32.0), ("beta_slow", 1.0))
    ]
    first, last = (math.floor(ends[0]), math.ceil(ends[1])) if rope.get("truncate", True) else ends
    first, last = max(first, 0), min(last, turned - 1)
    slowed = np.clip((np.arange(turned // 2) - first) / (last - first or 0.001), 0.0, 1.0)
    own = frequencies(base, turned // 2)
    return slowed * own / factor + (1 - slowed) * own, _magnitude(rope, factor)


def _magnitude(rope: Part, factor: float) -> float:
    own, one, all_dim = (number(rope, key) for key in ("attention_factor", "mscale", "mscale_all_dim"))
    if own is not None:
        return own
    return _grown(factor, one) / _grown(factor, all_dim) if one and all_dim else _grown(factor, 1.0)


def _grown(factor: float, by: float) -> float:
    return 1.0 if factor <= 1 else 0.1 * by * math.log(factor) + 1.0


_SCALED: dict[str, Callable[[Part, Part, float, int], Scaled | None]] = {"linear": _linear, "llama3": _llama3, "yarn": _yarn}
