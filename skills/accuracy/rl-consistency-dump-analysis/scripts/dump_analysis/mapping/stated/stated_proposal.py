"""A mapping of dumps without tensors: rows joined by structure, order and statistics, as semantic_mapping.json."""

import math
from collections.abc import Iterator, Sequence
from math import prod
from typing import NamedTuple

import msgspec
from msprobe_files.operands import Op, Operand, Source

from dump_analysis.artefacts.common import Modules, SideLabel, Worded
from dump_analysis.artefacts.semantic_mapping import Basis, MissingRow, Row, SemanticMapping, TokenCoverage, Tokens
from dump_analysis.mapping.joining.acceptance import CERTAIN, HALF
from dump_analysis.mapping.joining.joined import Joined
from dump_analysis.mapping.naming.rowgraph import first_spot
from dump_analysis.mapping.recorded.cuts import with_ops
from dump_analysis.mapping.recorded.nodes import Node, Recorded
from dump_analysis.mapping.recorded.token_rows import matrix_ops
from dump_analysis.mapping.stated.stated import Stated, stated, without_files
from dump_analysis.mapping.stated.stated_flow import Flow
from dump_analysis.mapping.stated.stated_join import StatedJoin, join_stated
from dump_analysis.mapping.stated.stated_places import names_of
from dump_analysis.mapping.stated.stated_weight_rows import weights_of
from dump_analysis.sides import Side
from dump_analysis.statistics import facts_of
from dump_analysis.wording import word

_SURE = 0.9  # statistics prove nothing
_PART = 0.5


class _Line(NamedTuple):
    """A row or a gap and when the trainer has it."""

    time: float
    row: Row | MissingRow


def propose(train: Side, infer: Side) -> tuple[SemanticMapping, list[Worded]]:
    """The mapping that two dumps tell of which at least one saved no tensors, and remarks on how it came about.

    Raises DumpError where a side holds several units.
    """
    join = join_stated(stated(train), stated(infer))
    names = names_of(join)
    lines = [*_inputs(join), *_rows(join, names), *_rotated(join, names), *_last_logits(join, names)]
    ordered = [line.row for line in sorted(lines, key=lambda line: line.time)]
    numbered = [msgspec.structs.replace(row, order=order) for order, row in enumerate(ordered)]
    weights, no_weights = weights_of(join, names)
    mapping = SemanticMapping(
        train=SideLabel(train.label, train.digest),
        infer=SideLabel(infer.label, infer.digest),
        boundaries=[row for row in numbered if isinstance(row, Row)],
        weights=weights,
        evidence_missing=[*(row for row in numbered if isinstance(row, MissingRow)), *no_weights],
        tokens=_tokens(join, names),
    )
    sides = [side.label for side in (train, infer) if without_files(side)]
    untraced = [word("untraced", side=side.label) for side in (join.train, join.infer) if not side.traced]
    return mapping, [word("by_statistics", sides=sides), *untraced]


# --- boundaries ---


def _inputs(join: StatedJoin) -> Iterator[_Line]:
    """The ids and the positions that both sides record."""
    ids = [side.ids.recorded if side.ids is not None else None for side in (join.train, join.infer)]
    positions = [_positions(side) for side in (join.train, join.infer)]
    for at, (name, found) in enumerate((("input_ids", ids), ("positions", positions))):
        if found[0] is None or found[1] is None:
            continue
        dtypes = [one.tensor.dtype for one in found if one is not None]
        note = word("two_dtypes", train=dtypes[0], infer=dtypes[1]).text if dtypes[0] != dtypes[1] else None
        if _differ_in_rows(join):
            names = [[one.record.name] for one in found if one is not None]
            yield _Line(at - 2.0, MissingRow(name, 0, _rows_apart(join), names[0], names[1]))
            continue
        operands = [_vector(one.record.name, one.tensor.shape) for one in found if one is not None]
        yield _Line(at - 2.0, Row(name, 0, operands[0], operands[1], ["structure"], _SURE, Modules(None, None), note))


def _positions(side: Stated) -> Recorded | None:
    """The earliest integers, one a token, whose extremes are as far apart as those of numbers that count up."""
    count = side.nodes.window.total // side.nodes.window.batch
    for one in sorted(side.other, key=lambda recorded: recorded.spot.time):
        facts = facts_of(one.record)
        as_many = one.tensor.elements in (count, side.nodes.window.total) and one.spot.io != "output"
        counts_up = facts.largest is not None and facts.smallest is not None and facts.largest - facts.smallest == count - 1
        if as_many and counts_up and (side.ids is None or one is not side.ids.recorded):
            return one
    return None


