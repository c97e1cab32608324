"""What a configuration states of a rotation: its base, how many pairs of columns it turns, and by which frequencies where it scales them.

Where they depend on the length of the prompt, what holds up to ``rope_length`` tokens is stated as it is and what holds beyond under
names that begin with ``beyond.``: `at_length` picks. Sources: transformers 5.19 and 4.57 modeling_rope_utils (linear, llama3, yarn,
dynamic, longrope, which was called su), vLLM 0.32 rotary_embedding, which computes the same but picks by the longest prompt that it
serves; the papers of YaRN (arXiv 2309.00071) and LongRoPE (arXiv 2402.13753).
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
LENGTH, FACTOR, BEYOND = "rope_length", "rope_factor", "beyond."
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
    by_length = _BY_LENGTH.get(_kind(rope))
    if by_length is not None:
        return {} if turned is None else by_length(rope, part, base, turned)
    made = _SCALED.get(_kind(rope))
    found = made(rope, part, base, turned) if made is not None and turned is not None else None
    if found is None:
        return {}
    return {THETA: base, **_named(*found)}


def _named(frequencies: Array, magnitude: float) -> dict[str, float]:
    own = {frequency_name(at): float(value) for at, value in enumerate(frequencies)}
    return {PAIRS: float(len(frequencies)), MAGNITUDE: magnitude, **own}


def at_length(stated: Mapping[str, float], tokens: int) -> dict[str, float]:
    """What is stated for a prompt of so many tokens."""
    found = {name: value for name, value in stated.items() if not name.startswith(BEYOND)}
    length = found.pop(LENGTH, math.inf)
    return found if tokens <= length else found | _beyond(stated, tokens)


def at_other_length(stated: Mapping[str, float], tokens: int) -> dict[str, float]:
    """The frequencies of the other of two sets, that a program uses which picks by the longest prompt that it serves; none: no such."""
    beyond = _stripped(stated)
    if FACTOR in beyond:
        return {}
    return beyond if tokens <= stated.get(LENGTH, 0.0) else {name: stated[name] for name in beyond}


def _stripped(stated: Mapping[str, float]) -> dict[str, float]:
    return {name.removeprefix(BEYOND): value for name, value in stated.items() if name.startswith(BEYOND)}


def _beyond(stated: Mapping[str, float], tokens: int) -> dict[str, float]:
    found = _stripped(stated)
    factor, turned = found.pop(FACTOR, None), 2 * stated[PAIRS]
    if factor is None:
        return found
    return {THETA: stated[THETA] * (factor * tokens / stated[LENGTH] - (factor - 1)) ** (turned / (turned - 2))}


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


# --- angles that are scaled by the length of the prompt ---


def _dynamic(rope: Part, part: Part, base: float, turned: int) -> dict[str, float]:
    """A base that grows with what a prompt is longer than the model's longest; ``alpha`` is one growth for all lengths."""
    alpha, factor, length = number(rope, "alpha"), number(rope, "factor"), number(part, "max_position_embeddings")
    pairs = {PAIRS: float(turned // 2)}
    if turned <= 2 or (alpha is None and None in (factor, length)):
        return {}
    if alpha is not None:
        return {THETA: base * alpha ** (turned / (turned - 2)), **pairs}
    assert factor is not None
    assert length is not None
    return {THETA: base, **pairs, LENGTH: length, BEYOND + FACTOR: factor}


def _long(rope: Part, part: Part, base: float, turned: int) -> dict[str, float]:
    """Each frequency is divided by a factor of its own, of one list up to the length of training and of another beyond."""
    longest = number(part, "max_position_embeddings")
    length = number(part, *_TRAINED) or number(rope, *_TRAINED) or longest
    lists = [found for key in ("short_factor", "long_factor") if (found := _numbers(rope.get(key), turned // 2)) is not None]
    if length is None or longest is None or length <= 1 or len(lists) < 2:
        return {}
    factor = number(rope, "factor")
    if factor is not None and number(part, *_TRAINED) is not None and factor != longest / length:
        return {}  # transformers 4 takes the ratio, 5 the factor
    own = number(rope, "attention_factor") or _of_training(factor or longest / length, length)
    magnitudes = [number(rope, key) or own for key in ("short_mscale", "long_mscale")]
    plain = frequencies(base, turned // 2)
    short, far = (_named(plain / each, own) for each, own in zip(lists, magnitudes, strict=True))
    return {**short, LENGTH: length, **{f"{BEYOND}{name}": value for name, value in far.items()}}


def _of_training(factor: float, length: float) -> float:
    return 1.0 if factor <= 1 else math.sqrt(1 + math.log(factor) / math.log(length))


def _numbers(values: Any, count: int) -> Array | None:
    """A list of so many positive numbers."""
    if not isinstance(values, list) or len(values) != count:
        return None
    good = all(isinstance(value, (int, float)) and not isinstance(value, bool) and value > 0 for value in values)
    return np.array(values, np.float64) if good else None


_TRAINED = ("original_max_position_embeddings",)
_BY_LENGTH: dict[str, Callable[[Part, Part, float, int], dict[str, float]]] = {"dynamic": _dynamic, "longrope": _long, "su": _long}
