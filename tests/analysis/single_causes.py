"""One cause each, computed in float64 and rounded to bfloat16: both sides of a boundary that differ by nothing else.

The arithmetic is written for these tests, from the definitions of the operators; nothing of the product computes here.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

Array = np.ndarray[Any, Any]
Both = tuple[Array, Array]

TOKENS, WIDTH, HEADS = 64, 256, 4
HEAD = WIDTH // HEADS
LAYER = "layers.0."


class Made(NamedTuple):
    """``boundary``: where; ``both``: train and infer; ``around``: other boundaries and weights, likewise; ``dtype``: of both."""

    boundary: str
    both: Both
    around: Mapping[str, Both] = MappingProxyType({})
    dtype: str = "bfloat16"


def bf16(values: Array) -> Array:
    """The nearest bfloat16, ties to even, as float64."""
    raw = np.asarray(values, "<f4").view("<u4").astype("<u8")
    return (((raw + 0x7FFF + ((raw >> 16) & 1)) >> 16 << 16).astype("<u4")).view("<f4").astype("f8")


def draw(seed: int, *shape: int, scale: float = 1.0) -> Array:
    return bf16(np.random.default_rng(seed).standard_normal(shape) * scale)


def same(seed: int = 90, *shape: int) -> Both:
    value = draw(seed, *(shape or (TOKENS, WIDTH)))
    return value, value


# --- operators ---


def norm(x: Array, gain: Array, eps: float = 1e-6, *, cast_first: bool = False, short: bool = False) -> Array:
    inverse = 1 / np.sqrt((x * x).mean(axis=1, keepdims=True) + eps)
    scaled = x * (bf16(inverse) if short else inverse)
    return bf16((bf16(scaled) if cast_first else scaled) * gain)


def rotated(
    x: Array, theta: float = 10000.0, *, pairs: bool = False, shift: int = 0, short_tables: bool = False, short_angles: bool = False,
    factor: float = 1.0, positions: "Array | None" = None,
) -> Array:  # fmt: skip
    """Rotary embedding by halves, or by neighbours, of [tokens, heads * HEAD]."""
    where = np.arange(len(x)) + shift if positions is None else positions
    inverse = theta ** (-np.arange(0, HEAD, 2) / HEAD)
    angle = where[:, None] * inverse
    if short_angles:
        angle = bf16(bf16(where)[:, None] * bf16(inverse))
    cos, sin = np.cos(angle), np.sin(angle)
    if short_tables:
        cos, sin = bf16(cos), bf16(sin)
    heads = x.reshape(len(x), -1, HEAD)
    one, two = (heads[..., ::2], heads[..., 1::2]) if pairs else (heads[..., : HEAD // 2], heads[..., HEAD // 2 :])
    turned = np.empty_like(heads)
    new = one * cos[:, None] - two * sin[:, None], two * cos[:, None] + one * sin[:, None]
    if pairs:
        turned[..., ::2], turned[..., 1::2] = new
    else:
        turned[..., : HEAD // 2], turned[..., HEAD // 2 :] = new
    return bf16(turned.reshape(x.shape) * factor)


def attention(
    q: Array, k: Array, v: Array, *, scale: float = HEAD**-0.5, window: int = 0, cap: float = 0.0, sink: bool = False,
    short: bool = False, blind: int = 0, heads: "list[int] | None" = None,
) -> Array:  # fmt: skip
    """Causal attention by heads. ``blind``: the last token sees no keys behind this one; ``heads``: whose values each query takes."""
    split = [part.reshape(len(part), HEADS, HEAD).swapaxes(0, 1) for part in (q, k, v)]
    if heads is not None:
        split[1], split[2] = split[1][heads], split[2][heads]
    score = split[0] @ split[1].swapaxes(1, 2) * scale
    if cap:
        score = np.tanh(score / cap) * cap
    back = np.arange(len(q))[:, None] - np.arange(len(q))
    seen = (back >= 0) & (back < (window or len(q) + 1))
    if blind:
        seen[-1, blind:] = False
    score = np.where(seen, score, -np.inf)
    weight = np.exp(score - score.max(axis=-1, keepdims=True))
    weight /= weight.sum(axis=-1, keepdims=True) + (np.exp(1.0 - score.max(axis=-1, keepdims=True)) if sink else 0.0)
    return bf16(((bf16(weight) if short else weight) @ split[2]).swapaxes(0, 1).reshape(q.shape))


def silu(x: Array) -> Array:
    return x / (1 + np.exp(-x))


def gelu(x: Array) -> Array:
    return 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))


def gelu_erf(x: Array) -> Array:
    """By the series of erf's definition, in steps of a trapezium; exact to 1e-9."""
    grid = np.linspace(0, 1, 2001)
    inner = np.exp(-((x[..., None] / np.sqrt(2) * grid) ** 2))
    integral = ((inner[..., 1:] + inner[..., :-1]) / 2).mean(axis=-1) * x / np.sqrt(2)
    return 0.5 * x * (1 + 2 / np.sqrt(np.pi) * integral)


