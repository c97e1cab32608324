"""How a finding is put together from the boundaries at which it was measured."""

from collections.abc import Sequence

from dump_analysis.artefacts.boundary_results import BoundaryResult, elements
from dump_analysis.artefacts.common import FindingSide, Modules, Worded
from dump_analysis.artefacts.conclusion import Character, Confirmation, Finding, Size
from dump_analysis.boundaries import layer_of


def finding(
    results: Sequence[BoundaryResult],
    modules: dict[str, Modules],
    *,
    character: Character,
    cause: Worded,
    evidence: list[Worded],
    side: FindingSide = "unknown",
    confirmed_by: Confirmation | None = None,
) -> Finding:
    """A finding without number at these boundaries, its size as they were measured. ``modules``: of each boundary, where known."""
    boundaries = [result.boundary for result in results]
    return Finding(
        id="",
        boundary=boundaries[0],
        layers=layers_of(boundaries),
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


def layers_of(boundaries: Sequence[str]) -> list[int]:
    """The numbers of the layers in which boundaries lie."""
    return sorted({layer for layer in map(layer_of, boundaries) if layer is not None})


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
