"""Routed and shared experts of the small networks: routers, experts run one by one or at once, what trainer and engine record of them."""

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from networks import Network, Recording

Array = np.ndarray[Any, Any]
CHOSEN = 2  # experts of a token


def silu(x: Array) -> Array:
    return (x / (1 + np.exp(-x))).astype(np.float32)


def product(both: Array) -> Array:
    """Of gate and up side by side."""
    gate, up = np.split(both, 2, 1)
    return (silu(gate) * up).astype(np.float32)


def chosen(logits: Array, *, normalised: bool = True) -> Array:
    """Share of each expert in each token: the two best, normalised."""
    shares = np.where(logits >= np.sort(logits, 1)[:, -CHOSEN : 1 - CHOSEN], np.exp(logits), 0)
    return (shares / (shares if normalised else np.exp(logits)).sum(1, keepdims=True)).astype(np.float32)


def ids_of(shares: Array) -> Array:
    """The chosen experts of each token, the largest share first."""
    return np.argsort(-shares, 1, kind="stable")[:, :CHOSEN]


def route(record: "Recording", network: "Network", side: int, at: str, h: Array, weight: Array) -> Array:
    """Run the router; it returns logits and what it chose, or a map of its choice. The shares of all experts."""
    kind, fault = network.choices[side], network.fault if side == 1 and ".1." in at else ""
    logits = (h @ weight.T).astype(np.float32)
    if fault == "other expert":
        logits = logits[:, [1, 0, *range(2, len(weight))]]
    shares = chosen(logits, normalised=fault != "not normalised")
    ids = ids_of(shares)
    if kind == "other order":
        ids = np.sort(ids, 1)
    weights = np.take_along_axis(shares, ids, 1)
    if fault == "ids exchanged":
        ids = ids[:, ::-1]
        np.put_along_axis(shares, ids, weights, 1)
    made = {"": logits, "map": (shares, shares > 0)}.get(kind, (logits, weights, ids))
    record.call(at + "router", [h], lambda: made, weight=weight)
    return shares


# --- the trainer ---


def train_experts(network: "Network", record: "Recording", weights: dict[str, Array], at: str, h: Array) -> Array:
    shares = route(record, network, 0, at, h, weights[at + "router"])
    total = np.zeros_like(h)
    for expert in range(len(shares[0])):
        rows = np.flatnonzero(shares[:, expert])[: len(h) - 1]  # never as many as there are tokens
        if not len(rows):
            continue  # a module that does not run records nothing
        share = shares[rows, expert : expert + 1]
        made = record.linear(weights, f"{at}experts.{expert}.gate_up", h[rows])
        inner = product(made) * (share if network.weighted else 1)
        out = record.linear(weights, f"{at}experts.{expert}.down", inner)
        total[rows] += out if network.weighted else share * out
    return total + _shared(record, network, weights, at, h) if network.shared else total


def _shared(record: "Recording", network: "Network", weights: dict[str, Array], at: str, h: Array) -> Array:
    """The expert of every token, each linear a module of its own; its gate's share is worked in outside any module."""

    def body() -> Array:
        gate = record.linear(weights, at + "shared.gate", h)
        active = record.call(at + "shared.act", [gate], lambda: silu(gate))
        return record.linear(weights, at + "shared.down", active * record.linear(weights, at + "shared.up", h))

    out: Array = record.call(at + "shared", [h], body)
    if network.shared == "gated":
        return out / (1 + np.exp(-record.linear(weights, at + "shared.own", h)))
    return out


# --- the engine ---


def infer_experts(network: "Network", record: "Recording", weights: dict[str, Array], at: str, h: Array) -> Array:
    if not network.shared:
        return _infer_routed(network, record, weights, at, h)

    def body() -> Array:
        return _infer_shared(network, record, weights, at, h) + _infer_routed(network, record, weights, at, h)

    return record.call(at + "mlp", [h], body)


def _infer_shared(network: "Network", record: "Recording", weights: dict[str, Array], at: str, h: Array) -> Array:
    """The shared expert with gate and up in one, before the routed ones; its own gate's share is worked in by the module around it."""

    def body() -> Array:
        parts = {at + part: weights[f"{at}shared.{part}"] for part in ("gate", "up", "down")}
        fused = np.concatenate([parts[at + "gate"], parts[at + "up"]])
        made = record.call(at + "shared.gate_up", [h], lambda: (h @ fused.T).astype(np.float32), weight=fused)
        active = record.call(at + "shared.act", [made], lambda: product(made))
        out = record.linear(weights, at + "shared.down", active)
        return out / (1 + np.exp(-record.linear(weights, at + "shared.own", h))) if network.shared == "gated" else out

    return record.call(at + "shared", [h], body)


def _infer_routed(network: "Network", record: "Recording", weights: dict[str, Array], at: str, h: Array) -> Array:
    shares = route(record, network, 1, at, h, weights[at + "router"])
    first, second = (np.stack([weights[f"{at}experts.{one}.{kind}"] for one in range(len(shares[0]))]) for kind in ("gate_up", "down"))
    ids = ids_of(shares)

    def one(expert: int, rows: Array) -> Array:
        made = h[rows] @ first[expert].T
        return product(made) @ second[expert].T

    def recorded(expert: int, rows: Array) -> Array:
        made = record.linear(weights, f"{at}experts.{expert}.gate_up", h[rows])
        return record.linear(weights, f"{at}experts.{expert}.down", product(made))

    def body() -> Array:
        total = np.zeros_like(h)
        for expert in range(len(shares[0])):
            rows = np.concatenate(
                [np.flatnonzero(ids[:, nth] == expert) for nth in range(CHOSEN)] if network.apart else [np.flatnonzero(shares[:, expert])]
            )
            rows = rows[: len(h) - 1]
            if not len(rows):
                continue
            total[rows] += shares[rows, expert : expert + 1] * (recorded if network.apart else one)(expert, rows)
        return total

    if network.apart:
        return record.call(at + "experts", [h], body)
    return record.call(at + "experts", [h, shares], body, w13=first, w2=second)