def partial(x: Array, weight: Array, count: int) -> Array:
    parts = [bf16(one @ two.T) for one, two in zip(np.split(x, count, 1), np.split(weight, count, 1), strict=True)]
    total = parts[0]
    for part in parts[1:]:
        total = bf16(total + part)
    return total


def log_softmax(logits: Array) -> Array:
    high = logits.max(axis=-1, keepdims=True)
    return logits - high - np.log(np.exp(logits - high).sum(axis=-1, keepdims=True))


# --- causes ---

X, GAIN, Q, K, V = (
    draw(1, TOKENS, WIDTH),
    bf16(1 + draw(2, WIDTH) / 10),
    draw(3, TOKENS, WIDTH),
    draw(4, TOKENS, WIDTH),
    draw(5, TOKENS, WIDTH),
)
W = draw(6, WIDTH, WIDTH, scale=WIDTH**-0.5)
TABLE = draw(7, TOKENS, WIDTH)


def at(place: str, train: Array, infer: Array, around: "dict[str, Both] | None" = None, dtype: str = "bfloat16") -> Made:
    return Made(LAYER + place, (train, infer), around or {}, dtype)


def linear(place: str = "q.out", weight: Array = W, **around: Both) -> Made:
    return at(place, bf16(X @ W.T), bf16(X @ weight.T), {LAYER + name: both for name, both in around.items()})


def with_rows(change: Callable[[Array], Array], rows: slice) -> Array:
    weight = W.copy()
    weight[rows] = bf16(change(weight[rows]))
    return weight


def summed_in_order() -> Both:
    """Products over 1024 columns, exact and in float32 one after another."""
    x, weight = draw(22, 128, 1024), draw(23, WIDTH, 1024, scale=1 / 32)
    total = np.zeros((128, WIDTH), "f4")
    for one, two in zip(x.T.astype("f4"), weight.T.astype("f4"), strict=True):
        total += one[:, None] * two
    return bf16(x @ weight.T), bf16(total)


def small_rms() -> Array:
    return bf16(X * 0.02 * np.exp(np.random.default_rng(8).standard_normal((TOKENS, 1)) / 2))


def rows_of(value: Array, first: int, last: int, scale: float) -> Array:
    found = value.copy()
    found[first:last] = bf16(found[first:last] * scale)
    return found


def flipped(few: bool) -> Both:
    train = np.sort(np.argsort(draw(9, TOKENS, 8), axis=1)[:, :2], axis=1)
    infer = train.copy()
    rows = slice(3, 5) if few else slice(None)
    infer[rows] = (infer[rows] + 1) % 8
    return train, infer


def near(value: Array, by: float) -> Array:
    return bf16(value * (1 + by * np.random.default_rng(10).standard_normal(value.shape)))


