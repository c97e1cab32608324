"""How it was confirmed: the two dumps as collected, then each round with the proof that it took effect."""

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from dump_analysis.artefacts.boundary_results import GAPS
from dump_analysis.artefacts.common import SideName, Worded
from dump_analysis.artefacts.round_result import Contradiction, Downstream, Local
from dump_analysis.report.evidence import Evidence, RoundEvidence
from dump_analysis.report.said import Voice, count
from dump_analysis.report.sides_told import side_name
from dump_analysis.wording import word

_OTHER: dict[SideName, SideName] = {"train": "infer", "infer": "train"}


class Round(NamedTuple):
    """A step of the timeline. ``worked``: None for the dumps as collected."""

    number: int
    title: str
    question: str
    worked: bool | None
    proof: str
    result: str


def rounds(evidence: Evidence, voice: Voice) -> tuple[list[Round], str]:
    """The timeline, and the answer in a sentence. Without rounds no step: the sentence says so."""
    if not evidence.rounds:
        told = word("rounds_none") if evidence.replay is not None else word("rounds_none_compared")
        return [], voice.say(told)
    steps = [_collected(evidence, voice), *(_round(one, evidence, voice) for one in evidence.rounds)]
    ran = sum(one.effective is not None for one in evidence.rounds)
    if not ran:
        return steps, voice.say(word("rounds_only_planned"))
    last = _last(evidence.rounds[-1], ended=evidence.no_more_rounds)
    told = word("rounds_counted", n=count(ran), last=last) if ran > 1 else word("rounds_one", last=last)
    return steps, voice.say(told)


def _collected(evidence: Evidence, voice: Voice) -> Round:
    compared = sum(row.status not in GAPS for row in evidence.results.boundaries)
    modules = len(evidence.replay.modules) if evidence.replay is not None else 0
    ids = [finding.id for finding in evidence.conclusion.findings]
    found = word("round_found", ids=voice.join(ids)) if ids else word("round_found_none")
    counted = word("round_zero_counted", c=count(compared), m=count(modules))
    return Round(0, voice.say(word("round_zero")), voice.say(counted), None, "", voice.say(found))


def _round(one: RoundEvidence, evidence: Evidence, voice: Voice) -> Round:
    title = _override(one, voice)
    question = voice.say(one.instruction.reason) if one.instruction is not None else ""
    if one.effective is None:
        return Round(one.number, title, question, None, "", voice.say(word("round_planned")))
    if not one.effective:
        told = word("round_why_not", why=voice.say(one.why_not)) if one.why_not is not None else word("round_ineffective")
        return Round(one.number, title, question, False, "", voice.say(told))
    isolated = one.result.isolated if one.result is not None else None
    if isolated is not None:
        proof = word("round_proof", boundary=isolated.boundary, status=isolated.status)
    else:
        proof = word("round_effective")
    ended = evidence.no_more_rounds and one is evidence.rounds[-1]
    return Round(one.number, title, question, True, voice.say(proof), voice.flow(_results(one, voice, ended=ended)))


def _override(one: RoundEvidence, voice: Voice) -> str:
    if one.isolated is None:
        return voice.say(word("round_override_all") if one.forced else word("round_override_some"))
    if one.target is None:
        return voice.say(word("round_override_from", boundary=one.isolated))
    source = one.instruction.source_side if one.instruction is not None else _OTHER[one.target]
    sides = {"source": side_name(source, voice), "target": side_name(one.target, voice)}
    return voice.say(word("round_override", boundary=one.isolated, **sides))


def _results(one: RoundEvidence, voice: Voice, *, ended: bool) -> list[str]:
    """What differs behind the cut, or what each module makes by itself; which findings that bears out."""
    told = []
    if one.result is not None:
        result = one.result
        told += [word("round_downstream", **_counted(result.downstream))] if result.downstream else []
        told += [word("round_local", **_counted(result.local))] if result.local else []
        told += [word("round_bears_out", ids=voice.join(result.confirmed))] if result.confirmed else []
        told += [_contradiction(seen) for seen in result.contradicted]
        if result.next is not None and result.stop == "continue" and not ended:
            told.append(word("round_next", boundary=result.next.boundary))
    elif one.short is not None:
        told += [word("round_differ", names=one.short.differ)] if one.short.differ else []
        told += [word("round_contradicted", ids=said) for said in one.short.contradicted]
    return [voice.say(sentence) for sentence in told]


def _contradiction(seen: Contradiction) -> Worded:
    """A finding that the round does not bear out, with what replay and the round say of it."""
    named = seen.finding or seen.boundary
    return word("round_told_disagrees", id=named, boundary=seen.boundary, replay=seen.replay, round=seen.round)


def _counted(rows: Sequence[Downstream | Local]) -> dict[str, str]:
    of = Counter("exact" if row.status == "EXACT" else row.character or "carried" for row in rows)
    return {name: count(of[name]) for name in ("exact", "rounding", "logic", "carried")}


def _last(one: RoundEvidence, *, ended: bool) -> Worded:
    """``ended``: the plan after it says that no further round adds anything."""
    if one.effective is None:
        return word("rounds_planned")
    if ended and one.stop == "continue":
        return word("rounds_ended")
    following = one.result.next if one.result is not None else None
    if one.stop == "continue" and following is not None:
        return word("rounds_continue", boundary=following.boundary)
    told = {
        "all_exact": word("rounds_all_exact"),
        "only_rounding": word("rounds_only_rounding"),
        "all_listed": word("rounds_all_listed"),
        "evidence_missing": word("rounds_lacking"),
    }
    return told.get(str(one.stop), word("rounds_open"))
