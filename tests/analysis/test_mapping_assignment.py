"""The assignment of rows to columns, against all permutations."""

from itertools import permutations
from typing import Any

import numpy as np
import pytest
from dump_analysis.mapping.joining.assignment import IMPOSSIBLE, assign, cheapest
from hypothesis import given
from hypothesis import strategies as st


@st.composite
def matrices(draw: st.DrawFn) -> Any:
    """Small matrices of whole or broken numbers; whole ones are often equal, so that several assignments are best."""
    rows, columns = draw(st.integers(1, 5)), draw(st.integers(1, 5))
    numbers = st.integers(-3, 3) if draw(st.booleans()) else st.floats(-10, 10, width=32)
    return np.array(draw(st.lists(st.lists(numbers, min_size=columns, max_size=columns), min_size=rows, max_size=rows)), np.float64)


def least(cost: Any) -> float:
    """The least total of all one-to-one choices that use up the shorter side."""
    tall = cost if cost.shape[0] <= cost.shape[1] else cost.T
    rows, columns = tall.shape
    return min(sum(tall[row, column] for row, column in enumerate(choice)) for choice in permutations(range(columns), rows))


@given(matrices())
def test_no_permutation_is_cheaper(cost: Any) -> None:
    """A wrong dual variable or path would leave a total above the least, or use a row or column twice."""
    pairs = cheapest(cost)
    assert len(pairs) == min(cost.shape)
    assert len({row for row, _ in pairs}) == len({column for _, column in pairs}) == len(pairs)
    assert sum(cost[pair] for pair in pairs) == pytest.approx(least(cost), abs=1e-6)


@given(matrices(), st.floats(-5, 5, width=32))
def test_a_constant_on_a_row_changes_no_choice_of_a_square(cost: Any, constant: float) -> None:
    """The total only moves by the constant; an algorithm that trusts signs would choose otherwise."""
    square = cost[: min(cost.shape), : min(cost.shape)]
    moved = square.copy()
    moved[0] += constant
    totals = [sum(matrix[pair] for pair in cheapest(matrix)) for matrix in (square, moved)]
    assert totals[1] - totals[0] == pytest.approx(constant, abs=1e-5)


def test_the_larger_matrix_of_an_execution_is_assigned_too() -> None:
    """A hidden permutation among 60 by 80 random scores: quadratic slips or an endless path would show here."""
    draw = np.random.default_rng(3)
    score = draw.uniform(-1, 1, (60, 80))
    hidden = draw.permutation(80)[:60]
    score[np.arange(60), hidden] = 3.0
    assert assign(score) == list(enumerate(hidden.tolist()))


def test_one_certain_join_outweighs_two_middling_ones() -> None:
    """With plain sums 1.6 + 1.6 would win over 3 + 0; a wrong pair for a sure one."""
    score = np.array([[3.0, 1.6], [1.6, 0.0]])
    assert assign(score) == [(0, 0), (1, 1)]


def test_what_cannot_be_joined_is_left_out() -> None:
    """A row without any partner must not get one because all rows are assigned."""
    score = np.array([[IMPOSSIBLE, IMPOSSIBLE], [2.0, IMPOSSIBLE]])
    assert assign(score) == [(1, 0)]
    assert assign(np.empty((0, 3))) == []
