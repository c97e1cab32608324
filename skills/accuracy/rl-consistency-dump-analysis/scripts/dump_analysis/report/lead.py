"""The first screen's words: headline and three sentences, by which of the cases an analysis is."""

from collections.abc import Sequence
from typing import Literal, NamedTuple

from dump_analysis.artefacts.boundary_results import GAPS
from dump_analysis.artefacts.common import Worded
from dump_analysis.artefacts.conclusion import Finding
from dump_analysis.report.deciding import decide, names_any
from dump_analysis.report.effects import end_of, without
from dump_analysis.report.evidence import Evidence
from dump_analysis.report.said import Voice, count, figure
from dump_analysis.report.sides_told import cause_of, confirmations, side_name, sides_counted
from dump_analysis.report.states import weights_of
from dump_analysis.wording import word

Case = Literal["exact", "consistent", "inconsistent", "undecided", "not_run"]
_NAMED = 3  # faults that the three sentences name
_GROWN = 10  # as in `conclusion`: times what the layer that adds most makes
GLYPHS: dict[Case, str] = {"exact": "=", "consistent": "≈", "inconsistent": "≠", "undecided": "?", "not_run": "–"}


class Lead(NamedTuple):
    """``case`` decides glyph and colour; ``sentences``: what, why, coverage or next."""

    case: Case
    headline: str
    sentences: tuple[str, str, str]

    @property
    def glyph(self) -> str:
        return GLYPHS[self.case]


def lead(evidence: Evidence, voice: Voice) -> Lead:
    """Headline and three sentences of an analysis."""
    conclusion = evidence.conclusion
    faults = [finding for finding in conclusion.findings if finding.character == "logic"]
    if conclusion.overall == "not_run":
        return _not_run(evidence, voice)
    if conclusion.consistency == "inconsistent":
        return _one_fault(evidence, faults[0], voice) if len(faults) == 1 else _faults(evidence, faults, voice)
    if conclusion.consistency == "undecided":
        return _undecided(evidence, voice)
    return _rounding(evidence, voice) if conclusion.findings else _exact(evidence, voice)


# --- consistent ---


def _exact(evidence: Evidence, voice: Voice) -> Lead:
    rows = evidence.results.boundaries
    compared = [row for row in rows if row.status not in GAPS]
    whole = len(compared) == len(rows)
    if evidence.conclusion.summary and evidence.conclusion.summary[0].kind.startswith("sum_digest"):
        first = evidence.conclusion.summary[0]
    elif whole:
        first = word("say_all_equal", n=count(len(rows)), first=rows[0].boundary, last=rows[-1].boundary)
    else:
        first = word("say_compared_equal", compared=count(len(compared)), n=count(len(rows)))
    equal, _, all_weights = weights_of(evidence)
    if not all_weights:
        weights = word("say_weights_none")
    elif whole and equal == all_weights:
        weights = word("say_weights_all", w=count(equal))
    else:
        weights = word("say_weights_part", equal=count(equal), all=count(all_weights), gaps=count(all_weights - equal))
    head = voice.say(word("head_exact" if whole else "head_covered"))
    return Lead("exact" if whole else "consistent", head, (voice.say(first), voice.say(word("say_no_module")), voice.say(weights)))


def _rounding(evidence: Evidence, voice: Voice) -> Lead:
    findings, end = evidence.conclusion.findings, end_of(evidence)
    made = max((link.local for finding in findings for link in finding.chain if link.local is not None), default=0.0)
    if end is not None and made and end.rel_l2 >= _GROWN * made:
        first = word("say_same_grown", made=figure(made), end=figure(end.rel_l2), boundary=end.boundary)
    else:
        first = word("say_same_function")
    points = voice.join(f"{finding.id} {finding.boundary}" for finding in findings)
    second = word("say_points" if len(findings) > 1 else "say_point", k=count(len(findings)), list=points)
    equal, weights, _ = weights_of(evidence)
    compared, of = _compared(evidence)
    third = word("say_compared", c=count(compared), n=count(of))
    if end is not None and end.boundary == "logits":
        third = word("say_rounding_rest", c=count(compared), n=count(of), equal=count(equal), w=count(weights), x=figure(end.rel_l2))
    elif end is not None:
        third = word(
            "say_rounding_rest_at",
            c=count(compared), n=count(of), equal=count(equal), w=count(weights), end=end.boundary, x=figure(end.rel_l2),
        )  # fmt: skip
    return Lead("consistent", voice.say(word("head_rounding")), (voice.say(first), voice.say(second), voice.say(third)))


