"""Canonical names of joined rows from their role in the data flow; no name of a module is read.

The residual stream is followed from the embedding: a row that is the sum of the stream and another row is its next
station, odd stations after attention, even ones after the MLP. What lies between two stations is named by what feeds it
and what it feeds.  Where the stream skips layers (one that changes nothing has no station) or ends among them, rows are
named by their place in the repeating block.  Rows that have no role keep their train entry's own name.
"""

from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import NamedTuple

from dump_analysis.mapping.joining.joined import Joined
from dump_analysis.mapping.naming.attention import name_attention
from dump_analysis.mapping.naming.parallel import factors_of, name_factors, name_side_by_side, side_by_side
from dump_analysis.mapping.naming.rowgraph import RowGraph, first_spot, graph_of, is_made_up, is_norm, last_layer
from dump_analysis.mapping.naming.shared_expert import name_shared, shared_of
from dump_analysis.mapping.naming.stream import stream_of
from dump_analysis.mapping.recorded.nodes import SideNodes, Slot

_MOST_PARTS = 2  # gate and up


class _Block(NamedTuple):
    """What lies between two stations of the stream. ``branch``: what is added to the stream at its end.

    ``skips``: the stations of other blocks should lie between.
    """

    prefix: str
    start: int
    end: int
    branch: int | None
    attention: bool
    skips: bool


class _Labels(NamedTuple):
    """``layer``: row -> the trainer's layer, where both sides count it to one layer. ``last``: the number of the last layer, -1 without."""

    layer: dict[int, int]
    last: int

    def inside(self, row: int) -> bool:
        """Whether a row stands in a layer; the norm after the last one does not, though it looks like the next layer's beginning."""
        return self.layer.get(row, self.last + 1) <= self.last


class Names(NamedTuple):
    """A unique name for every row, in the order of the rows. ``doubtful``: those whose layer the stream does not tell."""

    names: list[str]
    doubtful: set[str]


def names_of(rows: Sequence[Joined], train: SideNodes, infer: SideNodes) -> Names:
    """Name every row."""
    if not rows:
        return Names([], set())
    graph = graph_of(rows, train, infer)
    found, doubtful = _by_role(graph, _labels(rows, train))
    names = _unique(rows, _voted(rows, found))
    return Names(names, {names[n] for n in doubtful})


def _labels(rows: Sequence[Joined], train: SideNodes) -> _Labels:
    both = {
        n: (row.train.layer, row.infer.layer - row.train.layer)
        for n, row in enumerate(rows)
        if row.train.layer is not None and row.infer.layer is not None
    }
    shift = Counter(apart for _, apart in both.values()).most_common(1)
    return _Labels({n: layer for n, (layer, apart) in both.items() if apart == shift[0][0]}, last_layer(train))


def has_role(name: str, row: Joined) -> bool:
    """Whether a name says what a row is; a fused projection is no place of its own, and other rows bear their entry's name."""
    return not name.startswith(first_spot(row.train).entry) and not name.endswith(".qkv.out")


def _by_role(graph: RowGraph, labels: _Labels) -> tuple[dict[int, str], set[int]]:
    """Names of the rows that have a role, and the rows whose layer is in doubt."""
    stations, branches = stream_of(graph)
    names = {stations[0]: "embedding.out"}
    order = sorted(range(len(graph.rows)), key=lambda n: graph.time[n])
    blocks = _blocks(graph, labels, stations, branches)
    doubtful: set[int] = set()
    for block in blocks:
        names[block.end] = block.prefix + ("resid_attn" if block.attention else "resid_mlp")
        inside = [n for n in order if graph.time[block.start] <= graph.time[n] <= graph.time[block.end] and n not in stations]
        beside = side_by_side(graph, block.start, block.end)
        if block.skips:
            doubtful |= {block.start, block.end}
        elif beside:
            name_side_by_side(graph, names, block.prefix, block.start, beside, inside)
        else:
            _name_block(graph, names, block, [n for n in inside if n not in names])
    cut_off = any(graph.time[n] > graph.time[stations[-1]] and labels.inside(n) for n in order)
    if doubtful or cut_off:
        doubtful |= _name_by_place(graph, labels, names)
    if labels.last >= 0 or (blocks and not blocks[-1].attention):
        _name_end(graph, names, stations[-1], [n for n in order if not labels.inside(n)])
    return names, doubtful


