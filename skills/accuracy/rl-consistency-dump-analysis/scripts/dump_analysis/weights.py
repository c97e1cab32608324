"""The weights of both sides: which differ, those of one place in several layers taken together."""

import re
from collections.abc import Sequence
from typing import NamedTuple

from .artefacts.boundary_results import GAPS, BoundaryResult, elements

_LAYER = re.compile(r"^layers\.(\d+)\.(.+)$")


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


def layer_of(boundary: str) -> int | None:
    """The layer number in a boundary's name."""
    found = _LAYER.match(boundary)
    return int(found.group(1)) if found else None


def compared(results: Sequence[BoundaryResult]) -> WeightsCompared:
    """Count and group. A weight differs where values differ; the same values in a wider format do not."""
    together: dict[str, list[BoundaryResult]] = {}
    equal = gaps = 0
    for result in results:
        if result.status in GAPS:
            gaps += 1
        elif result.status != "SHAPE_DIFF" and result.unequal is not None and result.unequal.count == 0 and result.status != "NONFINITE":
            equal += 1
        else:
            found = _LAYER.match(result.boundary)
            together.setdefault(f"layers.N.{found.group(2)}" if found else result.boundary, []).append(result)
    return WeightsCompared(equal, tuple(_grouped(place, found) for place, found in together.items()), gaps)


def _grouped(place: str, results: Sequence[BoundaryResult]) -> DifferingWeight:
    layers = tuple(layer for layer in (layer_of(result.boundary) for result in results) if layer is not None)
    unequal = sum(result.unequal.count for result in results if result.unequal)
    return DifferingWeight(place, layers, tuple(results), unequal, sum(elements(result) for result in results))
