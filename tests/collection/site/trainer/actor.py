"""The policy that is trained; everything but its head is frozen."""

import torch
from batch import padded
from loss import metrics_of, policy_loss
from toys.switches import CLEAN
from toys.trainer import Qwen2ForCausalLM


class Actor:
    def __init__(self, pad_multiple):
        torch.manual_seed(0)
        self.pad_multiple = pad_multiple
        self.model = Qwen2ForCausalLM(CLEAN)
        self.model.requires_grad_(False)
        self.model.lm_head.weight.requires_grad_(True)
        self.optimizer = torch.optim.SGD([self.model.lm_head.weight], lr=0.5)

    def _forward(self, tokens):
        """Log-probabilities [1, T - 1] of every token after the first."""
        length = tokens.shape[1]
        logits = self.model(*padded(tokens, self.pad_multiple))[:, :length].float()
        return logits[:, :-1].log_softmax(-1).gather(-1, tokens[:, 1:, None])[..., 0]

    @torch.no_grad()
    def compute_log_prob(self, rollout_data):
        """Log-probabilities [1, response] before the steps."""
        log_probs = self._forward(rollout_data["tokens"])
        return log_probs[:, log_probs.shape[1] - rollout_data["response_lengths"][0] :]

    def update(self, rollout_data, old_log_probs):
        """One step; returns its metrics."""
        advantages = rollout_data["rewards"] - 0.5
        log_probs = self._forward(rollout_data["tokens"])
        log_probs = log_probs[:, log_probs.shape[1] - rollout_data["response_lengths"][0] :]
        loss = policy_loss(log_probs, old_log_probs, advantages)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return metrics_of(loss, log_probs, old_log_probs, self.model.lm_head.weight)
