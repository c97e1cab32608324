"""ULPs: distances, spacings and their histogram, against the standard library's numbers and Python's integers."""

import itertools
import math
import tempfile
from collections.abc import Iterator, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import dumping
import numpy as np
import pytest
from dump_analysis import gate, ulps
from dump_analysis.artefacts.boundary_results import BoundaryResult
from dumping import compared, cut, number_of, of, of_bits, outputs, row_of, side_of
from hypothesis import given, settings
from hypothesis import strategies as st

Codes = np.ndarray[Any, np.dtype[Any]]

BINS = ("1", "2", "3-4", "5-8", "9-64", ">64")
FIRST = (1, 2, 3, 5, 9, 65)
FORMATS = [dtype for dtype in dumping.DTYPES if "float" in dtype]
SMALL = [dtype for dtype in FORMATS if dtype not in ("float32", "float64")]
UNSIGNED = "float8_e8m0fnu"


@pytest.fixture(scope="module")
def place() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as folder:
        yield Path(folder)


def raw(codes: Sequence[int], dtype: str) -> Codes:
    return np.array(codes, dumping.DTYPES[dtype][0])


def width(dtype: str) -> int:
    return 8 * np.dtype(dumping.DTYPES[dtype][0]).itemsize


def step(code: int, dtype: str) -> int:
    """Steps from zero: Python integers, sign and magnitude."""
    top = 1 << (width(dtype) - 1)
    return code if dtype == UNSIGNED or code < top else -(code - top)


def distances(train: Codes, infer: Codes, dtype: str) -> list[int]:
    return ulps.distance(train, infer, dtype)[0].tolist()


def apart(dtype: str, left: int, right: int) -> int:
    return distances(raw([left], dtype), raw([right], dtype), dtype)[0]


# --- distance and spacing ---


