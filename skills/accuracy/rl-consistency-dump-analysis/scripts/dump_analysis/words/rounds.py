"""Sentences on override rounds. Part of `wording.TABLE`: kind -> (English, Chinese)."""

ROUNDS: dict[str, tuple[str, str]] = {
    # --- the plan ---
    "round_weights_decide": (
        "the weights differ in their bytes; `load` overrides inputs, never parameters",
        "权重字节不同；`load` 只覆盖输入，从不覆盖参数",
    ),
    "round_bytes_decide": (
        "what was recorded differs in its bytes: no round can add to that",
        "记录的字节本身就不同：覆盖轮不能再证明什么",
    ),
    "round_nothing_compared": (
        "{boundary} was not compared: a round would show nothing there",
        "{boundary} 没有比较过：覆盖轮在那里看不到什么",
    ),
    "round_explained": (
        "replay explains both sides, each by its own rounding points",
        "重算以各自的舍入点解释了两侧",
    ),
    "round_confirmed": ("round {round} has seen it from equal inputs", "第 {round} 轮已由相等的输入看过"),
    "round_equal_already": (
        "all that {boundary} is made from is EXACT in the pair itself: its difference is its own",
        "{boundary} 的全部来源在原来这一对里就是 EXACT：差异就是它自己的",
    ),
    "round_no_load": (
        (
            "{side} was dumped by msprobe {release}, which has no load: it cannot be overridden; what replay has proven stands, "
            "the rest stays open"
        ),
        "{side} 由 msprobe {release} 采集，没有 load：不能覆盖；重算已证明的成立，其余仍未定",
    ),
    "round_despite": ("not ruled out: {name} is {state}: {why}", "没有排除：{name} 为 {state}：{why}"),
    "round_several_steps": (
        "{side} holds one forward in several dump steps: an override of a part of it is not planned",
        "{side} 的一次前向分在多个 dump step 里：不安排只覆盖其中一部分",
    ),
    "round_nothing_open": (
        "no round adds anything: every difference is confirmed, explained, or outside of what an override of {side} reaches",
        "没有一轮还能增加什么：每处差异都已确认、已解释，或在覆盖 {side} 达不到的地方",
    ),
    "round_other_side": (
        "an override of {side} would show more: plan again with --target {side}",
        "覆盖 {side} 还能看到更多：用 --target {side} 再计划",
    ),
    "round_forced_shows": (
        "no complete cut shows what is left; all inputs of {side} overridden at once would: plan again with --all --target {side}",
        "剩下的没有完整切口能看到；一次覆盖 {side} 的全部输入可以：用 --all --target {side} 再计划",
    ),
    "round_again": (
        "round {round} was not effective: {why}",
        "第 {round} 轮没有生效：{why}",
    ),
    "side_told": ("{side} is overridden because that was asked for", "按要求覆盖 {side}"),
    "side_alone_shows": (
        "{side} is overridden: no override of the other side shows this",
        "覆盖 {side}：覆盖另一侧看不到这一点",
    ),
    "side_cheaper_cut": (
        (
            "{side} is overridden: its cut hides {hidden} boundaries and takes {inputs} tensors; "
            "{other}'s hides {other_hidden} and takes {other_inputs}"
        ),
        "覆盖 {side}：它的切口盖住 {hidden} 个边界、用 {inputs} 个张量；{other} 的盖住 {other_hidden} 个、用 {other_inputs} 个",
    ),
    "side_cheaper_forced": (
        (
            "{side} is overridden: {rounds} rounds leave {hidden} open places undecided, {at_risk} if all of them differ; "
            "on {other} {other_rounds} rounds leave {other_hidden}, or {other_at_risk}"
        ),
        (
            "覆盖 {side}：{rounds} 轮之后还有 {hidden} 处判不了，若未定的全都自己不同则 {at_risk} 处；"
            "{other} 要 {other_rounds} 轮，剩 {other_hidden} 或 {other_at_risk} 处"
        ),
    ),
    "adds_finding": ("shows {finding} from equal inputs behind {boundary}", "在 {boundary} 之后由相等的输入看 {finding}"),
    "adds_behind": ("shows what differs by itself behind {boundary}", "看 {boundary} 之后还有什么自己就不同"),
    "adds_later": ("{finding} is still to be confirmed after that", "之后还要确认 {finding}"),
    "adds_all": (
        "shows what each module makes of equal inputs: {n} inputs are overridden at once",
        "一次覆盖 {n} 个输入：看每个模块由相等的输入得出什么",
    ),
    "adds_other_turn": (
        "the other turn overrides what stays as it is now, and shows what lies behind it: {boundaries}",
        "另一轮覆盖这次保持原样的，看它们之后的：{boundaries}",
    ),
    "cut_whole": ("the whole stream as it is", "整条残差流原样给入"),
    "cut_by_zeros": ("the stream as hidden states, −0.0 as residual", "残差流作 hidden states，residual 填 −0.0"),
    "cut_rest": ("what follows", "其后的部分"),
    "cut_first": (
        "a complete cut at {boundary}, so that {after} is seen from equal inputs: {how}",
        "在 {boundary} 完整切断，由相等的输入看 {after}：{how}",
    ),
    "cut_between": (
        "the earliest complete cut behind {before}, at {boundary}, so that {after} is seen without it: {how}",
        "{before} 之后最早的完整切口，在 {boundary}，使 {after} 不受其影响：{how}",
    ),
    "forced_all": (
        "all {n} inputs of {side} that the mapping feeds at once; {left} inputs are fed by nothing, {open} stay as they are in this turn",
        "一次覆盖映射能给出来源的 {side} 全部 {n} 个输入；{left} 个没有来源，{open} 个这一轮保持原样",
    ),
    "reason_with_side": ("{reason}. {side}", "{reason}。{side}"),
    "override_effective": (
        "the override took effect: everything before {boundary} is cut off",
        "覆盖生效：{boundary} 之前的一切都被切断",
    ),
    "override_ineffective": (
        "the override did not take effect: nothing behind {boundary} may be judged",
        "覆盖没有生效：{boundary} 之后的都不能判",
    ),
    "finding_contradicted": (
        "{finding} is contradicted: from equal inputs nothing differs at {at}",
        "{finding} 被否定：由相等的输入，{at} 没有差异",
    ),
    "finding_independent": (
        "{finding} is confirmed: {at} differs by itself, whatever lies before the cut",
        "{finding} 得到确认：{at} 自己就不同，与切口之前无关",
    ),
    "nothing_behind": (
        "what differed at {at} was carried in from before {boundary}",
        "{at} 的差异是从 {boundary} 之前传来的",
    ),
    "another_behind": (
        "another independent difference lies behind {boundary}, at {at} or before it",
        "{boundary} 之后还有另一处独立差异，在 {at} 或它之前",
    ),
    # --- one switch in place of an override ---
    "ablation_expect": (
        (
            "if {boundary} becomes equal or differs otherwise, it is how this is computed; "
            "if nothing changes, it is what goes in or a constant"
        ),
        "若 {boundary} 变得相等或差异改变，就是计算方式；若没有变化，就是输入或常数",
    ),
    "ablate_attention": (
        "the plain attention implementation (eager, no fused kernel) and rotation in float32",
        "换成朴素注意力实现（eager，不用融合算子），旋转用 float32",
    ),
    "ablate_routing": ("the unfused expert implementation, router in float32", "换成非融合的专家实现，router 用 float32"),
    "ablate_norm": ("the unfused norm, its residual added before it", "换成非融合的 norm，先加 residual"),
    "ablate_head": ("the head and log-probabilities in float32", "lm_head 与 log-prob 用 float32"),
    "ablate_float32": ("this module computed in float32", "这个模块用 float32 计算"),
    "round_made": (
        "round {round} ({how}): {inputs} inputs of {calls} calls of {side}",
        "第 {round} 轮（{how}）：{side} 的 {calls} 次调用、{inputs} 个输入",
    ),
    # --- the judgement ---
    "round_is_effective": ("round {round} is effective", "第 {round} 轮生效"),
    "round_is_effective_at": ("round {round} is effective: {boundary} is {status}", "第 {round} 轮生效：{boundary} 为 {status}"),
    "round_own": (
        "differs by itself: {boundary} ({character} by {by}, relative L2 {rel})",
        "自己就不同：{boundary}（{character}，依据 {by}，相对 L2 为 {rel}）",
    ),
    "round_own_more": ("and {n} more, in round_result.json", "另有 {n} 处，见 round_result.json"),
    "round_bears": ("confirmed: {ids}", "确认：{ids}"),
    "why_other_instruction": (
        "the outcome is of another instruction than the one beside it: prepare and verify the round again",
        "结果属于另一份指令：重新准备并验证这一轮",
    ),
    "why_not_verified": (
        "the collection has not verified it: run apply_stub_instruction.py with --verify on the new dump",
        "采集一侧还没有验证：对新 dump 运行 apply_stub_instruction.py --verify",
    ),
    "why_not_overridden": ("{entry} {input} was not overridden: {evidence}", "{entry} {input} 没有被覆盖：{evidence}"),
    "why_applied_again": ("the override was applied again: {told}", "覆盖又被用了一次：{told}"),
    "why_applied_to": (
        "{entry} in step {step} got the same {input} as well: `load` stayed on for another forward",
        "step {step} 的 {entry} 也得到了同一个 {input}：`load` 对另一次前向仍然生效",
    ),
    "why_other_dump": (
        "the new dump is not the one that was verified, or was changed since: verify it again",
        "新 dump 不是验证过的那一份，或之后改动过：重新验证",
    ),
    "why_no_tokens": ("the new dump does not hold {boundary}: nothing tells its tokens", "新 dump 没有 {boundary}：看不出是哪些 token"),
    "why_other_tokens": (
        "{boundary} of the new dump is not that of the first one: another sequence ran",
        "新 dump 的 {boundary} 与第一份不同：跑的是另一个序列",
    ),
    "why_not_recorded": ("the new dump does not hold {entry} {input}", "新 dump 没有 {entry} {input}"),
    "why_unreadable": ("{entry} {input} of the new dump cannot be read: {why}", "读不了新 dump 的 {entry} {input}：{why}"),
    "why_other_form": ("{entry} {input} is {found}, and was to be {wanted}", "{entry} {input} 是 {found}，应为 {wanted}"),
    "why_other_bytes": (
        "{entry} {input} of the new dump is not what the instruction asks for, bit for bit",
        "新 dump 的 {entry} {input} 与指令要求的并非逐位相同",
    ),
    "why_not_isolated": (
        "{boundary} is {status} on equal inputs: the override does not isolate it, and nothing behind it is judged",
        "{boundary} 在相等的输入下是 {status}：覆盖没有隔离它，之后的都不判",
    ),
    "by_replay": ("replay says {verdict} of {module}", "重算对 {module} 的判定是 {verdict}"),
    "by_weights": ("its weights differ in their bytes: {weights}", "它的权重字节不同：{weights}"),
    "by_floor": (
        "within the noise floor of {boundary}: relative L2 {rel}, runs that must agree part by {floor}",
        "在 {boundary} 的噪声底之内：相对 L2 为 {rel}，本应一致的运行相差 {floor}",
    ),
    "above_floor": ("{times} times the noise floor of {boundary}", "是 {boundary} 噪声底的 {times} 倍"),
    "above_silence": ("runs that must agree do not differ at {boundary} at all", "本应一致的运行在 {boundary} 毫无差别"),
    "looks_logic": (
        "by its fingerprint, from equal inputs, no rounding: {signs}",
        "凭指纹（输入相等）不是舍入：{signs}",
    ),
    "looks_no_sum": (
        "by its fingerprint no sum of equal addends: it is {ulps} ULP of its row apart",
        "凭指纹不是相等加数之和：相差该行的 {ulps} ULP",
    ),
    "looks_rounding": (
        "by its fingerprint, from equal inputs, rounding: a step or two of the format, to both sides, in no one place ({signs})",
        "凭指纹（输入相等）是舍入：格式的一两步之内、两个方向都有、不集中在一处（{signs}）",
    ),
    "round_saw_equal": (
        "from equal inputs both sides make the same {boundary}, bit for bit",
        "由相等的输入，两侧得出的 {boundary} 逐位相同",
    ),
    "round_saw_apart": (
        "from equal inputs {boundary} differs, relative L2 {rel}",
        "由相等的输入，{boundary} 不同，相对 L2 为 {rel}",
    ),
    "replay_said_same": ("replay: both sides compute {module} the same way", "重算：两侧以同样方式计算 {module}"),
    # --- the conclusion ---
    "round_confirms": (
        "round {rounds}: from equal inputs {boundary} differs by itself, relative L2 {rel}",
        "第 {rounds} 轮：由相等的输入，{boundary} 自己就不同，相对 L2 为 {rel}",
    ),
    "round_contradicts": (
        "CONTRADICTION: replay says “{finding}”, but in round {rounds} both sides make the same {boundary} from equal inputs, bit for bit",
        "矛盾：重算说“{finding}”，但第 {rounds} 轮里两侧由相等的输入得出逐位相同的 {boundary}",
    ),
    "round_disagrees": ("CONTRADICTION at {boundary}: {replay}; {round}", "{boundary} 处矛盾：{replay}；{round}"),
    "round_same": (
        "round {rounds}: both sides make the same of {module}'s inputs, bit for bit",
        "第 {rounds} 轮：由 {module} 的同样输入，两侧得出逐位相同的结果",
    ),
    "round_cause_logic": (
        "from equal inputs {boundaries} differs by more than rounding ({by}); which side is at fault is not told",
        "由相等的输入，{boundaries} 的差异超出舍入（{by}）；看不出是哪一侧的问题",
    ),
    "round_cause_rounding": (
        "from equal inputs {boundaries} differs by rounding ({by})",
        "由相等的输入，{boundaries} 的差异是舍入（{by}）",
    ),
    "round_cause_unknown": (
        "from equal inputs {boundaries} differs; whether that is rounding is not told",
        "由相等的输入，{boundaries} 不同；看不出是不是舍入",
    ),
    "judged_by_looks": ("by its fingerprint", "凭指纹"),
    "judged_by_floor": ("within the noise floor", "在噪声底之内"),
    "judged_by_weights": ("its weights differ", "它的权重不同"),
}
