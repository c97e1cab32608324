"""The one table that words every kind of sentence in artefacts, in English and Chinese.

A sentence is data (`artefacts.common.Worded`): its kind, its values, and the English text made of
nothing else. Whoever knows the kind words it anew in either language; nobody parses the text.
"""

import math
from typing import Any, Literal

from .artefacts.common import Worded
from .cause_words import CAUSES

Language = Literal["en", "zh-CN"]
_LONGEST_LIST = 4  # a sentence shows so many items and says how many there are; ``values`` hold them all

# kind -> (English, Chinese)
TABLE: dict[str, tuple[str, str]] = {
    **CAUSES,
    # --- probe ---
    "side_unreadable": ("{side}: {why}", "{side}：{why}"),
    "side_empty": ("{side}: no tensors were recorded; check, in this order: {checks}", "{side}：没有记录任何张量；请依次检查：{checks}"),
    "sibling_broken": ("{side}: {file} cannot be read; {costs}", "{side}：{file} 无法读取；{costs}"),
    "sibling_missing": (
        "{side}: {file} is missing beside dump.json; {costs}",
        "{side}：dump.json 旁缺少 {file}；{costs}",
    ),
    "costs_call_sites": ("call sites are not known", "无法得知调用位置"),
    "costs_parents": (
        "start order and parents are taken from names: shared and repeated modules are told apart less surely",
        "启动顺序与父子关系只能由名称推断：共享或重复调用的模块区分得不够可靠",
    ),
    "no_dump_json": (
        (
            "{side}: tensors present, dump.json missing: run ended before stop(), or the engine ran in graph mode; "
            "names come from the files, order and statistics are unknown"
        ),
        "{side}：有张量但缺少 dump.json：运行在 stop() 之前结束，或推理引擎处于图模式；名称取自文件名，顺序、记录的 dtype 与统计量未知",
    ),
    "run_killed": (
        "{side}: the run was killed: dump.json lists {entries} entries, {files} tensor files lie unlisted; dump again",
        "{side}：采集进程被杀：dump.json 列出 {entries} 个条目，另有 {files} 个张量文件未被列出；请重新采集",
    ),
    "interrupted": (
        "{side}: {n} entries have inputs and no outputs, the first is {entry}: the forward was interrupted",
        "{side}：{n} 个条目只有输入没有输出，首个为 {entry}：前向被中断",
    ),
    "missing_files": (
        "{side}: {n} files that dump.json lists are not there, the first is {first}",
        "{side}：dump.json 列出的 {n} 个文件不存在，首个为 {first}",
    ),
    "stale_files": (
        "{side}: {n} tensor files are not listed in dump.json (an earlier run, or a kill); they are not used",
        "{side}：{n} 个张量文件未被 dump.json 列出（旧的采集或进程被杀）；不使用",
    ),
    "several_dumps": (
        "{side}: several dumps share one step and rank: {folders}; comparing commands refuse this, hand one of them",
        "{side}：多份采集共用同一 step 与 rank：{folders}；比较命令会拒绝，请只给出其中一份",
    ),
    "statistics_only": (
        "{side}: task {task}: no tensors were saved; statistics can never show that two tensors are equal",
        "{side}：task 为 {task}：没有保存张量；统计量永远不能证明两个张量相等",
    ),
    "captured_buffer": (
        "{side}: {n} layer outputs are bitwise equal: captured buffer, not data; dump again in eager mode",
        "{side}：{n} 层的输出逐位相同：记录的是被捕获的缓冲区而非数据；请在 eager 模式下重新采集",
    ),
    "shared_module": (
        "{side}: {entry} is called {calls} times under the name of its first layer; the call index is the layer",
        "{side}：{entry} 以首层的名称被调用 {calls} 次；调用序号即层号",
    ),
    "second_call": (
        "{side}: {n} modules were called more than once, up to {calls} times, such as {entry}: several forwards or micro batches",
        "{side}：{n} 个模块被调用多次（最多 {calls} 次），例如 {entry}：存在多次前向或 micro batch",
    ),
    "last_row_only": ("{side}: {entry} holds the last position only", "{side}：{entry} 只保存最后一个位置"),
    "version_from_data": (
        "{side}: no version is recorded; {version} follows from inputs recorded {when} the call",
        "{side}：没有记录版本；由输入取自调用{when}推断为 {version}",
    ),
    "before": ("before", "之前"),
    "after": ("after", "之后"),
    "inputs_after_call": (
        "{side}: module inputs were recorded after the call (msprobe before 26.2): inputs of modules that work in place are their results",
        "{side}：模块输入是在调用之后记录的（msprobe 早于 26.2）：原地计算的模块其输入实为输出",
    ),
    "inputs_unknown": (
        "{side}: it cannot be told whether module inputs were recorded before or after the call",
        "{side}：无法判断模块输入取自调用之前还是之后",
    ),
    "wrapped_names": ("{side}: paths carry {wrappers}", "{side}：路径带有 {wrappers}"),
    "wrapped_layers": (
        "{side}: paths carry {wrappers}; without that the layers are {plain}",
        "{side}：路径带有 {wrappers}；去掉后各层为 {plain}",
    ),
    "list_index": ("a list index", "列表序号"),
    "batch_axis": ("{side}: tensors carry a leading axis of size 1", "{side}：张量带有大小为 1 的首维"),
    "middle_axis": ("{side}: tensors carry a middle axis of size 1", "{side}：张量带有大小为 1 的中间维"),
    "dtype_in_file": (
        (
            "{side}: in {n} tensors the file's dtype is not dump.json's, the first is {name} "
            "({recorded} recorded, {stored} stored); dump.json's counts"
        ),
        "{side}：{n} 个张量的文件 dtype 与 dump.json 不同，首个为 {name}（记录 {recorded}，文件 {stored}）；以 dump.json 为准",
    ),
    "same_folder": ("both sides are the same files: only their probe makes sense", "两侧是同一批文件：只有探查有意义"),
    "same_bytes": ("both dump.json files are byte-equal", "两侧的 dump.json 逐字节相同"),
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
    # --- conclusion: fingerprints and growth ---
    "fp_few": (
        "by fingerprint nothing can be told: {n} elements of unequal magnitude are too few",
        "凭指纹无法判断：只有 {n} 个元素大小不同，太少",
    ),
    "fp_one_sided": (
        (
            "by fingerprint one-sided (all {n} elements in one direction), as where a constant differs (eps, scale, multiplier, gain) "
            "and not where only an order of summation does; not proven"
        ),
        "凭指纹为单向（{n} 个元素全部同向）：不同的常数（eps、scale、乘数、增益）如此，求和次序不会；未证明",
    ),
    "fp_leaning": (
        (
            "by fingerprint leaning to one side (share {share} of {n} elements), as where a function differs (soft cap, activation); "
            "known roundings lean far less; not proven"
        ),
        "凭指纹偏向一侧（{n} 个元素中占 {share}）：不同的函数（软上限、激活）如此，已知的舍入偏得少得多；未证明",
    ),
    "fp_two_sided": (
        (
            "by fingerprint two-sided (at most {share} of {n} elements in one direction), as roundings are, "
            "and many faults too (positions, weights, masks); not proven either way"
        ),
        "凭指纹为双向（{n} 个元素中同向的至多占 {share}）：舍入如此，许多故障（位置、权重、mask）也如此；两者都未证明",
    ),
    "growth": (
        "relative difference {at_first} at {first}, {at_last} at {last}; the largest step is to {step} at layer {layer}",
        "相对差异在 {first} 为 {at_first}，在 {last} 为 {at_last}；增长最大的一步在第 {layer} 层，达到 {step}",
    ),
    # --- conclusion: causes and evidence ---
    "weight_differs": (
        "different on the two sides: {weights} ({unequal} of {of} elements)",
        "两侧不同：{weights}（{of} 个元素中 {unequal} 个不等）",
    ),
    "weight_shapes_differ": ("of other shape on the two sides: {weights}", "两侧形状不同：{weights}"),
    "one_side_nonfinite": (
        "{side} alone holds non-finite elements at {boundary}: {n}, the first is element {index}",
        "只有 {side} 在 {boundary} 出现非有限元素：{n} 个，首个为元素 {index}",
    ),
    "not_judged": (
        "{boundary} differs ({status}); rounding or fault is not decided by this comparison alone",
        "{boundary} 不同（{status}）；仅凭本次比较不能判定是舍入还是故障",
    ),
    "compared_bytes": (
        "{boundary}: {unequal} of {of} elements differ, largest difference {max}",
        "{boundary}：{of} 个元素中 {unequal} 个不等，最大差值 {max}",
    ),
    "apart_by": (
        "{boundary}: at most {ulps} ULP apart, {at_scale} at the scale of the row",
        "{boundary}：最多差 {ulps} 个 ULP，按该行的尺度为 {at_scale} 个",
    ),
    "shapes_differ": ("{boundary}: shape {train} on train, {infer} on infer", "{boundary}：train 形状 {train}，infer 形状 {infer}"),
    "before_all_equal": ("all {n} boundaries before it are EXACT", "其前 {n} 个边界全部 EXACT"),
    "before_unknown": (
        "the order in which a side ran is not known: an earlier source is not excluded",
        "一侧的执行顺序未知：不能排除更早的来源",
    ),
    "before_gaps": (
        "an earlier source is not excluded: not compared before it: {gaps}",
        "不能排除更早的来源：其前未比较：{gaps}",
    ),
    # --- conclusion: hypotheses ---
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
    # --- conclusion: hypotheses by replay, and causes that fit ---
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
    # --- conclusion: summary ---
    "sum_exact": ("The two sides are equal bit for bit at all {n} boundaries compared.", "两侧在全部 {n} 个已比较的边界上逐位相等。"),
    "sum_exact_cut": (
        "The two sides are equal bit for bit at all {n} boundaries compared, but the dump of {sides} is incomplete.",
        "两侧在全部 {n} 个已比较的边界上逐位相等，但 {sides} 的采集不完整。",
    ),
    "sum_rounding_grown": (
        (
            "The two sides compute the same function: whatever differs is rounding, made at {n} kinds of places, each of which is named. "
            "Its effect is large: a relative difference of at most {made} where a layer makes it has grown to {end} at {boundary}."
        ),
        (
            "两侧计算的是同一个函数：所有差异都是舍入，来自 {n} 类位置，均已指明。"
            "但其影响很大：单层产生的相对差异不超过 {made}，到 {boundary} 处已放大到 {end}。"
        ),
    ),
    "sum_exact_covered": (
        (
            "The two sides are equal bit for bit at all {n} boundaries compared; what could not be compared follows on both sides from "
            "what they recorded."
        ),
        "两侧在全部 {n} 个已比较的边界上逐位相等；无法比较之处，两侧均可由各自记录的数据重算得出。",
    ),
    "sum_exact_gaps": (
        "The two sides are equal bit for bit at {n} boundaries; {gaps} boundaries and {weights} weights could not be compared.",
        "两侧在 {n} 个边界上逐位相等；另有 {gaps} 个边界和 {weights} 个权重无法比较。",
    ),
    "sum_not_run": ("Nothing was compared: {why}.", "没有进行任何比较：{why}。"),
    "no_rows": ("the mapping has no rows", "映射没有任何行"),
    "sum_only_weights": ("No boundary was compared; of {n} weights {equal} are equal.", "没有比较任何边界；{n} 个权重中 {equal} 个相等。"),
    "sum_only_gaps": ("No boundary could be compared: {gaps} lack evidence.", "没有可比较的边界：{gaps} 个缺少证据。"),
    "sum_other_inputs": (
        "The two sides were not given the same inputs: {first}.",
        "两侧得到的输入不同：{first}。",
    ),
    "mapping_says": ("the mapping says of {boundary}: {note}", "映射对 {boundary} 的说明：{note}"),
    "decide_exchanged": (
        "in which order each side's loader puts the rows of {weights}: the mapping finds the same rows at other places",
        "两侧的加载代码各按什么次序放置 {weights} 的行：映射在别的位置找到了同样的行",
    ),
    "decide_ranks": ("all ranks of the step of {side}", "{side} 该 step 的全部 rank"),
    "sum_one_fault": (
        "The two sides do not compute the same function: {first}.",
        "两侧计算的不是同一个函数：{first}。",
    ),
    "sum_faults": (
        "The two sides do not compute the same function: {n} independent logic differences: {causes}.",
        "两侧计算的不是同一个函数：{n} 处独立的逻辑差异：{causes}。",
    ),
    "sum_undecided": (
        "The two sides part at {boundary}; whether that is rounding or a fault is not decided.",
        "两侧在 {boundary} 处开始不同；是舍入还是故障尚未判定。",
    ),
    "sum_first": ("They part first at {boundary}: {evidence}.", "首次分歧在 {boundary}：{evidence}。"),
    "sum_between": (
        "They part between {last} and {boundary}: {evidence}; between the two, not compared: {gaps}.",
        "分歧发生在 {last} 与 {boundary} 之间：{evidence}；两者之间未比较：{gaps}。",
    ),
    "sum_weights_apart": (
        "No compared boundary differs ({n} are EXACT), but of the weights these are not EXACT: {weights}.",
        "已比较的边界没有差异（{n} 个 EXACT），但以下权重不是 EXACT：{weights}。",
    ),
    "sum_no_divergence": ("No compared boundary differs.", "已比较的边界没有差异。"),
    "sum_nothing": ("There is no first divergence to name.", "没有可指出的首个分歧。"),
    "sum_counts": (
        "{boundaries}; {weights}.",
        "{boundaries}；{weights}。",
    ),
    "sum_counts_left": (
        "{boundaries}; {weights}; {train} recorded tensors of train and {infer} of infer stand in no row.",
        "{boundaries}；{weights}；train 有 {train} 个、infer 有 {infer} 个已记录的张量不在任何一行中。",
    ),
    "count_boundaries": (
        "{exact} of {all} boundaries are EXACT, {differ} differ, {gaps} were not compared",
        "{all} 个边界中 {exact} 个 EXACT，{differ} 个不同，{gaps} 个未比较",
    ),
    "count_weights": (
        "of {all} weights {equal} are equal, {differ} differ, {gaps} were not compared",
        "{all} 个权重中 {equal} 个相等，{differ} 个不同，{gaps} 个未比较",
    ),
    "start_of_model": ("the model's inputs", "模型输入"),
    # --- conclusion: what would decide ---
    "decide_weight": (
        "first that the mapping cuts {weights} rightly, then the checkpoint that both sides were loaded from",
        "先核对映射对 {weights} 的切片，再看两侧共同加载的检查点",
    ),
    "decide_inputs": (
        "the prompt as each side tokenised it: which {boundary} did each side mean to use",
        "两侧各自分词后的 prompt：各侧原本要用的 {boundary} 是什么",
    ),
    "decide_replay": ("recomputing {boundary} on each side from its own recorded inputs", "用各侧自己记录的输入重新计算 {boundary}"),
    "decide_gap": ("recording or mapping {names}", "记录或映射 {names}"),
    "decide_dump": ("a complete dump of {side}", "{side} 的完整采集"),
    "decide_and_more": ("{first}; and {n} more of this kind", "{first}；另有 {n} 处同类"),
    # --- conclusion: what replay has shown ---
    "sum_rounding": (
        "The two sides compute the same function: whatever differs is rounding, made at {n} kinds of places, each of which is named.",
        "两侧计算的是同一个函数：所有差异都是舍入，来自 {n} 类位置，均已指明。",
    ),
    "sum_modules": (
        "{counts} Of {all} modules {same} compute the same, {rounding} round elsewhere, {logic} differ by logic, {unknown} are open.",
        "{counts}重算的 {all} 个模块中 {same} 个计算相同，{rounding} 个舍入点不同，{logic} 个有逻辑差异，{unknown} 个未定。",
    ),
    "open_cut": ("the dump of {side} is incomplete", "{side} 的采集不完整"),
    "open_gaps": ("not compared, and not covered by replay: {names}", "没有比较、也没有被重算覆盖：{names}"),
    "open_edges": ("inputs that no earlier output is known to have made: {names}", "不知由哪个更早的输出产生的输入：{names}"),
    "replay_span": (
        "both sides follow from what was recorded before it: train by {train}, infer by {infer}",
        "两侧都可由其之前记录的值得出：train 经 {train}，infer 经 {infer}",
    ),
    "replay_in_modules": ("{cause}; the same in {n} modules: {modules}", "{cause}；在 {n} 个模块中相同：{modules}"),
    "replay_cause_constant": (
        "{operator} {name} is {train} on train, {infer} on infer",
        "{operator} 的 {name} 在 train 为 {train}，在 infer 为 {infer}",
    ),
    "replay_cause_rounding": ("{operator}: on train {train}; on infer {infer}", "{operator}：train 侧{train}；infer 侧{infer}"),
    "replay_cause_unknown": (
        "not decided by recomputing: {n} modules that differ, {modules}; needed: {why}",
        "重算尚不能判定：{n} 个有差异的模块，{modules}；需要：{why}",
    ),
    "replay_both_explained": (
        "{module}: on train {train} of {of_train} elements do not follow ({by_train}), on infer {infer} of {of_infer} ({by_infer})",
        "{module}：train 有 {train} / {of_train} 个元素无法得出（{by_train}），infer 有 {infer} / {of_infer} 个（{by_infer}）",
    ),
    "replay_another_constant": ("another {name}", "另一个 {name}"),
    "replay_interval_holds": (
        "at {module} {name} can only lie between {train} on train and {infer} on infer: one value holds on both sides",
        "在 {module}，{name} 在 train 只能位于 {train}，在 infer 只能位于 {infer}：同一个值两侧都成立",
    ),
    "fix_constant": ("compute with {name} {value}, as the configuration of {side} states", "按 {side} 的配置，以 {name} {value} 计算"),
    "expect_equal_constant": ("both sides follow with one {name}", "两侧由同一个 {name} 得出"),
    "variant_parts": ("{parts}", "{parts}"),
    "variant_stored": ("the result kept in {format}", "结果保存为 {format}"),
    "variant_partials": ("{n} partial sums are rounded, then added", "{n} 个部分和先舍入再相加"),
    "variant_plain": ("float32 accumulation, rounded once", "float32 累加，只舍入一次"),
    "variant_bias_in_acc": ("the bias is added before rounding", "舍入之前加偏置"),
    "variant_bias_after_cast": ("the product is rounded before the bias is added", "乘积先舍入，再加偏置"),
    "variant_cast_first": ("float32 operands are rounded to the output's format first", "float32 的操作数先舍入为输出的格式"),
    "variant_cast_before_weight": ("the normalised value is rounded before it is multiplied by the weight", "归一化的值先舍入，再乘权重"),
    "variant_cast_after_weight": ("rounded once, after the weight", "乘权重之后只舍入一次"),
    "variant_rstd_rounded": ("the inverse root is rounded", "平方根的倒数先舍入"),
    "variant_root_rounded": ("every step is rounded, the root and its reciprocal apart", "每一步都舍入，平方根与其倒数分别舍入"),
    "variant_all_rounded": ("every step is rounded, the mean of squares too", "每一步都舍入，平方的均值也是"),
    "variant_cast_to": (
        "the normalised value is rounded to {format}, its product with a float32 weight is not",
        "归一化的值先舍入为 {format}，与 float32 权重之积不再舍入",
    ),
    "variant_less_one": ("gains stored less one", "增益减一存储"),
    "variant_scaled": ("logits divided by the temperature are kept in {format}", "除以温度后的 logits 保存为 {format}"),
    "variant_add_rounded": ("the sum of branch and residual is rounded before it is normalised", "分支与残差之和先舍入，再归一化"),
    "variant_add_unrounded": ("the unrounded float32 sum of branch and residual is normalised", "对未舍入的 float32 分支残差之和做归一化"),
    "variant_act_rounded": ("the activation is rounded before it is multiplied", "激活值先舍入，再相乘"),
    "variant_act_float32": ("activation and product in float32, rounded once", "激活与乘法均为 float32，只舍入一次"),
    "variant_float32_inside": ("float32 inside, rounded once", "内部为 float32，只舍入一次"),
    "variant_stepwise": ("every step is rounded", "每一步都舍入"),
    "variant_rounded_once": ("added in float32, rounded once", "float32 相加，只舍入一次"),
    "variant_ends_first": (
        "the stream and the last branch are added first, each sum rounded",
        "先加残差流与最后一个分支，每次求和都舍入",
    ),
    "variant_branches_first": ("the branches are added first, each sum rounded", "先加各分支，每次求和都舍入"),
    "variant_product_rounded": ("the multiplied branch is rounded before it is added", "乘以系数的分支先舍入，再相加"),
    "variant_product_float32": ("the branch is multiplied and added in float32, rounded once", "分支的乘与加均为 float32，只舍入一次"),
    "variant_scaled_stepwise": ("with logits rounded before they are scaled", "logits 先取整再缩放"),
    "variant_scaled_once": ("with logits scaled in float32 and rounded once", "logits 在 float32 中缩放，只取整一次"),
    "variant_cap_stepwise": ("each step of the soft cap is rounded", "软截断的每一步都舍入"),
    "variant_cap_once": ("the soft cap in float32, rounded once", "软截断为 float32，只舍入一次"),
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
    "replay_kernel": (
        "the rounding points of {operator} on {side}: no variant that is known fits; a kernel that is not in the list is no fault",
        "{side} 上 {operator} 的舍入点：已知变体都不相符；内核不在清单中不等于故障",
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
    # --- kinds of differing weights ---
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
    # --- parameters ---
    "sum_but_params": (
        "{verdict} But parameters of the two sides differ and are let stand by nobody: {points}.",
        "{verdict}但两侧的参数不同，且没有人放行：{points}。",
    ),
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
    # --- training log ---
    "log_lacks": ("{file} states no {keys}", "{file} 中没有 {keys}"),
    "log_not_computed": (
        "{metric}_valid is 0: {metric} was not computed, whatever value stands beside it",
        "{metric}_valid 为 0：{metric} 没有计算，旁边的数值一律不算",
    ),
    "log_untold": (
        "{metric} is stated without a mean, or as 0 without valid: that cannot be told from not computed",
        "{metric} 没有 mean，或为 0 且没有 valid：无法与“没有计算”区分",
    ),
    "log_rounded": (
        "the log prints {parts} of {metric} as 0 with few decimals: below {bound}, not known to be 0",
        "{metric} 的 {parts} 以有限小数位打印为 0：只知小于 {bound}，不能当作 0",
    ),
}


def word(kind: str, **values: Any) -> Worded:
    """The sentence of a kind, with its English text. Raises KeyError for a kind or a value that the table lacks."""
    return Worded(kind, values, render(kind, values, "en"))


def render(kind: str, values: dict[str, Any], language: Language) -> str:
    """The text of a kind in one language; values may be worded themselves, as objects or as parsed JSON."""
    english, chinese = TABLE[kind]
    shown = {key: _shown(value, language) for key, value in values.items()}
    return (english if language == "en" else chinese).format(**shown)


def text_of(sentence: Worded, language: Language) -> str:
    """A worded sentence in one language; a kind that this release does not know keeps its English text."""
    if sentence.kind not in TABLE:
        return sentence.text
    try:
        return render(sentence.kind, sentence.values, language)
    except (KeyError, IndexError, TypeError, AttributeError):  # an edited file lacks a value or holds another
        return sentence.text


def _number(value: float) -> str:
    """Four digits, and near 1 four digits of the distance from 1: what matters of a scale."""
    away = abs(value - 1)
    digits = 4 if not 0 < away < 0.1 else min(12, 4 - math.floor(math.log10(away)))
    return f"{value:.{digits}g}"


def _shown(value: Any, language: Language) -> str:
    if isinstance(value, Worded):
        return text_of(value, language)
    if isinstance(value, dict) and set(value) == {"kind", "values", "text"}:
        return render(value["kind"], value["values"], language) if value["kind"] in TABLE else str(value["text"])
    if isinstance(value, list | tuple):
        shown = [_shown(item, language) for item in value[:_LONGEST_LIST]]
        left = len(value) - len(shown)
        more = [] if not left else [f"… ({len(value)} in all)" if language == "en" else f"……（共 {len(value)} 个）"]
        return (", " if language == "en" else "、").join(shown + more)
    if isinstance(value, float):
        return _number(value)
    return str(value)
