"""Names of the rows of a shared expert: a second MLP beside the routed ones, which every token goes through."""

from collections.abc import Mapping, Sequence

import numpy as np

from dump_analysis.floats import Array
from dump_analysis.mapping.naming.rowgraph import RowGraph

_MOST_PARTS = 2  # gate and up
_SCALED = 0.05  # relative; what is left of a tensor once each of its rows is scaled


def shared_of(
    graph: RowGraph, names: Mapping[int, str], rest: Sequence[int], heads: Sequence[int], branch: int | None
) -> tuple[int, int, list[int]] | None:
    """What the shared expert's last linear returns, what it takes, and gate and up; None without a shared expert.

    ``rest``: the rows of a block; ``heads``: those that modules make of the block's norm; ``branch``: what the block returns, more
    than the last linear does.
    """
    for n in rest if branch is not None else ():
        if n not in names and branch is not None and not _is_all(graph, n, branch):
            for core, parts in _parts(graph, n, heads, branch):
                return n, core, parts
    return None


def name_shared(graph: RowGraph, names: dict[int, str], prefix: str, rest: Sequence[int], heads: Sequence[int], branch: int | None) -> None:
    """Name ``shared_expert.`` gate, up, act_mul and out, and what is added to it as ``experts.out``; arguments as of `shared_of`.

    Where the shared expert is scaled by a gate of its own, what its last linear returns is ``shared_expert.down.out``.
    """
    found = shared_of(graph, names, rest, heads, branch)
    if found is None or branch is None:
        return
    stem = prefix + "shared_expert."
    down, core, parts = found
    gates = [n for n in heads if graph.width[n] == 1]
    scaled = next((n for n in rest if n not in {*names, down} and _is_scaled(graph, down, n)), None)
    names[core] = stem + "act_mul.out"
    names.update(zip(parts, (stem + "gate.out", stem + "up.out"), strict=False))
    names[down] = stem + ("out" if scaled is None and not gates else "down.out")
    if scaled is not None:
        names[scaled] = stem + "out"
    added = scaled if scaled is not None else down
    for n in (n for pair in graph.sums[branch] if added in pair for n in pair):
        if n is not None and n not in names:
            names[n] = prefix + "experts.out"


def chosen_of_all(shares: Array) -> bool:
    """Whether each token has shares of all experts [tokens, experts], as many of them nought in every token."""
    zeros = (shares == 0).sum(1)
    return bool(zeros.min() > 0 and (zeros == zeros[0]).all() and (shares >= 0).all())


def _parts(graph: RowGraph, down: int, heads: Sequence[int], branch: int) -> list[tuple[int, list[int]]]:
    """What a linear takes that returns a row of the stream's width, with the heads of that width: gate and up."""
    if graph.width[down] != graph.width[branch]:
        return []
    found = []
    for core in graph.made_alone(down):
        parts = [n for n in heads if graph.width[n] == graph.width[core] and n not in (core, down)]
        if parts and core not in heads:
            found.append((core, parts[:_MOST_PARTS]))
    return found


def _is_scaled(graph: RowGraph, row: int, other: int) -> bool:
    """Whether a row is another times one share a token, on either side."""
    return any(left < _SCALED and (shares > 0).all() and np.ptp(shares) > _SCALED for left, shares in _by_token(graph, row, other))


def _is_all(graph: RowGraph, row: int, other: int) -> bool:
    """Whether a row is all that another holds, times a number, on both sides."""
    return all(left < _SCALED and np.ptp(shares) <= _SCALED for left, shares in _by_token(graph, row, other))


def _by_token(graph: RowGraph, row: int, other: int) -> list[tuple[float, Array]]:
    """For each side, how much of ``other`` is left without ``row`` times one share a token (relative), and these shares."""
    found = []
    for side in ("train", "infer"):
        x, y = (getattr(graph.rows[n], side).sample for n in (row, other))
        if x.shape != y.shape or x.shape[1] == 1:
            return [(1.0, np.zeros(1))]
        shares = (x * y).sum(1, keepdims=True) / np.maximum((x * x).sum(1, keepdims=True), 1e-30)
        found.append((float(np.linalg.norm(y - shares * x)) / (float(np.linalg.norm(y)) + 1e-30), shares))
    return found
