"""How wide an attention head is, as far as the dump or the mapping says: for naming heads, never for comparing."""

from collections.abc import Iterator, Sequence

from dump_analysis.boundaries import place_of
from dump_analysis.pairs import Found, Pair

_WITH_HEADS = frozenset(
    f"layers.N.{name}.out" for name in ("q", "k", "v", "q_norm", "k_norm", "q_rope", "k_rope", "attn_core", "kv_b", "q_b")
)


def widths(pairs: Sequence[Pair]) -> dict[str, int]:
    """Boundary -> columns of a head, where a recorded shape or a reshape of a row that has heads tells one width for all."""
    with_heads = [pair for pair in pairs if place_of(pair.row.boundary) in _WITH_HEADS]
    told = {width for pair in with_heads for width in _told(pair)}
    if len(told) != 1:
        return {}
    width = told.pop()
    return {pair.row.boundary: width for pair in with_heads}


def _told(pair: Pair) -> Iterator[int]:
    """Last axes of tensors that are recorded as (tokens, heads, width), and of reshapes to more than two axes."""
    for operand, found in ((pair.row.train, pair.train), (pair.row.infer, pair.infer)):
        yield from _recorded(found)
        for source in operand.sources:
            yield from (op.shape[-1] for op in source.steps or () if op.op == "reshape" and len(op.shape) > 2 and op.shape[-1] > 1)


def _recorded(found: Found) -> Iterator[int]:
    for tensor in found.tensors:
        axes = [size for size in tensor.shape if size != 1]
        if len(axes) == 3:
            yield axes[-1]
