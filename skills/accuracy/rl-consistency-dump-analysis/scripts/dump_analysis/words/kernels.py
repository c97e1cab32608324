"""Sentences on kernels that nobody has written down. Part of `wording.TABLE`: kind -> (English, Chinese)."""

KERNELS: dict[str, tuple[str, str]] = {
    "replay_kernel": (
        (
            "the rounding points of {operator} on {side}: no variant that is known fits, and a kernel that is not in the list is no fault; "
            "an override round that hands the module the other side's recorded inputs, or the operator run alone on the recorded inputs "
            "and once more in float32, tells"
        ),
        (
            "{side} 上 {operator} 的舍入点：已知变体都不相符，内核不在清单中不等于故障；"
            "用一轮覆盖把另一侧记录的输入交给该模块，或用记录的输入单独运行该算子并与 float32 结果比较，即可判定"
        ),
    ),
    "replay_bound": (
        (
            "{side}: a kernel of {operator} that is not in the list; it stays within {scale} times the bound of float32, its other modules "
            "within {usual}, and what it leaves looks like rounding (rms {rms} deviations, gain {gain})"
        ),
        (
            "{side}：{operator} 的内核不在清单中；误差在 float32 界的 {scale} 倍以内，其余同类模块为 {usual} 倍，"
            "残差符合舍入（均方根 {rms} 个标准差，增益 {gain}）"
        ),
    ),
    "replay_within_bound": (
        (
            "{side}: it stays within {scale} times the bound of float32, other modules of {operator} within {usual}: a kernel that is not "
            "in the list; the record is off by {gain} of the truth: an accumulator that cuts or a factor, which are not told apart"
        ),
        (
            "{side}：误差在 float32 界的 {scale} 倍以内，其余 {operator} 模块为 {usual} 倍：内核不在清单中；"
            "记录值整体偏离真值 {gain}：累加器截断还是系数不同，无法区分"
        ),
    ),
    "replay_constant_alone": (
        "{side} computes with {name} {value}; the other side's kernel is not in the list",
        "{side} 以 {name} {value} 计算；另一侧的内核不在清单中",
    ),
    "replay_noise_stands_out": (
        "{side}: what other modules of {operator} leave has a root mean square of {usual} deviations of rounding, this one of {rms}",
        "{side}：其余 {operator} 模块残差的均方根为舍入标准差的 {usual} 倍，该模块为 {rms} 倍",
    ),
    "replay_stands_out": (
        (
            "{side}: other modules of {operator} need {usual} times the bound of float32, this one {scale}, and it is off by {gain} of the "
            "truth: it errs as none of the others does"
        ),
        "{side}：其余 {operator} 模块需要 float32 界的 {usual} 倍，该模块需要 {scale} 倍，且偏离真值 {gain}：误差与其余模块都不同",
    ),
}
