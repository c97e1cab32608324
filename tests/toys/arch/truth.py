"""The rows that join both sides of an architecture, written from the modules' names: every boundary and weight that both record."""

from typing import Any, NamedTuple

from .shapes import HEADS, LAYERS, LOW_KEY, LOW_QUERY, MIDDLE, SHARED, WIDTH, WORDS, Architecture

Operand = dict[str, Any]
Step = dict[str, Any]
_SQUEEZE: Step = {"op": "squeeze", "axis": 0}
_LATENT = {"q_a": (0, LOW_QUERY), "kv_a": (LOW_QUERY, LOW_QUERY + LOW_KEY + SHARED)}


class Truth(NamedTuple):
    """``boundary``: the name that the row must bear."""

    boundary: str
    train: Operand
    infer: Operand


class _Held(NamedTuple):
    """Where a projection lies: module, and its rows there by number; None: all of them."""

    module: str
    rows: list[int] | None = None


def rows(architecture: Architecture) -> list[Truth]:
    """Boundaries in the order of the model, then weights."""
    learned = architecture.rotated == 0
    multiplied = learned or architecture.embedding_multiplier != 1.0
    positions = ("positions.Embedding", "input.0") if learned else ("positions.Rotary", "input.1")
    rotary = "positions.Embedding" if learned else "layers.0.attention.rotary.Rotary"
    made = [
        Truth("input_ids", _train("embedding.Embedding", "input.0"), _infer("embedding.Embedding", "input.0")),
        Truth("positions", _train(*positions), _infer(rotary, "input.0")),
    ]
    stream = ("layers.0.Layer", "input.0") if multiplied else ("embedding.Embedding", "output.0")
    engine_stream = ("layers.0.Layer", "input.1") if multiplied else ("embedding.Embedding", "output.0")
    made.append(Truth("embedding.out", _train(*stream), _infer(*engine_stream)))
    for layer in range(LAYERS):
        made += _layer(architecture, layer)
    made.append(Truth("final_norm.out", _train("final_norm.Norm", "output.0"), _infer("final_norm.Norm", "output.0")))
    last = {"op": "slice", "axis": 0, "start": -1}
    made.append(Truth("logits", _train("lm_head.Linear", "output.0", last), _infer("logits.Logits", "output.0")))
    return [*made, *_weights(architecture)]


def _layer(architecture: Architecture, layer: int) -> list[Truth]:
    stem = f"layers.{layer}"
    made = []
    for name in _places(architecture):
        train, infer = _held(architecture, name)
        both = [side(f"{stem}.{held.module}", "output.0", *_columns(held, 1)) for side, held in ((_train, train), (_infer, infer))]
        made.append(Truth(f"{stem}.{name}.out", *both))
    if architecture.latent:
        shared = {"op": "slice", "axis": 1, "start": LOW_KEY}
        made.append(
            Truth(
                f"{stem}.k_pe.out",
                _train(f"{stem}.attention.kv_a.Linear", "output.0", shared),
                _infer(f"{stem}.attention.rotary.Rotary", "input.2"),
            )
        )
    core = _infer(f"{stem}.attention.core.Core", "output.0"), _infer(f"{stem}.mlp.act.Act", "output.0")
    made.append(Truth(f"{stem}.attn_core.out", _train(f"{stem}.attention.o_proj.Linear", "input.0"), core[0]))
    made.append(Truth(f"{stem}.act_mul.out", _train(f"{stem}.mlp.down.Linear", "input.0"), core[1]))
    return made + _stream(architecture, stem)


def _stream(architecture: Architecture, stem: str) -> list[Truth]:
    made = []
    if not architecture.parallel:
        reader = "mlp.MLP" if architecture.norms == "end" else "post_norm.Norm"
        infer = _infer(f"{stem}.{reader}", "output.1" if architecture.adds_in_norm else "input.0")
        made.append(Truth(f"{stem}.resid_attn", _train(f"{stem}.{reader}", "input.0"), infer))
    parts = [_infer(f"{stem}.Layer", f"output.{at}")["sources"][0] for at in range(1 + architecture.adds_in_norm)]
    infer = {"sources": parts, "combine": "sum" if len(parts) > 1 else None}
    made.append(Truth(f"{stem}.resid_mlp", _train(f"{stem}.Layer", "output.0"), infer))
    return made


def _places(architecture: Architecture) -> list[str]:
    """Names, without ``.out``, of what modules with weights make in a layer."""
    made = [] if architecture.norms == "end" else ["input_norm"]
    made += ["post_norm"] if made and architecture.parallel != "one_norm" else []
    made += ["attn_post_norm", "mlp_post_norm"] if architecture.norms != "start" else []
    made += ["q_a", "q_a_norm", "q_b", "kv_a", "kv_a_norm", "kv_b"] if architecture.latent else ["q", "k", "v"]
    made += ["q_norm", "k_norm"] if architecture.qk_norm else []
    return [*made, "o_proj", *(["gate"] if architecture.gated else []), "up", "down"]


