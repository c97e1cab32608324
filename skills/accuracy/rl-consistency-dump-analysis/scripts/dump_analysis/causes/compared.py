"""Grounds of hypotheses from what was compared alone."""

from collections.abc import Collection

from msprobe_files.names import parse_tensor

from dump_analysis.artefacts.boundary_results import DIVERGED, BoundaryResults
from dump_analysis.artefacts.common import Worded
from dump_analysis.artefacts.probe import Probe
from dump_analysis.artefacts.semantic_mapping import SemanticMapping
from dump_analysis.boundaries import INPUTS
from dump_analysis.causes.ground import Ground
from dump_analysis.causes.looks import fingerprint
from dump_analysis.weights import WeightsCompared
from dump_analysis.wording import word


def unmapped_weights(mapping: SemanticMapping | None, explained: Collection[str]) -> int:
    """Recorded weights that no row names, on the side that has more of them. ``explained``: entries that need none."""
    if mapping is None or mapping.unmapped is None:
        return 0
    left = (mapping.unmapped.train, mapping.unmapped.infer)
    return max(sum(_is_weight(name, explained) for name in names) for names in left)


def _is_weight(name: str, explained: Collection[str]) -> bool:
    parsed = parse_tensor(name)
    return parsed is not None and parsed.category == "parameters" and parsed.entry not in explained


def weights(found: WeightsCompared, unmapped: int) -> Ground:
    """Excluded only where every weight was compared."""
    if found.differing:
        names = [result.boundary for weight in found.differing for result in weight.results]
        return Ground("supported", word("weights_differ", differ=len(names), of=found.compared, names=names))
    if not found.compared:
        return Ground("open", word("weights_not_compared"), (word("decide_weights_recorded"),))
    if found.gaps or unmapped:
        partly = word("weights_partly", of=found.compared, gaps=found.gaps, unmapped=unmapped)
        return Ground("open", partly, (word("decide_weights_recorded"),))
    return Ground("excluded", word("weights_equal", equal=found.equal, of=found.compared))


def inputs(results: BoundaryResults) -> Ground:
    """Token ids and positions."""
    found = {result.boundary: result.status for result in results.boundaries if result.boundary in INPUTS}
    wrong = [name for name, status in found.items() if status in DIVERGED]
    if wrong:
        return Ground("supported", word("inputs_differ", names=wrong))
    if len(found) == len(INPUTS) and set(found.values()) == {"EXACT"}:
        return Ground("excluded", word("inputs_equal", names=list(found)))
    lacking = [name for name in INPUTS if found.get(name) != "EXACT"]
    return Ground("open", word("inputs_not_compared"), (word("decide_gap", names=lacking),))


def config(results: BoundaryResults) -> Ground:
    """Never decided by comparing outputs."""
    seen = _first_fingerprint(results)
    told = word("config_not_read") if seen is None else word("config_by_fingerprint", seen=seen)
    return Ground("open", told, (word("decide_by_replay"),))


def layout(facts: Probe | None) -> Ground:
    """Never excluded by counting: how many ranks ran is not in a dump, only how many were handed."""
    left = (word("decide_layout"),)
    if facts is None or facts.train is None or facts.infer is None:
        return Ground("open", word("units_unknown"), left)
    return Ground("open", word("units_handed", train=len(facts.train.units), infer=len(facts.infer.units)), left)


def kernel_order(results: BoundaryResults) -> Ground:
    """Excluded where nothing differs."""
    seen = _first_fingerprint(results)
    if results.overall == "exact":
        return Ground("excluded", word("nothing_differs"))
    told = word("needs_replay") if seen is None else word("order_by_fingerprint", seen=seen)
    return Ground("open", told, (word("decide_by_replay"),))


def randomness(results: BoundaryResults) -> Ground:
    """Excluded where nothing differs."""
    if results.overall == "exact":
        return Ground("excluded", word("nothing_differs"))
    return Ground("open", word("needs_replay"), (word("decide_by_replay"),))


def _first_fingerprint(results: BoundaryResults) -> Worded | None:
    first = results.first_divergence
    found = next((result for result in results.boundaries if first is not None and result.boundary == first.boundary), None)
    return fingerprint(found) if found is not None else None
