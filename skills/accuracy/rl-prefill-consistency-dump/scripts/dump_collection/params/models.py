"""What transformers' model classes build without a word in config.json, read in their sources (transformers 4.57 and 5.19).

A class that is not listed is unknown: the check then asks for a field map (``infer_expected``) instead of guessing.
"""

from typing import Any, Dict, Optional, Tuple

from .configs import Config
from .readings import value_of

_FOLLOWS = "="  # the field of the configuration whose value is taken

_DECODER: Dict[str, Any] = {
    "gated_mlp": True, "norm_type": "RMSNorm", "norm_zero_centered": False, "qk_norm": False, "qk_l2_norm": False, "attn_bias": False,
    "mlp_bias": False, "o_proj_bias": False, "attn_sink": "vanilla", "attn_output_gate": False, "residual_post_norm": False,
    "rotary_interleaved": False, "tie_embeddings": False, "shared_gate": False, "router_score": "softmax", "router_bias": False,
    "router_norm_topk": True, "moe_probs_on_input": False, "rotary_percent": 1.0, "router_scale": 1.0, "glu_offset": 0.0,
}  # fmt: skip
_DEEPSEEK_V3: Dict[str, Any] = {
    "qk_norm": True, "rotary_interleaved": True, "router_score": "sigmoid", "router_bias": True, "o_proj_bias": "=attention_bias",
}  # fmt: skip
_GEMMA: Dict[str, Any] = {"norm_zero_centered": True, "tie_embeddings": True, "o_proj_bias": "=attention_bias"}
_MODELS: Dict[str, Dict[str, Any]] = {
    "llama": {"o_proj_bias": "=attention_bias"},
    "mistral": {},
    "mixtral": {},
    "qwen2": {"attn_bias": True},
    "qwen2_moe": {"attn_bias": True, "shared_gate": True, "router_norm_topk": False},
    "qwen3": {"qk_norm": True, "o_proj_bias": "=attention_bias"},
    "qwen3_moe": {"qk_norm": True, "o_proj_bias": "=attention_bias", "router_norm_topk": False},
    "qwen3_next": {
        "qk_norm": True, "norm_zero_centered": True, "attn_output_gate": True, "shared_gate": True, "o_proj_bias": "=attention_bias",
    },
    "deepseek_v2": {"qk_norm": True, "rotary_interleaved": True, "router_norm_topk": False, "o_proj_bias": "=attention_bias"},
    "deepseek_v3": _DEEPSEEK_V3,
    "kimi_k2": _DEEPSEEK_V3,
    "glm4_moe": {"router_score": "sigmoid", "router_bias": True},
    "gemma": _GEMMA,
    "gemma2": _GEMMA,
    "gemma3": {**_GEMMA, "qk_norm": True},
    "gpt_oss": {"attn_bias": True, "o_proj_bias": "=attention_bias", "mlp_bias": True, "attn_sink": "learnable", "glu_offset": 1.0},
}  # fmt: skip

# Keys that a class does not read: gpt-oss computes x * sigmoid(1.702 x) while its config.json says silu.
_FIXED: Dict[str, Dict[str, Any]] = {"gpt_oss": {"hidden_act": "quick_gelu"}}

# Where layer_types is missing, a class derives it: every so many layers one without the window.
_FULL_EVERY = {"gemma2": 2, "gemma3": 6, "gemma3n": 5, "gpt_oss": 2, "cohere2": 4}


def model_type(config: Config) -> Optional[str]:
    """The language model's type; None where the configuration names none."""
    value = value_of(config, "model_type")
    return str(value)[: -len("_text")] if str(value).endswith("_text") else (None if value is None else str(value))


def implied(config: Config, field: str) -> Tuple[bool, Any]:
    """Whether the model's class says a field by itself, and its value."""
    model = _MODELS.get(model_type(config) or "")
    if model is None or (field not in model and field not in _DECODER):
        return False, None
    value = model.get(field, _DECODER.get(field))
    if isinstance(value, str) and value.startswith(_FOLLOWS):
        value = bool(value_of(config, value[len(_FOLLOWS) :]))
    return True, value


def fixed_by_class(config: Config, field: str) -> Any:
    """What a model's class builds whatever the field's key says; None where it reads the key."""
    return _FIXED.get(model_type(config) or "", {}).get(field)


def full_every(config: Config) -> Optional[int]:
    """Every how many layers a class has one without the sliding window, where it has one at all; None for a class not known to."""
    return _FULL_EVERY.get(model_type(config) or "")
