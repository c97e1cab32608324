"""In which order a fused matrix holds q, k and v: side by side, or of each group its queries, then k, then v."""

from math import gcd
from typing import Any, List, NamedTuple, Optional, Sequence, Tuple

from msprobe_files.weight_order import per_group, permutation
from msprobe_files.weight_walk import row_keys

from dump_collection.params import roles
from dump_collection.params.pairing import Pair
from dump_collection.params.places import Piece

from .contents import nearness, sample_of
from .matrices import Matrix

_MOST = 0.5  # of the rows: an order that is right fits all that are not stale; of a mean cosine: nearer to equal than to unrelated
_MOST_GROUPS, _MOST_HEADS, _NARROWEST = 1024, 64, 8  # of any model: groups of keys, heads of queries in each, width of a head and its step


class Order(NamedTuple):
    """``side``: the one whose rows are by group where the other's are side by side; "": both alike. ``sizes``: rows of q, k and v."""

    side: str
    sizes: Tuple[int, ...]
    groups: int


ALIKE = Order("", (), 1)


def found_order(train: Matrix, infer: Matrix, sizes: Sequence[int], guess: Optional[Order]) -> Tuple[Order, bool]:
    """The order that most rows bear out, and whether they do: by being equal or, where no order makes them so, near; else the guess.

    ``sizes``: rows of q, k and v where a side keeps them apart; else the order of the rows tells.
    """
    samples = sample_of(train), sample_of(infer)
    keys = row_keys(samples[0]), row_keys(samples[1])
    tried = [one for one in (guess, ALIKE) if one is not None]
    for one in tried:
        if _hits(one, *keys) > _MOST:
            return one, True
    by_sizes = _by_sizes(sizes) if len(sizes) == 3 else []
    candidates = by_sizes or _by_rows(*keys)
    best = max(candidates, key=lambda one: _hits(one, *keys), default=ALIKE)
    if _hits(best, *keys) > _MOST:
        return best, True
    others = by_sizes or _of_any_sizes(train.rows)
    best = max(others, key=lambda one: _hits_of_values(one, *keys), default=ALIKE)
    if _hits_of_values(best, *keys) > _MOST:
        return best, True
    near = {one: _nearness(one, *samples) for one in [*tried, *others]}
    best = max(near, key=lambda one: near[one])
    return (best, True) if near[best] > _MOST else (guess or ALIKE, False)


def _hits(order: Order, train: Any, infer: Any) -> float:
    """The share of rows that are equal in an order. ``train``, ``infer``: their keys."""
    fitted = _in_order(order, train, infer)
    return float((fitted[0] == fitted[1]).mean()) if fitted is not None else 0.0


def _nearness(order: Order, train: Any, infer: Any) -> float:
    """The mean cosine of the samples' rows in an order."""
    fitted = _in_order(order, train, infer)
    return nearness(*fitted) if fitted is not None else 0.0


def _hits_of_values(order: Order, train: Any, infer: Any) -> float:
    """The share of v's rows that are equal in an order by group: those of q and k may stand in the order of rotary pairs."""
    import numpy as np

    fitted = _in_order(order, train, infer)
    if fitted is None or not order.side:
        return 0.0
    of_values = np.asarray(per_group(order.sizes, order.groups)) >= order.sizes[0] + order.sizes[1]
    return float((fitted[0] == fitted[1])[of_values].mean())


def _in_order(order: Order, train: Any, infer: Any) -> Optional[Tuple[Any, Any]]:
    """What both sides have for each row, in the order of the fused one; None where the order is of another number of rows."""
    import numpy as np

    if sum(order.sizes) not in (0, len(train)):
        return None
    if not order.side:
        return train, infer
    fused, plain = (train, infer) if order.side == "train" else (infer, train)
    return fused, plain[np.asarray(per_group(order.sizes, order.groups))]


def _by_sizes(sizes: Sequence[int]) -> List[Order]:
    shared = gcd(gcd(sizes[0], sizes[1]), sizes[2])
    counts = [count for count in range(2, min(shared, _MOST_GROUPS) + 1) if shared % count == 0]
    return [Order(side, tuple(sizes), count) for count in counts for side in ("train", "infer")]


def _of_any_sizes(rows: int) -> List[Order]:
    """Every order by group of so many rows: groups of n heads of queries, one of keys and one of values, all of one width."""
    found = []
    for heads in range(1, _MOST_HEADS + 1):
        for width in range(_NARROWEST, rows // (2 * (heads + 2)) + 1, _NARROWEST):
            groups, left = divmod(rows, (heads + 2) * width)
            if not left and groups <= _MOST_GROUPS:
                sizes = (groups * heads * width, groups * width, groups * width)
                found += [Order(side, sizes, groups) for side in ("train", "infer")]
    return found


def _by_rows(train: Any, infer: Any) -> List[Order]:
    """The order by group that turns one side's rows into the other's, from where the runs of rows begin."""
    found = []
    for side, fused, plain in (("train", train, infer), ("infer", infer, train)):
        places = permutation(fused, plain)  # of each row of the plain matrix, where it stands in the fused one
        one = _grouping(places) if places is not None else None
        if one is not None:
            found.append(Order(side, *one))
    return found


def _grouping(places: Any) -> Optional[Tuple[Tuple[int, ...], int]]:
    import numpy as np

    breaks = np.flatnonzero(np.diff(places) != 1)
    if not len(breaks):
        return None
    queries = int(breaks[0]) + 1  # of the first group
    stretch = int(places[queries])
    if stretch <= queries or len(places) % stretch or (stretch - queries) % 2:
        return None
    groups, keys = len(places) // stretch, (stretch - queries) // 2
    sizes = (groups * queries, groups * keys, groups * keys)
    return (sizes, groups) if np.array_equal(np.argsort(places), per_group(sizes, groups)) else None


def stretches(order: Order, side: str) -> Tuple[Tuple[int, int], ...]:
    """The rows of a side's matrix, put side by side: q of all groups, then k, then v."""
    total = sum(order.sizes)
    if order.side != side:
        return ((0, total),)
    shares = [size // order.groups for size in order.sizes]
    width, found, above = sum(shares), [], 0
    for share in shares:
        found += [(group * width + above, group * width + above + share) for group in range(order.groups)]
        above += share
    return tuple(found)


def misread(order: Order, pair: Pair, groups: Optional[int]) -> Optional[Tuple[str, str]]:
    """Which side ("" where either may be) reads its fused rows in another order than they are in, and how: group or plain; else None.

    Only where the names say how both sides read.  ``groups``: of the model, where it is known.
    """
    reads = [_reads(side) for side in (pair.train, pair.infer)]
    if None in reads or (order.groups == 1 and groups == 1):
        return None
    expected = "" if reads[0] == reads[1] else "train" if reads[0] == "group" else "infer"
    if order.side == expected:
        return None
    apart = [len(side) > 1 for side in (pair.train, pair.infer)]
    side = "infer" if apart[0] else "train" if apart[1] else ""
    fused = reads[1] if side == "infer" else reads[0] if side == "train" else "group"
    return side, str(fused)


def _reads(pieces: Sequence[Piece]) -> Optional[str]:
    """How a side reads its rows: q, k and v that are kept apart are side by side."""
    if len(pieces) > 1:
        return "plain"
    module = pieces[0].parameter.name.rpartition(".")[0]
    return "group" if roles.READS_BY_GROUP.search(module) else "plain" if roles.READS_SIDE_BY_SIDE.search(module) else None
