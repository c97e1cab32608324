"""The sentences of the override room: what was left as it was, and what a new dump shows of it."""

from typing import Dict, Tuple

OVERRIDE_WORDS: Dict[str, Tuple[str, str]] = {
    # --- warnings of the preparation ---
    "inputs_left": (
        "{n} further input(s) of these calls stay as they are ({names}): one '[load] source data missing' line each is expected in the log",
        "这些调用还有 {n} 个输入保持原值（{names}）：日志里每个各有一行 '[load] source data missing'，属于预期",
    ),
    "source_inputs_post_call": (
        "the source dump took module inputs after the call: where a module works in place they are its results: {names}; take outputs",
        "源 dump 的模块输入取自调用之后（msprobe 早于 26.2）：原地计算的模块记录的输入其实是结果：{names}；改用产生它们的模块的输出",
    ),
    "source_other_dump": (
        "the source dump is not the one that the instruction was made from, or was changed since",
        "源 dump 不是生成这份指令时的那一份，或之后被改动过",
    ),
    "load_not_proven": (
        "nothing here tells which msprobe the {side} side runs: it must be 26.2.0 or newer, an older one ignores the override silently",
        "无法得知 {side} 侧运行的 msprobe 版本：必须是 26.2.0 或更新，更早的版本会不声不响地忽略覆盖",
    ),
    "no_dump_no_proof": (
        "the run makes no dump (dump_after_load is false), so its effect cannot be proven, only watched in the metric",
        "这次运行不产生 dump（dump_after_load 为 false），覆盖是否生效无法证明，只能看指标",
    ),
    "not_verified": (
        "not verified yet: no new dump was compared with the prepared files",
        "尚未验证：还没有用新 dump 与准备好的文件比较",
    ),
    # --- effect ---
    "input_equals_prepared": (
        "the new dump records the prepared tensor bit for bit, {equal} of {of} elements",
        "新 dump 记录的与准备的张量逐位相等，{of} 个元素中 {equal} 个",
    ),
    "equal_before": (
        "{input} of {entry} held the prepared values already before the override: equality does not prove that load ran",
        "{entry} 的 {input} 在覆盖之前就等于准备的值：相等不证明 load 起了作用",
    ),
    "input_kept": (
        "the target kept its value of the earlier dump: look for '[load]' in the log (source missing, old msprobe, other configuration)",
        "目标保持了原值（与先前的 dump 相同）：load 没有替换它。在日志里找 '[load]' 行：缺源文件、msprobe 过旧，或用的不是这里写出的配置",
    ),
    "input_differs": (
        "the new dump records another tensor: {equal} of {of} elements equal the prepared ones",
        "新 dump 记录的是另一个张量：{of} 个元素中只有 {equal} 个与准备的相等",
    ),
    "shape_differs": (
        "the new dump records shape {found}, prepared is {prepared}",
        "新 dump 记录的形状是 {found}，准备的是 {prepared}",
    ),
    "dtype_differs": (
        "the new dump records dtype {found}, prepared is {prepared}",
        "新 dump 记录的 dtype 是 {found}，准备的是 {prepared}",
    ),
    "entry_not_recorded": (
        "the new dump holds no {entry}: the call did not happen, or the module is not there",
        "新 dump 没有 {entry}：没有发生这次调用，或没有这个模块",
    ),
    "entry_other_class": (
        "the new dump holds {found} in place of {entry}: the module has another class in that run, so load did not match it",
        "新 dump 里是 {found}，不是 {entry}：那次运行中该模块的类不同，load 没有匹配上",
    ),
    "entry_other_call": (
        "the new dump holds {found}, not {entry}: a forward outside start() and stop() took that call number and was overridden instead",
        "新 dump 里有 {found}，没有 {entry}：start() 与 stop() 之外的一次前向占用了这个调用序号，并替它被覆盖",
    ),
    "input_not_recorded": (
        "{entry} in the new dump has no tensor {input}; it has {found}",
        "新 dump 中 {entry} 没有张量 {input}；有的是 {found}",
    ),
    "step_not_recorded": (
        "the new dump holds step {found}, not step {step}, for which the source was prepared",
        "新 dump 的 step 是 {found}，而源是为 step {step} 准备的",
    ),
    "rank_not_recorded": (
        "the new dump holds no rank {rank} in step {step}; it holds {found}",
        "新 dump 的 step {step} 里没有 rank {rank}；有的是 {found}",
    ),
    "rank_not_prepared": (
        "rank {rank} of the new dump ran the call too, but nothing was prepared for it",
        "新 dump 的 rank {rank} 也执行了这次调用，但没有为它准备文件",
    ),
    "folder_other_kind": (
        "the run wrote {found}, so load looked there, but the source lies in {prepared}",
        "这次运行写的是 {found}，load 到那里去找，而源在 {prepared}",
    ),
    "prepared_missing": (
        "the prepared file is gone: {file}",
        "准备好的文件不在了：{file}",
    ),
    "prepared_changed": (
        "the prepared file was changed since it was written: {file}",
        "准备好的文件写出之后被改动过：{file}",
    ),
    "new_file_unreadable": (
        "the new dump's file cannot be read: {why}",
        "新 dump 的文件读不了：{why}",
    ),
    "dumped_without_load": (
        "the new dump was made by msprobe {release}, which has no load",
        "新 dump 由 msprobe {release} 产生，它没有 load",
    ),
    "overridden_between": (
        "step {step} counts {found} without {entry}: a forward between the two windows was overridden too; end the run after the first one",
        "step {step} 里是 {found}，没有 {entry}：两个窗口之间的一次前向也被覆盖了；第一次前向之后就结束运行",
    ),
    "overridden_again": (
        "{entry} of step {step} records the prepared {input} as well: a later forward was overridden too; end the run after the first one",
        "step {step} 的 {entry} 也记录了准备的 {input}：之后的前向也被覆盖了；第一次前向之后就结束运行",
    ),
}
