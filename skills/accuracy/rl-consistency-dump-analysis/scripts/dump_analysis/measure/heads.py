"""How wide an attention head is, as far as the dump or the mapping says: for naming heads, never for comparing."""

import itertools
import math
from collections.abc import Iterator, Sequence

from dump_analysis.boundaries import place_of
from dump_analysis.pairs import Pair

_WITH_HEADS = frozenset(
    f"layers.N.{name}.out" for name in ("q", "k", "v", "q_norm", "k_norm", "q_rope", "k_rope", "attn_core", "kv_b", "q_b")
)


def widths(pairs: Sequence[Pair], tokens: Sequence[int] | None) -> dict[str, int]:
    """Boundary -> columns of a head, where what is recorded or cut tells one width for all. ``tokens``: shape of the compared ids."""
    with_heads = [pair for pair in pairs if place_of(pair.row.boundary) in _WITH_HEADS]
    told = {width for pair in with_heads for width in _told(pair, math.prod(tokens) if tokens is not None else None)}
    if len(told) != 1:
        return {}
    width = told.pop()
    return {pair.row.boundary: width for pair in with_heads}


def _told(pair: Pair, tokens: int | None) -> Iterator[int]:
    """The last axis of tensors recorded as (tokens, heads, width), and of reshapes into groups of which whole parts are cut."""
    for operand, found in ((pair.row.train, pair.train), (pair.row.infer, pair.infer)):
        for tensor in found.tensors:
            axes = [size for size in tensor.shape if size != 1]
            if len(axes) == 3 and (tokens is None or axes[0] == tokens):
                yield axes[-1]
        for source in operand.sources:
            steps = source.steps or ()
            for op, then in itertools.pairwise(steps):
                if op.op == "reshape" and len(op.shape) == 4 and then.op == "slice" and op.shape[-1] > 1:
                    yield op.shape[-1]
