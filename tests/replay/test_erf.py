"""The error function of arrays against math's."""

import math

import numpy as np
from dump_analysis.replay.formulas.erf import erf
from hypothesis import given, settings
from hypothesis import strategies as st


@given(st.lists(st.floats(allow_nan=False) | st.floats(-7.0, 7.0), min_size=1, max_size=50))
@settings(max_examples=300, deadline=None)
def test_any_number(numbers: list[float]) -> None:
    """Would catch a wrong node, end or sign."""
    np.testing.assert_allclose(erf(np.array(numbers)), [math.erf(number) for number in numbers], rtol=5e-16, atol=2.3e-16)


def test_between_all_nodes() -> None:
    """Would catch a term that is missing: the middle between two nodes and its neighbours are farthest from both."""
    middles = np.arange(-6 * 128, 6 * 128) / 128
    numbers = np.concatenate([middles, np.nextafter(middles, 9.0), np.nextafter(middles, -9.0), np.linspace(-7, 7, 5001)])
    np.testing.assert_allclose(erf(numbers), [math.erf(number) for number in numbers], rtol=5e-16, atol=2.3e-16)


def test_small_numbers_keep_their_digits() -> None:
    """Would catch an error that is small beside 1 only."""
    numbers = 10.0 ** np.linspace(-300, -1, 500)
    np.testing.assert_allclose(erf(numbers), [math.erf(number) for number in numbers], rtol=5e-16)


def test_what_is_not_finite() -> None:
    """Would catch an index that is made of it."""
    assert erf(np.array([np.inf, -np.inf])).tolist() == [1.0, -1.0]
    assert np.isnan(erf(np.array([np.nan]))).all()
