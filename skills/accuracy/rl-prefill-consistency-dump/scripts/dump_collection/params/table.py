"""The fields that are compared: what each is called on both sides, how it compares, and whose module it belongs to.

Names: transformers 4 and 5 (also as vLLM and SGLang read them), Megatron-core 0.16 with its branches, Megatron-Bridge 0.3.1.
"""

from typing import Any, Dict, NamedTuple, Tuple

from .readings import UNSTATED

SWITCH, STRUCTURE, HYPER, DERIVED, WEIGHT, NO_EFFECT = "switch", "structure", "hyper", "derived", "weight", "no_effect"
PRIORITIES = (SWITCH, STRUCTURE, HYPER, DERIVED, WEIGHT, NO_EFFECT)


class Field(NamedTuple):
    """``hf``, ``megatron``: spellings apart by blanks, the authority first; empty where that side has no such key.

    ``form``: how values compare. ``absent``: what a missing key means, where that is known; ``null``: what null means.
    ``implied``: transformers' class says it where the key is missing. ``under``: switches of its module, or what it follows from.
    ``both``: it is compared only where both sides state it. ``lost``: Megatron's own default, the trace of a dropped value.
    """

    name: str
    priority: str
    module: str
    hf: str
    megatron: str
    form: str = "number"
    absent: Any = UNSTATED
    null: Any = None
    implied: bool = False
    under: Tuple[str, ...] = ()
    lost: Any = UNSTATED
    note: str = ""
    both: bool = False

    def names(self, megatron: bool) -> Tuple[str, ...]:
        """Its spellings, those of the side's own dialect first: a hand-made file may mix them."""
        own, other = (self.megatron, self.hf) if megatron else (self.hf, self.megatron)
        return tuple(dict.fromkeys(own.split() + other.split()))


_MOE, _MLA, _MHC = ("num_experts",), ("mla",), ("mhc_enable",)
_YARN = ("pos_embedding", "rope_mscale_all_dim", "rope_mscale", "rope_factor")
_KERNEL = "moves rounding at most, never the function: looked at in the dumps"
_MTP = "a next-token head is no part of the main model's prefill"