def _held(architecture: Architecture, name: str) -> tuple[_Held, _Held]:
    """Where both sides hold what makes a place."""
    if name in ("input_norm", "post_norm", "attn_post_norm", "mlp_post_norm"):
        return (_Held(f"{name}.Norm"),) * 2
    if name.endswith("_norm"):
        return (_Held(f"attention.{name}.Norm"),) * 2
    if name in ("q", "k", "v"):
        blocks = _blocks(architecture)[name]
        infer = _Held("attention.qkv.Linear", blocks)
        if not architecture.fused:
            return _Held(f"attention.{name}.Linear"), infer
        return _Held("attention.qkv.Linear", blocks if architecture.fused == "blocks" else _in_groups(architecture, name)), infer
    if name in _LATENT:
        return _Held(f"attention.{name}.Linear"), _Held("attention.qkv_a.Linear", list(range(*_LATENT[name])))
    if name in ("gate", "up") and architecture.gated:
        half = _Held("mlp.gate_up.Linear", list(range(MIDDLE)) if name == "gate" else list(range(MIDDLE, 2 * MIDDLE)))
        return half if architecture.gate_fused else _Held(f"mlp.{name}.Linear"), half._replace(module="mlp.up.Linear")
    module = f"{'mlp' if name in ('up', 'down') else 'attention'}.{name}.Linear"
    return _Held(module), _Held(module)


def _blocks(architecture: Architecture) -> dict[str, list[int]]:
    query, key = HEADS * WIDTH, architecture.groups * WIDTH
    starts = {"q": (0, query), "k": (query, query + key), "v": (query + key, query + 2 * key)}
    return {name: list(range(*both)) for name, both in starts.items()}


def _in_groups(architecture: Architecture, name: str) -> list[int]:
    """Rows of a projection in a matrix of groups, each its heads of q, one of k, one of v."""
    heads = HEADS // architecture.groups
    first, count = {"q": (0, heads), "k": (heads, 1), "v": (heads + 1, 1)}[name]
    size = (heads + 2) * WIDTH
    return [group * size + first * WIDTH + at for group in range(architecture.groups) for at in range(count * WIDTH)]


def _weights(architecture: Architecture) -> list[Truth]:
    words = [{"op": "slice", "axis": 0, "start": 0, "stop": WORDS}] if architecture.padded else []
    table = _infer("embedding.Embedding", "parameters.weight", *words)
    made = [Truth("embedding.weight", _train("embedding.Embedding", "parameters.weight"), table)]
    for layer in range(LAYERS):
        for name in _places(architecture):
            norm = name.endswith("norm")
            kinds = ["weight", "bias"] if (architecture.layer_norm if norm else architecture.bias) else ["weight"]
            made += [_weight(architecture, f"layers.{layer}", name, kind, norm=norm) for kind in kinds]
    for kind in ("weight", "bias") if architecture.layer_norm else ("weight",):
        made.append(Truth(f"final_norm.{kind}", *(side("final_norm.Norm", f"parameters.{kind}") for side in (_train, _infer))))
    if architecture.tied:
        made.append(Truth("lm_head.weight", _train("lm_head.Linear", "parameters.weight"), table))
    return made


def _weight(architecture: Architecture, stem: str, name: str, kind: str, *, norm: bool) -> Truth:
    train, infer = _held(architecture, name)
    turned = [{"op": "permute", "axes": [1, 0]}] if architecture.turned and kind == "weight" and not norm else []
    both = (
        _train(f"{stem}.{train.module}", f"parameters.{kind}", *turned, *_columns(train, 0)),
        _infer(f"{stem}.{infer.module}", f"parameters.{kind}", *_columns(infer, 0)),
    )
    return Truth(f"{stem}.{name}.{kind}", *both)


def _columns(held: _Held, axis: int) -> list[Step]:
    return [] if held.rows is None else [{"op": "take", "axis": axis, "index": held.rows}]


def _operand(entry: str, tensor: str, *steps: Step) -> Operand:
    return {"sources": [{"name": f"Module.{entry}.forward.0.{tensor}", "steps": list(steps)}], "combine": None}


def _train(entry: str, tensor: str, *steps: Step) -> Operand:
    return _operand(entry, tensor, *([] if tensor.startswith("parameters") else [_SQUEEZE]), *steps)


def _infer(entry: str, tensor: str, *steps: Step) -> Operand:
    return _operand(entry, tensor, *steps)
