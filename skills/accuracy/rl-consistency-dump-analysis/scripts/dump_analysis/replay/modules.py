"""Which recorded entry made the value of a boundary, as which operator, from which inputs and weights: judged from shapes and the mapping.

A value that an entry hands out is recomputed from what that entry was handed; a value that is made between entries (a residual sum, an
activation times up) from the boundaries before it. Nothing is judged from names of modules or classes.
"""

import contextlib
from collections.abc import Mapping
from types import MappingProxyType
from typing import Literal, NamedTuple

import numpy as np
from msprobe_files import release
from msprobe_files.operands import Op, Operand
from msprobe_files.units import Record, Unit

from dump_analysis import floats
from dump_analysis.artefacts.semantic_mapping import MissingRow, Row, SemanticMapping, Tokens
from dump_analysis.boundaries import INPUTS, is_weight
from dump_analysis.floats import Array
from dump_analysis.mapping.recorded.cuts import with_ops
from dump_analysis.replay import places
from dump_analysis.replay.experts import RoutedExperts
from dump_analysis.replay.flat_holes import bias_behind, cut_out, weight_in_hole
from dump_analysis.replay.heads import Heads
from dump_analysis.replay.own_weights import BIAS, HANDED_BIAS, WEIGHT, elements, layout_of, own_weights, parameters
from dump_analysis.replay.recorded import CannotReplay, Cut, Matrix, beside, cut_of, matrix_of, place_of, value_of
from dump_analysis.sides import Place, Side
from dump_analysis.tensors import Files
from dump_analysis.wording import word

Origin = Literal["recorded", "borrowed", "tied", "absent"]  # tied: the embedding's table, which is the head's weight in many models
_NORMS, _OF_LOGITS = ("rms_norm", "layer_norm"), ("soft_capped_linear", "scaled_linear")

Weighed = tuple[dict[str, Matrix], Origin, tuple[str, ...]]  # weights, where they come from, parameters that are not used


class Work(NamedTuple):
    """What one side recorded of a module. ``operators``: what it can be, by its shapes; ``unused``: parameters of other names.

    ``guessed``: a weight is a hole of its size in a flat parameter, which proves itself only where it explains the output.
    """

    entry: str
    via: tuple[str, ...]
    operators: tuple[str, ...]
    output: Matrix
    inputs: tuple[Matrix, ...]
    weights: dict[str, Matrix]
    origin: Origin
    unused: tuple[str, ...]
    inputs_are: str
    guessed: bool = False
    heads: Heads | None = None
    experts: RoutedExperts | None = None


class Pair(NamedTuple):
    """Both sides of a mapping, its rows by boundary, the names of its weights (recorded or not), and which of each side's rows are
    which sequence's. ``has_weights``: whether a parameter of anything was recorded; ``gaps``: what one side alone may have, by boundary."""

    train: Side
    infer: Side
    rows: Mapping[str, Row]
    weights: frozenset[str] = frozenset()
    tokens: Tokens | None = None
    has_weights: bool = True
    gaps: Mapping[str, MissingRow] = MappingProxyType({})

    def side(self, label: str) -> Side:
        return self.train if label == "train" else self.infer


def pair_of(mapping: SemanticMapping, train: Side, infer: Side) -> Pair:
    """The sides with the mapping's rows of boundaries and weights."""
    rows = {row.boundary: row for row in [*mapping.boundaries, *mapping.weights]}
    known = [*(row.boundary for row in mapping.weights), *(row.boundary for row in mapping.evidence_missing)]
    weights = frozenset(boundary for boundary in known if is_weight(boundary))
    has_weights = any(parameters(own) for unit in [*train.units, *infer.units] for own in unit.entries.values())
    return Pair(train, infer, rows, weights, mapping.tokens, has_weights, {gap.boundary: gap for gap in mapping.evidence_missing})


def rows_of(mapping: SemanticMapping) -> list[Row]:
    """The rows whose values are made by a module, in order."""
    return [row for row in mapping.boundaries if row.boundary not in INPUTS]


