"""The first divergence: the earliest boundary that was compared and is not EXACT, and what lies before it uncompared."""

from collections.abc import Sequence
from typing import NamedTuple

from msprobe_files import names
from msprobe_files.operands import Operand
from msprobe_files.units import Unit

from dump_analysis.mapping.named import left_out

from .artefacts.assembly_plan import SidePlan
from .artefacts.boundary_results import DIVERGED, GAPS, BoundaryResult, FirstDivergence, Overall
from .artefacts.semantic_mapping import SemanticMapping
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
    between = [name for side in (train, infer) for name in _outputs_between(side, results, at, mapping)]
    timed = all(_can_tell(side, results[at], mapping) for side in (train, infer))
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


def _outputs_between(side: Side, results: Sequence[BoundaryResult], first: int, mapping: SemanticMapping) -> list[str]:
    """Recorded outputs of one side that ended between the last EXACT boundary and the first that differs, and that the comparison
    says nothing about. ``first``: the place of the latter."""
    found: list[Place] = []
    for unit in (unit for unit in _taking_part(side, mapping) if unit.order_known):
        span = _span(_Clock(unit, _copies(unit, side, mapping)), side, results, first)
        if span is None:
            continue
        for at, (entry, records) in enumerate(unit.entries.items()):
            # The entry of the last EXACT boundary counts: a fused norm's first output is not its second.
            if span[0] <= at < span[1] and names.parse_entry(entry).direction != "backward":
                outputs = [record for record in records if record.category == "output" and 0 not in (record.shape or ())]
                found += [Place(unit, record) for record in outputs]
    return list(dict.fromkeys(left_out(mapping, side, found)))


def _taking_part(side: Side, mapping: SemanticMapping) -> list[Unit]:
    """The units that the mapping puts together; all of them where it says nothing."""
    plan = getattr(mapping.ranks, side.label) if mapping.ranks is not None else None
    wanted = None if plan is None else {(at.step, at.rank) for at in plan.units}
    return [unit for unit in side.units if wanted is None or (unit.place.step, unit.place.rank) in wanted]


def _span(clock: "_Clock", side: Side, results: Sequence[BoundaryResult], first: int) -> tuple[float, float] | None:
    """Between which ends of entries a unit may have made what the comparison says nothing about; None where it holds no boundary.

    A rank that holds no part of the divergence itself is bounded by the rows around it.
    """
    moments = [clock.of(side, _operand(result, side.label)) for result in results]
    if all(moment is None for moment in moments):
        return None
    last = next((at for at in reversed(range(first)) if results[at].status == "EXACT"), None)
    earlier = [moment for moment in moments[: (last or 0) + 1] if moment is not None] if last is not None else []
    later = [moment for moment in moments[first:] if moment is not None]
    start = moments[last] if last is not None else None
    stop = moments[first]
    # The rows around it tell only of a rank that has no part of the boundary: elsewhere they need not stand in the order of time.
    alone = stop is None
    return (
        start if start is not None else max(earlier, default=0.0) if alone else 0.0,
        stop if stop is not None else min(later, default=float(len(clock))),
    )


def _can_tell(side: Side, first: BoundaryResult, mapping: SemanticMapping) -> bool:
    """Whether it is known what a side made before the divergence: its order is, and a unit holds a part of it."""
    units = _taking_part(side, mapping)
    holds = [_Clock(unit).of(side, _operand(first, side.label)) is not None for unit in units]
    together = mapping.ranks is not None and getattr(mapping.ranks, side.label) is not None
    return all(unit.order_known for unit in units) and (any(holds) if together else all(holds))


def _operand(result: BoundaryResult, label: str) -> Operand | None:
    return None if result.ops_applied is None else getattr(result.ops_applied, label)


class _At(NamedTuple):
    """A recorded tensor of a unit."""

    step: int
    rank: int
    name: str


def _copies(unit: Unit, side: Side, mapping: SemanticMapping) -> dict[_At, str]:
    """What other ranks hold alike -> what this unit calls its copy."""
    plan: SidePlan | None = getattr(mapping.ranks, side.label) if mapping.ranks is not None else None
    found: dict[_At, str] = {}
    for tensor in plan.tensors if plan is not None else ():
        if tensor.how in ("replicated", "replica"):
            mine = [at.name for at in tensor.order if (at.dump_step, at.rank) == (unit.place.step, unit.place.rank)]
            found.update({_At(at.dump_step, at.rank, at.name): mine[0] for at in tensor.order if mine})
    return found


class _Clock:
    """When the values of a unit were made: entry number ``i`` of dump.json ended at ``i`` (its order is that of ends)."""

    def __init__(self, unit: Unit, copied: "dict[_At, str] | None" = None) -> None:
        self._unit, self._copied = unit, copied or {}
        self._ends = {entry: at for at, entry in enumerate(unit.entries)}

    def __len__(self) -> int:
        return len(self._ends)

    def of(self, side: Side, operand: Operand | None) -> float | None:
        """The latest moment at which a source of the operand was made in this unit; None if none was."""
        moments = []
        for source in operand.sources if operand else ():
            place = resolve(side, source)
            if place is not None and place.unit is self._unit:
                moments.append(self._moment(place.record.entry, place.record.category))
            elif place is not None:
                moments += self._of_copy(_At(place.unit.place.step, place.unit.place.rank, place.record.name))
        return max(moments, default=None)

    def _of_copy(self, at: "_At") -> list[float]:
        """When this unit made its copy of a tensor that a row names on another rank."""
        parsed = names.parse_tensor(self._copied[at]) if at in self._copied else None
        return [self._moment(parsed.entry, parsed.category)] if parsed is not None and parsed.entry in self._ends else []

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
