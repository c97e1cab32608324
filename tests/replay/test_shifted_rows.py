"""Heads whose rows are not where they should be: against logits made of the rows one by one, in float64."""

import numpy as np
import pytest
from dump_analysis.replay.emulate import to_format
from dump_analysis.replay.modules import Work
from dump_analysis.replay.one_side import replay
from dump_analysis.replay.recorded import held
from dump_analysis.replay.shifted_rows import shift_of

WORDS, HIDDEN = 300, 32


def head(rows: "np.ndarray[tuple[int], np.dtype[np.int64]]", tokens: int = 5, dtype: str = "bfloat16") -> Work:
    """Logit n is made of row ``rows[n]``."""
    lots = np.random.default_rng(11)
    x, weight = (to_format(lots.standard_normal(shape), dtype) for shape in ((tokens, HIDDEN), (WORDS, HIDDEN)))
    logits = np.array([[sum(a * b for a, b in zip(one, weight[row], strict=True)) for row in rows] for one in x])
    output, given = held("logits", dtype, to_format(logits, dtype)), held("x", dtype, x)
    operators = ("linear", "soft_capped_linear", "scaled_linear")
    return Work("head", (), operators, output, (given,), {"weight": held("weight", dtype, weight)}, "borrowed", (), "pre_call")


@pytest.mark.parametrize("tokens", [1, 5])
@pytest.mark.parametrize("by", [1, -1, 7, -64])
def test_rows_that_are_all_shifted_are_found(by: int, tokens: int) -> None:
    shift = replay(head(np.roll(np.arange(WORDS), -by), tokens), {}).shift
    assert shift is not None
    assert (shift.by, shift.share) == (by, 1.0)


def test_a_shift_of_the_rows_behind_padding_is_that_of_most() -> None:
    """The second shard of a vocabulary begins three rows late."""
    rows = np.arange(WORDS)
    rows[100:-3] += 3
    shift = shift_of(head(rows), "bfloat16")
    assert shift is not None
    assert shift.by == 3
    assert 0.6 < shift.share < 0.7


@pytest.mark.parametrize("rows", [np.arange(WORDS), np.random.default_rng(3).permutation(WORDS)], ids=["in place", "mixed"])
def test_rows_in_place_or_in_no_order_are_no_shift(rows: "np.ndarray[tuple[int], np.dtype[np.int64]]") -> None:
    assert shift_of(head(rows), "bfloat16") is None
    assert replay(head(rows), {}).shift is None
