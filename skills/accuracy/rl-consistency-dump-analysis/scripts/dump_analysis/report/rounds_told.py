"""How it was confirmed: the two dumps as collected, then each round with the proof that it took effect."""

from collections import Counter
from typing import Any, NamedTuple

import msgspec

from dump_analysis.artefacts.boundary_results import GAPS
from dump_analysis.artefacts.common import Worded
from dump_analysis.report.evidence import Evidence
from dump_analysis.report.said import Voice, count
from dump_analysis.report.sides_told import side_name
from dump_analysis.wording import word


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
    steps = [_collected(evidence, voice), *(_round(result, evidence, voice) for result in evidence.rounds)]
    ran = sum(result.get("effective") is not None for result in evidence.rounds)
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


def _round(result: dict[str, Any], evidence: Evidence, voice: Voice) -> Round:
    number = result["round"]
    instruction = evidence.instructions.get(number, {})
    reason = _worded(instruction.get("reason"))
    title, question = _override(result, instruction, voice), voice.say(reason) if reason is not None else ""
    if result.get("effective") is None:
        return Round(number, title, question, None, "", voice.say(word("round_planned")))
    if not result["effective"]:
        why = _worded(result.get("why_not"))
        told = word("round_why_not", why=voice.say(why)) if why is not None else word("round_ineffective")
        return Round(number, title, question, False, "", voice.say(told))
    isolated = result.get("isolated")
    if isinstance(isolated, dict) and isolated.get("status"):
        proof = word("round_proof", boundary=isolated.get("boundary"), status=isolated.get("status"))
    else:
        proof = word("round_effective")
    return Round(number, title, question, True, voice.say(proof), voice.flow(_results(result, evidence, voice)))


def _override(result: dict[str, Any], instruction: dict[str, Any], voice: Voice) -> str:
    isolated = result.get("isolated") or instruction.get("isolate_boundary")
    target = instruction.get("target_side") or result.get("target_side")
    source = instruction.get("source_side") or {"train": "infer", "infer": "train"}.get(str(target))
    if not isinstance(isolated, dict):
        forced = "forced" in (instruction.get("kind"), result.get("kind")) or result.get("local")
        return voice.say(word("round_override_all") if forced else word("round_override_some"))
    if source in ("train", "infer") and target in ("train", "infer"):
        sides = {"source": side_name(source, voice), "target": side_name(target, voice)}
        return voice.say(word("round_override", boundary=isolated.get("boundary"), **sides))
    return voice.say(word("round_override_from", boundary=isolated.get("boundary")))


def _results(result: dict[str, Any], evidence: Evidence, voice: Voice) -> list[str]:
    """What differs behind the cut, or what each module makes by itself; which findings that bears out."""
    told = []
    downstream, local = result.get("downstream") or [], result.get("local") or []
    if downstream:
        told.append(word("round_downstream", **_counted(downstream)))
    if local:
        told.append(word("round_local", **_counted(local)))
    if result.get("differ") and not downstream and not local:
        told.append(word("round_differ", names=result["differ"]))
    if result.get("confirmed"):
        told.append(word("round_bears_out", ids=voice.join(result["confirmed"])))
    if result.get("contradicted"):
        told += [_contradiction(one) for one in result["contradicted"]]
    following = result.get("next")
    ended = evidence.no_more_rounds and result is evidence.rounds[-1]
    if isinstance(following, dict) and result.get("stop") == "continue" and not ended:
        told.append(word("round_next", boundary=following.get("boundary")))
    return [voice.say(sentence) for sentence in told]


def _contradiction(one: Any) -> Worded:
    """A finding that the round does not bear out, by its number, or with what replay and the round say of it."""
    told = _worded(one)
    if told is not None:
        return word("round_contradicted", ids=told)
    named = one.get("finding") or one.get("boundary")
    replay, seen = _worded(one.get("replay")), _worded(one.get("round"))
    if replay is None or seen is None:
        return word("round_contradicted", ids=named)
    return word("round_told_disagrees", id=named, boundary=one.get("boundary"), replay=replay, round=seen)


def _counted(rows: list[dict[str, Any]]) -> dict[str, str]:
    of = Counter("exact" if row.get("status") == "EXACT" else row.get("character") or "carried" for row in rows)
    return {name: count(of[name]) for name in ("exact", "rounding", "logic", "carried")}


def _last(result: dict[str, Any], *, ended: bool) -> Worded:
    """``ended``: the plan after it says that no further round adds anything."""
    following = result.get("next")
    if result.get("effective") is None:
        return word("rounds_planned")
    if ended and result.get("stop") == "continue":
        return word("rounds_ended")
    if result.get("stop") == "continue" and isinstance(following, dict):
        return word("rounds_continue", boundary=following.get("boundary"))
    told = {
        "all_exact": word("rounds_all_exact"),
        "only_rounding": word("rounds_only_rounding"),
        "all_listed": word("rounds_all_listed"),
        "evidence_missing": word("rounds_lacking"),
    }
    return told.get(str(result.get("stop")), word("rounds_open"))


def _worded(value: Any) -> Worded | None:
    """A sentence of an artefact that is read without a form of its own; text alone is taken as it is."""
    if isinstance(value, str):
        return Worded("of people", {}, value)
    return msgspec.convert(value, Worded) if isinstance(value, dict) and set(value) == {"kind", "values", "text"} else None
