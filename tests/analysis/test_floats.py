"""Number formats: what codes mean, what numbers round to, what is not finite."""

import math
from bisect import bisect_left
from fractions import Fraction

import dumping
import numpy as np
import pytest
from dump_analysis import floats
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

many = settings(max_examples=300, deadline=None, derandomize=True)


SMALL = ["float16", "bfloat16", *(name for name in dumping.DTYPES if name.startswith("float8"))]
CODES = {dtype: range(1 << (8 * floats.FORMATS[dtype].raw.itemsize)) for dtype in SMALL}


def all_codes(dtype: str) -> "np.ndarray[tuple[int], np.dtype[np.unsignedinteger]]":
    return np.arange(len(CODES[dtype]), dtype=floats.FORMATS[dtype].raw)


@pytest.mark.parametrize("dtype", SMALL)
def test_every_code_has_its_value(dtype: str) -> None:
    """Catches a wrong bias, subnormal, sign of zero, NaN or infinity of any code. Truth: the standard library's floats."""
    wanted = np.array([dumping.number_of(code, dtype) for code in CODES[dtype]])
    with np.errstate(invalid="ignore"):
        found = floats.values(all_codes(dtype), dtype).astype(np.float64)
    np.testing.assert_array_equal(found, wanted)
    number = ~np.isnan(wanted)
    np.testing.assert_array_equal(np.signbit(found)[number], np.signbit(wanted)[number])


@pytest.mark.parametrize(
    ("dtype", "code", "value"),
    [
        ("float8_e4m3fn", 0x7E, 448.0), ("float8_e4m3fn", 0x08, 2.0**-6), ("float8_e4m3fn", 0x01, 2.0**-9), ("float8_e4m3fn", 0xB8, -1.0),
        ("float8_e5m2", 0x7B, 57344.0), ("float8_e5m2", 0x7C, math.inf), ("float8_e5m2", 0x01, 2.0**-16), ("float8_e5m2", 0xFC, -math.inf),
        ("float8_e4m3fnuz", 0x7F, 240.0), ("float8_e4m3fnuz", 0x40, 1.0), ("float8_e4m3fnuz", 0x01, 2.0**-10),
        ("float8_e5m2fnuz", 0x7F, 57344.0), ("float8_e5m2fnuz", 0x40, 1.0), ("float8_e5m2fnuz", 0x01, 2.0**-17),
        ("float8_e8m0fnu", 0x00, 2.0**-127), ("float8_e8m0fnu", 0x7F, 1.0), ("float8_e8m0fnu", 0xFE, 2.0**127),
        ("bfloat16", 0x3F81, 1.0078125), ("bfloat16", 0x7F7F, 3.3895313892515355e38), ("bfloat16", 0x0001, 9.183549615799121e-41),
        ("float16", 0x7BFF, 65504.0), ("float16", 0x0001, 2.0**-24), ("float16", 0xFC00, -math.inf),
    ],
)  # fmt: skip
def test_well_known_codes(dtype: str, code: int, value: float) -> None:
    """By hand, from the formats' published tables."""
    assert floats.values(np.array([code], floats.FORMATS[dtype].raw), dtype)[0] == value


def test_wide_formats_are_read_as_they_are() -> None:
    """Catches a detour through float32 (float64) or float64 (int64)."""
    assert floats.values(np.array([1.0 + 2.0**-52]).view("<u8"), "float64")[0] == 1.0 + 2.0**-52
    assert floats.values(np.array([2**63 - 1]), "int64")[0] == 2**63 - 1
    assert floats.values(np.array([2**64 - 1], "<u8"), "uint64")[0] == 2**64 - 1
    assert floats.values(np.array([1.1], "<f4").view("<u4"), "float32")[0] == np.float32(1.1)


def test_a_complex_block_comes_apart_into_its_parts() -> None:
    """Catches parts that are exchanged, or read in the wrong width."""
    for dtype, kind, width in (("complex64", "<c8", "float32"), ("complex128", "<c16", "float64")):
        raw = np.array([1 + 2j, -3.5j], kind).view(floats.FORMATS[dtype].raw)
        part, part_dtype, each = floats.parts(raw, dtype)
        assert (part_dtype, each) == (width, 2)
        assert floats.values(part, part_dtype).tolist() == [1.0, 2.0, 0.0, -3.5]
    raw = np.zeros(3, "<u2")
    part, part_dtype, each = floats.parts(raw, "bfloat16")
    assert (part is raw, part_dtype, each) == (True, "bfloat16", 1)


