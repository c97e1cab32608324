"""The kind of difference of two weights is how the difference was made, on either side."""

from collections.abc import Callable
from typing import Any

import dumping
import numpy as np
import pytest
import weights_made as made
from dump_analysis import floats
from hypothesis import given, settings
from hypothesis import strategies as st
from msprobe_files.weight_kinds import Difference, difference
from msprobe_files.weight_walk import Weight
from weights_made import Array, Made

SEEDS, ROWS, COLUMNS = st.integers(0, 1 << 30), st.sampled_from([24, 64, 130]), st.sampled_from([64, 96, 160])
KINDS: dict[str, tuple[str, Callable[[int, int, int], Made]]] = {
    "rows in another order": ("swapped", made.other_rows),
    "columns in another order": ("swapped", made.other_columns),
    "neighbours": ("one_ulp", made.one_step),
    "all one step larger": ("one_ulp", made.all_one_step_larger),
    "one factor": ("scaled", made.times_one_factor),
    "one row times a factor": ("scaled", made.one_row_times_a_factor),
    "a factor a row": ("scaled", made.rows_times_factors),
    "a factor a column": ("scaled", made.columns_times_factors),
    "int8": ("quantised", made.int8_rows),
    "int4": ("quantised", made.int4_groups),
    "float8 times one scale": ("quantised", made.float8_whole),
    "float8 times a scale a block": ("quantised", made.float8_blocks),
    "float8 times powers of two": ("quantised", made.float8_powers_of_two),
    "half of the rows": ("partial", made.half_a_step),
    "all rows but two": ("partial", made.all_but_two_rows),
    "one element": ("partial", made.one_element),
    "large step of one size": ("small_update", made.step(1e-2, signs=True)),
    "step of one size": ("small_update", made.step(1e-3, signs=True)),
    "normal step": ("small_update", made.step(1e-3, signs=False)),
    "step below most spacings": ("small_update", made.step(3e-5, signs=False)),
    "another weight": ("different", made.another),
    "much noise": ("different", made.noise),
}


def of(train: Array, infer: Array, dtypes: tuple[str, str] = ("bfloat16", "bfloat16")) -> Difference | None:
    weights = [Weight(dtype, *x.shape, lambda start, stop, x=x: x[start:stop]) for x, dtype in zip((train, infer), dtypes, strict=True)]
    return difference(*weights)


@pytest.mark.parametrize("turned", [False, True], ids=["infer", "train"])
@pytest.mark.parametrize("name", KINDS)
def test_the_kind_is_how_the_difference_was_made(name: str, turned: bool) -> None:
    """A kind taken for another, or seen on one side alone; counts and rows against numpy's own comparison."""
    kind, make = KINDS[name]

    @settings(max_examples=6, deadline=None, derandomize=True, database=None)
    @given(SEEDS, ROWS, COLUMNS)
    def holds(seed: int, rows: int, columns: int) -> None:
        one, other = make(seed, rows, columns)
        train, infer = (other, one) if turned else (one, other)
        found = of(train, infer)
        assert found is not None
        assert found.kind == kind
        unlike = train != infer
        assert (found.unequal, found.of) == (unlike.sum(), unlike.size)
        assert [row for start, stop in found.rows for row in range(start, stop)] == np.flatnonzero(unlike.any(axis=1)).tolist()
        if kind == "quantised":
            assert found.facts["side"] == ("train" if turned else "infer")

    holds()


@pytest.mark.parametrize("make", [made.float8_blocks, made.int8_rows, made.int4_groups, made.float8_whole])
def test_a_wide_weight_is_quantised_too(make: Callable[[int, int, int], Made]) -> None:
    """A block of 128 rows of a model's width is more than is read at once: its scale comes from all of it."""
    for rows in (130, 256):
        found = of(*make(rows, rows, 4096))
        assert found is not None
        assert found.kind == "quantised"


@pytest.mark.parametrize("turned", [False, True], ids=["infer", "train"])
@pytest.mark.parametrize(
    ("stored", "name", "rounding", "cut"),
    [
        ("bfloat16", "bfloat16", made.bfloat16, False),
        ("bfloat16", "bfloat16", made.cut_off, True),
        ("float32", "bfloat16", made.bfloat16, False),
        ("float16", "float16", made.float16, False),
        ("float32", "float8_e4m3fn", made.float8, False),
        ("bfloat16", "float8_e5m2", lambda x: made.float8(x, "float8_e5m2"), False),
    ],
)
def test_a_rounded_copy_is_told_with_its_format(
    stored: str, name: str, rounding: Callable[[Array], Array], cut: bool, turned: bool
) -> None:
    """Another format, the other side, or cut off for rounded; also where the rounded numbers are stored in a finer format."""
    for seed in range(4):
        masters = made.fine(seed, 24, 64)
        pair, dtypes = (masters, rounding(masters)), ("float32", stored)
        found = of(*(pair[::-1] if turned else pair), dtypes[::-1] if turned else dtypes)
        assert found is not None
        assert (found.kind, found.facts) == (
            "rounded", {"side": "train" if turned else "infer", "format": name, "towards_zero": cut},
        )  # fmt: skip


def test_small_numbers_through_float16_are_rounded() -> None:
    """bfloat16 holds smaller numbers than float16: there float16 is the coarser one."""
    small = made.bfloat16(made.fine(3, 24, 64) * 1e-5)
    found = of(small, made.float16(small))
    assert found is not None
    assert (found.kind, found.facts["format"]) == ("rounded", "float16")


