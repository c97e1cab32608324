"""Joined rows as semantic_mapping.json: names, order, operands, what joined each row, and what has no counterpart."""

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from typing import NamedTuple

import msgspec
from msprobe_files.operands import Op, Operand

from dump_analysis import tensors
from dump_analysis.artefacts.common import Modules, SideLabel, Worded
from dump_analysis.artefacts.semantic_mapping import Basis, MissingRow, Row, SemanticMapping
from dump_analysis.boundaries import INPUTS, layer_of
from dump_analysis.mapping.joining.join import join
from dump_analysis.mapping.joining.joined import Joined, JoinedSides
from dump_analysis.mapping.naming.gaps import Extra, Gap, gaps_of
from dump_analysis.mapping.naming.places import has_role, names_of
from dump_analysis.mapping.naming.producers import Makers, Producer, Taken, maker_of, of_operand
from dump_analysis.mapping.naming.rowgraph import first_spot
from dump_analysis.mapping.naming.tails import TailRow, logits_row
from dump_analysis.mapping.naming.usual import taken_as_usual
from dump_analysis.mapping.recorded.cuts import cut_op, with_ops
from dump_analysis.mapping.recorded.nodes import SideNodes
from dump_analysis.mapping.rows.candidates import by_place, equal_vectors
from dump_analysis.mapping.rows.flat_parameters import flat_rows
from dump_analysis.mapping.rows.log_probs import LogProbs, log_prob_rows
from dump_analysis.mapping.rows.partial_rows import whole_rows, whole_weights
from dump_analysis.mapping.rows.routing import routed_places
from dump_analysis.mapping.rows.shifted import shifted_rows
from dump_analysis.mapping.rows.token_notes import row_before, tokens_of, with_open_ids, without_cached, without_logits
from dump_analysis.mapping.rows.weight_gaps import MissingWeight, Places, left_rows, missing_weights, routed_of
from dump_analysis.mapping.rows.weight_rows import Made, WeightRow, covered, permuted_inputs, rows_of_places, stem_of, with_embedding
from dump_analysis.mapping.stated import stated_proposal
from dump_analysis.mapping.stated.stated import without_files
from dump_analysis.sides import Side, resolve
from dump_analysis.wording import word

_CLOSE = 1.3  # decades: what a signature alone may join
_SURE = 0.99
_FEW_TOKENS = 8
_BASES: dict[str, Basis] = {"pattern": "dataflow", "sum": "dataflow", "transfer": "dataflow", "name": "name"}


class _Line(NamedTuple):
    """A row of boundaries before it has its number, and the entries that make it. ``after``: index of the joined row before it."""

    row: Row
    made: Made
    after: int | None = None


class Proposal(NamedTuple):
    """A mapping, complete but for ``unmapped``, and what people should know of how it came about."""

    mapping: SemanticMapping
    remarks: list[Worded]


def propose(train: Side, infer: Side) -> Proposal:
    """The mapping that two dumps themselves tell.

    Raises DumpError where a side holds several units, or no tokens join the sides.
    """
    if without_files(train) or without_files(infer):
        return Proposal(*stated_proposal.propose(train, infer))
    joined = join(train, infer)
    joined = joined._replace(rows=_in_order(joined))
    names, doubtful = names_of(joined.rows, joined.train, joined.infer)
    gaps = gaps_of(joined, names)
    tail = logits_row(joined.rows, joined.train, joined.infer) if "logits" not in names else None
    lines = _lines(joined, names, doubtful, tail)
    places = _places(joined, lines, names, gaps)
    rows = rows_of_places(places.made, joined.train, joined.infer, permuted_inputs(joined))
    rows += flat_rows(places.made, rows, joined.train, joined.infer)
    rows += left_rows(places, joined.modules, rows, joined.train, joined.infer)
    routed = routed_places(joined, names, places.experts, rows)
    rows = routed.weights
    shifted = shifted_rows(joined, names)
    log_probs = log_prob_rows(joined, names, tail) if not shifted.extras else LogProbs([], set())
    further = [*without_cached(joined), *routed.extras, *without_logits(joined, tail), *shifted.extras, *log_probs.extras]
    dropped = routed.dropped | shifted.dropped | log_probs.dropped
    boundaries, missing = with_open_ids(joined, *_ordered(lines, [*gaps, *further], dropped))
    makers = {line.row.boundary: (line.made.train, line.made.infer) for line in lines}
    boundaries, cut = whole_rows(joined, boundaries, makers)
    missing += cut
    weights, no_weights = _weights(rows, missing_weights(places, rows, joined.train, joined.infer), lines, gaps)
    weights, parts = whole_weights(joined, weights)
    mapping = SemanticMapping(
        train=SideLabel(train.label, train.digest),
        infer=SideLabel(infer.label, infer.digest),
        boundaries=boundaries,
        weights=weights,
        evidence_missing=_without_rows([*missing, *no_weights, *parts], [*boundaries, *weights]),
        tokens=tokens_of(joined, shifted.remarks),
    )
    return Proposal(mapping, _remarks(joined, names, rows))


