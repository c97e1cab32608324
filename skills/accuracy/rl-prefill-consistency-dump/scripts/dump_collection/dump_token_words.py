"""What the checks of tokens and modules say of a dump pair: kind -> (English, Chinese)."""

from typing import Dict, Tuple

DUMP_TOKEN_WORDS: Dict[str, Tuple[str, str]] = {
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
    "length_cached": (
        "one side has a part of the prompt from a cache; its rows cannot be counted",
        "一侧的 prompt 有一段来自缓存，行数无从核对",
    ),
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
        (
            "{side}: goes on for {n} of {of} tokens after the other side ends: the response was left in (PROMPTS_ONLY), the other "
            "side's cut is too short, or its later chunk is not there"
        ),
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
        (
            "{side}: no output as wide as the vocabulary ({vocabulary}): stop() before the logits, the head outside the model "
            "handed to start(), or the last pipeline stage not handed"
        ),
        "{side}：没有宽度为词表（{vocabulary}）的输出：stop() 早于 logits，head 不在 start() 的模型里，或没有给最后一个流水段",
    ),
    "head_taken_by_verl": (
        (
            "{side}: neither the inner model nor a head was recorded, the mark of a process that imported verl: msprobe 8.3.1 and later "
            "skip the second and the last module there. Hand start() a holder whose first child is the model and whose last is an "
            "nn.Identity. (vLLM never records its inner model: there stop() may also have come before the logits)"
        ),
        (
            "{side}：内层 model 与 head 都没有记录，这是进程里 import 了 verl 的特征：msprobe 8.3.1 起会跳过第二个和最后一个模块。"
            "请给 start() 一个外壳：首子模块是模型，末子模块是 nn.Identity。（vLLM 从不记录内层 model，那里也可能是 stop() 早于 logits）"
        ),
    ),
    "flat_parameters": (
        "{side}: {n} flat parameters (FSDP1): the weights of single modules are not in the dump. use_orig_params=True records them",
        "{side}：{n} 个扁平参数（FSDP1）：dump 里没有各模块自己的权重。use_orig_params=True 可记录",
    ),
    "own_parameters": ("{side}: modules record their own parameters", "{side}：各模块记录自己的参数"),
    "cut_before_head": ("{side}: the forward did not come to its head", "{side}：前向没有运行到 head"),
    "no_vocabulary": ("{side}: nothing tells logits from activations by their width", "{side}：凭宽度分不出 logits 与激活"),
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
    "card_eager": (
        "{side}: the baseline command asks for eager mode, and nothing in the dump speaks against it",
        "{side}：基线命令要求 eager，dump 里没有反证",
    ),
    "card_graph": ("{side}: the baseline command asks for graphs or a compiled model", "{side}：基线命令启用了图模式或编译"),
}
