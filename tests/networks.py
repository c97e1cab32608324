"""Small transformers in numpy, recorded as a trainer and as an engine would be: what each recorded tensor is, is known by construction.

Modules bear numbers, so that no name can help. ``roles`` of a recording: what a module is -> its entry.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from dumping import Tensor, entry_of, of, write_unit
from routed_experts import infer_experts, silu, train_experts

Array = np.ndarray[Any, Any]
LAYERS, TOKENS, HIDDEN, WORDS, MIDDLE, HEADS, HEAD = 3, 12, 32, 64, 48, 4, 8
KEYS = 2 * HEAD  # columns of k and of v
LATENT, ROTATED, EXPERTS, SHARED = 16, 8, 4, 40


class Network(NamedTuple):
    """What is unlike the plain network."""

    latent: bool = False
    sandwich: bool = False
    routed: bool = False
    turned: bool = False  # the trainer keeps q, k, v in one matrix, the other way round
    padded: int = 0  # rows of zeros behind the engine's embedding
    tied: bool = False
    stale: str = ""  # a weight that the engine holds otherwise in layer 1
    shared: str = ""  # beside routed experts one for every token: "plain", or "gated" by a head of its own
    choices: tuple[str, str] = ("", "")  # what the routers of trainer and engine return: "", "ids", "other order", "map"
    apart: bool = False  # the engine runs its experts one by one too, each over its tokens in the order of the choice
    weighted: bool = False  # the trainer's experts work their tokens' shares in before their last linear
    fault: str = ""  # of the engine's router in layer 1: "not normalised", "ids exchanged", "other expert"


class Recording:
    """Entries in the order of their ends, parents in the order of starts."""

    def __init__(self, lead: tuple[int, ...]) -> None:
        self.entries: dict[str, dict[str, Any]] = {}
        self.trace: dict[str, str | None] = {}
        self.roles: dict[str, str] = {}
        self._lead, self._open = lead, [None]

    def call(self, role: str, inputs: Sequence[Array], body: Callable[[], Any], **weights: Array) -> Any:
        """Run a module; what it takes, returns and holds is recorded."""
        entry = self.roles[role] = entry_of(f"m{len(self.trace)}")
        self.trace[entry] = self._open[-1]
        self._open.append(entry)
        made = body()
        self._open.pop()
        outputs = made if isinstance(made, tuple) else (made,)
        slots = {"input": [self._tensor(x) for x in inputs], "output": [self._tensor(x) for x in outputs]}
        self.entries[entry] = {**slots, "parameters": {name: of(value) for name, value in weights.items()}}
        return made

    def _tensor(self, value: Array) -> Tensor:
        lead = self._lead if value.shape[0] == TOKENS else ()
        return of(value.reshape(lead + value.shape), {"i": "int64", "b": "bool"}.get(value.dtype.kind, "float32"))

    def linear(self, weights: dict[str, Array], role: str, x: Array) -> Array:
        """Run a linear whose matrix, and bias if it has one, are called after it."""
        held = {"weight": weights[role]} | ({"bias": weights[f"{role}.bias"]} if f"{role}.bias" in weights else {})
        made: Array = self.call(role, [x], lambda: (x @ held["weight"].T + held.get("bias", 0)).astype(np.float32), **held)
        return made

    def write(self, root: Path, *, traced: bool = True) -> str:
        return str(write_unit(root, self.entries, trace=self.trace if traced else None))

    def output(self, role: str, at: int = 0) -> str:
        return f"{self.roles[role]}.output.{at}"


def weights_of(network: Network) -> dict[str, Array]:
    """Random weights, the same for both sides; keys are the boundaries' stems."""
    rng = np.random.default_rng(5)

    def draw(*shape: int) -> Array:
        return (rng.standard_normal(shape) / np.sqrt(shape[-1])).astype(np.float32)

    found = {"embedding": draw(WORDS, HIDDEN) * 6, "final_norm": 1 + draw(HIDDEN)}
    found["lm_head"] = found["embedding"] if network.tied else draw(WORDS, HIDDEN)
    for layer in range(LAYERS):
        made = {"input_norm": 1 + draw(HIDDEN), "post_norm": 1 + draw(HIDDEN), "o_proj": draw(HIDDEN, HEADS * HEAD)}
        made |= {"attn_post_norm": 1 + draw(HIDDEN), "mlp_post_norm": 1 + draw(HIDDEN)} if network.sandwich else {}
        if network.latent:
            made |= {"q_a": draw(LATENT, HIDDEN), "q_a_norm": 1 + draw(LATENT), "q_b": draw(HEADS * (HEAD + ROTATED), LATENT)}
            made |= {"kv_a": draw(LATENT + ROTATED, HIDDEN), "kv_a_norm": 1 + draw(LATENT), "kv_b": draw(2 * HEADS * HEAD, LATENT)}
        else:
            made |= {"q": draw(HEADS * HEAD, HIDDEN), "k": draw(KEYS, HIDDEN), "v": draw(KEYS, HIDDEN)}
            made |= {"q.bias": draw(HEADS * HEAD), "k.bias": draw(KEYS), "v.bias": draw(KEYS)}
        if network.routed:
            made |= {"router": draw(EXPERTS, HIDDEN)}
            made |= {f"experts.{at}.gate_up": draw(2 * MIDDLE, HIDDEN) for at in range(EXPERTS)}
            made |= {f"experts.{at}.down": draw(HIDDEN, MIDDLE) for at in range(EXPERTS)}
            if network.shared:
                made |= {"shared.gate": draw(SHARED, HIDDEN), "shared.up": draw(SHARED, HIDDEN), "shared.down": draw(HIDDEN, SHARED)}
                made |= {"shared.own": draw(1, HIDDEN)} if network.shared == "gated" else {}
        else:
            made |= {"gate": draw(MIDDLE, HIDDEN), "up": draw(MIDDLE, HIDDEN), "down": draw(HIDDEN, MIDDLE)}
        found |= {f"layers.{layer}.{name}": value for name, value in made.items()}
    return found


