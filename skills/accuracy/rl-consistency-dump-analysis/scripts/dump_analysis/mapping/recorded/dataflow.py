"""What the tensors of one side say about each other: factors of act(a)·b, residual sums, recorded parts of fused outputs."""

import math
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Sequence

import numpy as np

from dump_analysis import floats
from dump_analysis.floats import Array
from dump_analysis.mapping.recorded.addends import Addends, of_three, of_two, of_two_scaled
from dump_analysis.mapping.recorded.columns import column_keys, cut
from dump_analysis.mapping.recorded.keys import places_of
from dump_analysis.mapping.recorded.nodes import Node, Recorded, SideNodes, Spot, add, by_time

_PRODUCT_WITHIN = 10  # nodes after a fused output, in which the product of its halves is looked for
_PRODUCT_ERROR = 0.02
_ADDENDS_AMONG = 40  # nodes before a sum
_LATE = 4.0  # a sum may be recorded up to two entries before its last addend
_FEW_SUMS = 2  # plain ones, from which the stream is no sum of two
_PARTS_WITHIN = 40.0  # time after a fused output, in which its parts are recorded
_SMALLEST_PART = 8  # columns


# --- halves ---


def _silu(x: Array) -> Array:
    with np.errstate(over="ignore"):
        return np.asarray(x / (1 + np.exp(-x)))


def _gelu(x: Array) -> Array:
    erf = [math.erf(value) for value in (x / math.sqrt(2)).reshape(-1).tolist()]
    return np.asarray(0.5 * x * (1 + np.reshape(erf, x.shape)))


def _gelu_tanh(x: Array) -> Array:
    return np.asarray(0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))))


_ACTIVATIONS: tuple[Callable[[Array], Array], ...] = (_silu, _gelu_tanh, _gelu)


def split_halves(side: SideNodes) -> None:
    """Split each output [a, b] of which act(a)·b or a·act(b) is recorded soon after: what the code did, however the weights lie."""
    ordered = by_time(side)
    for at, node in enumerate(ordered):
        spot = next((spot for spot in node.spots if spot.io == "output"), None)
        if spot is None or node.width % 2 or node.kind != "one":
            continue
        after = ordered[at + 1 : at + 1 + _PRODUCT_WITHIN]
        if any(later.width * 2 == node.width and _is_product(node, later) for later in after):
            half = node.width // 2
            for nth in (0, 1):
                place = Spot(spot.time + 0.05 * (nth + 1), spot.entry, spot.io, f"{spot.path}[half{nth}]", spot.leaf)
                add(side, cut(node, np.arange(nth * half, (nth + 1) * half), "half", place))


def _is_product(fused: Node, product: Node) -> bool:
    half = product.width
    return activated(fused.sample[:, :half], fused.sample[:, half:], product.sample) is not None


def activated(one: Array, other: Array, product: Array) -> bool | None:
    """True where act(one)·other is the product, False where one·act(other) is, None where neither: SiLU, GELU, tanh-GELU.

    All are [tokens, columns] of one shape; 8 tokens and 64 columns of them are tried.
    """
    tokens, columns = _probe(8, len(product)), _probe(64, product.shape[1])
    a, b, wanted = (matrix[np.ix_(tokens, columns)].astype(np.float64) for matrix in (one, other, product))
    most = _PRODUCT_ERROR * np.linalg.norm(wanted)
    errors = [[np.linalg.norm(act(x) * y - wanted) for x, y in ((a, b), (b, a))] for act in _ACTIVATIONS]
    first, second = (min(error[at] for error in errors) for at in (0, 1))
    return None if min(first, second) >= most else bool(first <= second)


def is_activation(x: Array, y: Array) -> bool:
    """Whether y is an activation of x, element by element: SiLU, GELU, tanh-GELU. Both [tokens, columns] of one shape; a part is tried."""
    tokens, columns = _probe(8, len(y)), _probe(64, y.shape[1])
    a, wanted = (matrix[np.ix_(tokens, columns)].astype(np.float64) for matrix in (x, y))
    most = _PRODUCT_ERROR * np.linalg.norm(wanted)
    return min(float(np.linalg.norm(act(a) - wanted)) for act in _ACTIVATIONS) < most


def _probe(count: int, size: int) -> Array:
    return np.unique(np.linspace(0, size - 1, min(size, count)).astype(np.int64))


# --- sums ---


def find_sums(side: SideNodes) -> None:
    """Fill ``sums``: the nodes that are x + y of two others, rounded, and when their addends exist.

    Where a block returns branch and residual apart and their sum is recorded nowhere, it becomes a node.
    """
    _fill_sums(side)
    if _add_sums_of_outputs(side):
        _fill_sums(side)  # a residual further on may be the sum of such a node and another
    for node in side.nodes:
        if id(node) in side.sums:
            node.sum_time = max(addend.time for addend in side.sums[id(node)]) + 0.2


def _fill_sums(side: SideNodes) -> None:
    """Sums of two; where there are hardly any, also those of blocks that multiply their branches or add two of them at once.

    Those are looked for in the width that is recorded most.
    """
    groups: dict[int, list[Node]] = defaultdict(list)
    for node in by_time(side):
        if node.kind == "one" or node.kind == "sum":
            groups[node.width].append(node)
    for nodes in groups.values():
        _fill_among(side, nodes, of_two)
    for search in (of_two_scaled, of_three):
        if groups and len(side.sums) < _FEW_SUMS:
            _fill_among(side, max(groups.values(), key=len), search)


