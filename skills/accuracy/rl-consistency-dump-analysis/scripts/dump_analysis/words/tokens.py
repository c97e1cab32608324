"""Sentences on which forwards, sequences and tokens of the two sides are the same. Part of `wording.TABLE`: kind -> (English, Chinese)."""

TOKENS: dict[str, tuple[str, str]] = {
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
    "few_tokens": (
        "only {n} tokens are joined: signatures of so few say little, weights and data flow join the rows",
        "只有 {n} 个 token 相对应：这么少的签名说明不了多少，各行靠权重与数据流对应",
    ),
    "ids_differ": (
        "the token ids differ in {n} of {of} joined tokens",
        "在 {of} 个已对应的 token 中有 {n} 个 token id 不同",
    ),
}
