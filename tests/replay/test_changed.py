"""What differs between a record and what it should be, and how, on numbers whose change is known."""

from typing import Any

import numpy as np
import pytest
from dump_analysis import floats
from dump_analysis.replay import emulate
from dump_analysis.replay.changed import Change, change_of, difference, factor
from dump_analysis.replay.recorded import Matrix
from hypothesis import given, settings
from hypothesis import strategies as st

Numbers = Any
TOKENS, COLUMNS = 24, 64
FORMATS = ["bfloat16", "float16", "float32"]


class Held:
    """A stream of numbers in memory."""

    pitch = 1
    addends = ()

    def __init__(self, numbers: Numbers, dtype: str) -> None:
        self.dtype, self.shape = dtype, numbers.shape
        self._raw = floats.rounded(numbers.astype(np.float32 if dtype != "float64" else np.float64).reshape(-1), dtype)

    def read(self, start: int, stop: int) -> Numbers:
        return self._raw[start:stop]


def matrix(numbers: Numbers, dtype: str) -> Matrix:
    return Matrix("made", dtype, *numbers.shape, Held(numbers, dtype))


def values(seed: int, dtype: str) -> Numbers:
    """Normal numbers on the format's grid."""
    return emulate.to_format(np.random.default_rng(seed).standard_normal((TOKENS, COLUMNS)), dtype)


def changed(recorded: Numbers, wanted: Numbers, dtype: str, *addends: Numbers) -> Change | None:
    made = matrix(recorded, dtype)
    expected = lambda start, stop: [np.full((stop - start, COLUMNS), 7.0), wanted[start:stop]]  # noqa: E731
    found = difference(made, expected)
    truth = recorded != wanted
    assert found.unexplained == truth.sum()
    assert (found.tokens.tolist(), found.columns.tolist()) == (truth.any(1).tolist(), truth.any(0).tolist())
    return change_of(made, expected, found, [matrix(addend, dtype) for addend in addends]) if found.unexplained else None


