"""Everything so far in one conclusion: what differs, what that means, what was not compared, what would decide."""

from collections import Counter
from collections.abc import Sequence

import msgspec

from . import causes, coverage, stated_summary
from .artefacts.boundary_results import DIVERGED, GAPS, BoundaryResult, BoundaryResults
from .artefacts.common import Modules, Worded
from .artefacts.conclusion import (
    Conclusion,
    Consistency,
    EndToEndMetric,
    Finding,
    Input,
    LogMetric,
    Metrics,
    Uncompared,
)
from .artefacts.param_report import ParamReport
from .artefacts.probe import Probe
from .artefacts.replay_results import ReplayResults
from .artefacts.semantic_mapping import SemanticMapping
from .boundaries import INPUTS, made_by
from .causes.ground import one_of_each_kind
from .coverage import Coverage
from .findings.compared import evidence
from .findings.find import find
from .parameters import Parameters, parameters
from .replicas import differing
from .rounds.concluded import settled, summaries, with_rounds
from .rounds.history import Round
from .weights import WeightsCompared, compared
from .wording import word

_GROWN = 10  # times what the layer that adds most makes: a large effect of a small cause
NOT_LOGGED = Metrics(LogMetric("evidence_missing"), EndToEndMetric("evidence_missing"))  # where no log was given


def conclude(
    results: BoundaryResults,
    mapping: SemanticMapping | None,
    facts: Probe | None,
    inputs: Sequence[Input],
    metrics: Metrics = NOT_LOGGED,
    replay: ReplayResults | None = None,
    params: ParamReport | None = None,
    rounds: Sequence[Round] = (),
) -> Conclusion:
    """The conclusion of an analysis; ``inputs``: what it rests on.

    ``mapping`` names the modules of each boundary, ``facts`` says how many units each side has and whether they are complete, ``replay``
    what recomputing has shown, ``params`` what was found of configurations and weights before the runs, ``rounds`` the override rounds;
    all are optional. ``metrics``: what a training log states; nothing else in the conclusion follows from them.
    """
    weights = compared(results.weights)
    replay = settled(replay, rounds)
    modules = {row.boundary: row.module for row in [*mapping.boundaries, *mapping.weights] if row.module} if mapping else {}
    found = with_rounds(find(results, weights, modules, differing(mapping), replay), rounds, results, modules)
    findings = _with_notes(found, mapping)
    gaps = [result for result in [*results.boundaries, *results.weights] if result.status in GAPS]
    cut_short = _cut_short(facts)
    covered = Coverage(results, replay, mapping)
    stated = parameters(params)
    left = coverage.open_points(results, covered, replay, cut_short)
    by_dumps = _consistency(results, findings, weights, cut_short, left)
    summary = _summary(results, mapping, findings, weights, cut_short, by_dumps, replay)
    consistency, summary = _held_back(by_dumps, summary, stated)
    decides = [] if by_dumps == "consistent" else _would_decide(results, findings, gaps, cut_short, modules, replay)
    return Conclusion(
        overall=results.overall,
        consistency=consistency,
        summary=summary,
        first_divergence=results.first_divergence,
        findings=findings,
        hypotheses=[*causes.hypotheses(results, mapping, weights, findings, facts, replay), *stated.hypotheses],
        spans=covered.spans(),
        evidence_missing=[Uncompared(gap.boundary, gap.reason or word("no_reason"), covered.covered_by(gap)) for gap in gaps],
        would_decide=[*stated.open, *decides],
        account=None,
        metrics=metrics,
        inputs=list(inputs),
        rounds=summaries(rounds),
    )


def _with_notes(findings: Sequence[Finding], mapping: SemanticMapping | None) -> list[Finding]:
    notes = {row.boundary: row.note for row in [*mapping.boundaries, *mapping.weights] if row.note} if mapping else {}
    return [_with_note(finding, notes) for finding in findings]


def _with_note(finding: Finding, notes: dict[str, str]) -> Finding:
    """What the mapping says of the finding's rows, and of the boundaries that its weights make: that k and v are exchanged, say."""
    names = list(dict.fromkeys(name for boundary in finding.boundaries for name in (boundary, made_by(boundary))))
    told = [word("mapping_says", boundary=name, note=notes[name]) for name in names if name in notes]
    return msgspec.structs.replace(finding, evidence=[*finding.evidence, *told]) if told else finding


