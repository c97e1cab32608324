"""Sentences on which tensors, tokens and ranks belong together. Part of `wording.TABLE`: kind -> (English, Chinese)."""

MAPPING: dict[str, tuple[str, str]] = {
    # --- several forwards in one unit ---
    "forward_by_ids": (
        "{side}: of {n} forwards the one that begins with {entry} is compared, by its token ids; {aside} tensors of others are left aside",
        "{side}：在 {n} 次前向中，按 token id 比较由 {entry} 开始的那一次；其余前向的 {aside} 个张量被搁置",
    ),
    "forward_by_weights": (
        "{side}: of {n} forwards the one that begins with {entry} is compared, by its weights; {aside} tensors of others are left aside",
        "{side}：在 {n} 次前向中，按权重比较由 {entry} 开始的那一次；其余前向的 {aside} 个张量被搁置",
    ),
    "forwards_alike": (
        "{side}: nothing tells which forward to compare, those with {entries} match equally: the first was; {aside} tensors are left aside",
        "{side}：{entries} 开始的各次前向同样相符，没有依据判定应比较哪一次：比较的是第一次；{aside} 个张量被搁置",
    ),
    # --- which token is which ---
    "no_ids": (
        "the dump of {sides} records no token ids (integers, at least {n} of more than two values), and the first activations do not tell",
        "{sides} 的采集没有记录 token id（至少 {n} 个整数且多于两种取值），首批激活也无法区分 token",
    ),
    "ids_apart": (
        "token ids differ at positions {at} of {of}: fewer than half of the token ids of the two sides agree",
        "在 {of} 个位置中，token id 在 {at} 处不同：两侧一致的 token id 不到一半",
    ),
    "rows_apart": (
        (
            "a side records no token ids, and the embedding outputs do not correspond token by token: "
            "rows differ at positions {at} of {of}, fewer than half agree"
        ),
        "有一侧没有记录 token id，而 embedding 输出不能逐 token 对应：在 {of} 个位置中第 {at} 行不同，一致的不到一半",
    ),
    "ids_at_lag": (
        "the token ids agree only at a lag of {n}: on {side} {n} tokens come before them, {what}",
        "token id 只在错开 {n} 个位置后才一致：{side} 一侧前面多出 {n} 个 token，{what}",
    ),
    "first_twice": ("its first token stands twice (double BOS)", "首个 token 重复出现（双 BOS）"),
    "shifted": ("it is shifted", "整体错位"),
    "joined_by_rows": (
        "{sides}: no token ids were recorded; tokens are joined by equal rows of the first activation",
        "{sides}：没有记录 token id；token 按首个激活中相等的行对应",
    ),
    "sequences_joined": ("{n} sequences are joined, in one order on both sides", "{n} 个序列相对应，两侧顺序相同"),
    "sequences_permuted": (
        "{n} sequences are joined, which infer ran in another order; tokens are numbered as train has them",
        "{n} 个序列相对应，infer 侧的顺序不同；token 按 train 侧的顺序编号",
    ),
    "sequences_alike": (
        "{n} of {of} joined sequences hold the ids of another one: these are joined in the order in which each side ran them",
        "{of} 个已对应的序列中有 {n} 个与另一个序列的 token id 相同：按两侧各自运行的顺序对应",
    ),
    "may_be_of_inputs": (
        "at {n} further boundaries only tokens from {token} on differ, where {names} differ too: that may be their effect",
        "另有 {n} 个边界只在 token {token} 及其后不同，而那里的 {names} 也不同：可能是其影响",
    ),
    "positions_heal": (
        (
            "infer's positions are train's plus {offset} at every token. Rotary attention depends on differences of positions alone, and "
            "all {n} rotations and attentions recomputed are the same on both sides: it heals, and behind them only rounding is left of it"
        ),
        (
            "infer 的位置在每个 token 上都等于 train 的位置加 {offset}。旋转位置编码的注意力只取决于位置之差，"
            "且重算的 {n} 个旋转与注意力两侧相同：影响自行抵消，其后只剩舍入差异"
        ),
    ),
    "before_inputs": (
        "{boundary} differs from token {onset} on; {names} differ only from token {token} on: before that it is not their effect",
        "{boundary} 从 token {onset} 起不同，而 {names} 从 token {token} 起才不同：在此之前的差异不是其影响",
    ),
    "rows_shifted": (
        (
            "one token apart: row t of train is row t + ({lag}) of infer, compared after that shift; "
            "check whether the training loop pairs them so"
        ),
        "相差一个 token：train 的第 t 行对应 infer 的第 t + ({lag}) 行，按此错位比较；请核对训练循环是否也这样配对",
    ),
    "alignment": ("{boundary}: {what}", "{boundary}：{what}"),
    "cached_tokens": (
        "{side} took the first {n} tokens from a cache, perhaps of older weights: dump again with the prefix cache off and a fresh engine",
        "{side} 的前 {n} 个 token 取自缓存，其中的 k、v 可能来自更早的权重：请关闭前缀缓存并重启引擎后重新采集",
    ),
    "other_rows": (
        "{side} holds the logits of the last token of each sequence only: of {n} other tokens it has none",
        "{side} 只有每个序列最后一个 token 的 logits：其余 {n} 个 token 没有",
    ),
    "candidates": ("{what}; candidates: {candidates}", "{what}；候选：{candidates}"),
    "by_module": (
        "other vectors hold the same values: told by the module that holds it",
        "另有取值相同的向量：由所在模块判定",
    ),
    "map_changed": ("Changed since the mapping that stood here before", "与此处先前的映射相比的变化"),
    "row_changed": ("{boundary}: {side} was {before}, is {after}", "{boundary}：{side} 原为 {before}，现为 {after}"),
    "row_new": ("{boundary}: new", "{boundary}：新增"),
    "row_gone": ("{boundary}: gone", "{boundary}：不再存在"),
    "row_joined": ("{boundary}: compared now, had no counterpart", "{boundary}：现可比较，先前没有对应"),
    "row_parted": ("{boundary}: has no counterpart any more", "{boundary}：不再有对应"),
    "row_cut": ("{boundary}: other ops on {side}", "{boundary}：{side} 的步骤改变"),
    "row_module": (
        "{boundary}: {side}: made in {before} before, in {after} now",
        "{boundary}：{side} 的所在模块原为 {before}，现为 {after}",
    ),
    "row_basis": ("{boundary}: joined by {before} before, by {after} now", "{boundary}：依据原为 {before}，现为 {after}"),
    "map_unchanged": ("no row changed", "没有任何行改变"),
    # --- mapping proposed from the data ---
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
    # --- several units a side ---
    "units_aside": (
        "{side}: left out, as their tokens are others, none, or do not adjoin those of the rest: {units}",
        "{side}：以下采集的 token 是别的、没有，或与其余的不衔接，未使用：{units}",
    ),
    "steps_alike": (
        "{side}: step {taken} is compared; these steps ran the same tokens, and nothing tells which is meant: {others}",
        "{side}：比较的是 step {taken}；以下 step 运行了同样的 token，无从判断应取哪一个：{others}",
    ),
    "chunks_joined": (
        "{side}: one prompt in several dump steps (chunked prefill or a cached prefix), joined by tokens: {spans}",
        "{side}：一个 prompt 分在多个 dump step 中（分块 prefill 或缓存前缀），按 token 拼接：{spans}",
    ),
    "chunk_lacks_ranks": (
        "{side}: in {steps} ranks are missing that the other chunks of the prompt have: its tokens are compared with nothing",
        "{side}：{steps} 缺少该 prompt 其余各块所有的 rank：其中的 token 未参与比较",
    ),
    "chunks_past_gap": (
        "{side}: chunks of the prompt lie past tokens that no dump step holds, and are compared with nothing: {spans}",
        "{side}：prompt 的以下各块与其余的之间有一段 token 不在任何 dump step 中，未参与比较：{spans}",
    ),
    "context_zigzag": (
        "{side}: {n} ranks or groups hold other tokens of one prompt each, in zigzag order (context parallel); joined in its order",
        "{side}：{n} 个（组）rank 以 zigzag 次序各持有一个 prompt 的不同 token（context parallel），已按 prompt 的次序拼接",
    ),
    "context_plain": (
        "{side}: {n} ranks or groups hold other tokens of one prompt each, rank after rank (context parallel); joined in that order",
        "{side}：{n} 个（组）rank 按 rank 次序各持有一个 prompt 的不同 token（context parallel），已按此拼接",
    ),
    "context_other": (
        (
            "{side}: {n} ranks or groups hold other tokens of one prompt each, in an order that is neither rank after rank nor zigzag: "
            "{order}; joined in the order of the prompt, but check that attention and positions of this run know that order"
        ),
        (
            "{side}：{n} 个（组）rank 各持有一个 prompt 的不同 token，次序既不是按 rank 依次也不是 zigzag：{order}；"
            "已按 prompt 的次序拼接，但请核对这次运行的注意力与位置是否按此次序"
        ),
    ),
    "context_unordered": (
        (
            "{side}: the ids of {n} ranks or groups of step {step} are together those of the other side, but no order of whole pieces "
            "makes them so: the order of the tokens itself differs (context parallel)"
        ),
        (
            "{side}：step {step} 的 {n} 个（组）rank 的 id 合起来就是对侧的 id，但没有任何一种分段次序能还原："
            "token 的次序本身不同（context parallel）"
        ),
    ),
    "stages_loose": (
        "{side}: not used, as they follow none of the stages that are there: {units}; a pipeline stage between them is missing",
        "{side}：以下采集不接在任何已有 stage 之后，未使用：{units}；中间缺少一个流水线 stage",
    ),
    "ranks_reordered": (
        "{side}: the shards lie in the other side's matrices in the order of ranks {order}, not in that of their numbers; joined so",
        "{side}：分片在对侧矩阵中的次序是 rank {order}，而不是按 rank 编号；已照此拼接",
    ),
    "ranks_by_reference": (
        "{side}: the shards lie in the checkpoint's matrices in the order of ranks {order}, not in that of their numbers; joined so",
        "{side}：分片在 checkpoint 矩阵中的次序是 rank {order}，而不是按 rank 编号；已照此拼接",
    ),
    "plan_foreign": (
        "the assembly plan was made for another {side} dump, or its dump.json was edited since; it is followed as declared",
        "拼接方案是为另一份 {side} dump 提出的，或其 dump.json 之后被改过；仅按人工声明使用",
    ),
    "reference_unlike": (
        "{side}: --reference tells nothing, as no sharded matrix has its rows there: it is of another model, step or dtype",
        "{side}：--reference 未起作用：分片矩阵的行都不在其中，它属于别的模型、别的训练步或别的 dtype",
    ),
    "reference_unneeded": (
        "--reference is not used: each side is one unit, or --plan says how its units are put together",
        "--reference 未使用：每一侧只有一份采集，或已由 --plan 说明如何拼接",
    ),
    "shards_joined": ("{side}: {n} ranks hold shards of one forward and are joined", "{side}：{n} 个 rank 各持有同一次前向的分片，已拼接"),
    "replicas_joined": (
        "{side}: {n} ranks hold copies of one forward; the first is compared",
        "{side}：{n} 个 rank 持有同一次前向的副本，比较其中第一个",
    ),
    "stages_joined": ("{side}: {n} pipeline stages are joined", "{side}：{n} 个流水线阶段已拼接"),
    "unplaced": (
        "{side}: {n} tensors fit no way of joining the ranks and are compared with nothing: {names}",
        "{side}：{n} 个张量不符合任何一种 rank 拼接方式，未参与比较：{names}",
    ),
    "cut_twice": (
        "{side}: {n} tensors are cut by ranks and by tokens at once and not compared: run assemble_dump.py, then compare what it made",
        "{side}：{n} 个张量同时按 rank 和 token 切开，未参与比较：请先用 assemble_dump.py 组装，再比较其结果",
    ),
    "copies_unread": (
        "{side}: whether {n} tensors are the same on all ranks is not known, as files cannot be read: {names}",
        "{side}：有 {n} 个张量的文件读不了，各 rank 上是否相同未知：{names}",
    ),
    "units_unread": ("{side}: not used, as nothing of them can be read: {units}", "{side}：以下采集无法读取，未使用：{units}"),
    "ranks_disagree": (
        "{side}: {n} tensors that the ranks should hold alike differ between them: {names}",
        "{side}：{n} 个本应在各 rank 上相同的张量彼此不同：{names}",
    ),
    "not_assembled": (
        "{side}: {n} tensors of the plan cannot be put together; the first is {name}: {why}",
        "{side}：方案中的 {n} 个张量无法拼接；首个为 {name}：{why}",
    ),
    "ranks_part": (
        "{side}: {name} is not the same on its ranks ({ranks}): {unequal} elements differ, though each should hold a copy",
        "{side}：{name} 在各 rank（{ranks}）上不一致：{unequal} 个元素不同，而它们本应是同一份副本",
    ),
    "ranks_missing": (
        "{side}: it holds a part of each matrix of the other side (about {share} of the rows): ranks are missing, hand in all of the step",
        "{side}：只持有对侧每个矩阵的一部分（约 {share} 的行）：缺少 rank，请给出该 step 的全部 rank",
    ),
    "holds_a_part": ("{side} holds a part of it only: ranks are missing", "{side} 只持有其中一部分：缺少 rank"),
    "not_flat": ("its parts cannot be joined in one step: {why}; assemble the dump first", "其各部分无法一步拼接：{why}；请先组装该 dump"),
    "few_tokens": (
        "only {n} tokens are joined: signatures of so few say little, weights and data flow join the rows",
        "只有 {n} 个 token 相对应：这么少的签名说明不了多少，各行靠权重与数据流对应",
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
    "ids_differ": (
        "the token ids differ in {n} of {of} joined tokens",
        "在 {of} 个已对应的 token 中有 {n} 个 token id 不同",
    ),
    "map_title": ("Layer map", "层映射"),
    "map_counts": (
        "{rows} places and {weights} weights are joined; {gaps} stand on one side only or could not be joined.",
        "已对应 {rows} 个边界与 {weights} 个权重；{gaps} 个只在一侧，或无法对应。",
    ),
    "map_tokens": (
        "Tokens: {joined} are joined, of {train} on train and {infer} on infer.",
        "Token：已对应 {joined} 个（train 共 {train} 个，infer 共 {infer} 个）。",
    ),
    "map_start": ("Inputs and embedding", "输入与嵌入"),
    "map_layer": ("Layer {layer}", "第 {layer} 层"),
    "map_end": ("After the layers", "各层之后"),
    "map_place": ("place", "位置"),
    "map_weight": ("weight", "权重"),
    "map_train": ("train", "train"),
    "map_infer": ("infer", "infer"),
    "map_basis": ("joined by", "依据"),
    "map_confidence": ("confidence", "置信度"),
    "map_note": ("note", "说明"),
    "map_list": ("{items}", "{items}"),
    "map_not_compared": ("not compared: {why}", "不比较：{why}"),
    "map_unmapped": ("In no row", "不在任何一行中"),
    "map_unmapped_why": (
        "Recorded tensors that no row names and that equal nothing that a row names: nothing was found for them on the other side.",
        "没有任何一行提到、也不等于任何一行所提到的张量或值的已记录张量：在另一侧没有找到对应物。",
    ),
    "basis_weights": ("weights", "权重"),
    "basis_values": ("values", "数值"),
    "basis_dataflow": ("data flow", "数据流"),
    "basis_signature": ("signature", "签名"),
    "basis_structure": ("structure", "结构"),
    "basis_name": ("name", "名称"),
    "basis_declared": ("declared", "人工声明"),
    "op_slice": ("axis {axis}: {start}:{stop}", "轴 {axis}：{start}:{stop}"),
    "op_take": ("axis {axis}: {runs}", "轴 {axis}：{runs}"),
    "op_permute": ("axes in the order {axes}", "轴序 {axes}"),
    "op_cast": ("as {dtype}", "转为 {dtype}"),
    "op_add": ("plus {value}", "加 {value}"),
}
