"""The first divergence: the earliest boundary that was compared and is not EXACT, and what lies before it uncompared."""

from collections.abc import Sequence

from msprobe_files import names
from msprobe_files.operands import Operand
from msprobe_files.units import Unit

from .artefacts.boundary_results import DIVERGED, GAPS, BoundaryResult, FirstDivergence, Overall
from .artefacts.semantic_mapping import SemanticMapping
from .mapping.declared import names_of
from .sides import Side, resolve, same_tensors


def overall(results: Sequence[BoundaryResult]) -> Overall:
    """What all rows together say about bits; ``results``: boundaries and weights."""
    statuses = {result.status for result in results}
    if not statuses or statuses == {"MISSING"}:
        return "not_run"
    if statuses & DIVERGED:
        return "nonzero"
    return "exact" if statuses == {"EXACT"} else "evidence_missing"


def first_divergence(results: Sequence[BoundaryResult], mapping: SemanticMapping, train: Side, infer: Side) -> FirstDivergence | None:
    """None where no compared boundary differs. ``results``: boundaries in order, of the completed ``mapping``."""
    at = next((at for at, result in enumerate(results) if result.status in DIVERGED), None)
    if at is None:
        return None
    gaps = [result.boundary for result in results[:at] if result.status in GAPS]
    before = next((result for result in reversed(results[:at]) if result.status == "EXACT"), None)
    between = [name for side in (train, infer) for name in _outputs_between(side, before, results[at], mapping)]
    timed = all(unit.order_known for side in (train, infer) for unit in side.units)
    return FirstDivergence(results[at].boundary, results[at].order, timed and not gaps and not between, gaps + between)


def _outputs_between(side: Side, last: BoundaryResult | None, first: BoundaryResult, mapping: SemanticMapping) -> list[str]:
    """Recorded outputs of one side that ended between two boundaries and that the comparison says nothing about."""
    named = names_of(mapping, side.label)
    found: list[str] = []
    for unit in (unit for unit in side.units if unit.order_known):
        clock = _Clock(unit)
        stop = clock.of(side, _operand(first, side.label))
        if stop is None:
            continue
        start = clock.of(side, _operand(last, side.label)) if last is not None else None
        for at, (entry, records) in enumerate(unit.entries.items()):
            if (start is None or at > start) and at < stop and names.parse_entry(entry).direction != "backward":
                outputs = [record for record in records if record.category == "output" and 0 not in (record.shape or ())]
                found += [record.name for record in outputs if record.name not in named]
    known = same_tensors(side, found, named)
    return [name for name in found if name not in known]


def _operand(result: BoundaryResult, label: str) -> Operand | None:
    return None if result.ops_applied is None else getattr(result.ops_applied, label)


class _Clock:
    """When the values of a unit were made: entry number ``i`` of dump.json ended at ``i`` (its order is that of ends)."""

    def __init__(self, unit: Unit) -> None:
        self._unit = unit
        self._ends = {entry: at for at, entry in enumerate(unit.entries)}

    def of(self, side: Side, operand: Operand | None) -> float | None:
        """The latest moment at which a source of the operand was made in this unit; None if none was."""
        moments = []
        for source in operand.sources if operand else ():
            place = resolve(side, source)
            if place is not None and place.unit is self._unit:
                moments.append(self._moment(place.record.entry, place.record.category))
        return max(moments, default=None)

    def _moment(self, entry: str, category: str) -> float:
        if category == "output":
            return self._ends[entry]
        return min([self._ends[entry], *(self._ends[inner] for inner in self._inside(entry))]) - 0.5

    def _inside(self, entry: str) -> list[str]:
        """Entries that ran inside another one: by construct.json, else by their path."""
        trace = self._unit.trace
        if trace:
            return [other for other in self._ends if entry in _ancestors(trace, other)]
        path = names.parse_entry(entry).path
        return [
            other
            for other in self._ends
            if path and len(names.parse_entry(other).path) > len(path) and names.parse_entry(other).path[: len(path)] == path
        ]


def _ancestors(trace: "dict[str, str | None]", entry: str) -> list[str]:
    found: list[str] = []
    parent = trace.get(entry)
    while parent is not None and parent not in found:
        found.append(parent)
        parent = trace.get(parent)
    return found
