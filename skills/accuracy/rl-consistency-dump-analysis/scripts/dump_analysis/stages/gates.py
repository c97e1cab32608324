"""Whether a stage is done: the gates of all stages that have one, each with those before it; here stages 1, 2 and 3 themselves."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from msprobe_files.errors import DumpError

from dump_analysis import divergence
from dump_analysis.artefacts.boundary_results import GAPS, BoundaryResult, BoundaryResults, SidesOperand
from dump_analysis.artefacts.common import SideLabel
from dump_analysis.artefacts.probe import Probe, SideFacts
from dump_analysis.artefacts.semantic_mapping import SemanticMapping
from dump_analysis.gathered import check_consistent
from dump_analysis.pipeline import MAPPING, PROBE, RESULTS
from dump_analysis.sides import EMPTY_CHECKS, Side

from . import concluded, isolated, recomputed, reported, scope
from .workdir import CARD, LABELS, Missing, Workdir, named, says

# What a probe remarks where a unit is not complete; where none of it holds, dump.json tells the order of the ends.
_CUT_DECLARED = frozenset({"no_dump_json", "run_killed", "interrupted", "missing_files"})


class Gap(NamedTuple):
    """What shuts a gate. ``repair``: a command line, perhaps after words that say what to do by hand first."""

    stage: int
    what: str
    repair: str

    @property
    def line(self) -> str:
        """The gap and its repair in one line."""
        return f"stage {self.stage}: {self.what}. {self.repair}"


class Gate(NamedTuple):
    """What `check` found: the gate is open where there are no gaps. ``then``: what to do next."""

    gaps: list[Gap]
    warnings: list[str]
    then: str


_ROUNDS = 5
_OF_THE_MAPPING = frozenset({"tensor_missing", "op_does_not_fit", "shapes_but_ones"})  # reasons that a change of the mapping removes


def check(stage: int, folder: Path) -> Gate:
    """The gate of a stage and those of the stages before it, over the files in ``folder``.

    Raises DumpError where the stage has no gate here, the folder is not there, or a file in it cannot be read.
    """
    if stage not in GATES:
        raise DumpError(f"Cannot check stage {stage}: this release has gates for the stages {_LISTED}. Check one of them.")
    if not folder.is_dir():
        raise DumpError(f"Cannot check stage {stage}: there is no folder {folder}. Check --workdir, or make it and begin with stage 0.")
    work = Workdir(folder)
    gaps = [Gap(at, what, repair) for at, gate in GATES.items() if at <= stage for what, repair in gate(work)]
    gaps += [Gap(stage, what, repair) for what, repair in isolated.asked(work)] if stage == _ROUNDS else []
    return Gate(gaps, work.warnings, gaps[0].repair.removeprefix("Run: ") if gaps else work.after(stage))


# --- stage 1 ---


def _probed(work: Workdir) -> Missing:
    again = f"Run: {work.probe()}"
    facts = work.read(PROBE, Probe)
    if facts is None:
        yield f"{PROBE} is missing", again
        return
    for label in LABELS:
        side: SideFacts | None = getattr(facts, label)
        if side is None:
            yield f"{PROBE} holds no {label} side", again
            continue
        said = {remark.kind for remark in facts.remarks if remark.values.get("side") == label}
        if not any(unit.tensors.input + unit.tensors.output + unit.tensors.parameters for unit in side.units):
            yield f"{PROBE}: the {label} dump holds no tensors", f"Check: {EMPTY_CHECKS[0]}; dump again, then run: {work.probe()}"
        if any(unit.entries and not unit.complete for unit in side.units) and not said & _CUT_DECLARED:
            if not side.trace:
                yield f"{PROBE}: the order in which {label} ran is neither known nor declared unknown", again
            yield f"{PROBE}: a unit of {label} is incomplete and no remark says what is missing", again
        if work.is_there(label) and work.side(label, side.digest) is None:
            yield f"{PROBE} is of another {label} dump than {CARD} names, or that was changed since", again


# --- stage 2 ---


def _mapped(work: Workdir) -> Missing:
    mapping = work.mapping()
    if mapping is None:
        yield f"{MAPPING} is missing", f"Run: {work.map_anew()}"
        return
    by_hand = any("declared" in row.basis for row in [*mapping.boundaries, *mapping.weights])
    again = f"Run: {work.complete() if by_hand else work.map_anew()}"  # what people wrote is completed, never proposed anew
    if mapping.train is None and mapping.infer is None:
        yield f"{MAPPING} is a list of rows that was not completed on the dumps yet", f"Run: {work.complete()}"
        return
    if not mapping.boundaries:
        yield f"{MAPPING} joins no boundary", f"Run: {work.map_anew()}"
    yield from _of_these_dumps(work, mapping, again)
    if mapping.unmapped is None:
        yield f"{MAPPING} does not list the tensors that stand in no row", again
    mend = f"in {work.shown(MAPPING)}, then run: {work.check(2)}"
    groundless = [row.boundary for row in [*mapping.boundaries, *mapping.weights] if not row.basis]
    if groundless:
        yield f"{MAPPING}: rows without a basis: {named(groundless)}", f'Write what joins them ("declared": you) {mend}'
    silent = [row.boundary for row in mapping.evidence_missing if not says(row.reason)]
    if silent:
        yield f"{MAPPING}: evidence_missing without a reason: {named(silent)}", f"Write the reasons {mend}"
    joined = mapping.tokens.coverage if mapping.tokens else None
    if joined is not None and not 0 < joined.joined <= min(joined.train, joined.infer):
        what = f"{joined.joined} tokens are joined of {joined.train} of train and {joined.infer} of infer"
        yield f"{MAPPING}: {what}", f"Hand two dumps of one prompt, or run: {work.map_anew()}"


def _of_these_dumps(work: Workdir, mapping: SemanticMapping, again: str) -> Missing:
    """Whether the mapping was made for the dumps of the task card, and its rows stand in the order in which both sides made them."""
    found: list[Side] = []
    for label in LABELS:
        stated: SideLabel | None = getattr(mapping, label)
        if stated is None:
            yield f"{MAPPING} does not say for which {label} dump it was made", again
        elif work.is_there(label):
            side = work.side(label, stated.digest)
            found += [] if side is None else [side]
            if side is None:
                yield f"{MAPPING} was made for another {label} dump than {CARD} names, or that was changed since", again
    if len(found) < len(LABELS):
        work.warnings.append(f"the dumps of {MAPPING} are not both there: the order of the rows is not checked against them")
        return
    rows = sorted(mapping.boundaries, key=lambda row: row.order)
    timed = [BoundaryResult(row.boundary, row.order, "MISSING", ops_applied=SidesOperand(row.train, row.infer)) for row in rows]
    turned = divergence.against_time(timed, *found)
    if turned is not None:
        what = f"{MAPPING}: {turned[1]} stands after {turned[0]}, but both sides made it before"
        yield what, f"Mend the order of the rows in {work.shown(MAPPING)}, then run: {work.check(2)}"


# --- stage 3 ---


def _compared(work: Workdir) -> Missing:
    again = f"Run: {work.analyze()}"
    results = work.read(RESULTS, BoundaryResults)
    if results is None:
        yield f"{RESULTS} is missing", again
        return
    gaps = [*_of_the_results(work, results, again), *_of_the_dumps(work, results, again)]
    yield from gaps
    if not gaps:
        try:
            check_consistent(results)
        except DumpError:
            yield f"{RESULTS}: its totals are not what its rows say: it was edited", again


def _of_the_results(work: Workdir, results: BoundaryResults, again: str) -> Missing:
    mapping, every = work.mapping(), [*results.boundaries, *results.weights]
    if mapping is not None:
        yield from _of_the_mapping(work, mapping, results, every, again)
    if results.overall == "not_run":
        yield f"{RESULTS}: nothing was compared", f"Mend the rows in {work.shown(MAPPING)}, then run: {work.analyze()}"
    wrong = [row.boundary for row in every if row.reason is not None and row.reason.kind in _OF_THE_MAPPING]
    if wrong and results.overall != "not_run":
        mend = f"Mend them in {work.shown(MAPPING)}, then run: {work.complete()}"
        yield f"{RESULTS}: rows of the mapping do not fit the dumps: {named(wrong)}", mend
    silent = [row.boundary for row in every if row.status in GAPS and not says(row.reason)]
    if silent:
        write = f"Write the reasons of rows that cannot be compared in {work.shown(MAPPING)}, then run: {work.analyze()}"
        yield f"{RESULTS}: MISSING or evidence_missing without a reason: {named(silent)}", write


def _of_the_mapping(
    work: Workdir, mapping: SemanticMapping, results: BoundaryResults, every: Sequence[BoundaryResult], again: str
) -> Missing:
    if work.digest(MAPPING) != results.mapping.digest:
        yield f"{RESULTS} was made from another mapping than {MAPPING}, or that was edited since", again
    have = {result.boundary for result in every}
    rows = [row.boundary for row in [*mapping.boundaries, *mapping.weights]] + [row.boundary for row in mapping.evidence_missing]
    left = [boundary for boundary in rows if boundary not in have]
    if left:
        yield f"{RESULTS} has no result for rows of {MAPPING}: {named(left)}", again


def _of_the_dumps(work: Workdir, results: BoundaryResults, again: str) -> Missing:
    """Whether what was compared is what was probed."""
    facts = work.read(PROBE, Probe)
    found = {label: work.side(label, getattr(results, label).digest) for label in LABELS}
    parts = {label: side.units[0].place.folder for label, side in found.items() if side is not None and len(side.units) == 1}
    for label in LABELS:
        known: SideFacts | None = getattr(facts, label) if facts else None
        if known is not None and known.digest != getattr(results, label).digest:
            repair = again if found[label] is None else f"Run: {work.probe(parts)}"  # a part of what was probed was compared
            yield f"{RESULTS} is of another {label} dump than {PROBE}", repair


GATES: dict[int, Callable[[Workdir], Missing]] = {
    0: scope.gate,
    1: _probed,
    2: _mapped,
    3: _compared,
    4: recomputed.gate,
    _ROUNDS: isolated.gate,
    6: concluded.hypotheses,
    7: concluded.gate,
    8: reported.gate,
}
_LISTED = ", ".join(map(str, GATES))
