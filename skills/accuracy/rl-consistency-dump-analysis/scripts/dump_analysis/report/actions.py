"""What to do, and the four figures of the first screen."""

from typing import NamedTuple

from dump_analysis.artefacts.boundary_results import GAPS
from dump_analysis.artefacts.conclusion import Conclusion, EndToEndMetric, Finding, LogMetric
from dump_analysis.report.deciding import decide
from dump_analysis.report.effects import end_of, largest_without
from dump_analysis.report.evidence import Evidence
from dump_analysis.report.said import Voice, count, figure
from dump_analysis.report.sides_told import sides_counted
from dump_analysis.wording import word

_TO_DECIDE = 2  # lines of what would decide on the first screen; all stand under "not covered"
_MENDED = 6  # faults that the first screen tells what to do about


class Step(NamedTuple):
    """Who does what; ``finding``: the id of the fault that it mends."""

    who: str
    what: str
    finding: str | None = None


class Key(NamedTuple):
    """One of the four figures; ``tone`` f or r colours it, ``is_name``: the value is a boundary."""

    label: str
    value: str
    note: str
    tone: str = ""
    is_name: bool = False


def steps(evidence: Evidence, voice: Voice) -> list[Step]:
    """What to do, in order; never empty."""
    conclusion = evidence.conclusion
    faults = [finding for finding in conclusion.findings if finding.character == "logic"]
    told = [_mend(fault, evidence, voice) for fault in faults[:_MENDED]]
    if conclusion.consistency == "undecided":
        told += _decide(evidence, voice)
    if faults:
        settled = evidence.replay is not None and all(finding.character != "unknown" for finding in conclusion.findings)
        settled = settled and all(gap.covered_by is not None for gap in conclusion.evidence_missing)
        again = word("act_again", head=voice.say(word("head_rounding"))) if settled else word("act_again_open")
        told.append(Step(voice.say(word("do_then")), voice.say(again)))
    elif conclusion.consistency == "consistent":
        same = word("act_nothing") if conclusion.findings else word("act_nothing_exact")
        told.append(Step(voice.say(word("do_nothing")), voice.say(same)))
    return told + growing(conclusion, voice)


def _mend(fault: Finding, evidence: Evidence, voice: Voice) -> Step:
    side = fault.fix.side if fault.fix is not None else fault.side
    who = {
        "train": word("do_trainer"),
        "infer": word("do_engine"),
        "both": word("do_both"),
        "unknown": word("do_which"),
    }[side]
    asked = decide(fault, evidence, voice)
    if fault.fix is not None:
        what = voice.say(fault.fix.action)
    elif asked:
        return Step(voice.say(word("do_decide")), asked[-1], fault.id)
    elif fault.side in ("train", "infer"):
        what = voice.say(word("act_mend_at", boundary=fault.boundary))
    else:
        what = voice.say(word("act_not_here") if fault.resolvable == "no" else word("act_no_fix"))
    return Step(voice.say(who), what, fault.id)


def _decide(evidence: Evidence, voice: Voice) -> list[Step]:
    """What would decide: of open findings first."""
    unknown = [finding for finding in evidence.conclusion.findings if finding.character == "unknown"]
    own = [(told, finding.id) for finding in unknown for told in decide(finding, evidence, voice)]
    said = dict(reversed(own))
    lines = [Step("", told, finding) for told, finding in reversed(said.items())]
    known = {line.what for line in lines}
    others = [told for sentence in evidence.conclusion.would_decide if (told := voice.say(sentence)) not in known]
    lines += [Step("", told) for told in dict.fromkeys(others)]
    left = len(lines) - _TO_DECIDE
    shown = [line._replace(who=voice.say(word("do_decide"))) for line in lines[:_TO_DECIDE]]
    if left > 0:
        shown[-1] = shown[-1]._replace(what=voice.say(word("act_and_more", first=shown[-1].what, n=count(left))))
    return shown