def _without_rows(gaps: Sequence[MissingRow], rows: Sequence[Row]) -> list[MissingRow]:
    """Gaps under names that no row and no earlier gap bears: a place that is compared is none, whatever else lacks there."""
    taken = {row.boundary for row in rows}
    kept: dict[str, MissingRow] = {}
    for gap in gaps:
        if gap.boundary not in taken:
            kept.setdefault(gap.boundary, gap)
    return list(kept.values())


def _in_order(joined: JoinedSides) -> list[Joined]:
    """The rows as the trainer has their values; what one entry takes or returns at once, in the order of its arguments."""
    activations = joined.train.records.activations
    places = {(one.spot.entry, one.spot.io, one.spot.path): at for at, one in enumerate(activations)}

    makers = Makers(joined.train)

    def key(row: Joined) -> tuple[float, float, int]:
        spot = first_spot(row.train)
        made = makers.of(row.train)
        ended = joined.train.records.times.end[made.entry] if made is not None else row.train.ready
        if made is not None and not made.whole and ended < row.train.ready:  # a part exists when the whole does, wherever it is recorded
            return ended, ended, len(places) + int(made.columns[0])
        return row.train.ready, row.train.time, places.get((spot.entry, spot.io, spot.path), len(places))

    # Several parts side by side say something only where the other side recorded them whole.
    said = {(row.train, row.infer): row for row in joined.rows if not (row.train.union and row.infer.union)}
    return sorted(said.values(), key=key)


def _remarks(joined: JoinedSides, names: Sequence[str], rows: Sequence[WeightRow]) -> list[Worded]:
    """What is weaker than usual, and what the sides hold exchanged or laid out otherwise."""
    sides = (("train", joined.train), ("infer", joined.infer))
    found = [word("untraced", side=label) for label, side in sides if not side.records.times.traced]
    if len(joined.tokens.agree) < _FEW_TOKENS:
        found.append(word("few_tokens", n=len(joined.tokens.agree)))
    found += [] if joined.modules else [word("no_weights_joined")]
    if joined.partial is not None:
        found.append(word("ranks_missing", side=joined.partial.side, share=f"{joined.partial.share:.0%}"))
    at = {(row.train, row.infer): name for row, name in zip(joined.rows, names, strict=True)}
    found += [word("exchanged_rows", one=at[one[:2]], other=at[other[:2]]) for one, other in joined.exchanged]
    elsewhere = [row.name for row in rows if row.elsewhere and joined.partial is None]
    return found + [word("weight_elsewhere", weight=name) for name in elsewhere]


# --- boundaries ---


def _lines(joined: JoinedSides, names: Sequence[str], doubtful: set[str], tail: TailRow | None) -> list[_Line]:
    """The rows of boundaries in their order: inputs, joined rows, logits of the last position. ``doubtful``: names with a note."""
    lines = [_input_line(name, joined) for name in ("input_ids", "positions")]
    found = [line for line in lines if line is not None]
    notes = {name: said.text for name, said in by_place(joined, names, doubtful).items()}
    notes |= {name: word("exchanged", other=other).text for name, other in _crossed(joined, names).items()}
    train = taken_as_usual(Makers(joined.train), names, [row.train for row in joined.rows])
    infer = taken_as_usual(Makers(joined.infer), names, [row.infer for row in joined.rows])
    found += [_joined_line(row, name, ends, notes.get(name)) for row, name, *ends in zip(joined.rows, names, train, infer, strict=True)]
    found += [_tail_line(joined, tail)] if tail is not None else []
    made = with_embedding([line.made for line in found], joined.train, joined.infer)
    return [line._replace(made=one) for line, one in zip(found, made, strict=True)]


def _crossed(joined: JoinedSides, names: Sequence[str]) -> dict[str, str]:
    """Name of a row that is joined by its role -> the name of the row whose values it holds on the other side."""
    at = {(row.train, row.infer): name for row, name in zip(joined.rows, names, strict=True)}
    pairs = [tuple(at[(row.train, row.infer)] for row in pair) for pair in joined.exchanged]
    return {one: other for left, right in pairs for one, other in ((left, right), (right, left))}


