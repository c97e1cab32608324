"""Sentences on how weights differ. Part of `wording.TABLE`: kind -> (English, Chinese)."""

WEIGHTS: dict[str, tuple[str, str]] = {
    "weight_one_added": (
        "{weight}: {side} stores 1 + w, {other} stores w: equal once 1 is added and rounded as {side} stores it",
        "{weight}：{side} 存 1 + w，{other} 存 w：加 1 并按 {side} 的存储格式舍入后相等",
    ),
    "weight_nonfinite": (
        "{weight}: {train} elements on train and {infer} on infer are no finite numbers",
        "{weight}：train 有 {train} 个、infer 有 {infer} 个元素不是有限数",
    ),
    "weight_zeros": (
        "{weight}: {side} holds nothing but zeros, {other} does not: as if it was never loaded on {side}",
        "{weight}：{side} 全为零，{other} 不是：像是 {side} 从未加载它",
    ),
    "weight_rounded": (
        "{weight}: {side} holds {other}'s values rounded to {format}",
        "{weight}：{side} 保存的是 {other} 的值舍入到 {format} 的结果",
    ),
    "weight_cut_off": (
        "{weight}: {side} holds {other}'s values cut off to {format}, towards zero",
        "{weight}：{side} 保存的是 {other} 的值向零截断到 {format} 的结果",
    ),
    "weight_swapped": (
        "{weight}: infer holds train's {axis} in another order: {order}; {moved} stand elsewhere",
        "{weight}：infer 的{axis}与 train 相同但顺序不同：{order}；{moved} 个不在原位",
    ),
    "weight_exchanged": (
        "{weight}: infer holds rows of train's {others} there",
        "{weight}：infer 此处是 train 的 {others} 的行",
    ),
    "weight_grouped": (
        (
            "{weight}: the rows of q, k and v are mixed as if {plain} read a plain concatenation by group ({groups} groups), "
            "or {fused} a matrix laid out by group as a plain concatenation"
        ),
        "{weight}：q、k、v 的行混在一起：如同 {plain} 把直接拼接的矩阵按组读取（{groups} 组），或 {fused} 把按组排列的矩阵当作直接拼接读取",
    ),
    "weight_one_ulp": (
        "{weight}: {unequal} of {of} elements differ, each by one step of {format}: {smaller} smaller and {larger} larger on infer",
        "{weight}：{of} 个元素中有 {unequal} 个不同，各相差 {format} 的一步：infer 上 {smaller} 个偏小、{larger} 个偏大",
    ),
    "weight_scaled": (
        "{weight}: infer is train times one factor between {low} and {high}, to the last element",
        "{weight}：infer 等于 train 乘以同一系数（介于 {low} 与 {high} 之间），每个元素都相符",
    ),
    "weight_scaled_each": (
        "{weight}: infer is train times a factor for {each}, from {low} to {high}; rows that differ: {runs} of {of}",
        "{weight}：infer 等于 train 乘以{each}一个的系数，从 {low} 到 {high}；不同的行：{of} 行中的 {runs}",
    ),
    "weight_quantised": (
        "{weight}: {side} lies on levels of {levels} times one scale for {block}, near {other}'s values",
        "{weight}：{side} 的值都是 {levels} 的档位乘以{block}一个的比例，与 {other} 的值相近",
    ),
    "weight_partial": (
        "{weight}: {count} of {of} {rows} alone differ, {way}: {runs} (relative distance of the whole {rel_l2})",
        "{weight}：{of} 个{rows}中只有 {count} 个不同，{way}：{runs}（整体相对距离 {rel_l2}）",
    ),
    "weight_way_small": (
        "by a little throughout, as if they alone had or lacked an optimizer step",
        "整体略有移动，像是唯独它们多了或少了优化器的一步",
    ),
    "weight_way_different": ("with no pattern that is known", "没有已知的规律"),
    "weight_of_fused": (
        "{weight}: of {name} only this part differs; {rest} are equal",
        "{weight}：{name} 中只有这一部分不同；{rest} 相等",
    ),
    "weight_small_update": (
        (
            "{weight}: {unequal} of {of} elements moved a little, wherever a step of that size shows (relative distance {rel_l2}): "
            "it looks like another optimizer step"
        ),
        "{weight}：{of} 个元素中有 {unequal} 个略有移动，凡是这样大小的一步能显出之处都动了（相对距离 {rel_l2}）：像是差了优化器的一步",
    ),
    "weight_different": (
        "{weight}: {unequal} of {of} elements differ with no pattern that is known (relative distance {rel_l2}, cosine {cosine})",
        "{weight}：{of} 个元素中有 {unequal} 个不同，没有已知的规律（相对距离 {rel_l2}，余弦 {cosine}）",
    ),
    "weight_stale": (
        "{weight}: {side} equals the previous checkpoint, {other} does not",
        "{weight}：{side} 等于上一个检查点，{other} 不等",
    ),
    "weight_rows_stale": (
        "{weight}: the rows that differ are those of the previous checkpoint on {side}, not on {other}",
        "{weight}：不同的行在 {side} 上是上一个检查点的行，在 {other} 上不是",
    ),
    "weight_tied": (
        "{side}'s head equals its own embedding, {other}'s does not: only {side} ties them",
        "{side} 的 lm_head 等于自己的 embedding，{other} 的不等：只有 {side} 共用了两者",
    ),
    "weights_all": ("every weight that was compared", "所有比较过的权重"),
    "weights_named": ("{parts}", "{parts}"),
    "weights_of_layer": ("{places} of layer {layers}", "第 {layers} 层的 {places}"),
    "weights_of_layers": ("{places} of layers {layers}", "第 {layers} 层的 {places}"),
    "weights_outside": ("{place}", "{place}"),
    "weights_differ_so": ("{what}: {how}", "{what}：{how}"),
    "kind_small_update": ("moved a little throughout, as by another optimizer step", "整体略有移动，像是差了优化器的一步"),
    "kind_one_ulp": ("one step of the format apart", "相差存储格式的一步"),
    "kind_swapped": ("the same rows or columns in another order or place", "行或列相同但顺序或位置不同"),
    "kind_exchanged": ("rows of one are those of another on the other side", "彼此的行在另一侧互换了位置"),
    "kind_grouped": (
        "rows of q, k and v are mixed: laid out by group on one side, side by side on the other",
        "q、k、v 的行混在一起：一侧按组排列，另一侧直接拼接",
    ),
    "kind_zeros": ("nothing but zeros on {side}, as if never loaded there", "{side} 上全为零，像是从未加载"),
    "kind_scaled": ("multiplied by a factor", "被乘以系数"),
    "kind_quantised": ("quantised on one side", "一侧经过量化"),
    "kind_rounded": ("rounded on one side to a coarser format", "一侧舍入到更粗的格式"),
    "kind_partial": ("some rows alone differ", "只有部分行不同"),
    "kind_different": ("different with no pattern that is known", "不同，没有已知的规律"),
    "kind_stale": ("one side holds the previous checkpoint", "一侧仍是上一个检查点"),
    "weight_rows": ("rows", "行"),
    "weight_columns": ("columns", "列"),
    "weight_elements": ("elements", "元素"),
    "weight_each_row": ("each row", "每行"),
    "weight_each_column": ("each column", "每列"),
    "order_halves": ("its halves are exchanged", "前后两半互换"),
    "order_reversed": ("the last first", "首尾颠倒"),
    "order_blocks": ("blocks of {block} are exchanged", "以 {block} 个为一块互换"),
    "order_any": ("no order that has a name", "没有名称的顺序"),
    "order_interleaved": (
        "within every {within}, {block} of each of its {parts} parts in turn",
        "每 {within} 个之内，由 {parts} 段轮流各取 {block} 个",
    ),
    "order_deinterleaved": (
        "within every {within}, what stood {block} by {block} in turn is put into {parts} parts one after the other",
        "每 {within} 个之内，原先轮流各 {block} 个排列的被拆成 {parts} 段依次排列",
    ),
    "block_whole": ("the whole", "整体"),
    "block_row": ("each row", "每行"),
    "block_of_row": ("every {wide} of a row", "每行每 {wide} 个"),
    "block_of_both": ("every {high} × {wide}", "每 {high} × {wide} 块"),
}
