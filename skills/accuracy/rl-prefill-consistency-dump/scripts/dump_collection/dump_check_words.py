"""What the checks of a dump pair say: kind -> (English, Chinese)."""

from typing import Dict, Tuple

_FILES: Dict[str, Tuple[str, str]] = {
    "units_found": ("{side}: {n} dump folder(s)", "{side}：{n} 个 dump 目录"),
    "no_dump": (
        "{side}: no dump.json and no tensor below its path. Look, in this order: does the engine run in graph mode; has its model runner an msprobe hook; "
        "is msprobe installed in that very environment; is the configured rank one that ran",
        "{side}：其路径下既无 dump.json 也无张量。依次查：引擎是否在图模式；其 model runner 是否带 msprobe 钩子；该环境里是否装了 msprobe；配置的 rank 是否真的在运行",
    ),
    "unreadable_json": ("{side}: {why}", "{side}：{why}"),
    "entries": ("{side}: {n} entries in {units} dump.json", "{side}：{units} 个 dump.json 共 {n} 条"),
    "nothing_to_look_at": ("{side}: nothing to look at; an earlier check says why", "{side}：无可查之物，原因见前面的检查"),
    "nothing_ran": (
        "{side}: the debugger was started and stopped, and no module was called ({units}). The log-prob forward was skipped, or its result reused "
        "(can_reuse_log_probs_in_loss, bypass_mode), or the debugger was started after it",
        "{side}：debugger 启动并停止了，但没有模块被调用（{units}）。log-prob 前向被跳过或被复用（can_reuse_log_probs_in_loss、bypass_mode），或 debugger 启动在前向之后",
    ),
    "ran": ("{side}: modules were recorded; {empty} further folder(s) hold nothing", "{side}：有模块记录；另有 {empty} 个目录为空"),
    "killed": (
        "{side}: {n} tensors lie there and dump.json lists none ({units}): the run was killed before stop()",
        "{side}：有 {n} 个张量，而 dump.json 一条未列（{units}）：进程在 stop() 之前被杀",
    ),
    "no_dump_json": (
        "{side}: {n} tensors are there and dump.json is missing ({units}): the run ended before stop()",
        "{side}：有 {n} 个张量，却无 dump.json（{units}）：进程在 stop() 之前结束",
    ),
    "killed_later": (
        "{side}: tensors of modules that ran are not in dump.json ({units}): the run was killed after a flush",
        "{side}：已运行模块的张量不在 dump.json 里（{units}）：进程在一次落盘之后被杀",
    ),
    "not_killed": ("{side}: dump.json was written at the end of the run", "{side}：dump.json 在运行结束时写成"),
    "files_missing": ("{side}: {n} files that dump.json names are gone, first {first}", "{side}：dump.json 所列文件缺 {n} 个，先见 {first}"),
    "files_there": ("{side}: all {n} files that dump.json names are there", "{side}：dump.json 所列 {n} 个文件齐全"),
    "files_damaged": (
        "{side}: {n} files are damaged or have another shape than dump.json says, first {first}",
        "{side}：{n} 个文件损坏，或形状与 dump.json 不符，先见 {first}",
    ),
    "files_whole": ("{side}: all {n} files can be read and have the shape that dump.json says", "{side}：{n} 个文件均可读，形状与 dump.json 一致"),
    "other_dtype": (
        "{side}: {n} files hold another dtype than dump.json says, first {first}; dump.json is the authority",
        "{side}：{n} 个文件的 dtype 与 dump.json 不同，先见 {first}；以 dump.json 为准",
    ),
    "dtypes_agree": ("{side}: all {n} files hold the dtype that dump.json says", "{side}：{n} 个文件的 dtype 与 dump.json 一致"),
    "error_log": (
        "{side}: msprobe lost entries and wrote dump_error_info.log ({units}); of what ran {n} are not in dump.json, first {first}",
        "{side}：msprobe 丢了条目并写有 dump_error_info.log（{units}）；已运行而不在 dump.json 的有 {n} 条，先见 {first}",
    ),
    "no_error_log": ("{side}: no log of lost entries", "{side}：没有丢失条目的日志"),
    "stale_files": (
        "{side}: {n} tensors of an earlier run lie beside this one's, first {first}; they are not used. Dump into a fresh folder",
        "{side}：{n} 个张量是更早一次运行留下的，先见 {first}；不采用。请换新目录采集",
    ),
    "no_stale_files": ("{side}: no file beside those that dump.json lists", "{side}：没有 dump.json 未列的文件"),
    "not_saved": (
        "{side}: {n} tensors were recorded and no file was saved for them, first {first}",
        "{side}：{n} 个张量有记录却没有存文件，先见 {first}",
    ),
    "all_saved": ("{side}: every recorded tensor has a file", "{side}：每个有记录的张量都有文件"),
    "slack": (
        "{side}: files hold {bytes} bytes beyond their tensors (written with slice or request_id)",
        "{side}：文件比其张量多存了 {bytes} 字节（用了 slice 或 request_id）",
    ),
    "no_slack": ("{side}: files hold their tensors and nothing else", "{side}：文件只存其张量"),
}  # fmt: skip

