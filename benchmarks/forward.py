"""The values of one forward of a decoder, for pairs whose mapping is to be proposed: ids and weights made the activations, sums hold.

The engine's side is the trainer's with noise: every activation goes up or down by one ULP in two thirds of its elements
(`bits.plant`), residual streams are the sums of what the engine holds, and weights, ids and the embedding's output are equal.
Or it is a forward of its own from the same ids and weights that rounds at other points: a norm before its gain, an activation before it
is multiplied. Products run in float32 and are rounded to bfloat16 at every value, as a trainer's modules do. No rotary embedding.
"""

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np
import shapes
from bits import Bits, Floats, Made, nearest, plant, rounded_sum, wide
from shapes import Size

_KEPT = 40  # values held in memory: those of about a layer and a half
_HEAD = 64  # columns of a head, where the hidden width is a multiple of it
_EPS = np.float32(1e-6)


class Forward:
    """One side; ``noisy``, ``rounds``: the engine's, with noise, or a forward of its own."""

    def __init__(self, size: Size, *, noisy: bool = False, rounds: bool = False) -> None:
        self._size, self._noisy = size, noisy
        self._trainer = Forward(size) if rounds else self
        self._shapes = shapes.values(size)
        self._numbers = {value: at for at, value in enumerate(self._shapes)}
        self.of = lru_cache(maxsize=_KEPT)(self._make)
        self._plain = lru_cache(maxsize=_KEPT)(self._compute)

    def ids(self) -> "np.ndarray[Any, np.dtype[np.int64]]":
        """Random token ids."""
        return np.random.default_rng([3, 0]).integers(0, self._size.vocab, self._size.tokens)

    def _make(self, value: str) -> Made:
        """The bits of a value on this side; ``planted`` counts how many differ from the trainer's."""
        if value == shapes.IDS:
            return Made(self.ids().astype(np.uint16), {}, 0)
        plain = self._plain(value)
        addends = _addends(value) if shapes.is_pair(value) else ()
        parts = {name: self.of(addend).whole for name, addend in zip(("x", "residual"), addends, strict=False)}
        if not self._noisy or value.endswith(".weight") or value == "embedding.out":
            whole = plain
        elif value.endswith((".resid_attn", ".resid_mlp")):
            whole = rounded_sum(*(self.of(addend).whole for addend in _addends(value)))
        else:
            whole = plant(np.random.default_rng([2, self._numbers[value]]), plain, dense=True)[1]
        return Made(whole, parts, int((whole != self._trainer._plain(value)).sum()))

    def _compute(self, value: str) -> Bits:
        if value.endswith(".weight"):
            return self._weight(value)
        if value.endswith((".resid_attn", ".resid_mlp")):
            return rounded_sum(*(self._plain(addend) for addend in _addends(value)))
        rules = _RULES if self._trainer is self else {**_RULES, **_OTHER_ROUNDINGS}
        return nearest(rules[value.removesuffix(".out").rpartition(".")[2]](self, value))

    def _weight(self, value: str) -> Bits:
        """Normal numbers of the scale that keeps the next value's; gains about 1."""
        shape = self._shapes[value]
        drawn = np.random.default_rng([1, self._numbers[value]]).standard_normal(shape, np.float32)
        if len(shape) == 1:
            return nearest(np.float32(1) + drawn / np.float32(16))
        return nearest(drawn if value == "embedding.weight" else drawn / np.float32(np.sqrt(shape[1])))

    def wide(self, value: str) -> Floats:
        """A value as float32, without noise."""
        return wide(self._plain(value))


# --- the rules: a value from values before it ---


def _embedded(side: Forward, _: str) -> Floats:
    return side.wide("embedding.weight")[side.ids()]


def _normed(side: Forward, value: str) -> Floats:
    taken = side.wide(_normalised(value, side._size.layers))
    scale = 1 / np.sqrt((taken * taken).mean(1, keepdims=True) + _EPS)
    return taken * scale * side.wide(value.replace(".out", ".weight"))


def _normed_before_gain(side: Forward, value: str) -> Floats:
    taken = side.wide(_normalised(value, side._size.layers))
    scale = 1 / np.sqrt((taken * taken).mean(1, keepdims=True) + _EPS)
    return wide(nearest(taken * scale)) * side.wide(value.replace(".out", ".weight"))


def _linear(taken: str) -> Callable[[Forward, str], Floats]:
    """A product with the weight of the value's own module; ``taken``: the sibling that goes in."""
    return lambda side, value: side.wide(_sibling(value, taken)) @ side.wide(value.replace(".out", ".weight")).T


def _attended(side: Forward, value: str) -> Floats:
    """Causal attention, head by head."""
    q, k, v = (side.wide(_sibling(value, f"{part}.out")) for part in "qkv")
    width = _HEAD if q.shape[1] % _HEAD == 0 else q.shape[1]
    later = np.triu(np.ones((len(q), len(q)), bool), 1)
    made = np.empty_like(q)
    for start in range(0, q.shape[1], width):
        columns = slice(start, start + width)
        scores = q[:, columns] @ k[:, columns].T / np.float32(np.sqrt(width))
        scores[later] = -np.inf
        shares = np.exp(scores - scores.max(1, keepdims=True))
        made[:, columns] = shares @ v[:, columns] / shares.sum(1, keepdims=True)
    return made


def _gated(side: Forward, value: str) -> Floats:
    gate, up = (side.wide(_sibling(value, f"{part}.out")) for part in ("gate", "up"))
    return gate / (1 + np.exp(-gate)) * up


def _gated_after_rounding(side: Forward, value: str) -> Floats:
    gate, up = (side.wide(_sibling(value, f"{part}.out")) for part in ("gate", "up"))
    return wide(nearest(gate / (1 + np.exp(-gate)))) * up


def _logits(side: Forward, _: str) -> Floats:
    return side.wide("final_norm.out") @ side.wide("lm_head.weight").T


_RULES: dict[str, Callable[[Forward, str], Floats]] = {
    "embedding": _embedded, "input_norm": _normed, "post_norm": _normed, "final_norm": _normed,
    "q": _linear("input_norm.out"), "k": _linear("input_norm.out"), "v": _linear("input_norm.out"), "attn_core": _attended,
    "o_proj": _linear("attn_core.out"), "gate": _linear("post_norm.out"), "up": _linear("post_norm.out"), "act_mul": _gated,
    "down": _linear("act_mul.out"), "logits": _logits,
}  # fmt: skip
_OTHER_ROUNDINGS: dict[str, Callable[[Forward, str], Floats]] = {
    "input_norm": _normed_before_gain, "post_norm": _normed_before_gain, "final_norm": _normed_before_gain,
    "act_mul": _gated_after_rounding,
}  # fmt: skip


def _sibling(value: str, name: str) -> str:
    """Another value of the same layer."""
    return ".".join([*value.split(".")[:2], name])


def _normalised(value: str, layers: int) -> str:
    """What a norm takes."""
    if value == "final_norm.out":
        return shapes.carried(layers)
    return shapes.carried(int(value.split(".")[1])) if value.endswith("input_norm.out") else _sibling(value, "resid_attn")


def _addends(value: str) -> tuple[str, str]:
    """The two values whose sum a residual stream is."""
    if value.endswith(".resid_mlp"):
        return _sibling(value, "down.out"), _sibling(value, "resid_attn")
    return shapes.carried(int(value.split(".")[1])), _sibling(value, "o_proj.out")
