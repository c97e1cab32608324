"""Stage 4: the first divergence names what lies before it, and every mapped module has a verdict of these dumps by this mapping."""

from collections.abc import Sequence

from dump_analysis.artefacts.boundary_results import GAPS, BoundaryResults
from dump_analysis.artefacts.replay_results import ModuleReplay, ReplayResults
from dump_analysis.pipeline import MAPPING, REPLAY, RESULTS
from dump_analysis.replay import modules, places

from .workdir import LABELS, Missing, Workdir, named, says


def gate(work: Workdir) -> Missing:
    """Each gap and its repair."""
    results, found = work.read(RESULTS, BoundaryResults), work.read(REPLAY, ReplayResults)
    if results is not None:
        yield from ((f"{RESULTS}: {what}", f"Run: {work.analyze()}") for what in _of_the_first(work, results))
    again = f"Run: {work.replay()}"
    if found is None:
        yield f"{REPLAY} is missing", again
        return
    if work.has(MAPPING) and found.mapping.digest != work.digest(MAPPING):
        yield f"{REPLAY} was made from another mapping than {MAPPING}, or that was edited since", again
    for label in LABELS if results is not None else ():
        if getattr(results, label).digest != getattr(found, label).digest:
            yield f"{REPLAY} is of another {label} dump than {RESULTS}", again
    yield from ((f"{REPLAY}: {what}", again) for what in _of_the_modules(work, found.modules))


def _of_the_first(work: Workdir, results: BoundaryResults) -> list[str]:
    """What the first divergence leaves unsaid of what lies before it."""
    first = results.first_divergence
    if first is None:
        return []
    before = [row.boundary for row in results.boundaries if row.order < first.order and row.status in GAPS]
    unnamed = [boundary for boundary in before if boundary not in first.uncompared_before]
    if unnamed:
        return [f"first_divergence does not name gaps before it: {named(unnamed)}"]
    if first.predecessors_complete and first.uncompared_before:
        return [f"first_divergence says that all before it was compared, and names gaps: {named(first.uncompared_before)}"]
    if not first.predecessors_complete and not first.uncompared_before:
        work.warnings.append("the order in which a side ran is not known: a source before the first divergence is not excluded")
    return []


def _of_the_modules(work: Workdir, found: Sequence[ModuleReplay]) -> list[str]:
    mapping, judged = work.mapping(), {module.module for module in found}
    mapped = [places.module_of(row.boundary) for row in modules.rows_of(mapping)] if mapping is not None else []
    lacking = [name for name in mapped if name not in judged]
    undecided = [one.module for one in found if one.verdict == "unknown" and not any(map(says, one.would_decide))]
    groundless = [one.module for one in found if one.verdict in ("logic", "rounding") and not any(map(says, one.evidence))]
    told = (
        (lacking, f"no verdict on modules of {MAPPING}"),
        (undecided, "unknown without saying what would decide"),
        (groundless, "verdicts without evidence"),
    )
    return [f"{what}: {named(wrong)}" for wrong, what in told if wrong]
