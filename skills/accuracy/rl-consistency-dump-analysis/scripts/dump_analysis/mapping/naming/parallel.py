"""Names in a block that computes attention and MLP side by side: both read the stream, and the next station is the sum of all three."""

from collections.abc import Sequence
from itertools import combinations

from dump_analysis.mapping.naming.attention import name_attention
from dump_analysis.mapping.naming.rowgraph import RowGraph, is_norm
from dump_analysis.mapping.recorded.dataflow import activated, is_activation

_SIDES = ("train", "infer")


def side_by_side(graph: RowGraph, start: int, end: int) -> list[int]:
    """The two branches that a station adds to the stream at once, earliest first, or that are all of it where both sides lose the stream.

    Empty where it adds one.
    """
    sums = graph.sums[end]
    wanted = 3 if any(start in addends for addends in sums) else 2
    for addends in sums:
        branches = [n for n in addends if n is not None and n != start]
        if len(addends) == wanted and len(branches) == 2:
            return sorted(branches, key=lambda n: graph.time[n])
    return []


def name_side_by_side(
    graph: RowGraph, names: dict[int, str], prefix: str, start: int, branches: Sequence[int], inside: Sequence[int]
) -> None:
    """Name the norms of the stream, the attention and the MLP. ``inside``: rows between the stations, by time."""
    cores = {branch: next(iter(graph.made_alone(branch)), None) for branch in branches}
    norms = [n for n in inside if n in graph.after[start] and n not in branches and is_norm(graph, start, n)]
    read = [n for n in inside if n not in branches and any(n in graph.after[norm] for norm in norms or [start])]
    factors = {branch: factors_of(graph, read, core) if core is not None else [] for branch, core in cores.items()}
    attention, mlp = sorted(branches, key=lambda branch: bool(factors[branch]))
    names[attention], names[mlp] = f"{prefix}o_proj.out", f"{prefix}down.out"
    name_factors(names, prefix, factors[mlp])
    for branch, kind in ((attention, "attn_core"), (mlp, "act_mul")):
        core = cores[branch]
        if core is not None:
            names[core] = f"{prefix}{kind}.out"
    own = [n for n in norms if any(n in graph.before[factor] for factor in factors[mlp])] if len(norms) > 1 else []
    first = next((n for n in norms if n not in own), None)
    names.update(dict.fromkeys(own[:1], f"{prefix}post_norm.out"))
    names.update({first: f"{prefix}input_norm.out"} if first is not None else {})
    core = cores[attention]
    rest = [n for n in inside if n not in names and (core is None or graph.time[n] <= graph.time[core])]
    name_attention(graph, names, prefix, rest, start if first is None else first)


def factors_of(graph: RowGraph, candidates: Sequence[int], core: int) -> list[int]:
    """The rows of which an activation, alone or times another row, makes what enters the last linear of an MLP; empty without."""
    fitting = [n for n in candidates if graph.width[n] == graph.width[core] and n != core]
    for n in fitting:
        if any(is_activation(getattr(graph.rows[n], side).sample, getattr(graph.rows[core], side).sample) for side in _SIDES):
            return [n]
    for pair in combinations(fitting, 2):
        if any(activated(*(getattr(graph.rows[n], side).sample for n in (*pair, core))) is not None for side in _SIDES):
            return list(pair)
    return []


def name_factors(names: dict[int, str], prefix: str, factors: Sequence[int]) -> None:
    """One factor is up, without a gate; two are gate and up."""
    names.update(zip(factors, (f"{prefix}gate.out", f"{prefix}up.out") if len(factors) > 1 else (f"{prefix}up.out",), strict=False))
