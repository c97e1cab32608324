"""Sentences on which tensors belong together. Part of `wording.TABLE`: kind -> (English, Chinese)."""

MAPPING: dict[str, tuple[str, str]] = {
    # --- rows ---
    "no_counterpart": (
        "{side} recorded no tensor of {what}: no module that was recorded takes or returns it",
        "{side} 没有记录 {what} 的张量：没有任何被记录的模块接收或返回它",
    ),
    "not_joined": (
        "{what}: both sides recorded a tensor at this place, but nothing in the data shows that they are the same value",
        "{what}：两侧在此处都记录了张量，但数据中没有任何证据表明它们是同一个值",
    ),
    "not_recorded": (
        "{side} recorded no parameter of its own for {what} (it may lie inside a flat or packed one)",
        "{side} 没有为 {what} 单独记录参数（可能在展平或打包的参数里）",
    ),
    "weights_do_not_fit": (
        "{what}: both sides recorded parameters at this place, but their shapes do not fit each other",
        "{what}：两侧在此处都记录了参数，但形状彼此不符",
    ),
    "rows_elsewhere": (
        "the rows of train lie elsewhere in infer's matrix: compared by their place in the computation, not moved",
        "train 的这些行位于 infer 矩阵的其他位置：按其在计算中的位置比较，没有移动",
    ),
    "exchanged": (
        "joined by its role in the data flow; its values are those of {other} on the other side: the two are exchanged",
        "按其在数据流中的作用对应；它的值是另一侧 {other} 的值：两者互换了",
    ),
    "layer_by_place": (
        "the stream does not show which layer this is (a layer may leave it as it is): numbered by its place among the repeating modules",
        "残差流没有表明这是哪一层（可能有一层没有改变它）：按其在重复模块中的位置编号",
    ),
    "untraced": (
        "{side}: without construct.json nesting and starts are not known; what is made between calls is placed less surely",
        "{side}：缺少 construct.json，嵌套与开始时刻未知；在调用之间产生的值定位得不够可靠",
    ),
    "candidates": ("{what}; candidates: {candidates}", "{what}；候选：{candidates}"),
    "by_module": (
        "other vectors hold the same values: told by the module that holds it",
        "另有取值相同的向量：由所在模块判定",
    ),
    "no_weights_joined": (
        "no weight was found on both sides: rows rest on signatures, data flow and order",
        "没有在两侧都找到的权重：各行只依据签名、数据流与次序",
    ),
    "exchanged_rows": ("{one} and {other} are exchanged between the sides", "{one} 与 {other} 在两侧之间互换了"),
    "weight_elsewhere": (
        "{weight}: the rows of train lie elsewhere in infer's matrix; they are compared by their place in the computation",
        "{weight}：train 的这些行位于 infer 矩阵的其他位置；按其在计算中的位置比较",
    ),
    "sum_of_two": (
        "{side} returns the branch and the residual apart; their sum is the stream",
        "{side} 把分支与残差分开返回；两者之和即残差流",
    ),
    "last_position": ("{side} keeps the last position only", "{side} 只保留最后一个位置"),
    "padded_columns": ("{side} pads the vocabulary; its further columns are cut off", "{side} 对词表做了填充；多出的列被截去"),
    "two_dtypes": ("{train} against {infer}", "{train} 对 {infer}"),
    # --- experts ---
    "choice_as_map": (
        "{side} recorded the router's choice over all experts, the other side only of the chosen ones: nothing to compare one by one",
        "{side} 按全部专家记录路由选择，另一侧只记录被选中的专家：无法逐一比较",
    ),
    "choice_order": (
        "{n} of {of} tokens hold the same experts in another order: column by column only that order would be compared",
        "{of} 个 token 中有 {n} 个选中的专家相同但次序不同：逐列比较只会比较次序",
    ),
    "choice_in_order": (
        "{n} of {of} tokens hold the same experts in another order; compared as recorded",
        "{of} 个 token 中有 {n} 个选中的专家相同但次序不同；按记录的次序比较",
    ),
    "experts_together": (
        "{side} records none of its experts' values apart: all experts run in one module",
        "{side} 没有分开记录各专家的值：全部专家在一个模块中计算",
    ),
    "experts_weighted": (
        "the experts' rows of {side} are already multiplied by the router's weights, those of the other side are not",
        "{side} 的专家输出已乘路由权重，另一侧没有",
    ),
    "expert_rows": (
        "the rows of {n} tokens, found by their values in the experts' input; train recorded {train}, infer {infer}",
        "按专家输入的数值找到的 {n} 个 token 的行；train 记录了 {train} 行，infer 记录了 {infer} 行",
    ),
    "expert_without_tokens": (
        "no joined token went through this expert on both sides (train: {train} tokens, infer: {infer})",
        "没有 token 在两侧都经过该专家（train：{train} 个，infer：{infer} 个）",
    ),
}