ADDENDS: dict[str, Both] = {"embedding.out": same(91), LAYER + "o_proj.out": same(92)}
RESID = bf16(ADDENDS["embedding.out"][0] + ADDENDS[LAYER + "o_proj.out"][0])
ROUTER = draw(17, TOKENS, 8)
EXPERT = "layers.0.experts.1.down.weight"
IN_IMAGE = np.arange(TOKENS) // 8 == 3
LOST = np.concatenate([V[:32] * 0, V[32:]])
CODES = 2 + np.arange(4096).reshape(64, 64) % 100  # of float8 numbers, which grow with them
LOGITS, FLAT = draw(11, TOKENS, 512, scale=8.0), draw(25, TOKENS, 512)
CHOSEN = np.exp(log_softmax(draw(12, TOKENS, 8, scale=2.0)))
EXPERTS = draw(13, 8, TOKENS, WIDTH)


def experts_summed(*, short: bool) -> Array:
    total = np.zeros((TOKENS, WIDTH))
    for share, expert in zip(CHOSEN.T, EXPERTS, strict=True):
        total = total + share[:, None] * expert
        total = bf16(total) if short else total
    return bf16(total)


def logprobs(train: Array, infer: Array) -> Made:
    """Of equal logits."""
    return Made("logprobs", (train, infer), {"logits": same(94)}, "float32")


def integer(values: Array) -> Array:
    return values.astype(np.int64)


def weights(*names: str, differ: "tuple[str, ...]" = (), rows: int = 0) -> Made:
    """A weight that differs beside others."""
    changed = W.copy()
    changed[: rows or None] = bf16(changed[: rows or None] * 1.01)
    both = {name: (W, changed if name in differ else W) for name in names}
    return Made(differ[0], both.pop(differ[0]), both)


