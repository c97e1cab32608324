"""Names of the rows between a block's norm and its attention core: projections, their norms, their rotated forms."""

from collections.abc import Sequence

from dump_analysis.mapping.naming.rowgraph import RowGraph, first_spot, holds, is_made_up, is_norm, is_slice

_LATENT = 2  # readers of the norm: q_a (or q) and kv_a


def name_attention(graph: RowGraph, names: dict[int, str], prefix: str, rest: Sequence[int], root: int) -> None:
    """Name q, k, v (or a latent attention's parts) among the rows between ``root`` and the attention core."""
    inside = _without_fused(graph, names, prefix, rest)
    side, first = _first_level(graph, inside)
    linear = [n for n in first if root in graph.before[n]]
    unions = {n for n in linear if is_made_up(graph, n, linear)}
    first, linear = ([n for n in rows if n not in unions] for rows in (first, linear))
    linear = [n for n in linear if not any(is_slice(graph, n, other) for other in linear)]
    # Tables of angles feed nobody's output and come before the root.
    later = [n for n in first if graph.time[n] > graph.time[root]]
    free = [n for n in later if n not in linear]
    if len(linear) == _LATENT and len(inside) > len(linear) + 1 and _has_latent_norm(graph, linear[1], free):
        _name_latent(graph, names, prefix, linear, [n for n in first if n not in linear])
        return
    candidates = linear if len(linear) > _LATENT else later
    for n, stem in zip(_heads(graph, candidates, inside, side), ("q", "k", "v"), strict=False):
        _follow(graph, names, prefix + stem, n, inside)


def _without_fused(graph: RowGraph, names: dict[int, str], prefix: str, rest: Sequence[int]) -> set[int]:
    """The rows without a fused projection, in which the columns of three others stand; that one is named here."""
    inside = set(rest)
    for n in rest:
        for side in ("train", "infer"):
            whole = getattr(graph.rows[n], side).sample
            parts = [m for m in rest if holds(whole, getattr(graph.rows[m], side).sample)]
            if len(parts) > 2 and n in inside:
                names[n] = prefix + "qkv.out"
                inside.discard(n)
    return inside


def _first_level(graph: RowGraph, inside: set[int]) -> tuple[str, list[int]]:
    """The rows that nothing inside feeds, in the order of the side that keeps them in modules of their own; that side."""
    first = [n for n in inside if not graph.before[n] & inside]

    def entries(side: str) -> int:
        nodes = [getattr(graph.rows[n], side) for n in first]
        return len({first_spot(node).entry for node in nodes if node.kind == "one"})

    side = max(("train", "infer"), key=entries)
    return side, sorted(first, key=lambda n: (getattr(graph.rows[n], side).time, graph.time[n]))


def _heads(graph: RowGraph, candidates: Sequence[int], inside: set[int], side: str) -> list[int]:
    """q, k, v: in the order of their modules where each has its own, else the two that are worked on before the one that is not."""
    fed = [n for n in candidates if graph.after[n] & inside]
    apart = len({first_spot(getattr(graph.rows[n], side)).entry for n in candidates}) == len(candidates)
    if apart or len(fed) != 2:
        return list(candidates[:3])
    return (fed + [n for n in candidates if n not in fed])[:3]


def _follow(graph: RowGraph, names: dict[int, str], stem: str, row: int, inside: set[int]) -> None:
    """Name a projection, its norm (one input, one output) and its rotated form."""
    names[row] = f"{stem}.out"
    for n in sorted(graph.after[row] & inside, key=lambda at: graph.time[at]):
        if n in names:
            continue
        if (row, n) not in graph.alone:
            names[n] = f"{stem}_rope.out"
            continue
        names[n] = f"{stem}_norm.out"
        for rotated in sorted(graph.after[n] & inside):
            names.setdefault(rotated, f"{stem}_rope.out")


def _name_latent(graph: RowGraph, names: dict[int, str], prefix: str, linear: Sequence[int], free: Sequence[int]) -> None:
    """Latent attention: a low-rank projection, its norm (of the whole or of a part of it), and what the norm feeds."""
    for n, stem in zip(linear, ("q", "kv"), strict=True):
        norm = next((m for m in sorted(graph.after[n]) if (n, m) in graph.alone), None)
        if norm is None and stem == "kv":
            norm = _norm_of_a_part(graph, n, free)
        if norm is None:
            names[n] = f"{prefix}{stem}.out"
            continue
        names[n], names[norm] = f"{prefix}{stem}_a.out", f"{prefix}{stem}_a_norm.out"
        for made in sorted(graph.after[norm], key=lambda at: graph.time[at]):
            names.setdefault(made, f"{prefix}{stem}_b.out")
        if stem == "kv":
            _name_shared_key(graph, names, prefix, n, norm, free)


def _has_latent_norm(graph: RowGraph, row: int, free: Sequence[int]) -> bool:
    """Whether a part of a projection is normalised apart: so is the latent of kv_a, and never k of its own."""
    narrower = any((row, n) in graph.alone and graph.width[n] < graph.width[row] for n in graph.after[row])
    return narrower or _norm_of_a_part(graph, row, free) is not None


def _name_shared_key(graph: RowGraph, names: dict[int, str], prefix: str, row: int, norm: int, free: Sequence[int]) -> None:
    """The part of kv_a beside the latent one: the key columns that are rotated and shared by all heads."""
    width = graph.width[row] - graph.width[norm]
    parts = [n for n in free if n not in names and graph.width[n] == width and is_slice(graph, n, row) and norm not in graph.after[n]]
    if parts:
        names[parts[0]] = prefix + "k_pe.out"


def _norm_of_a_part(graph: RowGraph, row: int, free: Sequence[int]) -> int | None:
    """The norm of the latent part that is cut out of kv_a: a row made of a narrower free row, or that free row itself."""
    made = [n for part in free for n in sorted(graph.after[part]) if graph.width[n] < graph.width[row] and is_norm(graph, part, n)]
    narrower = [n for n in free if graph.after[n] and graph.width[n] < graph.width[row]]
    return next(iter(made + narrower), None)