def _blocks(graph: RowGraph, labels: _Labels, stations: Sequence[int], branches: Sequence[int | None]) -> list[_Block]:
    """What lies between the stations: attention and MLP in turn, unless what is added says that stations are missing."""
    blocks: list[_Block] = []
    kinds = _late_start(graph, labels, stations, branches)
    offsets: dict[bool, int] = {}
    layer, attention = -1, False
    for at in range(1, len(stations)):
        start, end, branch = stations[at - 1], stations[at], branches[at]
        seen = labels.layer.get(branch) if branch is not None else None
        beside = bool(side_by_side(graph, start, end))
        kind = not attention and not beside
        if branch is not None and seen is not None and not beside:
            kind = kinds.setdefault(graph.rows[branch].train.slot, kind)
        expected = layer + int(kind or not attention)
        number = expected
        if seen is not None:
            passed = [own for n, own in labels.layer.items() if graph.time[start] < graph.time[n] <= graph.time[end] and n not in stations]
            number = max(expected, seen - offsets.setdefault(kind, min(passed, default=seen) - expected))
        blocks.append(_Block(f"layers.{number}.", start, end, branch, kind, (kind == attention and not beside) or number > expected))
        layer, attention = number, kind
    return blocks


def _late_start(graph: RowGraph, labels: _Labels, stations: Sequence[int], branches: Sequence[int | None]) -> dict[Slot | None, bool]:
    """The slot of what is added first, as no attention, where that of another block stands before it in the same layer."""
    added = [n for n in branches if n is not None and n in labels.layer]
    if not added or added[0] != branches[1]:
        return {}
    first = graph.rows[added[0]].train.slot
    earliest = min(added, key=lambda n: graph.rows[n].train.slot or (0.0, "", "", ""))
    slot = graph.rows[earliest].train.slot
    same = [n for n, layer in labels.layer.items() if layer == labels.layer[added[0]] and graph.rows[n].train.slot == slot]
    passed = any(graph.time[stations[0]] < graph.time[n] < graph.time[added[0]] for n in same)
    return {first: False} if slot != first and passed else {}


def _name_by_place(graph: RowGraph, labels: _Labels, names: dict[int, str]) -> set[int]:
    """Name rows without a role like the rows of other layers at their place in the repeating block; which rows these are."""

    def place(n: int) -> tuple[object, object]:
        return graph.rows[n].train.slot, graph.rows[n].infer.slot

    known: dict[tuple[object, object], tuple[str, int]] = {}
    for n, name in names.items():
        parts = name.split(".", 2)
        if n in labels.layer and parts[0] == "layers" and not parts[2].startswith("resid"):
            known.setdefault(place(n), (parts[2], int(parts[1]) - labels.layer[n]))
    taken = set(names.values())
    found: set[int] = set()
    for n, layer in labels.layer.items():
        if n in names or place(n) not in known or not labels.inside(n):
            continue
        kind, offset = known[place(n)]
        name = f"layers.{layer + offset}.{kind}"
        if name not in taken:
            names[n] = name
            taken.add(name)
            found.add(n)
    return found


def _name_block(graph: RowGraph, names: dict[int, str], block: _Block, inside: Sequence[int]) -> None:
    branch, core = _branch(graph, names, block)
    if core is not None and (core == block.start or is_norm(graph, block.start, core)):
        core = None  # the whole block is one module
    width = graph.width[block.start]
    normed = [n for n in inside if n in graph.after[block.start] and graph.width[n] == width and n != branch and n not in names]
    norm = next((n for n in normed if is_norm(graph, block.start, n)), None)
    if norm is not None:
        names[norm] = block.prefix + ("input_norm.out" if block.attention else "post_norm.out")
    root = block.start if norm is None else norm
    rest = [n for n in inside if n not in names and n != branch]
    if block.attention:
        if branch is not None:
            names[branch] = block.prefix + "o_proj.out"
        if core is not None:
            names[core] = block.prefix + "attn_core.out"
            rest = [n for n in rest if n != core and graph.time[n] <= graph.time[core]]
        name_attention(graph, names, block.prefix, rest, root)
    else:
        _name_mlp(graph, names, block.prefix, rest, root, branch, core)


def _branch(graph: RowGraph, names: dict[int, str], block: _Block) -> tuple[int | None, int | None]:
    """What leaves the last linear of a block and what enters it; a norm between that and the stream is named here."""
    branch = block.branch
    if branch is None:
        return None, None
    sources = graph.made_alone(branch)
    if sources and graph.width[sources[0]] == graph.width[branch] and is_norm(graph, sources[0], branch):
        names[branch] = block.prefix + ("attn_post_norm.out" if block.attention else "mlp_post_norm.out")
        branch = sources[0]
        sources = graph.made_alone(branch)
    return branch, sources[0] if sources else None


