"""What the rollout hands to the trainer, as tensors."""

import torch
from torch.nn import functional


def rollout_data_of(rollout):
    """tokens [1, prompt + response], the lengths, the reward, and which request of the engine it was."""
    return {
        "request_ids": [rollout["request_id"]],
        "tokens": torch.tensor([rollout["prompt"] + rollout["response"]]),
        "total_lengths": [len(rollout["prompt"]) + len(rollout["response"])],
        "response_lengths": [len(rollout["response"])],
        "rewards": torch.tensor([rollout["reward"]]),
    }


def padded(tokens, multiple):
    """tokens [1, T] with zeros up to a multiple, and their positions."""
    tokens = functional.pad(tokens, (0, -tokens.shape[1] % multiple))
    return tokens, torch.arange(tokens.shape[1])[None]