def test_what_counts_as_an_integer() -> None:
    """bool and every width of integer; no float, and no dtype that is not known."""
    integers = {name for name in floats.FORMATS if floats.is_integer(name)}
    assert integers == {"bool"} | {f"{sign}int{width}" for sign in ("", "u") for width in (8, 16, 32, 64)}
    assert not floats.is_integer(None)
    assert not floats.is_integer("float7")


# --- not finite ---


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_nonfinite_judges_every_16_bit_code_in_a_block(dtype: str) -> None:
    """Each code alone, and beside the largest finite numbers of both signs: catches a bound of the two reductions that is off by one."""
    largest = max(code for code in range(1 << 15) if math.isfinite(dumping.number_of(code, dtype)))
    blocks = np.tile(np.array([0, largest, largest | 0x8000], "<u2"), (1 << 16, 1))
    blocks[:, 0] = np.arange(1 << 16)
    for code, block in enumerate(blocks):
        wanted = not math.isfinite(dumping.number_of(code, dtype))
        for found in (floats.nonfinite(block[:1], dtype), floats.nonfinite(block, dtype)):
            assert (found is not None) == wanted, hex(code)
            assert found is None or found.tolist() == [True, False, False][: len(found)]


@pytest.mark.parametrize("dtype", [dtype for dtype in SMALL if dtype.startswith("float8")])
def test_nonfinite_judges_every_8_bit_code(dtype: str) -> None:
    for code in CODES[dtype]:
        found = floats.nonfinite(np.array([code, 1], "u1"), dtype)
        assert (found.tolist() if found is not None else [False, False]) == [not math.isfinite(dumping.number_of(code, dtype)), False]


@pytest.mark.parametrize(("dtype", "raw", "value"), [("float32", "<u4", "<f4"), ("float64", "<u8", "<f8")])
def test_nonfinite_on_random_bits(dtype: str, raw: str, value: str) -> None:
    """Catches signed and unsigned comparisons that are exchanged. Truth: math.isfinite of each number."""
    edge = {"<u4": 0x7F800000, "<u8": 0x7FF0000000000000}[raw]
    top = 1 << (8 * np.dtype(raw).itemsize - 1)
    edges = st.sampled_from([number + sign for number in (edge - 1, edge, edge + 1, top - 1, 0, 1) for sign in (0, top)])
    element = edges | st.integers(0, 2 * top - 1)

    @many
    @given(hnp.arrays(raw, st.integers(0, 6), elements=element))
    def judge(block: "np.ndarray[tuple[int], np.dtype[np.unsignedinteger]]") -> None:
        wanted = [not math.isfinite(number) for number in block.view(value).tolist()]
        found = floats.nonfinite(block, dtype)
        assert (found is not None) == any(wanted)
        assert found is None or found.tolist() == wanted

    judge()


def test_nonfinite_of_a_large_block_sees_its_last_element() -> None:
    for dtype in ("float16", "bfloat16", "float32", "float64", "float8_e5m2", "float8_e4m3fn"):
        raw = floats.FORMATS[dtype].raw
        block = np.ones(100_001, raw)
        assert floats.nonfinite(block, dtype) is None
        block[-1] = np.iinfo(raw).max if dtype != "float8_e4m3fn" else 0x7F
        found = floats.nonfinite(block, dtype)
        assert found is not None
        assert np.flatnonzero(found).tolist() == [100_000]


def test_integers_are_always_finite() -> None:
    for dtype in floats.FORMATS:
        if floats.is_integer(dtype):
            assert floats.nonfinite(np.full(4, -1).astype(floats.FORMATS[dtype].raw), dtype) is None


# --- rounding ---


EXACT = {
    dtype: [Fraction(dumping.number_of(code, dtype)) for code in range(top)] for dtype, top in (("bfloat16", 0x7F80), ("float16", 0x7C00))
}


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_rounding_takes_the_nearest_code(dtype: str) -> None:
    """Numbers at, just beside and half-way between codes. Truth: distances as fractions."""
    top = len(EXACT[dtype])
    place = st.tuples(st.integers(0, top - 1), st.sampled_from([0.0, 0.25, 0.5, 0.75]), st.sampled_from([-1, 0, 1]), st.booleans())

    @many
    @given(place)
    def judge(drawn: tuple[int, float, int, bool]) -> None:
        code, part, aside, negative = drawn
        low = EXACT[dtype][code]
        high = EXACT[dtype][code + 1] if code + 1 < top else 2 * low - EXACT[dtype][code - 1]
        number = np.float32(float(low + (high - low) * Fraction(part)))
        number = np.nextafter(number, np.float32(aside * np.inf)) if aside else number
        number = -number if negative else number
        with np.errstate(over="ignore"):
            found = int(floats.rounded(np.array([number], np.float32), dtype)[0])
        assert found == nearest_of(float(number), dtype), float(number).hex()

    judge()


