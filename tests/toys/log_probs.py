"""Log-probabilities of the prompt's tokens but the first, as a module of its own: the same on both sides."""

import torch
from torch import Tensor, nn

from . import arithmetic
from .switches import TEMPERATURE, Switches


class LogProbs(nn.Module):
    """logits [..., rows, words] and labels [..., rows] to [..., rows], float32; divided by a temperature first, as a trainer may."""

    def __init__(self, on: Switches) -> None:
        super().__init__()
        self.temperature = TEMPERATURE if on.has("temperature") else 1.0

    def forward(self, logits: Tensor, labels: Tensor) -> Tensor:
        scaled = logits.float() / torch.tensor(self.temperature)
        top = scaled.amax(-1, keepdim=True)
        total = arithmetic.row_sum(arithmetic.exp(scaled - top))
        return (scaled - top - arithmetic.log(total)).gather(-1, labels[..., None].long())[..., 0]
