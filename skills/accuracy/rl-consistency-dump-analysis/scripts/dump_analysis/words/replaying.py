"""Sentences on what recomputing modules shows. Part of `wording.TABLE`: kind -> (English, Chinese)."""

REPLAYING: dict[str, tuple[str, str]] = {
    # --- replay ---
    "replay_unreadable": ("{name} cannot be read: {why}", "{name} 无法读取：{why}"),
    "replay_not_recorded": (
        "{side} did not record the value itself: the mapping makes it of {names}",
        "{side} 没有记录该值本身：映射由 {names} 得出",
    ),
    "replay_scattered": (
        "{side}: the mapping picks elements of {name} that are no rows and columns of it",
        "{side}：映射从 {name} 取出的元素不是其整行整列",
    ),
    "replay_other_rows": (
        "{side}: inputs and output of {module} are not of the same rows",
        "{side}：{module} 的输入与输出不是同样的行",
    ),
    "replay_ids_beyond": (
        "{entry} has ids up to {largest}, its weight {rows} rows",
        "{entry} 的 id 最大为 {largest}，而权重只有 {rows} 行",
    ),
    "replay_no_formula": ("no formula recomputes {module} yet", "目前没有公式可重算 {module}"),
    "replay_no_weight": (
        "neither side recorded a weight of {module}",
        "两侧都没有记录 {module} 的权重",
    ),
    "replay_no_input": ("no recorded input of {entry} fits its output", "{entry} 的输入中没有与其输出相符的"),
    "replay_format": ("{name} is {dtype}, which is not recomputed", "{name} 为 {dtype}，不能重算"),
    "replay_no_variant": ("no variant of a formula runs on what {entry} recorded", "没有公式变体适用于 {entry} 记录的内容"),
    "replay_unused_parameters": (
        "{entry} owns parameters that no formula uses: {names}",
        "{entry} 有公式没有用到的参数：{names}",
    ),
    "replay_weights_differ": (
        "{weight}: {unequal} of {of} elements differ between the sides",
        "{weight}：两侧有 {unequal} / {of} 个元素不同",
    ),
    "replay_checkpoint": (
        "which side holds the right {weight}: the checkpoint that both were loaded from",
        "哪一侧的 {weight} 正确：取决于两侧加载的检查点",
    ),
    "replay_variants": (
        "train is explained by {train}, infer by {infer}: both right, rounded at other points",
        "train 由 {train} 解释，infer 由 {infer} 解释：两者都正确，只是舍入点不同",
    ),
    "replay_functions": (
        "train computes {train}, infer {infer}: functions that are not the same",
        "train 计算的是 {train}，infer 计算的是 {infer}：不是同一个函数",
    ),
    "replay_function_stated": (
        "the configuration of {side} states {name}",
        "{side} 的配置写明 {name}",
    ),
    "replay_joined_wrongly": (
        "whether the mapping joins the same values here: two modules of different kinds made them",
        "映射在此处配对的是否为同一个值：两侧由不同种类的模块算出",
    ),
    "replay_function_elsewhere": (
        "in most other modules {side} computes the same as the other side",
        "{side} 在其他多数模块中的计算与另一侧相同",
    ),
    "replay_guessed": (
        "which part of the flat parameter of {side} is the weight of {entry}: no other place of its size was left",
        "{side} 的扁平参数中哪一段是 {entry} 的权重：只是因为没有其他同样大小的位置",
    ),
    "replay_bias_alone": (
        "{side} adds a bias, {other} recorded none or zeros for it, and each follows from its own weights",
        "{side} 加了偏置，{other} 没有记录偏置或全为零，两侧都由各自的权重得出",
    ),
    "replay_bias_decides": (
        "whether the model has the bias that {entry} adds: its checkpoint and configuration",
        "模型是否有 {entry} 所加的偏置：看检查点与配置",
    ),
    "replay_gain_twice": (
        "{side} adds 1 to a gain that is stored with it: the offset is applied twice",
        "{side} 给已含 1 的增益又加了 1：偏移用了两次",
    ),
    "replay_gain_never": (
        "{side} does not add 1 to a gain that is stored without it: the offset is not applied",
        "{side} 没有给不含 1 的增益加 1：偏移没有用上",
    ),
    "replay_soft_cap": (
        "{side} bounds its logits in this module, {other} does not: whether {other} does so after it",
        "{side} 在该模块内对 logits 做软截断，{other} 没有：取决于 {other} 是否在其后做",
    ),
    "replay_soft_cap_stated": (
        "{side} bounds its logits in this module; {other}, whose configuration states the same bound {value}, after it",
        "{side} 在该模块内对 logits 做软截断；{other} 的配置写明同样的截断 {value}，在其后进行",
    ),
    "replay_logits_scale": (
        "{side} scales its logits in this module, {other} does not: whether {other} does so after it",
        "{side} 在该模块内缩放 logits，{other} 没有：取决于 {other} 是否在其后做",
    ),
    "replay_logits_scale_stated": (
        "{side} scales its logits in this module; {other}, whose configuration states the same scale {value}, after it",
        "{side} 在该模块内缩放 logits；{other} 的配置写明同样的比例 {value}，在其后进行",
    ),
    "replay_qkv_read_in_groups": (
        (
            "{side}: rows of its fused q, k and v are in the wrong order: they lie one block after the other, and attention reads them in "
            "{groups} groups, of each its q, k and v; so read, all {of} elements follow"
        ),
        (
            "{side}：融合的 qkv 行顺序错误：权重按 q、k、v 三块拼接，而注意力按 {groups} 组（每组依次为 q、k、v）读取；"
            "照此读取，全部 {of} 个元素均可得出"
        ),
    ),
    "replay_qkv_read_in_blocks": (
        (
            "{side}: rows of its fused q, k and v are in the wrong order: they lie group by group, and attention reads all of q, then k, "
            "then v; so read, all {of} elements follow"
        ),
        "{side}：融合的 qkv 行顺序错误：权重按组排列，而注意力按 q、k、v 三块读取；照此读取，全部 {of} 个元素均可得出",
    ),
    "replay_head_tied": (
        "{side}: all {of} logits follow from its embedding, and not from the head that the other side recorded",
        "{side}：全部 {of} 个 logits 均由其 embedding 得出，而不是由另一侧记录的 lm_head 权重得出",
    ),
    "replay_rows_shifted": (
        "{side}: {share} of the logits follow from the row {by} further on than their own ({origin} weight)",
        "{side}：{share} 的 logits 由比自身靠后 {by} 行的权重行得出（权重来源：{origin}）",
    ),
    "replay_unexplained": (
        (
            "{side}: {unexplained} of {of} elements do not follow from its own inputs and weights by any variant of {operator}; "
            "the nearest is {variant}"
        ),
        "{side}：{of} 个元素中有 {unexplained} 个无法由其自身的输入与权重经 {operator} 的任何变体得出，最接近的是 {variant}",
    ),
    "replay_only_tokens": ("{side}: only in tokens {tokens} of {of}", "{side}：仅在 {of} 个 token 中的 {tokens}"),
    "replay_only_columns": ("{side}: only in columns {columns} of {of}", "{side}：仅在 {of} 列中的第 {columns} 列"),
    "replay_fits_gain": (
        "on {side} it follows if the result is multiplied by {factor} (possible: {low} to {high})",
        "若把结果乘以 {factor}，{side} 侧即可得出（可能的取值：{low} 至 {high}）",
    ),
    "replay_fits_addend": (
        "on {side} the sum follows if {name} is multiplied by {factor} before it is added (possible: {low} to {high})",
        "若在相加之前把 {name} 乘以 {factor}，{side} 侧的和即可得出（可能的取值：{low} 至 {high}）",
    ),
    "replay_fits_unchanged": (
        "{side} hands out {name} unchanged, as if the module were left out",
        "{side} 原样输出 {name}，如同跳过了该模块",
    ),
    "replay_fits_without": ("on {side} the sum follows if {name} is left out", "若去掉 {name}，{side} 侧的和即可得出"),
    "replay_fits_columns": (
        "on {side} it follows if columns {at} are multiplied by {factors}",
        "若把第 {at} 列分别乘以 {factors}，{side} 侧即可得出",
    ),
    "replay_fits_tokens": (
        "on {side} it follows if tokens {at} are multiplied by {factors}",
        "若把 token {at} 分别乘以 {factors}，{side} 侧即可得出",
    ),
    "replay_fits_offsets": (
        "on {side} it follows if a constant is added in each column, in {n} of {of} not 0: a bias that was not recorded, or another",
        "若在每一列各加一个常数（{of} 列中 {n} 列不为 0），{side} 侧即可得出：即没有记录的偏置，或另一个偏置",
    ),
    "replay_mistake": (
        "{side}: all {of} elements follow from its own inputs and weights by a mistake: {variant}",
        "{side}：全部 {of} 个元素都可由其自身的输入与权重经一种错误得出：{variant}",
    ),
    "replay_borrowed": (
        "{side} was recomputed with the other side's weights: it computes otherwise, or its own weights are others",
        "{side} 是用另一侧的权重重算的：要么计算不同，要么它自己的权重不同",
    ),
    "replay_constants": (
        "{name} is {train} on train and {infer} on infer, each by what it computed",
        "{name}：由各自的计算结果可知 train 为 {train}，infer 为 {infer}",
    ),
    "replay_constant_stated": (
        "the configuration of {side} states {name} {value}",
        "{side} 的配置写明 {name} 为 {value}",
    ),
    "replay_constant_elsewhere": (
        "in most other modules {side} computes with {name} {value}",
        "{side} 在其他多数模块中以 {name} {value} 计算",
    ),
    "replay_function_decides": (
        "which of the two functions is meant for {operators}: the model's config.json, or the code that it was published with",
        "{operators} 应当计算哪一个函数：以模型的 config.json 或其发布时的代码为准",
    ),
    "replay_config_decides": (
        "which {name} is meant: the model's config.json",
        "应当是哪个 {name}：取决于模型的 config.json",
    ),
    # --- replay: norms inside linears, log-probabilities, gains ---
    "replay_norm_apart": (
        "{side}: no recorded module returned what {entry} was handed, so that the norm before it is not known",
        "{side}：没有已记录的模块输出 {entry} 所收到的值，因此不知道其前的归一化",
    ),
    "replay_gain_less_one": (
        "{side} stores its gains less one and adds it when it runs, {other} stores the sum: the gains that both apply are the same",
        "{side} 存储的是减一后的增益并在运行时加一，{other} 存储的是和：两侧实际使用的增益相同",
    ),
    "replay_bias_left": (
        "{side} hands its bias on with its output, the other side adds it: the sum after it, which is recorded elsewhere or not at all",
        "{side} 把偏置与输出一并交出，另一侧则已加上：取决于其后的和，它记录在别处或没有记录",
    ),
    "replay_no_labels": (
        "{side}: the words whose log-probabilities {entry} returns are not recorded",
        "{side}：没有记录 {entry} 返回的是哪些词的对数概率",
    ),
    "replay_sampling_decides": (
        "which {name} is meant: the sampling parameters of the rollout",
        "应当是哪个 {name}：取决于 rollout 的采样参数",
    ),
    # --- replay: between modules ---
    "replay_true_inputs": (
        "{side}: the inputs of {entry} were recorded after it had overwritten them; it was recomputed from {names}",
        "{side}：{entry} 的输入在被其原地改写之后才记录；已改用 {names} 重算",
    ),
    "replay_overwritten": (
        (
            "{side}: input captured after in-place update: what {entry} was handed is not in the dump; msprobe 26.2 records inputs before "
            "the call, or clone them in a pre-hook"
        ),
        "{side}：输入在原地更新之后才被采集：dump 中没有 {entry} 实际收到的输入；msprobe 26.2 在调用前记录输入，或在 pre-hook 中 clone",
    ),
    "replay_made_of": (
        "{side}: what it holds is made of {sources} and nothing else",
        "{side}：它的值只由 {sources} 得出",
    ),
    "replay_elsewhere": (
        "{side}: {input} is {held}; in most layers, and on the other side, it is {usual}",
        "{side}：{input} 取自 {held}；在多数层以及另一侧，它取自 {usual}",
    ),
    "replay_altered": (
        "{side}: {input} is not what was handed on: {where} it is {sources} {how}",
        "{side}：{input} 与上游交出的值不同：{where}它是 {sources} {how}",
    ),
    "replay_not_altered": (
        "{side} hands on as it is what its own configuration, and the other side, multiplies by {gain}: there {sources}",
        "{side} 原样交出了其自身配置与另一侧都要乘以 {gain} 的值：另一侧为 {sources}",
    ),
    "replay_everywhere": ("in all of its elements", "全部元素中"),
    "replay_in_tokens": ("in tokens {tokens} of {of}, and nowhere else,", "仅在 {of} 个 token 中的 {tokens}，"),
    "replay_in_columns": ("in columns {columns} of {of}, and nowhere else,", "仅在 {of} 列中的第 {columns} 列，"),
    "replay_altered_gain": ("times {gain}", "的 {gain} 倍"),
    "replay_altered_gains": ("times a number of its own in each", "各乘以一个不同的数"),
    "replay_altered_moved": ("with the rows of other tokens", "但换成了其他 token 的行"),
    "replay_altered_lost": ("without one of these addends", "但少加了其中一项"),
    "replay_altered_other": ("with other values", "但数值不同"),
    # --- replay of attention ---
    "replay_none": ("none", "无"),
    "variant_rotated_stepwise": ("rotary products and their sum each rounded", "旋转的乘积与和分别舍入"),
    "variant_rotated_once": ("rotary products and sum in float32, rounded once", "旋转的乘积与和在 float32 中计算，只舍入一次"),
    "variant_table_float32": ("cos and sin in float32", "cos 与 sin 为 float32"),
    "variant_interleaved": ("neighbouring columns rotated as pairs", "相邻两列成对旋转"),
    "variant_eager": ("attention scores, probabilities and result each rounded", "注意力的分数、概率与结果分别舍入"),
    "variant_eager_scaled_inside": (
        "attention scores rounded after they are scaled, probabilities and result rounded",
        "注意力分数在缩放之后舍入，概率与结果也舍入",
    ),
    "variant_flash": (
        "flash attention: weights rounded before the sum, divided at the end",
        "flash attention：权重在求和前舍入，最后才相除",
    ),
    "variant_flash_fast_exp": (
        "flash attention with a fast exponential: weights rounded before the sum, divided at the end",
        "使用快速指数的 flash attention：权重在求和前舍入，最后才相除",
    ),
    "variant_flash_blocks": (
        "flash attention in blocks of {n} keys: weights rounded before the sum, divided at the end",
        "每块 {n} 个键的 flash attention：权重在求和前舍入，最后才相除",
    ),
    "variant_float32": ("attention in float32, rounded once", "注意力在 float32 中计算，只舍入一次"),
    "variant_probabilities_rounded": ("attention probabilities rounded before they meet v", "注意力概率在与 v 相乘之前舍入"),
    "kernel_not_listed": ("a kernel that is not in the list, as far as noise allows", "清单之外的内核（在噪声允许的范围内）"),
    "variant_not_listed": ("by a kernel that is not in the list, as far as noise allows", "使用清单之外的内核，在噪声允许的范围内"),
    "replay_noise": (
        "{side}: a kernel of {operator} that is not in the list; what it leaves looks like rounding (rms {rms} deviations, gain {gain})",
        "{side}：{operator} 的内核不在清单中；其残差符合舍入（均方根 {rms} 个标准差，增益 {gain}）",
    ),
    "replay_table_layout": (
        "the cos and sin that {side} recorded hold each angle twice, laid out for the pairs that {side} turns",
        "{side} 记录的 cos 与 sin 中每个角度出现两次，其排列正是 {side} 所旋转的列对",
    ),
    "replay_no_base": (
        "the frequencies by which {entry} rotates: no base gives them, and the record does not tell them well enough",
        "{entry} 旋转所用的频率：没有任何 base 能给出，记录也不足以确定",
    ),
    "replay_no_positions": ("{side} recorded neither positions nor cos and sin", "{side} 既没有记录位置，也没有记录 cos 与 sin"),
    "replay_no_table": ("{side} recorded no cos and sin for the rotation", "{side} 没有记录旋转所用的 cos 与 sin"),
    "replay_no_heads": (
        "the columns of {name} do not come out as heads of {width}",
        "{name} 的列不能按每头 {width} 列划分",
    ),
}
