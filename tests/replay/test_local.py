"""What a module adds by itself, against the same difference written out in float64."""

import numpy as np
import pytest
from dump_analysis.floats import Array
from dump_analysis.replay.emulate import to_format
from dump_analysis.replay.local import local_of
from dump_analysis.replay.one_side import Replayed, replay
from works import work

TOKENS, WIDTH, ROWS = 40, 64, 48


def normal(seed: int, *shape: int) -> Array:
    return to_format(np.random.default_rng(seed).standard_normal(shape), "bfloat16")


WEIGHT = normal(1, ROWS, WIDTH)


def product(x: Array, weight: Array = WEIGHT) -> Array:
    return to_format(x @ weight.T, "bfloat16")


def side(x: Array, y: Array, weight: Array = WEIGHT) -> Replayed:
    return replay(work(("linear",), y, (x,), {"weight": weight}), {})


def length(values: Array) -> float:
    return float(np.sqrt((values**2).sum()))


@pytest.mark.parametrize("known", ["train", "infer"])
def test_what_is_added_and_what_came_in(known: str) -> None:
    """One side computes rightly, the other half as much in three columns; their inputs differ in one token."""
    x = normal(2, TOKENS, WIDTH)
    moved = x.copy()
    moved[7] = normal(3, WIDTH)
    right, wrong = product(x), product(moved)
    wrong[:, [4, 9, 11]] *= 0.5
    one, two = side(x, right), side(moved, wrong)
    assert (one.explained, two.explained) == (True, False)
    found = local_of(one, two) if known == "train" else local_of(two, one)
    assert found is not None
    train = right if known == "train" else wrong
    apart = product(moved) - wrong
    assert found.rel_l2 == pytest.approx(length(apart) / length(train), rel=1e-4)
    assert found.propagated == pytest.approx(length(product(moved) - right) / length(train), rel=1e-4)
    assert (found.unequal, found.of) == (np.count_nonzero(apart), apart.size)
    assert (found.smaller, found.larger) == ((0, found.unequal) if known == "train" else (found.unequal, 0))


def test_nothing_is_said_where_no_way_of_computing_is_known() -> None:
    x = normal(2, TOKENS, WIDTH)
    off = side(x, product(x) * 0.5)
    assert local_of(off, off) is None


@pytest.mark.parametrize("padded", ["columns", "inputs"])
def test_nothing_is_said_of_sides_of_other_widths(padded: str) -> None:
    """Columns that one side pads, as engines do: the other's weights do not run on what it was handed, nor make what it made."""
    x, shape = normal(2, TOKENS, WIDTH), (16, WIDTH) if padded == "columns" else (ROWS, 16)
    weight = np.concatenate([WEIGHT, np.zeros(shape)], axis=0 if padded == "columns" else 1)
    wide = np.concatenate([x, np.zeros((TOKENS, 16))], axis=1) if padded == "inputs" else x
    one, two = side(x, product(x)), side(wide, product(wide, weight), weight)
    assert one.explained
    assert two.explained
    assert local_of(one, two) is None
    assert local_of(two, one) is None
