"""Attention and sizes that follow from others: heads, projections, the window, the scale of the logits, the padded vocabulary."""

import math
from typing import Any, Callable, Dict, List, Optional

from .configs import MEGATRON, Config
from .models import full_every, implied, model_type
from .readings import DEFAULT, NOWHERE, NULL, SET, UNSTATED, Reading, as_float32, default, first, keys_of, of_value, together, value_of
from .rotary import is_mla, softmax_factors

_HEADS = ("num_attention_heads", "n_head")
_LARGEST, _MOST_LAYERS = 1 << 40, 1 << 16  # beyond what any model has: a broken file is not multiplied out
_LAYERS = ("num_hidden_layers", "num_layers", "n_layer")


def count(config: Config, *names: str) -> Optional[int]:
    """A size; None where it is not stated as a whole number that a model could have."""
    value = value_of(config, *names)
    return value if _is_size(value) else None


def _is_size(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 < value <= _LARGEST


def layers(config: Config) -> Optional[int]:
    """How many layers there are; None where no model has so many."""
    found = count(config, *_LAYERS)
    return found if found and found <= _MOST_LAYERS else None


def _or_else(names: str, fallback: Callable[[Config], Any], note: str) -> Callable[[Config], Reading]:
    """A field whose missing or null value follows from another one."""

    def read(config: Config) -> Reading:
        place = first(config, names.split())
        if place and place[1] is not None:
            return of_value(place[0], place[1], place[1])
        value = fallback(config)
        if value is None:
            return of_value(place[0], None, UNSTATED) if place else NOWHERE
        if place:
            return Reading((place[0],), None, NULL, value, note)
        return Reading((), value, DEFAULT, value, note)

    return read


def _per_head(config: Config) -> Optional[int]:
    hidden, heads = count(config, "hidden_size", "n_embd"), count(config, *_HEADS)
    return hidden // heads if hidden and heads else None


def _ffn_fallback(config: Config) -> Optional[int]:
    hidden = count(config, "hidden_size")
    return 4 * hidden if hidden and config.dialect == MEGATRON else None


_kv_heads = _or_else("num_key_value_heads num_query_groups", lambda config: count(config, *_HEADS), "not given: as many as heads")
_head_dim = _or_else("head_dim kv_channels", _per_head, "not given: hidden_size / num_attention_heads")
ffn_dim = _or_else("intermediate_size ffn_hidden_size n_inner", _ffn_fallback, "null: Megatron takes 4 x hidden_size")


def head_dim(config: Config) -> Reading:
    """The width of a head; latent attention has widths of its own instead."""
    return NOWHERE if is_mla(config) else _head_dim(config)


def _qkv_rows(config: Config) -> Reading:
    """Rows of the joined q, k, v projection: (heads + 2 · kv heads) · head_dim, and the gate's where queries are gated."""
    heads, groups, width = count(config, *_HEADS), _kv_heads(config).meaning, head_dim(config).meaning
    if not heads or not _is_size(groups) or not _is_size(width):
        return NOWHERE
    gated = value_of(config, "attn_output_gate", "attention_output_gate")
    rows = (heads * (2 if gated else 1) + 2 * groups) * width
    return Reading((), rows, DEFAULT, rows, "computed: (heads + 2 x kv heads) x head_dim")


def _rotary_width(config: Config) -> Reading:
    """How many channels of a head are rotated."""
    width = head_dim(config).meaning
    share = value_of(config, "rope_parameters.partial_rotary_factor", "partial_rotary_factor", "rotary_pct", "rotary_percent")
    if not _is_size(width) or not (share is None or (isinstance(share, (int, float)) and 0 <= share <= 1)):
        return NOWHERE
    rotated = int(width * (1.0 if share is None else share))
    return Reading((), rotated, DEFAULT, rotated, "computed: head_dim x the rotated share")


def _scale(config: Config) -> Reading:
    """What q·k is multiplied by: its own field, else 1/sqrt(width of a head) times YaRN's factor. Compared in float32."""
    for name, power in (("softmax_scale", 1.0), ("attention_multiplier", 1.0), ("query_pre_attn_scalar", -0.5)):
        place = first(config, (name,))
        if place and isinstance(place[1], (int, float)) and 0 < place[1] < _LARGEST:
            return of_value(place[0], place[1], as_float32(float(place[1]) ** power))
    width = head_dim(config).meaning
    if is_mla(config):
        nope, rope = count(config, "qk_nope_head_dim", "qk_head_dim"), count(config, "qk_rope_head_dim", "qk_pos_emb_head_dim")
        width = nope + rope if nope and rope else None
    if not _is_size(width):
        return NOWHERE
    keys = keys_of(config, "softmax_scale")
    scales = tuple(as_float32(factor / math.sqrt(width)) for factor in softmax_factors(config))
    note = "computed: YaRN's factor / sqrt(%d) = %s" % (width, " or ".join("%.6g" % scale for scale in scales))
    return Reading(keys, None, NULL if keys else DEFAULT, scales[0] if len(scales) == 1 else scales, note)


def _bias(config: Config) -> Reading:
    """The bias of q, k and v. Megatron builds it where ``add_qkv_bias`` or ``add_bias_linear`` is set (SelfAttention.linear_qkv)."""
    keys = keys_of(config, "add_qkv_bias", "add_bias_linear")
    own = first(config, ("add_qkv_bias",))
    if config.dialect == MEGATRON and own:
        if not own[1] and value_of(config, "add_bias_linear"):
            return Reading(keys, together(config, "add_qkv_bias", "add_bias_linear"), SET, True, "add_bias_linear gives it")
        return of_value(own[0], own[1], bool(own[1]))
    place = first(config, ("attention_bias", "qkv_bias", "add_qkv_bias"))
    if place:
        return of_value(place[0], place[1], bool(place[1]))
    known, value = implied(config, "attn_bias")
    return default(value, "implied by model_type %s" % model_type(config)) if known else NOWHERE


def window(config: Config) -> Reading:
    """How many tokens a query sees, itself included; None for all.

    transformers counts the token itself; Megatron's (left, right) does not (its flash attention convention), so W is (W-1, 0).
    """
    place = first(config, ("window_size",))
    if config.dialect == MEGATRON and place:
        size = place[1]
        if isinstance(size, list) and len(size) == 2 and all(isinstance(side, int) for side in size):
            wide = size[0] + 1 if size[0] >= 0 else None
            meaning = wide if size[1] == 0 or wide is None else [wide, size[1]]
            return of_value(place[0], size, meaning, None if wide is None else "left, without the token itself: it sees %d" % wide)
        return of_value(place[0], size, None if size is None else UNSTATED)
    place = first(config, ("sliding_window",))
    if not place:
        return default(None) if config.dialect != MEGATRON else NOWHERE
    if place[1] is None:
        return of_value(place[0], None, None)
    keys = (*keys_of(config, "use_sliding_window"), place[0])
    if value_of(config, "use_sliding_window") is False:
        return Reading(keys, place[1], SET, None, "use_sliding_window is false: off")
    return Reading(keys, place[1], SET, place[1], "counts the token itself; no effect on prompts of at most that many tokens")


def _window_layers(config: Config) -> Reading:
    """Which layers see the window only, as a list of 0 and 1."""
    number = layers(config)
    if window(config).meaning in (None, UNSTATED) or not number:
        return NOWHERE
    kinds = first(config, ("layer_types",))
    if kinds and isinstance(kinds[1], list):
        return of_value(kinds[0], kinds[1], [int("sliding" in str(kind)) for kind in kinds[1]])
    skip, below = first(config, ("window_attn_skip_freq",)), first(config, ("max_window_layers",))
    if skip and config.dialect == MEGATRON:
        return of_value(skip[0], skip[1], _skipped(skip[1], number))
    if below and isinstance(below[1], int):
        return of_value(below[0], below[1], [int(layer >= below[1]) for layer in range(number)], "layers from this one on have the window")
    every = first(config, ("sliding_window_pattern", "_sliding_window_pattern"))
    if every and _is_size(every[1]):
        return of_value(every[0], every[1], _skipped(every[1], number), "every so many layers one without the window")
    known = None if config.dialect == MEGATRON else full_every(config)
    if known is not None:
        return default(
            _skipped(known, number), "implied by model_type %s: one layer in %d without the window" % (model_type(config), known)
        )
    return default([1] * number, "no field says which layers: all")


def _skipped(frequency: Any, number: int) -> Any:
    """megatron-core counts layers from 1: every n-th is without the window; a list says 1 for a layer with it."""
    if isinstance(frequency, list):
        return [int(bool(one)) for one in frequency]
    if isinstance(frequency, int) and frequency > 0:
        return [int((layer + 1) % frequency != 0) for layer in range(number)]
    return [1] * number if frequency is None else UNSTATED


def _padded_vocab(config: Config) -> Reading:
    """Rows of the embedding with their padding: vLLM and SGLang fill up to 64, Megatron as its provider says."""
    stated = first(config, ("padded_vocab_size",))
    if stated:
        return of_value(stated[0], stated[1], stated[1])
    size = count(config, "vocab_size")
    if not size:
        return NOWHERE
    keys: List[str] = []
    step = 64
    if config.dialect == MEGATRON:
        keys = list(keys_of(config, "should_pad_vocab", "make_vocab_size_divisible_by"))
        if not keys:
            return NOWHERE
        tensor = count(config, "tensor_model_parallel_size") or 1
        step = (count(config, "make_vocab_size_divisible_by") or 128) * tensor if value_of(config, "should_pad_vocab") else 1
    rows = -(-size // step) * step
    return Reading(tuple(keys), rows, DEFAULT, rows, "computed")


COMPUTED: Dict[str, Callable[[Config], Reading]] = {
    "num_kv_heads": lambda config: NOWHERE if is_mla(config) else _kv_heads(config),
    "ffn_dim": ffn_dim,
    "attn_bias": _bias,
    "head_dim": head_dim,
    "qkv_out_dim": _qkv_rows,
    "rotary_dim": _rotary_width,
    "softmax_scale": _scale,
    "sliding_window": window,
    "window_layers": _window_layers,
    "padded_vocab": _padded_vocab,
}
