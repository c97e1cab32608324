"""The choice of a router: which experts a token goes to, and with which shares, from its logits [T, E].

Scores are the softmax of all logits or the sigmoid of each; the k greatest are chosen, and their scores are the shares, divided by their
sum or not, times one factor. A softmax over the k chosen logits is the softmax of all divided by the sum of the chosen (the exponentials
cancel), so both are one function. Shares are float32: bound `SHARE_ROUNDOFFS` (exp 1, a sum of up to 512 terms, two divisions).
Sources: transformers 5.19 (Mixtral, Qwen3-MoE, DeepSeek-V2), Megatron-Core 0.16 `topk_routing_with_score_function`, vLLM 0.32 and SGLang
0.5 `fused_topk`.
"""

from itertools import combinations, islice
from typing import NamedTuple

import numpy as np

from dump_analysis.floats import Array
from dump_analysis.replay.emulate import Emulated, exactly

SHARE_ROUNDOFFS = 32.0
TIE = 2.0**-22
_MOST = 64  # ways to choose among experts that tie
TOP_K, ROUTED_SCALE = "top_k", "routed_scale"


class Router(NamedTuple):
    """``name``: how it is told; ``softmax``: over all logits, else the sigmoid of each; ``normalised``: shares of a token sum up to one."""

    name: str
    softmax: bool
    normalised: bool


ROUTERS = (
    Router("softmax_normalised", True, True),
    Router("softmax_of_all", True, False),
    Router("sigmoid_normalised", False, True),
    Router("sigmoid", False, False),
)


class Choice(NamedTuple):
    """The experts of each token by number [T, k], counting up, and their shares [T, k]."""

    experts: Array
    shares: Emulated


def scores(router: Router, logits: Array) -> Array:
    """The score of each expert, float64."""
    if not router.softmax:
        with np.errstate(over="ignore"):
            found: Array = 1.0 / (1.0 + np.exp(-logits))
        return found
    powers = np.exp(logits - logits.max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True)


def chosen(logits: Array, count: int) -> Array:
    """The experts with the ``count`` greatest logits of each token, counting up; of equal ones the first."""
    best = np.argsort(-logits, axis=1, kind="stable")[:, :count]
    found: Array = np.sort(best, axis=1)
    return found


def shares_of(router: Router, logits: Array, experts: Array) -> Emulated:
    """The shares of these experts [T, k] as float32 arithmetic may leave them."""
    own = np.take_along_axis(scores(router, logits), experts, axis=1)
    return exactly(own / own.sum(axis=1, keepdims=True) if router.normalised else own).roundoffs(SHARE_ROUNDOFFS)


def choice(router: Router, logits: Array, count: int) -> Choice:
    """What a router makes of its logits."""
    experts = chosen(logits, count)
    return Choice(experts, shares_of(router, logits, experts))


def choice_of_all(shares: Array) -> Choice:
    """Recorded shares of all experts [T, E], nought for those that are not chosen, as the experts of each token: as many as the most."""
    count = max(1, int((shares != 0).sum(axis=1).max(initial=1)))
    experts = chosen(np.abs(shares), count)
    return Choice(experts, exactly(np.take_along_axis(shares, experts, axis=1)))


# --- near ties ---


def alternatives(router: Router, logits: Array, count: int) -> list[Array]:
    """The experts [count] that a router may have chosen of one token's logits [E]: of those that tie for the last places any, counting up.

    Float32 may make equal scores of what lies `TIE` apart, relative. At most `_MOST` of them.
    """
    own = scores(router, logits[None])[0]
    last = float(np.sort(own)[-count])
    sure, tied = np.flatnonzero(own > last * (1 + TIE)), np.flatnonzero(np.abs(own - last) <= TIE * last)
    picks = islice(combinations(tied.tolist(), count - len(sure)), _MOST)
    return [np.sort(np.concatenate([sure, np.array(pick, np.int64)])) for pick in picks]


def margins(logits: Array, count: int) -> Array:
    """How far the last chosen logit of each token lies above the first that is not [T]; infinite where all are chosen."""
    if count >= logits.shape[1]:
        return np.full(len(logits), np.inf)
    ordered = -np.sort(-logits, axis=1)
    found: Array = ordered[:, count - 1] - ordered[:, count]
    return found
