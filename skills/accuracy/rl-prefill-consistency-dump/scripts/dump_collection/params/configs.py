"""A configuration as one side has it: its values by dotted path, and where a name is looked for."""

import json
import math
import re
from pathlib import Path
from typing import Any, Dict, Iterator, List, NamedTuple, Tuple

from msprobe_files.errors import DumpError
from msprobe_files.units import load_json

MEGATRON, TRANSFORMERS = "megatron", "transformers"
DECLARED, UNDECLARED = "fields.", "extra."  # of a recorded provider: its class's fields, and attributes that are none of them
MODULES = "modules"  # what the built modules hold, by dotted path
_PATH = re.compile(r"(?:/|~|[A-Za-z]:[/\\]|[a-z][a-z0-9+]*://)")
_SEPARATOR = re.compile(r"[/\\]")
_NESTS = ("model_config", "hf_config", "hf_text_config", "text_config", "llm_config", "language_config", "thinker_config")
_MEGATRON_NAMES = frozenset(
    (
        "num_layers", "num_query_groups", "kv_channels", "ffn_hidden_size", "layernorm_epsilon", "rotary_base", "rotary_percent",
        "position_embedding_type", "normalization", "gated_linear_unit", "activation_func", "add_bias_linear", "add_qkv_bias",
        "qk_layernorm", "params_dtype", "share_embeddings_and_output_weights", "seq_len_interpolation_factor", "window_size",
        "num_moe_experts", "moe_router_topk", "moe_router_pre_softmax", "moe_router_score_function", "moe_ffn_hidden_size",
        "multi_latent_attention", "qk_head_dim", "rotary_scaling_factor", "enable_mhc_connections", "enable_hyper_connections",
        "make_vocab_size_divisible_by", "softmax_scale", "mtp_num_layers", "attention_softmax_in_fp32", "tensor_model_parallel_size",
        "layernorm_zero_centered_gamma", "softmax_type", "attention_output_gate", "rotary_interleaved", "qk_l2_norm", "mscale_all_dim",
    )
)  # fmt: skip
_HF_NAMES = frozenset(
    (
        "num_hidden_layers", "num_key_value_heads", "intermediate_size", "rms_norm_eps", "rope_theta", "rope_parameters", "torch_dtype",
        "model_type", "architectures", "tie_word_embeddings", "hidden_act", "head_dim", "sliding_window", "norm_topk_prob", "hc_mult",
        "num_experts_per_tok", "text_config", "scoring_func", "hf_config", "attention_bias", "partial_rotary_factor", "layer_types",
    )
)  # fmt: skip


class Config(NamedTuple):
    """``leaves``: every value by its dotted path; ``roots``: the prefixes under which a name is looked for, the authority first.

    ``dialect``: whose names it uses. ``modules``: attributes of built modules by dotted path, empty where none were given.
    """

    side: str
    dialect: str
    leaves: Dict[str, Any]
    roots: Tuple[str, ...]
    modules: Dict[str, Any]

    def found(self, name: str) -> List[Tuple[str, Any]]:
        """Every place that holds a name (dotted), the authority first, with its value. An object is no value."""
        return [(root + name, self.leaves[root + name]) for root in self.roots if root + name in self.leaves]

    def fields(self) -> List[str]:
        """The dotted paths that configure the model; the frame of a recorded provider (versions, bridge) is none."""
        if self.roots[0] != DECLARED:
            return sorted(self.leaves)
        return sorted(path for path in self.leaves if path.startswith((DECLARED, UNDECLARED)))

    def relative(self, path: str) -> str:
        """A path below its root: how both sides may call one field."""
        return path[max(len(root) for root in self.roots if path.startswith(root)) :] if path.startswith(self.roots) else path


def read(path: str, side: str) -> Config:
    """The configuration in a JSON file: transformers' config.json, a recorded provider (``fields``, ``extra``) or its fields alone.

    Raises DumpError where the file cannot be read, holds no field, or states one key of an object twice and differently.
    """
    value = load_json(path)
    with open(path, encoding="utf-8") as file:
        json.load(file, object_pairs_hook=lambda pairs: _once_each(path, pairs))
    return of(value, side, path)


def _once_each(path: str, pairs: List[Tuple[str, Any]]) -> Dict[str, Any]:
    """An object; Python takes the last of two equal keys, other readers the first."""
    found: Dict[str, Any] = {}
    for key, value in pairs:
        if key in found and found[key] != value:
            shown_values = " and ".join(shown(one) for one in (found[key], value))
            raise DumpError("Cannot use %s: %s is there twice, with %s. Keep the one that is meant." % (Path(path).name, key, shown_values))
        found[key] = value
    return found


def of(value: Dict[str, Any], side: str, path: str = "the configuration") -> Config:
    """A configuration that was read. Raises DumpError where it holds no field."""
    whole = {key: value[key] for key in value if key != MODULES or not isinstance(value[key], dict)}
    leaves = dict(_flat(whole, ""))
    if not leaves and MODULES not in value:
        raise DumpError("Cannot compare the parameters: %s holds no field. Hand the %s side's configuration." % (path, side))
    modules = dict(_flat(value[MODULES], "")) if isinstance(value.get(MODULES), dict) else {}
    if isinstance(value.get("fields"), dict):
        return Config(side, MEGATRON, leaves, (DECLARED, UNDECLARED, ""), modules)
    roots = tuple(_roots(value, ""))
    names = {path[len(root) :].partition(".")[0] for root in roots for path in leaves if path.startswith(root)}
    dialect = MEGATRON if len(names & _MEGATRON_NAMES) > len(names & _HF_NAMES) else TRANSFORMERS
    return Config(side, dialect, leaves, roots, modules)


def _roots(value: Dict[str, Any], prefix: str) -> Iterator[str]:
    """The part that describes the language model is the authority; what wraps it comes after it."""
    for key in _NESTS:
        part = value.get(key)
        if isinstance(part, dict) and part:
            yield from _roots(part, prefix + key + ".")
    yield prefix


def _flat(value: Any, path: str) -> Iterator[Tuple[str, Any]]:
    if isinstance(value, dict) and value:
        for key, part in value.items():
            yield from _flat(part, "%s.%s" % (path, key) if path else str(key))
    elif path:
        yield path, plain(value)


def plain(value: Any) -> Any:
    """A value that JSON can hold: NaN and infinities, which Python's reader lets pass, become words."""
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, list):
        return [plain(item) for item in value]
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    return value


def public(value: Any) -> Any:
    """A value as a report may hold it: of a path on somebody's machine the last part alone."""
    if isinstance(value, str) and _PATH.match(value):
        return ".../" + _SEPARATOR.split(value.rstrip("/\\"))[-1]
    if isinstance(value, list):
        return [public(item) for item in value]
    return {key: public(item) for key, item in value.items()} if isinstance(value, dict) else value


def shown(value: Any) -> str:
    """A value in a sentence: short, as JSON writes it, without anybody's folders."""
    value = public(value)
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 60 else text[:57] + "..."
