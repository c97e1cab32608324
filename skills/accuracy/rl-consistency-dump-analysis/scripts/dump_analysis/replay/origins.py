"""How a value that no module returned came to be of those before it: as it was, cut, added, multiplied; or nearly so.

Candidates are told from the few token rows that are held; what one says is then proven on all of them. No operation is taken for granted:
attention, routing and whatever else lies between modules leave a value that nothing here makes, and that is unknown.
"""

from collections.abc import Iterator, Sequence
from itertools import combinations, permutations
from typing import Literal, NamedTuple

import numpy as np

from dump_analysis.floats import Array
from dump_analysis.mapping.naming.rowgraph import first_spot
from dump_analysis.mapping.recorded.keys import keys_of, places_of
from dump_analysis.mapping.recorded.nodes import Node, Recorded
from dump_analysis.replay import emulate
from dump_analysis.replay.changed import Change, Expected, change_of, difference, factor
from dump_analysis.replay.flow import Flow
from dump_analysis.replay.recorded import CannotReplay, Matrix

How = Literal["copy", "slice", "sum", "product"]
_AMONG = 40  # values before one, of which it may be a copy or a sum
_PRODUCTS_AMONG = 10
_CLOSE = 2.0**-7  # relative: how far two roundings of bfloat16 may be apart
_BLOCK = 1 << 20  # float64 elements of one array: 8 MiB
_COLUMNS = 16  # of each value, with which sums are looked for


class Origin(NamedTuple):
    """What a value was made of. ``how`` None: nothing before it makes it. ``change``: what of it is otherwise; ``gain``: what all of it
    is multiplied by.
    """

    how: How | None
    sources: tuple[Node, ...]
    unexplained: int
    of: int
    change: Change | None = None
    gain: float | None = None


class _Candidate(NamedTuple):
    how: How
    sources: tuple[Node, ...]
    columns: Array | None = None


def origin_of(flow: Flow, node: Node) -> Origin:
    """How a value was made of those before it; where nothing makes all of it, what makes all but few tokens or columns of it."""
    try:
        made = flow.matrix(node)
    except CannotReplay:
        return Origin(None, (), 0, 0)
    if made.dtype not in emulate.FORMATS:
        return Origin(None, (), made.rows * made.columns, made.rows * made.columns)
    before = flow.before(first_spot(node))[:_AMONG]
    with np.errstate(over="ignore", invalid="ignore"):  # masks hold the smallest numbers, records what is not finite
        return _nearest(flow, node, made, before)


def _nearest(flow: Flow, node: Node, made: Matrix, before: Sequence[Node]) -> Origin:
    best: Origin | None = None
    for candidate in _candidates(flow, node, before):
        found = _proven(flow, made, candidate)
        if found is not None and not found.unexplained:
            return found
        if found is not None and found.change is not None and (best is None or found.unexplained < best.unexplained):
            best = found
    return best or _multiple(flow, node, made, before) or Origin(None, (), made.rows * made.columns, made.rows * made.columns)


def is_sum(flow: Flow, node: Node, addends: tuple[Node, ...]) -> bool:
    """Whether a value is the rounded sum of others, element by element."""
    try:
        with np.errstate(over="ignore", invalid="ignore"):
            found = _proven(flow, flow.matrix(node), _Candidate("sum", addends))
    except CannotReplay:
        return False
    return found is not None and not found.unexplained


def _proven(flow: Flow, made: Matrix, candidate: _Candidate) -> Origin | None:
    try:
        parts = [flow.matrix(source) for source in candidate.sources]
    except CannotReplay:
        return None
    expected = _expected(made, candidate, parts)
    found = difference(made, expected)
    change = change_of(made, expected, found, parts if candidate.how == "sum" else ()) if found.unexplained else None
    return Origin(candidate.how, candidate.sources, found.unexplained, found.of, change)


def _expected(made: Matrix, candidate: _Candidate, parts: Sequence[Matrix]) -> Expected:
    """What the candidate makes of its parts, in the format of the recorded value."""

    def values(start: int, stop: int) -> Sequence[Array]:
        read = [part.read(start, stop) for part in parts]
        if candidate.columns is not None:
            read[0] = read[0][:, candidate.columns]
        if candidate.how == "product":
            return [emulate.to_format(read[0] * read[1], made.dtype)]
        if candidate.how == "sum":
            return _sums(read, made.dtype)
        return [emulate.to_format(read[0], made.dtype)]

    return values


def _sums(addends: Sequence[Array], dtype: str) -> list[Array]:
    """Rounded after each addition, in every order, and rounded once."""
    found = [emulate.to_format(np.sum(addends, 0), dtype)]
    for order in permutations(addends) if len(addends) > 2 else ():
        total = order[0]
        for addend in order[1:]:
            total = emulate.to_format(total + addend, dtype)
        found.append(total)
    return found


# --- candidates, from the rows that are held ---


