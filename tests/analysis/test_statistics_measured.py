"""Statistics of tensors that one side alone saved: measured, as torch would have stated them."""

import zlib
from typing import Any

import numpy as np
import pytest
from dump_analysis import stated_ends

NAN = float("nan")


class Values:
    """Float32 values as a stream."""

    dtype, pitch, addends = "float32", 1, ()

    def __init__(self, values: "np.ndarray[Any, np.dtype[np.float32]]") -> None:
        self.raw, self.shape = values.view("<u4"), values.shape

    def read(self, start: int, stop: int) -> "np.ndarray[Any, np.dtype[np.uint32]]":
        return self.raw[start:stop]


@pytest.mark.parametrize("at", [0, 40_000, 99_999])
def test_one_nan_makes_all_statistics_nan(at: int) -> None:
    """Extremes that skip a NaN in any but the first block look finite, as torch's never do."""
    values = np.random.default_rng(0).standard_normal(100_000).astype("<f4")
    clean = stated_ends.measured(Values(values))
    assert (clean.largest, clean.smallest) == (float(values.max()), float(values.min()))
    assert clean.digest == f"{zlib.crc32(values.tobytes()):08x}"
    values[at] = NAN
    assert np.isnan([number for number in stated_ends.measured(Values(values)).numbers if number is not None]).tolist() == [True] * 4
