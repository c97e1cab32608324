"""What the two sides of a generated pair record: modules, tensors, and the mapping rows that join them.

Trainer-shaped: ``[1, T, H]``, q, k, v, gate and up apart, one hidden state a layer. Engine-shaped: ``[T, H]``, qkv and
gate_up fused, hidden states handed on as a pair (x, residual) whose sum, rounded to bfloat16, is the hidden state.
A *value* is what the model computes; several recorded tensors may hold the same value, as in real dumps.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple


class Size(NamedTuple):
    """A decoder model and one prompt, all in elements."""

    layers: int
    tokens: int
    hidden: int
    wide: int
    vocab: int


class Recorded(NamedTuple):
    """One recorded tensor: the values that it holds side by side, and of a pair which ``part`` (``x``, ``residual``, else empty)."""

    entry: str
    slot: str
    key: str
    values: tuple[str, ...]
    part: str = ""

    @property
    def name(self) -> str:
        return f"{self.entry}.{self.slot}.{self.key}"


class Module(NamedTuple):
    """One call of a module. A value is named; ``a+b`` are values side by side; ``x:a`` and ``residual:a`` a pair."""

    path: str
    kind: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    weight: str = ""

    @property
    def entry(self) -> str:
        return f"Module.{self.path}.{self.kind}.forward.0"


IDS = "input_ids"  # the one value that is no bfloat16
_FUSED = {"q_proj": "qkv_proj", "k_proj": "qkv_proj", "v_proj": "qkv_proj", "gate_proj": "gate_up_proj", "up_proj": "gate_up_proj"}
_ORDER = {"qkv_proj": ("q_proj", "k_proj", "v_proj"), "gate_up_proj": ("gate_proj", "up_proj")}


# --- values ---


def values(size: Size) -> dict[str, tuple[int, ...]]:
    """Every value of the model in the order of the computation, with its shape without the batch axis."""
    hidden, wide = (size.tokens, size.hidden), (size.tokens, size.wide)
    square, tall, flat = (size.hidden, size.hidden), (size.wide, size.hidden), (size.hidden, size.wide)
    found: dict[str, tuple[int, ...]] = {IDS: (size.tokens,), "embedding.weight": (size.vocab, size.hidden), "embedding.out": hidden}
    layer: dict[str, tuple[int, ...]] = {
        "input_norm.weight": (size.hidden,), "input_norm.out": hidden,
        "q.weight": square, "q.out": hidden, "k.weight": square, "k.out": hidden, "v.weight": square, "v.out": hidden,
        "attn_core.out": hidden, "o_proj.weight": square, "o_proj.out": hidden, "resid_attn": hidden,
        "post_norm.weight": (size.hidden,), "post_norm.out": hidden,
        "gate.weight": tall, "gate.out": wide, "up.weight": tall, "up.out": wide,
        "act_mul.out": wide, "down.weight": flat, "down.out": hidden, "resid_mlp": hidden,
    }  # fmt: skip
    for at in range(size.layers):
        found.update({f"layers.{at}.{name}": shape for name, shape in layer.items()})
    found.update({"final_norm.weight": (size.hidden,), "final_norm.out": hidden})
    found.update({"lm_head.weight": (size.vocab, size.hidden), "logits": (size.tokens, size.vocab)})
    return found


def is_pair(value: str) -> bool:
    """Whether the engine hands this value on as a pair."""
    return value.endswith(".resid_mlp")


def carried(at: int) -> str:
    """The hidden state that layer ``at`` receives."""
    return f"layers.{at - 1}.resid_mlp" if at else "embedding.out"


# --- modules ---


def trainer(size: Size) -> list[Module]:
    """The modules of a trainer-shaped side, in the order in which they end."""
    found = [Module("model.embed_tokens", "Embedding", (IDS,), ("embedding.out",), "embedding.weight")]
    for at in range(size.layers):
        path, name = f"model.layers.{at}", f"layers.{at}."
        normed, post = name + "input_norm.out", name + "post_norm.out"
        found.append(Module(f"{path}.input_layernorm", "RMSNorm", (carried(at),), (normed,), name + "input_norm.weight"))
        found += _linears(f"{path}.self_attn", normed, name, ("q", "k", "v"))
        found += _attention_end(path, name, "Linear")
        found.append(Module(f"{path}.post_attention_layernorm", "RMSNorm", (name + "resid_attn",), (post,), name + "post_norm.weight"))
        found += _linears(f"{path}.mlp", post, name, ("gate", "up"))
        found += _mlp_end(path, name, "Linear")
        found.append(Module(path, "DecoderLayer", (carried(at),), (name + "resid_mlp",)))
    found.append(Module("model.norm", "RMSNorm", (carried(size.layers),), ("final_norm.out",), "final_norm.weight"))
    return [*found, _head()]


def engine(size: Size, *, norm_inputs: bool = False) -> list[Module]:
    """The modules of an engine-shaped side, in the order in which they end. ``norm_inputs``: norms that add record what they are handed."""
    found = [Module("model.embed_tokens", "Embedding", (IDS,), ("embedding.out",), "embedding.weight")]
    for at in range(size.layers):
        path, name = f"model.layers.{at}", f"layers.{at}."
        normed, post = name + "input_norm.out", name + "post_norm.out"
        handed = (_pair(carried(at)), (name + "o_proj.out", carried(at))) if norm_inputs else ((), ())
        found.append(Module(f"{path}.input_layernorm", "RMSNorm", handed[0], (normed, carried(at)), name + "input_norm.weight"))
        found.append(_fused(f"{path}.self_attn.qkv_proj", normed, name, ("q", "k", "v")))
        found += _attention_end(path, name, "RowParallelLinear")
        outputs = (post, name + "resid_attn")
        found.append(Module(f"{path}.post_attention_layernorm", "RMSNorm", handed[1], outputs, name + "post_norm.weight"))
        found.append(_fused(f"{path}.mlp.gate_up_proj", post, name, ("gate", "up")))
        found += _mlp_end(path, name, "RowParallelLinear")
        found.append(Module(path, "DecoderLayer", _pair(carried(at)), _pair(name + "resid_mlp")))
    handed_last = _pair(carried(size.layers)) if norm_inputs else ()
    found.append(Module("model.norm", "RMSNorm", handed_last, ("final_norm.out", carried(size.layers)), "final_norm.weight"))
    return [*found, _head()]


def _linears(path: str, taken: str, name: str, parts: tuple[str, ...]) -> list[Module]:
    return [Module(f"{path}.{part}_proj", "Linear", (taken,), (f"{name}{part}.out",), f"{name}{part}.weight") for part in parts]


def _attention_end(path: str, name: str, linear: str) -> list[Module]:
    out = (name + "o_proj.out",)
    return [
        Module(f"{path}.self_attn.o_proj", linear, (name + "attn_core.out",), out, name + "o_proj.weight"),
        Module(f"{path}.self_attn", "Attention", (name + "input_norm.out",), out),
    ]


def _mlp_end(path: str, name: str, linear: str) -> list[Module]:
    out = (name + "down.out",)
    return [
        Module(f"{path}.mlp.down_proj", linear, (name + "act_mul.out",), out, name + "down.weight"),
        Module(f"{path}.mlp", "MLP", (name + "post_norm.out",), out),
    ]


def _fused(path: str, taken: str, name: str, parts: tuple[str, ...]) -> Module:
    out, weight = ("+".join(f"{name}{part}.{what}" for part in parts) for what in ("out", "weight"))
    return Module(path, "ColumnParallelLinear", (taken,), (out,), weight)


def _pair(value: str) -> tuple[str, ...]:
    return (f"x:{value}", f"residual:{value}") if is_pair(value) else (value,)


def _head() -> Module:
    return Module("lm_head", "Linear", ("final_norm.out",), ("logits",), "lm_head.weight")


def recorded(module: Module) -> Iterator[Recorded]:
    """The tensors of one module call, in msprobe's order."""
    for slot, found in (("input", module.inputs), ("output", module.outputs)):
        for at, value in enumerate(found):
            part, _, whole = value.rpartition(":")
            yield Recorded(module.entry, slot, str(at), tuple(whole.split("+")), part)
    if module.weight:
        yield Recorded(module.entry, "parameters", "weight", tuple(module.weight.split("+")))


