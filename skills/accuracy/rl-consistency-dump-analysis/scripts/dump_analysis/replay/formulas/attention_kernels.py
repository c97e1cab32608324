"""The ways in which programs compute softmax(scores) v of one head, each with its rounding points.

Bounds: a score errs as a sum of products; e^x by the change of x and `_EXP` roundoffs; a sum of probabilities by the mean error of its
terms, which is added to each; the last sum of products as any other. A probability that is rounded at the edge of its interval moves the
result by as much as it may move itself times |v|.
"""

from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np

from dump_analysis.floats import Array
from dump_analysis.replay.bounds import ACTIVATION_ROUNDOFFS, FLOAT32_ROUNDOFF, sum_of_products
from dump_analysis.replay.emulate import Emulated, exactly, to_format
from dump_analysis.replay.formulas.fast_exponential import fast_exp

SCALE, SOFT_CAP = "attention_scale", "attention_soft_cap"  # names of the constants
_EXP = 8.0  # roundoffs of e^x in float32; 1 seen in torch 2.13 and numpy 2
_FAST_GRID = 2.0**-16  # relative, of the fast exponential: two steps of its own grid
_QUOTIENT = 16.0  # roundoffs of a sum of probabilities and the quotient by it
_FAST_QUOTIENT = 160.0
_VECTOR = 16  # float32 in a vector register of the processors that have the fast exponential
BLOCK = 512  # keys
_UNTOLD = 1.0  # reach of a score from which its exponential is not told


class Head(NamedTuple):
    """One head and some of its queries. ``products``: q k^T [R, T] in float32; ``v`` [T, V]; ``seen`` [R, T]: keys of each query.

    ``scale`` and ``cap`` (infinite: none) as the formula has them; ``sink``: a score that every query sees beside its keys, or None.
    """

    products: Emulated
    v: Array
    seen: Array
    scale: float
    cap: float
    sink: float | None


Kernel = Callable[[Head, str], Emulated]


def head_of(q: Emulated, k: Emulated, v: Array, seen: Array, config: Mapping[str, float], sink: float | None) -> Head:
    """q [R, D] against keys k [T, D], whose own intervals widen those of the products."""
    sums = q.value @ k.value.T
    reach = sum_of_products(q.value, k.value, sums)
    for one, other in ((q, k), (k, q)):
        if one.low is not one.high:
            by = np.maximum(one.high - one.value, one.value - one.low) @ np.abs(other.value).T
            reach = reach + (by if one is q else by.T)
    return Head(Emulated(sums, sums - reach, sums + reach), v, seen, config[SCALE], config[SOFT_CAP], sink)


def truth(q: Array, k: Array, v: Array, seen: Array, config: Mapping[str, float], sink: float | None) -> Array:
    """The head in float64, [R, V]."""
    found: Array = _softmax(q, k, seen, config, sink)[0] @ v
    return found


def moments(q: Array, k: Array, v: Array, seen: Array, config: Mapping[str, float], sink: float | None) -> tuple[Array, Array]:
    """The head in float64 and, for the noise of rounding, sum_j (p_j v_j)^2 (1 + s_j^2), [R, V] each."""
    p, scores = _softmax(q, k, seen, config, sink)
    found = p @ v
    moved = p * p * np.where(seen, 1 + scores * scores, 0.0)
    return found, moved @ (v * v)


def _softmax(q: Array, k: Array, seen: Array, config: Mapping[str, float], sink: float | None) -> tuple[Array, Array]:
    """Probabilities and scores, [R, T] each."""
    scores = q @ k.T * config[SCALE]
    if np.isfinite(config[SOFT_CAP]):
        scores = config[SOFT_CAP] * np.tanh(scores / config[SOFT_CAP])
    parts, total, _ = _exponentials(scores, seen, sink, np.exp)
    with np.errstate(invalid="ignore"):  # a query that sees no key
        return parts / total, scores


