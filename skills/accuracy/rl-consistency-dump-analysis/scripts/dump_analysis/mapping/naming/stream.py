"""The residual stream among the joined rows: its stations, and what is added at each."""

from dump_analysis.mapping.naming.rowgraph import RowGraph, is_norm


def stream_of(graph: RowGraph) -> tuple[list[int], list[int | None]]:
    """The stations of the stream, and what is added at each (None at the first, or where it is no row).

    Where both sides lose what came in, the branch is the stream from there on: a station that is its own branch.
    """
    addends = {n for sums in graph.sums for parts in sums for n in parts if n is not None}
    start = min(addends, key=lambda n: graph.time[n], default=min(range(len(graph.rows)), key=lambda n: graph.time[n]))
    tables = [n for n, sums in enumerate(graph.sums) if any(start in parts and graph.looked_up.issuperset(parts) for parts in sums)]
    stations: list[int] = tables[:1] or [start]  # with learned positions it begins at the sum of two tables' rows
    branches: list[int | None] = [None]
    while True:
        now = stations[-1]
        found = [n for n, sums in enumerate(graph.sums) if n not in stations and any(now in parts for parts in sums)]
        if found:
            station = min(found, key=lambda n: graph.time[n])
            others = [n for parts in graph.sums[station] if now in parts for n in parts if n is not None and n != now]
            stations.append(station)
            branches.append(others[0] if others else None)
            continue
        lost = _branches_alone(graph, stations)
        if lost is None:
            return stations, branches
        stations.append(lost[0])
        branches.append(lost[1])


def _branches_alone(graph: RowGraph, stations: list[int]) -> tuple[int, int | None] | None:
    """The stream after a station that is in no sum, and what is added there: the next sum that holds no station tells.

    Its first addend, where a module works on that as on a stream; else the sum, of two branches side by side.
    """
    now = graph.time[stations[-1]]
    later = [
        (n, [part for part in parts if part is not None])
        for n, sums in enumerate(graph.sums)
        if graph.time[n] > now and n not in stations
        for parts in sums
        if all(part is not None and part not in stations and graph.time[part] > now for part in parts)
    ]
    if not later:
        return None
    total, parts = min(later, key=lambda one: graph.time[one[0]])
    first = min(parts, key=lambda n: graph.time[n])
    if _is_worked_on(graph, first):
        return first, first
    return (total, None) if _is_worked_on(graph, total) else None


def _is_worked_on(graph: RowGraph, row: int) -> bool:
    return any((row, n) in graph.alone or is_norm(graph, row, n) for n in graph.after[row])
