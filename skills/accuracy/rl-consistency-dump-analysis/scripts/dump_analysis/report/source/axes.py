"""Results and verification axes of a report source: what was checked, and how it came out."""

from collections.abc import Sequence

from dump_analysis.artefacts.boundary_results import DIVERGED, GAPS
from dump_analysis.artefacts.common import Worded
from dump_analysis.artefacts.conclusion import EndToEndMetric, RoundSummary
from dump_analysis.artefacts.report_source import (
    CheckedAxis,
    EndToEndStatus,
    ExactGate,
    OptionalAxis,
    PrefillAxis,
    PrefillStatus,
    Results,
    VerificationAxes,
    WeightAxis,
)
from dump_analysis.causes.compared import unmapped_weights
from dump_analysis.weights import compared
from dump_analysis.wording import word

from .facts import Facts

UNKNOWN = "unknown"


def results(facts: Facts) -> Results:
    """What the analysis says of the prefill, and a training log of the response."""
    metric = facts.conclusion.metrics.e2e
    status, value = end_to_end(metric)
    native = facts.conclusion.overall
    return Results(
        native_prefill_status=native,
        conditional_prefill_status=conditional(facts.conclusion.rounds),
        e2e_metric_status=status,
        e2e_metric_value=value,
        e2e_metric_name=metric.name or UNKNOWN,
        e2e_metric_evidence=facts.say(_of_metric(metric)),
        unresolved_replay_ids=[],
        native_exact_gate=ExactGate(True, True, True, True, True, "unknown", 0.0) if native == "exact" else None,
    )


def end_to_end(metric: EndToEndMetric) -> tuple[EndToEndStatus, float | None]:
    """Zero only where a log measured 0; a bound is no value."""
    if metric.status != "measured":
        return metric.status, None
    if metric.mean is None:
        return "evidence_missing", None
    return ("nonzero" if metric.mean else "zero"), metric.mean


def conditional(rounds: Sequence[RoundSummary]) -> PrefillStatus:
    """What the last round that took effect left behind the overridden boundary; ``not_run`` without one."""
    stop = next((one.stop for one in reversed(rounds) if one.effective), None)
    if stop is None:
        return "not_run"
    return "exact" if stop == "all_exact" else "evidence_missing" if stop == "evidence_missing" else "nonzero"


def axes(facts: Facts) -> VerificationAxes:
    """The nine axes; what one pair of dumps does not check is not_run."""
    once, no_patch = facts.say(word("report_one_prefill")), facts.say(word("report_no_patch"))
    return VerificationAxes(
        tensor_prefill=PrefillAxis(facts.conclusion.overall, facts.say(_of_boundaries(facts))),
        weight_sync=weight_sync(facts),
        stateful_training=CheckedAxis("not_run", once),
        long_horizon_e2e=_long_horizon(facts),
        reduced_model_transfer=OptionalAxis("not_run", facts.say(word("report_reduced_unknown"))),
        requested_model_final=CheckedAxis("not_run", facts.say(word("report_not_repaired"))),
        production_patch_hygiene=CheckedAxis("not_run", no_patch),
        clean_runtime_activation=CheckedAxis("not_run", no_patch),
        performance_regression=OptionalAxis("not_applicable", no_patch),
    )


def weight_sync(facts: Facts) -> WeightAxis:
    """``exact`` only where every weight of both sides was compared bit for bit and is equal."""
    rows = facts.results.weights if facts.results else []
    found = compared(rows)
    left = unmapped_weights(facts.mapping, ())  # one that recomputing explains with the other side's is not compared, either
    gaps = [row.boundary for row in rows if row.status in GAPS]
    apart = [row.boundary for row in rows if row.status in DIVERGED]
    told: Worded = word("count_weights", all=len(rows), equal=found.equal, differ=found.compared - found.equal, gaps=found.gaps)
    if left:
        told = word("report_weights_unmapped", counts=told, unmapped=left)
    if apart or gaps:
        told = word("report_weights_named", counts=told, names=[*apart, *gaps])
    at_fault = any(one.character == "logic" and "weights" in one.confirmed_by for one in facts.conclusion.findings)
    if at_fault:
        return WeightAxis("mismatch", facts.say(told))
    if not rows:
        return WeightAxis("not_run", facts.say(word("weights_not_compared")))
    whole = all(row.status == "EXACT" for row in rows) and not left
    return WeightAxis("exact" if whole else "evidence_missing", facts.say(told))


def _of_boundaries(facts: Facts) -> Worded:
    counts = facts.results.counts if facts.results else {}
    return word(
        "count_boundaries",
        exact=counts.get("EXACT", 0),
        all=sum(counts.values()),
        differ=sum(counts.get(status, 0) for status in DIVERGED),
        gaps=sum(counts.get(status, 0) for status in GAPS),
    )


def _of_metric(metric: EndToEndMetric) -> Worded:
    """What the log says of the response metric."""
    if metric.source is None and metric.note is None:
        return word("report_no_log")
    if metric.status != "measured":
        return metric.note or word("report_metric_not_run", source=metric.source)
    told = word("report_metric", source=metric.source, step=UNKNOWN if metric.step is None else metric.step)
    return told if metric.note is None else word("report_metric_but", metric=told, note=metric.note)


def _long_horizon(facts: Facts) -> CheckedAxis:
    metric = facts.conclusion.metrics.e2e
    if metric.status == "measured":
        return CheckedAxis("evidence_missing", facts.say(word("report_steps_measured", n=len(metric.by_step), source=metric.source)))
    return CheckedAxis("not_run", facts.say(_of_metric(metric)))