@pytest.mark.parametrize("dtype", FORMATS)
@settings(max_examples=25, deadline=None)
@given(st.integers(0, 1000), st.sets(st.integers(0, TOKENS - 1), min_size=1, max_size=TOKENS // 4), st.floats(1.01, 3))
def test_tokens_times_a_number(dtype: str, seed: int, tokens: set[int], gain: float) -> None:
    """Other tokens, another factor, or none: whichever tokens, whatever the format."""
    wanted = values(seed, dtype)
    recorded = wanted.copy()
    recorded[sorted(tokens)] = emulate.to_format(wanted[sorted(tokens)] * gain, dtype)
    found = changed(recorded, wanted, dtype)
    assert found is not None
    assert (found.tokens, found.of_tokens, found.of_columns) == (tuple(sorted(tokens)), TOKENS, COLUMNS)
    assert found.how == "gain"
    assert found.gain == pytest.approx(gain, rel=2e-3)


@pytest.mark.parametrize("dtype", FORMATS)
@settings(max_examples=25, deadline=None)
@given(st.integers(0, 1000), st.sets(st.integers(0, COLUMNS - 1), min_size=1, max_size=COLUMNS // 4), st.floats(1.02, 3))
def test_columns_times_a_number(dtype: str, seed: int, columns: set[int], gain: float) -> None:
    wanted = values(seed, dtype)
    recorded = wanted.copy()
    recorded[:, sorted(columns)] = emulate.to_format(wanted[:, sorted(columns)] * gain, dtype)
    found = changed(recorded, wanted, dtype)
    assert found is not None
    assert (found.columns, found.how) == (tuple(sorted(columns)), "gain")
    assert found.gain == pytest.approx(gain, rel=4e-3)


def test_each_token_by_its_own_number_has_no_one_gain() -> None:
    wanted = values(1, "bfloat16")
    recorded = wanted.copy()
    recorded[3], recorded[5] = 2 * wanted[3], 0.5 * wanted[5]
    found = changed(recorded, wanted, "bfloat16")
    assert found is not None
    assert (found.tokens, found.how, found.gain) == ((3, 5), "gain", None)


def test_a_part_of_a_token_times_a_number() -> None:
    """One head of one token."""
    wanted = values(2, "bfloat16")
    recorded = wanted.copy()
    recorded[7, 16:32] = 2 * wanted[7, 16:32]
    found = changed(recorded, wanted, "bfloat16")
    assert found is not None
    assert (found.tokens, found.columns, found.how, found.gain) == ((7,), tuple(range(16, 32)), "gain", 2.0)


def test_a_token_that_is_lost_is_times_nought() -> None:
    wanted = values(3, "bfloat16")
    recorded = wanted.copy()
    recorded[0] = 0
    found = changed(recorded, wanted, "bfloat16")
    assert found is not None
    assert (found.tokens, found.how, found.gain) == ((0,), "gain", 0.0)


def test_rows_of_other_tokens() -> None:
    wanted = values(4, "bfloat16")
    recorded = wanted.copy()
    recorded[[2, 9]] = wanted[[9, 2]]
    found = changed(recorded, wanted, "bfloat16")
    assert found is not None
    assert (found.tokens, found.how) == ((2, 9), "moved")


def test_an_addend_that_is_lost_in_a_token() -> None:
    one, two = values(5, "bfloat16"), values(6, "bfloat16")
    wanted = emulate.to_format(one + two, "bfloat16")
    recorded = wanted.copy()
    recorded[11] = two[11]
    found = changed(recorded, wanted, "bfloat16", one, two)
    assert found is not None
    assert (found.tokens, found.how) == ((11,), "lost")


def test_other_values_are_other() -> None:
    wanted, other = values(7, "bfloat16"), values(8, "bfloat16")
    recorded = wanted.copy()
    recorded[1] = other[1]
    found = changed(recorded, wanted, "bfloat16")
    assert found is not None
    assert (found.how, found.gain) == ("other", None)


def test_few_elements_one_rounding_apart_are_called_rounding() -> None:
    """Another way to round is no alteration, however few tokens it touches."""
    wanted = values(9, "bfloat16")
    recorded = wanted.copy()
    recorded[4, :3] += emulate.ulp(wanted[4, :3], "bfloat16")
    found = changed(recorded, wanted, "bfloat16")
    assert found is not None
    assert found.how == "rounding"


def test_what_is_changed_all_over_is_no_change_of_few() -> None:
    """A rotation leaves the first token and most columns alone, and turns the others."""
    wanted = values(10, "bfloat16")
    turned = wanted.copy()
    turned[1:, :32] = values(11, "bfloat16")[1:, :32]
    assert changed(turned, wanted, "bfloat16") is None


def test_columns_that_are_turned_are_no_gain() -> None:
    """A rotation of a quarter of each head's columns."""
    wanted = values(12, "bfloat16")
    angle = np.arange(TOKENS)[:, None]
    turned = wanted.copy()
    turned[:, :8] = emulate.to_format(wanted[:, :8] * np.cos(angle) - wanted[:, 8:16] * np.sin(angle), "bfloat16")
    found = changed(turned, wanted, "bfloat16")
    assert found is not None
    assert found.how == "other"


def test_columns_of_few_tokens_prove_no_factor() -> None:
    """Whatever is made of three numbers, a factor is near."""
    wanted = values(15, "bfloat16")[:3]
    recorded = wanted.copy()
    recorded[:, 5] = -wanted[:, 5]
    found = difference(matrix(recorded, "bfloat16"), lambda start, stop: [wanted[start:stop]])
    change = change_of(matrix(recorded, "bfloat16"), lambda start, stop: [wanted[start:stop]], found, [])
    assert change is not None
    assert change.how == "other"


def test_what_is_not_finite_is_compared_and_has_no_factor() -> None:
    """Equal infinities and NaN are equal; a token that overflowed is changed otherwise."""
    wanted = values(16, "bfloat16")
    wanted[0, :3] = np.inf, -np.inf, np.nan
    recorded = wanted.copy()
    recorded[2] = np.inf
    found = difference(matrix(recorded, "bfloat16"), lambda start, stop: [wanted[start:stop]])
    change = change_of(matrix(recorded, "bfloat16"), lambda start, stop: [wanted[start:stop]], found, [])
    assert change is not None
    assert (change.tokens, change.how) == ((2,), "other")


@pytest.mark.parametrize("dtype", FORMATS)
@pytest.mark.parametrize("gain", [1.02, 8.0, 0.125, -1.0])
def test_a_factor_of_everything(dtype: str, gain: float) -> None:
    wanted = values(13, dtype)
    recorded = emulate.to_format(wanted * gain, dtype)
    assert factor(matrix(recorded, dtype), matrix(wanted, dtype)) == pytest.approx(gain, rel=1e-3)
    recorded[3, 3] *= 1.5
    assert factor(matrix(recorded, dtype), matrix(wanted, dtype)) is None
    assert factor(matrix(values(14, dtype), dtype), matrix(wanted, dtype)) is None