SINGLE: dict[str, Callable[[], Made]] = {
    "pair_not_summed": lambda: at("resid_attn", RESID, ADDENDS[LAYER + "o_proj.out"][0], ADDENDS),
    "dummy_run": lambda: at("q.out", X, np.zeros_like(X)),
    "padding_left": lambda: at("q.out", X, draw(14, 128, WIDTH)),
    "shifted_by_one": lambda: at("resid_attn", X, np.roll(X, 1, axis=0)),
    "other_tokens": lambda: Made("embedding.out", (TABLE, np.concatenate([TABLE[:9], TABLE[20:22], TABLE[11:]]))),
    "integers_taken": lambda: Made("embedding.out", (TABLE, integer(np.tile(np.arange(TOKENS), (WIDTH, 1)).T)), {}, "bfloat16 int64"),
    "positions_offset": lambda: Made("positions", (integer(np.arange(TOKENS)), integer(np.arange(TOKENS) + 5)), {}, "int64"),
    "embedding_scale": lambda: Made("embedding.out", (TABLE, bf16(TABLE * np.sqrt(WIDTH)))),
    "embedding_scale_rounded": lambda: Made("embedding.out", (bf16(TABLE * np.sqrt(1152)), bf16(TABLE * 34.0))),
    "gain_offset": lambda: at("input_norm.out", norm(X, 1 + draw(15, WIDTH, scale=0.1)), norm(X, draw(15, WIDTH, scale=0.1))),
    "norm_eps": lambda: at("post_norm.out", norm(small_rms(), GAIN), norm(small_rms(), GAIN, 1e-5)),
    "norm_cast_order": lambda: at("q_norm.out", norm(X, GAIN), norm(X, GAIN, cast_first=True)),
    "norm_variance_rounded": lambda: at("input_norm.out", norm(X, GAIN), norm(X, GAIN, short=True)),
    "norm_sum_unrounded": lambda: at("post_norm.out", norm(bf16(X + V / 8), GAIN), norm(X + V / 8, GAIN)),
    "bias_lost": lambda: at("k.out", bf16(X @ W.T + draw(16, WIDTH)), bf16(X @ W.T)),
    "rows_reordered": lambda: linear(weight=np.roll(W, HEAD, axis=0)),
    "weight_rows": lambda: linear("down.out", with_rows(lambda part: part * 1.01, slice(5, 9))),
    "weight_update": lambda: linear("gate.out", near(W, 0.01)),
    "sum_order": lambda: at("up.out", *summed_in_order()),
    "product_rounded": lambda: at("v.out", bf16(X @ W.T + draw(24, WIDTH)), bf16(bf16(X @ W.T) + draw(24, WIDTH))),
    "partial_sums": lambda: at("o_proj.out", bf16(X @ W.T), partial(X, W, 4)),
    "rope_theta": lambda: at("q_rope.out", rotated(Q), rotated(Q, 500000.0)),
    "rope_pairing": lambda: at("k_rope.out", rotated(Q), rotated(Q, pairs=True)),
    "rope_attention_factor": lambda: at("q_rope.out", rotated(Q), rotated(Q, factor=1.2)),
    "rope_some_positions": lambda: at("q_rope.out", rotated(Q), rotated(Q, positions=np.where(IN_IMAGE, 24, np.arange(TOKENS)))),
    "rope_positions_off": lambda: at("q_rope.out", rotated(Q), rotated(Q, shift=1)),
    "rope_rounded": lambda: at("q_rope.out", rotated(Q), rotated(Q, short_tables=True)),
    "rope_angles_rounded": lambda: at("q_rope.out", rotated(Q), rotated(Q, short_angles=True)),
    "window": lambda: at("attn_core.out", attention(Q, K, V), attention(Q, K, V, window=32)),
    "chunk_state": lambda: at("attn_core.out", attention(Q, K, V), np.concatenate([attention(Q, K, V)[:32], attention(Q, K, LOST)[32:]])),
    "attention_sink": lambda: at("attn_core.out", attention(Q, K, V), attention(Q, K, V, sink=True)),
    "attention_soft_cap": lambda: at("attn_core.out", attention(Q * 4, K, V), attention(Q * 4, K, V, cap=50.0)),
    "attention_scale": lambda: at("attn_core.out", attention(Q, K, V), attention(Q, K, V, scale=128**-0.5)),
    "attention_probabilities_rounded": lambda: at("attn_core.out", attention(Q, K, V), attention(Q, K, V, short=True)),
    "padded_keys": lambda: at("attn_core.out", attention(Q, K, V), attention(Q, K, V, blind=60)),
    "heads_assigned_otherwise": lambda: at("attn_core.out", attention(Q, K, V), attention(Q, K, V, heads=[1, 0, 2, 3])),
    "gelu_form": lambda: at("act_mul.out", bf16(gelu(X) * V), bf16(gelu_erf(X) * V)),
    "activation": lambda: at("act_mul.out", bf16(silu(X) * V), bf16(gelu(X) * V)),
    "gate_up_exchanged": lambda: at("act_mul.out", bf16(silu(X) * V), bf16(silu(V) * X)),
    "activation_rounded": lambda: at("act_mul.out", bf16(silu(X) * V), bf16(bf16(silu(X)) * V)),
    "residual_rounded": lambda: at("resid_mlp", bf16(X + Q + K), bf16(bf16(X + Q) + K)),
    "residual_lost": lambda: at("resid_attn", RESID, np.concatenate([RESID[:7], X[7:8], RESID[8:]]), ADDENDS),
    "choice_flipped": lambda: at("router.experts", *flipped(few=True), {LAYER + "router.logits": (ROUTER, near(ROUTER, 0.003))}, "int64"),
    "router_bias_rounded": lambda: at("router.experts", *flipped(few=False), {LAYER + "router.logits": (ROUTER, ROUTER)}, "int64"),
    "shares_normalised": lambda: at("router.weights", bf16(CHOSEN), bf16(CHOSEN * draw(19, TOKENS, 1) ** 2), {}),
    "routed_scale": lambda: at("moe.out", X, bf16(X * 2.5)),
    "shared_expert_scale": lambda: at("shared_expert.out", X, bf16(X / 2.5)),
    "expert_bias": lambda: at("moe.out", X, bf16(X + draw(20, WIDTH))),
    "experts_summed_rounded": lambda: at("moe.out", experts_summed(short=False), experts_summed(short=True)),
    "head_not_refreshed": lambda: Made("logits", (bf16(X @ W.T), bf16(X @ near(W, 0.2).T)), {"final_norm.out": same(93)}),
    "head_format": lambda: Made("logits", (bf16(X @ W.T), partial(X, W, 2)), {"final_norm.out": same(93)}),
    "vocabulary_padded": lambda: Made("logits", (X, draw(21, TOKENS, 320))),
    "normaliser_padded": lambda: logprobs(log_softmax(FLAT), log_softmax(np.pad(FLAT, ((0, 0), (0, 24))))[:, :512]),
    "final_soft_cap": lambda: Made("logits", (bf16(LOGITS), bf16(np.tanh(LOGITS / 30) * 30)), {"final_norm.out": same(93)}),
    "temperature": lambda: logprobs(log_softmax(LOGITS).max(axis=1), log_softmax(LOGITS / 0.7).max(axis=1)),
    "renormalised": lambda: logprobs(log_softmax(LOGITS).max(axis=1), log_softmax(np.where(LOGITS > 6, LOGITS, -1e3)).max(axis=1)),
    "sampling_mask": lambda: logprobs(log_softmax(LOGITS)[:, 0], np.where(np.arange(TOKENS) == 5, -np.inf, log_softmax(LOGITS)[:, 0])),
    "rows_not_computed": lambda: at("o_proj.out", X, rows_of(X, 56, 64, 0.0)),
    "quantised_elsewhere": lambda: at("act_mul.out", CODES, CODES + (CODES % 7 == 0) - (CODES % 7 == 1), {}, "float8_e4m3fn"),
    "overflow": lambda: at("attn_core.out", X, np.where(np.arange(WIDTH) == 3, np.inf, X)),
    "experts_not_synced": lambda: weights("layers.0.q.weight", EXPERT, differ=(EXPERT,)),
    "all_weights_old": lambda: weights("layers.0.q.weight", "layers.0.k.weight", differ=("layers.0.q.weight", "layers.0.k.weight")),
    "head_alone": lambda: weights("layers.0.q.weight", "lm_head.weight", differ=("lm_head.weight",)),
    "partly_written": lambda: weights("layers.0.q.weight", "layers.0.k.weight", differ=("layers.0.q.weight",), rows=32),
}  # fmt: skip


