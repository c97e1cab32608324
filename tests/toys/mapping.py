"""The mapping of a pair of toys, written by hand: every boundary that both sides record, and every weight.

Rows are in the form that people write (a bare list). Where a side has padding its rows are cut off; logits of the trainer are cut to
the last row; where one side leaves logits in float32 the other's are cast. Not in the list: the rotated q and k, which the engine alone
records, and the weight of the head, which no engine calls as a module; `with_gaps` names them.
"""

from typing import Any

from .log_probs import log_probs_of
from .switches import LAYERS, Pair, Switches
from .weights import KEY, MIDDLE, QUERY

Operand = dict[str, Any]
_SQUEEZE = {"op": "squeeze", "axis": 0}
_TRAIN_WEIGHTS = {
    "input_norm": "input_layernorm.Qwen2RMSNorm", "q": "self_attn.q_proj.Linear", "k": "self_attn.k_proj.Linear",
    "v": "self_attn.v_proj.Linear", "o_proj": "self_attn.o_proj.Linear", "post_norm": "post_attention_layernorm.Qwen2RMSNorm",
    "gate": "mlp.gate_proj.Linear", "up": "mlp.up_proj.Linear", "down": "mlp.down_proj.Linear",
}  # fmt: skip
_QKV, _GATE_UP = "self_attn.qkv_proj.QKVParallelLinear", "mlp.gate_up_proj.MergedColumnParallelLinear"
# Engine entry and, where it is fused, the channels.
_INFER_WEIGHTS: dict[str, tuple[str, int | None, int | None]] = {
    "input_norm": ("input_layernorm.RMSNorm", None, None),
    "q": (_QKV, 0, QUERY), "k": (_QKV, QUERY, QUERY + KEY), "v": (_QKV, QUERY + KEY, QUERY + 2 * KEY),
    "o_proj": ("self_attn.o_proj.RowParallelLinear", None, None),
    "post_norm": ("post_attention_layernorm.RMSNorm", None, None),
    "gate": (_GATE_UP, 0, MIDDLE), "up": (_GATE_UP, MIDDLE, 2 * MIDDLE),
    "down": ("mlp.down_proj.RowParallelLinear", None, None),
}  # fmt: skip
_LAYER = ["input_norm.out", "q.out", "k.out", "v.out", "attn_core.out", "o_proj.out", "resid_attn", "post_norm.out", "gate.out", "up.out"]
_LAYER += ["act_mul.out", "down.out", "resid_mlp"]


def rows(on: Pair) -> list[dict[str, Any]]:
    """The rows of a pair with these switches, boundaries in the order of the model, then weights."""
    made = [
        _row("input_ids", _train("embed_tokens.Embedding", "input.0", on), _infer("embed_tokens.VocabParallelEmbedding", "input.0", on)),
        _row("positions", _train("rotary_emb.Qwen2RotaryEmbedding", "input.1", on), _infer(_rotary(0), "input.0", on, whole=True)),
        _row(
            "embedding.out", _train("embed_tokens.Embedding", "output.0", on), _infer("embed_tokens.VocabParallelEmbedding", "output.0", on)
        ),
    ]
    for layer in range(LAYERS):
        made += [_row(f"layers.{layer}.{name}", _of_trainer(layer, name, on), _of_engine(layer, name, on)) for name in _LAYER]
    made.append(_row("final_norm.out", _train("norm.Qwen2RMSNorm", "output.0", on), _infer("norm.RMSNorm", "output.0", on)))
    made.append(_logits(on))
    made += [_log_probs(on)] if all(log_probs_of(side) is not None for side in on) else []
    return made + _weight_rows()


def with_gaps(on: Pair) -> dict[str, Any]:
    """The same mapping in the full form, with the places that only one side records as evidence that is missing."""
    listed = rows(on)
    reason = {"kind": "by_hand", "values": {}, "text": "one side does not record it"}
    rotated = {f"layers.{layer}.{x}_rope.out": [f"{_rotary(layer)}.output.{at}"] for layer in range(LAYERS) for at, x in enumerate("qk")}
    boundaries = [row for row in listed if not _is_weight(row["boundary"])]
    order = []
    for row in boundaries:
        order.append(row["boundary"])
        if row["boundary"].endswith(".v.out"):
            order += [row["boundary"].replace("v.out", f"{x}_rope.out") for x in "qk"]
    missing = [
        {"boundary": name, "order": order.index(name), "reason": reason, "train": [], "infer": infer} for name, infer in rotated.items()
    ]
    head = {"boundary": "lm_head.weight", "order": len(order), "reason": reason, "infer": []}
    missing.append({**head, "train": ["Module.lm_head.Linear.forward.0.parameters.weight"]})
    return {
        "schema": "semantic_mapping/1",
        "boundaries": [{**row, "order": order.index(row["boundary"])} for row in boundaries],
        "weights": [{**row, "order": at} for at, row in enumerate(row for row in listed if _is_weight(row["boundary"]))],
        "evidence_missing": missing,
    }


def _is_weight(boundary: str) -> bool:
    return boundary.endswith((".weight", ".bias"))


