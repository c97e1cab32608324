"""Rotation and attention as programs compute them, in arithmetic that gives the same bits on every CPU.

One head: q [T, D], k [T, D], v [T, V]. Written from the descriptions of the kernels, apart from the formulas: loops over one index,
masks as booleans, running sums.
"""

import math
from typing import NamedTuple

import numpy as np
import torch
from dump_analysis.floats import Array
from dump_analysis.replay.formulas import Given
from programs import DTYPES, values, wide
from torch import Tensor
from toys import arithmetic

TOKENS, HEAD = 40, 16
INFINITE = float("inf")


class Attended(NamedTuple):
    """What one head was given and what it made."""

    q: Tensor
    k: Tensor
    v: Tensor
    made: Tensor
    dtype: str

    def given(self, **config: float) -> Given:
        """As the formula is given it."""
        tokens = len(self.k)
        rows, valid = np.arange(tokens, dtype=np.float64)[:, None], np.ones((tokens, 1))
        constants = {"attention_scale": HEAD**-0.5, "attention_window": INFINITE, "attention_soft_cap": INFINITE, **config}
        return Given((wide(self.q), wide(self.k), wide(self.v), rows, valid), {}, self.dtype, constants)

    @property
    def recorded(self) -> Array:
        return wide(self.made)


def heads_of(seed: int, dtype: str, tokens: int = TOKENS, scale: float = 2.0) -> tuple[Tensor, Tensor, Tensor]:
    q, k, v = (values(seed + at, tokens, HEAD, dtype=dtype, scale=scale if at < 2 else 1.0) for at in range(3))
    return q, k, v


def attended(
    seed: int, dtype: str, kernel: str, *, scale: float = HEAD**-0.5, window: int | None = None, ahead: int = 0,
    cap: float | None = None, tokens: int = TOKENS,
) -> Attended:  # fmt: skip
    """One head by a kernel: float32, probabilities_rounded, eager, eager_scaled_inside, flash, or flash_<keys>."""
    q, k, v = heads_of(seed, dtype, tokens)
    seen = arithmetic.visible(tokens, ahead=ahead, window=window)
    return Attended(q, k, v, attention_by(kernel, q, k, v, seen, DTYPES[dtype], scale, cap), dtype)


def attention_by(
    kernel: str, q: Tensor, k: Tensor, v: Tensor, seen: Tensor, to: torch.dtype, scale: float, cap: float | None = None
) -> Tensor:
    """One head by a kernel of the list in `attended`."""
    return _KERNELS[kernel.partition("_")[0]](q, k, v, seen, to, kernel, scale, cap)


def _bounded(scores: Tensor, cap: float | None) -> Tensor:
    return scores if cap is None else cap * tanh(scores / cap)


def tanh(x: Tensor) -> Tensor:
    """Lambert's continued fraction in float64, to float32 at the end; for |x| up to 10."""
    wide_x = x.double()
    squared = wide_x * wide_x
    below = torch.full_like(wide_x, 121.0)
    for odd in range(119, 0, -2):
        below = odd + squared / below
    return (wide_x / below).float()


def _softmax(scores: Tensor, seen: Tensor) -> Tensor:
    top = scores.masked_fill(~seen, -math.inf).amax(-1, keepdim=True)
    parts = torch.where(seen, arithmetic.exp(scores - top), torch.zeros(()))
    return parts / arithmetic.row_sum(parts)


def _float32(
    q: Tensor, k: Tensor, v: Tensor, seen: Tensor, to: torch.dtype, kernel: str, scale: float, cap: float | None
) -> Tensor:  # fmt: skip
    p = _softmax(_bounded(arithmetic.product(q, k) * scale, cap), seen)
    if kernel == "probabilities_rounded":
        p = p.to(to).float()
    return arithmetic.product(p, v.T).to(to)


def _eager(
    q: Tensor, k: Tensor, v: Tensor, seen: Tensor, to: torch.dtype, kernel: str, scale: float, cap: float | None
) -> Tensor:  # fmt: skip
    scores = arithmetic.product(q, k)
    if kernel == "eager":
        scores = scores.to(to).float()
    scores = (scores * scale).to(to).float()
    if cap is not None:
        scores = (tanh((scores / cap).to(to).float()).to(to).float() * cap).to(to).float()
    p = _softmax(scores, seen).to(to).float()
    return arithmetic.product(p, v.T).to(to)


