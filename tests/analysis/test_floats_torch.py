"""Number formats against torch: what it reads from each code, and what its casts round to."""

import numpy as np
import pytest
import torch
from dump_analysis import floats
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

many = settings(max_examples=200, deadline=None, derandomize=True)
SMALL = [name for name in floats.FORMATS if name.startswith("float8") or name in ("float16", "bfloat16")]
SIGNED = {1: "i1", 2: "<i2", 4: "<i4", 8: "<i8"}


def tensor_of(raw: "np.ndarray[tuple[int], np.dtype[np.unsignedinteger]]", dtype: str) -> torch.Tensor:
    """A torch tensor with these bits."""
    return torch.from_numpy(raw.view(SIGNED[raw.itemsize]).copy()).view(getattr(torch, dtype))


def bits_of(tensor: torch.Tensor) -> "np.ndarray[tuple[int], np.dtype[np.unsignedinteger]]":
    """The bits of a torch tensor."""
    width = tensor.element_size()
    return tensor.contiguous().view({1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}[width]).numpy().view(f"u{width}")


def same_numbers(mine: "np.ndarray[tuple[int], np.dtype[np.float64]]", torchs: "np.ndarray[tuple[int], np.dtype[np.float64]]") -> None:
    """Equal values, NaN at the same places, zeros of the same sign."""
    np.testing.assert_array_equal(mine, torchs)
    number = ~np.isnan(torchs)
    np.testing.assert_array_equal(np.signbit(mine[number]), np.signbit(torchs[number]))


@pytest.mark.parametrize("dtype", SMALL)
def test_every_code_is_read_as_torch_reads_it(dtype: str) -> None:
    raw = np.arange(1 << (8 * floats.FORMATS[dtype].raw.itemsize)).astype(floats.FORMATS[dtype].raw)
    with np.errstate(invalid="ignore"):
        mine = floats.values(raw, dtype).astype(np.float64)
    same_numbers(mine, tensor_of(raw, dtype).to(torch.float64).numpy())
    found = floats.nonfinite(raw, dtype)
    assert found is not None
    np.testing.assert_array_equal(found, ~torch.isfinite(tensor_of(raw, dtype).to(torch.float64)).numpy())


@pytest.mark.parametrize("before", ["float16", "bfloat16"])
@pytest.mark.parametrize("after", ["float16", "bfloat16", "float32", "float64"])
def test_every_16_bit_code_is_cast_as_torch_casts_it(before: str, after: str) -> None:
    """Catches a cast between the two that goes wrong at overflow, subnormals or ties."""
    raw = np.arange(1 << 16).astype("<u2")
    with np.errstate(all="ignore"):
        mine = floats.values(floats.rounded(floats.values(raw, before), after), after).astype(np.float64)
    same_numbers(mine, tensor_of(raw, before).to(getattr(torch, after)).to(torch.float64).numpy())


@pytest.mark.parametrize("after", ["float16", "bfloat16", "float32"])
def test_ties_and_their_neighbours_round_as_in_torch(after: str) -> None:
    """Every tie between two codes of a 16-bit format and the float32 numbers on both sides of it; for float32, random bits."""
    raw = np.arange(1 << 16).astype("<u2")
    raw = raw[np.isfinite(tensor_of(raw, after).to(torch.float64).numpy())] if after != "float32" else raw
    codes = tensor_of(raw, after if after != "float32" else "bfloat16").to(torch.float64).numpy()
    after_next = tensor_of(raw + np.uint16(1), after if after != "float32" else "bfloat16").to(torch.float64).numpy()
    with np.errstate(all="ignore"):
        ties = ((codes + after_next) / 2).astype(np.float32)
        numbers = np.concatenate([ties, np.nextafter(ties, np.float32(np.inf)), np.nextafter(ties, np.float32(-np.inf))])
        mine = floats.values(floats.rounded(numbers, after), after).astype(np.float64)
    same_numbers(mine, torch.from_numpy(numbers).to(getattr(torch, after)).to(torch.float64).numpy())