# --- scores and probabilities ---


def _scores(head: Head) -> Emulated:
    """Scaled and bounded in float32."""
    scores = head.products.times(head.scale).roundoffs(1)
    if not np.isfinite(head.cap):
        return scores
    return scores.mapped(lambda value: head.cap * np.tanh(value / head.cap)).roundoffs(ACTIVATION_ROUNDOFFS)


def _change(scores: Emulated, more: Array | float = 0.0) -> Array:
    """By how much of itself e^score may be off; NaN, which explains nothing, where a score says nothing of it."""
    reach = np.maximum(scores.high - scores.value, scores.value - scores.low) + more
    return np.expm1(np.where(reach > _UNTOLD, np.nan, reach))


def _exponentials(scores: Array, seen: Array, sink: float | None, exp: Callable[[Array], Array]) -> tuple[Array, Array, Array]:
    """e^(score - largest) of the keys seen [R, T], their sum and the largest [R, 1]."""
    largest = np.where(seen, scores, -np.inf).max(axis=1, keepdims=True, initial=-np.inf if sink is None else sink)
    parts = np.where(seen, exp(np.where(seen, scores - largest, 0.0)), 0.0)
    total = parts.sum(axis=1, keepdims=True)
    return parts, total if sink is None else total + np.exp(sink - largest), largest


def _probabilities(scores: Emulated, head: Head) -> tuple[Array, Array]:
    """Softmax in float32: probabilities and their relative errors, [R, T] each."""
    parts, total, _ = _exponentials(scores.value, head.seen, head.sink, np.exp)
    with np.errstate(invalid="ignore"):  # a query that sees no key
        found = parts / total
    own = _change(scores) + _EXP * FLOAT32_ROUNDOFF
    return found, own + (found * own).sum(axis=1, keepdims=True) + 4 * FLOAT32_ROUNDOFF


def _weighted(p: Emulated, v: Array) -> Emulated:
    """p v in float32, where p may lie anywhere in its intervals."""
    sums = p.value @ v
    reach = sum_of_products(p.value, v.T, sums) + 2 * FLOAT32_ROUNDOFF * np.abs(sums)
    if p.low is not p.high:
        either = np.maximum(p.high - p.value, p.value - p.low)
        rows = either.any(axis=1)
        reach[rows] += either[rows] @ np.abs(v)
    return Emulated(sums, sums - reach, sums + reach)


# --- kernels ---


def float32(head: Head, dtype: str) -> Emulated:
    """Everything in float32, one rounding. Errors of probabilities have either sign: half of their sum is wide."""
    p, error = _probabilities(_scores(head), head)
    found = _weighted(exactly(p), head.v)
    return found.widened(0.5 * ((p * error) @ np.abs(head.v))).to_format(dtype)


def rounded(head: Head, dtype: str) -> Emulated:
    """Softmax in float32, its probabilities rounded before they meet v."""
    p, error = _probabilities(_scores(head), head)
    return _weighted(Emulated(p, p * (1 - error), p * (1 + error)).to_format(dtype), head.v).to_format(dtype)


def eager(head: Head, dtype: str, *, scaled_inside: bool = False) -> Emulated:
    """Every step a tensor of the stored format but the softmax. ``scaled_inside``: the product is scaled before it is rounded."""
    products = head.products if scaled_inside else head.products.to_format(dtype)
    scores = products.times(head.scale).roundoffs(1).to_format(dtype)
    if np.isfinite(head.cap):
        quotient = scores.times(1.0 / head.cap).roundoffs(1).to_format(dtype)
        scores = quotient.mapped(np.tanh).roundoffs(ACTIVATION_ROUNDOFFS).to_format(dtype).times(head.cap).to_format(dtype)
    p, error = _probabilities(scores, head)
    return _weighted(Emulated(p, p * (1 - error), p * (1 + error)).to_format(dtype), head.v).to_format(dtype)


