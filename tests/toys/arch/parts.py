"""What both sides compute: norms, linears, rotation, attention. Results are rounded to bfloat16."""

import torch
from torch import Tensor, nn
from torch.nn import functional

from .shapes import HEADS, SHARED, TOKENS, WIDTH, Architecture

Weights = dict[str, Tensor]
ENDS = ("attn_post_norm", "mlp_post_norm")


def add(residual: Tensor, branch: Tensor, multiplier: float = 1.0) -> Tensor:
    """residual + multiplier · branch; the product is rounded before it is added, as eager code does."""
    return residual + (branch if multiplier == 1.0 else branch * multiplier)


def activated(architecture: Architecture, x: Tensor) -> Tensor:
    return functional.silu(x) if architecture.activation == "silu" else functional.gelu(x, approximate="tanh")


class Norm(nn.Module):
    """Root mean square norm or LayerNorm. Given a residual stream it adds that first and returns the sum too."""

    def __init__(self, made: Weights, stem: str, *, forgets: bool = False) -> None:
        super().__init__()
        self.weight = nn.Parameter(made[f"{stem}.weight"])
        self.bias = nn.Parameter(made[f"{stem}.bias"]) if f"{stem}.bias" in made else None
        self.forgets = forgets

    def forward(self, x: Tensor, residual: Tensor | None = None) -> Tensor | tuple[Tensor, Tensor]:
        if residual is not None:
            x = x if self.forgets else add(residual, x)
        wide = x.float()
        if self.bias is None:
            normed = wide * torch.rsqrt(wide.square().mean(-1, keepdim=True) + 1e-6) * self.weight.float()
        else:
            normed = functional.layer_norm(wide, wide.shape[-1:], self.weight.float(), self.bias.float())
        return normed.to(x.dtype) if residual is None else (normed.to(x.dtype), x)

    def apart(self, x: Tensor, residual: Tensor | None) -> tuple[Tensor, Tensor]:
        """The normed value and the stream, be there one to add or not."""
        if residual is None:
            return self(x), x
        made: tuple[Tensor, Tensor] = self(x, residual)
        return made


def norm_of(made: Weights, stem: str, name: str, *, forgets: bool = False) -> Norm | None:
    """A norm of a layer, where the architecture has it."""
    return Norm(made, f"{stem}.{name}", forgets=forgets) if f"{stem}.{name}.weight" in made else None


def normed(norm: Norm | None, x: Tensor) -> Tensor:
    """x itself without a norm."""
    return x if norm is None else norm(x)


class Embedding(nn.Module):
    def __init__(self, weight: Tensor) -> None:
        super().__init__()
        self.weight = nn.Parameter(weight)

    def forward(self, ids: Tensor) -> Tensor:
        return functional.embedding(ids.long(), self.weight)


class Linear(nn.Module):
    """``turned``: the weight is kept [in, out]."""

    def __init__(self, weight: Tensor, bias: Tensor | None, *, turned: bool = False) -> None:
        super().__init__()
        self.weight = nn.Parameter(weight.T.contiguous() if turned else weight)
        self.bias = nn.Parameter(bias) if bias is not None else None
        self.turned = turned

    def forward(self, x: Tensor) -> Tensor:
        return functional.linear(x, self.weight.T if self.turned else self.weight, self.bias)


def linear(made: Weights, stems: list[str], *, turned: bool = False, order: Tensor | None = None) -> Linear:
    """Several projections in one, their rows in ``order``."""
    matrix = torch.cat([made[f"{stem}.weight"] for stem in stems])
    bias = torch.cat([made[f"{stem}.bias"] for stem in stems]) if f"{stems[0]}.bias" in made else None
    if order is not None:
        matrix, bias = matrix[order], bias[order] if bias is not None else None
    return Linear(matrix, bias, turned=turned)


def rotated(x: Tensor, positions: Tensor, columns: int) -> Tensor:
    """x [tokens, heads, width]: the first ``columns`` of each head turned by the token's position."""
    frequencies = 100.0 ** (-torch.arange(0, columns, 2) / columns)
    angles = positions[:, None].float() * frequencies
    cos, sin = angles.cos()[:, None], angles.sin()[:, None]
    left, right = x[..., :columns].float().chunk(2, -1)
    turned = torch.cat([left * cos - right * sin, right * cos + left * sin], -1)
    return torch.cat([turned.to(x.dtype), x[..., columns:]], -1)


def attended(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """q [tokens, heads, width], k and v [tokens, groups, width]: flat [tokens, heads * width of v]; causal."""
    q, k, v = (x.transpose(0, 1).float() for x in (q, k, v))
    k, v = (x.repeat_interleave(HEADS // len(x), 0) for x in (k, v))
    mixed = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
    return mixed.transpose(0, 1).reshape(TOKENS, -1).to(torch.bfloat16)


def latent_heads(q: Tensor, kv: Tensor, shared: Tensor, positions: Tensor | None) -> tuple[Tensor, Tensor, Tensor]:
    """q, k, v of latent attention. ``shared`` [tokens, 8]: the rotated part of all keys; positions None: it is rotated already."""
    q, kv, shared = q.view(TOKENS, HEADS, -1), kv.view(TOKENS, HEADS, -1), shared.view(TOKENS, 1, SHARED)
    turned = q[..., WIDTH:]
    if positions is not None:
        turned, shared = rotated(turned, positions, SHARED), rotated(shared, positions, SHARED)
    q = torch.cat([q[..., :WIDTH], turned], -1)
    return q, torch.cat([kv[..., :WIDTH], shared.expand(-1, HEADS, -1)], -1), kv[..., WIDTH:]


def group_order(groups: int) -> Tensor:
    """Rows of q | k | v in the order of a matrix that keeps each group's heads of q, its k and its v together."""
    own = HEADS * WIDTH
    q, k, v = torch.arange(own), own + torch.arange(groups * WIDTH), own + groups * WIDTH + torch.arange(groups * WIDTH)
    return torch.cat([torch.cat([x.view(groups, -1)[at] for x in (q, k, v)]) for at in range(groups)])
