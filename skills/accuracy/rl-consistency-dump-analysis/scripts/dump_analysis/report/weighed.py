"""What else it could be: every hypothesis with its state and its ground."""

from typing import Literal, NamedTuple

from dump_analysis.artefacts.conclusion import Conclusion, Hypothesis
from dump_analysis.report.said import Voice, count
from dump_analysis.wording import word

Standing = Literal["cause", "rounding", "excluded", "open"]
GLYPHS: dict[Standing, str] = {"cause": "■", "rounding": "●", "excluded": "×", "open": "○"}


class Weighed(NamedTuple):
    """A hypothesis. ``is_name``: ``name`` is a name of code and no phrase."""

    name: str
    is_name: bool
    standing: Standing
    verdict: str
    because: str
    decide: str
    findings: tuple[str, ...]


def weighed(conclusion: Conclusion, voice: Voice) -> tuple[list[Weighed], str]:
    """The hypotheses in the conclusion's order, and the answer in a sentence."""
    logic = {finding.id for finding in conclusion.findings if finding.character != "rounding"}
    rows = [_row(one, logic, voice) for one in conclusion.hypotheses]
    if not rows:
        return rows, voice.say(word("causes_none"))
    of = {standing: sum(row.standing == standing for row in rows) for standing in GLYPHS}
    told = [
        (of["cause"], word("causes_hold", n=count(of["cause"])) if of["cause"] > 1 else word("causes_hold_one")),
        (of["rounding"], word("causes_rounding", n=count(of["rounding"]))),
        (of["excluded"], word("causes_excluded", n=count(of["excluded"]))),
        (of["open"], word("causes_open", n=count(of["open"]))),
    ]
    listed = voice.join(voice.say(sentence) for n, sentence in told if n)
    return rows, voice.say(word("causes_counted", n=count(len(rows)), list=listed))


def _row(one: Hypothesis, logic: set[str], voice: Voice) -> Weighed:
    """``supported`` whose findings are all rounding is no cause of a fault."""
    standing: Standing = "excluded" if one.state == "excluded" else "open"
    if one.state == "supported":
        standing = "rounding" if one.findings and not logic & set(one.findings) else "cause"
    verdict = {
        "cause": word("hyp_cause"),
        "rounding": word("hyp_rounding"),
        "excluded": word("hyp_excluded"),
        "open": word("hyp_open"),
    }[standing]
    decide = voice.say(word("causes_decide", what=voice.join(map(voice.say, one.would_decide)))) if one.would_decide else ""
    names = {
        "weights_out_of_sync": word("cause_name_weights_out_of_sync"),
        "input_misaligned": word("cause_name_input_misaligned"),
        "config": word("cause_name_config"),
        "parallel_layout": word("cause_name_parallel_layout"),
        "kernel_order": word("cause_name_kernel_order"),
        "randomness": word("cause_name_randomness"),
        "code_between_modules": word("cause_name_code_between_modules"),
    }
    known = names.get(one.name)
    name = voice.say(known) if known is not None else voice.say(one.name)
    return Weighed(name, known is None, standing, voice.say(verdict), voice.say(one.because), decide, tuple(one.findings))
