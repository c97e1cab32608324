"""Sentences on conclusions: evidence, the summary, what would decide. Part of `wording.TABLE`: kind -> (English, Chinese)."""

CONCLUDING: dict[str, tuple[str, str]] = {
    # --- fingerprints and growth ---
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
    # --- causes and evidence ---
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
    "mapping_says": ("the mapping says of {boundary}: {note}", "映射对 {boundary} 的说明：{note}"),
    # --- summary ---
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
    "sum_rounding": (
        "The two sides compute the same function: whatever differs is rounding, made at {n} kinds of places, each of which is named.",
        "两侧计算的是同一个函数：所有差异都是舍入，来自 {n} 类位置，均已指明。",
    ),
    "sum_modules": (
        "{counts} Of {all} modules {same} compute the same, {rounding} round elsewhere, {logic} differ by logic, {unknown} are open.",
        "{counts}重算的 {all} 个模块中 {same} 个计算相同，{rounding} 个舍入点不同，{logic} 个有逻辑差异，{unknown} 个未定。",
    ),
    "sum_but_params": (
        "{verdict} But parameters of the two sides differ and are let stand by nobody: {points}.",
        "{verdict}但两侧的参数不同，且没有人放行：{points}。",
    ),
    # --- what would decide ---
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
    "decide_exchanged": (
        "in which order each side's loader puts the rows of {weights}: the mapping finds the same rows at other places",
        "两侧的加载代码各按什么次序放置 {weights} 的行：映射在别的位置找到了同样的行",
    ),
    "decide_ranks": ("all ranks of the step of {side}", "{side} 该 step 的全部 rank"),
    "open_cut": ("the dump of {side} is incomplete", "{side} 的采集不完整"),
    "open_gaps": ("not compared, and not covered by replay: {names}", "没有比较、也没有被重算覆盖：{names}"),
    "open_edges": ("inputs that no earlier output is known to have made: {names}", "不知由哪个更早的输出产生的输入：{names}"),
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
