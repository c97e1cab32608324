"""Everything so far in one conclusion: what differs, what that means, what was not compared, what would decide.

Without replay a difference of activations is `unknown`; a weight, an id or a position that differs, or
a side that alone is non-finite, is a logic difference by itself.
"""

from collections.abc import Sequence
from typing import Literal

import msgspec

from .artefacts.boundary_results import DIVERGED, GAPS, BoundaryResult, BoundaryResults, FirstDivergence, SidesShape, elements
from .artefacts.common import Modules, Worded
from .artefacts.conclusion import (
    Character,
    Conclusion,
    Consistency,
    EndToEndMetric,
    Finding,
    FindingSide,
    Hypothesis,
    HypothesisState,
    Input,
    LogMetric,
    Metrics,
    Size,
    Uncompared,
)
from .artefacts.semantic_mapping import SemanticMapping
from .weights import DifferingWeight, WeightsCompared, compared, layer_of
from .wording import word

INPUTS = ("input_ids", "positions")
Confirmation = Literal["weights", "inputs"]


def conclude(
    results: BoundaryResults, mapping: SemanticMapping | None, inputs: Sequence[Input], units: tuple[int, int] | None
) -> Conclusion:
    """The conclusion of an analysis.

    ``mapping`` names the modules of each boundary; ``inputs``: what the analysis rests on; ``units``: how
    many dump units each side has, None where that is not known.
    """
    weights = compared(results.weights)
    modules = {row.boundary: row.module for row in [*mapping.boundaries, *mapping.weights] if row.module} if mapping else {}
    findings = _findings(results, weights, modules)
    gaps = [result for result in [*results.boundaries, *results.weights] if result.status in GAPS]
    consistency = _consistency(results, findings, weights)
    return Conclusion(
        overall=results.overall,
        consistency=consistency,
        summary=_summary(results, findings, weights),
        first_divergence=results.first_divergence,
        findings=findings,
        hypotheses=_hypotheses(results, weights, findings, units),
        spans=[],
        evidence_missing=[Uncompared(gap.boundary, gap.reason or word("nothing_differs"), None) for gap in gaps],
        would_decide=[] if consistency == "consistent" else _would_decide(results, findings, gaps),
        account=None,
        metrics=Metrics(LogMetric("evidence_missing"), EndToEndMetric("evidence_missing")),
        inputs=list(inputs),
        rounds=[],
    )


def _consistency(results: BoundaryResults, findings: Sequence[Finding], weights: WeightsCompared) -> Consistency:
    if any(finding.character == "logic" for finding in findings):
        return "inconsistent"
    return "consistent" if results.overall == "exact" and not weights.differing else "undecided"


# --- findings ---


def _findings(results: BoundaryResults, weights: WeightsCompared, modules: dict[str, Modules]) -> list[Finding]:
    """Independent differences in the order of their boundaries."""
    found: list[tuple[int, Finding]] = []
    places = {result.boundary: at for at, result in enumerate(results.boundaries)}
    wrong_inputs = [result for result in results.boundaries if result.boundary in INPUTS and result.status in DIVERGED]
    found += [(places[result.boundary], _input_finding(result, modules)) for result in wrong_inputs]
    alone = next((result for result in results.boundaries if _nonfinite_side(result)), None)
    if alone is not None:
        found.append((places[alone.boundary], _nonfinite_finding(alone, modules)))
    found += [(_place_of_weight(weight, places), _weight_finding(weight, modules)) for weight in weights.differing]
    first = results.first_divergence
    explained = {boundary for _, finding in found for boundary in finding.boundaries}
    stems = {boundary.removesuffix(".weight").removesuffix(".bias") for boundary in explained}
    if first is not None and first.boundary not in explained and first.boundary.removesuffix(".out") not in stems:
        result = results.boundaries[places[first.boundary]]
        found.append((places[first.boundary], _open_finding(result, first, places[first.boundary], modules)))
    found.sort(key=lambda item: item[0])
    return [_numbered(finding, at + 1) for at, (_, finding) in enumerate(found)]


def _numbered(finding: Finding, number: int) -> Finding:
    return msgspec.structs.replace(finding, id=f"F{number}")


