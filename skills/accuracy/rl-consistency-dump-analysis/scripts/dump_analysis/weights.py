"""The weights of both sides: which differ, those of one place in several layers taken together."""

from collections.abc import Sequence
from typing import NamedTuple

from .artefacts.boundary_results import GAPS, BoundaryResult, elements
from .boundaries import layer_of, place_of


class DifferingWeight(NamedTuple):
    """One weight's place, with all the layers in which it differs. ``of``: elements compared in those layers."""

    place: str
    layers: tuple[int, ...]
    results: tuple[BoundaryResult, ...]
    unequal: int
    of: int


class WeightsCompared(NamedTuple):
    equal: int
    differing: tuple[DifferingWeight, ...]
    gaps: int

    @property
    def compared(self) -> int:
        return self.equal + sum(len(weight.results) for weight in self.differing)


def compared(results: Sequence[BoundaryResult]) -> WeightsCompared:
    """Count and group. A weight differs where values differ; the same values in a wider format do not."""
    together: dict[str, list[BoundaryResult]] = {}
    equal = gaps = 0
    for result in results:
        if result.status in GAPS:
            gaps += 1
        elif result.status != "SHAPE_DIFF" and result.unequal is not None and result.unequal.count == 0:
            equal += 1
        else:
            together.setdefault(place_of(result.boundary), []).append(result)
    return WeightsCompared(equal, tuple(_grouped(place, found) for place, found in together.items()), gaps)


def _grouped(place: str, results: Sequence[BoundaryResult]) -> DifferingWeight:
    layers = tuple(layer for layer in (layer_of(result.boundary) for result in results) if layer is not None)
    unequal = sum(result.unequal.count for result in results if result.unequal)
    return DifferingWeight(place, layers, tuple(results), unequal, sum(elements(result) for result in results))