def makes_logits(work: Work) -> bool:
    """Whether a work is the head of a vocabulary."""
    return set(_OF_LOGITS) <= set(work.operators)


def entry_of(row: Row, label: str) -> str | None:
    """The innermost recorded entry in which a side makes the value."""
    return getattr(row.module, label) if row.module is not None else None


def work_of(files: Files, pair: Pair, row: Row, label: str) -> Work:
    """What is needed to recompute one side of a boundary. Raises CannotReplay, saying why, where something is missing."""
    side, operand, entry = pair.side(label), _operand(row, label), entry_of(row, label)
    before = places.sources_of(row.boundary, pair.rows)
    if before is not None:
        return _between(files, pair, row, label, before)
    place = place_of(side, operand.sources[0])
    handed_out = place.record.entry == entry and place.record.category == "output"
    if row.boundary == places.EMBEDDING and not handed_out:
        return _scaled_embedding(files, pair, row, label)
    if places.is_between(row.boundary) or not handed_out:
        raise CannotReplay(word("replay_no_formula", module=places.module_of(row.boundary)))
    return _of_entry(files, pair, row, label, place)


def _operand(row: Row, label: str) -> Operand:
    return row.train if label == "train" else row.infer


# --- made between entries ---


def _between(files: Files, pair: Pair, row: Row, label: str, before: places.Sources) -> Work:
    side = pair.side(label)
    output = value_of(files, side, _operand(row, label))
    inputs = tuple(value_of(files, side, _operand(pair.rows[name], label)) for name in before.boundaries)
    width = output.columns * (2 if before.boundaries[0].endswith(places.FUSED) else 1)
    if any((made.rows, made.columns) != (output.rows, width) for made in inputs):
        raise CannotReplay(word("replay_other_rows", side=side.label, module=places.module_of(row.boundary)))
    unit = place_of(side, _operand(row, label).sources[0]).unit
    entry = entry_of(row, label) or output.name
    return Work(entry, _without_weights(unit, entry), (before.operator,), output, inputs, {}, "absent", (), release.inputs_are(unit))


def _scaled_embedding(files: Files, pair: Pair, row: Row, label: str) -> Work:
    """An embedding that is changed after its entry handed it out, as by a model's scale."""
    side, ids, weight = pair.side(label), pair.rows.get("input_ids"), pair.rows.get("embedding.weight")
    if ids is None or weight is None:
        raise CannotReplay(word("replay_no_formula", module=places.module_of(row.boundary)))
    output, table = value_of(files, side, _operand(row, label)), place_of(side, _operand(weight, label).sources[0])
    given = value_of(files, side, with_ops(_operand(ids, label), Op("reshape", shape=(-1, 1))))
    if given.rows != output.rows:
        raise CannotReplay(word("replay_other_rows", side=side.label, module=places.module_of(row.boundary)))
    weights = {WEIGHT: value_of(files, side, _operand(weight, label))}
    via, made = (table.record.entry,), release.inputs_are(table.unit)
    return Work(entry_of(row, label) or via[0], via, ("embedding",), output, (given,), weights, "recorded", (), made)


def _without_weights(unit: Unit, entry: str) -> tuple[str, ...]:
    """The entries inside an entry that own no parameters: what a value between modules may have come through."""
    children = [name for name, parent in (unit.trace or {}).items() if parent == entry]
    records = ((name, unit.entries.get(name, ())) for name in children)
    return tuple(name for name, found in records if found and not any(record.category == "parameters" for record in found))


# --- made by an entry ---