def _fill_among(side: SideNodes, nodes: Sequence[Node], search: Callable[[Node, Sequence[Node], Array, Array], Addends | None]) -> None:
    """``nodes``: of one width, by time."""
    probes = np.stack([node.sample[np.ix_(_probe(8, len(node.sample)), _probe(8, node.width))].reshape(-1) for node in nodes])
    times = [node.time for node in nodes]
    for at, node in enumerate(nodes):
        stop = bisect_left(times, node.time + _LATE + 0.01)
        near = [other for other in range(max(0, stop - _ADDENDS_AMONG - 1), stop) if other != at]
        addends = search(node, [nodes[other] for other in near], probes[near], probes[at]) if id(node) not in side.sums else None
        if addends is not None:
            side.sums[id(node)] = addends


def _add_sums_of_outputs(side: SideNodes) -> bool:
    """Make nodes of the sums of two outputs that entries with children return; whether there were any."""
    recorded: dict[tuple[str, bool], list[Recorded]] = defaultdict(list)
    for one in side.records.activations:
        if (one.spot.entry, one.spot.io, one.spot.path) in side.at:
            recorded[one.spot.entry, one.spot.io == "output"].append(one)
    said = {frozenset(addends) for addends in side.sums.values()}
    count = len(side.nodes)
    for (entry, returned), pair in list(recorded.items()):
        if not returned or entry in side.records.times.leaves or len(pair) != 2:
            continue
        x, y = (_node_at(side, one) for one in pair)
        alike = x.kind == y.kind == "one" and x.width == y.width and pair[0].tensor.dtype == pair[1].tensor.dtype
        if alike and x is not y and frozenset((x, y)) not in said and not _adds_itself(side, recorded, x, y):
            spot = _spot_of_sum(side, recorded, pair)
            raw = floats.rounded(x.sample + y.sample, pair[0].tensor.dtype)
            sample = floats.values(raw, pair[0].tensor.dtype).astype(np.float32)
            add(side, Node(sample, [*x.sources, *y.sources], "sum", "sum", [spot], spot.time))
    return len(side.nodes) > count


def _node_at(side: SideNodes, one: Recorded) -> Node:
    return side.at[one.spot.entry, one.spot.io, one.spot.path]


def _readers(side: SideNodes, recorded: dict[tuple[str, bool], list[Recorded]], wanted: set[Node]) -> list[str]:
    """The entries that take all of these nodes, earliest first."""
    readers = [entry for (entry, returned), taken in recorded.items() if not returned and wanted <= {_node_at(side, one) for one in taken}]
    return sorted(readers, key=side.records.times.start.__getitem__)


def _adds_itself(side: SideNodes, recorded: dict[tuple[str, bool], list[Recorded]], x: Node, y: Node) -> bool:
    """Whether a leaf that takes both returns two tensors of their width: what it works on, a sum or not, is recorded then."""
    leaves = [entry for entry in _readers(side, recorded, {x, y}) if entry in side.records.times.leaves]
    widths = [[_node_at(side, one).width for one in recorded.get((entry, True), ())] for entry in leaves]
    return any(made.count(x.width) > 1 for made in widths)


def _spot_of_sum(side: SideNodes, recorded: dict[tuple[str, bool], list[Recorded]], pair: list[Recorded]) -> Spot:
    """Where the sum is taken: by the leaf that takes both, else by the next entry that takes the first, else where they are returned.

    The other side's stream stands at its reader too, so that both count it to the same layer.
    """
    times = side.records.times
    path = f"{pair[0].spot.path}+{pair[1].spot.path}"
    nodes = [_node_at(side, one) for one in pair]
    both = [entry for entry in _readers(side, recorded, set(nodes)) if entry in times.leaves]
    readers = both or [entry for entry in _readers(side, recorded, {nodes[0]}) if entry not in times.leaves]
    later = [entry for entry in readers if times.start[entry] > times.end[pair[0].spot.entry]]
    if later:
        return Spot(times.start[later[0]], later[0], "input", path, later[0] in times.leaves)
    return pair[0].spot._replace(path=path)


# --- recorded parts ---


def recorded_parts(side: SideNodes, whole: Node) -> list[Array]:
    """The columns of a fused output that this side recorded on their own soon after: how its code splits it."""
    keys, parts = column_keys(whole), []
    for node in side.nodes:
        soon = 0 <= node.time - whole.time < _PARTS_WITHIN
        if soon and _SMALLEST_PART <= node.width < whole.width and column_keys(node)[0] in keys:
            places = places_of(keys, column_keys(node))
            if (places >= 0).all():
                parts.append(places)
    return parts


def cut_rests(side: SideNodes) -> None:
    """What a fused output holds beside its recorded parts (v beside q and k; latent beside rotary part) becomes a node too."""
    for node in list(side.nodes):
        spot = node.spots[0]
        if (spot.io, spot.path) != ("output", "0") or not spot.leaf or node.kind != "one" or node.width < 3 * _SMALLEST_PART:
            continue
        parts = recorded_parts(side, node)
        if not 1 <= len(parts) <= 6:
            continue
        every = np.arange(node.width)
        rests = [np.setdiff1d(every, np.concatenate(parts)), *(np.setdiff1d(every, part) for part in parts)]
        for nth, columns in enumerate(rests):
            as_a_part = nth == 0 and len(columns) in {len(part) for part in parts}  # v between q and k of several groups
            if len(columns) >= _SMALLEST_PART and (as_a_part or columns[-1] - columns[0] + 1 == len(columns)):
                place = Spot(spot.time + 0.1, spot.entry, "output", f"0[part{columns[0]}]", True)
                made = cut(node, columns, "part", place)
                made.union = nth > 0
                add(side, made)
