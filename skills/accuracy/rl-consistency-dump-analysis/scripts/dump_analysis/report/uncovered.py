"""What is not covered: each group that was not compared, what would decide, and metrics that have no value."""

from typing import NamedTuple

from dump_analysis.artefacts.conclusion import EndToEndMetric, LogMetric, Uncompared
from dump_analysis.boundaries import layer_of
from dump_analysis.report.actions import growing
from dump_analysis.report.evidence import Evidence
from dump_analysis.report.said import Voice, count
from dump_analysis.report.states import Cell, State
from dump_analysis.wording import word


class Group(NamedTuple):
    """Places that were not compared for one reason. ``could_hide``: a fault may hide there."""

    what: tuple[str, ...]
    why: str
    decides: str
    could_hide: bool
    stands: str


class Uncovered(NamedTuple):
    """``metrics``: sentences; ``notes``: charts that are left out, and why."""

    answer: str
    groups: tuple[Group, ...]
    decides: tuple[str, ...]
    metrics: tuple[str, ...]
    notes: tuple[str, ...]


def uncovered(evidence: Evidence, cells: list[Cell], notes: list[str], voice: Voice) -> Uncovered:
    """The section's facts. ``notes``: what other sections leave out."""
    conclusion = evidence.conclusion
    groups = _groups(conclusion.evidence_missing, voice)
    open_cells = sum(cell.state is State.OPEN for cell in cells)
    if open_cells and evidence.replay is None:
        notes = [*notes, voice.say(word("open_only_first", n=count(open_cells)))]
    metrics, lacking = _metrics(evidence, voice)
    missing = conclusion.evidence_missing
    left = sum(gap.covered_by is None for gap in missing)
    told = []
    if missing:
        told.append(word("open_n_gaps", n=count(len(missing))) if len(missing) > 1 else word("open_n_gap"))
        told += [word("open_n_left", n=count(left))] if left else []
        told += [word("open_n_spanned", n=count(len(missing) - left))] if len(missing) > left else []
    if lacking:
        told.append(word("open_n_metrics", n=count(lacking)) if lacking > 1 else word("open_n_metric"))
    listed = ("；" if voice.is_chinese else "; ").join(map(voice.say, told))
    answer = word("open_counted", list=listed[:1].upper() + listed[1:]) if told else word("open_nothing")
    decides = tuple(dict.fromkeys(voice.say(sentence) for sentence in conclusion.would_decide))
    return Uncovered(voice.say(answer), tuple(groups), decides, tuple(metrics), tuple(notes))


def _groups(missing: list[Uncompared], voice: Voice) -> list[Group]:
    """By place and by what covers it; layers of one place are counted."""
    found: dict[tuple[str, str | None, bool], list[Uncompared]] = {}
    for gap in missing:
        place = gap.boundary.split(".", 2)[2] if layer_of(gap.boundary) is not None else gap.boundary
        end = _place(gap.covered_by)
        found.setdefault((place, end, gap.covered_by is None), []).append(gap)
    by_reason: dict[tuple[str, str, str, bool], list[str]] = {}
    whys: dict[tuple[str, str, str, bool], str] = {}
    for (place, end, could), gaps in found.items():
        shown = place if len(gaps) == 1 and layer_of(gaps[0].boundary) is None else gaps[0].boundary
        if len(gaps) > 1:
            shown = voice.say(word("open_group_layers", place=place, n=count(len(gaps))))
        decides = voice.say(word("open_decide") if end is None else word("open_spanned", end=end))
        reason = gaps[0].reason
        key = (reason.kind, str(reason.values.get("side", "")), decides, could)
        by_reason.setdefault(key, []).append(shown)
        whys.setdefault(key, voice.say(reason))
    return [
        Group(tuple(shown), whys[key], key[2], key[3], voice.say(word("open_could") if key[3] else word("open_cannot")))
        for key, shown in sorted(by_reason.items(), key=lambda one: not one[0][3])
    ]


def _place(end: str | None) -> str | None:
    return end.split(".", 2)[2] if end is not None and layer_of(end) is not None else end


def _metrics(evidence: Evidence, voice: Voice) -> tuple[list[str], int]:
    """Each metric of the log in a sentence, and how many have no value."""
    metrics = evidence.conclusion.metrics
    told, lacking = [], 0
    for label, metric in ((word("metric_prefill"), metrics.prefill_logprob_diff), (word("metric_e2e"), metrics.e2e)):
        name = voice.say(label)
        if isinstance(metric, EndToEndMetric) and metric.name:
            name = f"{name} {metric.name}"
        told.append(_metric(name, metric, voice))
        lacking += metric.mean is None and metric.note is None
        steps = [voice.say(word("metric_of_step", step=step, mean=_stated(mean))) for step, mean in metric.by_step if step is not None]
        if len(steps) > 1:
            shown = steps if len(steps) <= 8 else [*steps[:4], "…", *steps[-3:]]
            told.append(voice.say(word("metric_steps", list=voice.join(shown))))
    told += [voice.say(word("metric_growing", what=step.what)) for step in growing(evidence.conclusion, voice)]
    return told, lacking


def _metric(name: str, metric: LogMetric | EndToEndMetric, voice: Voice) -> str:
    if metric.status == "not_run":
        return voice.say(word("metric_not_run", name=name))
    if metric.mean is None and metric.note is not None:
        return voice.say(word("metric_bound", name=name, note=metric.note))
    if metric.mean is None:
        return voice.say(word("metric_missing", name=name))
    told = {
        "name": name,
        "mean": _stated(metric.mean),
        "max": _stated(metric.max),
        "std": _stated(metric.std),
        "source": metric.source,
    }
    if metric.step is None:
        return voice.say(word("metric_measured_no_step", **told))
    return voice.say(word("metric_measured", step=metric.step, **told))


def _stated(value: float | None) -> str:
    """A number of the log, in four digits at most."""
    return "–" if value is None else f"{value:.4g}"
