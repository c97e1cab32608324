"""Sentences on what the gate, the measures and the statistics of two tensors show. Part of `wording.TABLE`: kind -> (English, Chinese)."""

COMPARING: dict[str, tuple[str, str]] = {
    # --- gate ---
    "tensor_missing": ("{side} records no tensor {name}", "{side} 没有记录张量 {name}"),
    "shapes_but_ones": (
        "the shapes differ only in axes of size 1: add a squeeze to the operand, or name the tensor alone",
        "形状只差大小为 1 的轴：给 operand 加 squeeze，或只写张量名",
    ),
    "other_shape": (
        "{side}: {name} has shape {stored} in its file and {recorded} in dump.json: the file is of another run",
        "{side}：{name} 的文件形状为 {stored}，dump.json 记录为 {recorded}：文件来自另一次采集",
    ),
    "storage_wasted": (
        (
            "{side}: {n} tensor files hold {bytes} bytes beside their tensors, the most in {name}: "
            "views were saved with their whole storage; clone before saving"
        ),
        "{side}：{n} 个张量文件在张量之外还多存了 {bytes} 字节，最多的是 {name}：保存的是视图及其整个 storage；保存前请 clone",
    ),
    "nothing_left": ("the mapping's ops leave no elements to compare", "映射的步骤没有留下可比较的元素"),
    "file_changed": ("a file changed while it was read: {why}", "读取期间文件发生变化：{why}"),
    "tensor_unreadable": ("{side}: file unreadable: {why}", "{side}：文件不可读：{why}"),
    "op_does_not_fit": ("{side}: the mapping's {where} does not fit: {why}", "{side}：映射中的 {where} 不适用：{why}"),
    "statistics_only_tensor": (
        "{side} holds statistics of {name}, not the tensor: they cannot show equality",
        "{side} 只有 {name} 的统计量而没有张量：不能证明相等",
    ),
    "no_elements": ("{side} recorded {name} without elements (freed or empty)", "{side} 记录的 {name} 没有元素（已释放或为空）"),
    "input_after_call": (
        "{side} recorded {name} after the call, and it equals {output}: it may be the result, not the input",
        "{side} 在调用之后才记录 {name}，且它等于 {output}：可能是结果而非输入",
    ),
    "nonfinite_found": (
        (
            "non-finite elements: {train} on train, {infer} on infer; the first is element {index}, on {first}; "
            "{nan_both} are NaN on both sides"
        ),
        "非有限元素：train {train} 个，infer {infer} 个；首个为元素 {index}，位于 {first}；两侧同为 NaN 的有 {nan_both} 个",
    ),
    "equal_infinities": ("{n} equal infinities at the same places on both sides", "两侧相同位置有 {n} 个相等的无穷大"),
    "both": ("both sides", "两侧"),
    # --- measures: where a difference lies ---
    "first_tokens_equal": (
        "the difference begins at token {onset}; no element of the tokens before it differs",
        "差异从 token {onset} 开始；其前的 token 没有任何元素不同",
    ),
    "only_tokens": ("of {of} tokens only {at} differ", "{of} 个 token 中只有 {at} 不同"),
    "only_tokens_run": ("of {of} tokens only {first} to {last} differ", "{of} 个 token 中只有 {first} 至 {last} 不同"),
    "only_rows": ("of {of} matrix rows only {at} differ", "矩阵的 {of} 行中只有 {at} 不同"),
    "only_rows_run": ("of {of} matrix rows only {first} to {last} differ", "矩阵的 {of} 行中只有 {first} 至 {last} 不同"),
    "only_columns": ("of {of} columns only {columns} differ", "{of} 列中只有 {columns} 不同"),
    "only_columns_run": ("of {of} columns only {first} to {last} differ", "{of} 列中只有 {first} 至 {last} 不同"),
    "only_heads": ("of {of} heads only {heads} differ", "{of} 个 head 中只有 {heads} 不同"),
    "one_sided": ("all {n} finite elements of unequal magnitude are {way}", "绝对值不同的 {n} 个有限元素全部{way}"),
    "larger_on_infer": ("larger on infer", "在 infer 一侧更大"),
    "smaller_on_infer": ("smaller on infer", "在 infer 一侧更小"),
    "uneven": (
        "the magnitude is larger on infer in {smaller} elements and smaller in {larger}: {z} standard errors from even",
        "infer 一侧的绝对值在 {smaller} 个元素上更大、在 {larger} 个上更小：偏离均等 {z} 个标准误",
    ),
    "one_scale": (
        "infer is {scale} times train in every token and column (standard error {stderr}), which explains most of the difference",
        "每个 token 与每一列上 infer 都是 train 的 {scale} 倍（标准误 {stderr}），可解释大部分差异",
    ),
    "scale_of_all": (
        "over all elements infer is {scale} times train (standard error {stderr}); single tokens or columns may have another scale",
        "全部元素合起来，infer 是 train 的 {scale} 倍（标准误 {stderr}）；个别 token 或列的倍数可能不同",
    ),
    "one_offset": ("infer − train is {offset} in every element", "每个元素上 infer − train 都是 {offset}"),
    "tokens_zero": (
        "{n} tokens are all zero on {side} and not on the other side, such as {tokens}",
        "{n} 个 token 仅在 {side} 一侧全为零，例如 {tokens}",
    ),
    "token_is": ("{infer} is train's {train}", "{infer} 等于 train 的 {train}"),
    "tokens_moved": (
        "{n} tokens of infer equal another token of train, byte for byte, such as {tokens}",
        "infer 有 {n} 个 token 与 train 的另一个 token 逐字节相等，例如 {tokens}",
    ),
    "tokens_lag": (
        "in {n} tokens infer's token t equals train's token t + ({lag}), byte for byte",
        "有 {n} 个 token：infer 的 token t 与 train 的 token t + ({lag}) 逐字节相等",
    ),
    # --- statistics and digests ---
    "by_statistics": (
        "no tensors were saved on {sides}: rows rest on structure, order and statistics, which never show that two tensors are equal",
        "{sides} 没有保存张量：各行依据结构、次序与统计量，而统计量永远不能证明两个张量相等",
    ),
    "token_rows_apart": (
        "train ran {train} token rows and infer {infer}: statistics of activations are of other tokens and cannot be compared",
        "train 有 {train} 行 token，infer 有 {infer} 行：激活的统计量来自不同的 token，无法比较",
    ),
    "returns_parts": (
        (
            "{n} layers of {side} return two parts, such as {entry} ({outputs}), of what those of {other} return as one sum ({total}): "
            "so the outputs of such layers differ by themselves; the sum is compared where {side} records it, never with a part"
        ),
        (
            "{side} 有 {n} 层返回两个部分，例如 {entry}（{outputs}），而 {other} 的对应层返回它们的和（{total}）：这些层的输出"
            "因此本来就不同；只在 {side} 记录了该和的地方比较，从不与其中一部分比较"
        ),
    ),
    "part_by_order": (
        "cut out in the order of the modules: statistics do not show how the columns of the fused tensor lie",
        "按模块次序切出：统计量不能表明融合张量的列如何排布",
    ),
    "layout_untold": (
        "{what}: both sides hold it fused, and nothing that was recorded shows how its rows lie",
        "{what}：两侧都把它融合存放，已记录的内容无法表明各行如何排布",
    ),
    "digest_equal": ("equal by digest ({digest})", "摘要相等（{digest}）"),
    "digest_differs": ("digests differ: {train} on train, {infer} on infer", "摘要不同：train 为 {train}，infer 为 {infer}"),
    "digest_differs_alike": (
        (
            "digests differ ({train} on train, {infer} on infer) though all statistics are equal: the values stand in another order, or "
            "msprobe took a digest on a CPU after a module that works in place had changed the tensor"
        ),
        (
            "摘要不同（train {train}，infer {infer}），而全部统计量相等：数值的次序不同，"
            "或者 msprobe 在 CPU 上求摘要时，原地计算的模块已改动了该张量"
        ),
    ),
    "compared_digests": ("{boundary}: {what}", "{boundary}：{what}"),
    "weight_digests_differ": (
        "different on the two sides, by their digests: {weights}",
        "两侧不同（按摘要）：{weights}",
    ),
    "weight_digests_untold": (
        "digests differ, and no statistics beside them by more than rounding: other values, or the same in another order: {weights}",
        "摘要不同，但统计量之差不超过舍入，或没有统计量：数值不同，或数值相同而次序不同：{weights}",
    ),
    "digest_order": (
        "digests differ ({train} on train, {infer} on infer) though statistics agree: the same values may lie in another order",
        "摘要不同（train {train}，infer {infer}），但统计量一致：可能是同样的数值以另一次序存放",
    ),
    "digest_blind": (
        "both digests are {digest}, an exclusive or of 8-byte words: any order of the words has the same, so it does not show equality",
        "两侧摘要均为 {digest}，它是 8 字节字的异或：字的任何次序都相同，不能证明相等",
    ),
    "digest_fused": (
        "digests of the tensor that holds {names} differ ({train} on train, {infer} on infer): one of them does, or they lie otherwise",
        "存放 {names} 的融合张量的摘要不同（train {train}，infer {infer}）：其中至少一个不同，或排布不同",
    ),
    "digest_releases": (
        "digests differ, but msprobe before 8.2 takes them of bfloat16 widened to float32, and one side may be of such a release",
        "摘要不同，但 8.2 之前的 msprobe 对扩展为 float32 的 bfloat16 求摘要，其中一侧可能属于此类版本",
    ),
    "digest_no_rows": (
        "a digest is of a whole tensor of one dtype: the mapping cuts or joins it, or dtype or shape differ",
        "摘要针对同一 dtype 的整个张量：此处映射对其做了切分或拼接，或者 dtype、形状不同",
    ),
    "stats_agree": (
        "statistics cannot be told apart ({what}); they never show equality",
        "统计量无法区分（{what}）；但它们永远不能证明相等",
    ),
    "stats_disagree": ("statistics disagree: {what}", "统计量不一致：{what}"),
    "stats_untold": ("statistics cannot tell: {why}", "统计量无法判断：{why}"),
    "stats_step": (
        "{name} {train} on train, {infer} on infer, {steps} steps of {step} apart",
        "{name}：train {train}，infer {infer}，相差 {steps} 个步长（{step}）",
    ),
    "stats_of_integers": ("extremes {train} on train, {infer} on infer", "极值：train {train}，infer {infer}"),
    "stats_not_finite": ("not finite on one side alone: {train} on train, {infer} on infer", "仅一侧非有限：train {train}，infer {infer}"),
    "stats_not_finite_both": ("not finite on both sides", "两侧都含非有限值"),
    "stats_together": ("{names} together: {what}", "{names} 合在一起：{what}"),
    "stats_extremes": ("{names} agree, single elements do not: {what}", "{names} 一致，个别元素不一致：{what}"),
    "stats_extremes_alone": (
        "no mean and no norm is recorded on both sides, and extremes decide nothing: {what}",
        "两侧没有共同记录的均值或范数，而极值不能作出判定：{what}",
    ),
    "stats_none_common": (
        "no statistic is recorded on both sides in formats that can be compared",
        "没有两侧都记录且格式可比较的统计量",
    ),
    "stats_no_shape": ("no shape is recorded on {sides}", "{sides} 没有记录形状"),
    "shape_not_recorded": ("{side} records no shape of {name}", "{side} 没有记录 {name} 的形状"),
    "stats_in_place_of_file": (
        "{what} (by what dump.json states, as the tensor that was saved cannot be used: {damaged})",
        "{what}（依据 dump.json 的记录，因为已保存的张量无法使用：{damaged}）",
    ),
    "sum_digest": (
        "The two sides are equal at all {n} boundaries compared, {digests} of them by digest (CRC-32): no tensor was compared there.",
        "两侧在全部 {n} 个已比较的边界上相等，其中 {digests} 个依据摘要（CRC-32）：这些边界没有比较张量。",
    ),
    "sum_digest_cut": (
        (
            "The two sides are equal at all {n} boundaries compared, {digests} of them by digest (CRC-32): no tensor was compared there; "
            "the dump of {sides} is incomplete."
        ),
        "两侧在全部 {n} 个已比较的边界上相等，其中 {digests} 个依据摘要（CRC-32）：这些边界没有比较张量；{sides} 的采集不完整。",
    ),
    "sum_digest_gaps": (
        (
            "The two sides are equal at {n} boundaries, {digests} of them by digest (CRC-32): no tensor was compared there; "
            "{gaps} boundaries and {weights} weights could not be compared."
        ),
        (
            "两侧在 {n} 个边界上相等，其中 {digests} 个依据摘要（CRC-32）：这些边界没有比较张量；"
            "另有 {gaps} 个边界和 {weights} 个权重无法比较。"
        ),
    ),
    "stats_of_part": (
        "{side} records statistics of a whole of which this is a part",
        "{side} 只记录了整体的统计量，此处是其中一部分",
    ),
    "stats_of_sum": (
        "{side} records two parts apart: their statistics do not give those of the sum",
        "{side} 分别记录两个部分：由它们的统计量得不出和的统计量",
    ),
    "stats_other_rows": ("{train} elements on train, {infer} on infer", "train 有 {train} 个元素，infer 有 {infer} 个"),
    "sum_stats_agree": (
        (
            "No tensor was compared: statistics agree at {n} of the {of} boundaries that have them ({layers}), {untold} cannot be told, "
            "none disagrees; they never show equality."
        ),
        "没有比较任何张量：有统计量的 {of} 个边界中有 {n} 个一致（{layers}），{untold} 个无法判断，没有不一致；但它们永远不能证明相等。",
    ),
    "sum_stats_disagree": (
        (
            "No tensor was compared: of the {of} boundaries that have statistics, these disagree at {n}, first at {first} ({what}); "
            "rounding or fault is not decided by them."
        ),
        "没有比较任何张量：有统计量的 {of} 个边界中有 {n} 个不一致，首个为 {first}（{what}）；统计量不能判定是舍入还是故障。",
    ),
    "sum_blind": (
        (
            "No tensor was compared: at {n} of {of} boundaries the exclusive or of all words is equal, which any order of the words has; "
            "it never shows equality."
        ),
        "没有比较任何张量：{of} 个边界中有 {n} 个的全部字的异或相等，但字的任何次序都有同样的异或；它永远不能证明相等。",
    ),
    "sum_stats_before": (
        "Statistics agree at the {n} boundaries before {first}; they disagree at {later} of the {left} after it.",
        "在 {first} 之前的 {n} 个边界上统计量一致；在其后的 {left} 个边界中有 {later} 个不一致。",
    ),
    "sum_stats_layers": ("layers {first} to {last}", "第 {first} 至 {last} 层"),
    "sum_stats_no_layers": ("none of them in a layer", "均不在层内"),
    "decide_tensors": (
        'dumping again with task "tensor" (task statistics with tensor_list also does), at least of {names}',
        '以 task "tensor" 重新采集（task statistics 加 tensor_list 亦可），至少包括 {names}',
    ),
}