def _vector(name: str, shape: Sequence[int]) -> Operand:
    """Integers without their axes of size 1."""
    ones = [axis for axis, size in enumerate(shape) if size == 1]
    kept = ones[1:] if len(ones) == len(shape) else ones
    return Operand([Source(name, None, None, tuple(Op("squeeze", axis=axis) for axis in reversed(kept)))])


def _rows(join: StatedJoin, names: Sequence[str]) -> Iterator[_Line]:
    apart = _differ_in_rows(join)
    for row, name in zip(join.rows, names, strict=True):
        if row.why in ("fused", "untold"):
            continue
        operands = operand_of(join.train, join.flows[0], row.train), operand_of(join.infer, join.flows[1], row.infer)
        modules = Modules(_module(join.train, join.flows[0], row.train), _module(join.infer, join.flows[1], row.infer))
        if apart:
            found = [[source.name for source in operand.sources] for operand in operands]
            yield _Line(row.train.ready, MissingRow(name, 0, _rows_apart(join), *found))
            continue
        note = word("part_by_order").text if row.why == "part" else None
        yield _Line(row.train.ready, Row(name, 0, *operands, _basis(row), _confidence(row), modules, note))


def _rows_apart(join: StatedJoin) -> Worded:
    return word("token_rows_apart", train=join.train.nodes.window.total, infer=join.infer.nodes.window.total)


def _basis(row: Joined) -> list[Basis]:
    basis: list[Basis] = ["weights"] if row.weights > HALF else []
    basis += ["signature"] if row.likeness >= CERTAIN else []
    return [*basis, "dataflow" if row.why in ("pattern", "sum") else "structure"]


def _confidence(row: Joined) -> float:
    return _PART if row.why == "part" else round(max(0.01, min(_SURE, 0.4 + 0.1 * row.likeness + 0.1 * row.weights)), 2)


def operand_of(side: Stated, flow: Flow, node: Node) -> Operand:
    """The operand of a node from the place where it is made, rather than from where another entry receives it."""
    if node.kind == "part":
        return Operand(node.sources)
    maker = flow.maker.get(node)
    spots = [spot for spot in node.spots if (spot.entry, spot.io) == (maker, "output")] or [first_spot(node)]
    for recorded in side.nodes.records.activations:
        if (recorded.spot.entry, recorded.spot.io, recorded.spot.path) == (spots[0].entry, spots[0].io, spots[0].path):
            steps = matrix_ops(recorded.tensor.shape, side.nodes.window)
            return Operand([Source(recorded.record.name, None, None, steps or ())])
    return Operand(node.sources)


def _module(side: Stated, flow: Flow, node: Node) -> str | None:
    """The innermost entry in which a value is made: the leaf that gives it, else the container that does or that holds its reader."""
    spot = first_spot(node)
    maker = flow.maker.get(node)
    if maker is not None or spot.io == "output":
        return maker or spot.entry
    return (side.nodes.records.unit.trace or {}).get(spot.entry)


# --- places of one side ---


def _rotated(join: StatedJoin, names: Sequence[str]) -> Iterator[_Line]:
    """Rotated q and k that one side alone records."""
    taken = set(names)
    for label, other, flow in (("train", "infer", join.flows[0]), ("infer", "train", join.flows[1])):
        at = {id(getattr(row, label)): (name, row) for row, name in zip(join.rows, names, strict=True)}
        for entry, made in flow.gives.items():
            takes = flow.takes.get(entry, [])
            known = [at.get(id(node)) for node in takes]
            for source, node in zip(known, made, strict=False):
                if source is None or len(takes) != len(made) or len(made) < 2 or id(node) in at or node.width != source[1].train.width:
                    continue
                stem = source[0].removesuffix("_norm.out").removesuffix(".out")
                name = f"{stem}_rope.out"
                if stem.endswith((".q", ".k")) and name not in taken:
                    taken.add(name)
                    found = {label: [source.name for source in node.sources], other: list[str]()}
                    reason = word("no_counterpart", side=other, what=name)
                    yield _Line(source[1].train.ready + 0.01, MissingRow(name, 0, reason, found["train"], found["infer"]))


class _Head(NamedTuple):
    """Logits of one side. ``last``: it keeps the last row of each sequence alone."""

    operand: Operand
    entry: str
    width: int
    dtype: str
    last: bool


