"""The loss of a step, and what is logged of it."""


def policy_loss(log_probs, old_log_probs, advantages):
    """REINFORCE, held near the policy before the steps; log_probs and old_log_probs [1, response], advantages [1]."""
    ratio = (log_probs - old_log_probs).exp()
    penalty = ratio - 1 - (log_probs - old_log_probs)
    return (penalty - log_probs * advantages[:, None]).mean()


def metrics_of(loss, log_probs, old_log_probs, head):
    """Every value in hexadecimal, so that a log tells two runs apart by their last bit."""
    return {
        "loss": loss.item().hex(),
        "kl": (old_log_probs - log_probs).mean().item().hex(),
        "old_log_prob": old_log_probs.mean().item().hex(),
        "head": head.double().sum().item().hex(),
    }