@pytest.mark.parametrize("dtype", SMALL)
def test_neighbours_among_all_values_are_one_apart(dtype: str) -> None:
    """Every code of the format, sorted by its value: catches a gap or a double step at a sign, a binade or a subnormal."""
    codes = [code for code in range(1 << width(dtype)) if math.isfinite(number_of(code, dtype))]
    codes.sort(key=lambda code: number_of(code, dtype))
    values = [number_of(code, dtype) for code in codes]
    wanted = [int(low != high) for low, high in itertools.pairwise(values)]
    up, down = raw(codes[:-1], dtype), raw(codes[1:], dtype)
    assert distances(up, down, dtype) == distances(down, up, dtype) == wanted
    places = list(itertools.accumulate(wanted, initial=0))
    for at in (0, len(codes) // 3, len(codes) - 1):
        found = distances(np.full(len(codes), codes[at], up.dtype), raw(codes, dtype), dtype)
        assert found == [abs(place - places[at]) for place in places]


@pytest.mark.parametrize("dtype", [dtype for dtype in FORMATS if "fnuz" not in dtype and dtype != UNSIGNED])
def test_both_zeros_are_one_place(dtype: str) -> None:
    """Catches a signed zero that counts as half the range, and the step across zero counted twice."""
    top = 1 << (width(dtype) - 1)
    assert apart(dtype, 0, top) == 0
    assert apart(dtype, 1, top) == apart(dtype, 1, 0) == apart(dtype, top + 1, 0) == 1
    assert apart(dtype, 1, top + 1) == 2


@pytest.mark.parametrize(("dtype", "largest"), [("float32", 0x7F7F_FFFF), ("float64", 0x7FEF_FFFF_FFFF_FFFF)])
def test_the_ends_of_wide_formats_do_not_wrap(dtype: str, largest: int) -> None:
    """From the smallest to the largest number is more than a signed integer of that width holds."""
    lowest = largest | 1 << (width(dtype) - 1)
    assert apart(dtype, lowest, largest) == apart(dtype, largest, lowest) == 2 * largest
    assert apart(dtype, largest, 0) == largest
    assert apart(dtype, lowest, lowest - 1) == 1


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_next_numbers_of_wide_formats_are_one_apart(dtype: str) -> None:
    """Subnormals, binades, both signs, the largest. Truth: nextafter."""
    kind = {"float32": np.float32, "float64": np.float64}[dtype]
    info = np.finfo(kind)
    starts = [0.0, info.smallest_subnormal, info.tiny, 1.0, 2.0, 0.1, 3e10, -1.0, -info.tiny, -info.smallest_subnormal]
    values = np.array([*starts, np.nextafter(info.max, kind(0)), info.min], kind)
    bits = dumping.DTYPES[dtype][0]
    above = np.nextafter(values, kind(np.inf))
    assert distances(values.view(bits), above.view(bits), dtype) == [1] * len(values)


@pytest.mark.parametrize("dtype", SMALL)
def test_spacing_is_the_step_to_the_next_magnitude(dtype: str) -> None:
    """Every code. Catches a binade off (2**(e − 8) in bfloat16 is half the spacing), and subnormals. Truth: the next code's value."""
    codes = range((1 << width(dtype)) - 1 if dtype == UNSIGNED else (1 << (width(dtype) - 1)) - 1)
    values = [(number_of(code, dtype), number_of(code + 1, dtype)) for code in codes]
    known = [(low, Fraction(high) - Fraction(low)) for low, high in values if math.isfinite(low) and math.isfinite(high)]
    numbers = np.array([low for low, _ in known])
    assert [Fraction(float(found)) for found in ulps.spacing(numbers, dtype)] == [gap for _, gap in known]
    assert ulps.spacing(-numbers, dtype).tolist() == ulps.spacing(numbers, dtype).tolist()


def test_spacing_by_hand() -> None:
    """2**-7 at 1.0 in bfloat16, and math.ulp for float64."""
    one = np.array([1.0])
    found = {dtype: float(ulps.spacing(one, dtype)[0]) for dtype in ("bfloat16", "float16", "float32")}
    assert found == {"bfloat16": 2.0**-7, "float16": 2.0**-10, "float32": 2.0**-23}
    values = [0.0, 5e-324, 2.2e-308, 1.0, 0.1, 1e300, 1.7e308]
    assert ulps.spacing(np.array(values), "float64").tolist() == [math.ulp(value) for value in values]


# --- what the gate says ---


def histogram(result: BoundaryResult) -> dict[str, Any]:
    assert result.ulp is not None
    return result.ulp.histogram


def counted(dtype: str, pairs: Sequence[tuple[int, int]]) -> dict[str, Any]:
    """Bins of pairs of codes, by Python integers."""
    wanted: dict[str, Any] = {name: [0, 0] for name in BINS} | {"opposite_sign": 0}
    for left, right in pairs:
        a, b = step(left, dtype), step(right, dtype)
        if a * b < 0:
            wanted["opposite_sign"] += 1
        elif a != b:
            name = BINS[max(at for at, first in enumerate(FIRST) if abs(a - b) >= first)]
            wanted[name][int(abs(a) > abs(b))] += 1
    return wanted


@st.composite
def code_pairs(draw: st.DrawFn) -> tuple[str, list[tuple[int, int]]]:
    """Codes of one format; mostly a few steps apart, around the edges of the bins and zero."""
    dtype = draw(st.sampled_from(FORMATS))
    largest = (1 << width(dtype)) - 1
    any_code = st.integers(0, largest) | st.sampled_from([0, 1, 2, largest // 2 + 1, largest // 2 + 2, largest // 2 + 9])
    first = draw(st.lists(any_code, min_size=1, max_size=10))
    moves = st.sampled_from([0, 1, -1, 2, 3, 4, 5, -5, 8, 9, -9, 64, 65, -65, 66, 1000]) | st.integers(-largest, largest)
    return dtype, [(code, (code + draw(moves)) & largest) for code in first]


def test_the_histogram_of_random_codes(place: Path) -> None:
    """All formats: edges of bins, both directions, opposite signs, elements that are not finite left out; and each unequal
    element in exactly one bin. Truth: Python's integers."""

    @settings(max_examples=500, deadline=None, derandomize=True)
    @given(code_pairs())
    def judge(drawn: tuple[str, list[tuple[int, int]]]) -> None:
        dtype, pairs = drawn
        result = compared(place, *(of_bits(raw([pair[side] for pair in pairs], dtype), dtype) for side in (0, 1)))
        finite = [pair for pair in pairs if all(math.isfinite(number_of(code, dtype)) for code in pair)]
        differing = [pair for pair in finite if number_of(pair[0], dtype) != number_of(pair[1], dtype)]
        if not differing:
            assert result.ulp is None or not finite or len(finite) < len(pairs)
            return
        assert result.ulp is not None
        assert histogram(result) == counted(dtype, finite)
        assert result.ulp.max == max(abs(step(left, dtype) - step(right, dtype)) for left, right in finite)
        each = [sum(count) if isinstance(count, list) else count for count in histogram(result).values()]
        assert sum(each) == len(differing)
        if len(finite) == len(pairs):
            assert result.unequal is not None
            assert sum(each) == result.unequal.count

    judge()


def test_smaller_stands_first(tmp_path: Path) -> None:
    """|train| < |infer| is the first of the two counts, for negative numbers too: catches values compared instead of magnitudes."""
    train, infer = [0x3F80, 0xBF80, 0x3F82, 0xBF89], [0x3F81, 0xBF81, 0x3F80, 0xBF80]
    found = histogram(compared(tmp_path, of_bits(raw(train, "bfloat16"), "bfloat16"), of_bits(raw(infer, "bfloat16"), "bfloat16")))
    assert (found["1"], found["2"], found["9-64"]) == ([2, 0], [0, 1], [0, 1])


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int32", "int64", "uint64", "complex64", "complex128"])
def test_what_has_no_ulp(tmp_path: Path, dtype: str) -> None:
    """Integers and complex numbers: None, never 0."""
    assert compared(tmp_path, of([0, 1, 1], dtype), of([1, 1, 0], dtype)).ulp is None


@pytest.mark.parametrize(
    ("left", "right", "values", "most"),
    [
        ("bfloat16", "float32", (1.0, 1.0 + 3 * 2.0**-7), 3),
        ("float32", "bfloat16", (1.0 + 3 * 2.0**-7, 1.0), 3),
        ("bfloat16", "float32", (1.0, 1.0 + 2.0**-9), 0),
        ("bfloat16", "float16", (1.0, 1.0 + 2.0**-7 + 2.0**-9), 1),
        ("float16", "float32", (1.0, 1.0 + 5 * 2.0**-10), 5),
        ("float32", "float64", (1.0, 1.0 + 2.0**-23), 1),
        ("float64", "bfloat16", (1.0 + 2.0**-8 + 2.0**-20, 1.0), 1),
    ],
)
def test_mixed_formats_count_in_the_coarser(tmp_path: Path, left: str, right: str, values: tuple[float, float], most: int) -> None:
    """Catches steps counted in the finer format, where one rounding to bfloat16 is 65,536 of float32."""
    result = compared(tmp_path, of([values[0], 2.0], left), of([values[1], 2.0], right))
    assert result.status == "DTYPE_DIFF"
    assert result.unequal is not None
    assert result.unequal.count == 1
    assert result.ulp is not None
    assert result.ulp.max == most


def test_the_recorded_format_counts_where_the_file_holds_another(tmp_path: Path) -> None:
    """dump.json says bfloat16, the files hold float32 of the same values: one step of bfloat16, and no DTYPE_DIFF."""
    train, infer = ([1.0, 2.0], [1.0 + 2.0**-7, 2.0])
    result = compared(tmp_path, of(train, "float32", "bfloat16"), of(infer, "float32", "bfloat16"))
    assert result.status == "NOT_EXACT"
    assert result.ulp is not None
    assert (result.ulp.max, result.ulp.max_at_row_scale, result.ulp.histogram["1"]) == (1, 1.0, [1, 0])
    left, right = (side_of(tmp_path, side, outputs({"a": of(train, "float32", "bfloat16")})) for side in ("train", "infer"))
    notes = gate.compare([row_of("a", 0), row_of("a", 1)], [], left, right)[1]
    assert [note.kind for note in notes] == ["dtype_in_file"] * 2


def test_one_side_recorded_in_another_format(tmp_path: Path) -> None:
    """dump.json says bfloat16 of one side only: DTYPE_DIFF, still counted in bfloat16."""
    result = compared(tmp_path, of([1.0, 2.0], "float32", "bfloat16"), of([1.0 + 2.0**-7, 2.0], "float32"))
    assert result.status == "DTYPE_DIFF"
    assert result.ulp is not None
    assert result.ulp.max == 1


def test_a_cast_does_not_refine_the_count(tmp_path: Path) -> None:
    """A mapping that casts bfloat16 to float32 against a float32 tensor of the engine: the values were held in bfloat16."""
    train = side_of(tmp_path, "train", outputs({"a": of([1.0, -2.0], "bfloat16")}))
    infer = side_of(tmp_path, "infer", outputs({"a": of([1.0, -2.0 - 2.0**-5], "float32")}))
    row = row_of("a", 0, train=cut("a", {"op": "cast", "dtype": "float32"}))
    result = gate.compare([row], [], train, infer)[0][0]
    assert result.status == "NOT_EXACT"
    assert result.ulp is not None
    assert (result.ulp.max, result.ulp.histogram["2"]) == (2, [1, 0])


@pytest.mark.parametrize("dtype", ["bfloat16", "float32"])
def test_at_the_scale_of_the_row(tmp_path: Path, dtype: str) -> None:
    """Where values cancel to almost nothing the raw distance explodes; beside the row's largest magnitude it is a step or two."""
    spacing = {"bfloat16": 2.0**-7, "float32": 2.0**-23}[dtype]
    train, infer = np.array([[1.5, 0.0], [96.0, 1.0]]), np.array([[1.5, spacing], [96.0, 1.0]])
    result = compared(tmp_path, of(train, dtype), of(infer, dtype))
    assert result.ulp is not None
    assert result.ulp.max > 10_000
    assert result.ulp.max_at_row_scale == 1.0
    infer[1, 1] = 1.0 + spacing  # one step of 1.0 is 1/64 of a step at 96
    apart = compared(tmp_path, of(train, dtype), of(infer, dtype)).ulp
    assert apart is not None
    assert apart.max_at_row_scale == 1.0
    infer[0, 1] = 0.0
    alone = compared(tmp_path, of(train, dtype), of(infer, dtype)).ulp
    assert alone is not None
    assert (alone.max, alone.max_at_row_scale) == (1, 1 / 64)
