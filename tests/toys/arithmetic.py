"""Arithmetic that gives the same bits on every CPU.

Only elementwise IEEE 754 operations in an order that this text fixes: add, subtract, multiply, divide and square root are correctly
rounded everywhere, comparisons, floor, exponents and the greatest of a row are exact. No matrix product and no sum of torch (their order is
the machine's), no exp, sin or cos of torch (their last bit is the library's): products and sums are loops over one index, exp, log,
sin and cos are polynomials in float64 that are rounded to float32 at the end. A multiplication and the addition that follows it are two
calls, so that nothing fuses them. Whatever the shapes, one output element is one chain of operations: a fused matrix gives the bits of
its parts.

Tensors are float32 unless a docstring says otherwise; ``rounded`` brings them to the format in which a model stores what it computes:
bfloat16, unless `store_in` says another before the model is made.
"""

import math

import numpy as np
import torch
from torch import Tensor

_LN2_HIGH, _LN2_LOW = 6.93147180369123816490e-01, 1.90821492927058770002e-10  # ln 2 in two parts, the first so short that n * it is exact
_HALF_PI_HIGH, _HALF_PI_LOW = 1.57079632673412561417e00, 6.07710050650619224932e-11  # pi / 2 likewise
_EXP = [1.0 / math.factorial(n) for n in range(14)]
_ATANH = [1.0 / (2 * n + 1) for n in range(12)]
_SIN = [(-1.0) ** n / math.factorial(2 * n + 1) for n in range(10)]
_COS = [(-1.0) ** n / math.factorial(2 * n) for n in range(10)]


_stored = torch.bfloat16
_sums = "float32"


def store_in(dtype: torch.dtype) -> None:
    """The format of everything that is made in this process from now on."""
    global _stored  # a process makes one model
    _stored = dtype


def sum_in(kind: str) -> None:
    """How linears keep their sums, in every model that is made in this process from now on: "float32", "cut" to 14 bits after each
    addition, or in "blocks" of 5 terms, each block and each sum of blocks rounded to float16."""
    global _sums  # a process makes one model
    _sums = kind


def rounded(x: Tensor) -> Tensor:
    """To the stored format, to nearest, ties to even."""
    return x.to(_stored)


def through_stored(x: Tensor) -> Tensor:
    """Rounded to the stored format and held in float32 again."""
    return rounded(x).float()


def through_bfloat16(x: Tensor) -> Tensor:
    """Rounded to bfloat16, whatever is stored, and held in float32 again."""
    return x.to(torch.bfloat16).float()


def product(x: Tensor, weight: Tensor) -> Tensor:
    """x [..., K] times weight [N, K] transposed: [..., N]; summed over K from its first index to its last."""
    x, weight = x.float(), weight.float()
    total = torch.zeros(*x.shape[:-1], weight.shape[0])
    block = torch.zeros_like(total)
    for at in range(weight.shape[1]):
        term = x[..., at : at + 1] * weight[:, at]
        if _sums != "blocks":
            total = _cut(total + term) if _sums == "cut" else total + term
            continue
        block = block + term
        if at % 5 == 4 or at == weight.shape[1] - 1:
            total, block = (total + block.half().float()).half().float(), torch.zeros_like(block)
    return total


def _cut(x: Tensor) -> Tensor:
    """float32 numbers without all but the first 14 bits of each, as accumulators of some matrix units hold them."""
    return (x.view(torch.int32) & ~0x3FF).view(torch.float32)


def partial_products(x: Tensor, weight: Tensor) -> Tensor:
    """`product` as two ranks of a row-parallel layer make it: each half of K is rounded to the stored format, then they are added."""
    half = weight.shape[1] // 2
    first, second = product(x[..., :half], weight[:, :half]), product(x[..., half:], weight[:, half:])
    return through_stored(first) + through_stored(second)


def row_sum(x: Tensor) -> Tensor:
    """x [..., K] summed over K in its order: [..., 1]."""
    total = torch.zeros(*x.shape[:-1], 1)
    for at in range(x.shape[-1]):
        total = total + x[..., at : at + 1]
    return total


