"""Stage 5: every override round that was planned is carried out and judged, and no further one adds anything.

An analysis of two dumps alone has no rounds; then the stage asks for nothing, unless it is itself asked.
"""

from dump_analysis.artefacts.round_plan import RoundPlan
from dump_analysis.round_steps import PLAN

from .workdir import Missing, Workdir


def gate(work: Workdir) -> Missing:
    """Each gap and its repair."""
    plan, rounds = work.read(PLAN, RoundPlan), work.rounds()
    if plan is None:
        if rounds:
            yield f"{PLAN} is missing, though there are rounds", f"Run: {work.plan_round()}"
        return
    waiting = [one.number for one in rounds if one.result is None]
    if waiting:
        carry = "Carry it out with the collection skill (stage 8), then run: "
        yield f"round{waiting[0]} is planned and not judged", f"{carry}{work.judge(waiting[0])}"
        return
    last = rounds[-1] if rounds else None
    if last is not None and last.result is not None and not last.effective:
        why = last.result.why_not.text if last.result.why_not is not None else "it does not say why"
        yield f"round{last.number} was not effective: {why}", f"Mend that, then run: {work.plan_round()}"
    elif plan.rounds:  # what was planned has been judged since: is there more?
        yield f"{PLAN} is older than the rounds that were judged", f"Run: {work.plan_round()}"


def asked(work: Workdir) -> Missing:
    """What is missing where the stage itself is asked for: a plan at least, which may say that no round adds anything."""
    if not work.has(PLAN):
        yield f"{PLAN} is missing", f"Run: {work.plan_round()}"