@pytest.mark.parametrize("turned", [False, True], ids=["infer", "train"])
def test_a_gain_with_the_one_added_is_told(turned: bool) -> None:
    """Gemma's and Megatron's gains are stored less one: in bfloat16 more digits are left of them than of 1 + w."""
    less = made.bfloat16(made.fine(1, 1, 64))
    pair = less, made.bfloat16(less + 1.0)
    found = of(*(pair[::-1] if turned else pair))
    assert found is not None
    assert (found.kind, found.facts) == ("one_added", {"side": "train" if turned else "infer"})


def test_equal_weights_have_no_kind() -> None:
    """Neither has a zero of the other sign, nor what is no number on both sides."""
    train = made.weight(0, 24, 64)
    train[0, :2] = 0.0, np.nan
    infer = train.copy()
    infer[0, 0] = -0.0
    assert of(train, infer) is None


def test_a_weight_of_zeros_says_so() -> None:
    """As a weight that was never loaded; it must not be called train times 0."""
    found = of(made.weight(0, 24, 64), np.zeros((24, 64)))
    assert found is not None
    assert (found.kind, found.facts) == ("different", {"zeros": "infer"})


def test_numbers_that_are_not_finite_are_counted() -> None:
    """No warning, no figure that JSON cannot hold, and no other kind from what is left."""
    train = made.weight(0, 24, 64)
    infer = train.copy()
    infer[3, 4], infer[5, 6] = np.inf, np.nan
    found = of(train, infer)
    assert found is not None
    assert (found.kind, found.facts, found.unequal, found.rows) == ("different", {"train": 0, "infer": 2}, 2, ((3, 4), (5, 6)))


def test_any_bits_whatever_have_a_kind() -> None:
    """Numbers of all magnitudes, of both signs, and none at all: an overflow or a division by zero would be a warning, here an error."""

    @settings(max_examples=60, deadline=None, derandomize=True, database=None)
    @given(st.sampled_from(["bfloat16", "float16", "float32"]), SEEDS, st.booleans())
    def holds(dtype: str, seed: int, one_bit: bool) -> None:
        random = np.random.default_rng(seed)
        raw = dumping.DTYPES[dtype][0]
        bits = [random.integers(0, 1 << 8 * np.dtype(raw).itemsize, (8, 16), dtype=np.uint64).astype(raw) for _ in range(2)]
        if one_bit:
            bits[1] = bits[0] ^ (random.random((8, 16)) < 0.1).astype(raw)
        with np.errstate(invalid="ignore"):  # numpy warns of a NaN that signals
            train, infer = (floats.values(one, dtype).astype(np.float64) for one in bits)
        found = of(train, infer, (dtype, dtype))
        same = np.array_equal(train, infer, equal_nan=True)
        assert (found is None) == same
        if found is not None:
            assert all(np.isfinite(value) for value in found.facts.values() if isinstance(value, float))

    holds()


@pytest.mark.parametrize("factor", [1.05, 0.5, -1.0, 1.02])
def test_a_factor_lies_in_its_interval(factor: float) -> None:
    train = made.weight(5, 64, 96)
    found = of(train, made.bfloat16(train * factor))
    assert found is not None
    low, high = found.facts["low"], found.facts["high"]
    assert low <= factor <= high
    assert high - low < 0.01


def test_factors_of_rows_and_columns_are_told_apart() -> None:
    for make, by in ((made.rows_times_factors, "row"), (made.columns_times_factors, "column"), (made.times_one_factor, "whole")):
        found = of(*make(7, 64, 96))
        assert found is not None
        assert found.facts["by"] == by


def test_zero_rows_are_no_rows_that_were_left_out() -> None:
    """Padding of an embedding never moves, and is no part that was not written."""
    train, infer = made.step(1e-3, signs=True)(0, 64, 64)
    train[60:], infer[60:] = 0.0, 0.0
    found = of(train, infer)
    assert found is not None
    assert found.kind == "small_update"


def test_scattered_damage_is_no_step() -> None:
    """One element in a hundred off by 5 %: a step would have moved the smallest numbers too."""
    train, hit = made.weight(0, 64, 96), np.random.default_rng(1).random((64, 96)) < 0.01
    found = of(train, np.where(hit, made.bfloat16(train * 1.05), train))
    assert found is not None
    assert found.kind in ("different", "partial")
    assert found.within != "small_update"


@pytest.mark.parametrize("make", [made.half_a_step, made.int8_rows, made.rows_times_factors, made.other_rows])
def test_a_large_weight_is_walked_in_blocks(make: Callable[[int, int, int], Made], monkeypatch: pytest.MonkeyPatch) -> None:
    """What is found must not depend on the size of blocks, and no more rows are read at once than a block holds."""
    train, infer = make(0, 700, 96)
    whole = of(train, infer)
    monkeypatch.setattr("msprobe_files.weight_walk._BLOCK", 96 * 256)
    asked: list[int] = []

    def reader(x: Array) -> Callable[[int, int], Any]:
        def read(start: int, stop: int) -> Array:
            asked.append(stop - start)
            return x[start:stop]

        return read

    by_blocks = difference(*(Weight("bfloat16", *x.shape, reader(x)) for x in (train, infer)))
    assert max(asked) == 256
    assert whole is not None
    assert by_blocks is not None
    assert by_blocks[:-1] == whole[:-1]
    assert np.array_equal(by_blocks.keys, whole.keys)