def nearest_of(number: float, dtype: str) -> int:
    """The code nearest to a number, ties to even; half a unit beyond the largest number or more: infinity."""
    exact, size = EXACT[dtype], Fraction(abs(number))
    above = bisect_left(exact, size)
    below = max(above - 1, 0)
    ceiling = exact[above] if above < len(exact) else 2 * exact[-1] - exact[-2]
    low, high = size - exact[below], ceiling - size
    code = below if low < high or (low == high and below % 2 == 0) else above
    return code | (0x8000 if math.copysign(1, number) < 0 else 0)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float32", "float64", "int64", "int8", "uint8", "bool"])
def test_a_value_rounds_to_itself(dtype: str) -> None:
    """Every code of the small formats, edges of the wide ones: rounding what is exact changes no bit (NaN stays NaN)."""
    raw = floats.FORMATS[dtype].raw
    width = raw.itemsize
    codes = np.arange(1 << (8 * width)).astype(raw) if width <= 2 else np.frombuffer(np.random.default_rng(1).bytes(8000), raw)
    codes = codes & np.array(1, raw) if dtype == "bool" else codes
    numbers = floats.values(codes, dtype)
    with np.errstate(invalid="ignore"):
        again = floats.rounded(numbers, dtype)
        back = floats.values(again, dtype)
    assert again.dtype == raw
    np.testing.assert_array_equal(back, numbers)
    number = ~np.isnan(numbers)
    np.testing.assert_array_equal(again[number], codes[number])


def test_rounding_by_hand() -> None:
    """bfloat16: ties to even both ways, overflow, the largest float32, subnormals, the sign of zero."""
    cases = {
        1 + 2**-8: 0x3F80, 1 + 3 * 2**-8: 0x3F82, 1 + 2**-8 + 2**-20: 0x3F81, -(1 + 3 * 2**-8): 0xBF82,
        3.3895313892515355e38: 0x7F7F, 3.4028234663852886e38: 0x7F80, 2.0**-134: 0x0000, 3 * 2.0**-134: 0x0002, -0.0: 0x8000,
        math.inf: 0x7F80, -math.inf: 0xFF80,
    }  # fmt: skip
    found = floats.rounded(np.array(list(cases), np.float32), "bfloat16")
    assert [hex(code) for code in found.tolist()] == [hex(code) for code in cases.values()]


def test_rounding_past_the_largest_number_is_infinity_without_a_warning() -> None:
    """A cast that overflows is ordinary data; a warning of numpy would reach the user's terminal."""
    assert floats.rounded(np.array([65520.0, -1e6], np.float32), "float16").tolist() == [0x7C00, 0xFC00]
    assert floats.rounded(np.array([1e300, -1e300]), "float32").view("<f4").tolist() == [math.inf, -math.inf]
    assert floats.rounded(np.array([1e300, -1e300]), "bfloat16").tolist() == [0x7F80, 0xFF80]


def test_nan_rounds_to_nan() -> None:
    """A NaN whose payload lies in the bits that are cut off must not become infinity."""
    quiet = np.array([0x7F800001, 0xFF800001, 0x7FFFFFFF, 0xFFFFFFFF], "<u4").view("<f4")
    for dtype in ("bfloat16", "float16", "float32", "float64"):
        with np.errstate(invalid="ignore"):
            assert np.isnan(floats.values(floats.rounded(quiet, dtype), dtype)).all()


def test_signalling_nans_are_read_and_rounded_without_a_warning() -> None:
    """Memory that was never written holds such codes; numpy's warning about them must not reach the terminal."""
    for dtype, code in (("float16", 0x7C01), ("bfloat16", 0x7F81), ("float32", 0x7F800001)):
        values = floats.values(np.array([code, code], floats.FORMATS[dtype].raw), dtype)
        for target in ("float16", "bfloat16", "float32", "float64"):
            assert floats.nonfinite(floats.rounded(values, target), target) is not None


def test_rounding_to_integers_cuts_towards_zero() -> None:
    assert floats.rounded(np.array([1.9, -1.9, 2.5, -0.5]), "int32").tolist() == [1, -1, 2, 0]
    assert floats.rounded(np.array([0.0, -0.0, 0.25, math.nan, -3.0]), "bool").tolist() == [0, 0, 1, 1, 1]


@pytest.mark.parametrize("dtype", ["float8_e4m3fn", "float8_e5m2", "complex64", "complex128"])
def test_what_cannot_be_rounded_to_is_refused(dtype: str) -> None:
    with pytest.raises(ValueError, match=dtype):
        floats.rounded(np.ones(2), dtype)