def _last_logits(join: StatedJoin, names: Sequence[str]) -> Iterator[_Line]:
    """Logits that one side has of all tokens and the other of the last one alone, or both of the last one."""
    sides = (join.train, join.infer)
    heads = [_head(side, flow) for side, flow in zip(sides, join.flows, strict=True)]
    if "logits" in names or heads[0] is None or heads[1] is None or heads[0].width != heads[1].width:
        return
    if not (heads[0].last or heads[1].last) or (not (heads[0].last and heads[1].last) and _differ_in_rows(join)):
        return
    notes = [word("last_position", side=side.label).text for side, head in zip(sides, heads, strict=True) if head is not None and head.last]
    notes += [word("two_dtypes", train=heads[0].dtype, infer=heads[1].dtype).text] if heads[0].dtype != heads[1].dtype else []
    operands = _widened(heads[0], heads[1].dtype), _widened(heads[1], heads[0].dtype)
    modules = Modules(heads[0].entry, heads[1].entry)
    yield _Line(math.inf, Row("logits", 0, *operands, ["structure"], _PART, modules, "; ".join(notes)))


def _differ_in_rows(join: StatedJoin) -> bool:
    return join.train.nodes.window.total != join.infer.nodes.window.total


def _head(side: Stated, flow: Flow) -> _Head | None:
    """The last result with one row a sequence, else the last row of the last leaf's result."""
    window = side.nodes.window
    single = [tail for tail in side.nodes.tails if prod(tail.tensor.shape[:-1]) == window.batch]
    end = max(flow.maker, key=lambda node: (node.time, node.width), default=None)
    if single and (end is None or single[-1].spot.time >= end.time):
        tail = single[-1]
        steps = () if len(tail.tensor.shape) == 2 else (Op("reshape", shape=(-1, tail.tensor.shape[-1])),)
        operand = Operand([Source(tail.record.name, None, None, steps)])
        return _Head(operand, tail.spot.entry, tail.tensor.shape[-1], tail.tensor.dtype, True)
    if end is None:
        return None
    whole = operand_of(side, flow, end)
    cut = with_ops(whole, Op("slice", axis=0, start=window.total - 1, stop=window.total))
    return _Head(cut, flow.maker[end], end.width, side.facts[end].dtype or "", False)


def _widened(head: _Head, other: str) -> Operand:
    """Logits that one side keeps in 16 bits, as the other's 32: an exact cast."""
    return (
        with_ops(head.operand, Op("cast", dtype="float32"))
        if head.dtype in ("bfloat16", "float16") and other == "float32"
        else head.operand
    )


# --- tokens ---


def _tokens(join: StatedJoin, names: Sequence[str]) -> Tokens:
    totals = [side.nodes.window.total for side in (join.train, join.infer)]
    remarks = [] if totals[0] == totals[1] else [_rows_apart(join)]
    joined = totals[0] if totals[0] == totals[1] else 0
    return Tokens([[0, 0, joined]], [[0, 0, joined]], TokenCoverage(joined, *totals), [*remarks, *_returned_apart(join, names)])


def _returned_apart(join: StatedJoin, names: Sequence[str]) -> Iterator[Worded]:
    """Where the layers of one side return apart the two addends of what the other's return as one sum."""
    at = {label: {id(getattr(row, label)): n for n, row in enumerate(join.rows)} for label in ("train", "infer")}
    for one, other in ((join.train, join.infer), (join.infer, join.train)):
        sums = {at[one.label][id(node)] for nodes in _containers(one).values() for node in nodes[:1] if _is_sum(one, nodes, at[one.label])}
        found = []
        for entry, nodes in _containers(other).items():
            for n in sums:
                total = getattr(join.rows[n], other.label)
                if len(nodes) == 2 and set(nodes) == set(other.nodes.sums.get(id(total), ())):
                    found.append((entry, n, [names[at[other.label][id(node)]] for node in nodes if id(node) in at[other.label]]))
        if found:
            entry, n, outputs = found[0]
            yield word("returns_parts", side=other.label, other=one.label, n=len(found), entry=entry, outputs=outputs, total=names[n])


def _is_sum(side: Stated, nodes: Sequence[Node], at: dict[int, int]) -> bool:
    return len(nodes) == 1 and id(nodes[0]) in side.nodes.sums and id(nodes[0]) in at


def _containers(side: Stated) -> dict[str, list[Node]]:
    """Entries with recorded children -> the nodes that they return, in their order."""
    found: dict[str, list[Node]] = {}
    for recorded in side.nodes.records.activations:
        node = side.nodes.at.get((recorded.spot.entry, recorded.spot.io, recorded.spot.path))
        if recorded.spot.io == "output" and not recorded.spot.leaf and node is not None:
            found.setdefault(recorded.spot.entry, []).append(node)
    return found
