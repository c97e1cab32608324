"""Sentences on what a dump holds and lacks. Part of `wording.TABLE`: kind -> (English, Chinese)."""

PROBING: dict[str, tuple[str, str]] = {
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
}
