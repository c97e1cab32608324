"""Which way and how many steps the elements of one side lie from the other's: directions, and ULPs in one format."""

import numpy as np

from dump_analysis import ulps
from dump_analysis.floats import Array
from dump_analysis.ulps import Histogram


class Steps:
    """``smaller``: elements with |train| < |infer|; ``ulp_format``: None where the values have no ULP."""

    def __init__(self, formats: tuple[str, str], ulp_format: str | None) -> None:
        self._formats, self.ulp_format = formats, ulp_format
        self.smaller = self.larger = 0
        self.farthest = 0
        self.histogram = Histogram()

    def add(self, train: Array, infer: Array, left: Array, right: Array, picked: slice | Array | None) -> None:
        """Count raw elements whose magnitudes stand in the order of ``left`` and ``right``; ``picked``: those of the sample."""
        smaller, larger = left < right, left > right
        self.smaller += int(np.count_nonzero(smaller))
        self.larger += int(np.count_nonzero(larger))
        if self.ulp_format is None:
            return
        both = [ulps.to_format(raw, dtype, self.ulp_format) for raw, dtype in zip((train, infer), self._formats, strict=True)]
        if both[0] is None or both[1] is None:
            self.ulp_format = None
            return
        apart, crossing = ulps.distance(both[0], both[1], self.ulp_format)
        self.farthest = max(self.farthest, int(apart.max()))
        if picked is not None:
            self.histogram.add(apart[picked], smaller[picked], larger[picked], None if crossing is None else crossing[picked])
