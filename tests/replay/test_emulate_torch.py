"""Rounding and intervals against torch's casts and exact fractions; sums in many orders against their bound."""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import torch
from dump_analysis.replay.bounds import sum_of_products
from dump_analysis.replay.emulate import Emulated, bit_equal, exactly, explained, to_format, ulp
from hypothesis import given, settings
from hypothesis import strategies as st
from programs import DTYPES, ORDERS, wide

FORMATS = pytest.mark.parametrize("dtype", list(DTYPES))
NUMBERS = st.floats(width=32, allow_nan=True, allow_infinity=True)


@FORMATS
@pytest.mark.parametrize("given_as", [np.float64, np.float32])
@given(numbers=st.lists(NUMBERS, min_size=1, max_size=20))
@settings(max_examples=300, deadline=None)
def test_rounding_is_torch_s_cast(dtype: str, given_as: type[np.floating[Any]], numbers: list[float]) -> None:
    """Would catch a wrong tie, subnormal, overflow or NaN: float32 to the format is one rounding in torch, too."""
    wanted = wide(torch.tensor(numbers, dtype=torch.float32).to(DTYPES[dtype]))
    found = to_format(np.array(numbers, given_as), dtype)
    assert found.dtype == given_as
    np.testing.assert_array_equal(found, wanted)


@given(numbers=st.lists(st.floats(allow_nan=False), min_size=1, max_size=20))
@settings(max_examples=300, deadline=None)
def test_float64_to_float32_is_torch_s_cast(numbers: list[float]) -> None:
    """Would catch what float32 inputs cannot show: numbers between and beyond those of float32."""
    wanted = wide(torch.tensor(numbers, dtype=torch.float64).to(torch.float32))
    np.testing.assert_array_equal(to_format(np.array(numbers), "float32"), wanted)


@FORMATS
@given(data=st.data())
@settings(max_examples=200, deadline=None)
def test_rounded_once(dtype: str, data: st.DataObject) -> None:
    """Would catch rounding by way of float32: no number of the format is nearer, in exact fractions; numbers lie next to a tie."""
    start = data.draw(st.floats(min_value=1e-3, max_value=1e3))
    below = float(to_format(np.array(start), dtype))
    step = float(ulp(np.array(below), dtype))
    number = below + step / 2 + step * 2.0 ** -data.draw(st.integers(20, 27)) * data.draw(st.sampled_from([-1, 0, 1]))
    found = Fraction(float(to_format(np.array(number), dtype)))
    away = [abs(Fraction(below) + move * Fraction(step) - Fraction(number)) for move in (0, 1)]
    assert abs(found - Fraction(number)) == min(away)


def test_just_above_a_tie() -> None:
    """Would catch two roundings: 1 + 2^-8 + 2^-30 lies above the middle of 1 and 1 + 2^-7, which float32 would forget."""
    assert to_format(np.array([1 + 2.0**-8 + 2.0**-30, 1 + 2.0**-8]), "bfloat16").tolist() == [1 + 2.0**-7, 1.0]


@FORMATS
@given(corners=st.lists(st.integers(-64, 64), min_size=4, max_size=4))
@settings(max_examples=200, deadline=None)
def test_intervals_hold_what_is_possible(dtype: str, corners: list[int]) -> None:
    """Would catch a product or sum whose interval misses a corner: every pair of values inside stays inside, rounded or not."""
    (a, b), (c, d) = sorted(corners[:2]), sorted(corners[2:])
    left, right = (Emulated(np.array([(x + y) / 2]), np.array([x / 1.0]), np.array([y / 1.0])) for x, y in ((a, b), (c, d)))
    for one in np.linspace(a, b, 5):
        for two in np.linspace(c, d, 5):
            for interval, value in ((left.times(right), one * two), (left.plus(right), one + two)):
                assert explained(np.array([value]), interval).all()
                assert explained(to_format(np.array([value]), dtype), interval.to_format(dtype)).all()


def test_float32_is_widened_before_it_is_computed_with() -> None:
    """Would catch a rounding that no program makes: float32 loses 2^-30 beside 1, and 2^-46 in the square of 1 + 2^-23."""
    one, little = (exactly(np.array([number], np.float32)) for number in (1.0, 2.0**-30))
    for total in (one.plus(little), one.plus(np.float32(2.0**-30)), one.mapped(lambda value: value + 2.0**-30)):
        assert total.value.tolist() == total.low.tolist() == total.high.tolist() == [1 + 2.0**-30]
    assert one.widened(2.0**-30).high.tolist() == [1 + 2.0**-30]
    assert one.roundoffs(2.0**-6).low.tolist() == [1 - 2.0**-30]
    near = exactly(np.array([1 + 2.0**-23], np.float32))
    assert near.times(near).value.tolist() == [(1 + 2.0**-23) ** 2]


def test_recorded_nan_is_explained_by_nan_alone() -> None:
    """Would catch a non-finite record that passes because comparisons with NaN are false."""
    recorded = np.array([np.nan, np.nan, 1.0, np.inf])
    emulated = exactly(np.array([np.nan, 1.0, np.nan, np.inf]))
    assert explained(recorded, emulated).tolist() == bit_equal(recorded, emulated).tolist() == [True, False, False, True]


@pytest.mark.parametrize("order", list(ORDERS))
@pytest.mark.parametrize("data", ["mixed", "one_sign", "outliers", "cancelling"])
@pytest.mark.parametrize("count", [8, 64, 896])
def test_sums_of_any_order_stay_in_their_bound(count: int, data: str, order: str) -> None:
    """Would catch a bound made for one kernel: the worst of 8192 sums is inside, whatever the order and the terms."""
    left, right = _terms(count, data)
    exact = wide(left) @ wide(right).T
    error = np.abs(wide(ORDERS[order](left, right)) - exact)
    assert (error <= sum_of_products(wide(left), wide(right), exact)).all()


def _terms(count: int, data: str) -> tuple[torch.Tensor, torch.Tensor]:
    rng = np.random.default_rng(count)
    left, right = rng.standard_normal((64, count)), rng.standard_normal((128, count))
    if data == "one_sign":
        left, right = left + 3.0, right + 3.0
    if data in ("outliers", "cancelling"):
        left[:, 1] *= 300.0
    if data == "cancelling":  # two large terms of opposite sign, the first and the last, leave little of their sum
        left[:, -2], right[:, -2] = -left[:, 1], right[:, 1]
    return torch.from_numpy(left).bfloat16(), torch.from_numpy(right).bfloat16()


def test_bound_of_a_sum_is_sharp() -> None:
    """Would catch a bound that lets faults pass: at 896 terms of mixed signs it is below 1e-5 of what the sums are like."""
    left, right = (wide(x) for x in _terms(896, "mixed"))
    exact = left @ right.T
    assert np.sqrt(np.mean(sum_of_products(left, right, exact) ** 2) / np.mean(exact**2)) < 1e-5