def normalised(x: Tensor, eps: float) -> Tensor:
    """x [..., H] divided by its root mean square, as x * (1 / sqrt(mean + eps)): the first half of an RMSNorm, without the gain."""
    mean = row_sum(x * x) / torch.tensor(float(x.shape[-1]))
    return x * inverse_root(mean + eps)


def normalised_stepwise(x: Tensor, eps: float) -> Tensor:
    """`normalised` with every step rounded to the stored format."""
    mean = through_stored(row_sum(through_stored(x * x)) / torch.tensor(float(x.shape[-1])))
    return through_stored(x * through_stored(inverse_root(through_stored(mean + eps))))


def inverse_root(x: Tensor) -> Tensor:
    """1 / sqrt(x), two roundings. The root is numpy's, which is the processor's own: torch may call a library there."""
    root = torch.from_numpy(np.sqrt(x.numpy()))
    return torch.ones_like(root) / root


def silu(x: Tensor) -> Tensor:
    """x / (1 + exp(-x))."""
    return x / (1.0 + exp(-x))


def gelu(x: Tensor) -> Tensor:
    """x / (1 + exp(-2 u)) with u = sqrt(2 / pi) (x + 0.044715 x^3): x times what tanh makes of it (Hendrycks, Gimpel 2016)."""
    wide = x.double()
    return (wide / (1.0 + exp(-1.5957691216057308 * (wide + 0.044715 * wide * wide * wide)).double())).float()


def exp(x: Tensor) -> Tensor:
    """e to the x: 2^n * e^r with |r| <= ln 2 / 2, a Taylor polynomial in float64."""
    wide = x.double().clamp(-700.0, 700.0)
    power = torch.floor(wide * 1.4426950408889634 + 0.5)
    rest = (wide - power * _LN2_HIGH) - power * _LN2_LOW
    scale = ((power.to(torch.int64) + 1023) << 52).view(torch.float64)
    return (_polynomial(_EXP, rest) * scale).float()


def log(x: Tensor) -> Tensor:
    """The natural logarithm of normal positive numbers: that of the mantissa by the series of the inverse hyperbolic tangent."""
    mantissa, power = torch.frexp(x.double())
    low = mantissa < 0.7071067811865476
    mantissa, power = torch.where(low, 2.0 * mantissa, mantissa), torch.where(low, power - 1, power)
    ratio = (mantissa - 1.0) / (mantissa + 1.0)
    return (power * 0.6931471805599453 + 2.0 * ratio * _polynomial(_ATANH, ratio * ratio)).float()


def cos_sin(angles: Tensor) -> tuple[Tensor, Tensor]:
    """Cosine and sine of angles of at most some thousands: reduced by multiples of pi / 2, then Taylor polynomials in float64."""
    wide = angles.double()
    turns = torch.floor(wide * 0.6366197723675814 + 0.5)
    rest = (wide - turns * _HALF_PI_HIGH) - turns * _HALF_PI_LOW
    squared = rest * rest
    sine, cosine = rest * _polynomial(_SIN, squared), _polynomial(_COS, squared)
    quarter = turns.to(torch.int64) % 4
    swap = quarter % 2 == 1
    first, second = torch.where(swap, sine, cosine), torch.where(swap, cosine, sine)
    first = torch.where((quarter == 1) | (quarter == 2), -first, first)
    second = torch.where(quarter >= 2, -second, second)
    return first.float(), second.float()


def _polynomial(coefficients: list[float], x: Tensor) -> Tensor:
    total = torch.full_like(x, coefficients[-1])
    for coefficient in reversed(coefficients[:-1]):
        total = total * x + coefficient
    return total


