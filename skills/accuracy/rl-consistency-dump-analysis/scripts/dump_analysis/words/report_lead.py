"""The report's first screen: headline, three sentences, what to do. Part of `wording.TABLE`: kind -> (English, Chinese)."""

REPORT_LEAD: dict[str, tuple[str, str]] = {
    # --- headlines ---
    "head_exact": ("Exact: the same to the last bit", "一致：逐比特相同"),
    "head_covered": ("Consistent: exact where compared", "一致：已比对部分逐比特相同"),
    "head_rounding": ("Consistent: rounding only", "一致：仅舍入差异"),
    "head_one_fault": ("Inconsistent: one fault", "不一致：一处故障"),
    "head_faults": ("Inconsistent: {n} independent faults", "不一致：{n} 处独立故障"),
    "head_undecided": ("Undecided: {what} could hide a fault", "未决：{what}可能隐藏故障"),
    "head_not_run": ("Not run: nothing was compared", "未执行：未比对任何边界"),
    "what_gap": ("one boundary", "1 个边界"),
    "what_gaps": ("{n} boundaries", "{n} 个边界"),
    "what_open": ("one difference", "1 处差异"),
    "what_opens": ("{n} differences", "{n} 处差异"),
    "what_weights": ("uncompared weights", "未比对的权重"),
    "what_inputs_unknown": ("inputs of unknown origin", "来源不明的输入"),
    "what_dump": ("an incomplete dump", "不完整的采集"),
    "what_params": ("open parameters", "未对齐的参数"),
    "what_statistics": ("statistics alone", "仅凭统计值的比对"),
    # --- exact ---
    "say_all_equal": ("All {n} boundaries are equal, from {first} to {last}.", "从 {first} 到 {last}，{n}/{n} 个边界逐比特相同。"),
    "say_compared_equal": (
        "The two sides are consistent: all {compared} boundaries that were compared are equal bit for bit, of {n} in all.",
        "两侧一致：已比对的 {compared} 个边界全部逐比特相同，共 {n} 个。",
    ),
    "say_no_module": ("No module computes anything different on the two sides.", "两侧没有任何模块的结果不同。"),
    "say_weights_all": (
        "Weights: {w} of {w} byte-equal. Nothing was left uncompared.",
        "权重 {w}/{w} 逐字节相同；没有未比对的边界。",
    ),
    "say_weights_part": (
        "Weights: {equal} of {all} byte-equal, {gaps} not compared; replay spans what was not compared.",
        "权重 {equal}/{all} 逐字节相同，{gaps} 个未比对；未比对部分由重算覆盖。",
    ),
    "say_weights_none": ("No weight was recorded by both sides, so none was compared.", "没有两侧都记录的权重，因此没有比对权重。"),
    # --- rounding only ---
    "say_same_function": (
        "The two sides are consistent: they compute the same function; only floating-point rounding differs.",
        "两侧一致：计算同一函数，仅有浮点舍入差异。",
    ),
    "say_same_grown": (
        (
            "The two sides are consistent: they compute the same function; only floating-point rounding differs, "
            "but it grows from {made} in one layer to {end} at {boundary}."
        ),
        "两侧一致：计算同一函数，仅有浮点舍入差异；但差异由单层的 {made} 放大到 {boundary} 处的 {end}。",
    ),
    "say_points": ("{k} rounding points, each within its bound: {list}.", "{k} 处舍入，均在误差界内：{list}。"),
    "say_point": ("One rounding point, within its bound: {list}.", "1 处舍入，在误差界内：{list}。"),
    "say_rounding_rest": (
        "{c} of {n} boundaries compared, {equal} of {w} compared weights equal; logits differ by {x}. Nothing to fix.",
        "比对 {c}/{n} 个边界，已比对权重 {equal}/{w} 相同；logits 相差 {x}；无需修复。",
    ),
    "say_rounding_rest_at": (
        "{c} of {n} boundaries compared, {equal} of {w} compared weights equal; {end} differs by {x}. Nothing to fix.",
        "比对 {c}/{n} 个边界，已比对权重 {equal}/{w} 相同；{end} 相差 {x}；无需修复。",
    ),
    # --- faults ---
    "say_one_fault": (
        "One fault on the {side} side, proven by {proofs}: {id}, {cause}.",
        "{side}一处故障，由{proofs}证实：{id}，{cause}。",
    ),
    "say_one_fault_both": (
        "One fault on both sides, proven by {proofs}: {id}, {cause}.",
        "两侧各有其错的一处故障，由{proofs}证实：{id}，{cause}。",
    ),
    "say_one_fault_open": (
        "One fault, proven by {proofs}, on one of the two sides, not decided which: {id}, {cause}.",
        "一处故障，由{proofs}证实，位于两侧之一，尚不能判定：{id}，{cause}。",
    ),
    "say_other_inputs": (
        "The two sides were not given the same inputs: {id}, {cause}.",
        "两侧得到的输入不同：{id}，{cause}。",
    ),
    "say_starts": ("It starts at {boundary}; the logits differ by {y}.", "始于 {boundary}；logits 误差 {y}。"),
    "say_starts_at": ("It starts at {boundary}; {end} differs by {y}.", "始于 {boundary}；{end} 误差 {y}。"),
    "say_starts_without": (
        "It starts at {boundary}; the logits differ by {y}, by {z} without it.",
        "始于 {boundary}；logits 误差 {y}，去除后 {z}。",
    ),
    "say_starts_only": ("It starts at {boundary}.", "始于 {boundary}。"),
    "say_faults": (
        "The sides do not compute the same function: {k} independent faults, {sides}.",
        "两侧计算的不是同一个函数：{k} 处独立故障，{sides}。",
    ),
    "sides_train": ("{n} train", "训练侧 {n}"),
    "sides_infer": ("{n} infer", "推理侧 {n}"),
    "sides_both": ("{n} both sides", "两侧皆有 {n}"),
    "sides_unknown": ("{n} side unknown", "侧未定 {n}"),
    "say_fault_of": ("{id}, {side}: {cause}.", "{id}，{side}：{cause}。"),
    "say_more_faults": ("And {m} more.", "另有 {m} 处。"),
    "say_rest_rounding": ("All else is rounding within its bound ({r} points).", "其余均为误差界内的舍入（{r} 处）。"),
    "say_rest_rounding_one": ("All else is rounding within its bound (one point).", "其余均为误差界内的舍入（1 处）。"),
    "say_rest_follows": ("All other differences follow from it.", "其余差异由其引起。"),
    "say_rest_follows_all": ("All other differences follow from them.", "其余差异由其引起。"),
    "say_rest_either": (
        "All other differences follow from it or are rounding within bounds.",
        "其余差异由其引起，或为误差界内的舍入。",
    ),
    "say_rest_open": (
        "Not decided beside: {k} further differences ({ids}).",
        "此外有 {k} 处差异未定（{ids}）。",
    ),
    "say_rest_open_one": ("Not decided beside: one further difference ({ids}).", "此外有 1 处差异未定（{ids}）。"),
    "say_not_separated": (
        "What differs behind was not separated into made there and carried in.",
        "其后的差异尚未区分是当处产生还是上游带入。",
    ),
    "say_compared": ("{c} of {n} boundaries compared.", "比对 {c}/{n} 个边界。"),
    "say_compared_spanned": ("{c} of {n} boundaries compared; replay spans the rest.", "比对 {c}/{n} 个边界，其余由重算覆盖。"),
    "say_compared_left": (
        "{c} of {n} boundaries compared; {left} of the rest could hide a further fault.",
        "比对 {c}/{n} 个边界，其余中 {left} 个可能隐藏其他故障。",
    ),
    # --- undecided and not run ---
    "say_gaps": (
        "What was compared is consistent, but {m} of {n} boundaries were not compared.",
        "已比对部分一致，但 {n} 个边界中 {m} 个未比对。",
    ),
    "say_gap_where": ("They are {where}; reason: {reason}.", "位于 {where}，原因：{reason}。"),
    "say_open_found": (
        "{n} differences, the first at {boundary}, are not decided: rounding or a fault.",
        "{n} 处差异尚未判定是舍入还是故障，首处位于 {boundary}。",
    ),
    "say_open_found_one": (
        "One difference, at {boundary}, is not decided: rounding or a fault.",
        "1 处差异尚未判定是舍入还是故障，位于 {boundary}。",
    ),
    "say_open_of": ("{id}: {cause}.", "{id}：{cause}。"),
    "say_to_decide": ("To decide: {what}.", "判定方法：{what}。"),
    "say_nothing_joined": ("No boundary of the two dumps could be joined.", "两侧 dump 没有可对应的边界。"),
    "say_not_pass": ("This is not a pass. Next: {command}.", "这不是“一致”。下一步：{command}。"),
    # --- what to do ---
    "do_trainer": ("Trainer", "训练侧"),
    "do_engine": ("Engine", "推理侧"),
    "do_both": ("Both sides", "两侧"),
    "do_which": ("One side", "两侧之一"),
    "do_decide": ("To decide", "判定"),
    "do_then": ("Then", "随后"),
    "do_later": ("Later steps", "后续步"),
    "do_nothing": ("Nothing", "无需操作"),
    "act_no_fix": ("no fix is known yet", "尚无修复方法"),
    "act_mend_at": ("mend the code at {boundary}", "修复 {boundary} 处的代码"),
    "act_not_here": (
        "cannot be mended on either side; let it stand by name, or change the code path",
        "两侧均无法修复；可注明保留，或改用其他代码路径",
    ),
    "act_again": ("collect again; expect “{head}”", "重新采集；预期“{head}”"),
    "act_again_open": ("collect again, and compare anew", "重新采集并再次比对"),
    "act_nothing": ("no fault was found, and nothing that was left uncompared could hide one", "没有发现故障，未比对之处也不可能隐藏故障"),
    "act_nothing_exact": ("the sides are equal", "两侧相同"),
    "act_and_more": ("{first}; {n} more under “What is not covered?”", "{first}；另有 {n} 项见“哪些未覆盖？”"),
    "act_growing": (
        (
            "the log’s mean {metric} rises from {low} at step {first} to {high} at step {last}; this pair says nothing of steps "
            "but its own. Collect a pair at step {last}, compare its weights first, then cache reuse"
        ),
        (
            "日志中 {metric} 的均值由第 {first} 步的 {low} 升至第 {last} 步的 {high}；本次比对只说明其自身的一步。"
            "请在第 {last} 步采集一对，先比对权重，再查缓存复用"
        ),
    ),
    # --- the four figures ---
    "figure_faults": ("Faults", "故障"),
    "figure_rounding": ("Rounding points", "舍入点"),
    "figure_open": ("{n} not decided", "未定 {n}"),
    "figure_within": ("all within bounds", "均在误差界内"),
    "figure_none": ("none", "无"),
    "figure_logits": ("Logits, relative error", "logits 相对误差"),
    "figure_end": ("{end}, relative error", "{end} 相对误差"),
    "figure_without": ("{z} without {id}", "去除 {id} 后 {z}"),
    "figure_relative": ("relative L2 over all elements", "全部元素的相对 L2"),
    "figure_end_exact": ("equal bit for bit", "逐比特相同"),
    "figure_uncompared": ("not compared", "未比对"),
    "figure_first": ("First divergence", "首差异"),
    "figure_first_nth": ("{i} of {n}; the {before} before it are exact", "第 {i}/{n} 个，此前 {before} 个逐比特相同"),
    "figure_first_start": ("the first of {n}", "{n} 个中的第 1 个"),
    "figure_first_gaps": (
        "{i} of {n}, as far as compared: {m} before it were not, an earlier source is not excluded",
        "就已比对部分而言是第 {i}/{n} 个；此前有 {m} 个未比对，不排除更早的来源",
    ),
    "figure_first_spanned": (
        "{i} of {n}; before it {m} were not compared, replay spans them",
        "第 {i}/{n} 个；此前 {m} 个未比对，由重算覆盖",
    ),
    "figure_no_first": ("no compared boundary differs", "已比对的边界均无差异"),
}
