"""Stages 6 and 7: every hypothesis has a ground, and the conclusion follows from what is here now."""

from collections.abc import Sequence

import msgspec

from dump_analysis import conclusion
from dump_analysis.artefacts import io
from dump_analysis.artefacts.boundary_results import BoundaryResults
from dump_analysis.artefacts.conclusion import Conclusion, EndToEndMetric, Hypothesis, LogMetric
from dump_analysis.artefacts.probe import Probe, SideFacts
from dump_analysis.artefacts.replay_results import ReplayResults
from dump_analysis.causes.six import NAMES
from dump_analysis.gathered import TRAIN_LOG, rounds_here
from dump_analysis.pipeline import CONCLUSION, MAPPING, PROBE, REPLAY, RESULTS

from .workdir import CARD, LABELS, Missing, Workdir, named, says

# --- stage 6 ---


def hypotheses(work: Workdir) -> Missing:
    """Stage 6: each gap and its repair."""
    found = work.read(CONCLUSION, Conclusion)
    if found is None:
        yield f"{CONCLUSION} is missing", f"Run: {work.conclude([])}"
        return
    inputs = {one.label: one.digest for one in found.inputs}
    again = f"Run: {work.conclude(list(inputs))}"
    for name in (RESULTS, MAPPING, PROBE, REPLAY, *work.round_results()):
        if work.has(name) and inputs.get(name) != work.digest(name):
            yield f"{CONCLUSION} was made from another {name}, or that was made or edited since", again
    yield from ((f"{CONCLUSION}: {what}", again) for what in _of_the_hypotheses(found.hypotheses))


def _of_the_hypotheses(found: Sequence[Hypothesis]) -> list[str]:
    names = [one.name for one in found]
    lacking = [name for name in NAMES if name not in names]
    twice = sorted({name for name in NAMES if names.count(name) > 1})
    groundless = [one.name for one in found if not says(one.because)]
    undecided = [one.name for one in found if one.state == "open" and not any(map(says, one.would_decide))]
    told = (
        (lacking, "hypotheses that are not judged"),
        (twice, "hypotheses that are judged twice"),
        (groundless, "hypotheses without a ground"),
        (undecided, "open hypotheses that do not say what would decide them"),
    )
    return [f"{what}: {named(wrong)}" for wrong, what in told if wrong]


# --- stage 7 ---


def gate(work: Workdir) -> Missing:
    """Stage 7: each gap and its repair; where there is no conclusion, stage 6 has said so."""
    found = work.read(CONCLUSION, Conclusion)
    if found is None:
        return
    inputs = {one.label: one.digest for one in found.inputs}
    again = f"Run: {work.conclude(list(inputs))}"
    gaps = list(_of_the_conclusion(work, found, inputs, again))
    yield from gaps
    if not gaps and (made := _made_again(work, found)) is not None and io.text_of(made) != io.text_of(found):
        planned = io.text_of(msgspec.structs.replace(made, rounds=found.rounds)) == io.text_of(found)
        what = "does not hold the rounds as they are planned now" if planned else f"is not what follows from {RESULTS}: it was edited"
        yield f"{CONCLUSION} {what}", again


def _of_the_conclusion(work: Workdir, found: Conclusion, inputs: dict[str, str], again: str) -> Missing:
    if work.log() is not None and TRAIN_LOG not in inputs:
        yield f"{CONCLUSION} holds no metrics, though {CARD} names a training log", again
    if found.overall == "not_run":
        yield f"{CONCLUSION} says not_run: nothing was compared", f"Mend the rows in {work.shown(MAPPING)}, then run: {work.analyze()}"
    for finding in found.findings:
        if not any(says(sentence) for sentence in finding.evidence):
            yield f"{CONCLUSION}: finding {finding.id} at {finding.boundary} states no evidence", again
    said = sum(says(sentence) for sentence in found.summary)
    if said != 3 or len(found.summary) != 3:
        yield f"{CONCLUSION}: the summary has {said} sentences, not three", again
    for name, metric in (("prefill_logprob_diff", found.metrics.prefill_logprob_diff), ("e2e", found.metrics.e2e)):
        if _stated(metric) and (metric.source is None or TRAIN_LOG not in inputs):
            yield f"{CONCLUSION}: metrics.{name} does not come from a training log", again


def _made_again(work: Workdir, found: Conclusion) -> Conclusion | None:
    """The conclusion that follows from what is here now; None where that cannot be read or was changed since."""
    results, facts = work.read(RESULTS, BoundaryResults), work.read(PROBE, Probe)
    inputs = {one.label: one.digest for one in found.inputs}
    names = (RESULTS, MAPPING, PROBE, REPLAY, *work.round_results())
    current = all(inputs.get(name) == (work.digest(name) if work.has(name) else None) for name in names)
    replay = work.read(REPLAY, ReplayResults)
    if results is None or not current:
        return None
    for label in LABELS:
        known: SideFacts | None = getattr(facts, label) if facts else None
        if facts is not None and known is not None and known.digest != getattr(results, label).digest:
            facts = msgspec.structs.replace(facts, **{label: None})
    rounds, _ = rounds_here(work.folder, results)
    return conclusion.conclude(results, work.mapping(), facts, found.inputs, found.metrics, replay, rounds=rounds)


def _stated(metric: LogMetric | EndToEndMetric) -> bool:
    """Whether a metric holds anything that only a log can tell."""
    numbers = (metric.mean, metric.max, metric.std)
    return metric.status != "evidence_missing" or bool(metric.by_step) or any(number is not None for number in numbers)
