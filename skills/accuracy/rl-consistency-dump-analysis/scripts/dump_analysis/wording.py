"""The one table that words every kind of sentence in artefacts, in English and Chinese.

A sentence is data (`artefacts.common.Worded`): its kind, its values, and the English text made of
nothing else. Whoever knows the kind words it anew in either language; nobody parses the text.
"""

import math
from typing import Any, Literal

from .artefacts.common import Worded

Language = Literal["en", "zh-CN"]
_LONGEST_LIST = 4  # a sentence shows so many items and says how many there are; ``values`` hold them all

# kind -> (English, Chinese)
TABLE: dict[str, tuple[str, str]] = {
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
    # --- conclusion: summary ---
    "sum_exact": ("The two sides are equal bit for bit at all {n} boundaries compared.", "两侧在全部 {n} 个已比较的边界上逐位相等。"),
    "sum_exact_cut": (
        "The two sides are equal bit for bit at all {n} boundaries compared, but the dump of {sides} is incomplete.",
        "两侧在全部 {n} 个已比较的边界上逐位相等，但 {sides} 的采集不完整。",
    ),
    "sum_exact_gaps": (
        "The two sides are equal bit for bit at {n} boundaries; {gaps} could not be compared.",
        "两侧在 {n} 个边界上逐位相等；另有 {gaps} 个无法比较。",
    ),
    "sum_not_run": ("Nothing was compared: {why}.", "没有进行任何比较：{why}。"),
    "no_rows": ("the mapping has no rows", "映射没有任何行"),
    "sum_only_weights": ("No boundary was compared; of {n} weights {equal} are equal.", "没有比较任何边界；{n} 个权重中 {equal} 个相等。"),
    "sum_only_gaps": ("No boundary could be compared: {gaps} lack evidence.", "没有可比较的边界：{gaps} 个缺少证据。"),
    "sum_one_fault": (
        "The two sides do not compute the same function: {first}.",
        "两侧计算的不是同一个函数：{first}。",
    ),
    "sum_faults": (
        "The two sides do not compute the same function: {n} logic differences, the first: {first}.",
        "两侧计算的不是同一个函数：{n} 处逻辑差异，首个为：{first}。",
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
