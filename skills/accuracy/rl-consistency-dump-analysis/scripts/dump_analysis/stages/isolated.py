"""Stage 5: every override round that was planned is carried out and judged, and no further one adds anything.

An analysis of two dumps alone has no rounds; then the stage asks for nothing, unless it is itself asked.
"""

from dump_analysis.artefacts.round_plan import RoundPlan
from dump_analysis.round_steps import PLAN

from .workdir import Missing, Workdir


def gate(work: Workdir) -> Missing:
    """Each gap and its repair."""
    plan, rounds = work.read(PLAN, RoundPlan), work.rounds()
    waiting = [one.number for one in rounds if one.result is None]
    if waiting:
        number = waiting[0]
        carry = "Carry it out with the collection skill (stage 8), then run: "
        what = f"round{number} is planned and not judged (if it cannot be run, move round{number} and {PLAN} away)"
        yield what, f"{carry}{work.judge(number)}"
        return
    if plan is None:  # no round is wanted, or none can be run any more: the conclusion tells those that were
        return
    last = rounds[-1] if rounds else None
    if last is not None and last.result is not None and not last.effective:
        why = last.result.why_not.text if last.result.why_not is not None else "it does not say why"
        carry = "Mend that, carry the round out again with the collection skill (stage 8), then run: "
        yield f"round{last.number} was not effective: {why}", f"{carry}{work.judge(last.number)}"
    elif plan.rounds:  # what was planned has been judged since: is there more?
        yield f"{PLAN} is older than the rounds that were judged", f"Run: {work.plan_round()}"


def asked(work: Workdir) -> Missing:
    """What is missing where the stage itself is asked for: a plan at least, which may say that no round adds anything."""
    if not work.has(PLAN):
        yield f"{PLAN} is missing", f"Run: {work.plan_round()}"