# --- inconsistent ---


def _one_fault(evidence: Evidence, fault: Finding, voice: Voice) -> Lead:
    proofs = voice.join(confirmations(fault, voice))
    told = {"id": fault.id, "cause": cause_of(fault, voice), "proofs": proofs}
    if fault.confirmed_by == ["inputs"]:
        first = word("say_other_inputs", **told)
    elif fault.side in ("train", "infer"):
        first = word("say_one_fault", side=side_name(fault.side, voice), **told)
    else:
        first = word("say_one_fault_both", **told) if fault.side == "both" else word("say_one_fault_open", **told)
    end, measured = end_of(evidence), without(evidence, fault.id)
    if end is None:
        second = word("say_starts_only", boundary=fault.boundary)
    elif end.boundary != "logits":
        second = word("say_starts_at", boundary=fault.boundary, end=end.boundary, y=figure(end.rel_l2))
    elif measured is None:
        second = word("say_starts", boundary=fault.boundary, y=figure(end.rel_l2))
    else:
        second = word("say_starts_without", boundary=fault.boundary, y=figure(end.rel_l2), z=figure(measured.rel_l2))
    third = [*_rest(evidence, one=True), _coverage(evidence)]
    head = voice.say(word("head_one_fault"))
    return Lead("inconsistent", head, (voice.say(first), voice.say(second), voice.flow(map(voice.say, third))))


def _faults(evidence: Evidence, faults: Sequence[Finding], voice: Voice) -> Lead:
    first = word("say_faults", k=count(len(faults)), sides=voice.join(sides_counted(faults, voice)))
    named = [
        word("say_fault_of", id=fault.id, side=side_name(fault.side, voice), cause=cause_of(fault, voice)) for fault in faults[:_NAMED]
    ]
    if len(faults) > _NAMED:
        named.append(word("say_more_faults", m=count(len(faults) - _NAMED)))
    third = [*_rest(evidence, one=False), _coverage(evidence)]
    head = voice.say(word("head_faults", n=count(len(faults))))
    return Lead("inconsistent", head, (voice.say(first), voice.flow(map(voice.say, named)), voice.flow(map(voice.say, third))))


def _rest(evidence: Evidence, *, one: bool) -> list[Worded]:
    """What the differences are that no fault is."""
    points = sum(finding.character == "rounding" for finding in evidence.conclusion.findings)
    unknown = [finding.id for finding in evidence.conclusion.findings if finding.character == "unknown"]
    if unknown:
        return [word("say_rest_open" if len(unknown) > 1 else "say_rest_open_one", k=count(len(unknown)), ids=unknown)]
    if evidence.replay is None:
        return [word("say_not_separated")]
    if one:
        return [word("say_rest_either") if points else word("say_rest_follows")]
    if not points:
        return [word("say_rest_follows_all")]
    return [word("say_rest_rounding", r=count(points)) if points > 1 else word("say_rest_rounding_one")]


def _compared(evidence: Evidence) -> tuple[int, int]:
    rows = evidence.results.boundaries
    return sum(row.status not in GAPS for row in rows), len(rows)


def _coverage(evidence: Evidence) -> Worded:
    compared, of = _compared(evidence)
    names = {row.boundary for row in evidence.results.boundaries}
    left = sum(gap.covered_by is None and gap.boundary in names for gap in evidence.conclusion.evidence_missing)
    if compared == of:
        return word("say_compared", c=count(compared), n=count(of))
    if left:
        return word("say_compared_left", c=count(compared), n=count(of), left=count(left))
    return word("say_compared_spanned", c=count(compared), n=count(of))


# --- undecided, not run ---


