"""How far runs that must agree part by themselves: one sequence again, beside others, or several times in one run.

Sequences are told apart by their ids and positions, never by their row: row against next row would be another sequence. Figures come from
the pairs, the worst of them at each boundary.
"""

from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import NamedTuple

import msgspec
from msprobe_files.errors import DumpError
from msprobe_files.operands import Op, Operand, OperandError

from dump_analysis import gate, tensors
from dump_analysis.artefacts.boundary_results import DIVERGED, BoundaryResult, elements
from dump_analysis.artefacts.noise_floor import FloorPoint, Method
from dump_analysis.artefacts.semantic_mapping import Row, SemanticMapping
from dump_analysis.boundaries import INPUTS, layer_of
from dump_analysis.mapping import whole
from dump_analysis.rounds.fitting import value_shape
from dump_analysis.sides import Side, resolve
from dump_analysis.tensors import Files, stream_of

_ENDS = {"1": 1, "2": 2, "3-4": 4, "5-8": 8, "9-64": 64}
_SHARE = 0.99  # of the elements, of which ``ulp_p99`` tells how far they part


class Sequenced(NamedTuple):
    """A run and its sequences: the tokens [start, stop) of each among the rows of its values, and what tells it from others."""

    side: Side
    mapping: SemanticMapping
    spans: list[tuple[int, int]]
    keys: list[bytes]


class Copies(NamedTuple):
    """One sequence in two runs (or twice in one): its number in each."""

    left: Sequenced
    right: Sequenced
    one: int
    other: int


def sequenced(side: Side) -> Sequenced:
    """A run with its sequences. Raises DumpError where its tokens are not recorded."""
    mapping = whole.propose(side, side).mapping
    if mapping.tokens is None:
        raise DumpError(f"Cannot measure a noise floor: {side.label} does not record its tokens. Dump the model's inputs too.")
    spans = [(start, stop) for _, start, stop in mapping.tokens.train]
    files = Files()
    try:
        rows = {row.boundary: row.train for row in mapping.boundaries if row.boundary in INPUTS}
        values = [_values(rows[name], side, files) for name in INPUTS if name in rows]
    except DumpError as error:
        if str(error).startswith("Cannot "):
            raise
        raise DumpError(f"Cannot measure a noise floor: {error}. Hand dumps that hold the values of tensors (task: tensor).") from None
    finally:
        files.close()
    keys = [b"".join(value[start * size : stop * size] for value, size in values) for start, stop in spans]
    return Sequenced(side, mapping, spans, keys)


def _values(operand: Operand, side: Side, files: Files) -> tuple[bytes, int]:
    """The bytes of ids or positions, and how many each token has."""
    places = [resolve(side, source) for source in operand.sources]
    stream = stream_of(files, operand, [tensors.header(place) for place in places if place is not None])
    data = stream.read(0, tensors.elements_of(stream)).tobytes()
    return data, len(data) // max(1, tensors.elements_of(stream))


def copies(runs: Sequence[Sequenced], method: Method) -> list[Copies]:
    """The pairs that must agree. Raises DumpError where there are none."""
    found = list(_within(runs[0]) if method == "within_batch" else _across(runs, every=method == "single_vs_stacked"))
    if not found:
        where = "twice in this run" if method == "within_batch" else "in two of these runs"
        what = f"no sequence of equal ids and positions stands {where}"
        raise DumpError(f"Cannot measure a noise floor: {what}. Hand runs of one prompt, or another --method.")
    return found


def _within(run: Sequenced) -> Iterator[Copies]:
    for one, other in combinations(range(len(run.keys)), 2):
        if run.keys[one] == run.keys[other]:
            yield Copies(run, run, one, other)


def _across(runs: Sequence[Sequenced], *, every: bool) -> Iterator[Copies]:
    """``every``: the first run against each copy of the others; else the nth copy of each run against the nth of another."""
    for left, right in [(runs[0], run) for run in runs[1:]] if every else list(combinations(runs, 2)):
        for one, key in enumerate(left.keys):
            same = [other for other, found in enumerate(right.keys) if found == key]
            nth = left.keys[:one].count(key)
            for other in same if every else same[nth : nth + 1]:
                yield Copies(left, right, one, other)