def _cut_short(facts: Probe | None) -> list[str]:
    """Sides whose run ended early or whose files are gone: what is equal there proves only a part."""
    sides = (facts.train, facts.infer) if facts else ()
    return [side.label for side in sides if side is not None and not all(unit.complete for unit in side.units)]


def _consistency(
    results: BoundaryResults, findings: Sequence[Finding], weights: WeightsCompared, cut_short: Sequence[str], left: Sequence[Worded]
) -> Consistency:
    """``left``: what may hide a fault although it was not compared."""
    if any(finding.character == "logic" for finding in findings):
        return "inconsistent"
    if results.overall == "exact":
        return "undecided" if weights.differing or cut_short or findings else "consistent"
    if left:
        return "undecided"
    if _equal_but_for_gaps(results):
        return "undecided" if findings else "consistent"
    rounding = bool(findings) and all(finding.character == "rounding" for finding in findings)
    return "consistent" if results.overall == "nonzero" and rounding else "undecided"


def _held_back(by_dumps: Consistency, summary: list[Worded], stated: Parameters) -> tuple[Consistency, list[Worded]]:
    """Consistency and summary, but where parameters differ that nobody let stand: those may part the sides on another input."""
    if not stated.open or by_dumps != "consistent":
        return by_dumps, summary
    return "undecided", [word("sum_but_params", verdict=summary[0], points=stated.names), *summary[1:]]


def _equal_but_for_gaps(results: BoundaryResults) -> bool:
    """Whether something was compared, and all of that is equal: what was not compared hides nothing where recomputing covers it."""
    return results.overall == "evidence_missing" and bool(results.counts.get("EXACT", 0))


# --- words ---


def _summary(
    results: BoundaryResults,
    mapping: SemanticMapping | None,
    findings: Sequence[Finding],
    weights: WeightsCompared,
    cut_short: Sequence[str],
    consistency: Consistency,
    replay: ReplayResults | None,
) -> list[Worded]:
    first = stated_summary.second(results, mapping) or _summary_first(results)
    if results.overall == "nonzero" and consistency == "consistent":
        verdict = _summary_rounding(results, findings)
    elif _equal_but_for_gaps(results) and consistency == "consistent":
        verdict = word("sum_exact_covered", n=results.counts["EXACT"])
    else:
        verdict = _summary_verdict(results, findings, weights, cut_short)
    counts = _summary_counts(results, mapping, weights)
    return [verdict, first, _with_modules(counts, replay) if replay is not None and replay.modules else counts]


def _summary_rounding(results: BoundaryResults, findings: Sequence[Finding]) -> Worded:
    """That it is rounding; where much more of it arrives at the end than any layer makes, how much."""
    made = max((link.local for finding in findings for link in finding.chain if link.local is not None), default=0.0)
    last = next((row for row in reversed(results.boundaries) if row.rel_l2 is not None), None)
    if last is None or last.rel_l2 is None or not made or last.rel_l2 < _GROWN * made:
        return word("sum_rounding", n=len(findings))
    return word("sum_rounding_grown", n=len(findings), made=made, boundary=last.boundary, end=last.rel_l2)


def _with_modules(counts: Worded, replay: ReplayResults) -> Worded:
    """The counts, and those of the recomputed modules."""
    of = Counter(module.verdict for module in replay.modules)
    told = {verdict: of[verdict] for verdict in ("same", "rounding", "logic", "unknown")}
    return word("sum_modules", counts=counts, all=len(replay.modules), **told)