def eager_scaled_inside(head: Head, dtype: str) -> Emulated:
    return eager(head, dtype, scaled_inside=True)


def flash(head: Head, dtype: str, *, block: int = BLOCK, fast: bool = False) -> Emulated:
    """Keys by blocks: e^(score - largest so far) rounded before it meets v, summed unrounded, divided at the end.

    ``fast``: by the fast exponential, but for the keys past the last full vector.
    """
    scores = _scores(head)
    running = np.full((len(head.seen), 1), -np.inf if head.sink is None else head.sink)
    total = np.zeros_like(running) if head.sink is None else np.ones_like(running)
    sums: Emulated | None = None
    for start in range(0, scores.value.shape[1], block):
        at = slice(start, start + block)
        part, added, largest = _block(Emulated(*(one[:, at] for one in scores)), head, at, running, dtype, fast=fast)
        with np.errstate(invalid="ignore"):
            fade = np.where(np.isfinite(running), np.exp(running - largest), 0.0)
        sums = part if sums is None else Emulated(*(one * fade + two for one, two in zip(sums, part, strict=True)))
        total, running = total * fade + added, largest
    assert sums is not None  # there is a key
    with np.errstate(divide="ignore", invalid="ignore"):
        quotient = Emulated(*(one / total for one in sums))
    return quotient.roundoffs(_FAST_QUOTIENT if fast else _QUOTIENT).to_format(dtype)


def _block(scores: Emulated, head: Head, at: slice, running: Array, dtype: str, *, fast: bool) -> tuple[Emulated, Array, Array]:
    """One block of keys: its weighted sum, the sum of its exponentials, the largest score so far."""
    seen = head.seen[:, at]
    largest = np.maximum(running, np.where(seen, scores.value, -np.inf).max(axis=1, keepdims=True))
    away = np.where(seen, scores.value - np.where(np.isfinite(largest), largest, 0.0), -np.inf)
    parts = np.where(seen, _fast(away) if fast else np.exp(away), 0.0)
    error = _change(scores, 2 * FLOAT32_ROUNDOFF * np.abs(np.where(np.isfinite(largest), largest, 0.0)))
    error += _FAST_GRID if fast else _EXP * FLOAT32_ROUNDOFF
    stored = Emulated(parts, parts * (1 - error), parts * (1 + error)).to_format(dtype)
    return _weighted(stored, head.v[at]), parts.sum(axis=1, keepdims=True), largest


def _fast(away: Array) -> Array:
    found = fast_exp(to_format(np.maximum(away, -200.0), "float32"))
    tail = away.shape[1] % _VECTOR
    if tail:
        found[:, -tail:] = np.exp(away[:, -tail:])
    return found


def _flash_of(block: int) -> Kernel:
    return lambda head, dtype: flash(head, dtype, block=block)


def _fast_flash(head: Head, dtype: str) -> Emulated:
    return flash(head, dtype, fast=True)


class Named(NamedTuple):
    """A kernel, where it was read or measured, and the fewest keys from which it differs from the others."""

    name: str
    kernel: Kernel
    source: str
    keys: int = 0


KERNELS = (
    Named("flash_fast_exp", _fast_flash, "torch 2.13 SDPA on CPUs with AVX-512, SGLang 0.5 torch_native", _VECTOR),
    Named("flash", flash, "torch 2.13 SDPA on other CPUs"),
    Named("float32", float32, "vLLM 0.32 CPU, kernels that stay in float32"),
    Named("eager", eager, "transformers' eager attention"),
    Named("eager_scaled_inside", eager_scaled_inside, "Megatron-Core 0.16 DotProductAttention: baddbmm with alpha"),
    Named("probabilities_rounded", rounded, "softmax in float32, cast before it meets v"),
    *(Named(f"flash_{block}", _flash_of(block), f"flash attention with blocks of {block} keys", block + 1) for block in (64, 128, 32, 256)),
)
