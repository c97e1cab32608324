"""Sentences on hypotheses: what excludes or supports each, what would decide it. Part of `wording.TABLE`: kind -> (English, Chinese)."""

HYPOTHESES: dict[str, tuple[str, str]] = {
    # --- by what was compared ---
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
    # --- by replay, and causes that fit ---
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
    # --- parameters ---
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
}