def _finding(
    results: Sequence[BoundaryResult],
    modules: dict[str, Modules],
    *,
    character: Character,
    side: FindingSide,
    cause: Worded,
    evidence: list[Worded],
    confirmed_by: list[Confirmation],
) -> Finding:
    boundaries = [result.boundary for result in results]
    layers = sorted({layer for layer in map(layer_of, boundaries) if layer is not None})
    known = [result.unequal.count for result in results if result.unequal is not None]
    return Finding(
        id="",
        boundary=boundaries[0],
        layers=layers,
        boundaries=boundaries,
        module=modules.get(boundaries[0], Modules(None, None)),
        character=character,
        side=side,
        cause=cause,
        size=Size(sum(known), sum(map(elements, results))) if known else Size(None, None),
        evidence=evidence,
        ruled_out=[],
        chain=[],
        rounds=[],
        confirmed_by=list(confirmed_by),
        resolvable="unknown",
        fix=None,
    )


def _evidence(result: BoundaryResult) -> Worded:
    if isinstance(result.shape, SidesShape):
        return word("shapes_differ", boundary=result.boundary, train=result.shape.train, infer=result.shape.infer)
    unequal = result.unequal.count if result.unequal else 0
    return word("compared_bytes", boundary=result.boundary, unequal=unequal, of=elements(result), max=result.max_abs_diff or 0.0)


def _input_finding(result: BoundaryResult, modules: dict[str, Modules]) -> Finding:
    evidence = _evidence(result)
    return _finding(
        [result],
        modules,
        character="logic",
        side="unknown",
        cause=word("inputs_differ", names=result.boundary),
        evidence=[evidence],
        confirmed_by=["inputs"],
    )


def _nonfinite_side(result: BoundaryResult) -> Literal["train", "infer"] | None:
    """The side that alone holds non-finite elements, at a boundary that has the status for it."""
    if result.status != "NONFINITE" or result.special is None:
        return None
    train, infer = result.special.nonfinite.train, result.special.nonfinite.infer
    return None if train and infer else "train" if train else "infer"


def _nonfinite_finding(result: BoundaryResult, modules: dict[str, Modules]) -> Finding:
    side = _nonfinite_side(result) or "train"
    counts = result.special.nonfinite if result.special else None
    n = 0 if counts is None else counts.train + counts.infer
    index = result.reason.values.get("index", 0) if result.reason else 0
    return _finding(
        [result],
        modules,
        character="logic",
        side=side,
        cause=word("one_side_nonfinite", side=side, boundary=result.boundary, n=n, index=index),
        evidence=[result.reason] if result.reason else [],
        confirmed_by=[],
    )


def _place_of_weight(weight: DifferingWeight, places: dict[str, int]) -> int:
    """A weight stands where the boundary that it makes stands; else before everything."""
    stem = weight.results[0].boundary.removesuffix(".weight").removesuffix(".bias")
    return next((at for name, at in places.items() if name in (stem, f"{stem}.out")), -1)


def _weight_finding(weight: DifferingWeight, modules: dict[str, Modules]) -> Finding:
    shaped = any(result.status == "SHAPE_DIFF" for result in weight.results)
    boundaries = [result.boundary for result in weight.results]
    return _finding(
        weight.results,
        modules,
        character="unknown" if shaped else "logic",
        side="unknown",
        cause=word("weight_differs", weights=boundaries, unequal=weight.unequal, of=weight.of),
        evidence=[_evidence(result) for result in weight.results],
        confirmed_by=["weights"],
    )


def _open_finding(result: BoundaryResult, first: FirstDivergence, before: int, modules: dict[str, Modules]) -> Finding:
    complete = word("before_all_equal", n=before) if first.predecessors_complete else word("before_gaps", gaps=first.uncompared_before)
    return _finding(
        [result],
        modules,
        character="unknown",
        side="unknown",
        cause=word("not_judged", boundary=result.boundary, status=result.status),
        evidence=[_evidence(result), complete],
        confirmed_by=[],
    )


# --- hypotheses ---


def _hypotheses(
    results: BoundaryResults, weights: WeightsCompared, findings: Sequence[Finding], units: tuple[int, int] | None
) -> list[Hypothesis]:
    of_weights = [finding.id for finding in findings if "weights" in finding.confirmed_by]
    of_inputs = [finding.id for finding in findings if "inputs" in finding.confirmed_by]
    layout: HypothesisState = "excluded" if units == (1, 1) else "open"
    layout_because = word("one_unit")
    if units != (1, 1):
        layout_because = word("units_unknown") if units is None else word("several_units", train=units[0], infer=units[1])
    exact = results.overall == "exact"
    rest: HypothesisState = "excluded" if exact else "open"
    because = word("nothing_differs") if exact else word("needs_replay")
    return [
        Hypothesis("weights_out_of_sync", *_about_weights(weights), of_weights),
        Hypothesis("input_misaligned", *_about_inputs(results), of_inputs),
        Hypothesis("config", "open", word("config_not_read"), []),
        Hypothesis("parallel_layout", layout, layout_because, []),
        Hypothesis("kernel_order", rest, because, []),
        Hypothesis("randomness", rest, because, []),
    ]


