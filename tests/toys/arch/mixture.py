"""A mixture of experts as trainers and as engines run it: what either records, and where it rounds.

The trainer's router returns logits, shares and numbers of the chosen experts, and its experts own stacks of matrices; every step of an
expert is rounded. The engine's experts are one kernel that owns nothing: it is handed hidden states and logits, keeps an expert in float32
but for the product between its matrices, and rounds the shares. Both sum in float32.
"""

import torch
from torch import Tensor, nn
from torch.nn import functional

from .parts import Linear, Weights
from .shapes import HIDDEN, Architecture


def chosen(architecture: Architecture, logits: Tensor) -> tuple[Tensor, Tensor]:
    """Shares, float32, and numbers of the chosen experts [tokens, top_k]."""
    wide = logits.float()
    scores = wide.sigmoid() if architecture.router.startswith("sigmoid") else wide.softmax(-1)
    shares, experts = scores.topk(architecture.top_k)
    if architecture.router.endswith("normalised"):
        shares = shares / shares.sum(-1, keepdim=True)
    return shares * architecture.routed_scale, experts


class Router(nn.Module):
    def __init__(self, architecture: Architecture, made: Weights, stem: str) -> None:
        super().__init__()
        self.architecture = architecture
        self.weight = nn.Parameter(made[f"{stem}.router.weight"])

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        logits = functional.linear(x, self.weight)
        return logits, *chosen(self.architecture, logits)


class Experts(nn.Module):
    def __init__(self, architecture: Architecture, made: Weights, stem: str) -> None:
        super().__init__()
        self.gate_up, self.down = (nn.Parameter(one) for one in stacks(architecture, made, stem))

    def forward(self, x: Tensor, experts: Tensor, shares: Tensor) -> Tensor:
        total = torch.zeros(len(x), HIDDEN)
        for nth in range(experts.shape[1]):
            for at, expert in enumerate(experts[:, nth].tolist()):
                gate, up = (self.gate_up[expert] @ x[at]).chunk(2)
                total[at] += shares[at, nth] * (self.down[expert] @ (functional.silu(gate) * up)).float()
        return total.to(x.dtype)


class TrainerMixture(nn.Module):
    def __init__(self, architecture: Architecture, made: Weights, stem: str) -> None:
        super().__init__()
        self.gate, self.experts = Router(architecture, made, stem), Experts(architecture, made, stem)

    def forward(self, x: Tensor) -> Tensor:
        flat = x.view(-1, HIDDEN)
        _, shares, experts = self.gate(flat)
        found: Tensor = self.experts(flat, experts, shares)
        return found.view(x.shape)


class Kernel(nn.Module):
    """Owns no parameters that a dump would hold."""

    def __init__(self, architecture: Architecture, made: Weights, stem: str) -> None:
        super().__init__()
        self.architecture, self.stacks = architecture, [one.float() for one in stacks(architecture, made, stem)]

    def forward(self, x: Tensor, logits: Tensor) -> Tensor:
        shares, experts = chosen(self.architecture, logits)
        shares, (first, last) = shares.to(x.dtype).float(), self.stacks
        total = torch.zeros(len(x), HIDDEN)
        for nth in range(experts.shape[1]):
            for at, expert in enumerate(experts[:, nth].tolist()):
                gate, up = (first[expert] @ x[at].float()).chunk(2)
                total[at] += shares[at, nth] * (last[expert] @ (functional.silu(gate) * up).to(x.dtype).float())
        return total.to(x.dtype)


class EngineMixture(nn.Module):
    def __init__(self, architecture: Architecture, made: Weights, stem: str) -> None:
        super().__init__()
        self.gate, self.experts = Linear(made[f"{stem}.router.weight"], None), Kernel(architecture, made, stem)

    def forward(self, x: Tensor) -> Tensor:
        found: Tensor = self.experts(x, self.gate(x))
        return found


def stacks(architecture: Architecture, made: Weights, stem: str) -> tuple[Tensor, Tensor]:
    """Gate over up [E, 2 I, H] and down [E, H, I], two of the experts exchanged where the architecture says so."""
    first, last = made[f"{stem}.experts.gate_up"], made[f"{stem}.experts.down"]
    order = list(range(architecture.experts))
    if architecture.exchanged:
        order[1], order[2] = 2, 1
    return first[order], last[order]
