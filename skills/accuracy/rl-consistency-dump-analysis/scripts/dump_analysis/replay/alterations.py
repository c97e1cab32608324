"""Which altered values are findings, and of which boundary.

An earlier value that is there again but for few tokens or columns, or times a number, is proven by the dump of its side. What else may
explain it is weighed first: the other side may do the same, or other layers of this side, and then it belongs to the model; or it was made
of a value that was altered itself.
"""

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from msprobe_files.operands import Operand

from dump_analysis.artefacts.common import FindingSide, SideName
from dump_analysis.artefacts.semantic_mapping import Row
from dump_analysis.boundaries import INPUTS, layer_of, place_of
from dump_analysis.mapping.recorded.nodes import Node
from dump_analysis.replay import places
from dump_analysis.replay.changed import Change
from dump_analysis.replay.flow import Flow
from dump_analysis.replay.origins import Origin
from dump_analysis.replay.traced import Traced

SIDES: tuple[SideName, SideName] = ("train", "infer")
_SCALE = "scale"  # the constant of an embedding
_CLOSE = 2.0**-8  # relative: of a scale that is stated and one that was rounded
_FAR = 4  # modules between an altered value and the mapped value that it leads to


class Altered(NamedTuple):
    """A value that was altered on its way to a module. ``boundary``: the first mapped value that holds it, else the first that is made of
    it. ``origin``: what it should be; without ``change`` all of it is ``gain`` times that. ``wrong``: the side that is in the wrong.
    """

    node: Node
    side: SideName
    boundary: str
    input: str
    sources: tuple[str, ...]
    origin: Origin
    wrong: FindingSide

    @property
    def change(self) -> Change | None:
        return self.origin.change

    @property
    def gain(self) -> float | None:
        return self.origin.gain if self.origin.change is None else self.origin.change.gain


class Mapped(NamedTuple):
    """Rows of the mapping by the values that they name on one side, and by the entries that return these; each in the mapping's order."""

    holding: dict[Node, list[Row]]
    made_by: dict[str, list[Row]]


class View(NamedTuple):
    """What is known of both sides, by label. ``stated``: the constants of their configurations."""

    flows: Mapping[str, Flow]
    found: Mapping[str, Sequence[Traced]]
    mapped: Mapping[str, Mapped]
    stated: Mapping[str, Mapping[str, float]]


def view_of(
    rows: Sequence[Row], flows: Mapping[str, Flow], found: Mapping[str, Sequence[Traced]], stated: Mapping[str, Mapping[str, float]]
) -> View:
    """``rows``: of boundaries, in their order; ``found``: where the inputs of each side came from."""
    return View(flows, found, {label: _mapped(flow, rows) for label, flow in flows.items()}, stated)


def operand_of(row: Row, label: str) -> Operand:
    """What a row is on one side."""
    return row.train if label == "train" else row.infer


def _mapped(flow: Flow, rows: Sequence[Row]) -> Mapped:
    holding: dict[Node, list[Row]] = {}
    made_by: dict[str, list[Row]] = {}
    for row in rows:
        operand = operand_of(row, flow.label)
        for node in flow.nodes_in(operand) if row.boundary not in INPUTS else ():
            holding.setdefault(node, []).append(row)
        for place in flow.places_of(operand):
            if place.record.category == "output" and place.record.entry in flow.nodes.records.times.leaves:
                made_by.setdefault(place.record.entry, []).append(row)
    return Mapped(holding, made_by)


def altered_of(view: View) -> list[Altered]:
    """Every altered value that is no one's way to compute, as it came to be. One change may show in several values."""
    found: list[Altered] = []
    for label in (side for side in SIDES if side in view.flows):
        for one in view.found[label]:
            made = _altered(view, label, one) if one.altered and not _is_of_altered(one, found) else None
            found += [made] if made is not None else []
    return found


def without_repeats(altered: Sequence[Altered]) -> list[Altered]:
    """One change that several cuts of a value show is one finding: that of the first."""
    kept: dict[tuple[object, ...], Altered] = {}
    for one in altered:
        tokens = one.change.tokens if one.change is not None and len(one.change.tokens) * 2 < one.change.of_tokens else one.input
        kept.setdefault((one.side, one.sources, tokens), one)
    return list(kept.values())


def _is_of_altered(one: Traced, before: Sequence[Altered]) -> bool:
    """Whether a value is changed only where one that it is made of was: it may have been made of that before it was altered."""
    change = one.origin.change
    made_of = [other.change for other in before if other.node in one.origin.sources and other.change is not None]
    return change is not None and any(
        set(change.tokens) <= set(other.tokens) and set(change.columns) <= set(other.columns) for other in made_of
    )


def _altered(view: View, label: SideName, one: Traced) -> Altered | None:
    """The finding that an altered value is; None where the model may mean it, or no mapped value is made of it."""
    row = _row_of(view, label, one)
    if row is None or one.node is None:
        return None
    wrong: FindingSide = label
    if one.origin.change is None and _is_scaled_alone(view, label, one):
        wrong = _against_its_configuration(view, label, one)
    elif not (_is_strange(view, label, one, row) if one.origin.change is not None else _is_stray(view, label, one, row)):
        return None
    flow = view.flows[label]
    names = tuple(name for source in one.origin.sources for name in flow.names_of(source))
    return Altered(one.node, label, row.boundary, flow.recorded_as(one.recorded.record.name)[0], names, one.origin, wrong)


