"""Independent differences, from what was compared: weights, inputs, one side alone non-finite, and what is left open.

Without replay a difference of activations is `unknown`; a weight, an id or a position that differs, or
a side that alone is non-finite, is a logic difference by itself.
"""

from collections.abc import Sequence
from typing import Literal

import msgspec

from dump_analysis import causes, chain, stated_summary
from dump_analysis.artefacts.boundary_results import DIVERGED, BoundaryResult, FirstDivergence, SidesShape, elements
from dump_analysis.artefacts.common import Modules, Worded
from dump_analysis.artefacts.conclusion import Finding, Size
from dump_analysis.boundaries import INPUTS, layer_of, made_by
from dump_analysis.findings.making import finding
from dump_analysis.replicas import DifferingReplica
from dump_analysis.weights import DifferingWeight
from dump_analysis.wording import word


def differs(result: BoundaryResult) -> bool:
    """Whether values or shapes differ; equal values in another format do not."""
    unlike = result.status == "SHAPE_DIFF" or result.unequal is None or bool(result.unequal.count)
    return result.status in DIVERGED and unlike


def evidence(result: BoundaryResult) -> Worded:
    """What was measured at one boundary, in a sentence."""
    if isinstance(result.shape, SidesShape):
        return word("shapes_differ", boundary=result.boundary, train=result.shape.train, infer=result.shape.infer)
    if _by_digest(result) and result.reason is not None:
        return word("compared_digests", boundary=result.boundary, what=result.reason)
    unequal = result.unequal.count if result.unequal else 0
    return word("compared_bytes", boundary=result.boundary, unequal=unequal, of=elements(result), max=result.max_abs_diff or 0.0)


def _by_digest(result: BoundaryResult) -> bool:
    """Whether digests alone say that two values differ: how many elements do is not known then."""
    return result.status == "NOT_EXACT" and result.unequal is None


def nonfinite_side(result: BoundaryResult) -> Literal["train", "infer"] | None:
    """The side that alone is non-finite at some place of a boundary, while the other never is; None if there is none."""
    if result.status != "NONFINITE" or result.reason is None or result.reason.kind != "nonfinite_found":
        return None
    train, infer = (result.reason.values.get(key) for key in ("train_alone", "infer_alone"))
    if not (isinstance(train, int) and isinstance(infer, int) and isinstance(result.reason.values.get("index"), int)):
        return None  # an edited file
    return "train" if train and not infer else "infer" if infer and not train else None


def onset(inputs: Sequence[BoundaryResult]) -> int | None:
    """The token from which ids or positions differ: a causal model computes what comes before it from equal inputs.

    None where that is not known of one of them.
    """
    onsets = [result.where.onset_token if result.where is not None else None for result in inputs]
    known = [onset for onset in onsets if onset is not None]
    return min(known) if known and len(known) == len(onsets) else None


def begins(result: BoundaryResult) -> int | None:
    """The first token that differs at a boundary behind the inputs; None where none does, or where it is not known."""
    behind = result.boundary not in INPUTS and result.status in DIVERGED
    return result.where.onset_token if behind and result.where is not None else None


def before(boundaries: Sequence[BoundaryResult], start: int | None) -> BoundaryResult | None:
    """The first boundary that differs at tokens before the inputs do; None where it is not known where these begin."""
    if start is None:
        return None
    return next((result for result in boundaries if (first := begins(result)) is not None and first < start), None)


def of_input(
    result: BoundaryResult,
    start: int | None,
    boundaries: Sequence[BoundaryResult],
    modules: dict[str, Modules],
    heals: Worded | None = None,
) -> Finding:
    """``heals``: why nothing behind it is its effect, where that is so."""
    cause = word("inputs_differ", names=result.boundary)
    if heals is not None:
        return finding([result], modules, character="logic", cause=cause, evidence=[evidence(result), heals], confirmed_by="inputs")
    behind = sum((first := begins(other)) is not None and start is not None and first >= start for other in boundaries)
    told = [evidence(result)] + ([word("may_be_of_inputs", n=behind, token=start, names=result.boundary)] if behind else [])
    return finding([result], modules, character="logic", cause=cause, evidence=told, confirmed_by="inputs")


def apart_before(result: BoundaryResult, inputs: Sequence[BoundaryResult], start: int | None, modules: dict[str, Modules]) -> Finding:
    """What differs at tokens before the inputs do is not their effect, and as open as any first divergence."""
    return opened(result, before_inputs(result, inputs, start), modules)