def points(pairs: Sequence[Copies]) -> list[FloorPoint]:
    """The worst over all pairs at each boundary, in the order of the model.

    Raises DumpError where a dump cannot be read, or nothing was compared.
    """
    worst: dict[str, FloorPoint] = {}
    for pair in pairs:
        results, _ = gate.compare(list(_rows(pair)), [], pair.left.side, pair.right.side)
        for result in results:
            if result.status == "EXACT" or result.status in DIVERGED:
                found = _point(result)
                known = worst.get(result.boundary, found)
                worst[result.boundary] = _worse(known, found)
    if not worst:
        what = "no boundary was compared: none of these runs records the same tensors as another"
        raise DumpError(f"Cannot measure a noise floor: {what}. Hand runs of one side, dumped alike.")
    return list(worst.values())


def _rows(pair: Copies) -> Iterator[Row]:
    """Each boundary that both runs record in the same tensors, cut to the rows of the sequence."""
    others = {row.boundary: row for row in pair.right.mapping.boundaries}
    for row in pair.left.mapping.boundaries:
        other = others.get(row.boundary)
        if row.boundary in INPUTS or other is None or _names(row.train) != _names(other.train):
            continue
        left = _cut(row.train, pair.left, pair.one)
        right = _cut(other.train, pair.right, pair.other)
        if left is not None and right is not None:
            yield msgspec.structs.replace(row, train=left, infer=right)


def _names(operand: Operand) -> list[str]:
    return [source.name for source in operand.sources]


def _cut(operand: Operand, run: Sequenced, number: int) -> Operand | None:
    """The rows of a sequence: its tokens, or its own row where a value has one a sequence; None where the rows are neither."""
    places = [resolve(run.side, source) for source in operand.sources]
    try:
        shape = value_shape(operand, [tensors.header(place).shape for place in places if place is not None])
    except (DumpError, OperandError):
        return None
    tokens = sum(stop - start for start, stop in run.spans)
    along_rows = operand.combine == "cat" and operand.axis in (0, -len(shape))
    if not shape or along_rows or shape[0] not in (tokens, len(run.spans)):
        return None
    start, stop = run.spans[number] if shape[0] == tokens else (number, number + 1)
    cut = Op("slice", axis=0, start=start, stop=stop)
    sources = [source._replace(steps=(*(source.steps or ()), cut)) for source in operand.sources]
    return Operand(sources, operand.combine, operand.axis)


def _point(result: BoundaryResult) -> FloorPoint:
    return FloorPoint(
        boundary=result.boundary,
        layer=layer_of(result.boundary),
        dtype=str(result.dtype.train) if result.dtype is not None else "",
        max_abs=result.max_abs_diff or 0.0,
        rel_l2=result.rel_l2 or 0.0,
        ulp_p99=_p99(result),
        share=result.unequal.share if result.unequal is not None else 0.0,
    )


def _p99(result: BoundaryResult) -> int:
    """The end of the first bin within which 99 % of all elements lie; the largest distance beyond the last bin."""
    if result.ulp is None or result.unequal is None:
        return 0
    of = elements(result)
    within = of - result.unequal.count
    for name, end in _ENDS.items():
        if within >= _SHARE * of:
            break
        counted = result.ulp.histogram.get(name, 0)
        within += sum(counted) if isinstance(counted, list) else counted
        if within >= _SHARE * of:
            return end
    return 0 if of - result.unequal.count >= _SHARE * of else result.ulp.max


def _worse(one: FloorPoint, other: FloorPoint) -> FloorPoint:
    return msgspec.structs.replace(
        one,
        max_abs=max(one.max_abs, other.max_abs),
        rel_l2=max(one.rel_l2, other.rel_l2),
        ulp_p99=max(one.ulp_p99, other.ulp_p99),
        share=max(one.share, other.share),
    )
