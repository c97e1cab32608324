"""The sentences about structure and weights: shapes that do not fit, and in which way two weights differ."""

from typing import Dict, Tuple

PARAM_WEIGHT_WORDS: Dict[str, Tuple[str, str]] = {
    # --- structure ---
    "shape_turned": ("stored turned, [in, out] against [out, in]", "一侧按 [in, out] 存放，另一侧按 [out, in]"),
    "shape_padded": ("equal but for {rows} rows on {side} that pad the vocabulary", "除 {side} 侧用于填充词表的 {rows} 行外相同"),
    "shape_unlike": ("the shapes do not fit under any layout that is known", "在任何已知布局下形状都对不上"),
    "head_of_embedding": ("{side} has no head of its own: it uses its embedding", "{side} 没有自己的 lm_head，用的是 embedding"),
    "head_not_recorded": (
        "the dump of {side} records no head: it may be its embedding, whose shape fits (an engine's head is never called, so never dumped)",
        "{side} 的 dump 没有记录 lm_head：可能就是 embedding，形状相符（推理引擎的 lm_head 不被调用，因此不会被 dump）",
    ),
    "made_anew": (
        "a buffer that a side makes itself or keeps for itself; {other} has none, which is no difference of the weights",
        "由一侧自行生成或保留的 buffer；{other} 没有，不算权重差异",
    ),
    "predicts_further": (
        "belongs to layers that predict further tokens, which a prefill of the model itself does not run",
        "属于多 token 预测（MTP）层，主模型的 prefill 不经过它",
    ),
    "in_layers": ("in layers {layers}", "第 {layers} 层"),
    "outside_layers": ("outside the layers", "层之外"),
    "only_on": ("only {side} has it, {where}", "只有 {side} 有，{where}"),
    "not_recorded": (
        (
            "{side} has it, {where}; the dump of {other} records none: a module that is not called (vLLM's lm_head) is never dumped. "
            "Hand {other}'s checkpoint or its named_parameters() as a list"
        ),
        (
            "{side} 有，{where}；{other} 的 dump 没有记录：不被调用的模块（如 vLLM 的 lm_head）从不被 dump。"
            "请给出 {other} 的检查点，或 named_parameters() 的列表"
        ),
    ),
    "flat_elements": ("as many elements, and {left} that pad", "元素个数相同，另有 {left} 个填充"),
    "flat_head": (
        "as many elements, and as many more as the embedding has: a head that the dump of {other} does not record",
        "元素个数相同，另多出与 embedding 一样多的元素：{other} 的 dump 未记录的 lm_head",
    ),
    "flat_unlike": ("{given} elements against {count}", "元素个数 {given} 对 {count}"),
    "cause_shape": ("shapes do not fit", "形状对不上"),
    "packed": (
        "{side} alone has it: one side holds the weight packed by quantisation, so that values were not compared",
        "只有 {side} 有：一侧把权重量化打包存放，数值没有比较",
    ),
    "cause_packed": (
        "one side holds its weights packed by quantisation (qweight, weight_packed …): their values were not compared",
        "一侧的权重是量化打包存放的（qweight、weight_packed 等）：数值没有比较",
    ),
    "cause_one_side": ("only one side has these parameters", "只有一侧有这些参数"),
    "impact_structure": ("the two sides do not compute the same function", "两侧计算的不是同一个函数"),
    # --- one weight ---
    "equal_in_two_formats": ("equal numbers in two formats: {train} and {infer}", "数值相等，格式不同：{train} 与 {infer}"),
    "laid_by_group": (
        "equal rows once {side}'s are put side by side: it holds q, k and v by group, {groups} groups",
        "把 {side} 的行按 q、k、v 依次排好后比较：它按组存放 q、k、v，共 {groups} 组",
    ),
    "rotary_neighbours": (
        "equal rows once {side}'s are taken apart: of each head of {width} its rotary pairs are neighbours, as the configurations say",
        "把 {side} 的行分开后相同：每 {width} 行的 head 内旋转对相邻存放，与两侧配置一致",
    ),
    "rotary_unsaid": (
        (
            "the same rows: of each head of {width} the rotary pairs are neighbours on {side} and halves on the other side, which is right "
            "only where {side} rotates neighbours (rotary_interleaved, is_neox_style=False), and the configurations do not say so"
        ),
        "行相同：每 {width} 行的 head 内，旋转对在 {side} 上相邻、在另一侧分成两半；只有 {side} 按相邻旋转时才对，而配置没有这样说",
    ),
    "laid_by_turns": (
        "equal rows once {side}'s are taken apart: gate and up by turns, {block} rows each, as its configuration says",
        "把 {side} 的行分开后比较：gate 与 up 交替存放，每次 {block} 行，与其配置一致",
    ),
    "turns_unsaid": (
        (
            "the same rows: gate and up stand by turns on {side}, {block} rows each, and one above the other on the other side, which is "
            "right only where {side} reads them so (moe_mlp_glu_interleave_size), and the configurations do not say so"
        ),
        "行相同：gate 与 up 在 {side} 上交替存放（每次 {block} 行），在另一侧上下排列；只有 {side} 按交替读取时才对，而配置没有这样说",
    ),
    "misread_group": (
        (
            "rows of fused qkv in wrong order on {side}: naive concatenation of q, k and v where per-group order is read "
            "(with a single group of keys both are the same: then waive)"
        ),
        "{side} 的融合 qkv 行顺序不对：q、k、v 依次拼接，而该模块按组读取（若只有一个 KV 组则两者相同，可豁免）",
    ),
    "misread_plain": (
        "rows of fused qkv in wrong order on {side}: they stand by group, where q, k and v are read one after the other",
        "{side} 的融合 qkv 行顺序不对：按组存放，而该模块按 q、k、v 依次读取",
    ),
    "one_of_both": ("one of both sides", "其中一侧"),
    "head_tied": (
        "{side}'s head equals its embedding, {other}'s does not: only {side} ties them ({how})",
        "{side} 的 lm_head 等于自己的 embedding，{other} 的不等：只有 {side} 共用了两者（{how}）",
    ),
    "gain_unlike_others": (
        "the other layers of this norm have the one added on one side, this one has not, or the other way round",
        "该 norm 的其他层在一侧存的是 1 + w，这一层不是（或相反）",
    ),
    "router_rounded": (
        "{how}: constants that choose experts, in a format too small for them, can change expert choice",
        "{how}：选择专家的常量用了过小的格式，可能改变专家选择",
    ),
    "router_unsynced": (
        "{how}; a buffer that training changes and weight syncs may leave out: check that it is sent",
        "{how}；训练会修改、权重同步可能漏掉的 buffer：检查它是否被发送",
    ),
    "not_in_flat": (
        "not compared: no flat parameter holds rows of it, and no hole has its size",
        "未比较：flat 参数里找不到它的行，也没有同样大小的空位",
    ),
    "flat_rest": (
        "{left} of its elements belong to no weight that the other side records (an engine's head is never dumped): not compared",
        "其中 {left} 个元素不属于另一侧记录的任何权重（推理引擎的 lm_head 不会被 dump）：未比较",
    ),
    "unreadable": ("not compared: {why}", "未比较：{why}"),
    "weight_nonfinite": (
        "{train} elements on train and {infer} on infer are no finite numbers",
        "train 有 {train} 个、infer 有 {infer} 个元素不是有限数",
    ),
    "weight_zeros": ("{side} holds nothing but zeros: as if it was never loaded there", "{side} 全为零：像是从未加载"),
    "weight_one_added": (
        "{side} stores 1 + w, the other side w: equal once 1 is added and rounded as {side} stores it",
        "{side} 存 1 + w，另一侧存 w：加 1 并按 {side} 的存储格式舍入后相等",
    ),
    "weight_rounded": ("{side} holds the other side's values rounded to {format}", "{side} 保存的是另一侧的值舍入到 {format} 的结果"),
    "weight_cut_off": (
        "{side} holds the other side's values cut off to {format}, towards zero",
        "{side} 保存的是另一侧的值向零截断到 {format} 的结果",
    ),
    "weight_swapped": (
        "the same {axis} in another order: {order}; {moved} stand elsewhere",
        "{axis}相同但顺序不同：{order}；{moved} 个不在原位",
    ),
    "weight_exchanged": ("its rows on infer are train's rows of {others}", "它在 infer 侧的行是 train 侧 {others} 的行"),
    "weight_one_ulp": (
        "{unequal} of {of} elements differ, each by one step of {format}: {smaller} smaller and {larger} larger on infer",
        "{of} 个元素中有 {unequal} 个不同，各相差 {format} 的一步：infer 上 {smaller} 个偏小、{larger} 个偏大",
    ),
    "weight_scaled_whole": (
        "infer is train times one factor between {low} and {high}",
        "infer 等于 train 乘以同一系数（介于 {low} 与 {high} 之间）",
    ),
    "weight_scaled_row": (
        "infer is train times a factor for each row, from {low} to {high}",
        "infer 等于 train 乘以每行一个的系数，从 {low} 到 {high}",
    ),
    "weight_scaled_column": (
        "infer is train times a factor for each column, from {low} to {high}",
        "infer 等于 train 乘以每列一个的系数，从 {low} 到 {high}",
    ),
    "weight_quantised": (
        "{side} lies on levels of {levels} times one scale for {block}, near the other side's values",
        "{side} 的值都是 {levels} 的档位乘以{block}一个的比例，与另一侧的值相近",
    ),
    "weight_partial": (
        "only these of {count} {unit} differ, {way}: {rows} ({unequal} of {of} elements, relative distance {rel_l2})",
        "{count} 个{unit}中只有这些不同，{way}：{rows}（{of} 个元素中的 {unequal} 个，相对距离 {rel_l2}）",
    ),
    "weight_way_small_update": ("as by an optimizer's step", "像优化器的一步"),
    "weight_way_different": ("with no pattern that is known", "没有已知的规律"),
    "weight_small_update": (
        (
            "{unequal} of {of} elements moved a little, wherever a step of that size shows (relative distance {rel_l2}, cosine {cosine}): "
            "it looks like another optimizer step"
        ),
        "{of} 个元素中有 {unequal} 个略有移动，凡该步长能显出的地方都动了（相对距离 {rel_l2}，余弦 {cosine}）：像是差了优化器的一步",
    ),
    "weight_different": (
        "{unequal} of {of} elements differ with no pattern that is known (relative distance {rel_l2}, cosine {cosine})",
        "{of} 个元素中有 {unequal} 个不同，没有已知的规律（相对距离 {rel_l2}，余弦 {cosine}）",
    ),
    "weight_stale": ("{side} equals the previous checkpoint, {other} does not", "{side} 等于上一个检查点，{other} 不等"),
    "weight_rows_stale": (
        "{how}; these rows of {side} are the previous checkpoint's, {other}'s are not",
        "{how}；{side} 的这些行是上一个检查点的，{other} 的不是",
    ),
    "weight_rows": ("rows", "行"),
    "weight_elements": ("elements", "元素"),
    "weight_columns": ("columns", "列"),
    "order_halves": ("both halves exchanged", "前后两半互换"),
    "order_reversed": ("reversed", "倒序"),
    "order_blocks": ("blocks of {block} rows moved", "以 {block} 行为一块移动"),
    "order_any": ("single rows moved", "逐行移动"),
    "order_interleaved": (
        "interleaved, {block} of each of {parts} parts in turn within {within}",
        "交错排列：每 {within} 行内 {parts} 部分轮流各取 {block} 行",
    ),
    "order_deinterleaved": (
        "taken apart, from {block} of each of {parts} parts in turn within {within}",
        "由交错改为分开：原为每 {within} 行内 {parts} 部分轮流各取 {block} 行",
    ),
    "block_row": ("each row", "每行"),
    "block_whole": ("the whole", "整个矩阵"),
    "block_of_both": ("each block of {high} × {wide}", "每个 {high} × {wide} 块"),
    # --- weights of one cause ---
    "weights_so": ("{what}: {how}", "{what}：{how}"),
    "weights_all": ("all weights that were compared", "比较过的全部权重"),
    "weights_named": ("{parts}", "{parts}"),
    "weights_of_layers": ("{places} of layers {layers}", "第 {layers} 层的 {places}"),
    "kind_small_update": ("moved a little throughout, as by another optimizer step", "整体略有移动，像是差了优化器的一步"),
    "kind_one_ulp": ("one step of the format apart", "相差存储格式的一步"),
    "kind_swapped": ("the same rows or columns in another order or place", "行或列相同但顺序或位置不同"),
    "kind_exchanged": ("rows of one are those of another on the other side", "彼此的行在另一侧互换了位置"),
    "kind_scaled": ("multiplied by a factor", "被乘以系数"),
    "kind_quantised": ("quantised on one side", "一侧经过量化"),
    "kind_rounded": ("rounded on one side to a coarser format", "一侧舍入到更粗的格式"),
    "kind_partial": ("some rows alone differ", "只有部分行不同"),
    "kind_different": ("different with no pattern that is known", "不同，没有已知的规律"),
    "kind_stale": ("one side holds the previous checkpoint", "一侧仍是上一个检查点"),
    "kind_one_added": ("the one is added to gains in some layers only", "只有部分层的 gain 加了 1"),
    "kind_unreadable": ("not compared, a side cannot be read", "未比较，有一侧读不了"),
    "kind_one_side": ("only one side has them", "只有一侧有"),
    "impact_weights": ("the two sides do not compute with the same weights", "两侧计算用的权重不同"),
    "impact_router": ("other experts may be chosen for a token", "同一 token 可能选到不同的专家"),
    "impact_unread": ("whether they are equal is not known", "是否相等未知"),
}