def beside(name: str, boundary: str, both: Both) -> Made:
    """A single cause beside another boundary."""
    return SINGLE[name]()._replace(around={boundary: both})


def of_heads() -> Made:
    """One head of four, the width of a head told by a boundary that was recorded by heads."""
    by_heads = draw(26, TOKENS, HEADS, HEAD)
    train = attention(Q, K, V)
    infer = train.copy()
    infer[:, HEAD : 2 * HEAD] = draw(27, TOKENS, HEAD)
    return at("attn_core.out", train, infer, {LAYER + "q.out": (by_heads, by_heads)})


# The same causes with signs that the first ones lack: the other side, what stands around.
MORE: dict[str, tuple[str, Callable[[], Made]]] = {
    "zeros on train": ("dummy_run", lambda: at("q.out", np.zeros_like(X), X)),
    "infinities on train": ("overflow", lambda: at("q.out", np.where(np.arange(WIDTH) == 3, np.inf, X), X)),
    "a shift whose first row is new": ("shifted_by_one", lambda: at("resid_mlp", X, np.concatenate([Q[:1], X[:-1]]))),
    "a weight that differs": ("weight_update", lambda: beside("weight_update", LAYER + "gate.weight", (W, near(W, 0.01)))),
    "ids that differ": ("other_tokens", lambda: beside("other_tokens", "input_ids", (np.arange(TOKENS), np.arange(TOKENS) // 2))),
    "equal experts": ("shares_normalised", lambda: beside("shares_normalised", LAYER + "router.experts", flipped(few=True)[:1] * 2)),
    "one head": ("heads_assigned_otherwise", of_heads),
}  # fmt: skip
