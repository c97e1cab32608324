"""The kinds of differing weights on every Python that the collector runs on: they start, and tell what is plain."""

from __future__ import annotations

import numpy as np
from msprobe_files.weight_kinds import difference
from msprobe_files.weight_walk import Weight


def weight(values: np.ndarray) -> Weight:
    return Weight("float32", values.shape[0], values.shape[1], lambda start, stop: values[start:stop])


def test_a_factor_rows_in_another_order_and_equal_weights_are_told() -> None:
    values = np.random.default_rng(0).standard_normal((32, 16)).astype(np.float32).astype(np.float64)
    scaled = difference(weight(values), weight((values * np.float32(1.5)).astype(np.float32).astype(np.float64)))
    swapped = difference(weight(values), weight(values[::-1].copy()))
    assert scaled is not None
    assert scaled.kind == "scaled"
    assert swapped is not None
    assert swapped.kind == "swapped"
    assert difference(weight(values), weight(values.copy())) is None
