"""Context parallel: the ranks of a step hold other tokens of one prompt, one piece each or a pair of pieces from both ends (zigzag).

Zigzag: rank r of n holds pieces r and 2n − 1 − r of 2n, so that causal attention costs all ranks the same
(Megatron-core ``get_batch_on_this_cp_rank``).
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from dump_analysis.floats import Array
from dump_analysis.mapping.tokens.token_vectors import Integers

_AGREE = 0.9  # of the ids


class TokenPieces(NamedTuple):
    """Where the tokens of a prompt lie: (number of the rank among its step's, start, stop), in the order of the prompt.

    ``first``: where they begin in the other side's ids; ``matches``: how many ids are equal; ``zigzag``: two pieces a rank.
    """

    order: list[tuple[int, int, int]]
    first: int
    matches: int
    zigzag: bool

    @property
    def length(self) -> int:
        return sum(stop - start for _, start, stop in self.order)


def token_pieces(ranks: Sequence[Integers], others: Sequence[Integers]) -> TokenPieces | None:
    """How the ids of several ranks make up ids of the other side; None where they do not, or where each rank has all of them."""
    vectors = [rank.ids[0].values for rank in ranks if rank.ids]
    if len(vectors) < 2 or len(vectors) < len(ranks) or len({len(vector) for vector in vectors}) > 1:
        return None
    if all(np.array_equal(vectors[0], other) for other in vectors[1:]):
        return None
    found: list[TokenPieces] = []
    for order in _orders(len(vectors), len(vectors[0])):
        whole = np.concatenate([vectors[rank][start:stop] for rank, start, stop in order])
        edges = np.cumsum([stop - start for _, start, stop in order])[:-1]
        for vector in (vector for other in others for vector in other.ids):
            at, matches = _best_place(whole, vector.values)
            # Where the other side begins another sequence the ranks ran other prompts.
            if matches >= _AGREE * len(whole) and not np.isin(at + edges, vector.starts).any():
                found.append(TokenPieces(order, at, matches, len(order) > len(vectors)))
    return max(found, key=lambda pieces: pieces.matches, default=None)


def _orders(ranks: int, length: int) -> list[list[tuple[int, int, int]]]:
    """The orders that trainers use: rank after rank, and zigzag where each rank's tokens halve."""
    plain = [(rank, 0, length) for rank in range(ranks)]
    if length % 2:
        return [plain]
    half = length // 2
    up = [(rank, 0, half) for rank in range(ranks)]
    return [plain, up + [(rank, half, length) for rank in reversed(range(ranks))]]


def _best_place(part: Array, whole: Array) -> tuple[int, int]:
    """Where a run of ids fits best into another, and how many are equal there."""
    if len(part) > len(whole):
        return 0, 0
    counted = [int((whole[at : at + len(part)] == part).sum()) for at in range(len(whole) - len(part) + 1)]
    best = int(np.argmax(counted))
    return best, counted[best]