def _row(boundary: str, train: Operand, infer: Operand) -> dict[str, Any]:
    return {"boundary": boundary, "train": train, "infer": infer}


def _operand(name: str, *steps: dict[str, Any]) -> Operand:
    return {"sources": [{"name": name, "steps": list(steps)}]}


def _cut_padding(on: Switches) -> list[dict[str, Any]]:
    return [{"op": "slice", "axis": 0, "start": on.padding}] if on.padding else []


def _train(entry: str, tensor: str, on: Pair) -> Operand:
    return _operand(f"Module.model.{entry}.forward.0.{tensor}", _SQUEEZE, *_cut_padding(on.train))


def _infer(entry: str, tensor: str, on: Pair, *steps: dict[str, Any], whole: bool = False) -> Operand:
    """``whole``: ``entry`` is the full name of an entry."""
    name = f"{entry}.{tensor}" if whole else f"Module.model.{entry}.forward.0.{tensor}"
    return _operand(name, *_cut_padding(on.infer), *steps)


def _rotary(layer: int) -> str:
    """The rotation is one module, known by its first place; its call number is the layer."""
    return f"Module.model.layers.0.self_attn.rotary_emb.RotaryEmbedding.forward.{layer}"


def _of_trainer(layer: int, name: str, on: Pair) -> Operand:
    stem, module = f"layers.{layer}", name.removesuffix(".out")
    if name == "resid_mlp":
        return _train(f"{stem}.Qwen2DecoderLayer", "output.0", on)
    if name == "resid_attn":
        fused = on.train.has("fused_add_unrounded", layer)
        return _train(f"{stem}.{_TRAIN_WEIGHTS['post_norm']}", "output.1" if fused else "input.0", on)
    if name in ("attn_core.out", "act_mul.out"):
        return _train(f"{stem}.{_TRAIN_WEIGHTS['o_proj' if module == 'attn_core' else 'down']}", "input.0", on)
    return _train(f"{stem}.{_TRAIN_WEIGHTS[module]}", "output.0", on)


def _of_engine(layer: int, name: str, on: Pair) -> Operand:
    stem, module = f"layers.{layer}", name.removesuffix(".out")
    if name == "resid_mlp":
        halves = [_infer(f"{stem}.Qwen2DecoderLayer", f"output.{at}", on)["sources"][0] for at in (0, 1)]
        return {"sources": halves, "combine": "sum"}
    if name == "resid_attn":
        return _infer(f"{stem}.{_INFER_WEIGHTS['post_norm'][0]}", "output.1", on)
    if name == "attn_core.out":
        return _infer(f"{stem}.self_attn.attn.Attention", "output.0", on)
    if name == "act_mul.out":
        activation = "GeluAndMul" if on.infer.has("gelu", layer) else "SiluAndMul"
        return _infer(f"{stem}.mlp.act_fn.{activation}", "output.0", on)
    entry, start, stop = _INFER_WEIGHTS[module]
    channels = [] if start is None else [{"op": "slice", "axis": 1, "start": start, "stop": stop}]
    return _infer(f"{stem}.{entry}", "output.0", on, *channels)


def _logits(on: Pair) -> dict[str, Any]:
    wide = [side.has("head_fp32") for side in on]
    casts = [[{"op": "cast", "dtype": "float32"}] if any(wide) and not own else [] for own in wide]
    train = _operand("Module.lm_head.Linear.forward.0.output.0", _SQUEEZE, {"op": "slice", "axis": 0, "start": -1}, *casts[0])
    return _row("logits", train, _operand("Module.logits_processor.LogitsProcessor.forward.0.output.0", *casts[1]))


def _log_probs(on: Pair) -> dict[str, Any]:
    name = "Module.log_probs.LogProbs.forward.0.output.0"
    return _row("logprobs", _operand(name, _SQUEEZE, *_cut_padding(on.train)), _operand(name, *_cut_padding(on.infer)))


def _weight_rows() -> list[dict[str, Any]]:
    made = [_weight("embedding.weight", "embed_tokens.Embedding", "embed_tokens.VocabParallelEmbedding", "weight")]
    for layer in range(LAYERS):
        for name, train in _TRAIN_WEIGHTS.items():
            infer, start, stop = _INFER_WEIGHTS[name]
            steps = [] if start is None else [{"op": "slice", "axis": 0, "start": start, "stop": stop}]
            for kind in ("weight", "bias") if name in ("q", "k", "v") else ("weight",):
                stem = f"layers.{layer}"
                made.append(_weight(f"{stem}.{name}.{kind}", f"{stem}.{train}", f"{stem}.{infer}", kind, *steps))
    return [*made, _weight("final_norm.weight", "norm.Qwen2RMSNorm", "norm.RMSNorm", "weight")]


def _weight(boundary: str, train: str, infer: str, kind: str, *steps: dict[str, Any]) -> dict[str, Any]:
    names = [f"Module.model.{entry}.forward.0.parameters.{kind}" for entry in (train, infer)]
    return _row(boundary, _operand(names[0]), _operand(names[1], *steps))
