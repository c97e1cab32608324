"""Sentences on mixtures of experts as they are recomputed. Part of `wording.TABLE`: kind -> (English, Chinese)."""

ROUTING: dict[str, tuple[str, str]] = {
    "replay_no_choice": (
        "{side}: neither the router's logits nor the shares of the experts that {module} adds up are known: recording or mapping them",
        "{side}：既不知道路由器的 logits，也不知道 {module} 所加各专家的权重：需要采集或映射它们",
    ),
    "replay_no_router": (
        "neither side recorded the router's matrix, and {side} not its logits: whether its choice in {module} follows from them",
        "两侧都没有记录路由器矩阵，且 {side} 没有记录其 logits：{module} 的选择是否由它们得出",
    ),
    "replay_experts_exchanged": (
        "{side}: all {of} elements of its routed sum follow if experts {experts} stand for each other: one side has them exchanged",
        "{side}：若专家 {experts} 互换，其路由求和的全部 {of} 个元素均可得出：有一侧把它们弄反了",
    ),
    "replay_experts_shifted": (
        "{side}: all {of} elements of its routed sum follow if expert e + {by} stands for expert e: one side counts them from another on",
        "{side}：若以专家 e + {by} 作为专家 e，其路由求和的全部 {of} 个元素均可得出：有一侧的专家编号整体错位",
    ),
    "replay_experts_wider": (
        "{side}: it follows if sums inside the experts may err by {scale} times the bound of float32: a kernel that is not in the list",
        "{side}：若允许专家内部求和的误差达到 float32 界的 {scale} 倍，则全部可得出：内核不在清单中",
    ),
    "replay_only_experts": (
        "{side}: in the tokens of experts {experts} of {of}, and nowhere else",
        "{side}：仅在经过专家 {experts}（共 {of} 个专家）的 token 中",
    ),
    "replay_flips": (
        (
            "{n} of {of} tokens choose other experts on the two sides, each as its own router logits say: near ties, which earlier "
            "rounding decides and the experts amplify; tokens {tokens}, margins {margins}, at most {most}; the median token's is {usual}"
        ),
        (
            "{of} 个 token 中有 {n} 个在两侧选择了不同的专家，且各自符合自身的路由 logits：属于近似平局，由之前的舍入决定并被专家放大；"
            "token {tokens}，边距 {margins}，最大 {most}；全部 token 的边距中位数为 {usual}"
        ),
    ),
    "replay_flips_after": (
        (
            "{n} of {of} tokens choose other experts on the two sides, each as its own router logits say, which something before the "
            "router has changed; tokens {tokens}, margins {margins}, at most {most}; the median token's is {usual}"
        ),
        (
            "{of} 个 token 中有 {n} 个在两侧选择了不同的专家，且各自符合自身的路由 logits，而这些 logits 已被路由器之前的差异改变；"
            "token {tokens}，边距 {margins}，最大 {most}；全部 token 的边距中位数为 {usual}"
        ),
    ),
    "replay_router_stated": (
        "the configuration of {side} states that the shares of the chosen experts are divided by their sum",
        "{side} 的配置写明所选专家的权重要除以其和",
    ),
    "replay_router_stated_open": (
        "the configuration of {side} states that the shares of the chosen experts are not divided by their sum",
        "{side} 的配置写明所选专家的权重不除以其和",
    ),
    "routed_softmax_normalised": (
        "the softmax over the chosen experts (or over all, divided by the sum of the chosen)",
        "在所选专家上的 softmax（或全体 softmax 再除以所选之和）",
    ),
    "routed_softmax_of_all": (
        "the softmax over all experts, not divided by the sum of the chosen",
        "全体专家上的 softmax，不再除以所选之和",
    ),
    "routed_sigmoid_normalised": (
        "the sigmoid of each expert's logit, divided by the sum of the chosen",
        "各专家 logit 的 sigmoid，再除以所选之和",
    ),
    "routed_sigmoid": (
        "the sigmoid of each expert's logit, not divided by the sum of the chosen",
        "各专家 logit 的 sigmoid，不再除以所选之和",
    ),
    "variant_softmax_normalised": ("shares by the softmax over the chosen experts", "权重为所选专家上的 softmax"),
    "variant_softmax_of_all": ("shares by the softmax over all experts", "权重为全体专家上的 softmax"),
    "variant_sigmoid_normalised": ("shares by sigmoids divided by their sum", "权重为 sigmoid 再除以其和"),
    "variant_sigmoid": ("shares by sigmoids", "权重为 sigmoid"),
    "variant_experts_rounded": ("every step of an expert is rounded", "专家的每一步都舍入"),
    "variant_experts_float32": (
        "gate, up and activation in float32, an expert's output not rounded",
        "gate、up 与激活均为 float32，专家输出不舍入",
    ),
    "variant_output_float32": ("an expert's output not rounded", "专家输出不舍入"),
    "variant_shares_rounded": ("shares rounded", "权重舍入"),
    "variant_products_rounded": ("products of share and output rounded", "权重与输出的乘积舍入"),
    "variant_weighted_inside": ("the share multiplied in before the second matrix", "权重在第二个矩阵之前乘入"),
    "variant_shared_added": ("the shared expert's output added to the rounded sum", "共享专家的输出加到已舍入的和上"),
    "variant_shared_added_once": ("the shared expert's output added before the sum is rounded", "共享专家的输出在和舍入之前加入"),
    "variant_summed_once": ("experts summed in float32, rounded once", "各专家在 float32 中求和，只舍入一次"),
    "variant_summed_stepwise": ("rounded after each expert is added", "每加一个专家舍入一次"),
    "variant_logits_float32": ("router logits in float32", "路由 logits 为 float32"),
    "variant_logits_rounded": ("router logits rounded", "路由 logits 舍入"),
    "variant_greatest_logits": ("the experts with the greatest logits", "logits 最大的专家"),
}
