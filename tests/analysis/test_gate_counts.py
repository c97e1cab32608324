"""What the gate counts, on random data: against exact arithmetic of the standard library, and numpy for large tensors."""

import math
import tempfile
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import dumping
import numpy as np
import pytest
from dump_analysis.artefacts.boundary_results import SidesCount
from dumping import compared, number_of, of_bits
from hypothesis import given, settings
from hypothesis import strategies as st

many = settings(max_examples=400, deadline=None, derandomize=True)
REAL = [dtype for dtype in dumping.DTYPES if not dtype.startswith("complex")]
SPECIAL = {
    "float64": [0, 1 << 63, 0x7FF0 << 48, 0xFFF0 << 48, 0x7FF8 << 48, 0x7FEF_FFFF_FFFF_FFFF, 0xFFEF_FFFF_FFFF_FFFF, 1],
    "float32": [0, 1 << 31, 0x7F80 << 16, 0xFF80 << 16, 0x7FC0 << 16, 0x7F7F_FFFF, 1],
    "bfloat16": [0, 0x8000, 0x7F80, 0xFF80, 0x7FC0, 0x7F7F, 0x3F80],
    "float16": [0, 0x8000, 0x7C00, 0xFC00, 0x7E00, 0x7BFF, 0x3C00],
}


@pytest.fixture(scope="module")
def place() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as folder:
        yield Path(folder)


def is_int(dtype: str) -> bool:
    return dtype == "bool" or "int" in dtype