def growing(conclusion: Conclusion, voice: Voice) -> list[Step]:
    """Where a log's metric is larger at its last step than at its first: what one pair cannot say of that."""
    found = []
    for name, metric in (("prefill_logprob_diff", conclusion.metrics.prefill_logprob_diff), ("e2e", conclusion.metrics.e2e)):
        steps_told = _ends(metric)
        if steps_told is None:
            continue
        (first, low), (last, high) = steps_told
        shown = (metric.name if isinstance(metric, EndToEndMetric) else None) or name
        told = word("act_growing", metric=shown, low=f"{low:.4g}", high=f"{high:.4g}", first=first, last=last)
        found.append(Step(voice.say(word("do_later")), voice.say(told)))
    return found


def _ends(metric: LogMetric | EndToEndMetric) -> tuple[tuple[int, float], tuple[int, float]] | None:
    """First and last measured step with their means, where the last is larger."""
    told = [(int(step), float(mean)) for step, mean in metric.by_step if step is not None and mean is not None]
    if metric.status != "measured" or len(told) < 2 or not told[-1][1] > told[0][1]:
        return None
    return told[0], told[-1]


# --- the four figures ---


def keys(evidence: Evidence, voice: Voice) -> list[Key]:
    """Faults, rounding points, the error at the end, the first divergence."""
    findings = evidence.conclusion.findings
    return [_faults(findings, voice), _points(findings, voice), _end(evidence, voice), _first(evidence, voice)]


def _faults(findings: list[Finding], voice: Voice) -> Key:
    faults = [finding for finding in findings if finding.character == "logic"]
    unknown = sum(finding.character == "unknown" for finding in findings)
    notes = sides_counted(faults, voice) + ([voice.say(word("figure_open", n=unknown))] if unknown else [])
    label = voice.say(word("figure_faults"))
    return Key(label, count(len(faults)), voice.join(notes) or voice.say(word("figure_none")), "f" if faults else "")


def _points(findings: list[Finding], voice: Voice) -> Key:
    points = sum(finding.character == "rounding" for finding in findings)
    note = voice.say(word("figure_within") if points else word("figure_none"))
    return Key(voice.say(word("figure_rounding")), count(points), note, "r" if points else "")


def _end(evidence: Evidence, voice: Voice) -> Key:
    end, left = end_of(evidence), largest_without(evidence)
    if end is None:
        return Key(voice.say(word("figure_logits")), "–", voice.say(word("figure_uncompared")))
    label = word("figure_logits") if end.boundary == "logits" else word("figure_end", end=end.boundary)
    note = word("figure_relative") if end.rel_l2 else word("figure_end_exact")
    if end.boundary == "logits" and left is not None:
        note = word("figure_without", z=figure(left.rel_l2), id=left.finding)
    return Key(voice.say(label), figure(end.rel_l2), voice.say(note))


def _first(evidence: Evidence, voice: Voice) -> Key:
    first, rows = evidence.conclusion.first_divergence, evidence.results.boundaries
    label = voice.say(word("figure_first"))
    if first is None:
        compared = any(row.status not in GAPS for row in rows)
        return Key(label, "–", voice.say(word("figure_no_first") if compared else word("figure_uncompared")))
    at = next((at for at, row in enumerate(rows) if row.boundary == first.boundary), 0)
    covered = {gap.boundary for gap in evidence.conclusion.evidence_missing if gap.covered_by is not None}
    if first.uncompared_before and covered.issuperset(first.uncompared_before):
        note = word("figure_first_spanned", i=count(at + 1), n=count(len(rows)), m=count(len(first.uncompared_before)))
    elif first.uncompared_before or not first.predecessors_complete:
        note = word("figure_first_gaps", i=count(at + 1), n=count(len(rows)), m=count(len(first.uncompared_before)))
    elif at == 0:
        note = word("figure_first_start", n=count(len(rows)))
    else:
        note = word("figure_first_nth", i=count(at + 1), n=count(len(rows)), before=count(at))
    return Key(label, first.boundary, voice.say(note), is_name=True)