def _input_line(name: str, joined: JoinedSides) -> _Line | None:
    operands = [getattr(side, "ids" if name == "input_ids" else name) for side in (joined.train, joined.infer)]
    if None in operands:
        return None
    dtypes = [_dtype(side, operand) for side, operand in zip((joined.train, joined.infer), operands, strict=True)]
    note = f"{dtypes[0]} against {dtypes[1]}" if dtypes[0] != dtypes[1] else None
    # Tokens that differ lower what the ids say; positions were chosen as they are.
    confidence = joined.tokens.matches / max(1, joined.tokens.joined) if name == "input_ids" else 1.0
    row = Row(name, 0, operands[0], operands[1], ["values"], round(confidence, 2), Modules(None, None), note)
    return _Line(row, Made(name, True, None, None, None, 0.0))


def _dtype(side: SideNodes, operand: Operand) -> str:
    place = resolve(side.records.side, operand.sources[0])
    return "" if place is None else tensors.described(place).dtype


def _joined_line(row: Joined, name: str, ends: Sequence[Taken], note: str | None) -> _Line:
    (left, train, *_), (right, infer, *_) = ends
    if row.columns is not None:
        left = with_ops(left, cut_op(1, row.columns))
    basis: list[Basis] = ["weights"] if row.weights > 0.5 else []
    basis += ["signature"] if row.likeness >= _CLOSE else []
    basis += [_BASES.get(row.why, "structure")]
    confidence = round(max(0.01, min(_SURE, 0.5 + 0.1 * row.likeness + 0.1 * row.weights)), 2)
    modules = Modules(*(end.module for end in ends))
    made = Made(stem_of(name), has_role(name, row), train, infer, row.columns, confidence)
    return _Line(Row(name, 0, left, right, basis, confidence, modules, note or _sum_note(row)), made)


def _sum_note(row: Joined) -> str | None:
    summed = [label for label, node in (("train", row.train), ("infer", row.infer)) if node.combine == "sum"]
    return word("sum_of_two", side=summed[0]).text if len(summed) == 1 else None


def _tail_line(joined: JoinedSides, tail: TailRow) -> _Line:
    ends = [of_operand(side, operand) for side, operand in ((joined.train, tail.train), (joined.infer, tail.infer))]
    dtypes = [_dtype(side, operand) for side, operand in ((joined.train, tail.train), (joined.infer, tail.infer))]
    operands = [_widened(tail.train, dtypes[0], dtypes[1]), _widened(tail.infer, dtypes[1], dtypes[0])]
    found = [word("last_position", side=side).text for side in tail.last_only]
    found += [word("padded_columns", side=tail.padded).text] if tail.padded else []
    found += [word("two_dtypes", train=dtypes[0], infer=dtypes[1]).text] if dtypes[0] != dtypes[1] else []
    basis: list[Basis] = ["structure", "signature"] if tail.cosine > 0.3 else ["structure"]
    confidence = round(max(0.01, min(_SURE, tail.cosine)), 2)
    modules = Modules(*(None if end is None else end.entry for end in ends))
    row = Row("logits", 0, operands[0], operands[1], basis, confidence, modules, "; ".join(found) or None)
    return _Line(row, Made(stem_of("logits"), True, ends[0], ends[1], None, confidence), row_before(joined, tail.time))


def _widened(operand: Operand, dtype: str, other: str) -> Operand:
    """Logits that one side keeps in 16 bits, as the other's 32: an exact cast."""
    if dtype in ("bfloat16", "float16") and other == "float32":
        return with_ops(operand, Op("cast", dtype="float32"))
    return operand


def _ordered(lines: Sequence[_Line], gaps: Sequence[Gap | Extra], dropped: AbstractSet[str]) -> tuple[list[Row], list[MissingRow]]:
    """One count over rows and gaps: a gap stands after the row that its own side has before it. ``dropped``: names of lines left out."""
    said = covered([line.made for line in lines]) | {at for at, line in enumerate(lines) if line.row.boundary in dropped}
    inputs = _inputs(lines)
    items: list[tuple[float, int, _Line | Gap | Extra]] = [
        (float(at if line.after is None else line.after + inputs), 0, line) for at, line in enumerate(lines) if at not in said
    ]
    items += [(gap.after + inputs, 1 + at, gap) for at, gap in enumerate(gaps)]
    rows: list[Row] = []
    missing: list[MissingRow] = []
    for order, (_, _, item) in enumerate(sorted(items, key=lambda entry: entry[:2])):
        said_of = _missing(item, order) if isinstance(item, Gap) else item.row if isinstance(item, _Line) else item.item
        numbered = msgspec.structs.replace(said_of, order=order)
        if isinstance(numbered, Row):
            rows.append(numbered)
        else:
            missing.append(numbered)
    return rows, missing


