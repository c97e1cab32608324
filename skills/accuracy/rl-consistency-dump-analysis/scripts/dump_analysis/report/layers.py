"""Boundaries laid out by layer and place: the grid of the layer map, and where each finding lives."""

import re
from collections.abc import Sequence
from typing import NamedTuple

from dump_analysis.artefacts.conclusion import Finding
from dump_analysis.boundaries import layer_of
from dump_analysis.report.said import ranges, short
from dump_analysis.report.states import WORST_FIRST, Cell, State, grouped, of_finding, places_of

MOST_COLUMNS, MOST_NARROW = 100, 40  # layers, before neighbours that are equal fold into one column
_MOST_PLACES = 24
_FEW_LAYERS = 3  # a fault in so many layers, and at most half of all, gets outlined columns
_NUMBERED = re.compile(r"\.\d+(?=\.|$)")


class Column(NamedTuple):
    """Layers that are drawn as one: all their cells are alike."""

    first: int
    last: int

    @property
    def label(self) -> str:
        return str(self.first) if self.first == self.last else f"{self.first}–{self.last}"


class Place(NamedTuple):
    """A row of the map. ``states`` by column, None where a layer has no such place; ``findings``: the ids at its end, faults first."""

    name: str
    states: tuple[State | None, ...]
    findings: tuple[str, ...]
    ends_attention: bool


class Grid(NamedTuple):
    """``marked``: columns outlined for a fault, with its id; ``left_out``: places that only the table holds."""

    columns: tuple[Column, ...]
    places: tuple[Place, ...]
    marked: tuple[tuple[int, str], ...]
    left_out: int


class Life(NamedTuple):
    """Where a finding lives: ``layers`` empty where it is outside the layers; ``label``: its cause in a few characters."""

    finding: str
    state: State
    label: str
    layers: tuple[int, ...]


def layers_of(cells: Sequence[Cell]) -> list[int]:
    """The layers that have a boundary."""
    return sorted({cell.layer for cell in cells if cell.layer is not None})


def grid(cells: Sequence[Cell], findings: Sequence[Finding], most: int) -> Grid | None:
    """The layer map with at most about ``most`` columns; None where no boundary lies in a layer."""
    layers = layers_of(cells)
    if not layers:
        return None
    inside: dict[str, dict[int, list[Cell]]] = {}
    for cell in cells:
        if cell.layer is not None:
            inside.setdefault(_NUMBERED.sub(".*", cell.place), {}).setdefault(cell.layer, []).append(cell)
    names = list(inside)
    worst = {(name, layer): _worst(inside[name].get(layer, [])) for name in names for layer in layers}
    columns = _columns(layers, names, worst, most)
    places = [
        Place(
            name,
            tuple(worst[name, column.first] for column in columns),
            _ids(inside[name], findings),
            name == "resid_attn" and at < len(names) - 1,
        )
        for at, name in enumerate(names[:_MOST_PLACES])
    ]
    return Grid(tuple(columns), tuple(places), _marked(columns, findings), max(0, len(names) - _MOST_PLACES))


def _worst(found: Sequence[Cell]) -> State | None:
    states = {cell.state for cell in found}
    return next((state for state in WORST_FIRST if state in states), None)


def _columns(layers: Sequence[int], names: Sequence[str], worst: dict[tuple[str, int], State | None], most: int) -> list[Column]:
    if len(layers) <= most:
        return [Column(layer, layer) for layer in layers]
    columns: list[Column] = []
    before: tuple[State | None, ...] | None = None
    for layer in layers:
        now = tuple(worst[name, layer] for name in names)
        if columns and now == before and columns[-1].last == layer - 1:
            columns[-1] = Column(columns[-1].first, layer)
        else:
            columns.append(Column(layer, layer))
        before = now
    return columns


def _ids(by_layer: dict[int, list[Cell]], findings: Sequence[Finding]) -> tuple[str, ...]:
    named = {finding for found in by_layer.values() for cell in found for finding in cell.findings}
    return tuple(finding.id for finding in grouped(findings) if finding.id in named)


def _marked(columns: Sequence[Column], findings: Sequence[Finding]) -> tuple[tuple[int, str], ...]:
    found: dict[int, str] = {}
    every = columns[-1].last - columns[0].first + 1
    for finding in findings:
        layers = lived_in(finding)
        if finding.character != "logic" or not 0 < len(layers) <= _FEW_LAYERS or 2 * len(layers) > every:
            continue
        for at, column in enumerate(columns):
            if any(column.first <= layer <= column.last for layer in layers):
                found[at] = f"{found[at]} {finding.id}" if at in found else finding.id
    return tuple(sorted(found.items()))


def lived_in(finding: Finding) -> list[int]:
    """The layers in which a finding is made."""
    return sorted({layer for name in places_of(finding) if (layer := layer_of(name)) is not None})


def lives(findings: Sequence[Finding]) -> list[Life]:
    """Each finding with its layers, faults first."""
    return [Life(finding.id, of_finding(finding), _label(finding), tuple(lived_in(finding))) for finding in grouped(findings)]


def _label(finding: Finding) -> str:
    """A constant's name, or the place where the finding is made first: what tells findings apart in twenty characters."""
    name = finding.cause.values.get("name")
    if isinstance(name, str):
        return short(name, 20)
    first = finding.boundary
    return short(first.split(".", 2)[2] if layer_of(first) is not None else first, 20)


def strip_of(life: Life, layers: Sequence[int]) -> str:
    """A finding over the layers, one glyph a layer: for terminals and Markdown."""
    inside = set(life.layers)
    return "".join(life.state.glyph if layer in inside else " " for layer in layers).rstrip()


def said_layers(layers: Sequence[int], every: Sequence[int]) -> str:
    """The layers of a finding in figures; empty for all of them."""
    return "" if list(layers) == list(every) else ranges(layers)
