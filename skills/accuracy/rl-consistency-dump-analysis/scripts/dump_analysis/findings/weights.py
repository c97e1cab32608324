"""Weights that differ, as findings: those of one cause together, where replay has told what kind of difference they have."""

from collections.abc import Sequence

import msgspec

from dump_analysis.artefacts.boundary_results import BoundaryResult
from dump_analysis.artefacts.common import FindingSide, Modules
from dump_analysis.artefacts.conclusion import Finding
from dump_analysis.artefacts.replay_results import ReplayResults, WeightReplay
from dump_analysis.findings import compared
from dump_analysis.findings.making import finding
from dump_analysis.replay.weight_groups import WeightGroup, grouped
from dump_analysis.weights import WeightsCompared

_PARTS = 6  # weights of a finding that are told one by one


def of_weights(weights: WeightsCompared, replay: ReplayResults | None, modules: dict[str, Modules]) -> list[Finding]:
    """The findings of all weights that differ. Without replay, or of another kind of status, each place is one of its own.

    A weight that one side keeps in a coarser format is rounding; one that differs by how a gain is stored is none.
    """
    known = {one.name: one for one in replay.weights} if replay is not None else {}
    results = {result.boundary: result for weight in weights.differing for result in weight.results}
    found = []
    told: set[str] = {name for name in results if name in known and known[name].status == "EXACT"}
    for group in grouped(list(known.values())):
        names = [name for name in group.names if name in results and results[name].status != "SHAPE_DIFF"]
        if names:
            found.append(_of_group(group, [results[name] for name in names], [known[name] for name in names], modules))
            told |= set(names)
    for weight in weights.differing:
        left = tuple(result for result in weight.results if result.boundary not in told)
        if left:
            found.append(compared.of_weight(weight._replace(results=left), modules))
    return found


def _of_group(group: WeightGroup, results: Sequence[BoundaryResult], kinds: Sequence[WeightReplay], modules: dict[str, Modules]) -> Finding:
    evidence = [compared.evidence(result) for result in results[:_PARTS]]
    evidence += [told for one in kinds[:_PARTS] for told in one.evidence]
    if all(one.format_only for one in kinds):
        made = finding(results, modules, character="rounding", side="both", cause=group.text, evidence=evidence, confirmed_by="replay")
        return msgspec.structs.replace(made, resolvable="no")
    side: FindingSide = kinds[0].side
    made = finding(results, modules, character="logic", side=side, cause=group.text, evidence=evidence, confirmed_by="weights")
    return msgspec.structs.replace(made, resolvable="yes") if side != "unknown" else made
