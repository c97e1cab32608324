"""What a configuration file states of rotation and attention: heads, scale, window, cap and base.

Keys are those of transformers' config.json and of Megatron's provider; a window is stated for each layer where the kinds of the layers
are, as ``attention_window.<layer>``, infinite for a layer without one.
"""

from collections.abc import Mapping
from typing import Any

_HEAD = ("head_dim", "kv_channels")
_BASE = ("rope_theta", "rotary_base")
_SLIDING = "sliding_attention"
_NONE = float("inf")
# What configurations hold of models whose window is that of some layers, where they do not list which.
_OF_SOME_LAYERS = (
    "max_window_layers",
    "sliding_window_pattern",
    "_sliding_window_pattern",
    "attn_logit_softcapping",
    "cache_implementation",
)


def attention_constants(part: Mapping[str, Any]) -> dict[str, float]:
    """The constants that one object of a configuration states."""
    found = {"head_dim": _head(part), "attention_scale": _scale(part), "rope_theta": _base(part)}
    found["attention_soft_cap"] = _soft_cap(part)
    known = {name: value for name, value in found.items() if value is not None}
    return known | _windows(part)


def window_of(stated: Mapping[str, float], layer: str) -> float | None:
    """The window that is stated for a layer."""
    return stated.get(f"attention_window.{layer}", stated.get("attention_window"))


def _number(part: Mapping[str, Any], *keys: str) -> float | None:
    values = [part[key] for key in keys if key in part]
    numbers = [float(value) for value in values if isinstance(value, (int, float)) and not isinstance(value, bool) and value > 0]
    return numbers[0] if numbers else None


def _head(part: Mapping[str, Any]) -> float | None:
    own = _number(part, *_HEAD)
    hidden, heads = _number(part, "hidden_size"), _number(part, "num_attention_heads")
    if own is not None or hidden is None or heads is None:
        return own
    return hidden / heads if hidden % heads == 0 else None


def _scale(part: Mapping[str, Any]) -> float | None:
    """What is written, else one over the root of the head's width: but for latent attention and scaled angles, which change it."""
    scalar, multiplier = _number(part, "query_pre_attn_scalar"), _number(part, "attention_multiplier", "softmax_scale")
    if scalar is not None or multiplier is not None:
        return scalar**-0.5 if scalar is not None else multiplier
    width = _head(part)
    plain = width is not None and not any(part.get(key) for key in ("kv_lora_rank", "qk_rope_head_dim", "rope_scaling"))
    return width**-0.5 if plain and width is not None and _base(part) is not None else None


def _soft_cap(part: Mapping[str, Any]) -> float | None:
    """None is stated, too: a model that knows the key and has no cap."""
    if "attn_logit_softcapping" not in part:
        return None
    return _number(part, "attn_logit_softcapping") or _NONE


def _base(part: Mapping[str, Any]) -> float | None:
    """None where angles are scaled further, or where layers have different bases."""
    rope = part.get("rope_parameters") or part.get("rope_scaling") or {}
    if not isinstance(rope, Mapping) or rope.get("rope_type", rope.get("type", "default")) != "default":
        return None
    if any(isinstance(value, Mapping) for value in rope.values()):
        return None
    return _number(rope, *_BASE) or _number(part, *_BASE)


def _windows(part: Mapping[str, Any]) -> dict[str, float]:
    kinds, window = part.get("layer_types"), _number(part, "sliding_window")
    if not isinstance(kinds, list):
        of_some_layers = part.get("use_sliding_window") is False or any(key in part for key in _OF_SOME_LAYERS)
        return {} if "sliding_window" not in part or of_some_layers else {"attention_window": window if window is not None else _NONE}
    if window is None and _SLIDING in kinds:
        return {}
    return {f"attention_window.{layer}": window if kind == _SLIDING and window is not None else _NONE for layer, kind in enumerate(kinds)}
