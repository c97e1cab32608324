"""What a configuration file states of rotation and attention: heads, scale, window, cap and base.

Keys are those of transformers' config.json and of Megatron's provider; a window is stated for each layer where the kinds of the layers
are, as ``attention_window.<layer>``, infinite for a layer without one.
"""

from collections.abc import Mapping
from typing import Any

from dump_analysis.replay.stated_rotation import base_of, number, rotation_constants

_HEAD = ("head_dim", "kv_channels")
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
    found = {"head_dim": _head(part), "attention_scale": _scale(part), "attention_soft_cap": _soft_cap(part)}
    known = {name: value for name, value in found.items() if value is not None}
    return known | rotation_constants(part, _head(part)) | _windows(part)


def window_of(stated: Mapping[str, float], layer: str) -> float | None:
    """The window that is stated for a layer."""
    return stated.get(f"attention_window.{layer}", stated.get("attention_window"))


def with_window(stated: Mapping[str, float], layer: str) -> dict[str, float]:
    """What is stated, with the window of a layer as that of attention."""
    window = window_of(stated, layer)
    return {**stated, **({"attention_window": window} if window is not None else {})}


def _head(part: Mapping[str, Any]) -> float | None:
    own = number(part, *_HEAD)
    hidden, heads = number(part, "hidden_size"), number(part, "num_attention_heads")
    if own is not None or hidden is None or heads is None:
        return own
    return hidden / heads if hidden % heads == 0 else None


def _scale(part: Mapping[str, Any]) -> float | None:
    """What is written, else one over the root of the head's width: but for latent attention and scaled angles, which change it."""
    scalar, multiplier = number(part, "query_pre_attn_scalar"), number(part, "attention_multiplier", "softmax_scale")
    if scalar is not None or multiplier is not None:
        return scalar**-0.5 if scalar is not None else multiplier
    width = _head(part)
    plain = width is not None and not any(part.get(key) for key in ("kv_lora_rank", "qk_rope_head_dim", "rope_scaling"))
    return width**-0.5 if plain and width is not None and base_of(part) is not None else None


def _soft_cap(part: Mapping[str, Any]) -> float | None:
    """None is stated, too: a model that knows the key and has no cap."""
    if "attn_logit_softcapping" not in part:
        return None
    return number(part, "attn_logit_softcapping") or _NONE


def _windows(part: Mapping[str, Any]) -> dict[str, float]:
    kinds, window = part.get("layer_types"), number(part, "sliding_window")
    if not isinstance(kinds, list):
        of_some_layers = part.get("use_sliding_window") is False or any(key in part for key in _OF_SOME_LAYERS)
        return {} if "sliding_window" not in part or of_some_layers else {"attention_window": window if window is not None else _NONE}
    if window is None and _SLIDING in kinds:
        return {}
    return {f"attention_window.{layer}": window if kind == _SLIDING and window is not None else _NONE for layer, kind in enumerate(kinds)}
