"""What the checks of files and runs say of a dump pair: kind -> (English, Chinese)."""

from typing import Dict, Tuple

DUMP_CHECK_WORDS: Dict[str, Tuple[str, str]] = {
    "pair_open": ("the pair is open: the dumps can be compared", "这一对放行：两份 dump 可以比较"),
    "pair_shut": ("the pair is shut: {n} check(s) fail", "这一对拦下：{n} 项检查不过"),
    "checks_made": ("{n} checks, {remarks} remark(s)", "检查 {n} 项，提示 {remarks} 条"),
    "not_known": ("not known: {check}: {why}", "未知：{check}：{why}"),
    "go_back": ("{check}: {why}. Go back to stage {stage}.", "{check}：{why}。回到阶段 {stage}。"),
    "each_side": ("{found}", "{found}"),
    "units_found": ("{side}: {n} dump folder(s)", "{side}：{n} 个 dump 目录"),
    "no_dump": (
        (
            "{side}: no dump.json and no tensor below its path. Look, in this order: is the path right; does the engine run in graph mode; "
            "has its model runner an msprobe hook; is msprobe installed in that very environment; is the configured rank one that ran"
        ),
        (
            "{side}：其路径下既无 dump.json 也无张量。依次查：路径是否写对；引擎是否在图模式；其 model runner 是否带 msprobe 钩子；"
            "该环境里是否装了 msprobe；配置的 rank 是否真的在运行"
        ),
    ),
    "unreadable_json": ("{side}: {why}", "{side}：{why}"),
    "entries": ("{side}: {n} entries in {units} dump.json", "{side}：{units} 个 dump.json 共 {n} 条"),
    "nothing_to_look_at": ("{side}: nothing to look at; an earlier check says why", "{side}：无可查之物，原因见前面的检查"),
    "nothing_ran": (
        (
            "{side}: the debugger was started and stopped, and no module was called ({units}). The log-prob forward was skipped, "
            "or its result reused (can_reuse_log_probs_in_loss, bypass_mode), or the debugger was started after it"
        ),
        (
            "{side}：debugger 启动并停止了，但没有模块被调用（{units}）。log-prob 前向被跳过或被复用（can_reuse_log_probs_in_loss、"
            "bypass_mode），或 debugger 启动在前向之后"
        ),
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
    "files_missing": (
        "{side}: {n} files that dump.json names are gone, first {first}",
        "{side}：dump.json 所列文件缺 {n} 个，先见 {first}",
    ),
    "files_there": ("{side}: all {n} files that dump.json names are there", "{side}：dump.json 所列 {n} 个文件齐全"),
    "files_damaged": (
        "{side}: {n} files are damaged or have another shape than dump.json says, first {first}",
        "{side}：{n} 个文件损坏，或形状与 dump.json 不符，先见 {first}",
    ),
    "files_whole": (
        "{side}: all {n} files can be read and have the shape that dump.json says",
        "{side}：{n} 个文件均可读，形状与 dump.json 一致",
    ),
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
    "end_unknown": ("{side}: no numbered layers; nothing shows that the forward ended", "{side}：没有带编号的层，看不出前向是否跑完"),
    "forward_ended": ("{side}: every module that was entered was left", "{side}：进入的模块都已返回"),
    "second_call": (
        ("{side}: the model was called {calls} times in one step ({unit}): micro batches, another forward, or step() not called between"),
        "{side}：一个 step 内模型被调用 {calls} 次（{unit}）：多个 micro batch、别的前向，或其间没有 step()",
    ),
    "first_call_missing": (
        ("{side}: the first call recorded of the layers is number {call} ({unit}): a forward outside the window used up the calls before"),
        "{side}：层的首条记录是第 {call} 次调用（{unit}）：窗口之外的前向占用了前面的序号",
    ),
    "one_call": ("{side}: the model was called once", "{side}：模型被调用一次"),
    "backward": (
        (
            "{side}: {n} entries of a backward pass or of recomputing, first {first}: a training step, not the log-prob forward. "
            "Use data_mode forward"
        ),
        "{side}：{n} 条属于反向或重计算，先见 {first}：这是训练步，不是 log-prob 前向。请用 data_mode forward",
    ),
    "no_backward": ("{side}: no backward pass and no recomputing", "{side}：没有反向，也没有重计算"),
}