# --- the mapping ---


class Row(NamedTuple):
    """A mapping row as people write it, and the value that both of its sides stand for."""

    boundary: str
    train: str
    infer: str | dict[str, Any]
    value: str


def rows(size: Size, *, same_layout: bool) -> list[Row]:
    """One row for each tensor of the train side, ordered by the computation. Every tensor of both sides stands in a row."""
    order = {value: at for at, value in enumerate(values(size))}
    by_path = {module.path: module for module in engine(size)}
    found = []
    for module in trainer(size):
        for tensor in recorded(module):
            infer = tensor.name if same_layout else _twin(size, module, tensor, by_path)
            found.append(Row(_boundary(module.path, tensor.slot), tensor.name, infer, tensor.values[0]))
    return sorted(found, key=lambda row: order[row.value])


def _boundary(path: str, slot: str) -> str:
    words = {"input": "in", "output": "out", "parameters": "weight"}
    return f"{path.removeprefix('model.')}.{words[slot]}" if slot != "input" or path != "model.embed_tokens" else IDS


def _twin(size: Size, module: Module, tensor: Recorded, by_path: dict[str, Module]) -> str | dict[str, Any]:
    """The engine's tensor, the cut of it, or the sum of a pair, that holds the same value."""
    path, _, last = module.path.rpartition(".")
    fused = _FUSED.get(last)
    other = by_path[f"{path}.{fused}" if fused else module.path]
    if fused and tensor.slot != "input":
        axis = 1 if tensor.slot == "output" else 0
        width = values(size)[tensor.values[0]][axis]
        start = _ORDER[fused].index(last) * width
        cut = {"op": "slice", "axis": axis, "start": start, "stop": start + width}
        return {"sources": [{"name": f"{other.entry}.{tensor.slot}.{tensor.key}", "steps": [cut]}]}
    if tensor.slot == "input" and not other.inputs:  # a fused norm: the hidden state is its second output
        return f"{other.entry}.output.1"
    parts = [item.name for item in recorded(other) if item.slot == tensor.slot]
    return parts[0] if len(parts) == 1 or module.kind == "RMSNorm" else {"sources": [{"name": part} for part in parts], "combine": "sum"}
