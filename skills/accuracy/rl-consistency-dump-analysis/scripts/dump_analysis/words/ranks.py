"""Sentences on the units of a side: which are put together, and in which order. Part of `wording.TABLE`: kind -> (English, Chinese)."""

RANKS: dict[str, tuple[str, str]] = {
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
}