def _candidates(flow: Flow, node: Node, before: Sequence[Node]) -> Iterator[_Candidate]:
    """What may have made a value, the simplest first; those that make nearly all of it among them."""
    addends = flow.nodes.sums.get(id(node))
    dtype = flow.dtype_of(node)
    yield from _copies(node, before, dtype)
    yield from _slices(node, before)
    if addends is not None:
        yield _Candidate("sum", addends)
        return
    yield from _products(node, before[:_PRODUCTS_AMONG])
    yield from _near_sums(node, before)


def _copies(node: Node, before: Sequence[Node], dtype: str) -> Iterator[_Candidate]:
    if dtype not in emulate.FORMATS:
        return
    for other in before:
        if other.width == node.width and _nearly(node.sample != emulate.to_format(other.sample.astype(np.float64), dtype)):
            yield _Candidate("copy", (other,))


def _nearly(apart: Array) -> bool:
    """Whether only few rows, or only few columns, hold what is apart."""
    return not apart.any() or any(2 * int(touched.sum()) <= touched.size for touched in (apart.any(1), apart.any(0)))


def _slices(node: Node, before: Sequence[Node]) -> Iterator[_Candidate]:
    """Some columns of a wider value. An altered token spoils the key of every column: one half of the rows then has none."""
    half = len(node.sample) // 2
    for other in before:
        if other.width <= node.width:
            continue
        for rows in (slice(None), slice(0, half), slice(half, None)) if half > 1 else (slice(None),):
            columns = _columns(node.sample[rows], other.sample[rows])
            if columns is not None and _nearly(node.sample != other.sample[:, columns]):
                yield _Candidate("slice", (other,), columns)
                break


def _columns(narrow: Array, wide: Array) -> Array | None:
    """For each column of a sample the column of a wider one that holds it: a run where most lie in one, those that are nowhere
    where their neighbours say.
    """
    found = places_of(keys_of(wide.T), keys_of(narrow.T))
    known = np.asarray(found >= 0)
    if 2 * int(known.sum()) <= found.size:
        return None
    steps, counts = np.unique((found - np.arange(len(found)))[known], return_counts=True)
    run = int(steps[counts.argmax()]) + np.arange(len(found))
    if 2 * int(counts.max()) > len(found) and run[0] >= 0 and run[-1] < wide.shape[1]:
        return run
    return found if known.all() else None


def _products(node: Node, before: Sequence[Node]) -> Iterator[_Candidate]:
    """Two values multiplied element by element."""
    alike = [other for other in before if other.width == node.width]
    for one, other in combinations(alike, 2):
        if _nearly(_apart(one.sample * other.sample, node.sample)):
            yield _Candidate("product", (one, other))


def _near_sums(node: Node, before: Sequence[Node]) -> Iterator[_Candidate]:
    """Two values that add up in all but few rows or columns."""
    alike = [other for other in before if other.width == node.width]
    columns = np.unique(np.linspace(0, node.width - 1, min(node.width, _COLUMNS)).astype(np.int64))
    probes, wanted = [other.sample[:, columns] for other in alike], node.sample[:, columns]
    for one, other in combinations(range(len(alike)), 2):
        if _nearly(_apart(probes[one] + probes[other], wanted)):
            yield _Candidate("sum", (alike[one], alike[other]))


def _apart(made: Array, wanted: Array) -> Array:
    """Which elements two roundings do not explain."""
    found: Array = np.abs(made - wanted) > _CLOSE * np.maximum(np.abs(made), np.abs(wanted))
    return found


def _multiple(flow: Flow, node: Node, made: Matrix, before: Sequence[Node]) -> Origin | None:
    """A value before this one, times a number."""
    for other in before:
        if other.width != node.width:
            continue
        value = other.sample.astype(np.float64)
        gain = float((node.sample * value).sum() / ((value * value).sum() + 1e-30))
        if not gain or _apart(gain * value, node.sample).any():
            continue
        try:
            exact = factor(made, flow.matrix(other))
        except CannotReplay:
            continue
        if exact is not None:
            return Origin("product", (other,), made.rows * made.columns, made.rows * made.columns, None, exact)
    return None


# --- rows that are no tokens ---


def origin_of_rows(flow: Flow, recorded: Recorded) -> Origin:
    """How a tensor came to be whose rows are not the tokens: rows of a value before it, such as the last one, or those of an expert."""
    width = int(recorded.tensor.shape[-1]) if recorded.tensor.shape else 1
    count = recorded.tensor.elements
    for other in [one for one in flow.before(recorded.spot)[:_AMONG] if one.width == width]:
        try:
            first = flow.first(other)
            if first is None:
                continue
            made, keys = flow.matrix_at(recorded), _row_keys(flow.matrix_at(first, joined=False))
            if (places_of(keys, _row_keys(made)) >= 0).all():
                return Origin("slice", (other,), 0, count)
        except CannotReplay:
            continue
    return Origin(None, (), count, count)


def _row_keys(made: Matrix) -> Array:
    step = max(1, _BLOCK // max(1, made.columns))
    parts = [made.read(start, min(made.rows, start + step)) for start in range(0, made.rows, step)]
    return np.concatenate([keys_of(part) for part in parts])
