"""The decoder as trainers have it: tensors [1, tokens, H], sums and rotation outside any module."""

import torch
from torch import Tensor, nn

from . import parts
from .mixture import TrainerMixture
from .parts import ENDS, Embedding, Linear, Norm, Weights, activated, add, linear, norm_of, normed
from .shapes import FAULTY_LAYER, HEADS, LAYERS, LOW_KEY, TOKENS, WIDTH, Architecture, Fault
from .weights import weights


class Rotary(nn.Module):
    """Records the positions, as the rotary module of a trainer's model does; returns its table."""

    def forward(self, hidden: Tensor, positions: Tensor) -> Tensor:
        return (positions[..., None].float() * 0.7 ** torch.arange(WIDTH // 2)).cos().to(hidden.dtype)


class Attention(nn.Module):
    def __init__(self, architecture: Architecture, made: Weights, stem: str) -> None:
        super().__init__()
        self.architecture = architecture
        stems = [f"{stem}.{name}" for name in "qkv"]
        if architecture.fused:
            order = parts.group_order(architecture.groups) if architecture.fused == "groups" else None
            self.qkv = linear(made, stems, turned=architecture.turned, order=order)
        else:
            self.q, self.k, self.v = (linear(made, [one], turned=architecture.turned) for one in stems)
        if architecture.qk_norm:
            self.q_norm, self.k_norm = Norm(made, f"{stem}.q_norm"), Norm(made, f"{stem}.k_norm")
        self.o_proj = linear(made, [f"{stem}.o_proj"], turned=architecture.turned)

    def forward(self, hidden: Tensor, positions: Tensor) -> Tensor:
        q, k, v = (x.view(1, TOKENS, -1, WIDTH) for x in self._projected(hidden))
        if self.architecture.qk_norm:
            q, k = self.q_norm(q), self.k_norm(k)
        q, k, v = (x[0] for x in (q, k, v))
        if self.architecture.rotated:
            q, k = (parts.rotated(x, positions[0], self.architecture.rotated) for x in (q, k))
        projected: Tensor = self.o_proj(parts.attended(q, k, v)[None])
        return projected

    def _projected(self, hidden: Tensor) -> tuple[Tensor, ...]:
        groups = self.architecture.groups
        if not self.architecture.fused:
            return self.q(hidden), self.k(hidden), self.v(hidden)
        made: Tensor = self.qkv(hidden)
        if self.architecture.fused == "blocks":
            return made.split_with_sizes([HEADS * WIDTH, groups * WIDTH, groups * WIDTH], -1)
        return tuple(x.flatten(-2) for x in made.view(1, TOKENS, groups, -1).split_with_sizes([HEADS // groups * WIDTH, WIDTH, WIDTH], -1))


class LatentAttention(nn.Module):
    def __init__(self, made: Weights, stem: str) -> None:
        super().__init__()
        self.q_a, self.q_b, self.kv_a, self.kv_b = (linear(made, [f"{stem}.{name}"]) for name in ("q_a", "q_b", "kv_a", "kv_b"))
        self.q_a_norm, self.kv_a_norm = Norm(made, f"{stem}.q_a_norm"), Norm(made, f"{stem}.kv_a_norm")
        self.o_proj = linear(made, [f"{stem}.o_proj"])

    def forward(self, hidden: Tensor, positions: Tensor) -> Tensor:
        q = self.q_b(self.q_a_norm(self.q_a(hidden)))
        both = self.kv_a(hidden)
        kv = self.kv_b(self.kv_a_norm(both[..., :LOW_KEY]))
        mixed = parts.attended(*parts.latent_heads(q, kv, both[..., LOW_KEY:], positions[0]))
        projected: Tensor = self.o_proj(mixed[None])
        return projected


class MLP(nn.Module):
    def __init__(self, architecture: Architecture, made: Weights, stem: str) -> None:
        super().__init__()
        self.architecture, turned = architecture, architecture.turned
        if architecture.gate_fused:
            self.gate_up = linear(made, [f"{stem}.gate", f"{stem}.up"])
        else:
            self.gate = linear(made, [f"{stem}.gate"]) if architecture.gated else None
            self.up = linear(made, [f"{stem}.up"], turned=turned)
        self.down = linear(made, [f"{stem}.down"], turned=turned)

    def forward(self, x: Tensor) -> Tensor:
        if self.architecture.gate_fused:
            gate, up = self.gate_up(x).chunk(2, -1)
            middle = activated(self.architecture, gate) * up
        elif self.gate is not None:
            middle = activated(self.architecture, self.gate(x)) * self.up(x)
        else:
            middle = activated(self.architecture, self.up(x))
        down: Tensor = self.down(middle)
        return down


class Layer(nn.Module):
    def __init__(self, architecture: Architecture, made: Weights, layer: int, fault: Fault | None) -> None:
        super().__init__()
        self.architecture, stem = architecture, f"layers.{layer}"
        self.input_norm, self.post_norm, self.attn_post_norm, self.mlp_post_norm = (
            norm_of(made, stem, name) for name in ("input_norm", "post_norm", *ENDS)
        )
        self.attention = LatentAttention(made, stem) if architecture.latent else Attention(architecture, made, stem)
        self.mlp = TrainerMixture(architecture, made, stem) if architecture.experts else MLP(architecture, made, stem)
        self.forgets = fault == "missing_residual" and layer == FAULTY_LAYER

    def forward(self, hidden: Tensor, positions: Tensor) -> Tensor:
        scale = self.architecture.residual_multiplier
        residual = torch.zeros_like(hidden) if self.forgets else hidden
        read = normed(self.input_norm, hidden)
        attended: Tensor = self.attention(read, positions)
        if self.architecture.parallel:
            summed: Tensor = self.mlp(read if self.post_norm is None else self.post_norm(hidden)) + attended + residual
            return summed
        hidden = add(residual, normed(self.attn_post_norm, attended), scale)
        return add(hidden, normed(self.mlp_post_norm, self.mlp(normed(self.post_norm, hidden))), scale)


class Model(nn.Module):
    def __init__(self, architecture: Architecture, fault: Fault | None) -> None:
        super().__init__()
        made = weights(architecture, fault)
        self.architecture = architecture
        self.embedding = Embedding(made["embedding.weight"])
        self.positions = Rotary() if architecture.rotated else Embedding(made["positions.weight"])
        self.layers = nn.ModuleList(Layer(architecture, made, layer, fault) for layer in range(LAYERS))
        self.final_norm = Norm(made, "final_norm")
        self.lm_head = Linear(made["lm_head.weight"], None)

    def forward(self, ids: Tensor, positions: Tensor) -> Tensor:
        hidden = self.embedding(ids)
        if not self.architecture.rotated:
            hidden = hidden + self.positions(positions)
        else:
            self.positions(hidden, positions)
        if self.architecture.embedding_multiplier != 1.0:
            hidden = hidden * self.architecture.embedding_multiplier
        for layer in self.layers:
            hidden = layer(hidden, positions)
        logits: Tensor = self.lm_head(self.final_norm(hidden))
        return logits / self.architecture.logits_divisor


def run(model: Model, ids: Tensor, positions: Tensor) -> None:
    """One prefill. ids and positions int64 [tokens]."""
    model(ids[None], positions[None])
