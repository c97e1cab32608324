"""What names usually mean, as data. It ranks candidates that shapes and contents allow, and names items; it decides nothing.

Sources: transformers 4.57 and 5 modeling files; Megatron-Core 0.16 (linear_qkv, linear_fc1 …); vLLM 0.32 and SGLang 0.5
packed_modules_mapping.
"""

import re
from typing import Dict, Optional, Pattern, Sequence, Tuple

# role -> the parts that a fused matrix holds, in the order of its rows
FUSED: Dict[str, Tuple[str, ...]] = {"qkv": ("q", "k", "v"), "gate_up": ("gate", "up"), "qkv_a": ("q_a", "kv_a")}


def _table(*rows: Tuple[str, str]) -> Tuple[Tuple[str, Pattern[str]], ...]:
    return tuple((role, re.compile(pattern)) for role, pattern in rows)


# The first that fits is the role; searched in a module's path below its layer.
_IN_LAYER = _table(
    ("router_correction", r"(router\.expert|e_score_correction)$"),
    ("q_norm", r"attn.*\b(q|query)_?(layer)?norm$|attention\.q_layernorm$"),
    ("k_norm", r"attn.*\b(k|key)_?(layer)?norm$|attention\.k_layernorm$"),
    ("q_a_norm", r"q_a_(layer)?norm$|linear_q_up_proj\.layer_norm$"),
    ("kv_a_norm", r"kv_a_(layer)?norm$|linear_kv_up_proj\.layer_norm$|attention\.kv_layernorm$"),
    ("input_norm", r"^(input_layernorm|input_norm|attention_norm|attn_norm|ln_1|norm1)$|linear_qkv\.layer_norm$"),
    ("mlp_post_norm", r"^post_(feedforward|mlp)_layernorm$"),
    ("post_norm", r"^(post_attention_layernorm|pre_mlp_layernorm|pre_feedforward_layernorm|ffn_norm|ln_2|norm2)$|linear_fc1\.layer_norm$"),
    ("qkv_a", r"fused_qkv_a_proj"),
    ("q_a", r"q_a_proj$|linear_q_down_proj$"),
    ("q_b", r"q_b_proj$|linear_q_up_proj$"),
    ("kv_a", r"kv_a_proj(_with_mqa)?$|linear_kv_down_proj$"),
    ("kv_b", r"kv_b_proj$|linear_kv_up_proj$"),
    ("qkv", r"(qkv_proj|linear_qkv|qkv|query_key_value|c_attn|W_pack|Wqkv)$"),
    ("q", r"(\bq_proj|\bwq|\bquery|\bq)$"),
    ("k", r"(\bk_proj|\bwk|\bkey|\bk)$"),
    ("v", r"(\bv_proj|\bwv|\bvalue|\bv)$"),
    ("o", r"(\bo_proj|\blinear_proj|\bout_proj|\bwo|attn\.c_proj|attention\.dense|attn\.proj)$"),
    ("shared_expert_gate", r"shared_expert_gate$|shared_experts\.gate$"),
    ("router", r"^(mlp|moe|block_sparse_moe|feed_forward)\.(gate|router|gate\.wg)$|router$"),
    ("gate_up", r"(gate_up_proj|linear_fc1|gate_up|w13|gate_and_up)$"),
    ("gate", r"(\bgate_proj|\bw1|\bgate)$"),
    ("up", r"(\bup_proj|\bw3|\bup|\bc_fc|\bfc1)$"),
    ("down", r"(\bdown_proj|\blinear_fc2|\bw2|\bdown|mlp\.c_proj|\bfc2)$"),
)
_OUTSIDE = _table(
    ("embedding", r"(embed_tokens|word_embeddings|tok_embeddings|\bwte|embed_in|embeddings?)$"),
    ("lm_head", r"(lm_head|output_layer|embed_out|^output)$"),
    ("final_norm", r"(^|\.)(norm|final_layernorm|final_norm|ln_f)$"),
)
# Matrices that hold q, k and v: how the module reads its rows. Megatron-Core attention.py: of each group its queries, then k, then v.
READS_BY_GROUP = re.compile(r"(linear_qkv|query_key_value)$")
READS_SIDE_BY_SIDE = re.compile(r"(qkv_proj|c_attn|W_pack|Wqkv)$")
# What a side makes anew when it starts, or keeps for itself: no weight that one side must have because the other has it.
MADE_ANEW = re.compile(
    r"(inv_freq|cos_sin_cache|cos_cached|sin_cached|_extra_state|[kv]_scale|[qp]rob_scale|\bw_[kv]c|masked_bias|position_ids)$"
)
# What a weight is stored as by GPTQ, AWQ and compressed-tensors: integers of 4 bits, several in one, with scales and zero points.
PACKED = re.compile(r"\.(qweight|qzeros|scales|g_idx|weight_packed|weight_shape|weight_zero_point|weight_g_idx|weight_scale)$")
_LINEAR = frozenset(("q", "k", "v", "o", "qkv", "gate", "up", "gate_up", "down", "q_a", "q_b", "kv_a", "kv_b", "qkv_a"))
# Layers that predict further tokens: a prefill of the model itself does not run them.
_NEXT_TOKENS = re.compile(r"(^|\.)(mtp|nextn|enorm|hnorm|eh_proj|shared_head)(\.|$)")
_SHARED = re.compile(r"shared_experts?\b")


def role_of(module: str, in_layer: bool) -> Optional[str]:
    """The usual role of a module's path below its layer, or outside all layers; None where no row fits."""
    for role, pattern in _IN_LAYER if in_layer else _OUTSIDE:
        if pattern.search(module):
            shared = _SHARED.search(module) is not None and role in ("gate_up", "gate", "up", "down")
            return "shared_expert." + role if shared else role
    return None


def parts_of(role: str) -> Tuple[str, ...]:
    """The parts that a role's matrix holds; of one that is not fused itself."""
    stem, _, last = role.rpartition(".")
    return tuple(stem + "." + part if stem else part for part in FUSED.get(last, (last,)))


def fused_role(parts: Sequence[str]) -> Optional[str]:
    """The role of a matrix that holds some parts."""
    for role, inside in FUSED.items():
        stems = {part.rpartition(".")[0] for part in parts}
        if tuple(part.rpartition(".")[2] for part in parts) == inside and len(stems) == 1:
            stem = stems.pop()
            return stem + "." + role if stem else role
    return None


def predicts_further(path: str) -> bool:
    """Whether a path belongs to layers that predict further tokens (MTP)."""
    return _NEXT_TOKENS.search(path) is not None


def of_linear(module: str) -> bool:
    """Whether a module's path is that of a layer's linear map, which quantisation packs."""
    return (role_of(module, True) or "").rpartition(".")[2] in _LINEAR
