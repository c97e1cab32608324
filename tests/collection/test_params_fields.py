"""Each field changed alone, on each side: it is found, at its priority, and nothing that does not follow from it."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest
from dump_collection.params import comparison, configs, table
from dump_collection.params.judged import Item
from running import ROOT

SAMPLES = ROOT / "tests/samples/providers"
ALIGNED = ("qwen2", "qwen3", "qwen3_moe", "deepseek_v3", "llama3", "qwen3_moe-in_force")
# What a text or null may become; numbers, flags and lists change by themselves.
OTHER: dict[Any, Any] = {
    "silu": "gelu", "<torch.nn.functional.silu>": "<torch.nn.functional.gelu>", "bfloat16": "float32", "torch.bfloat16": "torch.float32",
    "yarn": "rope", "rope": "yarn", "llama3": "linear", "sigmoid": "softmax", "softmax": "sigmoid", "noaux_tc": "greedy",
    "RMSNorm": "LayerNorm", "vanilla": "learnable", "auto": "flash", "allgather": "alltoall", "alltoall": "allgather", "fp32": "fp64",
    "aux_loss": "sinkhorn", "seq_aux_loss": "sinkhorn", "transformer_engine": "local",
    "AttnBackend.auto": "AttnBackend.flash", "default": "yarn", "none": "sinkhorn",
}  # fmt: skip
# Fields that are null in a recording, and a value that they may have.
SET = {
    "window_size": [127, 0], "sliding_window": 128, "activation_func_clamp_value": 7.0, "softmax_scale": 0.5,
    "mrope_section": [16, 24, 24],
    "moe_expert_capacity_factor": 1.0, "moe_input_jitter_eps": 0.1, "moe_latent_size": 64,
    "seq_len_interpolation_factor": 4.0, "fp8": "hybrid",
    "moe_router_num_groups": 8, "moe_router_group_topk": 4, "num_moe_experts": 8,
    "moe_shared_expert_intermediate_size": 64, "kv_channels": 32,
    "linear_attention_freq": 4, "no_rope_freq": 4, "experimental_attention_variant": "dsa", "dsa_indexer_n_heads": 4, "mtp_num_layers": 2,
    "dsa_indexer_head_dim": 64, "dsa_indexer_topk": 64, "moe_router_topk_scaling_factor": 2.5,
    "rope_scaling": {"type": "yarn", "factor": 4.0},
    "moe_router_dtype": "fp64", "num_query_groups": 1, "moe_ffn_hidden_size": 64, "expert_tensor_parallel_size": 2,
}  # fmt: skip
# Not in force as the recordings stand: a change of the key alone changes no model.
IDLE = {
    *((name, "infer", "sliding_window") for name in ("qwen2", "qwen3", "qwen3_moe", "qwen3_moe-in_force")),
    ("deepseek_v3", "train", "fields.rotary_interleaved"), ("deepseek_v3", "train", "fields.moe_router_pre_softmax"),
    ("qwen3_moe-in_force", "train", "moe_layer_freq"),  # one layer
    ("qwen3_moe-in_force", "train", "vocab_size"),  # 256 rows are 128 words, padded
    *((name, "train", "fields.make_vocab_size_divisible_by") for name in ALIGNED),
    *((name, "train", "fields.should_pad_vocab") for name in ALIGNED),  # the sizes are whole multiples already
}  # fmt: skip


def files(name: str) -> dict[str, dict[str, Any]]:
    folder = SAMPLES / name
    named = {"train": folder / "provider.json", "infer": folder / "config.json"}
    return {side: json.loads(path.read_text(encoding="utf-8")) for side, path in named.items()}


def items(sides: dict[str, dict[str, Any]]) -> dict[str, Item]:
    found = comparison.compare(*(configs.of(sides[side], side) for side in ("train", "infer")))
    return {item.canonical.replace("config.", "", 1): item for item in found}


def changed(value: Any, key: str) -> Any:
    """Another value of the same kind."""
    if value is None:
        return SET[key]
    if isinstance(value, bool):
        return not value
    if isinstance(value, (int, float)):
        return value * 2 if value else 1
    if isinstance(value, list):
        return [*value[:-1], 1 - value[-1]] if value and value[-1] in (0, 1) else [0]
    return OTHER[value]


def change(sides: dict[str, dict[str, Any]], side: str, path: str) -> dict[str, dict[str, Any]]:
    """Both sides, with one value of one of them changed."""
    copied = copy.deepcopy(sides)
    *way, key = path.split(".")
    part = copied[side]
    for step in way:
        part = part[step]
    part[key] = changed(part[key], key)
    return copied


@pytest.mark.parametrize("side", ["train", "infer"])
@pytest.mark.parametrize("name", ALIGNED)
def test_each_field_of_a_recorded_pair_is_found_when_it_alone_changes(name: str, side: str) -> None:
    """The gate sees what was compared: no key that stands in an item is only named there."""
    sides = files(name)
    before = items(sides)
    of_keys: dict[str, list[str]] = {}
    for canonical, item in before.items():
        for key in getattr(item, side).keys:
            of_keys.setdefault(key, []).append(canonical)
    assert len(of_keys) > 15
    for key, canonicals in of_keys.items():
        if (name, side, key) in IDLE:
            continue
        after = items(change(sides, side, key))
        moved = {canonical for canonical, item in after.items() if item.status != "EXACT" and before.get(canonical, item).status == "EXACT"}
        noted = {canonical for canonical in canonicals if before[canonical].status != "EXACT"}
        assert moved & set(canonicals) or noted, (key, canonicals, moved)
        for canonical in moved & set(canonicals):
            if after[canonical].kind == "value":
                assert after[canonical].priority == before[canonical].priority, canonical


PAIRS: list[tuple[str, str, dict[str, Any], dict[str, Any], str, Any]] = [
    # field, priority, train, infer (equal), the infer key that changes, its new value
    ("mhc_enable", "switch", {"enable_mhc_connections": True}, {"hc_mult": 4}, "hc_mult", None),
    ("mhc_enable", "switch", {"enable_hyper_connections": True}, {"hc_mult": 4}, "hc_mult", None),
    ("mhc_streams", "hyper", {"enable_mhc_connections": True, "mhc_num_residual_streams": 4}, {"hc_mult": 4}, "hc_mult", 2),
    ("mhc_streams", "hyper", {"enable_hyper_connections": True, "num_residual_streams": 4}, {"hc_mult": 4}, "hc_mult", 2),
    (
        "mhc_iters", "hyper", {"enable_mhc_connections": True, "mhc_sinkhorn_iterations": 20}, {"hc_mult": 4, "hc_sinkhorn_iters": 20},
        "hc_sinkhorn_iters", 10,
    ),
    ("mhc_eps", "hyper", {"enable_mhc_connections": True, "mhc_eps": 1e-6}, {"hc_mult": 4, "hc_eps": 1e-6}, "hc_eps", 1e-5),
    ("csa_ratios", "switch", {"csa_compress_ratios": [4, 128]}, {"compress_ratios": [4, 128]}, "compress_ratios", [4, 4]),
    (
        "csa_theta", "hyper", {"csa_compress_ratios": [4], "csa_compress_rotary_base": 160000},
        {"compress_ratios": [4], "compress_rope_theta": 160000}, "compress_rope_theta", 40000,
    ),
    (
        "hash_layers", "switch", {"moe_n_hash_layers": 3, "num_moe_experts": 8}, {"num_hash_layers": 3, "num_experts": 8},
        "num_hash_layers", 0,
    ),
    ("dsa_heads", "hyper", {"dsa_indexer_n_heads": 64}, {"index_n_heads": 64}, "index_n_heads", 32),
    ("dsa_head_dim", "hyper", {"dsa_indexer_head_dim": 128}, {"index_head_dim": 128}, "index_head_dim", 64),
    ("dsa_topk", "hyper", {"dsa_indexer_topk": 2048}, {"index_topk": 2048}, "index_topk", 1024),
    ("lin_every", "switch", {"linear_attention_freq": 4}, {"full_attention_interval": 4}, "full_attention_interval", 2),
    *(
        (
            name, "hyper", {"linear_attention_freq": 4, key: 8}, {"full_attention_interval": 4, key: 8}, key, 16,
        )
        for name, key in (
            ("lin_conv", "linear_conv_kernel_dim"), ("lin_k_dim", "linear_key_head_dim"), ("lin_v_dim", "linear_value_head_dim"),
            ("lin_k_heads", "linear_num_key_heads"), ("lin_v_heads", "linear_num_value_heads"),
        )
    ),
    ("attn_output_gate", "switch", {"attention_output_gate": True}, {"attn_output_gate": True}, "attn_output_gate", False),
    ("attn_logit_softcap", "hyper", {"attn_logit_softcapping": 50.0}, {"attn_logit_softcapping": 50}, "attn_logit_softcapping", None),
    ("logit_softcap", "hyper", {"final_logit_softcapping": 30.0}, {"final_logit_softcapping": 30.0}, "final_logit_softcapping", 20.0),
    ("logit_scale", "hyper", {"num_layers": 1, "logits_scaling": 8.0}, {"logits_scaling": 8}, "logits_scaling", 16),
    ("embed_scale", "hyper", {"num_layers": 1, "embedding_multiplier": 12.0}, {"embedding_multiplier": 12}, "embedding_multiplier", 1.0),
    ("residual_mult", "hyper", {"num_layers": 1, "residual_multiplier": 0.22}, {"residual_multiplier": 0.22}, "residual_multiplier", 1.0),
    ("act_clamp", "hyper", {"activation_func_clamp_value": 7.0}, {"swiglu_limit": 7.0}, "swiglu_limit", 10.0),
    ("no_rope_layers", "switch", {"no_rope_freq": [1, 0]}, {"no_rope_layers": [1, 0]}, "no_rope_layers", [1, 1]),
    ("softmax_scale", "derived", {"softmax_scale": 0.0625}, {"query_pre_attn_scalar": 256}, "query_pre_attn_scalar", 144),
    ("softmax_scale", "derived", {"softmax_scale": 0.0078125}, {"attention_multiplier": 0.0078125}, "attention_multiplier", 0.125),
    (
        "tie_embeddings", "switch", {"share_embeddings_and_output_weights": False}, {"tie_word_embeddings": False},
        "tie_word_embeddings", True,
    ),
    ("mlp_bias", "switch", {"add_bias_linear": True}, {"mlp_bias": True}, "mlp_bias", False),
    ("qk_norm", "switch", {"qk_layernorm": True}, {"use_qk_norm": True}, "use_qk_norm", False),
    ("attn_bias", "switch", {"add_qkv_bias": True}, {"attention_bias": True}, "attention_bias", False),
    ("attn_bias", "switch", {"add_qkv_bias": False, "add_bias_linear": True}, {"attention_bias": True}, "attention_bias", False),
    ("rotary_interleaved", "switch", {"rotary_interleaved": False}, {"is_neox_style": True}, "is_neox_style", False),
    ("rotary_percent", "hyper", {"rotary_percent": 0.5}, {"partial_rotary_factor": 0.5}, "partial_rotary_factor", 1.0),
    (
        "rotary_dim", "derived", {"rotary_percent": 0.5, "kv_channels": 64}, {"partial_rotary_factor": 0.5, "head_dim": 64},
        "partial_rotary_factor", 0.25,
    ),
    ("router_scale", "hyper", {"moe_router_topk_scaling_factor": 2.5}, {"routed_scaling_factor": 2.5}, "routed_scaling_factor", 1.0),
    ("router_groups", "switch", {"moe_router_num_groups": 8}, {"n_group": 8}, "n_group", 1),
    ("router_group_topk", "hyper", {"moe_router_group_topk": 4}, {"topk_group": 4}, "topk_group", 2),
    ("router_bias", "switch", {"moe_router_enable_expert_bias": True}, {"topk_method": "noaux_tc"}, "topk_method", "greedy"),
    ("router_score", "switch", {"moe_router_score_function": "sigmoid"}, {"scoring_func": "sigmoid"}, "scoring_func", "softmax"),
    (
        "moe_latent", "switch", {"num_moe_experts": 8, "moe_latent_size": 64}, {"num_experts": 8, "moe_latent_size": 64},
        "moe_latent_size", 32,
    ),
    (
        "moe_layers", "switch", {"num_layers": 4, "num_moe_experts": 8, "moe_layer_freq": 2},
        {"num_hidden_layers": 4, "num_experts": 8, "moe_layer_freq": 2}, "moe_layer_freq", 1,
    ),
    (
        "moe_layers", "switch", {"num_layers": 4, "num_moe_experts": 8, "moe_layer_freq": [0, 1, 0, 0]},
        {"num_hidden_layers": 4, "num_experts": 8, "decoder_sparse_step": 2, "mlp_only_layers": [3]}, "mlp_only_layers", [],
    ),
    (
        "shared_ffn", "hyper", {"num_moe_experts": 8, "moe_shared_expert_intermediate_size": 128},
        {"num_experts": 8, "n_shared_experts": 2, "moe_intermediate_size": 64}, "moe_intermediate_size", 32,
    ),
    (
        "window_layers", "switch", {"num_layers": 4, "window_size": [7, 0], "window_attn_skip_freq": 2},
        {"num_hidden_layers": 4, "sliding_window": 8, "layer_types": ["sliding_attention", "full_attention"] * 2},
        "layer_types", ["sliding_attention"] * 4,
    ),
    ("rope_local_theta", "hyper", {"rotary_base_local": 10000}, {"rope_local_base_freq": 10000.0}, "rope_local_base_freq", 1000000.0),
    ("quantization", "switch", {"fp8": None}, {"quantization": None}, "quantization", "fp8"),
    ("num_kv_heads", "hyper", {"num_attention_heads": 8, "num_query_groups": None}, {"num_attention_heads": 8}, "num_key_value_heads", 2),
    ("ffn_dim", "hyper", {"hidden_size": 8, "ffn_hidden_size": None}, {"intermediate_size": 32}, "intermediate_size", 24),
    ("head_dim", "derived", {"kv_channels": 16}, {"head_dim": 16}, "head_dim", 32),
    ("dtype", "hyper", {"params_dtype": "torch.bfloat16"}, {"torch_dtype": "bf16"}, "torch_dtype", "float16"),
    ("hidden_act", "switch", {"activation_func": "<function silu at 0x7f>"}, {"hidden_act": "swish"}, "hidden_act", "gelu_pytorch_tanh"),
    ("norm_eps", "hyper", {"layernorm_epsilon": 1e-5}, {"layer_norm_eps": 1e-5}, "layer_norm_eps", 1e-6),
    ("norm_eps", "hyper", {"layernorm_epsilon": 1e-5}, {"layer_norm_epsilon": 1e-5}, "layer_norm_epsilon", 1e-6),
    ("tp", "no_effect", {"tensor_model_parallel_size": 2}, {"tp_size": 2}, "tp_size", 1),
    ("model_type", "switch", {"model_type": "qwen3"}, {"model_type": "qwen3"}, "model_type", "qwen2"),
    *(
        (
            name, "switch", {"num_moe_experts": 8, "moe_expert_capacity_factor": 1.0, key: value},
            {"num_experts": 8, "moe_expert_capacity_factor": 1.0, key: value}, key, other,
        )
        for name, key, value, other in (
            ("moe_pad_capacity", "moe_pad_expert_input_to_capacity", True, False),
            ("moe_drop_policy", "moe_token_drop_policy", "probs", "position"),
        )
    ),
    (
        "rope_truncate", "hyper",
        {"position_embedding_type": "yarn", "yarn_rotary_scaling_factor": 4.0, "yarn_correction_range_round_to_int": False},
        {"rope_parameters": {"rope_type": "yarn", "factor": 4.0, "truncate": False}}, "truncate", True,
    ),
    ("hidden_dropout", "no_effect", {"hidden_dropout": 0.1}, {"resid_pdrop": 0.1}, "resid_pdrop", 0.0),
    ("attention_backend", "no_effect", {"attention_backend": "flash"}, {"attn_implementation": "flash"}, "attn_implementation", "sdpa"),
    (
        "transformers_version", "no_effect", {"versions": {"transformers": "4.57.3"}}, {"transformers_version": "4.57.3"},
        "transformers_version", "5.19.0",
    ),
    ("pp", "no_effect", {"pipeline_model_parallel_size": 2}, {"pp_size": 2}, "pp_size", 1),
    *(
        (name, "no_effect", {key: 1}, {key: 1}, key, 2)
        for name, key in (
            ("logit_dtype", "logit_dtype"), ("rope_fusion", "apply_rope_fusion"), ("qk_layer_scaling", "apply_query_key_layer_scaling"),
            ("deterministic", "deterministic_mode"), ("batch_invariant", "batch_invariant_mode"), ("moe_grouped_gemm", "moe_grouped_gemm"),
            ("moe_permute_fusion", "moe_permute_fusion"), ("moe_dispatcher", "moe_token_dispatcher_type"),
            ("shared_overlap", "moe_shared_expert_overlap"), ("layer_impl", "transformer_impl"), ("norm_kernel", "persist_layer_norm"),
            ("norm_memory", "memory_efficient_layer_norm"), ("sp", "sequence_parallel"), ("cp", "context_parallel_size"),
            ("etp", "expert_tensor_parallel_size"),
        )
    ),
    ("num_layers", "structure", {"num_layers": 2}, {"model_config": {"hf_text_config": {"num_hidden_layers": 2}}}, "num_hidden_layers", 3),
]  # fmt: skip


@pytest.mark.parametrize(("name", "priority", "train", "infer", "key", "value"), PAIRS, ids=[f"{row[0]}-{row[4]}" for row in PAIRS])
def test_a_field_under_both_sides_names(
    name: str, priority: str, train: dict[str, Any], infer: dict[str, Any], key: str, value: Any
) -> None:
    """Equal under both spellings; changed alone, a difference of its priority."""
    train = {"num_query_groups": 2, "rotary_percent": 1.0, "normalization": "RMSNorm", **train}  # what no other side's file would hold
    for given in ([name], []):
        if not given:
            infer = changed_at(infer, key, value)
        found = comparison.compare(configs.of(train, "train"), configs.of(infer, "infer"))
        item = {item.canonical: item for item in found}["config." + name]
        assert (item.status == "EXACT") == bool(given), item
        assert item.priority == priority


def changed_at(value: dict[str, Any], key: str, new: Any) -> dict[str, Any]:
    """A copy with one key changed, wherever it is nested."""
    if not any(isinstance(part, dict) for part in value.values()):
        return {**value, key: new}
    return {name: changed_at(part, key, new) if isinstance(part, dict) else part for name, part in value.items()}


ONE_SIDED = [
    ("mhc_enable", {"num_layers": 2}, {"hc_mult": 4}, "MISSING_SIDE"),
    ("num_experts", {"num_layers": 2}, {"num_experts": 8}, "MISSING_SIDE"),
    ("logit_softcap", {"num_layers": 2}, {"final_logit_softcapping": 30.0}, "MISSING_SIDE"),
    ("logit_softcap", {"num_layers": 2}, {"final_logit_softcapping": None}, "EXACT"),
    ("embed_scale", {"num_layers": 2}, {"embedding_multiplier": 12.0}, "MISSING_SIDE"),
    ("kv_dtype", {"num_layers": 2}, {"kv_cache_dtype": "fp8"}, "MISSING_SIDE"),
    ("quantization", {"fp8": None}, {"quantization_config": {"quant_method": "fp8"}}, "DIFF"),
    ("norm_zero_centered", {"layernorm_zero_centered_gamma": True}, {"model_type": "qwen3"}, "DIFF"),
    ("norm_zero_centered", {"layernorm_zero_centered_gamma": True}, {"model_type": "gemma2"}, "EXACT"),
    ("shared_gate", {"num_moe_experts": 8, "moe_shared_expert_gate": False}, {"model_type": "qwen2_moe", "num_experts": 8}, "DIFF"),
    ("moe_probs_on_input", {"num_moe_experts": 8, "moe_apply_probs_on_input": True}, {"model_type": "mixtral", "num_experts": 8}, "DIFF"),
    ("moe_capacity", {"num_moe_experts": 8, "moe_expert_capacity_factor": 1.0}, {"num_experts": 8}, "DIFF"),
    ("router_jitter", {"num_moe_experts": 8, "moe_input_jitter_eps": 0.01}, {"num_experts": 8}, "DIFF"),
    ("router_lb", {"num_moe_experts": 8, "moe_router_load_balancing_type": "sinkhorn"}, {"num_experts": 8}, "DIFF"),
    ("router_lb", {"num_moe_experts": 8, "moe_router_load_balancing_type": "aux_loss"}, {"num_experts": 8}, "EXACT"),
    ("routing_replay", {"num_moe_experts": 8, "moe_enable_routing_replay": True}, {"num_experts": 8}, "DIFF"),
    ("o_proj_bias", {"add_bias_linear": False}, {"model_type": "llama", "attention_bias": True}, "DIFF"),
    ("attn_sink", {"softmax_type": "vanilla"}, {"model_type": "gpt_oss"}, "DIFF"),
    ("qk_l2_norm", {"qk_l2_norm": True}, {"model_type": "llama"}, "DIFF"),
    ("residual_post_norm", {"apply_residual_connection_post_layernorm": True}, {"model_type": "llama"}, "DIFF"),
    ("norm_type", {"normalization": "LayerNorm"}, {"model_type": "llama"}, "DIFF"),
    ("gated_mlp", {"gated_linear_unit": False}, {"model_type": "llama"}, "DIFF"),
    ("attn_variant", {"experimental_attention_variant": "gdn"}, {"model_type": "llama"}, "DIFF"),
]


@pytest.mark.parametrize(("name", "train", "infer", "status"), ONE_SIDED)
def test_a_field_that_one_side_does_not_name(name: str, train: dict[str, Any], infer: dict[str, Any], status: str) -> None:
    """What a class implies counts; what nobody says is a missing side, never equal."""
    train = {"num_query_groups": 2, "rotary_percent": 1.0, **train}
    found = comparison.compare(configs.of(train, "train"), configs.of(infer, "infer"))
    item = {item.canonical: item for item in found}["config." + name]
    assert (item.status, item.shuts) == (status, status != "EXACT")


def test_no_field_of_the_table_is_left_out_here() -> None:
    """Each stands in a recorded pair, under both sides' names, or on one side: a field that is added without a case is not held."""
    recorded = {name for recording in ALIGNED for name in items(files(recording))}
    held = recorded | {row[0] for row in PAIRS} | {row[0] for row in ONE_SIDED}
    assert set(table.BY_NAME) - held == set()


def test_modules_that_neither_side_has_are_not_compared(tmp_path: Path) -> None:
    """A dense model's provider carries defaults of routers and hyper-connections: they are no parameters of it."""
    names = set(items(files("qwen3")))
    assert not {name for name in names if name.startswith(("moe_", "router_n", "shared_", "mhc_", "kv_lora"))}