def _of_entry(files: Files, pair: Pair, row: Row, label: str, place: Place) -> Work:
    side, records = pair.side(label), place.unit.entries[place.record.entry]
    cut = cut_of(side, _operand(row, label))
    weights, origin, guessed = _weights(files, pair, row, label, cut)
    if BIAS in weights and not weights[BIAS].read(0, weights[BIAS].rows).any():
        weights = {WEIGHT: weights[WEIGHT]}  # zeros add nothing: as if there were none
    used = {BIAS if name == HANDED_BIAS else name for name in weights}
    unused = tuple(record.suffix for record in parameters(records) if record.suffix not in {*used, BIAS})
    weight = weights.get(WEIGHT)
    if weight is None and not parameters(records) and places.is_norm(row.boundary) and not _has_weight(pair, row):
        return _norm(files, side, place, cut, {}, "absent", ())
    if weight is None:
        kind = "replay_no_weight" if _has_weight(pair, row) or parameters(records) else "replay_no_formula"
        raise CannotReplay(word(kind, module=places.module_of(row.boundary)))
    if weight.rows == 1 and cut.width % weight.columns == 0:
        if place.record.suffix != "0":
            raise CannotReplay(word("replay_no_formula", module=places.module_of(row.boundary)))
        cut = cut_of(side, _operand(row, label), weight.columns)
        return _norm(files, side, place, cut, weights, origin, unused)
    if _is_of_heads(place, weight):
        cut = cut_of(side, _operand(row, label), weight.rows * weight.columns)
        return _norm(files, side, place, cut, weights, origin, unused)
    work = _matrix_work(files, side, place, cut, (weights, origin, unused), _last_rows(pair, label))._replace(guessed=guessed)
    return work._replace(operators=(*work.operators, *_OF_LOGITS)) if row.boundary == places.LOGITS else work


def _is_of_heads(place: Place, weight: Matrix) -> bool:
    """Whether a matrix is the gains of heads, [heads, D], and no linear's."""
    records = parameters(place.unit.entries[place.record.entry])
    own = next((record for record in records if record.suffix == WEIGHT and len(record.shape or ()) == 2), None)
    return own is not None and own.shape == (weight.rows, weight.columns) and layout_of(place, own) == "heads"


def _norm(files: Files, side: Side, place: Place, cut: Cut, weights: dict[str, Matrix], origin: Origin, unused: tuple[str, ...]) -> Work:
    """One weight a column: a norm over the columns, of one input or of the sum of two."""
    output = matrix_of(files, place, cut.width, cut.rows)
    same = [record for record in _floating_inputs(place) if elements(record) == elements(place.record)]
    inputs = tuple(matrix_of(files, beside(side, place, record), cut.width, cut.rows) for record in same)
    if not inputs:
        raise CannotReplay(word("replay_no_input", entry=place.record.entry))
    return Work(place.record.entry, (), _NORMS, output, inputs, weights, origin, unused, release.inputs_are(place.unit))


def _matrix_work(files: Files, side: Side, place: Place, cut: Cut, given: Weighed, last: Array | None) -> Work:
    """A matrix: rows of it picked by ids (embedding), or products of the input with its rows (linear).

    ``last``: the row of the last token of each sequence, which may be all that an engine makes logits of.
    """
    weights, origin, unused = given
    output = matrix_of(files, place, cut.width, cut.rows, cut.columns)
    weight, bias = weights[WEIGHT], weights.get(BIAS)
    if output.columns not in (weight.rows, weight.columns) or (bias is not None and bias.columns != output.columns):
        raise CannotReplay(word("replay_no_formula", module=place.record.entry))
    rows, made = elements(place.record) // cut.width, release.inputs_are(place.unit)
    for record in _inputs(place):
        integer = floats.is_integer(record.dtype)
        width = 1 if integer else weight.columns
        taken: Array | None = cut.rows
        if elements(record) != rows * width:
            if integer or last is None or len(last) != rows or elements(record) <= width * int(last.max()) or elements(record) % width:
                continue
            taken = last[cut.rows]
        inputs = (matrix_of(files, beside(side, place, record), width, taken),)
        operators = ("embedding",) if integer else ("linear",)
        return Work(place.record.entry, (), operators, output, inputs, weights, origin, unused, made)
    raise CannotReplay(word("replay_no_input", entry=place.record.entry))