def _row_of(view: View, label: SideName, one: Traced) -> Row | None:
    """The first mapped value that holds an altered one, else the nearest that is made of it."""
    mapped, flow = view.mapped[label], view.flows[label]
    reached: list[Node] = [one.node] if one.node is not None else []
    for _ in range(_FAR):
        held = [mapped.holding[node][0] for node in reached if node in mapped.holding]
        entries = [spot.entry for node in reached for spot in node.spots if spot.io != "output" and spot.leaf]
        made = [mapped.made_by[entry][0] for entry in entries if entry in mapped.made_by]
        if held or made:
            return (held or made)[0]
        outputs = [node for (entry, io, _), node in flow.nodes.at.items() if io == "output" and entry in entries]
        reached = [*outputs, *(made_of for made_of, sources in _sources(view, label) if any(node in sources for node in reached))]
    return None


def _sources(view: View, label: str) -> list[tuple[Node, tuple[Node, ...]]]:
    """Values that no module made, and those that they are made of."""
    return [(one.node, one.origin.sources) for one in view.found[label] if one.node is not None and one.node not in one.origin.sources]


def _is_strange(view: View, label: SideName, one: Traced, row: Row) -> bool:
    """Whether the other side does not change the same tokens or columns; and where no factor and no mix-up says what the change is,
    whether it hands the value on unchanged.
    """
    change = one.origin.change
    if change is None or change.how == "rounding":
        return False
    others = _counterparts(view, label, one, row)
    if any(other.origin.change is not None and _same_places(other.origin.change, change) for other in others):
        return False
    if change.how != "other":
        return True
    plain = bool(others) and all(other.origin.how is not None and not other.altered for other in others)
    return plain and 2 * len(change.tokens) < change.of_tokens  # a rotation of part of the columns changes few columns, but many tokens


def _same_places(one: Change, other: Change) -> bool:
    return one.tokens == other.tokens or (one.columns == other.columns and len(one.columns) < one.of_columns)


def _counterparts(view: View, label: SideName, one: Traced, row: Row) -> list[Traced]:
    """What the other side recorded of the same value, or of what its module takes."""
    other = _other(label)
    flow, found = view.flows[other], view.found[other]
    if one.node in view.mapped[label].holding:
        nodes = set(flow.nodes_in(operand_of(row, other)))
    else:
        entries = {place.record.entry for place in flow.places_of(operand_of(row, other))}
        nodes = {taken.node for taken in found if taken.recorded.spot.entry in entries and taken.node is not None}
    return [taken for taken in found if taken.node in nodes]


def _is_scaled_alone(view: View, label: SideName, one: Traced) -> bool:
    """Whether a side multiplies its embeddings, and the other, which holds the same ones, hands them on as they are."""
    other = _other(label)
    if other not in view.flows or not _is_embedding(view, label, one):
        return False
    return not any(taken.altered and _is_embedding(view, other, taken) for taken in view.found[other])


def _is_embedding(view: View, label: SideName, one: Traced) -> bool:
    """Whether a value is made of the embeddings alone."""
    held = view.mapped[label].holding.get(one.origin.sources[0], ()) if len(one.origin.sources) == 1 else ()
    return any(row.boundary == places.EMBEDDING for row in held)


def _against_its_configuration(view: View, label: SideName, one: Traced) -> FindingSide:
    """Which of a side that multiplies its embeddings and one that does not computes otherwise than its own configuration states."""
    gains = {label: one.origin.gain or 1.0, _other(label): 1.0}
    stated = {side: view.stated.get(side, {}).get(_SCALE) for side in SIDES}
    wrong = [side for side, value in stated.items() if value is not None and not math.isclose(value, gains[side], rel_tol=_CLOSE)]
    return wrong[0] if len(wrong) == 1 else "unknown"


def _is_stray(view: View, label: SideName, one: Traced, row: Row) -> bool:
    """Whether a value is multiplied in one layer alone: in most others, and on the other side, it is not."""
    multiplied = {taken.origin.sources[0] for found in view.found.values() for taken in found if taken.origin.gain is not None}
    holding = view.mapped[label].holding
    own = next((row for row in holding.get(one.origin.sources[0], ()) if layer_of(row.boundary) is not None), None)
    if own is None or layer_of(row.boundary) is None:
        return False
    alike = {row.boundary: row for found in holding.values() for row in found if place_of(row.boundary) == place_of(own.boundary)}
    there = {
        (name, side): any(node in multiplied for node in view.flows[side].nodes_in(operand_of(row, side)))
        for name, row in alike.items()
        for side in SIDES
    }
    elsewhere = [there[name, label] for name in alike if name != own.boundary]
    return bool(elsewhere) and 2 * sum(elsewhere) < len(elsewhere) and not there[own.boundary, _other(label)]


def _other(label: SideName) -> SideName:
    return "infer" if label == "train" else "train"
