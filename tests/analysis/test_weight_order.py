"""Orders of rows: matched by content, and called by what they are, against orders made by loops."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msprobe_files.weight_order import Order, grouping_of, order_of, permutation, runs_of


def interleaved(count: int, parts: int, block: int, within: int) -> list[int]:
    """Of each stretch: a block of every part in turn."""
    size = within // parts
    return [
        start + part * size + turn * block + at
        for start in range(0, count, within)
        for turn in range(size // block)
        for part in range(parts)
        for at in range(block)
    ]


@pytest.mark.parametrize(
    ("places", "expected"),
    [
        ([4, 5, 6, 7, 0, 1, 2, 3], Order("halves", 4)),
        ([5, 4, 3, 2, 1, 0], Order("reversed", 1)),
        ([4, 5, 2, 3, 0, 1], Order("blocks", 2)),
        ([0, 3, 2, 1], Order("blocks", 1)),
        ([0, 1, 2, 3, 8, 9, 10, 11, 4, 5, 6, 7], Order("blocks", 4)),
        (interleaved(64, 2, 1, 16), Order("interleaved", 1, 2, 16)),
        (interleaved(64, 2, 1, 64), Order("interleaved", 1, 2, 64)),
        (interleaved(48, 3, 4, 24), Order("interleaved", 4, 3, 24)),
        (np.argsort(interleaved(64, 2, 1, 16)).tolist(), Order("deinterleaved", 1, 2, 16)),
    ],
)
def test_orders_have_names(places: list[int], expected: Order) -> None:
    """Rotary pairs side by side or in halves, heads in turn, gate and up exchanged."""
    found = order_of(np.array(places))
    back = {"interleaved": "deinterleaved", "deinterleaved": "interleaved"}
    # Backwards an order of p parts of n blocks is one of n parts of p blocks: both names are right.
    same = found.kind == back.get(expected.kind) and found.within == expected.within and found.block == expected.block
    assert found == expected or (same and found.parts == expected.within // expected.block // expected.parts)


def test_rows_are_matched_by_content() -> None:
    """Each place once, equal rows in place where they can be."""

    @settings(max_examples=100, deadline=None, derandomize=True, database=None)
    @given(st.lists(st.integers(0, 9), min_size=1, max_size=12), st.randoms(use_true_random=False))
    def holds(keys: list[int], random: "np.random.Generator") -> None:
        mine = np.array(keys, np.uint64)
        theirs = mine.copy()
        random.shuffle(theirs)
        places = permutation(mine, theirs)
        assert sorted(places) == list(range(len(keys)))
        assert np.array_equal(mine[places], theirs)
        assert all(place == at for at, place in enumerate(places) if mine[at] == theirs[at])

    holds()
    assert permutation(np.array([1, 2], np.uint64), np.array([1, 3], np.uint64)) is None
    assert permutation(np.array([1, 1], np.uint64), np.array([1], np.uint64)) is None


@pytest.mark.parametrize(("heads", "groups", "width"), [(4, 2, 16), (8, 2, 4), (6, 3, 8)])
def test_a_fused_matrix_by_group_is_recognised(heads: int, groups: int, width: int) -> None:
    """Megatron's order: of each group its queries, then its key, then its value; written head by head here."""
    queries = [f"q{head}" for head in range(heads)]
    plain = [(name, at) for name in [*queries, *(f"k{group}" for group in range(groups)), *(f"v{group}" for group in range(groups))]
             for at in range(width)]  # fmt: skip
    each = heads // groups
    fused = [(name, at) for group in range(groups) for name in [*queries[group * each : (group + 1) * each], f"k{group}", f"v{group}"]
             for at in range(width)]  # fmt: skip
    sizes = [heads * width, groups * width, groups * width]
    order = np.array([plain.index(row) for row in fused])
    assert grouping_of(order, sizes) == (True, groups)
    assert grouping_of(np.argsort(order), sizes) == (False, groups)
    assert grouping_of(order[::-1], sizes) is None


def test_stretches_of_rows() -> None:
    assert runs_of([0, 1, 2, 5, 7, 8]) == ((0, 3), (5, 6), (7, 9))
    assert runs_of([]) == ()
