"""Whether a stage is done: the gates of stages 0, 1, 3 and 7, each with those before it."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from msprobe_files.errors import DumpError

from dump_analysis import divergence
from dump_analysis.artefacts.boundary_results import GAPS, BoundaryResult, BoundaryResults
from dump_analysis.artefacts.common import Worded
from dump_analysis.artefacts.conclusion import Conclusion, EndToEndMetric, LogMetric
from dump_analysis.artefacts.probe import Probe, SideFacts
from dump_analysis.artefacts.semantic_mapping import SemanticMapping
from dump_analysis.pipeline import CONCLUSION, MAPPING, PROBE, RESULTS, TRAIN_LOG
from dump_analysis.sides import EMPTY_CHECKS

from . import scope
from .workdir import CARD, LABELS, ROWS, Workdir

_SHOWN = 4  # names in one line
# What a probe remarks where a unit is not complete; where none of it holds, dump.json tells the order of the ends.
_CUT_DECLARED = frozenset({"no_dump_json", "run_killed", "interrupted", "missing_files"})

Missing = Iterator[tuple[str, str]]


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


def check(stage: int, folder: Path) -> Gate:
    """The gate of a stage and those of the stages before it, over the files in ``folder``.

    Raises DumpError where the stage has no gate here, the folder is not there, or a file in it cannot be read.
    """
    if stage not in GATES:
        raise DumpError(f"Cannot check stage {stage}: this release has gates for the stages 0, 1, 3 and 7. Check one of them.")
    if not folder.is_dir():
        raise DumpError(f"Cannot check stage {stage}: there is no folder {folder}. Check --workdir, or make it and begin with stage 0.")
    work = Workdir(folder)
    gaps = [Gap(at, what, repair) for at, gate in GATES.items() if at <= stage for what, repair in gate(work)]
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


# --- stage 3 ---


def _compared(work: Workdir) -> Missing:
    again = f"Run: {work.analyze()}"
    mapping, results = work.mapping(), work.read(RESULTS, BoundaryResults)
    if mapping is None:
        first = "Run: " if work.has(ROWS) else f"Write the rows in {work.shown(ROWS)}, then run: "
        again = first + work.diagnose()
        yield f"{MAPPING} is missing", again
    if results is None:
        yield f"{RESULTS} is missing", again
        return
    every = [*results.boundaries, *results.weights]
    if mapping is not None:
        yield from _of_the_mapping(work, mapping, results, every, again)
    if results.overall == "not_run":
        yield f"{RESULTS}: nothing was compared", f"Mend the rows in {work.shown(MAPPING)}, then run: {work.analyze()}"
    silent = [row.boundary for row in every if row.status in GAPS and not _says(row.reason)]
    if silent:
        write = f"Write the reasons of rows that cannot be compared in {work.shown(MAPPING)}, then run: {work.analyze()}"
        yield f"{RESULTS}: MISSING or evidence_missing without a reason: {_names(silent)}", write
    yield from _of_the_dumps(work, results, again)


def _of_the_mapping(
    work: Workdir, mapping: SemanticMapping, results: BoundaryResults, every: Sequence[BoundaryResult], again: str
) -> Missing:
    if work.digest(MAPPING) != results.mapping.digest:
        yield f"{RESULTS} was made from another mapping than {MAPPING}, or that was edited since", again
    named = {result.boundary for result in every}
    rows = [row.boundary for row in [*mapping.boundaries, *mapping.weights]] + [row.boundary for row in mapping.evidence_missing]
    left = [boundary for boundary in rows if boundary not in named]
    if left:
        yield f"{RESULTS} has no result for rows of {MAPPING}: {_names(left)}", again


def _of_the_dumps(work: Workdir, results: BoundaryResults, again: str) -> Missing:
    """Whether what was compared is what was probed, and the rows stand in the order in which both sides made them."""
    facts = work.read(PROBE, Probe)
    found = {label: work.side(label, getattr(results, label).digest) for label in LABELS}
    parts = {label: side.units[0].place.folder for label, side in found.items() if side is not None and len(side.units) == 1}
    for label in LABELS:
        known: SideFacts | None = getattr(facts, label) if facts else None
        if known is not None and known.digest != getattr(results, label).digest:
            repair = again if found[label] is None else f"Run: {work.probe(parts)}"  # a part of what was probed was compared
            yield f"{RESULTS} is of another {label} dump than {PROBE}", repair
    train, infer = found["train"], found["infer"]
    if train is None or infer is None:
        work.warnings.append("the dumps that were compared are not both there: the order of the rows is not checked against them")
        return
    turned = divergence.against_time(results.boundaries, train, infer)
    if turned is not None:
        what = f"{RESULTS}: {turned[1]} stands after {turned[0]}, but both sides made it before"
        yield what, f"Mend the order of the rows in {work.shown(MAPPING)}, then run: {work.analyze()}"


# --- stage 7 ---


def _concluded(work: Workdir) -> Missing:
    found = work.read(CONCLUSION, Conclusion)
    if found is None:
        yield f"{CONCLUSION} is missing", f"Run: {work.conclude([])}"
        return
    inputs = {one.label: one.digest for one in found.inputs}
    again = f"Run: {work.conclude(list(inputs))}"
    for name in (RESULTS, MAPPING, PROBE):
        if work.has(name) and inputs.get(name) != work.digest(name):
            yield f"{CONCLUSION} was made from another {name}, or that was made or edited since", again
    if found.overall == "not_run":
        yield f"{CONCLUSION} says not_run: nothing was compared", f"Mend the rows in {work.shown(MAPPING)}, then run: {work.analyze()}"
    for finding in found.findings:
        if not any(_says(sentence) for sentence in finding.evidence):
            yield f"{CONCLUSION}: finding {finding.id} at {finding.boundary} states no evidence", again
    said = sum(_says(sentence) for sentence in found.summary)
    if said != 3 or len(found.summary) != 3:
        yield f"{CONCLUSION}: the summary has {said} sentences, not three", again
    for name, metric in (("prefill_logprob_diff", found.metrics.prefill_logprob_diff), ("e2e", found.metrics.e2e)):
        if _stated(metric) and (metric.source is None or TRAIN_LOG not in inputs):
            yield f"{CONCLUSION}: metrics.{name} does not come from a training log", again


def _stated(metric: LogMetric | EndToEndMetric) -> bool:
    """Whether a metric holds anything that only a log can tell."""
    numbers = (metric.mean, metric.max, metric.std)
    return metric.status != "evidence_missing" or bool(metric.by_step) or any(number is not None for number in numbers)


GATES: dict[int, Callable[[Workdir], Missing]] = {0: scope.gate, 1: _probed, 3: _compared, 7: _concluded}


# --- words ---


def _says(sentence: Worded | None) -> bool:
    return sentence is not None and bool(sentence.text.strip())


def _names(names: Sequence[str]) -> str:
    return ", ".join(names[:_SHOWN]) + (f" … ({len(names)} in all)" if len(names) > _SHOWN else "")