def before_inputs(result: BoundaryResult, inputs: Sequence[BoundaryResult], start: int | None) -> Worded:
    """That a boundary differs at tokens before the inputs do."""
    return word("before_inputs", boundary=result.boundary, onset=begins(result), names=[each.boundary for each in inputs], token=start)


def of_nonfinite(result: BoundaryResult, modules: dict[str, Modules]) -> Finding:
    side, reason = nonfinite_side(result), result.reason
    if side is None or reason is None:
        raise ValueError(f"{result.boundary} is not non-finite on one side alone")
    n, index = reason.values[f"{side}_alone"], reason.values["index"]
    cause = word("one_side_nonfinite", side=side, boundary=result.boundary, n=n, index=index)
    return finding([result], modules, character="logic", side=side, cause=cause, evidence=[reason])


def of_weight(weight: DifferingWeight, modules: dict[str, Modules]) -> Finding:
    """Different values are logic; different shapes may be a mapping's fault and stay unknown.

    So do digests that differ with no statistics beside them that do: the same values in another order have others.
    """
    names = [result.boundary for result in weight.results]
    told = [evidence(result) for result in weight.results]
    if any(result.status == "SHAPE_DIFF" for result in weight.results):
        return finding(weight.results, modules, character="unknown", cause=word("weight_shapes_differ", weights=names), evidence=told)
    cause = word("weight_differs", weights=names, unequal=weight.unequal, of=weight.of)
    if all(map(_by_digest, weight.results)):
        cause = word("weight_digests_differ", weights=names)
        if not any(stated_summary.agrees(result) == "no" for result in weight.results):
            untold = word("weight_digests_untold", weights=names)
            return finding(weight.results, modules, character="unknown", cause=untold, evidence=told)
    return finding(weight.results, modules, character="logic", cause=cause, evidence=told, confirmed_by="weights")


def of_replica(replica: DifferingReplica, modules: dict[str, Modules]) -> Finding:
    """Ranks that part: logic for weights and inputs, which nothing rounds; the side is that dump's."""
    one = replica.found
    ranks = [f"rank{rank}" for rank in one.ranks]
    cause = word("ranks_part", side=replica.side, name=replica.boundary, ranks=ranks, unequal=one.unequal)
    layer = layer_of(replica.boundary)
    return Finding(
        id="",
        boundary=replica.boundary,
        layers=[] if layer is None else [layer],
        boundaries=[replica.boundary],
        module=modules.get(replica.boundary, Modules(None, None)),
        character="logic" if replica.certain else "unknown",
        side=replica.side,
        cause=cause,
        size=Size(one.unequal, None),
        evidence=[cause],
        ruled_out=[],
        chain=[],
        rounds=[],
        confirmed_by=["replicas"],
        resolvable="unknown",
        fix=None,
    )


def with_growth(finding: Finding, first: FirstDivergence | None, boundaries: Sequence[BoundaryResult]) -> Finding:
    """The finding that stands at the first divergence also says how the difference grows from there."""
    covered = set(finding.boundaries) | {made_by(boundary) for boundary in finding.boundaries}
    told = chain.worded(chain.growth(boundaries)) if first is not None and first.boundary in covered else None
    return finding if told is None else msgspec.structs.replace(finding, evidence=[*finding.evidence, told])


def _apart_by(result: BoundaryResult) -> list[Worded]:
    if result.ulp is None or result.ulp.max_at_row_scale is None:
        return []
    return [word("apart_by", boundary=result.boundary, ulps=result.ulp.max, at_scale=result.ulp.max_at_row_scale)]


def left_open(result: BoundaryResult, first: FirstDivergence, before: int, modules: dict[str, Modules]) -> Finding:
    gaps = word("before_gaps", gaps=first.uncompared_before) if first.uncompared_before else word("before_unknown")
    complete = word("before_all_equal", n=before) if first.predecessors_complete else gaps
    return opened(result, complete, modules)


def opened(result: BoundaryResult, last: Worded, modules: dict[str, Modules]) -> Finding:
    """A difference that is not judged. ``last``: what is said of it after its measures."""
    cause = word("not_judged", boundary=result.boundary, status=result.status)
    seen = causes.fingerprint(result)
    told = [evidence(result), *_apart_by(result), *([seen] if seen else []), *(result.where.hints if result.where else []), last]
    return finding(
        [result], modules, character="unknown", cause=cause, evidence=told, confirmed_by="fingerprint" if seen is not None else None
    )
