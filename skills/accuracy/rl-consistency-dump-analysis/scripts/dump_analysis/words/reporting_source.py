"""Sentences of a report source. Part of `wording.TABLE`: kind -> (English, Chinese)."""

REPORTING_SOURCE: dict[str, tuple[str, str]] = {
    # --- what was compared ---
    "report_title": ("Train–inference prefill consistency: {model}", "训练与推理 prefill 一致性分析：{model}"),
    "report_title_plain": ("Train–inference prefill consistency", "训练与推理 prefill 一致性分析"),
    "report_objective": (
        "list every independent difference, and say of each whether it is rounding or a fault",
        "列出全部独立差异，并说明每一处是舍入级还是逻辑级",
    ),
    "report_objective_first": ("name the first divergence and say of what kind it is", "指出首个分歧并说明其性质"),
    "report_stop": ("every independent difference has a conclusion", "全部独立差异均有结论"),
    "report_model_unnamed": (
        "{layers} layers, hidden {width}, {formats}; name unknown",
        "{layers} 层，hidden {width}，{formats}；模型名 unknown",
    ),
    "report_model": ("{name} ({layers} layers, hidden {width}, {formats})", "{name}（{layers} 层，hidden {width}，{formats}）"),
    "report_compared": ("{compared} of {all} boundaries compared", "比对 {compared}/{all} 个边界"),
    "report_compared_but": (
        "{compared}; {covered} of the other {gaps} lie in stretches that recomputing explains on both sides",
        "{compared}；其余 {gaps} 个中 {covered} 个位于两侧均由重算解释的区间内",
    ),
    "report_each": ("train: {train}; infer: {infer}", "train：{train}；infer：{infer}"),
    # --- differences ---
    "report_difference": ("{cause}; {side}", "{cause}；{side}"),
    "report_side_train": ("proven on train", "已证明在 train 侧"),
    "report_side_infer": ("proven on infer", "已证明在 infer 侧"),
    "report_side_both": ("on both sides", "两侧都有"),
    "report_side_unknown": ("which side is not decided", "在哪一侧尚不能判定"),
    "report_attempt": ("{cause}: {because}", "{cause}：{because}"),
    # --- axes and metrics ---
    "report_weights_unmapped": (
        "{counts}; {unmapped} recorded weights stand in no row",
        "{counts}；另有 {unmapped} 个已记录的权重不在任何一行中",
    ),
    "report_weights_named": ("{counts}: {names}", "{counts}：{names}"),
    "report_one_prefill": ("one prefill of each side was recorded, no training step", "两侧只记录了一次 prefill，没有训练步"),
    "report_no_patch": ("this analysis changes no code", "本次分析不改代码"),
    "report_reduced_unknown": (
        "unknown: whether the model of these dumps stands for a larger one",
        "unknown：这两份 dump 的模型是否用来代替更大的模型",
    ),
    "report_not_repaired": ("nothing was repaired and run again", "没有修复后重跑"),
    "report_no_log": ("no training log was given", "没有给出训练日志"),
    "report_metric": ("{source}, step {step}", "{source}，step {step}"),
    "report_metric_but": ("{metric}; {note}", "{metric}；{note}"),
    "report_metric_not_run": ("{source} does not state it as computed", "{source} 没有说明它被计算过"),
    "report_steps_measured": (
        "{source} was measured at {n} steps; how many are enough is not stated",
        "{source} 在 {n} 个 step 上有测量；需要多少个 step 没有说明",
    ),
    # --- what a source states, in the report ---
    "stated_accepted": ("Acceptance", "验收"),
    "stated_model": ("Requested model", "要求的模型"),
    "stated_gates": ("Required gates", "要求的轴"),
    "stated_stop": ("Stop condition", "停止条件"),
    "stated_failed_at": ("Earlier failure at step", "历史失败 step"),
    "stated_metric": ("Response metric", "response 段指标"),
    "stated_metric_is": ("{name}: {status}, {value}; {evidence}", "{name}：{status}，{value}；{evidence}"),
    "stated_difference": ("Difference {id}", "差异 {id}"),
    "stated_date": ("Date of the report", "报告日期"),
    "stated_what": ("What", "内容"),
    "stated_where": ("Where", "位置"),
    "stated_became": ("Standing", "处置"),
    "hand_notice": (
        "Written by hand: no conclusion.json lies beside this source, so nothing in it was held against results.",
        "手写的报告：事实源旁边没有 conclusion.json，其中的内容没有与任何结果核对。",
    ),
    "hand_results": ("Results", "结果"),
    "hand_native": ("Prefill as it runs", "原生 prefill"),
    "hand_conditional": ("Prefill after overriding", "覆盖之后的 prefill"),
    "hand_metric": ("Response metric", "response 段指标"),
    "hand_scope": ("Scope", "范围"),
    "hand_stated": ("Acceptance and differences", "验收与差异"),
    "hand_limits": ("Limitations", "局限"),
    # --- limitations ---
    "report_first_only": ("Faults further down than the first divergence were not isolated", "未隔离首个分歧更下游的差异"),
    "report_uncompared": ("not compared: {names}: {why}", "未比较：{names}：{why}"),
    "report_uncompared_alike": ("not compared: {names}; of the first: {why}", "未比较：{names}；其中第一个：{why}"),
    "report_uncompared_covered": (
        "{gap}; the stretch up to {by} is explained on both sides by recomputing",
        "{gap}；到 {by} 为止的区间两侧均由重算解释",
    ),
    "report_rounding": (
        "{id} (floating-point level, not an error), at {places} boundaries from {boundary}: {cause}",
        "{id}（浮点级，不是错误），从 {boundary} 起共 {places} 个边界：{cause}",
    ),
    "report_rounding_share": ("{rounding}; {unequal} of {of} elements differ", "{rounding}；{of} 个元素中 {unequal} 个不等"),
    "report_rounding_size": (
        "{rounding}; {unequal} of {of} elements differ, by at most {ulp} ULP",
        "{rounding}；{of} 个元素中 {unequal} 个不等，最多差 {ulp} 个 ULP",
    ),
    "report_no_round": (
        "No isolation round was run: what is said rests on recomputing and on the comparison of weights and inputs",
        "未执行隔离轮：结论由重算以及权重、输入的比较得出",
    ),
    "report_metric_absent": ("{metric} was not measured, which is not 0: {why}", "{metric} 没有测量，这不等于 0：{why}"),
    "report_grows_later": (
        (
            "The prefill at step {at} is consistent; {metric} grows from {low} at step {begin} to {high} at step {end}, which this pair "
            "does not tell: it needs a pair of a later step: compare the weights of both sides there, then what is reused from a cache"
        ),
        (
            "step {at} 的 prefill 一致；{metric} 从 step {begin} 的 {low} 增长到 step {end} 的 {high}，这一对 dump 说明不了："
            "需要更晚 step 的一对 dump，先比较该 step 两侧的权重，再查缓存复用"
        ),
    ),
}
