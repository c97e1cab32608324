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
    """Each finding is of one fault and says what that is; each fault has one."""
    wrong, found = [], set()
    for finding in findings:
        said = f"{finding['id']} ({finding['character']}, {finding['side']}, {', '.join(finding['boundaries'])})"
        of = [fault for fault in faults.faults if set(finding["boundaries"]) <= set(places(fault))]
        if not of:
            wrong.append(f"{said} was not injected")
            continue
        found.add(of[0])
        right = _is_said(of[0], finding, faults) if replay else _may_be_said(of[0], finding)
        wrong += [] if right else [f"{said} is {of[0]}: {of[0].character}, {of[0].provable}"]
    return [*wrong, *(f"{fault} was not found" for fault in faults.faults if fault not in found)]


def _is_said(fault: Fault, finding: dict[str, Any], faults: FaultSet) -> bool:
    """Recomputing tells rounding from logic, and the side where the dumps prove it."""
    sides = (fault.provable, "unknown") if faults.without_usual(fault) else (fault.provable,)
    return finding["character"] == fault.character and finding["side"] in sides


def _may_be_said(fault: Fault, finding: dict[str, Any]) -> bool:
    """Rounds alone prove no side, and a character that is told by looks is marked so: it may be wrong."""
    by_looks = "fingerprint" in finding["confirmed_by"] or finding["character"] == "unknown"
    sides = {"rounding": ("both", "unknown")}.get(finding["character"], ("unknown",))
    return finding["side"] in sides and (finding["character"] == fault.character or by_looks)


def places(fault: Fault) -> list[str]:
    """Boundaries that a finding of a fault may name: where it shows, and the weights that differ."""
    weights = [name.replace(".N.", f".{fault.layer}.") for name in SWITCHES[fault.name].weights]
    return [*fault.also, *weights]
