"""What may be behind the differences: six hypotheses, each excluded, supported or open with its ground, then the causes that fit.

Grounds come from what was compared and, where modules were recomputed, from that. What was not recomputed excludes nothing.
"""

from collections.abc import Sequence
from typing import NamedTuple

from dump_analysis.artefacts.boundary_results import BoundaryResult, BoundaryResults
from dump_analysis.artefacts.conclusion import Finding, Hypothesis
from dump_analysis.artefacts.probe import Probe
from dump_analysis.artefacts.replay_results import ModuleReplay, ReplayResults
from dump_analysis.artefacts.semantic_mapping import SemanticMapping
from dump_analysis.causes import compared, recomputed
from dump_analysis.causes.ground import Ground
from dump_analysis.causes.ranking import Ranked, ranked
from dump_analysis.replay import places
from dump_analysis.weights import WeightsCompared
from dump_analysis.wording import word

NAMES = ("weights_out_of_sync", "input_misaligned", "config", "parallel_layout", "kernel_order", "randomness")
_CONFIRMED = {"weights_out_of_sync": "weights", "input_misaligned": "inputs", "config": "config", "parallel_layout": "replicas"}
_MOST_RANKED = 3  # causes that are told of one boundary


class _Known(NamedTuple):
    """What the hypotheses are read from."""

    results: BoundaryResults
    weights: WeightsCompared
    findings: Sequence[Finding]
    replay: ReplayResults | None


def hypotheses(
    results: BoundaryResults,
    mapping: SemanticMapping | None,
    weights: WeightsCompared,
    findings: Sequence[Finding],
    facts: Probe | None,
    replay: ReplayResults | None = None,
) -> list[Hypothesis]:
    """The six in the order of NAMES, then the causes whose fingerprint the first divergence has, where replay leaves it open."""
    known = _Known(results, weights, findings, replay)
    exact = results.overall == "exact"
    layout = compared.layout(facts)
    grounds = (
        _of_weights(known, mapping),
        compared.inputs(results),
        recomputed.config(replay) if replay else compared.config(results),
        recomputed.layout(replay, layout) if replay else layout,
        recomputed.kernel_order(replay) if replay and not exact else compared.kernel_order(results),
        recomputed.randomness(replay, results.boundaries) if replay and not exact else compared.randomness(results),
    )
    found = [_hypothesis(name, ground, findings) for name, ground in zip(NAMES, grounds, strict=True)]
    return found + _altered(known) + _that_fit(known)


def _of_weights(known: _Known, mapping: SemanticMapping | None) -> Ground:
    explained = recomputed.explained_entries(known.replay) if known.replay else ()
    of_results = compared.weights(known.weights, compared.unmapped_weights(mapping, explained))
    return recomputed.weights(known.replay, known.weights, of_results) if known.replay else of_results


def _hypothesis(name: str, ground: Ground, findings: Sequence[Finding]) -> Hypothesis:
    confirmed = _CONFIRMED.get(name)
    ids = [one.id for one in findings if confirmed in one.confirmed_by or any(_module_of(at) in ground.modules for at in one.boundaries)]
    return Hypothesis(name, ground.state, ground.because, ids, list(ground.would_decide) if ground.state == "open" else [])


def _module_of(boundary: str) -> str:
    return places.module_of(boundary.removesuffix(".weight").removesuffix(".bias"))


def _altered(known: _Known) -> list[Hypothesis]:
    """Code between modules, where a value reached a module altered."""
    edges = [edge for edge in known.replay.edges if edge.how == "altered"] if known.replay else []
    if not edges:
        return []
    because = word("edges_altered", sides=sorted({edge.side for edge in edges}), inputs=[edge.input for edge in edges])
    return [Hypothesis("code_between_modules", "supported", because, [], [])]


# --- causes that fit ---


def _that_fit(known: _Known) -> list[Hypothesis]:
    """Of the first divergence, and of the first weight that differs."""
    found: list[Hypothesis] = []
    for result in _asked(known):
        ids = [one.id for one in known.findings if result.boundary in one.boundaries]
        module = _replayed(known.replay, result.boundary)
        if module is not None and module.verdict != "unknown":
            continue  # what recomputing has decided needs no guess
        fitting = ranked(result, known.results.boundaries, known.results.weights, module)
        found += [_of_cause(one, result, ids) for one in fitting[:_MOST_RANKED]]
    return found


def _asked(known: _Known) -> list[BoundaryResult]:
    first = known.results.first_divergence
    weights = [weight.results[0] for weight in known.weights.differing[:1]]
    return [*weights, *(one for one in known.results.boundaries if first is not None and one.boundary == first.boundary)]


def _replayed(replay: ReplayResults | None, boundary: str) -> ModuleReplay | None:
    """None for a weight, which nothing recomputes."""
    name = places.module_of(boundary)
    return next((one for one in replay.modules if one.module == name), None) if replay else None


def _of_cause(one: Ranked, result: BoundaryResult, ids: list[str]) -> Hypothesis:
    values = {"rule": one.cause.rule, "family": one.cause.family, "cause": one.worded, "boundary": result.boundary}
    told = word("cause_fits", **values, because=list(one.speaks_for))
    if one.speaks_against:
        told = word("cause_fits_partly", **values, because=list(one.speaks_for), against=list(one.speaks_against))
    return Hypothesis(one.cause.name, "open", told, ids, [one.experiment, one.refuted_by])