def codes(dtype: str) -> st.SearchStrategy[int]:
    """Any bits of the format, its special numbers often."""
    width = 8 * np.dtype(dumping.DTYPES[dtype][0]).itemsize
    largest = 1 if dtype == "bool" else (1 << width) - 1
    edges = SPECIAL.get(dtype, [0, 1, largest, largest // 2, (largest + 1) // 2])
    return st.sampled_from([code & largest for code in edges]) | st.integers(0, largest)


@st.composite
def pair(draw: st.DrawFn) -> tuple[str, str, list[int], list[int]]:
    """Codes of both sides; of one dtype mostly, and then mostly equal."""
    left = draw(st.sampled_from(REAL))
    right = left if draw(st.booleans()) else draw(st.sampled_from(REAL))
    train = draw(st.lists(codes(left), min_size=1, max_size=12))
    other = [draw(codes(right)) for _ in train]
    infer = [draw(st.sampled_from([code, code, code, new])) for code, new in zip(train, other, strict=True)] if left == right else other
    return left, right, train, infer


def raw(dtype: str, listed: list[int]) -> "np.ndarray[Any, Any]":
    kind = np.dtype(dumping.DTYPES[dtype][0])
    return np.array(listed, f"<u{kind.itemsize}").view(kind)


def distance(a: float, b: float) -> float:
    """|a − b| rounded once; the largest number where it has none."""
    try:
        return float(abs(Fraction(a) - Fraction(b)))
    except OverflowError:
        return 1.7976931348623157e308


def check(place: Path, drawn: tuple[str, str, list[int], list[int]]) -> None:
    left, right, train, infer = drawn
    found = compared(place, of_bits(raw(left, train), left), of_bits(raw(right, infer), right))
    a, b = [number_of(code, left) for code in train], [number_of(code, right) for code in infer]
    both = list(zip(a, b, strict=True))
    nan_both = sum(math.isnan(x) and math.isnan(y) for x, y in both)
    apart = [(x, y) for x, y in both if x != y and not (math.isnan(x) and math.isnan(y))]
    signs = sum(x == y == 0 and math.copysign(1, x) != math.copysign(1, y) for x, y in both if not (is_int(left) or is_int(right)))
    finite = [distance(x, y) for x, y in apart if math.isfinite(x) and math.isfinite(y)]
    broken = [sum(not math.isfinite(x) for x in side) for side in (a, b)]
    anything = any(math.isfinite(x) and math.isfinite(y) for x, y in both) or not (apart or nan_both)
    largest = pytest.approx(max(finite, default=0.0), rel=1e-15, abs=0) if anything else None
    status = "NOT_EXACT" if apart else "EXACT"
    if left != right and not (is_int(left) and is_int(right)):
        status = "DTYPE_DIFF"
    if nan_both or any(not (math.isfinite(x) and math.isfinite(y)) for x, y in apart):
        status = "NONFINITE"
    assert found.status == status
    assert found.unequal is not None
    assert found.special is not None
    assert (found.unequal.count, found.special.zero_sign, found.special.nan_both) == (len(apart), signs, nan_both)
    assert found.special.nonfinite == SidesCount(*broken)
    assert found.max_abs_diff == largest
    assert found.unequal.share == pytest.approx(len(apart) / len(a), rel=1e-3)


def test_counts_of_random_numbers_in_any_two_formats(place: Path) -> None:
    """Unequal, NaN, infinities, signs of zero and the largest difference, and the status that follows. Truth: Python's numbers."""

    @many
    @given(pair())
    def judge(drawn: tuple[str, str, list[int], list[int]]) -> None:
        check(place, drawn)

    judge()


# --- large tensors ---

SIZES = [65_535, 131_072, 262_145, 524_293]


@pytest.mark.parametrize("dtype", ["uint8", "bfloat16", "float32", "int64", "complex128"])
def test_one_element_in_a_large_tensor(tmp_path: Path, dtype: str) -> None:
    """At the first and last element and around every likely end of a block: catches an element that no block holds, or two."""
    count = 262_145
    same = (
        np.random.default_rng(1).integers(0, 0x3F, count * np.dtype(dumping.DTYPES[dtype][0]).itemsize, "u1").view(dumping.DTYPES[dtype][0])
    )
    ends = [end + aside for end in (8192, 16_384, 32_768, 65_536, 131_072, 262_144) for aside in (-1, 0)]
    for place in (0, count - 1, *ends):
        other = same.copy()
        other[place] = other[place] + 1 if dtype != "complex128" else 7j
        result = compared(tmp_path, of_bits(same, dtype), of_bits(other, dtype))
        assert result.status == "NOT_EXACT", place
        assert result.unequal is not None
        assert result.unequal.count == 1, place


@pytest.mark.parametrize("count", SIZES)
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "int32", "uint8"])
def test_counts_of_large_tensors(tmp_path: Path, count: int, dtype: str) -> None:
    """A third of the elements differ; sizes that no block divides. Truth: numpy in float64 on the whole arrays."""
    draw = np.random.default_rng(count)
    kind = {"float32": "<f4", "float64": "<f8", "float16": "<f2", "int32": "<i4", "uint8": "u1"}[dtype]
    a = (draw.standard_normal(count) * 50 + 100).astype(kind)
    b = np.where(draw.random(count) < 1 / 3, (draw.standard_normal(count) * 50 + 100).astype(kind), a)
    result = compared(tmp_path, dumping.of(a, dtype), dumping.of(b, dtype))
    assert result.unequal is not None
    assert result.unequal.count == np.count_nonzero(a != b)
    assert result.max_abs_diff == np.abs(a.astype("f8") - b.astype("f8")).max()
    assert result.unequal.share == pytest.approx(np.count_nonzero(a != b) / count, rel=1e-3)


def test_int64_beyond_float64_in_a_large_tensor(tmp_path: Path) -> None:
    """Slot ids and hashes: one last bit in half a million, which float32 and float64 both lose."""
    a = np.random.default_rng(0).integers(2**60, 2**62, 500_001)
    b = a.copy()
    b[[3, 500_000]] ^= 1
    result = compared(tmp_path, dumping.of(a, "int64"), dumping.of(b, "int64"))
    assert result.unequal is not None
    assert (result.unequal.count, result.max_abs_diff) == (2, 1.0)


def test_the_pitfalls_of_tolerances_and_means(tmp_path: Path) -> None:
    """One token row replaced by its neighbour, a row of zeros, two rows exchanged: 1 in 1000 rows, each element counted."""
    a = np.random.default_rng(5).standard_normal((1000, 64)).astype("<f4")
    for change in ("neighbour", "zeros", "exchanged"):
        b = a.copy()
        if change == "neighbour":
            b[500] = a[501]
        elif change == "zeros":
            b[0] = 0
        else:
            b[[10, 900]] = a[[900, 10]]
        result = compared(tmp_path, dumping.of(a), dumping.of(b))
        assert result.unequal is not None
        assert (result.status, result.unequal.count) == ("NOT_EXACT", 128 if change == "exchanged" else 64)
