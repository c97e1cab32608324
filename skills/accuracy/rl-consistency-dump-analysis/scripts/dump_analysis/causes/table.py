"""The causes that public reports name for a difference of one place, each as the fingerprint that it was seen with.

A row is a hypothesis, never a verdict: every ``needs`` must be measured for it to be named at all; ``usual`` speaks for it where it is
measured and against it where another value of the same dimension is. Signs are those of `looks` and `around`. The numbers are stable;
1 to 61 are those of causes that others reported, from 101 on those that were measured alone (see references/analysis.md).
"""

from typing import Literal, NamedTuple

# artefact of comparing, weights, configuration or a constant, kernel or code, rounding, semantics of log-probabilities
Family = Literal["A", "W", "C", "K", "R", "L"]


class Cause(NamedTuple):
    """``kind``: of its sentence. ``places``: names of PLACES, "" for any. ``needs``, ``usual``: signs, see `alternatives`.

    ``sources``: public threads, repository and number; "" for what was measured alone.
    """

    rule: int
    kind: str
    family: Family
    places: str
    needs: str
    usual: str = ""
    sources: str = ""

    @property
    def name(self) -> str:
        """Its name among the hypotheses."""
        return self.kind.removeprefix("cause.")


def alternatives(signs: str) -> tuple[tuple[str, ...], ...]:
    """Signs as a row states them, each a choice of one or more: "a.b|c d.e|f.g" is one of a.b and a.c, and one of d.e and f.g."""
    found = []
    for choice in signs.split():
        dimension, _, values = choice.partition(".")
        found.append(tuple(value if "." in value else f"{dimension}.{value}" for value in values.split("|")))
    return tuple(found)


PLACES: dict[str, frozenset[str]] = {
    "inputs": frozenset({"input_ids", "positions"}),
    "embedding": frozenset({"embedding.out"}),
    "norm": frozenset(
        {"input_norm.out", "post_norm.out", "final_norm.out", "attn_post_norm.out", "mlp_post_norm.out"}
        | {"q_norm.out", "k_norm.out", "q_a_norm.out", "kv_a_norm.out"}
    ),
    "fused_norm": frozenset({"input_norm.out", "post_norm.out", "final_norm.out"}),
    "qkv": frozenset({"q.out", "k.out", "v.out"}),
    "gate_up": frozenset({"gate.out", "up.out", "shared_expert.gate.out", "shared_expert.up.out"}),
    "row_parallel": frozenset({"o_proj.out", "down.out", "shared_expert.down.out"}),
    "linear": frozenset(
        {"q.out", "k.out", "v.out", "o_proj.out", "gate.out", "up.out", "down.out", "router.logits", "logits"}
        | {"shared_expert.gate.out", "shared_expert.up.out", "shared_expert.down.out"}
        | {"q_a.out", "q_b.out", "kv_a.out", "kv_b.out"}
    ),
    "rotary": frozenset({"q_rope.out", "k_rope.out"}),
    "attention": frozenset({"attn_core.out"}),
    "gated": frozenset({"act_mul.out", "shared_expert.act_mul.out"}),
    "residual": frozenset({"resid_attn", "resid_mlp"}),
    "router": frozenset({"router.logits"}),
    "choice": frozenset({"router.experts"}),
    "shares": frozenset({"router.weights"}),
    "moe": frozenset({"moe.out"}),
    "expert": frozenset({"experts.N.out", "moe.out"}),
    "shared": frozenset({"shared_expert.out"}),
    "logits": frozenset({"logits"}),
    "logprobs": frozenset({"logprobs"}),
    "weight": frozenset({"weight"}),
}