_RUNS: Dict[str, Tuple[str, str]] = {
    "no_tensors": (
        "{side}: task {task} saved no tensor; bits cannot be compared. Dump again with task tensor",
        "{side}：task {task} 没有存张量，无法逐位比较。请用 task tensor 重采",
    ),
    "digests_alone": (
        "{side}: task {task} saved digests and no tensor; they tell equal from unequal and nothing more. Dump again with task tensor",
        "{side}：task {task} 只存了摘要，没有张量，只能判断相等与否。请用 task tensor 重采",
    ),
    "tensors": ("{side}: {n} tensors saved", "{side}：存有 {n} 个张量"),
    "apis_alone": (
        "{side}: level {level} recorded no module; modules cannot be mapped and their inputs not overridden. Use level L0 or mix",
        "{side}：level {level} 没有记录模块，无法对应模块，也无法覆盖其输入。请用 L0 或 mix",
    ),
    "modules": ("{side}: {n} entries of modules", "{side}：{n} 条模块记录"),
    "filtered": (
        "{side}: {n} modules ran and were not recorded (list, scope, or an error), first {first}",
        "{side}：{n} 个模块运行了却没有记录（list、scope 或出错），先见 {first}",
    ),
    "not_filtered": ("{side}: every module that ran was recorded", "{side}：运行过的模块均有记录"),
    "no_trace": (
        "{side}: construct.json is missing or empty ({units}): which module called which is not known (extra_info off, or level L1)",
        "{side}：construct.json 缺失或为空（{units}）：不知模块的调用关系（extra_info 关闭，或 level L1）",
    ),
    "trace": ("{side}: construct.json tells which module called which", "{side}：construct.json 记有模块的调用关系"),
    "several_dumps": (
        "{side}: several dumps of one step and rank hold the same tokens, or none that tell them apart ({units}). Hand one of them",
        "{side}：同一 step、rank 有多个 dump，其 token 相同或无从区分（{units}）。请只给其中一个",
    ),
    "units_judged": ("{side}: judged {units}, of {of} dump folder(s)", "{side}：判断的是 {units}，共 {of} 个 dump 目录"),
    "no_step0": (
        "{side}: step0 holds nothing, only {steps}: the main forward of step 0 was skipped, or another forward was recorded",
        "{side}：step0 没有内容，只有 {steps}：step0 的主前向被跳过，或录到的是别的前向",
    ),
    "step0": ("{side}: step0 was recorded; {empty} step(s) are empty and left aside", "{side}：step0 有记录；{empty} 个空的 step 不计"),
    "warm_up_zeros": (
        "{side}: {zero} of {of} activations are all zero ({rows} rows): a forward that warms the engine up",
        "{side}：{of} 个激活中 {zero} 个全零（{rows} 行）：这是引擎的预热前向",
    ),
    "warm_up_ids": (
        "{side}: all {rows} rows are one token id: a forward that warms the engine up",
        "{side}：{rows} 行全是同一个 token id：这是引擎的预热前向",
    ),
    "warm_up_aside": (
        "{side}: {units} is a warm-up of zeros and left aside; of what is judged {zero} of {of} activations are all zero",
        "{side}：{units} 是全零的预热，不计；所判断的 {of} 个激活中 {zero} 个全零",
    ),
    "not_zero": ("{side}: {zero} of {of} activations are all zero", "{side}：{of} 个激活中 {zero} 个全零"),
    "interrupted": (
        "{side}: {n} modules were entered and not left, first {first}: an exception or a kill in the forward",
        "{side}：{n} 个模块进入后没有返回，先见 {first}：前向中抛了异常或被杀",
    ),
    "ended_early": (
        "{side}: ended where the other side goes on with {n} entries, first {first}: an exception in the forward",
        "{side}：在另一侧还有 {n} 条之处就结束了，先见 {first}：前向中抛了异常",
    ),
    "nothing_after_layers": (
        "{side}: nothing was recorded after layer {last}: the forward ended there, or its later modules are not dumped",
        "{side}：第 {last} 层之后没有记录：前向止于此，或后面的模块未采集",
    ),
    "forward_ended": ("{side}: every module that was entered was left", "{side}：进入的模块都已返回"),
    "second_call": (
        "{side}: the model was called {calls} times in one step ({unit}): micro batches, another forward, or step() not called between",
        "{side}：一个 step 内模型被调用 {calls} 次（{unit}）：多个 micro batch、别的前向，或其间没有 step()",
    ),
    "first_call_missing": (
        "{side}: the first call recorded of the layers is number {call} ({unit}): a forward outside the window used up the calls before",
        "{side}：层的首条记录是第 {call} 次调用（{unit}）：窗口之外的前向占用了前面的序号",
    ),
    "one_call": ("{side}: the model was called once", "{side}：模型被调用一次"),
    "backward": (
        "{side}: {n} entries of a backward pass or of recomputing, first {first}: a training step, not the log-prob forward. Use data_mode forward",
        "{side}：{n} 条属于反向或重计算，先见 {first}：这是训练步，不是 log-prob 前向。请用 data_mode forward",
    ),
    "no_backward": ("{side}: no backward pass and no recomputing", "{side}：没有反向，也没有重计算"),
}  # fmt: skip