def _name_mlp(
    graph: RowGraph, names: dict[int, str], prefix: str, rest: Sequence[int], root: int, branch: int | None, core: int | None
) -> None:
    """Gate and up are what has the width of the core, or two heads of one width; with a narrower head experts are routed."""
    heads = [n for n in rest if n in graph.after[root]]
    narrowest = min((graph.width[n] for n in heads), default=0)
    alone = shared_of(graph, names, rest, heads, branch) is None
    factors = [n for n in heads if not is_made_up(graph, n, heads)] if alone else []
    factors = factors if len(factors) == 2 and graph.width[factors[0]] == graph.width[factors[1]] else []
    routed = not factors if core is None else len(heads) == 1 and narrowest < graph.width[core]
    if branch is not None:
        names[branch] = prefix + ("moe.out" if routed else "down.out")
    if not routed and core is not None:
        names[core] = prefix + "act_mul.out"
        parts = [n for n in rest if graph.width[n] == graph.width[core] and n != core]
        name_factors(names, prefix, factors_of(graph, parts, core) or parts[:_MOST_PARTS])
        return
    if not routed:
        name_factors(names, prefix, factors)
        return
    _name_experts(graph, names, prefix, rest, heads, branch)


def _name_experts(
    graph: RowGraph, names: dict[int, str], prefix: str, rest: Sequence[int], heads: Sequence[int], branch: int | None
) -> None:
    """The shared expert's parts; of the narrow heads that are left the widest is the router's, a narrower row of shares its weights."""
    name_shared(graph, names, prefix, rest, heads, branch)
    narrow = [n for n in heads if n not in names and graph.width[n] > 1 and (branch is None or graph.width[n] < graph.width[branch])]
    if not narrow:
        return
    router = min(narrow, key=lambda n: (-graph.width[n], graph.time[n]))
    both = [getattr(graph.rows[router], side).sample for side in ("train", "infer")]
    names[router] = prefix + ("router.weights" if all((sample >= 0).all() for sample in both) else "router.logits")
    later = [n for n in rest if n not in names and graph.width[n] < graph.width[router] and graph.time[n] >= graph.time[router]]
    shares = [n for n in later if (graph.rows[n].train.sample >= 0).all() and (graph.rows[n].infer.sample >= 0).all()]
    chosen = [n for n in shares if graph.width[n] > 1 or n in graph.after[router] or n not in heads]
    if chosen and names[router].endswith("logits"):
        names[chosen[0]] = prefix + "router.weights"


def _name_end(graph: RowGraph, names: dict[int, str], last: int, order: Sequence[int]) -> None:
    """The norm of the stream's last station and what a module makes of it. ``order``: rows that stand in no layer, by time."""
    norm = next((n for n in order if n in graph.after[last] and n not in names), None)
    if norm is None:
        return
    names[norm] = "final_norm.out"
    head = next((n for n in order if n in graph.after[norm] and n not in names), None)
    if head is not None:
        names[head] = "logits"


def _voted(rows: Sequence[Joined], names: dict[int, str]) -> dict[int, str]:
    """Rows of one pair of slots bear one name in all layers: the most frequent, of several the earliest layer's.

    Stations of the stream stay: a fault that takes one away shifts what follows, not what it is called elsewhere.
    """
    slots: dict[object, list[int]] = defaultdict(list)
    for n in sorted(names, key=lambda at: rows[at].train.time):
        train, infer = rows[n].train, rows[n].infer
        if names[n].startswith("layers.") and train.slot is not None and infer.slot is not None and train.layer is not None:
            slots[(train.slot, infer.slot)].append(n)
    voted = dict(names)
    for group in slots.values():
        kind = Counter(names[n].split(".", 2)[2] for n in group).most_common(1)[0][0]
        for n in group:
            _, layer, own = names[n].split(".", 2)
            if not own.startswith("resid"):
                voted[n] = f"layers.{layer}.{kind}"
    return voted


def _unique(rows: Sequence[Joined], names: dict[int, str]) -> list[str]:
    """Every row named once: where two rows claim a name the earlier keeps it."""
    taken: set[str] = set()
    made: dict[int, str] = {}
    for n in sorted(range(len(rows)), key=lambda at: (at not in names, rows[at].train.time)):
        spot = first_spot(rows[n].train)
        entry, full = spot.entry, f"{spot.entry}.{spot.io}.{spot.path}"
        options = [names.get(n), entry, full, *(f"{full}#{count}" for count in range(2, len(rows) + 2))]
        made[n] = next(option for option in options if option is not None and option not in taken)
        taken.add(made[n])
    return [made[n] for n in range(len(rows))]