@pytest.mark.parametrize("before", ["<f4", "<f8"])
@pytest.mark.parametrize("after", ["float16", "bfloat16", "float32", "float64", "bool"])
def test_random_numbers_are_cast_as_in_torch(before: str, after: str) -> None:
    """float64 goes through float32 to 16 bits, so that it rounds twice: catches a single rounding too."""

    @many
    @given(hnp.arrays(before, st.integers(1, 8), elements=st.floats(width=8 * np.dtype(before).itemsize)))
    def judge(numbers: "np.ndarray[tuple[int], np.dtype[np.floating]]") -> None:
        with np.errstate(all="ignore"):
            mine = floats.values(floats.rounded(numbers, after), after).astype(np.float64)
        same_numbers(mine, torch.from_numpy(numbers).to(getattr(torch, after)).to(torch.float64).numpy())

    judge()


def test_float64_is_rounded_twice_on_its_way_to_16_bits() -> None:
    """Just above a tie: float32 makes it a tie, and that goes to even. Truth: torch on the same numbers."""
    for after, tie in (("bfloat16", 1 + 2.0**-8), ("float16", 1 + 2.0**-11)):
        number = np.array([tie + 2.0**-30, -tie - 2.0**-40, tie + 2.0**-20])
        mine = floats.rounded(number, after)
        np.testing.assert_array_equal(mine, bits_of(torch.from_numpy(number).to(getattr(torch, after))))
        assert floats.values(mine, after)[0] == 1.0


INTEGERS = ["int8", "int16", "int32", "int64", "uint8", "bool"]


@pytest.mark.parametrize("before", INTEGERS)
@pytest.mark.parametrize("after", [*INTEGERS, "float16", "bfloat16", "float32", "float64"])
def test_integers_are_cast_as_in_torch(before: str, after: str) -> None:
    """Wrap-around between widths, rounding of large integers to floats, through float32 to 16 bits."""
    numbers = integers(before)
    theirs = torch.from_numpy(numbers).to(getattr(torch, before)).to(getattr(torch, after))
    with np.errstate(over="ignore"):
        mine = floats.values(floats.rounded(floats.values(numbers, before), after), after)
    np.testing.assert_array_equal(mine.astype(np.float64), theirs.to(torch.float64).numpy())


def integers(dtype: str) -> "np.ndarray[tuple[int], np.dtype[np.integer]]":
    """Small numbers, powers of two and their neighbours, and random numbers of every length in bits. Casts know no neighbours."""
    raw = np.dtype(floats.FORMATS[dtype].raw)
    if dtype == "bool":
        return np.array([0, 1, 1, 0], raw)
    ends, draw = np.iinfo(raw), np.random.default_rng(raw.itemsize)
    near = [sign * (1 << power) + step for power in range(64) for sign in (1, -1) for step in (-1, 0, 1)]
    short = draw.integers(ends.min, ends.max, 20_000, raw, endpoint=True) >> draw.integers(0, 8 * raw.itemsize, 20_000, raw)
    within = [number for number in [*range(-300, 300), *near] if ends.min <= number <= ends.max]
    return np.concatenate([np.array(within, raw), short])


@pytest.mark.parametrize("after", ["int8", "int16", "int32", "int64"])
def test_floats_are_cut_to_integers_as_in_torch(after: str) -> None:
    """Numbers that the integer holds (beyond them neither numpy nor torch promises anything)."""

    @many
    @given(hnp.arrays("<f4", st.integers(1, 8), elements=st.floats(-127, 127, width=32)))
    def judge(numbers: "np.ndarray[tuple[int], np.dtype[np.float32]]") -> None:
        theirs = torch.from_numpy(numbers).to(getattr(torch, after)).numpy()
        np.testing.assert_array_equal(floats.rounded(numbers, after), theirs)

    judge()
