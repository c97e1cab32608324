"""All findings of an analysis, in the order of their boundaries."""

from collections.abc import Sequence

import msgspec

from dump_analysis.artefacts.boundary_results import BoundaryResult, BoundaryResults
from dump_analysis.artefacts.common import Modules
from dump_analysis.artefacts.conclusion import Finding
from dump_analysis.artefacts.replay_results import ReplayResults
from dump_analysis.boundaries import INPUTS, made_by
from dump_analysis.findings import compared, replayed
from dump_analysis.findings.positions import heals
from dump_analysis.findings.stated import of_stated
from dump_analysis.findings.weights import of_weights
from dump_analysis.replicas import DifferingReplica
from dump_analysis.weights import WeightsCompared


def find(
    results: BoundaryResults,
    weights: WeightsCompared,
    modules: dict[str, Modules],
    replicas: Sequence[DifferingReplica] = (),
    replay: ReplayResults | None = None,
) -> list[Finding]:
    """The findings in the order of their boundaries. ``modules``: the modules of each boundary, where known.

    ``replicas``: what the ranks of one side hold differently; ``replay``: what recomputing has shown, of the same mapping.
    """
    places = {result.boundary: at for at, result in enumerate(results.boundaries)}
    inputs = [result for result in results.boundaries if result.boundary in INPUTS and compared.differs(result)]
    start = compared.onset(inputs)
    healed = {result.boundary: heals(result, results.boundaries, replay) for result in inputs}
    found = [compared.of_input(result, start, results.boundaries, modules, healed[result.boundary]) for result in inputs]
    alone = next((result for result in results.boundaries if compared.nonfinite_side(result) is not None), None)
    if alone is not None:
        found.append(compared.of_nonfinite(alone, modules))
    found += of_weights(weights, replay, modules)
    if replay is not None:
        told = {alone.boundary} if alone is not None else set()  # where one side alone is non-finite, that says it all
        by_replay = [
            one for one in replayed.of_replay(replayed.seen(replay, results.boundaries), modules, start) if {*one.boundaries} - told
        ]
        found += [_beside_inputs(finding, results.boundaries[places[finding.boundary]], inputs, start) for finding in by_replay]
        found += of_stated(replayed.seen(replay, results.boundaries), modules)
    first = results.first_divergence
    explained = {boundary for finding in found for boundary in finding.boundaries}
    explained |= {made_by(boundary) for boundary in explained}
    if first is not None and first.boundary not in explained:
        found.append(compared.left_open(results.boundaries[places[first.boundary]], first, places[first.boundary], modules))
    elif inputs and (before := compared.before(results.boundaries, start)) is not None and before.boundary not in explained:
        found.append(compared.apart_before(before, inputs, start, modules))
    # What ranks of one side hold differently explains no difference between the sides: one rank alone is compared.
    found += [compared.of_replica(replica, modules) for replica in replicas]
    # A weight stands where the boundary that it makes stands; one that makes none that was compared, at the end.
    found = [compared.with_growth(finding, first, results.boundaries) for finding in found]
    found.sort(key=lambda finding: places.get(finding.boundary, places.get(made_by(finding.boundary), len(places))))
    return [msgspec.structs.replace(finding, id=f"F{number}") for number, finding in enumerate(found, 1)]


def _beside_inputs(finding: Finding, result: BoundaryResult, inputs: Sequence[BoundaryResult], start: int | None) -> Finding:
    """What is not decided says that it begins before the inputs part, where they do."""
    if finding.character != "unknown" or not inputs or start is None or compared.begins(result) is None:
        return finding
    return msgspec.structs.replace(finding, evidence=[*finding.evidence, compared.before_inputs(result, inputs, start)])
