"""Constants that a configuration file states: config.json of transformers, or the provider's JSON of a trainer."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dump_analysis.artefacts import io
from dump_analysis.replay.stated_attention import attention_constants

# constant -> the keys under which configurations state it
_KEYS = {
    "eps": ("rms_norm_eps", "layer_norm_eps", "layer_norm_epsilon", "layernorm_epsilon", "norm_eps", "norm_epsilon", "rms_norm_epsilon"),
    "top_k": ("num_experts_per_tok", "num_experts_per_token", "experts_per_token", "moe_topk", "moe_router_topk"),
    "routed_scale": ("routed_scaling_factor", "moe_router_topk_scaling_factor"),
    "multiplier": ("residual_multiplier",),
    "scale": ("embedding_multiplier", "scale_emb"),
    "soft_cap": ("final_logit_softcapping",),
    "logits_scale": ("logits_scaling", "logit_scale", "lm_head_multiplier"),
}
_DIVISORS = ("logits_scaling",)  # what they hold divides
# transformers' names of activations (ACT2FN of 5.19) -> ours; under the first key that is there
_ACTIVATION = ("hidden_activation", "hidden_act", "activation_function")
_FUNCTIONS = {
    "silu": "silu", "swish": "silu", "gelu": "gelu_erf", "gelu_python": "gelu_erf", "gelu_new": "gelu_tanh", "gelu_fast": "gelu_tanh",
    "gelu_pytorch_tanh": "gelu_tanh", "quick_gelu": "gelu_sigmoid", "relu": "relu", "relu2": "relu_squared",
}  # fmt: skip
NORMALISED = "router.normalised"  # whether a token's shares are divided by their sum, 1 or 0
FUNCTION = "activation."  # a function that is stated is a constant of its name, 1
_INNER = ("text_config", "llm_config", "language_config")  # where a model of several parts keeps that of its language


def constants(path: str | Path) -> dict[str, float]:
    """The constants that a file states once; what it states twice with different values is left out. Raises DumpError for no JSON."""
    value = io.load(path)
    parts = [value, *(value[name] for name in _INNER if name in value)] if isinstance(value, dict) else []
    found = {name: {number for part in parts for key in keys if (number := _number(part, key)) is not None} for name, keys in _KEYS.items()}
    once = {name: numbers.pop() for name, numbers in found.items() if len(numbers) == 1}
    inner = [part for part in reversed(parts) if isinstance(part, dict)]
    for read in (attention_constants, _activation, _router):
        once |= next((own for part in inner if (own := read(part))), {})
    return once


def _activation(part: Mapping[str, Any]) -> dict[str, float]:
    stated = next((part[key] for key in _ACTIVATION if part.get(key) is not None), None)
    name = _FUNCTIONS.get(stated) if isinstance(stated, str) else None
    return {} if name is None else {f"{FUNCTION}{name}": 1.0}


def _router(part: Mapping[str, Any]) -> dict[str, float]:
    """transformers' norm_topk_prob; Megatron-Core's moe_router_pre_softmax leaves the softmax over all experts as it is."""
    if isinstance(own := part.get("norm_topk_prob"), bool):
        return {NORMALISED: float(own)}
    before = part.get("moe_router_pre_softmax")
    over_all = part.get("moe_router_score_function", "softmax") == "softmax" and part.get("num_moe_experts")
    return {NORMALISED: float(not before)} if over_all and isinstance(before, bool) else {}


def _number(part: Any, key: str) -> float | None:
    value = part.get(key) if isinstance(part, dict) else None
    if not isinstance(value, (int, float)) or isinstance(value, bool) or (key in _DIVISORS and not value):
        return None
    return 1.0 / value if key in _DIVISORS else float(value)