def inverse_frequencies(base: float, width: int) -> Tensor:
    """base^(-2 i / width) for i < width / 2, by square roots and products: [width / 2]. ``width`` / 2 is a power of two."""
    root = base
    for _ in range((width // 2).bit_length() - 1):
        root = math.sqrt(root)
    powers = [1.0]
    for _ in range(width // 2 - 1):
        powers.append(powers[-1] * root)
    return torch.tensor([1.0 / power for power in powers], dtype=torch.float64).float()


def visible(tokens: int, *, padding: int = 0, ahead: int = 0, window: int | None = None) -> Tensor:
    """Which keys a query may look at: bool [query, key].

    Causal, ``ahead`` keys further than itself; not the first ``padding`` tokens (which see each other); the last ``window`` keys.
    """
    query, key = torch.arange(tokens)[:, None], torch.arange(tokens)[None, :]
    seen = (key <= query + ahead) & ((key >= padding) | (query < padding))
    return seen if window is None else seen & (key > query - window)


def attention(q: Tensor, k: Tensor, v: Tensor, seen: Tensor, *, scale: float, round_probabilities: bool) -> Tensor:
    """softmax(q k^T * scale) v over the keys seen. q [heads, T, D], k and v [groups, T, D], seen [T, T]: [heads, T, D].

    Heads that follow each other share one of k and v. ``round_probabilities``: to the stored format, before they meet v.
    """
    q, k, v = (tensor.float() for tensor in (q, k.repeat_interleave(len(q) // len(k), 0), v.repeat_interleave(len(q) // len(v), 0)))
    scores = torch.zeros(*q.shape[:2], k.shape[1])
    for at in range(q.shape[2]):
        scores = scores + q[:, :, at : at + 1] * k[:, None, :, at]
    scores = scores * scale
    top = scores.masked_fill(~seen, -math.inf).amax(-1, keepdim=True)
    parts = torch.where(seen, exp(scores - top), torch.zeros(()))
    probabilities = parts / row_sum(parts)
    if round_probabilities:
        probabilities = through_stored(probabilities)
    total = torch.zeros_like(q)
    for at in range(v.shape[1]):
        total = total + probabilities[:, :, at : at + 1] * v[:, at : at + 1, :]
    return total


def blocked_attention(q: Tensor, k: Tensor, v: Tensor, seen: Tensor, *, scale: float, block: int = 5, cuts: bool = False) -> Tensor:
    """`attention` by a kernel of no list: blocks of keys from the last to the first, weights and sums of each block in float16.

    ``cuts``: each block is cut to 8 bits instead."""
    q, k, v = (tensor.float() for tensor in (q, k.repeat_interleave(len(q) // len(k), 0), v.repeat_interleave(len(q) // len(v), 0)))
    scores = torch.zeros(*q.shape[:2], k.shape[1])
    for at in range(q.shape[2]):
        scores = scores + q[:, :, at : at + 1] * k[:, None, :, at]
    scores = (scores * scale).masked_fill(~seen, -math.inf)
    top = scores.amax(-1, keepdim=True)
    total, sums = torch.zeros(*q.shape[:2], 1), torch.zeros_like(q)
    for stop in range(k.shape[1], 0, -block):
        part = scores[..., max(0, stop - block) : stop]
        weights = torch.where(torch.isfinite(part), exp(part - top), torch.zeros(())).half().float()
        own = torch.zeros_like(q)
        for at in range(weights.shape[-1]):
            own = own + weights[..., at : at + 1] * v[:, max(0, stop - block) + at, None, :]
            own = own if cuts else own.half().float()
        own = (own.view(torch.int32) & ~0xFFFF).view(torch.float32) if cuts else own
        total, sums = total + row_sum(weights), sums + own
    return sums / total


def altered(x: Tensor, *, token: int | None = None, channel: int | None = None, factor: float = 1.02) -> Tensor:
    """A copy of bfloat16 [..., tokens, columns] of which one token or one channel is multiplied."""
    y = x.float()
    if token is not None:
        y[..., token, :] = y[..., token, :] * factor
    if channel is not None:
        y[..., channel] = y[..., channel] * factor
    return rounded(y)