_TOKENS: Dict[str, Tuple[str, str]] = {
    "nothing_without_ids": ("token ids of one side are not there", "有一侧没有 token id"),
    "warm_up_alone": ("{side}: holds a warm-up and no prompt", "{side}：只有预热，没有 prompt"),
    "no_ids": (
        "no token ids were found on {sides}: nothing shows that both sides ran one prompt. Dump the embedding's input",
        "{sides} 没有找到 token id：无法证明两侧跑的是同一 prompt。请采集 embedding 的输入",
    ),
    "tokens_alike": ("token ids equal by value, {n} of {of}", "token id 按值相等，{n}/{of}"),
    "tokens_differ": (
        "{n} of {of} token ids differ, first at {at}: another prompt, or another tokenisation",
        "{of} 个 token id 中 {n} 个不同，先在第 {at} 位：prompt 不同或分词不同",
    ),
    "tokens_before": (
        "{side}: {n} tokens stand before the {of} that both sides share, and they are no padding",
        "{side}：在两侧共有的 {of} 个 token 之前还有 {n} 个，且不是填充",
    ),
    "no_positions": ("no positions were recorded on {sides}", "{sides} 没有记录 position"),
    "positions": ("positions run from {first} to {last} on both sides", "两侧 position 都从 {first} 到 {last}"),
    "positions_differ": (
        "{n} of {of} positions differ; the prompt begins at {train} on train, at {infer} on infer",
        "{of} 个 position 中 {n} 个不同；prompt 在 train 从 {train} 起，在 infer 从 {infer} 起",
    ),
    "length_cached": ("one side has a part of the prompt from a cache; its rows cannot be counted", "一侧的 prompt 有一段来自缓存，行数无从核对"),
    "length_wrong": (
        "{side}: {n} token rows, where the prompt has {wanted} (P18)",
        "{side}：{n} 行 token，而 prompt 有 {wanted} 个（P18）",
    ),
    "length_right": ("both sides hold {n} tokens, as the task card says", "两侧均为 {n} 个 token，与任务卡一致"),
    "lengths_differ": (
        "train holds {train} token rows, infer {infer}: the input shape is not the true prompt length on both (P18)",
        "train 有 {train} 行 token，infer 有 {infer} 行：输入形状并非两侧都等于真实 prompt 长度（P18）",
    ),
    "prompt_length": (
        "both sides hold {n} tokens; the task card gives no length to compare with",
        "两侧均为 {n} 个 token；任务卡没有给出长度可核对",
    ),
    "padding": (
        "{side}: {n} of {of} token rows are padding (P18): remove it and dump again",
        "{side}：{of} 行 token 中 {n} 行是填充（P18）：去掉填充后重采",
    ),
    "perhaps_padding": (
        "{side}: the tokens begin or end with one id {n} times or more; write the true length into the task card",
        "{side}：token 的开头或结尾有同一 id 连续 {n} 次以上；请把真实长度写进任务卡",
    ),
    "no_padding": ("{side}: none of {n} token rows is padding", "{side}：{n} 行 token 中没有填充"),
    "other_tokens": ("the tokens differ; where the prompt ends cannot be said", "token 不同，说不出 prompt 止于何处"),
    "goes_on": (
        "{side}: goes on for {n} of {of} tokens after the other side ends: the response was left in (PROMPTS_ONLY), the other side's cut is too short, "
        "or its later chunk is not there",
        "{side}：另一侧结束之后还有 {n}/{of} 个 token：response 没有裁掉（PROMPTS_ONLY），或另一侧裁得太短，或缺其后一个 chunk",
    ),
    "ends_together": ("{side}: ends where the other side ends", "{side}：与另一侧同处结束"),
    "several_requests": (
        "{side}: {n} sequences ran in one forward; one request a dump step is needed",
        "{side}：一次前向里有 {n} 个序列；每个 dump step 只应有一个请求",
    ),
    "one_request": ("{side}: one sequence ran in the forward", "{side}：前向里只有一个序列"),
    "chunks": (
        "{side}: the prompt ran in parts of {rows} rows: chunked prefill, or a request that found the first part in the prefix cache",
        "{side}：prompt 分成 {rows} 行几段运行：chunked prefill，或后一请求的前段命中了前缀缓存",
    ),
    "one_chunk": ("{side}: the prompt ran in one forward", "{side}：prompt 在一次前向里跑完"),
    "cached": (
        "{side}: positions begin at {first}, and the first {n} tokens are not there: they came from the prefix cache",
        "{side}：position 从 {first} 起，前 {n} 个 token 不在：它们来自前缀缓存",
    ),
    "not_cached": ("{side}: no token came from a cache", "{side}：没有 token 来自缓存"),
}  # fmt: skip

