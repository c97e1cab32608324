"""The sizes of a model, from its configuration as transformers, Megatron or an engine spells it."""

from typing import Any, Dict, NamedTuple, Optional, Sequence, Tuple

from msprobe_files.errors import DumpError

_NESTED = ("text_config", "llm_config", "language_config", "thinker_config", "language_model")
_BYTES = {"float64": 8, "float32": 4, "float16": 2, "bfloat16": 2, "half": 2, "float": 4}
_WIDEST = 4  # of a configuration that names no dtype: transformers' own default is float32
_SPELLINGS: Dict[str, Tuple[str, ...]] = {
    "hidden": ("hidden_size", "n_embd", "d_model", "model_dim"),
    "layers": ("num_hidden_layers", "num_layers", "n_layer", "n_layers"),
    "width": ("intermediate_size", "ffn_hidden_size", "n_inner", "ffn_dim", "d_ff"),
    "heads": ("num_attention_heads", "n_head", "n_heads", "num_heads"),
    "kv_heads": ("num_key_value_heads", "num_kv_heads", "num_query_groups", "multi_query_group_num", "n_head_kv"),
    "head_dim": ("head_dim", "kv_channels", "attention_head_dim"),
    "vocab": ("vocab_size", "padded_vocab_size"),
    "experts": ("num_experts", "num_local_experts", "n_routed_experts", "num_moe_experts"),
    "experts_per_token": ("num_experts_per_tok", "moe_router_topk", "num_experts_per_token", "moe_topk", "moe_k"),
    "expert_width": ("moe_intermediate_size", "moe_ffn_hidden_size"),
    "shared_width": ("shared_expert_intermediate_size", "moe_shared_expert_intermediate_size"),
    "shared_experts": ("n_shared_experts", "num_shared_experts"),
    "dense_layers": ("first_k_dense_replace", "num_dense_layers"),
    "q_rank": ("q_lora_rank",),
    "kv_rank": ("kv_lora_rank",),
    "rope_dim": ("qk_rope_head_dim", "qk_pos_emb_head_dim"),
    "nope_dim": ("qk_nope_head_dim", "qk_head_dim"),
    "value_dim": ("v_head_dim",),
}


class Shape(NamedTuple):
    """Sizes in elements, ``itemsize`` in bytes. 0: the model has none of it (experts, latent attention).

    ``dtype_stated`` False: ``itemsize`` is the widest that is usual. ``fp8``: the weights are quantised to it.
    """

    hidden: int
    layers: int
    width: int
    heads: int
    kv_heads: int
    head_dim: int
    vocab: int
    itemsize: int
    dtype_stated: bool
    fp8: bool
    experts: int
    experts_per_token: int
    expert_width: int
    shared_width: int
    dense_layers: int
    q_rank: int
    kv_rank: int
    rope_dim: int
    nope_dim: int
    value_dim: int


def shape_of(config: Dict[str, Any]) -> Shape:
    """The sizes that a configuration states. Raises DumpError, naming the spellings looked for, where one is missing."""
    text = _text_part(config)
    hidden, heads = _needed(text, "hidden"), _needed(text, "heads")
    experts = _stated(text, "experts") or 0
    width = (_stated(text, "width") or 0) if experts else (_stated(text, "width") or 4 * hidden)  # GPT-2 states none
    expert_width = (_stated(text, "expert_width") or width) if experts else 0
    shared = _stated(text, "shared_width") or (_stated(text, "shared_experts") or 0) * expert_width
    itemsize = _itemsize(text, config)
    kv_rank = _stated(text, "kv_rank") or 0
    nope = (_stated(text, "nope_dim") or 0) if kv_rank else 0
    return Shape(
        hidden=hidden,
        layers=_needed(text, "layers"),
        width=width,
        heads=heads,
        kv_heads=_stated(text, "kv_heads") or (1 if text.get("multi_query") is True else heads),
        head_dim=_stated(text, "head_dim") or hidden // heads,
        vocab=_needed(text, "vocab"),
        itemsize=itemsize or _WIDEST,
        dtype_stated=itemsize is not None,
        fp8=_is_fp8(config) or _is_fp8(text),
        experts=experts,
        experts_per_token=(_stated(text, "experts_per_token") or 1) if experts else 0,
        expert_width=expert_width,
        shared_width=shared if experts else 0,
        dense_layers=(_stated(text, "dense_layers") or 0) if experts else 0,
        q_rank=(_stated(text, "q_rank") or 0) if kv_rank else 0,
        kv_rank=kv_rank,
        rope_dim=(_stated(text, "rope_dim") or 0) if kv_rank else 0,
        nope_dim=nope,
        value_dim=(_stated(text, "value_dim") or nope) if kv_rank else 0,
    )


def _text_part(config: Dict[str, Any]) -> Dict[str, Any]:
    """A model of several modes keeps its language model's sizes in a part of its own."""
    if any(config.get(key) is not None for key in _SPELLINGS["hidden"]):
        return config
    for key in _NESTED:
        part = config.get(key)
        if isinstance(part, dict):
            return _text_part(part)
    return config


def _needed(config: Dict[str, Any], name: str) -> int:
    value, keys = _stated(config, name), ", ".join(_SPELLINGS[name])
    if value is None:
        raise DumpError("Cannot estimate the dump: the model's configuration has none of %s. Give the model's config.json." % keys)
    if value < 1:
        raise DumpError("Cannot estimate the dump: %s is %d, expected at least 1. Mend the model's configuration." % (keys, value))
    return value


def _stated(config: Dict[str, Any], name: str) -> Optional[int]:
    return _first(config, _SPELLINGS[name])


def _first(config: Dict[str, Any], keys: Sequence[str]) -> Optional[int]:
    for key in keys:
        value = config.get(key)
        if isinstance(value, list) and value and all(isinstance(item, int) for item in value):
            value = max(value)  # per layer: the largest bounds them
        if value is None:
            continue
        if not isinstance(value, int) or isinstance(value, bool) or value < 0 or value > 1 << 40:
            raise DumpError("Cannot estimate the dump: %s is %r, expected a count. Mend the model's configuration." % (key, value))
        return value
    return None


def _itemsize(*configs: Dict[str, Any]) -> Optional[int]:
    for config in configs:
        for key in ("torch_dtype", "dtype", "params_dtype"):
            name = config.get(key)
            if isinstance(name, str):
                return _BYTES.get(name.rpartition(".")[2])
    return None


def _is_fp8(config: Dict[str, Any]) -> bool:
    quantised = config.get("quantization_config")
    method = quantised.get("quant_method") if isinstance(quantised, dict) else None
    return (isinstance(method, str) and "fp8" in method.lower()) or bool(config.get("fp8"))