def _about_weights(weights: WeightsCompared) -> tuple[HypothesisState, Worded]:
    if weights.differing:
        names = [result.boundary for weight in weights.differing for result in weight.results]
        return "supported", word("weights_differ", differ=len(names), of=weights.compared, names=names)
    if not weights.compared:
        return "open", word("weights_not_compared")
    if weights.gaps:
        return "open", word("weights_partly", of=weights.compared, gaps=weights.gaps)
    return "excluded", word("weights_equal", equal=weights.equal, of=weights.compared)


def _about_inputs(results: BoundaryResults) -> tuple[HypothesisState, Worded]:
    found = {result.boundary: result.status for result in results.boundaries if result.boundary in INPUTS}
    wrong = [name for name, status in found.items() if status in DIVERGED]
    if wrong:
        return "supported", word("inputs_differ", names=wrong)
    if len(found) == len(INPUTS) and set(found.values()) == {"EXACT"}:
        return "excluded", word("inputs_equal", names=list(found))
    return "open", word("inputs_not_compared")


# --- words ---


def _summary(results: BoundaryResults, findings: Sequence[Finding], weights: WeightsCompared) -> list[Worded]:
    return [_summary_verdict(results, findings), _summary_first(results), _summary_counts(results, weights)]


def _summary_verdict(results: BoundaryResults, findings: Sequence[Finding]) -> Worded:
    exact, gaps = results.counts.get("EXACT", 0), sum(results.counts.get(status, 0) for status in GAPS)
    logic = [finding for finding in findings if finding.character == "logic"]
    if logic:
        return word("sum_faults", n=len(logic), first=logic[0].cause)
    if results.overall == "not_run":
        return word("sum_not_run", why=word("no_names" if results.boundaries or results.weights else "no_rows"))
    if results.first_divergence is not None:
        return word("sum_undecided", boundary=results.first_divergence.boundary)
    if results.overall == "exact":
        return word("sum_exact", n=exact)
    return word("sum_exact_gaps", n=exact, gaps=gaps) if exact else word("sum_only_gaps", gaps=gaps)


def _summary_first(results: BoundaryResults) -> Worded:
    first = results.first_divergence
    if first is None:
        return word("sum_no_divergence" if results.overall in ("exact", "evidence_missing", "nonzero") else "sum_nothing")
    at = next(at for at, result in enumerate(results.boundaries) if result.boundary == first.boundary)
    evidence = _evidence(results.boundaries[at])
    if not first.uncompared_before:
        return word("sum_first", boundary=first.boundary, evidence=evidence)
    last = next((r.boundary for r in reversed(results.boundaries[:at]) if r.status == "EXACT"), None)
    return word(
        "sum_between", last=last or word("start_of_model"), boundary=first.boundary, evidence=evidence, gaps=first.uncompared_before
    )


def _summary_counts(results: BoundaryResults, weights: WeightsCompared) -> Worded:
    counts = results.counts
    return word(
        "sum_counts",
        exact=counts.get("EXACT", 0),
        all=sum(counts.values()),
        differ=sum(counts.get(status, 0) for status in DIVERGED),
        gaps=sum(counts.get(status, 0) for status in GAPS),
        weights=len(results.weights),
        weights_equal=weights.equal,
    )


def _would_decide(results: BoundaryResults, findings: Sequence[Finding], gaps: Sequence[BoundaryResult]) -> list[Worded]:
    wanted = [word("decide_weight", weights=finding.boundaries) for finding in findings if "weights" in finding.confirmed_by]
    if results.first_divergence is not None:
        first = results.first_divergence
        if first.uncompared_before:
            wanted.append(word("decide_gap", names=first.uncompared_before))
        wanted.append(word("decide_replay", boundary=first.boundary))
    elif gaps:
        wanted.append(word("decide_gap", names=[gap.boundary for gap in gaps]))
    return wanted