def _flash(
    q: Tensor, k: Tensor, v: Tensor, seen: Tensor, to: torch.dtype, kernel: str, scale: float, cap: float | None
) -> Tensor:  # fmt: skip
    block = int(kernel.partition("_")[2] or 512)
    scores = _bounded(arithmetic.product(q, k) * scale, cap).masked_fill(~seen, -math.inf)
    top, total, sums = torch.full((len(q), 1), -math.inf), torch.zeros(len(q), 1), torch.zeros(len(q), v.shape[1])
    for start in range(0, len(k), block):
        part = scores[:, start : start + block]
        higher = torch.maximum(top, part.amax(-1, keepdim=True))
        weights = torch.where(torch.isfinite(part), arithmetic.exp(torch.where(torch.isfinite(part), part - higher, 0.0)), 0.0)
        fade = torch.where(torch.isfinite(top), arithmetic.exp(torch.where(torch.isfinite(top), top - higher, 0.0)), 0.0)
        total = total * fade + arithmetic.row_sum(weights)
        sums = sums * fade + arithmetic.product(weights.to(to).float(), v[start : start + block].T)
        top = higher
    return (sums / total).to(to)


_KERNELS = {"float32": _float32, "probabilities": _float32, "eager": _eager, "flash": _flash}


def unknown_kernel(q: Tensor, k: Tensor, v: Tensor, seen: Tensor, to: torch.dtype, scale: float) -> Tensor:
    """Of no list: blocks of 24 keys from the last to the first, powers of two, weights rounded relative to the block's own largest."""
    scores = (arithmetic.product(q, k) * scale).masked_fill(~seen, -math.inf)
    total, sums = torch.zeros(len(q), 1), torch.zeros(len(q), v.shape[1])
    top = scores.amax(-1, keepdim=True)
    for stop in range(len(k), 0, -24):
        part, values_of = scores[:, max(0, stop - 24) : stop], v[max(0, stop - 24) : stop]
        own = part.amax(-1, keepdim=True)
        known = torch.isfinite(part)
        weights = torch.where(known, arithmetic.exp(torch.where(known, part - own, 0.0)), 0.0).to(to).float()
        share = torch.where(torch.isfinite(own), arithmetic.exp(torch.where(torch.isfinite(own), own - top, 0.0)), 0.0)
        total = total + share * arithmetic.row_sum(weights)
        sums = sums + share * arithmetic.product(weights, values_of.T)
    return (sums / total).to(to)


# --- rotation ---


class Turned(NamedTuple):
    """What was turned, by which table [T, pairs] or positions [T, 1], and what it became."""

    x: Tensor
    cos: Tensor
    sin: Tensor
    positions: Tensor
    made: Tensor
    dtype: str


def frequencies(base: float, pairs: int) -> Tensor:
    """base^(-i / pairs) in float32, computed one by one."""
    return torch.tensor([1.0 / base ** (pair / pairs) for pair in range(pairs)], dtype=torch.float64).float()


def turned(
    seed: int, dtype: str, *, interleaved: bool = False, stepwise: bool = True, rounded_table: bool = True, base: float = 10000.0,
    pairs: int = HEAD // 2, rounds: str = "", tokens: int = TOKENS, inverse: Tensor | None = None, magnitude: float = 1.0,
) -> Turned:  # fmt: skip
    """One head of width HEAD whose first 2 ``pairs`` columns are turned. ``rounds``: "angles", "frequencies" or "products" to bfloat16.

    ``magnitude``: what cos and sin are multiplied by before they are rounded.
    """
    to = DTYPES[dtype]
    x, positions = values(seed, tokens, HEAD, dtype=dtype), torch.arange(tokens)[:, None].float()
    inverse = frequencies(base, pairs) if inverse is None else inverse
    if rounds in ("angles", "frequencies"):
        inverse = arithmetic.through_bfloat16(inverse)
    angles = positions * inverse
    if rounds in ("angles", "products"):
        angles = arithmetic.through_bfloat16(angles)
    grown = [part * magnitude for part in arithmetic.cos_sin(angles)]
    cos, sin = (part.to(to).float() if rounded_table else part for part in grown)
    columns = [(2 * pair, 2 * pair + 1) if interleaved else (pair, pair + pairs) for pair in range(pairs)]
    made = x.float().clone()
    for pair, (left, right) in enumerate(columns):
        a, b, c, s = x[:, left].float(), x[:, right].float(), cos[:, pair], sin[:, pair]
        parts = [a * c, b * s, b * c, a * s]
        if stepwise:
            parts = [part.to(to).float() for part in parts]
        made[:, left], made[:, right] = parts[0] - parts[1], parts[2] + parts[3]
    return Turned(x, cos, sin, positions, made.to(to), dtype)
