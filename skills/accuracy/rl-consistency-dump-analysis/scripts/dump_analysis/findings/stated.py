"""Constants that the configurations of the two sides state otherwise, though what was recorded follows from either value."""

from collections.abc import Sequence

import msgspec

from dump_analysis.artefacts.common import Modules
from dump_analysis.artefacts.conclusion import Finding, Size
from dump_analysis.causes.recomputed import stated_apart, stated_told
from dump_analysis.findings.making import finding
from dump_analysis.findings.replayed import Seen


def of_stated(found: Sequence[Seen], modules: dict[str, Modules]) -> list[Finding]:
    """One finding a constant and pair of values, at ``config.<constant>``: another prompt would show it in its layers.

    None of a constant that other modules have shown to differ: that is the same fault.
    """
    shown = {told.values["name"] for one in found for told in one.module.evidence if told.kind == "replay_constants"}
    groups: dict[tuple[str, float | str, float | str], list[Seen]] = {}
    for one in found:
        apart = {name: values for name, values in stated_apart(one.module).items() if name not in shown}
        for name, (train, infer) in apart.items():
            groups.setdefault((name, train, infer), []).append(one)
    return [_finding(stated, group, modules) for stated, group in groups.items()]


def _finding(stated: tuple[str, float | str, float | str], group: Sequence[Seen], modules: dict[str, Modules]) -> Finding:
    cause = stated_told(*stated)
    made = finding([one.result for one in group], modules, character="logic", cause=cause, evidence=[cause], confirmed_by="config")
    boundary = f"config.{stated[0]}"
    return msgspec.structs.replace(made, boundary=boundary, boundaries=[boundary], size=Size(0, None, unexplained=0))