FIELDS: Tuple[Field, ...] = (
    # --- which modules there are ---
    Field("model_type", SWITCH, "all", "model_type", "", "text", both=True),
    Field("pos_embedding", SWITCH, "rotary", "", ""),
    Field("rope_type", SWITCH, "rotary", "", ""),
    Field("mla", SWITCH, "attention", "kv_lora_rank", "multi_latent_attention", "flag", absent=False),
    Field("mhc_enable", SWITCH, "layer", "hc_mult", "enable_mhc_connections enable_hyper_connections enable_mhc", "flag", absent=False),
    Field("num_experts", SWITCH, "experts", "num_experts num_local_experts n_routed_experts", "num_moe_experts", "some", absent=None),
    Field("tie_embeddings", SWITCH, "head", "tie_word_embeddings", "share_embeddings_and_output_weights", "flag", implied=True),
    Field("qk_norm", SWITCH, "attention", "use_qk_norm", "qk_layernorm", "flag", implied=True),
    Field("qk_l2_norm", SWITCH, "attention", "", "qk_l2_norm", "flag", implied=True),
    Field("attn_bias", SWITCH, "attention", "", ""),
    Field("o_proj_bias", SWITCH, "attention", "", "add_bias_linear", "flag", implied=True),
    Field("mlp_bias", SWITCH, "mlp", "mlp_bias", "add_bias_linear", "flag", implied=True),
    Field("hidden_act", SWITCH, "mlp", "hidden_activation hidden_act activation_function", "activation_func", "activation", lost="gelu"),
    Field("gated_mlp", SWITCH, "mlp", "", "gated_linear_unit swiglu", "flag", implied=True),
    Field("norm_type", SWITCH, "norms", "", "normalization", "word", implied=True, lost="layernorm"),
    Field("norm_zero_centered", SWITCH, "norms", "", "layernorm_zero_centered_gamma", "flag", implied=True),
    Field("residual_post_norm", SWITCH, "norms", "", "apply_residual_connection_post_layernorm", "flag", implied=True),
    Field("sliding_window", SWITCH, "attention", "", ""),
    Field("window_layers", SWITCH, "attention", "", "", under=("sliding_window",)),
    Field("attn_sink", SWITCH, "attention", "", "softmax_type", "word", implied=True),
    Field("attn_output_gate", SWITCH, "attention", "attn_output_gate", "attention_output_gate", "flag", implied=True),
    Field("attn_variant", SWITCH, "attention", "", "experimental_attention_variant", "word", absent=None),
    Field("rotary_interleaved", SWITCH, "rotary", "", ""),
    Field("no_rope_layers", SWITCH, "rotary", "no_rope_layers", "no_rope_freq", absent=None),
    Field("lin_every", SWITCH, "attention", "full_attention_interval", "linear_attention_freq", absent=None),
    Field("q_lora_rank", SWITCH, "attention", "q_lora_rank", "q_lora_rank", under=_MLA),
    Field("moe_layers", SWITCH, "experts", "", "", under=_MOE),
    Field("shared_experts", SWITCH, "experts", "", "", under=_MOE),
    Field("shared_gate", SWITCH, "experts", "", "moe_shared_expert_gate", "flag", implied=True, under=("num_experts", "shared_experts")),
    Field("router_score", SWITCH, "router", "scoring_func", "moe_router_score_function", "word", implied=True, under=_MOE, lost="softmax"),
    Field("router_norm_topk", SWITCH, "router", "", "", under=("num_experts", "router_score")),
    Field("router_groups", SWITCH, "router", "", "", under=_MOE),
    Field("router_bias", SWITCH, "router", "", "", under=_MOE),
    Field("moe_probs_on_input", SWITCH, "experts", "", "moe_apply_probs_on_input", "flag", implied=True, under=_MOE),
    Field("moe_capacity", SWITCH, "experts", "", "moe_expert_capacity_factor", absent=None, under=_MOE, note="tokens over it are dropped"),
    Field("moe_pad_capacity", SWITCH, "experts", "", "moe_pad_expert_input_to_capacity", "flag", under=("moe_capacity",)),
    Field("moe_drop_policy", SWITCH, "experts", "", "moe_token_drop_policy", "word", under=("moe_capacity",)),
    Field("router_lb", SWITCH, "router", "", "", under=_MOE),
    Field("routing_replay", SWITCH, "router", "enable_return_routed_experts", "moe_enable_routing_replay", "flag", False, under=_MOE),
    Field("moe_latent", SWITCH, "experts", "moe_latent_size", "moe_latent_size", absent=None, under=_MOE),
    Field("hash_layers", SWITCH, "router", "num_hash_layers", "moe_n_hash_layers", absent=0, null=0, under=_MOE),
    Field("csa_ratios", SWITCH, "attention", "compress_ratios", "csa_compress_ratios", absent=None),
    Field("quantization", SWITCH, "all", "quantization quantization_config.quant_method", "fp8", "word", absent=None),
    Field("kv_dtype", SWITCH, "attention", "kv_cache_dtype", "", "dtype", absent="auto", null="auto"),
    # --- sizes ---
    Field("num_layers", STRUCTURE, "all", "num_hidden_layers n_layer n_layers", "num_layers"),
    Field("hidden_size", HYPER, "all", "hidden_size n_embd d_model", "hidden_size"),
    Field("num_heads", HYPER, "attention", "num_attention_heads n_head", "num_attention_heads"),
    Field("num_kv_heads", HYPER, "attention", "", ""),
    Field("ffn_dim", HYPER, "mlp", "", ""),
    Field("vocab_size", HYPER, "embedding", "vocab_size", "vocab_size"),
    Field("kv_lora_rank", HYPER, "attention", "kv_lora_rank", "kv_lora_rank", under=_MLA),
    Field("qk_nope_dim", HYPER, "attention", "qk_nope_head_dim", "qk_head_dim", under=_MLA),
    Field("qk_rope_dim", HYPER, "attention", "qk_rope_head_dim", "qk_pos_emb_head_dim", under=_MLA),
    Field("v_head_dim", HYPER, "attention", "v_head_dim", "v_head_dim", under=_MLA),
    Field("moe_topk", HYPER, "router", "num_experts_per_tok num_experts_per_token", "moe_router_topk", under=_MOE, lost=2),
    Field("moe_ffn", HYPER, "experts", "", "", under=_MOE),
    Field("shared_ffn", HYPER, "experts", "", "", under=("num_experts", "shared_experts")),
    Field("mhc_streams", HYPER, "layer", "hc_mult", "mhc_num_residual_streams num_residual_streams", under=_MHC),
    Field("mhc_iters", HYPER, "layer", "hc_sinkhorn_iters", "mhc_sinkhorn_iterations", under=_MHC),
    Field("dsa_heads", HYPER, "attention", "index_n_heads", "dsa_indexer_n_heads", absent=None),
    Field("dsa_head_dim", HYPER, "attention", "index_head_dim", "dsa_indexer_head_dim", absent=None),
    Field("dsa_topk", HYPER, "attention", "index_topk", "dsa_indexer_topk", absent=None),
    *(
        Field("lin_" + short, HYPER, "attention", "linear_" + name, "linear_" + name, under=("lin_every",))
        for short, name in (
            ("conv", "conv_kernel_dim"), ("k_dim", "key_head_dim"), ("v_dim", "value_head_dim"),
            ("k_heads", "num_key_heads"), ("v_heads", "num_value_heads"),
        )
    ),
    # --- numbers that a module uses ---
    Field(
        "norm_eps", HYPER, "norms", "rms_norm_eps layer_norm_eps layer_norm_epsilon norm_epsilon norm_eps layernorm_epsilon",
        "layernorm_epsilon norm_epsilon", lost=1e-5,
    ),
    Field("rope_theta", HYPER, "rotary", "", "", lost=10000),
    Field("rope_local_theta", HYPER, "rotary", "", ""),
    Field("rope_factor", HYPER, "rotary", "", "", under=("pos_embedding", "rope_type")),
    Field("rope_orig_max", HYPER, "rotary", "", "", under=("pos_embedding", "rope_type")),
    *(Field("rope_" + name, HYPER, "rotary", "", "", under=("pos_embedding",)) for name in ("beta_fast", "beta_slow", "truncate")),
    *(Field("rope_" + name, HYPER, "rotary", "", "", under=("pos_embedding",), both=True) for name in ("mscale", "mscale_all_dim")),
    *(Field("rope_" + name, HYPER, "rotary", "", "", under=("rope_type",)) for name in ("low_freq", "high_freq")),
    Field(
        "rotary_percent", HYPER, "rotary", "rope_parameters.partial_rotary_factor partial_rotary_factor rotary_pct", "rotary_percent",
        null=1.0, implied=True, lost=1.0,
    ),
    Field("mrope_section", HYPER, "rotary", "rope_parameters.mrope_section rope_scaling.mrope_section", "mrope_section", absent=None),
    Field("dtype", HYPER, "all", "dtype torch_dtype", "params_dtype", "dtype", lost="float32"),
    Field("attn_logit_softcap", HYPER, "attention", "attn_logit_softcapping", "attn_logit_softcapping", absent=None),
    Field("logit_softcap", HYPER, "head", "final_logit_softcapping", "final_logit_softcapping", absent=None),
    Field("logit_scale", HYPER, "head", "logits_scaling logit_scale", "logits_scaling logit_scale", absent=1.0, null=1.0),
    Field("embed_scale", HYPER, "embedding", "embedding_multiplier", "embedding_multiplier", absent=1.0, null=1.0),
    Field("residual_mult", HYPER, "layer", "residual_multiplier", "residual_multiplier", absent=1.0, null=1.0),
    Field("act_clamp", HYPER, "mlp", "swiglu_limit", "activation_func_clamp_value", absent=None),
    Field("glu_offset", HYPER, "mlp", "", "glu_linear_offset", implied=True),
    Field("router_scale", HYPER, "router", "routed_scaling_factor", "moe_router_topk_scaling_factor", null=1.0, implied=True, under=_MOE),
    Field("router_group_topk", HYPER, "router", "", "", under=("num_experts", "router_groups")),
    Field("router_jitter", HYPER, "router", "router_jitter_noise", "moe_input_jitter_eps", absent=None, under=_MOE, note="noise"),
    Field("mhc_eps", HYPER, "layer", "hc_eps", "mhc_eps", under=_MHC),
    Field("csa_theta", HYPER, "attention", "compress_rope_theta", "csa_compress_rotary_base", under=("csa_ratios",)),
    # --- what follows from them ---
    Field("head_dim", DERIVED, "attention", "", "", under=("hidden_size", "num_heads")),
    Field("qkv_out_dim", DERIVED, "attention", "", "", under=("head_dim", "num_kv_heads", "num_heads", "hidden_size")),
    Field("rotary_dim", DERIVED, "rotary", "", "", under=("rotary_percent", "head_dim", "hidden_size", "num_heads")),
    Field("rope_softmax_factor", DERIVED, "attention", "", "", under=_YARN),
    Field("rope_cos_sin_factor", DERIVED, "rotary", "", "", under=_YARN),
    Field("softmax_scale", DERIVED, "attention", "", "", under=("rope_softmax_factor", "head_dim", "hidden_size", "num_heads")),
    # --- what cannot change a prefill's function ---
    Field("max_positions", NO_EFFECT, "all", "max_position_embeddings max_model_len", "seq_length", note="rotary table length only"),
    Field("padded_vocab", NO_EFFECT, "embedding", "", "", note="rows beyond vocab_size: cut them off before comparing"),
    Field("init_std", NO_EFFECT, "all", "initializer_range", "init_method_std", note="weights are loaded", both=True),
    Field("attn_dropout", NO_EFFECT, "attention", "attention_dropout", "attention_dropout", note="off in eval()", both=True),
    Field("hidden_dropout", NO_EFFECT, "all", "hidden_dropout resid_pdrop", "hidden_dropout", note="off in eval()", both=True),
    Field("mtp_layers", NO_EFFECT, "all", "num_nextn_predict_layers mtp_num_hidden_layers", "mtp_num_layers", absent=None, note=_MTP),
    Field("transformers_version", NO_EFFECT, "all", "transformers_version", "versions.transformers", "text", both=True),
    *(
        Field(name, NO_EFFECT, "all", hf, megatron, "any", note=_KERNEL)
        for name, hf, megatron in (
            ("softmax_fp32", "", "attention_softmax_in_fp32"), ("residual_fp32", "", "fp32_residual_connection"),
            ("logit_dtype", "", "logit_dtype"), ("router_dtype", "router_dtype", "moe_router_dtype"),
        )
    ),
    *(
        Field(name, NO_EFFECT, "all", hf, megatron, "any", note=_KERNEL, both=True)
        for name, hf, megatron in (
            ("attention_backend", "attn_implementation _attn_implementation", "attention_backend"),
            ("rope_fusion", "", "apply_rope_fusion"), ("qk_layer_scaling", "", "apply_query_key_layer_scaling"),
            ("deterministic", "", "deterministic_mode"), ("batch_invariant", "", "batch_invariant_mode"),
            ("moe_grouped_gemm", "", "moe_grouped_gemm"), ("moe_permute_fusion", "", "moe_permute_fusion"),
            ("moe_dispatcher", "", "moe_token_dispatcher_type"), ("shared_overlap", "", "moe_shared_expert_overlap"),
            ("layer_impl", "", "transformer_impl"), ("norm_kernel", "", "persist_layer_norm"),
            ("norm_memory", "", "memory_efficient_layer_norm"), ("sp", "", "sequence_parallel"),
            ("tp", "tensor_parallel_size tp_size", "tensor_model_parallel_size"), ("cp", "", "context_parallel_size"),
            ("pp", "pipeline_parallel_size pp_size", "pipeline_model_parallel_size"), ("etp", "", "expert_tensor_parallel_size"),
            ("ep", "ep_size", "expert_model_parallel_size"),
        )
    ),
)  # fmt: skip

BY_NAME: Dict[str, Field] = {field.name: field for field in FIELDS}

# Keys that no forward reads: text handling, generation, training, book-keeping (transformers' PretrainedConfig, verl's rewriting).
NO_EFFECT_NAMES = frozenset(
    (
        "_name_or_path", "architectures", "auto_map", "bos_token_id", "eos_token_id", "pad_token_id", "chunk_size_feed_forward",
        "decoder_start_token_id", "finetuning_task", "gradient_checkpointing", "hf_model_id", "is_decoder", "is_encoder_decoder",
        "output_attentions", "output_hidden_states", "output_router_logits", "pretraining_tp", "problem_type", "return_dict",
        "router_aux_loss_coef", "aux_loss_alpha", "seq_aux", "sep_token_id", "tokenizer_class", "torchscript", "transformers_version",
        "use_cache", "attn_implementation", "_attn_implementation", "model_max_length", "language", "task_specific_params",
    )
)  # fmt: skip
NO_EFFECT_PREFIXES = ("id2label.", "label2id.", "auto_map.", "task_specific_params.", "vision_config.", "audio_config.")
