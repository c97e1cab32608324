"""The decoder as engines have it: tensors [tokens, H], fused projections, logits of the last token alone."""

import torch
from torch import Tensor, nn
from torch.nn import functional

from . import parts
from .mixture import EngineMixture
from .parts import ENDS, Embedding, Norm, Weights, activated, add, linear, norm_of, normed
from .shapes import FAULTY_LAYER, HEADS, LAYERS, LOW_KEY, LOW_QUERY, SHARED, TOKENS, WIDTH, Architecture, Fault
from .weights import weights


class Rotary(nn.Module):
    """Rotates q and k, flat [tokens, heads * width]."""

    def __init__(self, columns: int, width: int) -> None:
        super().__init__()
        self.columns, self.width = columns, width

    def forward(self, positions: Tensor, query: Tensor, key: Tensor) -> tuple[Tensor, Tensor]:
        q, k = (parts.rotated(x.view(TOKENS, -1, self.width), positions, self.columns).view(x.shape) for x in (query, key))
        return q, k


class Core(nn.Module):
    def forward(self, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        width = query.shape[-1] // HEADS
        return parts.attended(query.view(TOKENS, HEADS, width), key.view(TOKENS, -1, width), value.view(TOKENS, -1, WIDTH))


class Attention(nn.Module):
    def __init__(self, architecture: Architecture, made: Weights, stem: str) -> None:
        super().__init__()
        self.architecture = architecture
        self.qkv = linear(made, [f"{stem}.{name}" for name in "qkv"])
        if architecture.qk_norm:
            self.q_norm, self.k_norm = Norm(made, f"{stem}.q_norm"), Norm(made, f"{stem}.k_norm")
        self.rotary = Rotary(architecture.rotated, WIDTH) if architecture.rotated else None
        self.core, self.o_proj = Core(), linear(made, [f"{stem}.o_proj"])

    def forward(self, positions: Tensor, hidden: Tensor) -> Tensor:
        own = self.architecture.groups * WIDTH
        q, k, v = self.qkv(hidden).split([HEADS * WIDTH, own, own], -1)
        if self.architecture.qk_norm:
            q, k = (norm(x.view(TOKENS, -1, WIDTH)).view(x.shape) for norm, x in ((self.q_norm, q), (self.k_norm, k)))
        if self.rotary is not None:
            q, k = self.rotary(positions, q, k)
        projected: Tensor = self.o_proj(self.core(q, k, v))
        return projected


class LatentAttention(nn.Module):
    def __init__(self, made: Weights, stem: str) -> None:
        super().__init__()
        self.qkv_a = linear(made, [f"{stem}.q_a", f"{stem}.kv_a"])
        self.q_b, self.kv_b, self.o_proj = (linear(made, [f"{stem}.{name}"]) for name in ("q_b", "kv_b", "o_proj"))
        self.q_a_norm, self.kv_a_norm = Norm(made, f"{stem}.q_a_norm"), Norm(made, f"{stem}.kv_a_norm")
        self.rotary, self.core = Rotary(SHARED, SHARED), Core()

    def forward(self, positions: Tensor, hidden: Tensor) -> Tensor:
        low, latent, shared = self.qkv_a(hidden).split([LOW_QUERY, LOW_KEY, SHARED], -1)
        q = self.q_b(self.q_a_norm(low)).view(TOKENS, HEADS, -1)
        kv = self.kv_b(self.kv_a_norm(latent))
        turned, shared = self.rotary(positions, q[..., WIDTH:].reshape(TOKENS, -1), shared)
        q = torch.cat([q[..., :WIDTH], turned.view(TOKENS, HEADS, -1)], -1)
        q, k, v = parts.latent_heads(q.flatten(1), kv, shared, None)
        projected: Tensor = self.o_proj(self.core(q.flatten(1), k.flatten(1), v.flatten(1)))
        return projected


class Act(nn.Module):
    """act(gate)·up of the two halves, or act(up)."""

    def __init__(self, architecture: Architecture) -> None:
        super().__init__()
        self.architecture = architecture

    def forward(self, x: Tensor) -> Tensor:
        if not self.architecture.gated:
            return activated(self.architecture, x)
        gate, up = x.chunk(2, -1)
        return activated(self.architecture, gate) * up


class MLP(nn.Module):
    def __init__(self, architecture: Architecture, made: Weights, stem: str) -> None:
        super().__init__()
        self.up = linear(made, [f"{stem}.gate", f"{stem}.up"] if architecture.gated else [f"{stem}.up"])
        self.act, self.down = Act(architecture), linear(made, [f"{stem}.down"])

    def forward(self, x: Tensor) -> Tensor:
        down: Tensor = self.down(self.act(self.up(x)))
        return down


class Layer(nn.Module):
    def __init__(self, architecture: Architecture, made: Weights, layer: int, fault: Fault | None) -> None:
        super().__init__()
        self.architecture, stem = architecture, f"layers.{layer}"
        self.forgets = fault == "missing_residual" and layer == FAULTY_LAYER
        self.input_norm, self.attn_post_norm, self.mlp_post_norm = (norm_of(made, stem, name) for name in ("input_norm", *ENDS))
        self.post_norm = norm_of(made, stem, "post_norm", forgets=self.forgets)
        self.attention = LatentAttention(made, stem) if architecture.latent else Attention(architecture, made, stem)
        self.mlp = EngineMixture(architecture, made, stem) if architecture.experts else MLP(architecture, made, stem)

    def forward(self, positions: Tensor, hidden: Tensor, residual: Tensor | None) -> tuple[Tensor, Tensor] | Tensor:
        if not self.architecture.adds_in_norm:
            return self._summed(positions, hidden)
        assert self.input_norm is not None
        assert self.post_norm is not None
        hidden, residual = self.input_norm.apart(hidden, residual)
        hidden = normed(self.attn_post_norm, self.attention(positions, hidden))
        hidden, residual = self.post_norm.apart(hidden, residual)
        return normed(self.mlp_post_norm, self.mlp(hidden)), residual

    def _summed(self, positions: Tensor, hidden: Tensor) -> Tensor:
        scale = self.architecture.residual_multiplier
        residual = torch.zeros_like(hidden) if self.forgets else hidden
        read = normed(self.input_norm, hidden)
        attended: Tensor = self.attention(positions, read)
        if self.architecture.parallel:
            return residual + attended + self.mlp(read if self.post_norm is None else self.post_norm(hidden))
        hidden = add(residual, normed(self.attn_post_norm, attended), scale)
        return add(hidden, normed(self.mlp_post_norm, self.mlp(normed(self.post_norm, hidden))), scale)


class Logits(nn.Module):
    """Takes the head's weight from elsewhere, cuts the padding off, divides."""

    def __init__(self, divisor: float, words: int) -> None:
        super().__init__()
        self.divisor, self.words = divisor, words

    def forward(self, head: Embedding, hidden: Tensor) -> Tensor:
        return functional.linear(hidden, head.weight)[:, : self.words] / self.divisor


class Model(nn.Module):
    def __init__(self, architecture: Architecture, fault: Fault | None) -> None:
        super().__init__()
        made = weights(architecture, fault)
        tables = [functional.pad(made[f"{name}.weight"], (0, 0, 0, architecture.padded)) for name in ("embedding", "lm_head")]
        self.architecture = architecture
        self.embedding = Embedding(tables[0])
        self.head = self.embedding if architecture.tied else Embedding(tables[1])
        self.positions = Embedding(made["positions.weight"]) if not architecture.rotated else None
        self.layers = nn.ModuleList(Layer(architecture, made, layer, fault) for layer in range(LAYERS))
        self.final_norm = Norm(made, "final_norm")
        self.logits = Logits(architecture.logits_divisor, len(made["embedding.weight"]))

    def forward(self, ids: Tensor, positions: Tensor) -> Tensor:
        hidden = self.embedding(ids)
        if self.positions is not None:
            hidden = hidden + self.positions(positions)
        if self.architecture.embedding_multiplier != 1.0:
            hidden = hidden * self.architecture.embedding_multiplier
        residual = None
        for layer in self.layers:
            made = layer(positions, hidden, residual)
            hidden, residual = made if isinstance(made, tuple) else (made, None)
        return self.final_norm.apart(hidden, residual)[0]

    def compute_logits(self, hidden: Tensor) -> Tensor:
        logits: Tensor = self.logits(self.head, hidden)
        return logits


def run(model: Model, ids: Tensor, positions: Tensor) -> None:
    """One prefill of one request. ids and positions int64 [tokens]; the model gets its ids as int32."""
    model.compute_logits(model(ids.to(torch.int32), positions)[-1:])
