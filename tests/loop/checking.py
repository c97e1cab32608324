"""What a loop listed against what was injected: exactly that, nothing left out, nothing invented."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from toys.switches import SWITCHES

from .fault_sets import Fault, FaultSet
from .looping import Ended, Manner


def complaints(faults: FaultSet, manner: Manner, ended: Ended) -> list[str]:
    """What is wrong with how a loop ended; nothing where it did what it must."""
    return [*_of_the_end(faults, manner, ended), *of_findings(faults, ended.conclusion["findings"], replay=manner.replay)]


def _of_the_end(faults: FaultSet, manner: Manner, ended: Ended) -> Iterator[str]:
    most = 2 if manner.forced else faults.k + 1
    if ended.effective > most:
        yield f"{ended.effective} effective rounds, {most} are enough"
    for result in ended.results:
        if not result["effective"]:
            yield f"round {result['round']} is not effective: {result['why_not']['text']}"
    if ended.plan["rounds"] and (not ended.results or ended.results[-1]["stop"] == "continue"):
        yield "the loop did not end by itself"


def of_findings(faults: FaultSet, findings: list[dict[str, Any]], *, replay: bool) -> list[str]:
    """Each finding is of one fault and says its character and side; each fault has one."""
    wrong, found = [], set()
    for finding in findings:
        said = f"{finding['id']} ({finding['character']}, {finding['side']}, {', '.join(finding['boundaries'])})"
        of = [fault for fault in faults.faults if set(finding["boundaries"]) <= set(places(fault))]
        if not of:
            wrong.append(f"{said} was not injected")
            continue
        found.add(of[0])
        side = of[0].provable if replay else "unknown"
        sides = {side, "unknown", "both"} if not replay and of[0].character == "rounding" else {side}
        if (finding["character"], finding["side"]) != (of[0].character, finding["side"] if finding["side"] in sides else side):
            wrong.append(f"{said} is {of[0]}: {of[0].character}, {side}")
    return [*wrong, *(f"{fault} was not found" for fault in faults.faults if fault not in found)]


def places(fault: Fault) -> list[str]:
    """Boundaries that a finding of a fault may name: where it shows, and the weights that differ."""
    weights = [name.replace(".N.", f".{fault.layer}.") for name in SWITCHES[fault.name].weights]
    return [*fault.also, *weights]
