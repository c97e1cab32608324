"""Independent differences, from what was compared: weights, inputs, one side alone non-finite, and what is left open.

Without replay a difference of activations is `unknown`; a weight, an id or a position that differs, or
a side that alone is non-finite, is a logic difference by itself.
"""

from collections.abc import Sequence
from typing import Literal

import msgspec

from . import causes, chain
from .artefacts.boundary_results import DIVERGED, BoundaryResult, BoundaryResults, FirstDivergence, SidesShape, elements
from .artefacts.common import Modules, Worded
from .artefacts.conclusion import Character, Finding, FindingSide, Size
from .boundaries import INPUTS, layer_of, made_by
from .weights import DifferingWeight, WeightsCompared
from .wording import word


def find(results: BoundaryResults, weights: WeightsCompared, modules: dict[str, Modules]) -> list[Finding]:
    """The findings in the order of their boundaries. ``modules``: the modules of each boundary, where known."""
    places = {result.boundary: at for at, result in enumerate(results.boundaries)}
    found = [_of_input(result, modules) for result in results.boundaries if result.boundary in INPUTS and _differs(result)]
    alone = next((result for result in results.boundaries if nonfinite_side(result) is not None), None)
    if alone is not None:
        found.append(_of_nonfinite(alone, modules))
    found += [_of_weight(weight, modules) for weight in weights.differing]
    first = results.first_divergence
    explained = {boundary for finding in found for boundary in finding.boundaries}
    if first is not None and not {first.boundary} & (explained | {made_by(boundary) for boundary in explained}):
        found.append(_left_open(results.boundaries[places[first.boundary]], first, places[first.boundary], modules))
    # A weight stands where the boundary that it makes stands; one that makes none that was compared, at the end.
    found = [_with_growth(finding, first, results.boundaries) for finding in found]
    found.sort(key=lambda finding: places.get(finding.boundary, places.get(made_by(finding.boundary), len(places))))
    return [msgspec.structs.replace(finding, id=f"F{number}") for number, finding in enumerate(found, 1)]


def _differs(result: BoundaryResult) -> bool:
    """Whether values or shapes differ; equal values in another format do not."""
    return result.status in DIVERGED and (result.status == "SHAPE_DIFF" or bool(result.unequal and result.unequal.count))


def evidence(result: BoundaryResult) -> Worded:
    """What was measured at one boundary, in a sentence."""
    if isinstance(result.shape, SidesShape):
        return word("shapes_differ", boundary=result.boundary, train=result.shape.train, infer=result.shape.infer)
    unequal = result.unequal.count if result.unequal else 0
    return word("compared_bytes", boundary=result.boundary, unequal=unequal, of=elements(result), max=result.max_abs_diff or 0.0)


def nonfinite_side(result: BoundaryResult) -> Literal["train", "infer"] | None:
    """The side that alone is non-finite at some place of a boundary, while the other never is; None if there is none."""
    if result.status != "NONFINITE" or result.reason is None or result.reason.kind != "nonfinite_found":
        return None
    train, infer = (result.reason.values.get(key) for key in ("train_alone", "infer_alone"))
    if not (isinstance(train, int) and isinstance(infer, int) and isinstance(result.reason.values.get("index"), int)):
        return None  # an edited file
    return "train" if train and not infer else "infer" if infer and not train else None


def _finding(
    results: Sequence[BoundaryResult],
    modules: dict[str, Modules],
    *,
    character: Character,
    cause: Worded,
    evidence: list[Worded],
    side: FindingSide = "unknown",
    confirmed_by: Literal["weights", "inputs", "fingerprint"] | None = None,
) -> Finding:
    boundaries = [result.boundary for result in results]
    return Finding(
        id="",
        boundary=boundaries[0],
        layers=sorted({layer for layer in map(layer_of, boundaries) if layer is not None}),
        boundaries=boundaries,
        module=modules.get(boundaries[0], Modules(None, None)),
        character=character,
        side=side,
        cause=cause,
        size=_size(results),
        evidence=evidence,
        ruled_out=[],
        chain=[],
        rounds=[],
        confirmed_by=[confirmed_by] if confirmed_by else [],
        resolvable="unknown",
        fix=None,
    )


def _size(results: Sequence[BoundaryResult]) -> Size:
    """The measured size of a difference, over all its boundaries."""
    measured = [result for result in results if result.unequal is not None]
    if not measured:
        return Size(None, None)
    ways = [result.direction for result in measured if result.direction is not None]
    return Size(
        sum(result.unequal.count for result in measured if result.unequal is not None),
        sum(map(elements, results)),
        max((result.ulp.max for result in measured if result.ulp is not None), default=None),
        sum(way.smaller for way in ways) if ways else None,
        sum(way.larger for way in ways) if ways else None,
    )


def _of_input(result: BoundaryResult, modules: dict[str, Modules]) -> Finding:
    cause = word("inputs_differ", names=result.boundary)
    return _finding([result], modules, character="logic", cause=cause, evidence=[evidence(result)], confirmed_by="inputs")


def _of_nonfinite(result: BoundaryResult, modules: dict[str, Modules]) -> Finding:
    side, reason = nonfinite_side(result), result.reason
    if side is None or reason is None:
        raise ValueError(f"{result.boundary} is not non-finite on one side alone")
    n, index = reason.values[f"{side}_alone"], reason.values["index"]
    cause = word("one_side_nonfinite", side=side, boundary=result.boundary, n=n, index=index)
    return _finding([result], modules, character="logic", side=side, cause=cause, evidence=[reason])


def _of_weight(weight: DifferingWeight, modules: dict[str, Modules]) -> Finding:
    """Different values are logic; different shapes may be a mapping's fault and stay unknown."""
    names = [result.boundary for result in weight.results]
    told = [evidence(result) for result in weight.results]
    if any(result.status == "SHAPE_DIFF" for result in weight.results):
        return _finding(weight.results, modules, character="unknown", cause=word("weight_shapes_differ", weights=names), evidence=told)
    cause = word("weight_differs", weights=names, unequal=weight.unequal, of=weight.of)
    return _finding(weight.results, modules, character="logic", cause=cause, evidence=told, confirmed_by="weights")


def _with_growth(finding: Finding, first: FirstDivergence | None, boundaries: Sequence[BoundaryResult]) -> Finding:
    """The finding that stands at the first divergence also says how the difference grows from there."""
    covered = set(finding.boundaries) | {made_by(boundary) for boundary in finding.boundaries}
    told = chain.worded(chain.growth(boundaries)) if first is not None and first.boundary in covered else None
    return finding if told is None else msgspec.structs.replace(finding, evidence=[*finding.evidence, told])


def _apart_by(result: BoundaryResult) -> list[Worded]:
    if result.ulp is None or result.ulp.max_at_row_scale is None:
        return []
    return [word("apart_by", boundary=result.boundary, ulps=result.ulp.max, at_scale=result.ulp.max_at_row_scale)]


def _left_open(result: BoundaryResult, first: FirstDivergence, before: int, modules: dict[str, Modules]) -> Finding:
    gaps = word("before_gaps", gaps=first.uncompared_before) if first.uncompared_before else word("before_unknown")
    complete = word("before_all_equal", n=before) if first.predecessors_complete else gaps
    cause = word("not_judged", boundary=result.boundary, status=result.status)
    seen = causes.fingerprint(result)
    told = [evidence(result), *_apart_by(result), *([seen] if seen else []), *(result.where.hints if result.where else []), complete]
    return _finding(
        [result], modules, character="unknown", cause=cause, evidence=told, confirmed_by="fingerprint" if seen is not None else None
    )
