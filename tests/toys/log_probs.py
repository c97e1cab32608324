"""Log-probabilities of the prompt's tokens but the first, as a module of its own: the same on both sides."""

import torch
from torch import Tensor, nn

from . import arithmetic
from .switches import TEMPERATURE, Switches

_NAMES = ("log_probs", "temperature", "divided_logits", "all_words", "rolled_labels")


class LogProbs(nn.Module):
    """logits [..., rows, words] and labels [..., rows] to [..., rows], float32; divided by a temperature first, as a trainer may.

    With ``all_words`` of every word: [..., rows, words].
    """

    def __init__(self, on: Switches) -> None:
        super().__init__()
        self.temperature = TEMPERATURE if on.has("temperature") else 1.0
        self.all_words = on.has("all_words")
        self.labels: Tensor | None = None  # those that are not handed in

    def forward(self, logits: Tensor, labels: Tensor | None = None) -> Tensor:
        labels = self.labels if labels is None else labels
        assert labels is not None
        scaled = logits.float() / torch.tensor(self.temperature)
        top = scaled.amax(-1, keepdim=True)
        total = arithmetic.row_sum(arithmetic.exp(scaled - top))
        every = scaled - top - arithmetic.log(total)
        return every if self.all_words else every.gather(-1, labels[..., None].long())[..., 0]


def log_probs_of(on: Switches) -> LogProbs | None:
    """The module, where a side has it."""
    return LogProbs(on) if any(on.has(name) for name in _NAMES) else None


def call(module: LogProbs, on: Switches, logits: Tensor, ids: Tensor) -> None:
    """Log-probabilities of all tokens but the first, or of all rows, the last one's being of the first token."""
    if on.has("divided_logits"):
        logits = arithmetic.rounded(logits.float() / torch.tensor(TEMPERATURE))
    if on.has("rolled_labels"):
        module.labels = ids.roll(-1, -1)
        module(logits)
    else:
        module(logits[..., :-1, :], ids[..., 1:])