def _inputs(lines: Sequence[_Line]) -> int:
    """How many rows of the model's inputs stand before the joined ones."""
    return sum(line.row.boundary in INPUTS for line in lines)


def _missing(gap: Gap, order: int) -> MissingRow:
    nodes = {label: gap.node(label) for label in ("train", "infer")}
    sides = {label: [source.name for source in node.sources] if node is not None else [] for label, node in nodes.items()}
    if sides["train"] and sides["infer"]:
        reason = word("not_joined", what=gap.boundary)
    else:
        reason = word("no_counterpart", side="infer" if sides["train"] else "train", what=gap.boundary)
    return MissingRow(gap.boundary, order, reason, sides["train"], sides["infer"])


# --- weights ---


def _places(joined: JoinedSides, lines: Sequence[_Line], names: Sequence[str], gaps: Sequence[Gap]) -> Places:
    """What is known of the entries that hold parameters."""
    made = [line.made for line in lines if not line.made.prefix.rpartition(".")[2].startswith("resid_")]
    prefixes: dict[str, dict[str, str]] = {}
    for label in ("train", "infer"):
        side: SideNodes = getattr(joined, label)
        stems: dict[str, list[str]] = {}
        for one in made:
            end: Producer | None = getattr(one, label)
            if end is not None and one.prefix not in stems.setdefault(end.entry, []):
                stems[end.entry].append(one.prefix)
        for gap in gaps:
            node = gap.node(label)
            entry = maker_of(side, node) if node is not None else None
            if entry is not None:
                stems.setdefault(entry, [stem_of(gap.boundary)])
        prefixes[label] = {entry: _together(found) for entry, found in stems.items()}
    return Places(made, prefixes, routed_of(joined, names))


def _together(prefixes: Sequence[str]) -> str:
    """One name for a fused module: ``layers.0.q``, ``layers.0.k``, ``layers.0.v`` -> ``layers.0.qkv``."""
    head, dot, _ = prefixes[0].rpartition(".")
    last = [prefix.rpartition(".")[2] for prefix in prefixes]
    return head + dot + ("".join(last) if last == ["q", "k", "v"] else "_".join(last))


def _weights(
    rows: Sequence[WeightRow], missing: Sequence[MissingWeight], lines: Sequence[_Line], gaps: Sequence[Gap]
) -> tuple[list[Row], list[MissingRow]]:
    """Rows and gaps of weights on a count of their own, in the order of what they make."""
    order = {line.made.prefix: float(at) for at, line in enumerate(lines)}
    order.update({stem_of(gap.boundary): gap.after + _inputs(lines) + 0.5 for gap in gaps})
    ends = {layer: at for line, at in zip(lines, range(len(lines)), strict=True) if (layer := layer_of(line.row.boundary)) is not None}

    def place(name: str) -> tuple[float, ...]:
        stem = name.removesuffix(".weight").removesuffix(".bias")
        layer = layer_of(name)
        if stem in order:
            return (order[stem],)
        return (float(ends[layer]), 0.5) if layer in ends else (float(len(lines)),)

    items: list[WeightRow | MissingWeight] = sorted([*rows, *missing], key=lambda item: place(item.name))
    made: list[Row] = []
    gone: list[MissingRow] = []
    alike = equal_vectors(rows)
    for at, item in enumerate(items):
        if isinstance(item, MissingWeight):
            gone.append(MissingRow(item.name, at, item.reason, item.train, item.infer))
        else:
            made.append(_weight(item, at, alike.get(item.name)))
    return made, gone


def _weight(row: WeightRow, order: int, alike: Worded | None) -> Row:
    vector = len(row.train.tensor.shape) == 1
    basis: list[Basis] = (["weights", "structure"] if vector else ["weights"]) if row.equal else ["structure"]
    note = word("rows_elsewhere").text if row.elsewhere else alike.text if alike is not None else None
    modules = Modules(row.train.entry, row.infer.entry)
    return Row(row.name, order, row.operand("train"), row.operand("infer"), basis, row.confidence, modules, note)
