"""The first divergence: the earliest boundary that was compared and is not EXACT, and what lies before it uncompared."""

from collections.abc import Sequence

from msprobe_files import names
from msprobe_files.operands import Operand
from msprobe_files.units import Unit

from .artefacts.boundary_results import DIVERGED, GAPS, BoundaryResult, FirstDivergence, Overall
from .artefacts.semantic_mapping import SemanticMapping
from .mapping.named import left_out
from .sides import Place, Side, resolve


def overall(boundaries: Sequence[BoundaryResult], weights: Sequence[BoundaryResult]) -> Overall:
    """What all rows together say about bits. Equal weights alone say nothing of what is computed with them."""
    statuses = {result.status for result in [*boundaries, *weights]}
    if not statuses or statuses == {"MISSING"}:
        return "not_run"
    if statuses & DIVERGED:
        return "nonzero"
    return "exact" if statuses == {"EXACT"} and boundaries else "evidence_missing"


def counts(results: Sequence[BoundaryResult]) -> dict[str, int]:
    """How many boundaries have each status, in the order in which the statuses appear."""
    found: dict[str, int] = {}
    for result in results:
        found[result.status] = found.get(result.status, 0) + 1
    return found


def first_divergence(results: Sequence[BoundaryResult], mapping: SemanticMapping, train: Side, infer: Side) -> FirstDivergence | None:
    """None where no compared boundary differs. ``results``: boundaries in order, of the completed ``mapping``."""
    at = next((at for at, result in enumerate(results) if result.status in DIVERGED), None)
    if at is None:
        return None
    gaps = [result.boundary for result in results[:at] if result.status in GAPS]
    before = next((result for result in reversed(results[:at]) if result.status == "EXACT"), None)
    between = [name for side in (train, infer) for name in _outputs_between(side, before, results[at], mapping)]
    timed = all(_can_tell(unit, side, results[at]) for side in (train, infer) for unit in side.units)
    return FirstDivergence(results[at].boundary, results[at].order, timed and not gaps and not between, gaps + between)


def against_time(results: Sequence[BoundaryResult], train: Side, infer: Side) -> tuple[str, str] | None:
    """The first two boundaries that stand in the mapping against the order in which *both* sides made them.

    Only outputs are asked: an input was made some time before it was taken.
    """
    clocks = [(side, _Clock(side.units[0])) for side in (train, infer) if len(side.units) == 1 and side.units[0].order_known]
    if len(clocks) < 2:
        return None
    before: tuple[str, list[float]] | None = None
    for result in results:
        operands = [(side, clock, _operand(result, side.label)) for side, clock in clocks]
        if any(operand is None or any(".output." not in source.name for source in operand.sources) for _, _, operand in operands):
            continue
        moments = [clock.of(side, operand) for side, clock, operand in operands]
        made = [moment for moment in moments if moment is not None]
        if len(made) < 2:
            continue
        if before is not None and all(now < then for now, then in zip(made, before[1], strict=True)):
            return before[0], result.boundary
        before = result.boundary, made
    return None


def _outputs_between(side: Side, last: BoundaryResult | None, first: BoundaryResult, mapping: SemanticMapping) -> list[str]:
    """Recorded outputs of one side that ended between two boundaries and that the comparison says nothing about."""
    found: list[Place] = []
    for unit in (unit for unit in side.units if unit.order_known):
        clock = _Clock(unit)
        stop = clock.of(side, _operand(first, side.label))
        if stop is None:
            continue
        start = clock.of(side, _operand(last, side.label)) if last is not None else None
        for at, (entry, records) in enumerate(unit.entries.items()):
            # The entry of the last EXACT boundary counts: a fused norm's first output is not its second.
            if (start is None or at >= start) and at < stop and names.parse_entry(entry).direction != "backward":
                outputs = [record for record in records if record.category == "output" and 0 not in (record.shape or ())]
                found += [Place(unit, record) for record in outputs]
    return left_out(mapping, side, found)


def _can_tell(unit: Unit, side: Side, first: BoundaryResult) -> bool:
    """Whether it is known what this unit made before the divergence: it holds a part of it, and its order is known."""
    return unit.order_known and _Clock(unit).of(side, _operand(first, side.label)) is not None


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


def _ancestors(trace: "dict[str, str | None]", entry: str) -> set[str]:
    found: set[str] = set()
    parent = trace.get(entry)
    while parent is not None and parent not in found:
        found.add(parent)
        parent = trace.get(parent)
    return found