TABLE: tuple[Cause, ...] = (
    # --- artefacts of comparing ---
    Cause(1, "cause.pair_not_summed", "A", "residual", "rel.large addends.equal", "pattern.dense tokens.many", "nnsight#630 verl-omni#254"),
    Cause(2, "cause.dummy_run", "A", "", "zero.train|infer", "", "verl-omni#254 vllm-ascend#8574"),
    Cause(3, "cause.padding_left", "A", "", "shape.longer", "", "verl-omni#254"),
    Cause(4, "cause.shifted_by_one", "A", "", "moved.lag|some tokens.many", "", "modelscope/ms-swift#8196 CarperAI/trlx#509"),
    Cause(5, "cause.other_tokens", "A", "embedding", "ids.differ|unknown rel.large scale.none", "way.two_sided tokens.few|tail"),
    Cause(6, "cause.integers_taken", "A", "", "dtype.one_integer", "", "nnsight#630"),
    Cause(101, "cause.positions_offset", "A", "inputs", "offset.one", "onset.first", "trl#6800"),
    # --- embedding, norms ---
    Cause(8, "cause.embedding_scale", "C", "embedding", "scale.root_of_width", "way.one_sided share.nearly_all", "vllm-project/vllm#3653"),
    Cause(102, "cause.embedding_scale_rounded", "C", "embedding", "scale.rounded_constant way.one_sided", "share.part ulp.within_2",
          "transformers#38702"),
    Cause(9, "cause.gain_offset", "C", "norm", "by_column.scale", "rel.large share.nearly_all", "vllm-project/vllm#3653 vllm#31464"),
    Cause(10, "cause.norm_eps", "C", "norm", "way.one_sided", "by_token.partly|scale rel.rounding|middle by_column.no|partly",
          "NVIDIA-NeMo/Megatron-Bridge#5712 pytorch/torchtitan#4395 paiml/aprender#1606"),
    Cause(11, "cause.norm_cast_order", "R", "norm", "way.two_sided ulp.within_2", "share.part by_token.no rel.rounding",
          "verl-omni#637 vllm-project/vllm#42379"),
    Cause(12, "cause.norm_variance_rounded", "R", "norm", "way.two_sided ulp.within_2 by_token.partly", "share.part rel.rounding",
          "vllm-project/vllm#36101"),
    Cause(34, "cause.norm_sum_unrounded", "R", "fused_norm", "way.two_sided ulp.within_2", "share.part rel.rounding",
          "sgl-project/sglang#18639"),
    # --- products with weights ---
    Cause(13, "cause.bias_lost", "W", "linear", "by_column.offset", "share.nearly_all", "ROCm/Megatron-LM#62 meta-pytorch/torchtune#2233"),
    Cause(14, "cause.rows_reordered", "W", "qkv gate_up", "values.other_of_same_size", "pattern.dense", "NVIDIA-NeMo/RL#2802"),
    Cause(103, "cause.weight_rows", "W", "linear", "pattern.columns|heads", "weights.differ|unknown"),
    Cause(104, "cause.weight_update", "W", "linear", "way.two_sided rel.rounding|middle weights.differ|unknown",
          "pattern.dense weights.differ", "huggingface/trl#5312"),
    Cause(105, "cause.sum_order", "R", "linear", "way.two_sided|few share.sparse", "ulp.within_2 pattern.scattered"),
    Cause(32, "cause.partial_sums", "R", "row_parallel", "way.two_sided share.part ulp.within_2|within_8", "rel.rounding by_column.no",
          "sglang#15041 NeMo-RL#1767"),
    Cause(121, "cause.product_rounded", "R", "linear", "way.two_sided share.part ulp.within_2", "rel.rounding by_column.no"),
    # --- rotary embedding, attention ---
    Cause(15, "cause.rope_theta", "C", "rotary attention", "rotation.here onset.second rel.large|middle", "way.two_sided columns.some",
          "modelscope/ms-swift#6056 NVIDIA-NeMo/RL#869"),
    Cause(16, "cause.rope_pairing", "K", "rotary attention", "rotation.here onset.second rel.large", "way.two_sided columns.all",
          "NVIDIA/TensorRT-LLM#16378"),
    Cause(18, "cause.rope_attention_factor", "C", "rotary", "scale.one onset.first", "way.one_sided",
          "vllm-project/vllm#48351 sgl-project/sglang#38786"),
    Cause(19, "cause.rope_some_positions", "C", "rotary", "tokens.few rel.middle|large", "way.two_sided",
          "verl-project/verl#3653 Megatron-Bridge#1776"),
    Cause(106, "cause.rope_positions_off", "K", "rotary", "onset.first tokens.many way.two_sided rel.large"),
    Cause(20, "cause.rope_rounded", "R", "rotary attention", "rotation.here onset.second way.two_sided ulp.within_2|within_8",
          "share.part worst.anywhere rel.rounding", "prime-rl#1167"),
    Cause(107, "cause.rope_angles_rounded", "C", "rotary attention", "rotation.here onset.second way.two_sided worst.late", "rel.middle",
          "NVIDIA-NeMo/RL#1801"),
    Cause(23, "cause.window", "C", "attention", "onset.later|worst.late tokens.many rel.middle|large", "",
          "vllm-project/vllm#3385 vllm#5908"),
    Cause(27, "cause.chunk_state", "K", "attention", "onset.later tokens.many", "rel.large",
          "vllm-project/vllm#52909 sgl-project/sglang#22020"),
    Cause(25, "cause.attention_sink", "C", "attention", "way.one_sided onset.first", "by_token.partly|scale rel.large", "THUDM/slime#996"),
    Cause(26, "cause.attention_soft_cap", "C", "attention", "way.leaning", "onset.second rel.rounding|middle", "vllm#5908"),
    Cause(108, "cause.attention_scale", "C", "attention", "onset.second rel.middle|large", "way.leaning share.nearly_all",
          "Megatron-LM#1429"),
    Cause(109, "cause.attention_probabilities_rounded", "R", "attention", "way.two_sided ulp.within_2|within_8",
          "onset.second rel.rounding"),
    Cause(110, "cause.padded_keys", "K", "attention", "tokens.tail", "way.two_sided"),
    Cause(111, "cause.heads_assigned_otherwise", "K", "attention", "pattern.heads|values.other_of_same_size", "rel.large"),
    # --- feed-forward, residual stream ---
    Cause(57, "cause.gelu_form", "C", "gated", "way.leaning|one_sided rel.rounding|middle", "onset.first",
          "NVIDIA-NeMo/Megatron-Bridge#4661 kyutai-labs/pocket-tts#278"),
    Cause(112, "cause.activation", "C", "gated", "rel.large values.near_or_scaled", "way.leaning|one_sided share.nearly_all"),
    Cause(113, "cause.gate_up_exchanged", "K", "gated", "rel.large values.other_of_same_size", "way.two_sided share.nearly_all",
          "nntrainer#4194 sglang#32430"),
    Cause(114, "cause.activation_rounded", "R", "gated", "way.two_sided ulp.within_2", "share.part rel.rounding"),
    Cause(115, "cause.residual_rounded", "R", "residual", "way.two_sided ulp.within_2", "addends.equal share.part rel.rounding"),
    Cause(116, "cause.residual_lost", "K", "residual", "tokens.few|tail rel.middle|large", "addends.equal"),
    # --- mixture of experts ---
    Cause(36, "cause.choice_flipped", "R", "choice", "router.differ tokens.few|tail", "router.near", "Megatron-LM#4256"),
    Cause(37, "cause.router_bias_rounded", "C", "choice", "router.equal", "tokens.many", "sglang#37133 sglang#31213"),
    Cause(38, "cause.shares_normalised", "C", "shares", "by_token.scale|offset|partly", "choice.equal way.one_sided",
          "pytorch/torchtitan#2319"),
    Cause(39, "cause.routed_scale", "C", "moe", "scale.one", "way.one_sided share.nearly_all", "vllm#24119 vllm#45037 sglang#8511"),
    Cause(40, "cause.shared_expert_scale", "K", "shared", "scale.one", "way.one_sided share.nearly_all", "sglang#28237"),
    Cause(41, "cause.expert_bias", "K", "expert", "by_column.offset", "share.nearly_all", "NVIDIA-NeMo/Automodel#2591"),
    Cause(117, "cause.experts_summed_rounded", "R", "moe", "way.two_sided ulp.within_2|within_8", "share.part rel.rounding"),
    # --- head, log-probabilities ---
    Cause(46, "cause.head_not_refreshed", "W", "logits", "hidden.equal rel.middle|large", "way.two_sided scale.none",
          "prime-rl#2823 vllm#46835"),
    Cause(47, "cause.head_format", "R", "logits", "way.two_sided ulp.within_2", "hidden.equal rel.rounding"),
    Cause(48, "cause.vocabulary_padded", "C", "logits", "shape.wider", "", "tenstorrent/tt-metal#38881"),
    Cause(118, "cause.normaliser_padded", "C", "logprobs", "logits.equal way.one_sided rel.rounding|middle", ""),
    Cause(49, "cause.final_soft_cap", "C", "logits", "way.one_sided|leaning rel.middle|large scale.none", "hidden.equal", "vllm#5908"),
    Cause(50, "cause.temperature", "L", "logprobs", "logits.equal way.one_sided|leaning", "rel.large", "trl#4159 vllm#37082"),
    Cause(51, "cause.renormalised", "L", "logprobs", "way.one_sided smaller.infer", "logits.equal", "trl#6789"),
    Cause(52, "cause.sampling_mask", "L", "logprobs", "nonfinite.infer", "", "vllm-ascend#2934"),
    # --- anywhere ---
    Cause(22, "cause.rows_not_computed", "K", "", "zero.tokens", "tokens.tail", "NVIDIA/TransformerEngine#3331 NVIDIA/Megatron-LM#5541"),
    Cause(56, "cause.quantised_elsewhere", "R", "", "dtype.float8 way.two_sided|few", "share.part|sparse", "sglang#31086"),
    Cause(61, "cause.overflow", "K", "", "nonfinite.train|infer", "", "vllm-ascend#334"),
    # --- weights themselves ---
    Cause(44, "cause.experts_not_synced", "W", "weight", "differing.only_experts", "", "SkyRL#1680 verl#7978"),
    Cause(45, "cause.all_weights_old", "W", "weight", "differing.all", "", "huggingface/trl#5312"),
    Cause(119, "cause.head_alone", "W", "weight", "differing.only_head", "", "prime-rl#2823"),
    Cause(120, "cause.partly_written", "W", "weight", "rows.some", ""),
)  # fmt: skip