_MODULES: Dict[str, Tuple[str, str]] = {
    "shapes": (
        "embedding output {train} on train, {infer} on infer, axes of size 1 dropped",
        "embedding 输出：train {train}，infer {infer}（去掉大小为 1 的轴）",
    ),
    "widths_differ": (
        "the embeddings differ in width: {train} on train, {infer} on infer",
        "embedding 宽度不同：train {train}，infer {infer}",
    ),
    "rows_differ": (
        "the embeddings differ in rows: {train} on train, {infer} on infer (P18)",
        "embedding 行数不同：train {train}，infer {infer}（P18）",
    ),
    "head": ("{side}: an output of {n} columns is there", "{side}：有 {n} 列的输出"),
    "no_head": (
        "{side}: no output as wide as the vocabulary ({vocabulary}): stop() before the logits, the head outside the model handed to start(), "
        "or the last pipeline stage not handed",
        "{side}：没有宽度为词表（{vocabulary}）的输出：stop() 早于 logits，head 不在 start() 的模型里，或没有给最后一个流水段",
    ),
    "head_taken_by_verl": (
        "{side}: neither the inner model nor the head was recorded: msprobe 8.3.1 and later skip the first and the last module where verl is imported. "
        "Hand start() a holder whose first child is the model and whose last is an nn.Identity",
        "{side}：内层 model 与 head 都没有记录：msprobe 8.3.1 起，进程里 import 了 verl 就跳过首末两个模块。请给 start() 一个外壳：首子模块是模型，末子模块是 nn.Identity",
    ),
    "no_vocabulary": ("{side}: neither ids nor an embedding tell how wide logits are", "{side}：没有 id 也没有 embedding，不知 logits 多宽"),
    "no_stream": ("a side recorded no layer's output", "有一侧没有记录层的输出"),
    "dtypes_differ": (
        "layers put out {train} on train, {infer} on infer: autocast off on one side, or another dtype configured",
        "层输出的 dtype：train {train}，infer {infer}：一侧没开 autocast，或配置的 dtype 不同",
    ),
    "one_dtype": ("layers put out {dtype} on both sides", "两侧层输出均为 {dtype}"),
    "one_release": ("both dumps are of msprobe {version}", "两侧都是 msprobe {version}"),
    "releases_differ": (
        "msprobe {train} on train, {infer} on infer: they record inputs at different moments. Install one release on both",
        "msprobe：train {train}，infer {infer}：两者记录输入的时刻不同。请两侧装同一版本",
    ),
    "releases_differ_on_card": (
        "the task card says msprobe {train} on train, {infer} on infer. Install one release on both",
        "任务卡写着 msprobe：train {train}，infer {infer}。请两侧装同一版本",
    ),
    "releases_open": (
        "msprobe {train} on train, {infer} on infer: the files do not tell whether it is one release",
        "msprobe：train {train}，infer {infer}：文件看不出是否同一版本",
    ),
    "pre_call": ("{side}: module inputs were taken before the call", "{side}：模块输入在调用前记录"),
    "post_call": (
        "{side}: module inputs were taken after the call (msprobe before 26.2.0): where a module works in place they are its results",
        "{side}：模块输入在调用后记录（msprobe 26.2.0 之前）：原地改写的模块，其输入即其结果",
    ),
    "inputs_unknown": ("{side}: nothing tells whether inputs were taken before the call", "{side}：看不出输入是否在调用前记录"),
    "compiled": ("{side}: names hold _orig_mod: the model was compiled ({unit})", "{side}：名字带 _orig_mod：模型被编译过（{unit}）"),
    "graph_folder": (
        "{side}: a folder of msprobe's graph mode ({unit}): the engine did not run eagerly",
        "{side}：这是 msprobe 图模式的目录（{unit}）：引擎不是 eager 运行",
    ),
    "one_buffer": (
        "{side}: every layer put out the same bytes ({unit}): a captured graph's buffer",
        "{side}：每层输出的字节都相同（{unit}）：这是被捕获的图的缓冲区",
    ),
    "card_silent": (
        "{side}: a dump cannot say it and the task card's baseline command has no switch for it ({value})",
        "{side}：dump 看不出，任务卡的基线命令里也没有相应开关（{value}）",
    ),
    "card_eager": ("{side}: the baseline command asks for eager mode, and nothing in the dump speaks against it", "{side}：基线命令要求 eager，dump 里没有反证"),
    "card_graph": ("{side}: the baseline command asks for graphs or a compiled model", "{side}：基线命令启用了图模式或编译"),
}  # fmt: skip

DUMP_CHECK_WORDS: Dict[str, Tuple[str, str]] = {
    "each_side": ("{found}", "{found}"), **_FILES, **_RUNS, **_TOKENS, **_MODULES,
}  # fmt: skip
