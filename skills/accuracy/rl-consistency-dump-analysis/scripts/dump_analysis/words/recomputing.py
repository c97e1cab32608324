"""Sentences on what recomputing has told: causes, and where a side rounds. Part of `wording.TABLE`: kind -> (English, Chinese)."""

RECOMPUTING: dict[str, tuple[str, str]] = {
    # --- causes ---
    "replay_span": (
        "both sides follow from what was recorded before it: train by {train}, infer by {infer}",
        "两侧都可由其之前记录的值得出：train 经 {train}，infer 经 {infer}",
    ),
    "replay_in_modules": ("{cause}; the same in {n} modules: {modules}", "{cause}；在 {n} 个模块中相同：{modules}"),
    "replay_cause_constant": (
        "{operator} {name} is {train} on train, {infer} on infer",
        "{operator} 的 {name} 在 train 为 {train}，在 infer 为 {infer}",
    ),
    "replay_cause_rounding": ("{operator}: on train {train}; on infer {infer}", "{operator}：train 侧{train}；infer 侧{infer}"),
    "replay_cause_unknown": (
        "not decided by recomputing: {n} modules that differ, {modules}; needed: {why}",
        "重算尚不能判定：{n} 个有差异的模块，{modules}；需要：{why}",
    ),
    "replay_both_explained": (
        "{module}: on train {train} of {of_train} elements do not follow ({by_train}), on infer {infer} of {of_infer} ({by_infer})",
        "{module}：train 有 {train} / {of_train} 个元素无法得出（{by_train}），infer 有 {infer} / {of_infer} 个（{by_infer}）",
    ),
    "replay_another_constant": ("another {name}", "另一个 {name}"),
    "replay_interval_holds": (
        "at {module} {name} can only lie between {train} on train and {infer} on infer: one value holds on both sides",
        "在 {module}，{name} 在 train 只能位于 {train}，在 infer 只能位于 {infer}：同一个值两侧都成立",
    ),
    "fix_constant": ("compute with {name} {value}, as the configuration of {side} states", "按 {side} 的配置，以 {name} {value} 计算"),
    "expect_equal_constant": ("both sides follow with one {name}", "两侧由同一个 {name} 得出"),
    # --- where a side rounds ---
    "variant_parts": ("{parts}", "{parts}"),
    "variant_stored": ("the result kept in {format}", "结果保存为 {format}"),
    "variant_partials": ("{n} partial sums are rounded, then added", "{n} 个部分和先舍入再相加"),
    "variant_plain": ("float32 accumulation, rounded once", "float32 累加，只舍入一次"),
    "variant_bias_in_acc": ("the bias is added before rounding", "舍入之前加偏置"),
    "variant_bias_after_cast": ("the product is rounded before the bias is added", "乘积先舍入，再加偏置"),
    "variant_cast_first": ("float32 operands are rounded to the output's format first", "float32 的操作数先舍入为输出的格式"),
    "variant_cast_before_weight": ("the normalised value is rounded before it is multiplied by the weight", "归一化的值先舍入，再乘权重"),
    "variant_cast_after_weight": ("rounded once, after the weight", "乘权重之后只舍入一次"),
    "variant_rstd_rounded": ("the inverse root is rounded", "平方根的倒数先舍入"),
    "variant_root_rounded": ("every step is rounded, the root and its reciprocal apart", "每一步都舍入，平方根与其倒数分别舍入"),
    "variant_all_rounded": ("every step is rounded, the mean of squares too", "每一步都舍入，平方的均值也是"),
    "variant_cast_to": (
        "the normalised value is rounded to {format}, its product with a float32 weight is not",
        "归一化的值先舍入为 {format}，与 float32 权重之积不再舍入",
    ),
    "variant_less_one": ("gains stored less one", "增益减一存储"),
    "variant_scaled": ("logits divided by the temperature are kept in {format}", "除以温度后的 logits 保存为 {format}"),
    "variant_add_rounded": ("the sum of branch and residual is rounded before it is normalised", "分支与残差之和先舍入，再归一化"),
    "variant_add_unrounded": ("the unrounded float32 sum of branch and residual is normalised", "对未舍入的 float32 分支残差之和做归一化"),
    "variant_act_rounded": ("the activation is rounded before it is multiplied", "激活值先舍入，再相乘"),
    "variant_act_float32": ("activation and product in float32, rounded once", "激活与乘法均为 float32，只舍入一次"),
    "variant_float32_inside": ("float32 inside, rounded once", "内部为 float32，只舍入一次"),
    "variant_stepwise": ("every step is rounded", "每一步都舍入"),
    "variant_rounded_once": ("added in float32, rounded once", "float32 相加，只舍入一次"),
    "variant_ends_first": (
        "the stream and the last branch are added first, each sum rounded",
        "先加残差流与最后一个分支，每次求和都舍入",
    ),
    "variant_branches_first": ("the branches are added first, each sum rounded", "先加各分支，每次求和都舍入"),
    "variant_product_rounded": ("the multiplied branch is rounded before it is added", "乘以系数的分支先舍入，再相加"),
    "variant_product_float32": ("the branch is multiplied and added in float32, rounded once", "分支的乘与加均为 float32，只舍入一次"),
    "variant_scaled_stepwise": ("with logits rounded before they are scaled", "logits 先取整再缩放"),
    "variant_scaled_once": ("with logits scaled in float32 and rounded once", "logits 在 float32 中缩放，只取整一次"),
    "variant_cap_stepwise": ("each step of the soft cap is rounded", "软截断的每一步都舍入"),
    "variant_cap_once": ("the soft cap in float32, rounded once", "软截断为 float32，只舍入一次"),
}
