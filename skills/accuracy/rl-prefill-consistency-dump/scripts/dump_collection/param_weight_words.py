"""The sentences about structure and weights: shapes that do not fit, and in which way two weights differ."""

from typing import Dict, Tuple

PARAM_WEIGHT_WORDS: Dict[str, Tuple[str, str]] = {
    # --- structure ---
    "shape_turned": ("stored turned, [in, out] against [out, in]", "一侧按 [in, out] 存放，另一侧按 [out, in]"),
    "shape_padded": ("equal but for {rows} rows on {side} that pad the vocabulary", "除 {side} 侧用于填充词表的 {rows} 行外相同"),
    "shape_unlike": ("the shapes do not fit under any layout that is known", "在任何已知布局下形状都对不上"),
    "head_of_embedding": ("{side} has no head of its own: it uses its embedding", "{side} 没有自己的 lm_head，用的是 embedding"),
    "head_not_recorded": (
        "the dump of {side} records no head: it may be its embedding, whose shape fits (an engine's head is never called, so never dumped)",
        "{side} 的 dump 没有记录 lm_head：可能就是 embedding，形状相符（推理引擎的 lm_head 不被调用，因此不会被 dump）",
    ),
    "made_anew": (
        "a buffer that a side makes itself or keeps for itself; {other} has none, which is no difference of the weights",
        "由一侧自行生成或保留的 buffer；{other} 没有，不算权重差异",
    ),
    "predicts_further": (
        "belongs to layers that predict further tokens, which a prefill of the model itself does not run",
        "属于多 token 预测（MTP）层，主模型的 prefill 不经过它",
    ),
    "in_layers": ("in layers {layers}", "第 {layers} 层"),
    "outside_layers": ("outside the layers", "层之外"),
    "only_on": ("only {side} has it, {where}", "只有 {side} 有，{where}"),
    "not_recorded": (
        "{side} has it, {where}; the dump of {other} records none: a module that is not called (vLLM's lm_head) is never dumped. "
        "Hand {other}'s checkpoint or its named_parameters() as a list",
        "{side} 有，{where}；{other} 的 dump 没有记录：不被调用的模块（如 vLLM 的 lm_head）从不被 dump。"
        "请给出 {other} 的检查点，或 named_parameters() 的列表",
    ),
    "flat_elements": ("as many elements, and {left} that pad", "元素个数相同，另有 {left} 个填充"),
    "flat_head": (
        "as many elements, and as many more as the embedding has: a head that the dump of {other} does not record",
        "元素个数相同，另多出与 embedding 一样多的元素：{other} 的 dump 未记录的 lm_head",
    ),
    "flat_unlike": ("{given} elements against {count}", "元素个数 {given} 对 {count}"),
    "cause_shape": ("shapes do not fit", "形状对不上"),
    "cause_one_side": ("only one side has these parameters", "只有一侧有这些参数"),
    "impact_structure": ("the two sides do not compute the same function", "两侧计算的不是同一个函数"),
}  # fmt: skip