def _last_rows(pair: Pair, label: str) -> Array | None:
    """The row of the last token of each sequence on a side."""
    if pair.tokens is None:
        return None
    return np.array([stop - 1 for _, _, stop in getattr(pair.tokens, label)], np.int64)


def _weights(files: Files, pair: Pair, row: Row, label: str, cut: Cut) -> tuple[dict[str, Matrix], Origin, bool]:
    """The entry's own parameters; else those of the place in the mapping; else what the other side has. With whether one is guessed."""
    own = own_weights(files, pair.side(label), cut, is_turned=_is_turned(pair, row, label))
    if own:
        return own, "recorded", False
    mapped = _mapped_weights(files, pair, row, label)
    if mapped:
        weight = pair.rows[f"{places.module_of(row.boundary)}.{WEIGHT}"]
        behind = {} if BIAS in mapped else bias_behind(files, pair.side(label), cut_out(pair.rows, label), _operand(weight, label), cut)
        return {**mapped, **behind}, "recorded", bool(behind)
    hole = weight_in_hole(files, pair.side(label), cut_out(pair.rows, label), cut)
    if hole:
        return hole, "recorded", True
    other = "infer" if label == "train" else "train"
    borrowed: dict[str, Matrix] = {}
    guessed = False
    with contextlib.suppress(CannotReplay):
        borrowed, guessed = _weights_of_other(files, pair, row, other)
    if borrowed:
        return borrowed, "borrowed", guessed
    tied = of_embedding(files, pair, label, other) if row.boundary == places.LOGITS else {}
    return tied, "tied" if tied else "absent", False


def of_embedding(files: Files, pair: Pair, *labels: str) -> dict[str, Matrix]:
    """The table of the first side that recorded one."""
    row = pair.rows.get(places.EMBEDDING)
    for label in labels if row is not None else ():
        with contextlib.suppress(CannotReplay):  # that side's table cannot be read: perhaps the other's
            found, _ = _weights_of_other(files, pair, row, label) if row is not None else ({}, False)
            if found:
                return found
    return {}


def _weights_of_other(files: Files, pair: Pair, row: Row, other: str) -> tuple[dict[str, Matrix], bool]:
    """What the mapping says the other side has; else what its entry recorded, if the value is its output. With whether it is guessed."""
    mapped = _mapped_weights(files, pair, row, other)
    if mapped:
        return mapped, False
    cut = cut_of(pair.side(other), _operand(row, other))
    if cut.place.record.category != "output" or cut.place.record.entry != entry_of(row, other):
        return {}, False
    own = own_weights(files, pair.side(other), cut, is_turned=_is_turned(pair, row, other))
    return (own, False) if own else (weight_in_hole(files, pair.side(other), cut_out(pair.rows, other), cut), True)


def _mapped_weights(files: Files, pair: Pair, row: Row, label: str) -> dict[str, Matrix]:
    rows = {kind: pair.rows.get(f"{places.module_of(row.boundary)}.{kind}") for kind in (WEIGHT, BIAS)}
    found = {kind: value_of(files, pair.side(label), _operand(own, label)) for kind, own in rows.items() if own is not None}
    return found if WEIGHT in found else {}


def _is_turned(pair: Pair, row: Row, label: str) -> bool:
    """Whether the mapping turns the matrix of a row's module on a side."""
    own = pair.rows.get(f"{places.module_of(row.boundary)}.{WEIGHT}")
    return own is not None and any(op.op == "permute" for source in _operand(own, label).sources for op in source.steps or ())


def _has_weight(pair: Pair, row: Row) -> bool:
    return not pair.has_weights or f"{places.module_of(row.boundary)}.{WEIGHT}" in pair.weights


def _inputs(place: Place) -> list[Record]:
    records = place.unit.entries[place.record.entry]
    return [record for record in records if record.category in ("input", "kwargs") and record.file is not None]


def _floating_inputs(place: Place) -> list[Record]:
    return [record for record in _inputs(place) if not floats.is_integer(record.dtype)]
