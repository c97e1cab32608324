"""Programs that compute the operators in float32 as kernels do, rounded where their names say, and what a formula is given of them.

All arithmetic is `toys.arithmetic`'s: elementwise operations in an order that is written down, so that every CPU gives the same bits.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import torch
from dump_analysis.floats import Array
from dump_analysis.replay.emulate import explained
from dump_analysis.replay.formulas import Formula, Given, Variant
from torch import Tensor
from toys import arithmetic

DTYPES = {"bfloat16": torch.bfloat16, "float16": torch.float16, "float32": torch.float32}
TOKENS, WIDTH, ROWS, HEAD, EPS = 24, 64, 48, 16, 1e-6
Sums = Callable[[Tensor, Tensor], Tensor]


class Recorded(NamedTuple):
    """What a module would have recorded: what its formula is given, and its outputs in float64."""

    given: Given
    outputs: tuple[Array, ...]


def values(seed: int, *shape: int, dtype: str, scale: float = 1.0, mean: float = 0.0) -> Tensor:
    """Normal numbers on the grid of ``dtype``."""
    drawn = np.random.default_rng(seed).standard_normal(shape) * scale + mean
    return torch.from_numpy(drawn).float().to(DTYPES[dtype])


def wide(x: Tensor) -> Array:
    """The same numbers in float64."""
    found: Array = x.double().numpy()
    return found


def recorded(inputs: tuple[Tensor, ...], weights: dict[str, Tensor], outputs: tuple[Tensor, ...], **config: float) -> Recorded:
    """The tensors of a module; the outputs' dtype is the first one's."""
    dtype = str(outputs[0].dtype).removeprefix("torch.")
    given = Given(tuple(map(wide, inputs)), {name: wide(weight) for name, weight in weights.items()}, dtype, config)
    return Recorded(given, tuple(map(wide, outputs)))


# --- orders in which a sum of products is added ---


def backward(x: Tensor, weight: Tensor) -> Tensor:
    """From the last term to the first."""
    return arithmetic.product(x.flip(-1), weight.flip(-1))


def lanes(x: Tensor, weight: Tensor) -> Tensor:
    """Eight sums side by side, added at the end, as vector units do."""
    total = arithmetic.product(x[..., ::8], weight[:, ::8])
    for lane in range(1, 8):
        total = total + arithmetic.product(x[..., lane::8], weight[:, lane::8])
    return total


def pairwise(x: Tensor, weight: Tensor) -> Tensor:
    """Halves, down to single terms."""
    middle = weight.shape[1] // 2
    if middle == 0:
        return arithmetic.product(x, weight)
    return pairwise(x[..., :middle], weight[:, :middle]) + pairwise(x[..., middle:], weight[:, middle:])


ORDERS: dict[str, Sums] = {"forward": arithmetic.product, "backward": backward, "lanes": lanes, "pairwise": pairwise}


# --- the operators ---


def linear(dtype: str, seed: int, rounding: str, sums: Sums = arithmetic.product) -> Recorded:
    """[TOKENS, WIDTH] to [TOKENS, ROWS]; rounding: a variant of the formula, or the fault "bias_missing"; "cast_first": of float32."""
    to, stored = DTYPES[dtype], "float32" if rounding.startswith("cast_first") else dtype
    x, weight = values(seed, TOKENS, WIDTH, dtype=stored), values(seed + 1, ROWS, WIDTH, dtype=stored, scale=0.2)
    bias = values(seed + 2, ROWS, dtype=stored)
    if stored != dtype:
        y = sums(x.to(to), weight.to(to)) + (bias.to(to).float() if rounding.endswith("bias_in_acc") else 0.0)
        kept = {"weight": weight, "bias": bias} if rounding.endswith("bias_in_acc") else {"weight": weight}
        return recorded((x,), kept, (y.to(to),))
    if rounding.startswith("partials"):
        parts = int(rounding.split("_")[1])
        first, *rest = (sums(a, b).to(to) for a, b in zip(x.chunk(parts, 1), weight.chunk(parts, 1), strict=True))
        for part in rest:
            first = (first.float() + part.float()).to(to)
        return recorded((x,), {"weight": weight}, (first,))
    y = sums(x, weight)
    if rounding == "bias_in_acc":
        y = y + bias.float()
    elif rounding == "bias_after_cast":
        y = y.to(to).float() + bias.float()
    return recorded((x,), {"weight": weight} if rounding == "plain" else {"weight": weight, "bias": bias}, (y.to(to),))


def fp8_linear(dtype: str, seed: int) -> Recorded:
    """[TOKENS, WIDTH] to [TOKENS, ROWS] of operands that torch casts to e4m3, scaled by token and by row of the weight."""
    given = linear(dtype, seed, "bias_in_acc")
    x, weight, bias = (torch.from_numpy(part).float() for part in (given.given.inputs[0], *given.given.weights.values()))
    scales = [part.abs().amax(1, keepdim=True) / 448.0 for part in (x, weight)]
    small = [(part / scale).to(torch.float8_e4m3fn).float() for part, scale in zip((x, weight), scales, strict=True)]
    y = arithmetic.product(*small) * scales[0] * scales[1].T + bias
    return given._replace(outputs=(wide(y.to(DTYPES[dtype])),))


def rms_norm(
    dtype: str, seed: int, rounding: str, *, eps: float = EPS, scale: float = 1.0, heads: str = "", wide_gain: bool = False
) -> Recorded:
    """Norms of [TOKENS, WIDTH]; rounding: a variant of the formula, or "second_input_lost+...".

    heads: "one" gain for all heads or "each" its own; wide_gain: it is of float32, whatever the dtype.
    """
    to = DTYPES[dtype]
    x, other = (values(seed + at, TOKENS, WIDTH, dtype=dtype, scale=scale) for at in (0, 1))
    offset = 1.0 if rounding.startswith("1+w") else 0.0
    shape = {"": (WIDTH,), "one": (HEAD,), "each": (WIDTH // HEAD, HEAD)}[heads]
    weight = values(seed + 2, *shape, dtype="float32" if wide_gain else dtype, scale=0.2, mean=1.0 - offset)
    *before, rounding = rounding.removeprefix("1+w+").split("+")
    total = x.float() if before in ([], ["second_input_lost"]) else x.float() + other.float()
    stored = total.to(to)
    if before == ["add_rounded"]:
        total = stored.float()
    rows = total.view(TOKENS, -1, weight.shape[-1])
    normed = _normed(rows, weight.float() + offset, to, rounding, eps).view(x.shape)
    inputs, outputs = ((x, other), (normed, stored)) if before else ((x,), (normed,))
    return recorded(inputs, {"weight": weight}, outputs, eps=EPS)


def _normed(x: Tensor, gain: Tensor, to: torch.dtype, rounding: str, eps: float) -> Tensor:
    if rounding == "rstd_rounded":
        mean = arithmetic.row_sum(x * x) / torch.tensor(float(x.shape[-1]))
        inverse = arithmetic.inverse_root(mean + eps).to(to).float()
        return ((x * inverse).to(to).float() * gain).to(to)
    if rounding in ("all_rounded", "all_rounded_and_root"):
        mean = (arithmetic.row_sum((x * x).to(to).float()) / torch.tensor(float(x.shape[-1]))).to(to).float()
        square = (mean + eps).to(to).float()
        inverse = arithmetic.inverse_root(square) if rounding == "all_rounded" else 1.0 / square.sqrt().to(to).float()
        inverse = inverse.to(to).float()
        return ((x * inverse).to(to).float() * gain).to(to)
    y = arithmetic.normalised(x, eps)
    if rounding.startswith("cast_to"):
        return y.to(DTYPES[rounding.split("_")[2]]).float() * gain
    return ((y.to(to).float() if rounding == "cast_before_weight" else y) * gain).to(to)


def norm_linear(dtype: str, seed: int, rounding: str, *, eps: float = EPS, fault: str = "") -> Recorded:
    """A norm of [TOKENS, WIDTH] and a product, one module; rounding: a variant of the norm and one of the linear; fault: "bias_missing"."""
    of_norm, _, of_linear = rounding.rpartition("+")
    of_layer = of_norm.removeprefix("layer_norm+")
    norm = rms_norm(dtype, seed, of_norm, eps=eps) if of_layer == of_norm else layer_norm(dtype, seed, of_layer)
    to, weight, bias = DTYPES[dtype], values(seed + 5, ROWS, WIDTH, dtype=dtype, scale=0.2), values(seed + 6, ROWS, dtype=dtype)
    y = arithmetic.product(torch.from_numpy(norm.outputs[0]).to(to), weight)
    if of_linear == "bias_after_cast":
        y = y.to(to).float() + bias.float()
    elif of_linear == "bias_in_acc" and fault != "bias_missing":
        y = y + bias.float()
    weights = {f"norm_{name}": made for name, made in norm.given.weights.items()}
    weights |= {"weight": wide(weight)} if of_linear == "plain" else {"weight": wide(weight), "bias": wide(bias)}
    return Recorded(norm.given._replace(weights=weights), (wide(y.to(to)),))


def layer_norm(dtype: str, seed: int, rounding: str) -> Recorded:
    """Norms of [TOKENS, WIDTH] with a mean that is not nought."""
    to = DTYPES[dtype]
    x = values(seed, TOKENS, WIDTH, dtype=dtype, mean=0.5)
    weight, bias = (values(seed + at, WIDTH, dtype=dtype, mean=1.0, scale=0.2) for at in (1, 2))
    width = torch.tensor(float(WIDTH))
    centred = x.float() - arithmetic.row_sum(x.float()) / width
    y = centred * arithmetic.inverse_root(arithmetic.row_sum(centred * centred) / width + 1e-5)
    if rounding == "cast_before_weight":
        y = ((y.to(to).float() * weight.float()).to(to).float() + bias.float()).to(to)
    else:
        y = (y * weight.float() + bias.float()).to(to)
    return recorded((x,), {"weight": weight, "bias": bias}, (y,), eps=1e-5)


def embedding(dtype: str, seed: int, scale: float) -> Recorded:
    """Rows of a table of 32, times a scale in float32."""
    table = values(seed, 32, WIDTH, dtype=dtype)
    ids = torch.arange(TOKENS) * 7 % 32
    rows = table[ids]
    made = rows if scale == 1.0 else (rows.float() * torch.tensor(scale, dtype=torch.float32)).to(DTYPES[dtype])
    return recorded((ids[:, None],), {"weight": table}, (made,), scale=scale)


def residual_add(dtype: str, seed: int, rounding: str, addends: int, multiplier: float = 1.0) -> Recorded:
    """The sum of some [TOKENS, WIDTH], the second of two times a multiplier; rounding: a variant of the formula."""
    to = DTYPES[dtype]
    inputs = tuple(values(seed + at, TOKENS, WIDTH, dtype=dtype) for at in range(addends))
    order = {"stepwise_ends_first": (0, 2, 1), "stepwise_branches_first": (1, 2, 0)}.get(rounding, tuple(range(addends)))
    total, *rest = (inputs[at].float() for at in order)
    for one in rest:
        product = one * torch.tensor(multiplier)
        total = total + (product.to(to).float() if rounding == "product_rounded" else product)
        if rounding.startswith("stepwise"):
            total = total.to(to).float()
    return recorded(inputs, {}, (total.to(to),), multiplier=multiplier)


def log_probs(
    dtype: str,
    seed: int,
    *,
    chosen: bool = False,
    temperature: float = 1.0,
    scaled: str = "float32",
    padding: int = 0,
    padded: bool = False,
) -> Recorded:
    """Log-probabilities of ROWS words; scaled: the format of the quotient; padding: nought columns, ``padded`` in the normaliser too."""
    logits, labels = values(seed, TOKENS, ROWS, dtype=dtype, scale=3.0), torch.arange(TOKENS) * 5 % ROWS
    scores = (logits.float() / torch.tensor(temperature)).to(DTYPES[scaled]).float()
    every = torch.cat([scores, torch.zeros(TOKENS, padding)], 1) if padded else scores
    top = every.amax(1, keepdim=True)
    made = scores - top - arithmetic.log(arithmetic.row_sum(arithmetic.exp(every - top)))
    inputs = (logits, *([labels[:, None]] if chosen else []), *([torch.zeros(TOKENS, padding)] if padding else []))
    made = made.gather(1, labels[:, None]) if chosen else made
    return recorded(inputs, {}, (made.to(DTYPES[dtype]),), temperature=temperature)


def _sigmoid(x: Tensor) -> Tensor:
    return torch.ones(()) / (1.0 + arithmetic.exp(-x))


def _gelu_tanh(x: Tensor) -> Tensor:
    inner = 0.7978845608028654 * (x + 0.044715 * x * x * x)
    tanh = 2.0 * _sigmoid(2.0 * inner) - 1.0
    return 0.5 * x * (1.0 + tanh)


FUNCTIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "silu": arithmetic.silu,
    "gelu_tanh": _gelu_tanh,
    "gelu_sigmoid": lambda x: x * _sigmoid(1.702 * x),
    "relu": lambda x: x.clamp(min=0.0),
}


def activation(dtype: str, seed: int, function: str) -> Recorded:
    """One function of [TOKENS, WIDTH]."""
    x = values(seed, TOKENS, WIDTH, dtype=dtype)
    return recorded((x,), {}, (FUNCTIONS[function](x.float()).to(DTYPES[dtype]),))


def gated(dtype: str, seed: int, rounding: str, *, fused: bool = False) -> Recorded:
    """function(gate) * up; rounding: a variant of the formula, or one with gate and up exchanged; fused: one input."""
    to = DTYPES[dtype]
    given = tuple(values(seed + at, TOKENS, WIDTH, dtype=dtype, scale=2.0) for at in (0, 1))
    gate, up = reversed(given) if "exchanged" in rounding else given
    function, *_, ending = rounding.split("+")
    acted = FUNCTIONS[function](gate.float())
    made = ((acted.to(to).float() if ending == "act_rounded" else acted) * up.float()).to(to)
    inputs: Any = (torch.cat(given, 1),) if fused else given
    return recorded(inputs, {}, (made,))


# --- what variants make of them ---


def named(formula: Formula, name: str) -> Variant:
    """A variant or a fault by its name."""
    return next(variant for variant in (*formula.variants, *formula.faults) if variant.name == name)


def outside(variant: Variant, made: Recorded, output: int = 0) -> int:
    """How many elements of an output a variant does not explain."""
    return int((~explained(made.outputs[output], variant.run(made.given)[output])).sum())