def ids() -> Array:
    return np.random.default_rng(6).integers(0, WORDS, TOKENS)


# --- what both sides compute ---


def norm(x: Array, gain: Array) -> Array:
    return (x / np.sqrt((x**2).mean(-1, keepdims=True) + 1e-6) * gain).astype(np.float32)


def rotated(x: Array) -> Array:
    """Pairs of columns turned by an angle of their place."""
    angle = np.arange(TOKENS)[:, None] * 0.7 ** np.arange(x.shape[1] // 2)[None, :]
    a, b = x[:, ::2], x[:, 1::2]
    turned = np.stack([a * np.cos(angle) - b * np.sin(angle), a * np.sin(angle) + b * np.cos(angle)], -1)
    return turned.reshape(x.shape).astype(np.float32)


def attended(q: Array, k: Array, v: Array) -> Array:
    """Causal attention with as many groups of q as k has heads."""
    heads = q.reshape(TOKENS, HEADS, -1)
    width = heads.shape[2]
    keys, values = k.reshape(TOKENS, -1, width), v.reshape(TOKENS, -1, HEAD)
    group = HEADS // keys.shape[1]
    scores = np.einsum("ihd,jhd->hij", heads, np.repeat(keys, group, 1)) / np.sqrt(width)
    scores = np.where(np.tril(np.ones((TOKENS, TOKENS), bool)), scores, -1e9)
    shares = np.exp(scores - scores.max(-1, keepdims=True))
    shares /= shares.sum(-1, keepdims=True)
    return np.einsum("hij,jhd->ihd", shares, np.repeat(values, group, 1)).reshape(TOKENS, -1).astype(np.float32)


def latent_qkv(q: Array, kv: Array, shared: Array) -> tuple[Array, Array, Array]:
    """q, k, v of latent attention: each head's k ends with the rotated part that all share."""
    heads = kv.reshape(TOKENS, HEADS, 2 * HEAD)
    keys = np.concatenate([heads[:, :, :HEAD], np.repeat(shared[:, None], HEADS, 1)], 2)
    return q, keys.reshape(TOKENS, -1), heads[:, :, HEAD:].reshape(TOKENS, -1)


# --- the trainer: modules of their own, sums and rotation outside any module ---


def trainer(network: Network, weights: dict[str, Array]) -> Recording:
    record = Recording((1,))
    x = record.call("embedding", [ids()], lambda: weights["embedding"][ids()], weight=weights["embedding"])
    record.call("positions", [np.arange(TOKENS)], lambda: np.cos(np.arange(TOKENS)[:, None] * 0.7 ** np.arange(HEAD)[None, :]))
    for layer in range(LAYERS):
        x = record.call(f"layers.{layer}", [x], lambda x=x, layer=layer: _train_layer(network, record, weights, f"layers.{layer}.", x))
    last = record.call("final_norm", [x], lambda: norm(x, weights["final_norm"]), weight=weights["final_norm"])
    record.call("lm_head", [last], lambda: last @ weights["lm_head"].T, weight=weights["lm_head"])
    return record


def _norm(record: Recording, weights: dict[str, Array], role: str, x: Array) -> Array:
    return record.call(role, [x], lambda: norm(x, weights[role]), weight=weights[role])


def _train_layer(network: Network, record: Recording, weights: dict[str, Array], at: str, x: Array) -> Array:
    h = _norm(record, weights, at + "input_norm", x)
    branch = record.call(at + "attention", [h], lambda: _train_attention(network, record, weights, at, h))
    x = x + (_norm(record, weights, at + "attn_post_norm", branch) if network.sandwich else branch)
    h = _norm(record, weights, at + "post_norm", x)
    body = (lambda: train_experts(network, record, weights, at, h)) if network.routed else lambda: _train_mlp(record, weights, at, h)
    branch = record.call(at + "mlp", [h], body)
    return x + (_norm(record, weights, at + "mlp_post_norm", branch) if network.sandwich else branch)


def _train_attention(network: Network, record: Recording, weights: dict[str, Array], at: str, h: Array) -> Array:
    if network.latent:
        low = _norm(record, weights, at + "q_a_norm", record.linear(weights, at + "q_a", h))
        q = record.linear(weights, at + "q_b", low)
        both = record.linear(weights, at + "kv_a", h)
        kv = record.linear(weights, at + "kv_b", _norm(record, weights, at + "kv_a_norm", both[:, :LATENT]))
        core = attended(*latent_qkv(q, kv, rotated(both[:, LATENT:])))
    elif network.turned:
        fused = np.concatenate([weights[at + part] for part in "qkv"]).T.copy()
        shift = np.concatenate([weights[f"{at}{part}.bias"] for part in "qkv"])
        made = record.call(at + "qkv", [h], lambda: (h @ fused + shift).astype(np.float32), weight=fused, bias=shift)
        q, k, v = np.split(made, [HEADS * HEAD, HEADS * HEAD + KEYS], 1)
        core = attended(rotated(q), rotated(k), v)
    else:
        q, k, v = (record.linear(weights, at + part, h) for part in "qkv")
        core = attended(rotated(q), rotated(k), v)
    return record.linear(weights, at + "o_proj", core)


def _train_mlp(record: Recording, weights: dict[str, Array], at: str, h: Array) -> Array:
    gate = record.linear(weights, at + "gate", h)
    active = record.call(at + "act", [gate], lambda: silu(gate))
    return record.linear(weights, at + "down", active * record.linear(weights, at + "up", h))


# --- the engine: fused modules, the residual added in the norm, the last row of logits ---


def engine(network: Network, weights: dict[str, Array]) -> Recording:
    record = Recording(())
    table = np.concatenate([weights["embedding"], np.zeros((network.padded, HIDDEN), np.float32)])
    x: Array = record.call("embedding", [ids()], lambda: table[ids()], weight=table)
    residual = None
    for layer in range(LAYERS):
        mine = dict(weights)
        if network.stale and layer == 1:
            mine[f"layers.1.{network.stale}"] = weights[f"layers.1.{network.stale}"][::-1] * np.float32(1.01)
        body = _infer_layer(network, record, mine, f"layers.{layer}.", x, residual)
        x, residual = record.call(f"layers.{layer}", [np.arange(TOKENS), x], body)
    last, _ = _added_norm(record, weights, "final_norm", x, residual)
    record.call("lm_head", [last[-1:]], lambda: (last @ weights["lm_head"].T)[-1:])
    return record


def _added_norm(record: Recording, weights: dict[str, Array], role: str, x: Array, residual: Array | None) -> tuple[Array, Array]:
    if residual is None:
        return _norm(record, weights, role, x), x
    total = x + residual
    return record.call(role, [x, residual], lambda: (norm(total, weights[role]), total), weight=weights[role])


def _infer_layer(
    network: Network, record: Recording, weights: dict[str, Array], at: str, x: Array, residual: Array | None
) -> Callable[[], tuple[Array, Array]]:
    def body() -> tuple[Array, Array]:
        h, kept = _added_norm(record, weights, at + "input_norm", x, residual)
        branch = record.linear(weights, at + "o_proj", _infer_core(network, record, weights, at, h))
        branch = _norm(record, weights, at + "attn_post_norm", branch) if network.sandwich else branch
        h, kept = _added_norm(record, weights, at + "post_norm", branch, kept)
        branch = infer_experts(network, record, weights, at, h) if network.routed else _infer_mlp(record, weights, at, h)
        return _norm(record, weights, at + "mlp_post_norm", branch) if network.sandwich else branch, kept

    return body


def _infer_core(network: Network, record: Recording, weights: dict[str, Array], at: str, h: Array) -> Array:
    place = np.arange(TOKENS)
    if network.latent:
        fused = np.concatenate([weights[at + "q_a"], weights[at + "kv_a"]])
        made = record.call(at + "qkv_a", [h], lambda: (h @ fused.T).astype(np.float32), weight=fused)
        q = record.linear(weights, at + "q_b", _norm(record, weights, at + "q_a_norm", made[:, :LATENT]))
        kv = record.linear(weights, at + "kv_b", _norm(record, weights, at + "kv_a_norm", made[:, LATENT : 2 * LATENT]))
        q, k, v = latent_qkv(q, kv, rotated(made[:, 2 * LATENT :]))
    else:
        fused = np.concatenate([weights[at + part] for part in "qkv"])
        shift = np.concatenate([weights[f"{at}{part}.bias"] for part in "qkv"])
        made = record.call(at + "qkv", [h], lambda: (h @ fused.T + shift).astype(np.float32), weight=fused, bias=shift)
        q, k, v = np.split(made, [HEADS * HEAD, HEADS * HEAD + KEYS], 1)
        q, k = record.call(at + "rotary", [place, q, k], lambda q=q, k=k: (rotated(q), rotated(k)))
    return record.call(at + "core", [q, k, v], lambda: attended(q, k, v))


def _infer_mlp(record: Recording, weights: dict[str, Array], at: str, h: Array) -> Array:
    fused = np.concatenate([weights[at + "gate"], weights[at + "up"]])
    made = record.call(at + "gate_up", [h], lambda: (h @ fused.T).astype(np.float32), weight=fused)
    active = record.call(at + "act", [made], lambda: silu(made[:, :MIDDLE]) * made[:, MIDDLE:])
    return record.linear(weights, at + "down", active)
