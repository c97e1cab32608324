"""Sentences on conclusions, hypotheses, what would decide. Part of `wording.TABLE`: kind -> (English, Chinese)."""

CONCLUDING: dict[str, tuple[str, str]] = {
    # --- conclusion: fingerprints and growth ---
    "fp_few": (
        "by fingerprint nothing can be told: {n} elements of unequal magnitude are too few",
        "凭指纹无法判断：只有 {n} 个元素大小不同，太少",
    ),
    "fp_one_sided": (
        (
            "by fingerprint one-sided (all {n} elements in one direction), as where a constant differs (eps, scale, multiplier, gain) "
            "and not where only an order of summation does; not proven"
        ),
        "凭指纹为单向（{n} 个元素全部同向）：不同的常数（eps、scale、乘数、增益）如此，求和次序不会；未证明",
    ),
    "fp_leaning": (
        (
            "by fingerprint leaning to one side (share {share} of {n} elements), as where a function differs (soft cap, activation); "
            "known roundings lean far less; not proven"
        ),
        "凭指纹偏向一侧（{n} 个元素中占 {share}）：不同的函数（软上限、激活）如此，已知的舍入偏得少得多；未证明",
    ),
    "fp_two_sided": (
        (
            "by fingerprint two-sided (at most {share} of {n} elements in one direction), as roundings are, "
            "and many faults too (positions, weights, masks); not proven either way"
        ),
        "凭指纹为双向（{n} 个元素中同向的至多占 {share}）：舍入如此，许多故障（位置、权重、mask）也如此；两者都未证明",
    ),
    "growth": (
        "relative difference {at_first} at {first}, {at_last} at {last}; the largest step is to {step} at layer {layer}",
        "相对差异在 {first} 为 {at_first}，在 {last} 为 {at_last}；增长最大的一步在第 {layer} 层，达到 {step}",
    ),
    # --- conclusion: causes and evidence ---
    "weight_differs": (
        "different on the two sides: {weights} ({unequal} of {of} elements)",
        "两侧不同：{weights}（{of} 个元素中 {unequal} 个不等）",
    ),
    "weight_shapes_differ": ("of other shape on the two sides: {weights}", "两侧形状不同：{weights}"),
    "one_side_nonfinite": (
        "{side} alone holds non-finite elements at {boundary}: {n}, the first is element {index}",
        "只有 {side} 在 {boundary} 出现非有限元素：{n} 个，首个为元素 {index}",
    ),
    "not_judged": (
        "{boundary} differs ({status}); rounding or fault is not decided by this comparison alone",
        "{boundary} 不同（{status}）；仅凭本次比较不能判定是舍入还是故障",
    ),
    "compared_bytes": (
        "{boundary}: {unequal} of {of} elements differ, largest difference {max}",
        "{boundary}：{of} 个元素中 {unequal} 个不等，最大差值 {max}",
    ),
    "apart_by": (
        "{boundary}: at most {ulps} ULP apart, {at_scale} at the scale of the row",
        "{boundary}：最多差 {ulps} 个 ULP，按该行的尺度为 {at_scale} 个",
    ),
    "shapes_differ": ("{boundary}: shape {train} on train, {infer} on infer", "{boundary}：train 形状 {train}，infer 形状 {infer}"),
    "before_all_equal": ("all {n} boundaries before it are EXACT", "其前 {n} 个边界全部 EXACT"),
    "before_unknown": (
        "the order in which a side ran is not known: an earlier source is not excluded",
        "一侧的执行顺序未知：不能排除更早的来源",
    ),
    "before_gaps": (
        "an earlier source is not excluded: not compared before it: {gaps}",
        "不能排除更早的来源：其前未比较：{gaps}",
    ),
    # --- conclusion: hypotheses ---
    "weights_equal": ("{equal} of {of} compared weights are equal", "{of} 个已比较的权重中 {equal} 个相等"),
    "weights_differ": ("{differ} of {of} compared weights differ: {names}", "{of} 个已比较的权重中 {differ} 个不同：{names}"),
    "weights_not_compared": ("no weight was compared", "没有比较任何权重"),
    "weights_partly": (
        "{of} weights were compared and are equal; {gaps} could not be compared, {unmapped} recorded ones stand in no row",
        "已比较的 {of} 个权重相等；{gaps} 个无法比较，另有 {unmapped} 个已记录的权重不在任何一行中",
    ),
    "inputs_equal": ("EXACT: {names}", "EXACT：{names}"),
    "inputs_differ": ("different on the two sides: {names}", "两侧不同：{names}"),
    "inputs_not_compared": ("input ids and positions were not both compared", "没有同时比较 input_ids 与 positions"),
    "config_by_fingerprint": ("no configuration was compared; {seen}", "没有比较任何配置；{seen}"),
    "order_by_fingerprint": (
        "needs each module recomputed from its own inputs; {seen}",
        "需要用各模块自己的输入重新计算；{seen}",
    ),
    "config_not_read": ("no configuration was compared", "没有比较任何配置"),
    "units_handed": (
        "dump units handed: {train} of train, {infer} of infer; how many ranks ran is not recorded",
        "给出的采集份数：train {train} 份，infer {infer} 份；实际运行了多少 rank 没有记录",
    ),
    "units_unknown": ("how many ranks and steps each side has is not known", "不清楚两侧各有多少 rank 与 step"),
    "needs_replay": ("needs each module recomputed from its own inputs", "需要用各模块自己的输入重新计算"),
    "no_reason": ("no reason is stated", "没有写明原因"),
    "nothing_differs": ("nothing that was compared differs", "已比较的内容没有差异"),
    # --- conclusion: hypotheses by replay, and causes that fit ---
    "weights_of_kind": ("{n} {what}", "{what} {n} 个"),
    "weights_kinds": ("{differ} of {of} weights differ ({kinds}): {names}", "{of} 个权重中 {differ} 个不同（{kinds}）：{names}"),
    "weights_equal_or_borrowed": (
        (
            "{equal} of {of} compared weights are equal; where a side recorded none, "
            "the other side's explain what it computed ({borrowed} modules)"
        ),
        "已比较的 {of} 个权重中 {equal} 个相等；一侧没有记录的，用另一侧的权重可以重算出其结果（{borrowed} 个模块）",
    ),
    "weights_borrowed_in_vain": (
        "a side recorded no weights, and the other side's do not explain what it computed in {modules}",
        "一侧没有记录权重，而另一侧的权重不能解释它在 {modules} 的计算",
    ),
    "config_apart": ("{told} ({modules})", "{told}（{modules}）"),
    "stated_windows_apart": (
        "the configurations state a window of {train} for train and of {infer} for infer; it has no effect here: no token sees past it",
        "两侧配置的窗口不同：train 为 {train}，infer 为 {infer}；此处没有影响：没有 token 的可见范围超出窗口",
    ),
    "stated_constants_apart": (
        "the configurations state {name} {train} for train and {infer} for infer; what was recorded follows from either value",
        "两侧配置的 {name} 不同：train 为 {train}，infer 为 {infer}；所记录的数据用两个值都能得出",
    ),
    "config_agrees": (
        "in all {n} modules with constants one value explains both sides: {names}",
        "全部 {n} 个含常数的模块中，同一个值能解释两侧：{names}",
    ),
    "config_agrees_partly": (
        "one value explains both sides in {n} modules ({names}); constants of what does not follow or was not recomputed are open: {left}",
        "{n} 个模块中同一个值能解释两侧（{names}）；未能得出或未重算之处的常数仍不清楚：{left}",
    ),
    "layout_partials": (
        "{side} adds rounded partial sums, as ranks or blocks make them, where the other side does not: {modules}",
        "{side} 把各 rank 或分块的部分和舍入后相加，另一侧不是：{modules}",
    ),
    "layout_follows": (
        "all {n} modules follow from whole recorded inputs and weights on both sides: no part of a rank is lost or out of order",
        "全部 {n} 个模块在两侧都能由完整的输入与权重得出：没有 rank 的部分丢失或错序",
    ),
    "order_of_modules": ("{n} modules are rounded at other points: {told}", "{n} 个模块的舍入点不同：{told}"),
    "order_same": ("all {n} modules are rounded at the same points on both sides", "全部 {n} 个模块在两侧的舍入点相同"),
    "order_nowhere": (
        "no module of {n} is right on both sides and rounded at other points",
        "{n} 个模块中没有两侧都正确而舍入点不同的",
    ),
    "order_left": ("not told of what does not follow or was not recomputed: {left}", "未能得出或未重算之处不清楚：{left}"),
    "follows_everywhere": (
        "all {n} modules follow from their own recorded inputs, or are equal: nothing was drawn at random",
        "全部 {n} 个模块都能由自己记录的输入得出，或两侧相等：没有随机因素",
    ),
    "follows_not": (
        "these do not follow from their inputs, or were not recomputed: {left}",
        "以下模块不能由其输入得出，或没有重算：{left}",
    ),
    "edges_altered": (
        "a value reached a module altered since it was made, on {sides}: {inputs}",
        "{sides} 有值在产生之后、进入模块之前被改动：{inputs}",
    ),
    "cause_fits": (
        "rule {rule} ({family}), by fingerprint of {boundary}: {cause}; for it: {because}; not proven",
        "规则 {rule}（{family}），凭 {boundary} 的指纹：{cause}；支持：{because}；未证明",
    ),
    "cause_fits_partly": (
        "rule {rule} ({family}), by fingerprint of {boundary}: {cause}; for it: {because}; against it: {against}; not proven",
        "规则 {rule}（{family}），凭 {boundary} 的指纹：{cause}；支持：{because}；反对：{against}；未证明",
    ),
    "decide_weights_recorded": (
        "a dump with every weight, and a mapping that names each",
        "记录全部权重的 dump，以及提到每个权重的映射",
    ),
    "decide_by_replay": (
        "recomputing each module from its own recorded inputs (replay_boundaries.py)",
        "用各模块自己记录的输入重新计算（replay_boundaries.py）",
    ),
    "decide_layout": ("tensor, pipeline, expert and context parallel sizes of both sides", "两侧的 TP、PP、EP、CP 规模"),
    "decide_config_files": ("the effective configurations of both sides", "两侧生效的配置"),
    "decide_by_round": ("the same module dumped again on equal inputs", "用相同的输入再次采集该模块"),
    "decide_repeat": ("a second dump of the same input: equal bit for bit or not", "同一输入再采一次：是否逐位相等"),
    # --- conclusion: summary ---
    "sum_exact": ("The two sides are equal bit for bit at all {n} boundaries compared.", "两侧在全部 {n} 个已比较的边界上逐位相等。"),
    "sum_exact_cut": (
        "The two sides are equal bit for bit at all {n} boundaries compared, but the dump of {sides} is incomplete.",
        "两侧在全部 {n} 个已比较的边界上逐位相等，但 {sides} 的采集不完整。",
    ),
    "sum_rounding_grown": (
        (
            "The two sides compute the same function: whatever differs is rounding, made at {n} kinds of places, each of which is named. "
            "Its effect is large: a relative difference of at most {made} where a layer makes it has grown to {end} at {boundary}."
        ),
        (
            "两侧计算的是同一个函数：所有差异都是舍入，来自 {n} 类位置，均已指明。"
            "但其影响很大：单层产生的相对差异不超过 {made}，到 {boundary} 处已放大到 {end}。"
        ),
    ),
    "sum_exact_covered": (
        (
            "The two sides are equal bit for bit at all {n} boundaries compared; what could not be compared follows on both sides from "
            "what they recorded."
        ),
        "两侧在全部 {n} 个已比较的边界上逐位相等；无法比较之处，两侧均可由各自记录的数据重算得出。",
    ),
    "sum_exact_gaps": (
        "The two sides are equal bit for bit at {n} boundaries; {gaps} boundaries and {weights} weights could not be compared.",
        "两侧在 {n} 个边界上逐位相等；另有 {gaps} 个边界和 {weights} 个权重无法比较。",
    ),
    "sum_not_run": ("Nothing was compared: {why}.", "没有进行任何比较：{why}。"),
    "no_rows": ("the mapping has no rows", "映射没有任何行"),
    "sum_only_weights": ("No boundary was compared; of {n} weights {equal} are equal.", "没有比较任何边界；{n} 个权重中 {equal} 个相等。"),
    "sum_only_gaps": ("No boundary could be compared: {gaps} lack evidence.", "没有可比较的边界：{gaps} 个缺少证据。"),
    "sum_other_inputs": (
        "The two sides were not given the same inputs: {first}.",
        "两侧得到的输入不同：{first}。",
    ),
    "mapping_says": ("the mapping says of {boundary}: {note}", "映射对 {boundary} 的说明：{note}"),
    "decide_exchanged": (
        "in which order each side's loader puts the rows of {weights}: the mapping finds the same rows at other places",
        "两侧的加载代码各按什么次序放置 {weights} 的行：映射在别的位置找到了同样的行",
    ),
    "decide_ranks": ("all ranks of the step of {side}", "{side} 该 step 的全部 rank"),
    "sum_one_fault": (
        "The two sides do not compute the same function: {first}.",
        "两侧计算的不是同一个函数：{first}。",
    ),
    "sum_faults": (
        "The two sides do not compute the same function: {n} independent logic differences: {causes}.",
        "两侧计算的不是同一个函数：{n} 处独立的逻辑差异：{causes}。",
    ),
    "sum_undecided": (
        "The two sides part at {boundary}; whether that is rounding or a fault is not decided.",
        "两侧在 {boundary} 处开始不同；是舍入还是故障尚未判定。",
    ),
    "sum_first": ("They part first at {boundary}: {evidence}.", "首次分歧在 {boundary}：{evidence}。"),
    "sum_between": (
        "They part between {last} and {boundary}: {evidence}; between the two, not compared: {gaps}.",
        "分歧发生在 {last} 与 {boundary} 之间：{evidence}；两者之间未比较：{gaps}。",
    ),
    "sum_weights_apart": (
        "No compared boundary differs ({n} are EXACT), but of the weights these are not EXACT: {weights}.",
        "已比较的边界没有差异（{n} 个 EXACT），但以下权重不是 EXACT：{weights}。",
    ),
    "sum_no_divergence": ("No compared boundary differs.", "已比较的边界没有差异。"),
    "sum_nothing": ("There is no first divergence to name.", "没有可指出的首个分歧。"),
    "sum_counts": (
        "{boundaries}; {weights}.",
        "{boundaries}；{weights}。",
    ),
    "sum_counts_left": (
        "{boundaries}; {weights}; {train} recorded tensors of train and {infer} of infer stand in no row.",
        "{boundaries}；{weights}；train 有 {train} 个、infer 有 {infer} 个已记录的张量不在任何一行中。",
    ),
    "count_boundaries": (
        "{exact} of {all} boundaries are EXACT, {differ} differ, {gaps} were not compared",
        "{all} 个边界中 {exact} 个 EXACT，{differ} 个不同，{gaps} 个未比较",
    ),
    "count_weights": (
        "of {all} weights {equal} are equal, {differ} differ, {gaps} were not compared",
        "{all} 个权重中 {equal} 个相等，{differ} 个不同，{gaps} 个未比较",
    ),
    "start_of_model": ("the model's inputs", "模型输入"),
    # --- conclusion: what would decide ---
    "decide_weight": (
        "first that the mapping cuts {weights} rightly, then the checkpoint that both sides were loaded from",
        "先核对映射对 {weights} 的切片，再看两侧共同加载的检查点",
    ),
    "decide_inputs": (
        "the prompt as each side tokenised it: which {boundary} did each side mean to use",
        "两侧各自分词后的 prompt：各侧原本要用的 {boundary} 是什么",
    ),
    "decide_replay": ("recomputing {boundary} on each side from its own recorded inputs", "用各侧自己记录的输入重新计算 {boundary}"),
    "decide_gap": ("recording or mapping {names}", "记录或映射 {names}"),
    "decide_dump": ("a complete dump of {side}", "{side} 的完整采集"),
    "decide_and_more": ("{first}; and {n} more of this kind", "{first}；另有 {n} 处同类"),
    # --- conclusion: what replay has shown ---
    "sum_rounding": (
        "The two sides compute the same function: whatever differs is rounding, made at {n} kinds of places, each of which is named.",
        "两侧计算的是同一个函数：所有差异都是舍入，来自 {n} 类位置，均已指明。",
    ),
    "sum_modules": (
        "{counts} Of {all} modules {same} compute the same, {rounding} round elsewhere, {logic} differ by logic, {unknown} are open.",
        "{counts}重算的 {all} 个模块中 {same} 个计算相同，{rounding} 个舍入点不同，{logic} 个有逻辑差异，{unknown} 个未定。",
    ),
    "open_cut": ("the dump of {side} is incomplete", "{side} 的采集不完整"),
    "open_gaps": ("not compared, and not covered by replay: {names}", "没有比较、也没有被重算覆盖：{names}"),
    "open_edges": ("inputs that no earlier output is known to have made: {names}", "不知由哪个更早的输出产生的输入：{names}"),
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
    # --- parameters ---
    "sum_but_params": (
        "{verdict} But parameters of the two sides differ and are let stand by nobody: {points}.",
        "{verdict}但两侧的参数不同，且没有人放行：{points}。",
    ),
    "param_open": (
        "param {point}: the two sides differ in {items} before anything runs",
        "参数点 {point}：运行之前两侧的 {items} 就不同",
    ),
    "param_open_because": (
        "param {point}: the two sides differ in {items} before anything runs: {cause}",
        "参数点 {point}：运行之前两侧的 {items} 就不同：{cause}",
    ),
    "param_waived": (
        "param {point}: the two sides differ in {items}, which was let stand: {reason}",
        "参数点 {point}：两侧的 {items} 不同，已被放行：{reason}",
    ),
    "param_decides": (
        "param {point}: {items} aligned and both sides dumped again, or a waiver with its reason",
        "参数点 {point}：对齐 {items} 后两侧重采，或写明理由放行",
    ),
    # --- training log ---
    "log_lacks": ("{file} states no {keys}", "{file} 中没有 {keys}"),
    "log_not_computed": (
        "{metric}_valid is 0: {metric} was not computed, whatever value stands beside it",
        "{metric}_valid 为 0：{metric} 没有计算，旁边的数值一律不算",
    ),
    "log_untold": (
        "{metric} is stated without a mean, or as 0 without valid: that cannot be told from not computed",
        "{metric} 没有 mean，或为 0 且没有 valid：无法与“没有计算”区分",
    ),
    "log_rounded": (
        "the log prints {parts} of {metric} as 0 with few decimals: below {bound}, not known to be 0",
        "{metric} 的 {parts} 以有限小数位打印为 0：只知小于 {bound}，不能当作 0",
    ),
}
