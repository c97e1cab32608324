"""Rows of two weights matched by content, and what their order is called."""

from typing import Any, Dict, NamedTuple, Optional, Sequence, Tuple

_GOLDEN = 0x9E3779B97F4A7C15  # 2**64 over the golden ratio: consecutive multiples are spread evenly (splitmix64)


class Order(NamedTuple):
    """How a sequence was put into another order.

    ``kind``: ``halves`` exchanged, ``reversed``, ``interleaved`` (``parts`` runs of ``block`` rows each, read one of every run in turn,
    within each ``within`` rows) or the same backwards (``deinterleaved``), ``blocks`` of ``block`` rows anyhow; block 1: single rows.
    """

    kind: str
    block: int
    parts: int = 0
    within: int = 0


def odd_numbers(start: int, stop: int) -> Any:
    """Odd 64-bit multipliers for the places ``start … stop``, always the same."""
    import numpy as np

    state = np.arange(start + 1, stop + 1, dtype=np.uint64) * np.uint64(_GOLDEN)
    state = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    return (state ^ (state >> np.uint64(27))) | np.uint64(1)


def folded(values: Any) -> Any:
    """The bits of float64 values as uint64 whose low half tells them apart, too; both zeros are one."""
    import numpy as np

    bits = np.ascontiguousarray(values + 0.0).view(np.uint64)
    return bits ^ (bits >> np.uint64(33))


def permutation(mine: Any, theirs: Any) -> Any:
    """For each of their keys the place among mine that holds it, each place once, its own where that fits; None where a key lacks."""
    import numpy as np

    if len(mine) != len(theirs):
        return None
    places = np.arange(len(mine))
    moved = np.flatnonzero(mine != theirs)
    left, right = moved[np.argsort(mine[moved], kind="stable")], moved[np.argsort(theirs[moved], kind="stable")]
    if not np.array_equal(mine[left], theirs[right]):
        return None
    places[right] = left
    return places


def order_of(places: Any) -> Order:
    """What an order is called: at each place stands what was at ``places``, which are all of 0 … n - 1."""
    import numpy as np

    count = len(places)
    if np.array_equal(places, np.arange(count)[::-1]):
        return Order("reversed", 1)
    if count % 2 == 0 and np.array_equal(places, np.roll(np.arange(count), count // 2)):
        return Order("halves", count // 2)
    for kind, one in (("interleaved", places), ("deinterleaved", np.argsort(places))):
        found = _interleaved(one)
        if found is not None:
            return Order(kind, *found)
    starts = np.flatnonzero(np.diff(places) != 1) + 1
    edges = [*starts.tolist(), *places[starts].tolist(), int(places[0]), count]
    return Order("blocks", int(np.gcd.reduce(edges)))


def _interleaved(places: Any) -> Optional[Tuple[int, int, int]]:
    """Block, parts and rows within, of an order that takes a block of every part in turn, in each stretch of ``within`` rows anew."""
    import numpy as np

    count = len(places)
    breaks = np.flatnonzero(np.diff(places) != 1)
    if places[0] != 0 or not len(breaks):
        return None
    block = int(breaks[0]) + 1
    far = int(places[block])
    if block >= count or far <= block or far % block:
        return None
    tops = places[::block]
    jumps = np.flatnonzero(np.diff(tops) != far)
    parts = int(jumps[0]) + 1 if len(jumps) else len(tops)
    within = parts * far
    if parts < 2 or count % within:
        return None
    made = np.arange(count).reshape(-1, parts, far // block, block).swapaxes(1, 2).reshape(-1)
    return (block, parts, within) if np.array_equal(made, places) else None


def per_group(sizes: Sequence[int], groups: int) -> Any:
    """The order in which a fused matrix holds its parts by group: of each group its share of every part (queries, then k, then v).

    Element i: which row of the parts side by side stands at row i of the fused matrix. Source: Megatron-Core's linear_qkv.
    """
    import numpy as np

    starts = np.cumsum([0, *sizes[:-1]])
    shares = [size // groups for size in sizes]
    rows = [start + group * share + np.arange(share) for group in range(groups) for start, share in zip(starts, shares)]
    return np.concatenate(rows)


def grouping_of(places: Any, sizes: Sequence[int]) -> Optional[Tuple[bool, int]]:
    """Whether an order of fused parts is that by group (True) or the way back (False), and of how many groups; None: neither."""
    import numpy as np

    for groups in (count for count in range(2, min(sizes) + 1) if all(size % count == 0 for size in sizes)):
        order = per_group(sizes, groups)
        for forward, one in ((True, order), (False, np.argsort(order))):
            if np.array_equal(places, one):
                return forward, groups
    return None


def runs_of(places: Sequence[int]) -> Tuple[Tuple[int, int], ...]:
    """Rising whole numbers as stretches [start, stop)."""
    found: Dict[int, int] = {}
    start = None
    for place in places:
        if start is None or found[start] != place:
            start = place
        found[start] = place + 1
    return tuple(found.items())
