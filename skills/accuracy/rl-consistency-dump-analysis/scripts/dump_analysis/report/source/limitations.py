"""The limitations of a report source: what was not covered, what is rounding only, what was not measured."""

from collections.abc import Iterator, Sequence

from dump_analysis.artefacts.common import Worded
from dump_analysis.artefacts.conclusion import EndToEndMetric, Finding, LogMetric, Uncompared
from dump_analysis.boundaries import place_of
from dump_analysis.wording import word

from .facts import Facts


def limitations(facts: Facts) -> list[str]:
    """A sentence each, in the order in which a reader asks."""
    return [facts.say(sentence) for sentence in _sentences(facts)]


def _sentences(facts: Facts) -> Iterator[Worded]:
    found = facts.conclusion
    if facts.stated("goal") == "first_divergence":
        yield word("report_first_only")
    for group in _together(found.evidence_missing):
        yield _uncompared(group)
    yield from (_rounding(one) for one in found.findings if one.character == "rounding")
    if not found.rounds and found.overall == "nonzero":
        yield word("report_no_round")
    metrics = (("prefill_logprob_diff", found.metrics.prefill_logprob_diff), ("e2e", found.metrics.e2e))
    for name, metric in metrics:
        if metric.status != "measured":
            yield word("report_metric_absent", metric=name, why=_why(metric))
        elif (climb := _climb(metric)) is not None and found.consistency == "consistent":
            yield word("report_grows_later", metric=name, at=_step(facts), **climb)


def _together(gaps: Sequence[Uncompared]) -> list[list[Uncompared]]:
    """Gaps of one place and one kind of reason in all layers."""
    groups: dict[object, list[Uncompared]] = {}
    for gap in gaps:
        groups.setdefault((place_of(gap.boundary), gap.reason.kind, gap.covered_by is None), []).append(gap)
    return list(groups.values())


def _uncompared(group: Sequence[Uncompared]) -> Worded:
    names, why = [gap.boundary for gap in group], group[0].reason
    told = word("report_uncompared", names=names, why=why) if len(names) == 1 else word("report_uncompared_alike", names=names, why=why)
    covered = [gap.covered_by for gap in group if gap.covered_by is not None]
    return word("report_uncompared_covered", gap=told, by=covered) if covered else told


def _rounding(found: Finding) -> Worded:
    """Stays in sight with its size: the elements that differ, and by how much at most."""
    size = found.size
    told = word("report_rounding", id=found.id, cause=found.cause, boundary=found.boundary, places=len(found.boundaries))
    if size.unequal is None or size.of is None:
        return told
    if size.ulp_max is None:
        return word("report_rounding_share", rounding=told, unequal=size.unequal, of=size.of)
    return word("report_rounding_size", rounding=told, unequal=size.unequal, of=size.of, ulp=size.ulp_max)


def _why(metric: LogMetric | EndToEndMetric) -> Worded:
    return metric.note or word("report_no_log")


def _climb(metric: LogMetric | EndToEndMetric) -> dict[str, object] | None:
    """Where the metric's mean is larger at the last step than at the first: both, with their steps."""
    points = [point for point in metric.by_step if isinstance(point, list) and len(point) == 2 and isinstance(point[1], int | float)]
    if len(points) < 2 or points[-1][1] <= points[0][1]:
        return None
    (begin, low), (end, high) = points[0], points[-1]
    return {"begin": _or_unknown(begin), "low": low, "end": _or_unknown(end), "high": high}


def _step(facts: Facts) -> object:
    """The step of the dumps that were compared."""
    steps = {one.step for one in facts.conclusion.inputs if one.label in ("train", "infer") and one.step is not None}
    return steps.pop() if len(steps) == 1 else "unknown"


def _or_unknown(value: object) -> object:
    return "unknown" if value is None else value
