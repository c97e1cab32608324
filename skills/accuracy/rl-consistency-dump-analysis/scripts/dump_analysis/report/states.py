"""What each boundary is in the report: made here or carried in, exact or not compared (one state a boundary)."""

from collections.abc import Sequence
from enum import Enum
from typing import NamedTuple

from dump_analysis.artefacts.boundary_results import GAPS, BoundaryResult
from dump_analysis.artefacts.conclusion import Finding
from dump_analysis.boundaries import is_weight, layer_of, made_by
from dump_analysis.replay.places import module_of
from dump_analysis.report.evidence import Evidence


class State(Enum):
    """The letter under which a state travels in the page; its glyph stands beside its word everywhere."""

    FAULT = "f"
    ROUNDING = "r"
    OPEN = "h"  # differs, and whether it is made here is not known
    CARRIED = "m"
    UNCOMPARED = "o"
    EXACT = "x"

    @property
    def glyph(self) -> str:
        return {"f": "■", "r": "●", "h": "◐", "m": "–", "o": "○", "x": "·"}[self.value]


WORST_FIRST = (State.FAULT, State.OPEN, State.ROUNDING, State.CARRIED, State.UNCOMPARED, State.EXACT)
IN_ORDER = (State.EXACT, State.FAULT, State.OPEN, State.ROUNDING, State.CARRIED, State.UNCOMPARED)  # of the tally
MADE_HERE = (State.FAULT, State.OPEN, State.ROUNDING)


class Cell(NamedTuple):
    """One boundary. ``place``: its name without the layer; ``findings``: ids of the findings made here, the decisive first."""

    boundary: str
    order: int
    layer: int | None
    place: str
    state: State
    share: float | None
    unequal: int | None
    max_abs: float | None
    rel_l2: float | None
    findings: tuple[str, ...]


def cells(evidence: Evidence) -> list[Cell]:
    """Every boundary in the order of computation."""
    made: dict[str, list[Finding]] = {}
    for finding in sorted(evidence.conclusion.findings, key=lambda one: _WEIGHT[one.character]):
        for boundary in places_of(finding):
            made.setdefault(boundary, []).append(finding)
    same = {module.module for module in (evidence.replay.modules if evidence.replay is not None else ()) if module.verdict == "same"}
    return [_cell(result, made.get(result.boundary, []), module_of(result.boundary) in same) for result in evidence.results.boundaries]


def places_of(finding: Finding) -> list[str]:
    """The boundaries where a finding is made; a weight that differs shows at the boundary that it makes."""
    named = dict.fromkeys([finding.boundary, *finding.boundaries])
    return list(dict.fromkeys(made_by(name) if is_weight(name) else name for name in named))


_WEIGHT = {"logic": 0, "unknown": 1, "rounding": 2}


def _cell(result: BoundaryResult, made: Sequence[Finding], is_same: bool) -> Cell:
    layer = layer_of(result.boundary)
    return Cell(
        result.boundary,
        result.order,
        layer,
        result.boundary.split(".", 2)[2] if layer is not None else result.boundary,
        _state(result, made, is_same),
        result.unequal.share if result.unequal is not None else None,
        result.unequal.count if result.unequal is not None else None,
        result.max_abs_diff,
        result.rel_l2,
        tuple(finding.id for finding in made),
    )


def _state(result: BoundaryResult, made: Sequence[Finding], is_same: bool) -> State:
    """In this order: not compared, exact, in a logic finding, in a rounding finding, only carried in, else not separated."""
    if result.status in GAPS:
        return State.UNCOMPARED
    if result.status == "EXACT":
        return State.EXACT
    characters = {finding.character for finding in made}
    if "logic" in characters:
        return State.FAULT
    if "rounding" in characters and "unknown" not in characters:
        return State.ROUNDING
    return State.CARRIED if is_same and not characters else State.OPEN


def of_finding(finding: Finding) -> State:
    """The state that a finding gives to where it is made."""
    return {"logic": State.FAULT, "rounding": State.ROUNDING, "unknown": State.OPEN}[finding.character]


def weights_of(evidence: Evidence) -> tuple[int, int, int]:
    """Weights: equal, compared, all."""
    rows = evidence.results.weights
    compared = [row for row in rows if row.status not in GAPS]
    return sum(row.status == "EXACT" for row in compared), len(compared), len(rows)


def grouped(findings: Sequence[Finding]) -> list[Finding]:
    """Findings as they are shown: faults, then what is not decided, then rounding; each in the order of its number."""
    return sorted(findings, key=lambda one: _WEIGHT[one.character])