def _undecided(evidence: Evidence, voice: Voice) -> Lead:
    conclusion = evidence.conclusion
    unknown = [finding for finding in conclusion.findings if finding.character == "unknown"]
    gaps = [gap for gap in conclusion.evidence_missing if gap.covered_by is None]
    boundaries = {row.boundary for row in evidence.results.boundaries}
    at = [gap for gap in gaps if gap.boundary in boundaries]
    next_ = conclusion.would_decide[0] if conclusion.would_decide else word("no_reason")
    third = word("say_to_decide", what=voice.say(next_))
    if unknown:
        what = word("what_opens", n=len(unknown)) if len(unknown) > 1 else word("what_open")
        start = unknown[0].boundary
        first = word("say_open_found", boundary=start, n=len(unknown)) if len(unknown) > 1 else word("say_open_found_one", boundary=start)
        asked = decide(unknown[0], evidence, voice)
        third = word("say_to_decide", what=voice.join(asked[:2])) if asked else third
        second = voice.flow(voice.say(word("say_open_of", id=one.id, cause=cause_of(one, voice))) for one in unknown[:_NAMED])
    elif not _compared(evidence)[0] and conclusion.summary:
        return _stated(evidence, voice)
    elif at:
        compared, of = _compared(evidence)
        what = word("what_gaps", n=count(len(at))) if len(at) > 1 else word("what_gap")
        first = word("say_gaps", m=count(of - compared), n=count(of))
        named = [told for told in conclusion.would_decide if names_any(told, {gap.boundary for gap in at})]
        third = word("say_to_decide", what=voice.say(named[0])) if named else third
        second = voice.say(word("say_gap_where", where=[gap.boundary for gap in at], reason=voice.say(at[0].reason)))
    else:
        what, first = _what_else(evidence, bool(gaps)), conclusion.summary[0] if conclusion.summary else word("say_nothing_joined")
        second = voice.say(conclusion.summary[1]) if len(conclusion.summary) > 1 else ""
    return Lead("undecided", voice.say(word("head_undecided", what=what)), (voice.say(first), second, voice.say(third)))


def _stated(evidence: Evidence, voice: Voice) -> Lead:
    """No tensor could be compared: what statistics say, in the conclusion's own sentences, and the dump that would decide."""
    conclusion = evidence.conclusion
    what = word("what_statistics") if any(row.statistics for row in evidence.results.boundaries) else _what_gaps(evidence)
    asked = next((told for told in conclusion.would_decide if told.kind == "decide_tensors"), next(iter(conclusion.would_decide), None))
    third = word("say_to_decide", what=voice.say(asked)) if asked is not None else word("say_compared", c="0", n=_compared(evidence)[1])
    second = voice.say(conclusion.summary[1]) if len(conclusion.summary) > 1 else ""
    head = voice.say(word("head_undecided", what=what))
    return Lead("undecided", head, (voice.say(conclusion.summary[0]), second, voice.say(third)))


def _what_gaps(evidence: Evidence) -> Worded:
    gaps = _compared(evidence)[1] - _compared(evidence)[0]
    return word("what_gaps", n=count(gaps)) if gaps != 1 else word("what_gap")


def _what_else(evidence: Evidence, gaps: bool) -> Worded:
    """What keeps an analysis without open findings and boundaries from being decided."""
    kinds = [told.kind for told in evidence.conclusion.would_decide] + [told.kind for told in evidence.conclusion.summary]
    if any(kind.startswith(("param_", "sum_but_params")) for kind in kinds):
        return word("what_params")
    if "decide_dump" in kinds or "sum_exact_cut" in kinds:
        return word("what_dump")
    if gaps:
        return word("what_weights")
    return word("what_inputs_unknown") if evidence.replay is not None else word("what_statistics")


def _not_run(evidence: Evidence, voice: Voice) -> Lead:
    reasons = [row.reason for row in [*evidence.results.boundaries, *evidence.results.weights] if row.reason is not None]
    decides = evidence.conclusion.would_decide
    why = voice.say(reasons[0]) if reasons else voice.say(evidence.conclusion.summary[0]) if evidence.conclusion.summary else ""
    next_ = word("say_not_pass", command=voice.say(decides[0]) if decides else "probe_dump.py, propose_mapping.py")
    head = voice.say(word("head_not_run"))
    return Lead("not_run", head, (voice.say(word("say_nothing_joined")), why, voice.say(next_)))
