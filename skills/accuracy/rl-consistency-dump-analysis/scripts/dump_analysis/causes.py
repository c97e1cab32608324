"""What may be behind a difference: hypotheses with their grounds, and what the measures of one boundary look like.

A fingerprint says what kinds of cause a difference looks like and which they are not told from; it proves neither
rounding nor logic.
"""

from collections.abc import Sequence

from .artefacts.boundary_results import DIVERGED, BoundaryResult, BoundaryResults
from .artefacts.common import Worded
from .artefacts.conclusion import Finding, Hypothesis, HypothesisState
from .artefacts.probe import Probe
from .artefacts.semantic_mapping import SemanticMapping
from .boundaries import INPUTS
from .measure.ways import way_of
from .weights import WeightsCompared
from .wording import word

# --- fingerprints ---


def fingerprint(result: BoundaryResult) -> Worded | None:
    """What the direction of a boundary's difference looks like; None where nothing was measured."""
    found = result.direction
    if found is None:
        return None
    both = found.smaller + found.larger
    way, share = way_of(found.smaller, found.larger), max(found.smaller, found.larger) / max(both, 1)
    if way == "few":
        return word("fp_few", n=both)
    if way == "one_sided":
        return word("fp_one_sided", n=both)
    return word("fp_leaning" if way == "leaning" else "fp_two_sided", share=share, n=both)


def _first_fingerprint(results: BoundaryResults) -> Worded | None:
    first = results.first_divergence
    found = next((result for result in results.boundaries if first is not None and result.boundary == first.boundary), None)
    return fingerprint(found) if found is not None else None


# --- hypotheses ---


def hypotheses(
    results: BoundaryResults,
    mapping: SemanticMapping | None,
    weights: WeightsCompared,
    findings: Sequence[Finding],
    facts: Probe | None,
) -> list[Hypothesis]:
    """What may be behind the differences, each excluded, supported or open, with the ground."""
    of_weights = [finding.id for finding in findings if "weights" in finding.confirmed_by]
    of_inputs = [finding.id for finding in findings if "inputs" in finding.confirmed_by]
    layout, layout_because = _about_layout(facts)
    exact = results.overall == "exact"
    rest: HypothesisState = "excluded" if exact else "open"
    because = word("nothing_differs") if exact else word("needs_replay")
    seen = _first_fingerprint(results)
    return [
        Hypothesis("weights_out_of_sync", *_about_weights(weights, _unmapped_weights(mapping)), of_weights),
        Hypothesis("input_misaligned", *_about_inputs(results), of_inputs),
        Hypothesis("config", "open", word("config_not_read") if seen is None else word("config_by_fingerprint", seen=seen), []),
        Hypothesis("parallel_layout", layout, layout_because, []),
        Hypothesis("kernel_order", rest, because if seen is None else word("order_by_fingerprint", seen=seen), []),
        Hypothesis("randomness", rest, because, []),
    ]


def _about_layout(facts: Probe | None) -> tuple[HypothesisState, Worded]:
    """Never excluded by counting: how many ranks ran is not in a dump, only how many were handed."""
    if facts is None or facts.train is None or facts.infer is None:
        return "open", word("units_unknown")
    return "open", word("units_handed", train=len(facts.train.units), infer=len(facts.infer.units))


def _unmapped_weights(mapping: SemanticMapping | None) -> int:
    """Recorded weights that no row names, on the side that has more of them."""
    if mapping is None or mapping.unmapped is None:
        return 0
    left = (mapping.unmapped.train, mapping.unmapped.infer)
    return max(sum(".parameters." in name for name in names) for names in left)


def _about_weights(weights: WeightsCompared, unmapped: int) -> tuple[HypothesisState, Worded]:
    if weights.differing:
        names = [result.boundary for weight in weights.differing for result in weight.results]
        return "supported", word("weights_differ", differ=len(names), of=weights.compared, names=names)
    if not weights.compared:
        return "open", word("weights_not_compared")
    if weights.gaps or unmapped:
        return "open", word("weights_partly", of=weights.compared, gaps=weights.gaps, unmapped=unmapped)
    return "excluded", word("weights_equal", equal=weights.equal, of=weights.compared)


def _about_inputs(results: BoundaryResults) -> tuple[HypothesisState, Worded]:
    found = {result.boundary: result.status for result in results.boundaries if result.boundary in INPUTS}
    wrong = [name for name, status in found.items() if status in DIVERGED]
    if wrong:
        return "supported", word("inputs_differ", names=wrong)
    if len(found) == len(INPUTS) and set(found.values()) == {"EXACT"}:
        return "excluded", word("inputs_equal", names=list(found))
    return "open", word("inputs_not_compared")