def _summary_verdict(results: BoundaryResults, findings: Sequence[Finding], weights: WeightsCompared, cut_short: Sequence[str]) -> Worded:
    exact, gaps = results.counts.get("EXACT", 0), sum(results.counts.get(status, 0) for status in GAPS)
    logic = [finding for finding in findings if finding.character == "logic"]
    if logic and all(finding.confirmed_by == ["inputs"] for finding in logic):
        return word("sum_other_inputs", first=logic[0].cause)
    if len(logic) == 1:
        return word("sum_one_fault", first=logic[0].cause)
    if logic:
        return word("sum_faults", n=len(logic), causes=[finding.cause for finding in logic])
    if results.overall == "not_run":
        reasons = [row.reason for row in [*results.boundaries, *results.weights] if row.reason is not None]
        return word("sum_not_run", why=reasons[0] if reasons else word("no_rows"))
    if results.first_divergence is not None:
        return word("sum_undecided", boundary=results.first_divergence.boundary)
    if results.overall == "nonzero":
        names = [result.boundary for result in results.weights if result.status in DIVERGED]
        return word("sum_weights_apart", n=exact, weights=names)
    by_digest = stated_summary.of_equal(results, cut_short, gaps, weights.gaps)
    if by_digest is not None:
        return by_digest
    if results.overall == "exact":
        return word("sum_exact_cut", n=exact, sides=list(cut_short)) if cut_short else word("sum_exact", n=exact)
    stated = stated_summary.verdict(results) if not exact else None
    if stated is not None:
        return stated
    if exact or gaps:
        return word("sum_exact_gaps", n=exact, gaps=gaps, weights=weights.gaps) if exact else word("sum_only_gaps", gaps=gaps)
    return word("sum_only_weights", n=weights.compared, equal=weights.equal)


def _summary_first(results: BoundaryResults) -> Worded:
    first = results.first_divergence
    if first is None:
        return word("sum_no_divergence" if results.overall in ("exact", "evidence_missing", "nonzero") else "sum_nothing")
    at = next(at for at, result in enumerate(results.boundaries) if result.boundary == first.boundary)
    told = evidence(results.boundaries[at])
    if not first.uncompared_before:
        return word("sum_first", boundary=first.boundary, evidence=told)
    last = next((r.boundary for r in reversed(results.boundaries[:at]) if r.status == "EXACT"), None)
    return word("sum_between", last=last or word("start_of_model"), boundary=first.boundary, evidence=told, gaps=first.uncompared_before)


def _summary_counts(results: BoundaryResults, mapping: SemanticMapping | None, weights: WeightsCompared) -> Worded:
    counts = results.counts
    boundaries = word(
        "count_boundaries",
        exact=counts.get("EXACT", 0),
        all=sum(counts.values()),
        differ=sum(counts.get(status, 0) for status in DIVERGED),
        gaps=sum(counts.get(status, 0) for status in GAPS),
    )
    differ = weights.compared - weights.equal
    of_weights = word("count_weights", all=len(results.weights), equal=weights.equal, differ=differ, gaps=weights.gaps)
    left = mapping.unmapped if mapping else None
    if left is None or stated_summary.verdict(results) is not None:  # without tensors nothing tells what equals a named one
        return word("sum_counts", boundaries=boundaries, weights=of_weights)
    return word("sum_counts_left", boundaries=boundaries, weights=of_weights, train=len(left.train), infer=len(left.infer))


def _would_decide(
    results: BoundaryResults,
    findings: Sequence[Finding],
    gaps: Sequence[BoundaryResult],
    cut_short: Sequence[str],
    modules: dict[str, Modules],
    replay: ReplayResults | None,
) -> list[Worded]:
    wanted = [word("decide_dump", side=side) for side in cut_short]
    lacking = {str(gap.reason.values["side"]) for gap in gaps if gap.reason is not None and gap.reason.kind == "holds_a_part"}
    wanted += [word("decide_ranks", side=side) for side in sorted(lacking)]
    for finding in (finding for finding in findings if "weights" in finding.confirmed_by):
        moved = any(told.kind == "mapping_says" for told in finding.evidence)
        wanted.append(word("decide_exchanged" if moved else "decide_weight", weights=finding.boundaries))
    untold = [name for finding in findings if finding.cause.kind == "weight_digests_untold" for name in finding.boundaries]
    wanted += [word("decide_tensors", names=untold)] if untold else []
    if results.first_divergence is not None:
        first = results.first_divergence
        if first.uncompared_before:
            wanted.append(word("decide_gap", names=first.uncompared_before))
        if first.boundary in INPUTS:
            wanted.append(word("decide_inputs", boundary=first.boundary))
        elif replay is None:
            wanted.append(word("decide_replay", boundary=first.boundary))
    wanted += one_of_each_kind([told for module in replay.modules for told in module.would_decide]) if replay is not None else []
    tensors, others = stated_summary.wanted(gaps, modules)
    wanted += [tensors] if tensors is not None else []
    if others and results.first_divergence is None:
        wanted.append(word("decide_gap", names=[gap.boundary for gap in others]))
    return wanted
