"""Sizes of a difference (mean, RMS, relative L2, cosine, norm ratio) against exact fractions, to 10**8 elements; samples, memory."""

import json
import math
import tempfile
import tracemalloc
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple

import dumping
import numpy as np
import pytest
from dump_analysis import gate
from dump_analysis.artefacts import io
from dump_analysis.artefacts.boundary_results import BoundaryResult, Touched
from dump_analysis.grids import grid_of, pieces
from dump_analysis.measure import row as measure
from dump_analysis.measure.row import Measure
from dump_analysis.sides import Side
from dump_analysis.tensors import BLOCK_BYTES, Stream
from dumping import Tensor, compared, cut, number_of, of, of_bits, outputs, row_of, side_of
from hypothesis import given, settings
from hypothesis import strategies as st

Array = np.ndarray[Any, np.dtype[Any]]

LARGEST = 1.7976931348623157e308
FORMATS = [dtype for dtype in dumping.DTYPES if "complex" not in dtype and dtype != "bool"]


@pytest.fixture(scope="module")
def place() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as folder:
        yield Path(folder)


class Exact(NamedTuple):
    """Sums as fractions, of so many pairs: Σa², Σb², Σab, Σ(b − a)², Σ|b − a|, max |b − a|."""

    n: int
    aa: Fraction
    bb: Fraction
    ab: Fraction
    dd: Fraction
    d: Fraction
    peak: Fraction

    def times(self, count: int) -> "Exact":
        return Exact(self.n * count, *(part * count for part in self[1:6]), self.peak)


def exact(train: Sequence[float], infer: Sequence[float]) -> Exact:
    a, b = [Fraction(x) for x in train], [Fraction(x) for x in infer]
    apart = [abs(y - x) for x, y in zip(a, b, strict=True)]
    sums = (sum(x * y for x, y in zip(*sides, strict=True)) for sides in ((a, a), (b, b), (a, b), (apart, apart)))
    return Exact(len(a), *map(Fraction, sums), Fraction(sum(apart)), max(apart))


def nearest(value: Fraction) -> float:
    try:
        return float(value)
    except OverflowError:
        return LARGEST if value > 0 else -LARGEST


def root(value: Fraction) -> Fraction:
    """The square root to far more digits than a float64 has."""
    scale = 1 << max(0, 200 - value.numerator.bit_length() + value.denominator.bit_length())
    return Fraction(math.isqrt(value.numerator * value.denominator * scale * scale), value.denominator * scale)


def close(value: Fraction) -> Any:
    return pytest.approx(nearest(value), rel=1e-12, abs=5e-324)


def check(found: measure.Sizes, truth: Exact) -> None:
    assert found.max_abs == pytest.approx(nearest(truth.peak), rel=1e-15, abs=0)
    assert found.mean_abs == close(truth.d / truth.n)
    assert found.rms == close(root(truth.dd / truth.n))
    both = truth.aa and truth.bb
    assert found.rel_l2 == (close(root(truth.dd / truth.aa)) if truth.aa else None)
    assert found.norm_ratio == (close(root(truth.bb / truth.aa)) if truth.aa else None)
    assert found.cosine == (pytest.approx(float(truth.ab / root(truth.aa * truth.bb)), rel=0, abs=1e-12) if both else None)
    assert found.cosine is None or -1 <= found.cosine <= 1


def sizes_of(result: BoundaryResult) -> measure.Sizes:
    return measure.Sizes(
        result.max_abs_diff, result.mean_abs_diff, result.rms_diff, result.rel_l2, result.cosine, result.norm_ratio
    )  # fmt: skip


# --- a few elements ---


@st.composite
def numbers(draw: st.DrawFn) -> tuple[str, list[int], list[int]]:
    """Finite codes of one format: any bits, or close to each other, or zeros."""
    dtype = draw(st.sampled_from(FORMATS) | st.sampled_from(["float64", "float32", "bfloat16"]))
    kind = np.dtype(dumping.DTYPES[dtype][0])
    codes = st.integers(0, (1 << 8 * kind.itemsize) - 1) | st.just(0)
    finite = codes.filter(lambda code: math.isfinite(number_of(code, dtype)))
    train = draw(st.lists(finite, min_size=1, max_size=12))
    infer = [draw(st.just(code) | st.just(code ^ 1) | finite) for code in train]
    return dtype, train, [new if math.isfinite(number_of(new, dtype)) else code for code, new in zip(train, infer, strict=True)]


def test_sizes_of_random_numbers_of_every_format(place: Path) -> None:
    """Float64 from 5e-324 to 1.8e308 (squares beyond float64 both ways), subnormals, 64-bit integers, zeros. Truth: fractions."""

    @settings(max_examples=500, deadline=None, derandomize=True)
    @given(numbers())
    def judge(drawn: tuple[str, list[int], list[int]]) -> None:
        dtype, *codes = drawn
        kind = np.dtype(dumping.DTYPES[dtype][0])
        sides = [of_bits(np.array(side, f"<u{kind.itemsize}").view(kind), dtype) for side in codes]
        train, infer = ([number_of(code, dtype) for code in side] for side in codes)
        result = compared(place, *sides)
        if train == infer:
            assert sizes_of(result) == measure.SAME
        else:
            check(sizes_of(result), exact(train, infer))
        io.text_of(result)

    judge()


CASES: dict[str, tuple[str, list[float], list[float]]] = {
    "train all zero": ("float32", [0.0, 0.0, 0.0], [1.0, -2.0, 0.0]),
    "infer all zero": ("float32", [1.0, -2.0, 0.0], [0.0, 0.0, 0.0]),
    "infer a millionth of train": ("float64", [1.1, -2.2, 3.3], [1.1e-6, -2.2e-6, 3.3000001e-6]),
    "infer nearly nothing": ("float64", [1.0, 2.0, 4.0], [1e-300, 2e-300, 3e-300]),
    "the largest of both signs": ("float64", [LARGEST, -LARGEST], [-LARGEST, LARGEST]),
    "around 1e300": ("float64", [1e300, -2e300, 1e299], [1.0000001e300, -2e300, 0.0]),
    "around 1e-300": ("float64", [1e-300, -2e-300, 1e-299], [1.0000001e-300, -2e-300, 0.0]),
    "both ends at once": ("float64", [1e300, 1e-300], [1e300, 2e-300]),
    "subnormals of float32": ("float32", [1e-45, 2.8e-45, 0.0], [2.8e-45, 2.8e-45, 1e-45]),
    "opposite": ("float32", [1.0, -2.0, 3.0], [-1.0, 2.0, -3.0]),
    "at right angles": ("float64", [1.0, 1e-9, 0.1], [-0.01, 1e-9, 0.1]),
}


@pytest.mark.parametrize(("dtype", "train", "infer"), CASES.values(), ids=CASES)
def test_sizes_at_the_edges(tmp_path: Path, dtype: str, train: list[float], infer: list[float]) -> None:
    """Where a division by zero, an overflow or a cancelled sum would show; None where a size is not defined: writing refuses NaN."""
    kind = {"float32": np.float32, "float64": np.float64}[dtype]
    a, b = np.array(train, kind), np.array(infer, kind)
    result = compared(tmp_path, of(a, dtype), of(b, dtype))
    check(sizes_of(result), exact(a.tolist(), b.tolist()))
    io.text_of(result)


def test_a_format_without_zero_beside_its_nan(tmp_path: Path) -> None:
    """Float8_e8m0fnu: code 0 is 2**-127 and no zero. Catches NaN pairs that are summed as its smallest number."""
    train, infer = np.array([0, 255, 255, 255], "u1"), np.array([1, 255, 255, 9], "u1")
    result = compared(tmp_path, of_bits(train, "float8_e8m0fnu"), of_bits(infer, "float8_e8m0fnu"))
    check(sizes_of(result), exact([2.0**-127], [2.0**-126]))


def test_the_largest_difference_at_the_scale_of_its_row(tmp_path: Path) -> None:
    """Twice the largest float64 has no float64: 2**54 − 2 of its steps all the same."""
    result = compared(tmp_path, of([[LARGEST, 1.0]], "float64"), of([[-LARGEST, 1.0]], "float64"))
    assert result.ulp is not None
    assert result.ulp.max_at_row_scale == pytest.approx(2.0**54, rel=1e-5)


def test_a_train_side_of_zeros_has_no_relative_sizes(tmp_path: Path) -> None:
    """None in JSON, too: a NaN or 0.0 there would read as a measured size."""
    result = compared(tmp_path, of([[0.0, 0.0], [0.0, 0.0]]), of([[1.0, 0.0], [0.0, 2.0]]))
    written = json.loads(io.text_of(result))
    assert [written[name] for name in ("rel_l2", "cosine", "norm_ratio")] == [None] * 3
    assert written["max_abs_diff"] == 2.0
    assert written["where"]["worst"]["tokens"] == [[0, None], [1, None]]


def test_relative_differences_of_1e_7(tmp_path: Path) -> None:
    """Float32 with one or two steps' difference: catches Σb² − 2Σab + Σa², which leaves no digit of it. 65,537 odd elements."""
    draw = np.random.default_rng(1)
    a = draw.standard_normal(65_537).astype("<f4")
    b = np.nextafter(a, np.float32(np.inf))
    check(sizes_of(compared(tmp_path, of(a), of(b))), exact(a.tolist(), b.tolist()))


def test_mixed_magnitudes(tmp_path: Path) -> None:
    """From 2**-60 to 2**60 in one tensor, cancelling sums of products; three odd shapes of the same elements."""
    draw = np.random.default_rng(2)
    a = draw.standard_normal(7 * 11 * 131) * 2.0 ** draw.integers(-60, 60, 7 * 11 * 131)
    b = np.where(draw.random(len(a)) < 0.5, -a, a * (1 + draw.standard_normal(len(a)) * 1e-3))
    truth = exact(a.tolist(), b.tolist())
    for shape in ((7, 11, 131), (77, 131), (1, 131, 77), (10_087,)):
        check(sizes_of(compared(tmp_path, of(a.reshape(shape), "float64"), of(b.reshape(shape), "float64"))), truth)


def test_complex_numbers(tmp_path: Path) -> None:
    """An element's size is its absolute value: |3 + 4j| is 5. Catches parts counted as elements in the mean and the RMS."""
    result = compared(tmp_path, of([0j, 1j, 2 + 0j], "complex64"), of([3 + 4j, 1j, 2 + 0j], "complex64"))
    assert (result.max_abs_diff, result.mean_abs_diff) == (5.0, pytest.approx(5 / 3, rel=1e-12))
    assert (result.rms_diff, result.rel_l2) == (pytest.approx(5 / 3**0.5, rel=1e-12), pytest.approx(5**0.5, rel=1e-12))
    assert result.norm_ratio == pytest.approx(6**0.5, rel=1e-12)


# --- 10**8 elements ---


class Repeated(NamedTuple):
    """A stream that is one block over and over."""

    dtype: str
    shape: tuple[int, ...]
    block: Array
    pitch: int = 1
    addends: Sequence[Stream] = ()

    def read(self, start: int, stop: int) -> Array:
        return self.block[: stop - start]


def measured(boundary: str, dtype: str, shape: tuple[int, ...], train: Array, infer: Array) -> measure.Sizes:
    """Sizes of blocks that all begin with the same elements; their truth is `exact_of`'s."""
    left, right = Repeated(dtype, shape, train), Repeated(dtype, shape, infer)
    taken = Measure(grid_of(boundary, shape, None), left, right, [dtype])
    for start, stop in pieces(0, math.prod(shape), taken.columns, BLOCK_BYTES // train.itemsize):
        taken.add(start, left.read(start, stop), right.read(start, stop))
    return measure.sizes(taken)


@pytest.mark.parametrize("shape", [(100_000_000,), (400, 250_000)], ids=["one run", "rows longer than a block"])
def test_a_hundred_million_times_a_tenth(shape: tuple[int, ...]) -> None:
    """0.1 and its neighbour in bfloat16: always rounded the same way, so that a running sum drifts. Truth: the numbers' own fractions."""
    train, infer = np.full(65_536, 0x3DCD, "<u2"), np.full(65_536, 0x3DCE, "<u2")
    truth = exact([number_of(0x3DCD, "bfloat16")], [number_of(0x3DCE, "bfloat16")]).times(math.prod(shape))
    check(measured("a", "bfloat16", shape, train, infer), truth)


def test_a_hundred_million_elements_of_mixed_size() -> None:
    """Float32 of four magnitudes, 1e-7 apart. Truth: fractions of one block, times the blocks."""
    draw = np.random.default_rng(3)
    a = (draw.standard_normal(32_768) * 10.0 ** draw.integers(-2, 2, 32_768)).astype("<f4")
    b = np.where(draw.random(len(a)) < 0.7, np.nextafter(a, np.float32(np.inf)), a)
    shape = (3072, 32_768)
    found = measured("a", "float32", shape, a.view("<u4"), b.view("<u4"))
    check(found, exact(a.tolist(), b.tolist()).times(shape[0]))


# --- large tensors: what is sampled, what is held ---

MIB = 1 << 20


def test_what_a_sample_of_rows_cannot_see_is_counted_all_the_same(tmp_path: Path) -> None:
    """Differences in the rows between the sampled ones only: counts, extremes, sizes, directions and what is touched hold them."""
    tokens, width = 4096, 1024
    a = np.random.default_rng(7).standard_normal((tokens, width)).astype("<f4")
    b = a.copy()
    planted = [(1, 3), (1, 900), (2, 3), (4094, 1023)]
    for at in planted:
        b[at] = a[at] * 4
    result = compared(tmp_path, of(a), of(b))
    assert result.sampled is not None
    every = result.sampled.every
    assert (result.sampled.rows, result.sampled.of) == (-(-tokens // every), tokens)
    assert all(token % every for token, _ in planted), "planted in the sample"
    assert {"gain", "ulp.histogram"} <= set(result.sampled.figures)
    d = np.abs(b.astype("f8") - a)
    assert result.unequal is not None
    assert (result.unequal.count, result.max_abs_diff) == (4, d.max())
    assert result.mean_abs_diff == pytest.approx(d.sum() / d.size, rel=1e-11)
    assert result.rel_l2 == pytest.approx(np.linalg.norm(d) / np.linalg.norm(a.astype("f8")), rel=1e-11)
    assert result.direction is not None
    assert (result.direction.smaller, result.direction.larger) == (4, 0)
    assert result.ulp is not None
    assert result.ulp.max == 2 << 23
    assert result.where is not None
    assert result.where.tokens == Touched(3, tokens)
    assert result.where.columns == Touched(3, width)
    assert result.where.onset_token == 1
    errors = np.linalg.norm(d, axis=1) / np.linalg.norm(a, axis=1)
    assert [at for at, _ in result.where.worst.tokens or []] == np.argsort(-errors)[:3].tolist()
    assert result.where.pattern == "scattered"


def test_a_tensor_of_2_to_the_20_elements_is_not_sampled(tmp_path: Path) -> None:
    """The limit: at it everything comes from all elements; at twice as many, the histogram holds the rows that it says."""
    a = np.random.default_rng(8).standard_normal((2048, 1024)).astype("<f4")
    for tokens in (1024, 2048):
        result = compared(tmp_path, of(a[:tokens]), of(a[:tokens] * 2))
        assert (result.sampled is None) == (tokens == 1024)
        rows = result.sampled.rows if result.sampled else tokens
        assert result.ulp is not None
        assert sum(sum(bins) for bins in result.ulp.histogram.values() if isinstance(bins, list)) == rows * 1024


VIEWS = {
    "tokens": [8192, 4096],
    "a vocabulary of tokens": [1 << 18, 128],
    "logits": [128, 1 << 18],
    "few long rows": [16, 1 << 21],
}


def peak_of(call: Callable[[], Any]) -> tuple[Any, float]:
    """The call's answer and the MiB that it held at most."""
    tracemalloc.start()
    answer = call()
    peak = tracemalloc.get_traced_memory()[1] / MIB
    tracemalloc.stop()
    return answer, peak


def check_peak(train: Side, infer: Side, shape: list[int]) -> None:
    row = row_of("a", 0, *[cut("a", {"op": "reshape", "shape": shape})] * 2)
    results, peak = peak_of(lambda: gate.compare([row], [], train, infer)[0])
    assert (results[0].status, results[0].shape) == ("NOT_EXACT", shape)
    assert peak < 40, f"{shape}: {peak:.1f} MiB"


def test_measures_of_64_mib_hold_blocks_only(tmp_path: Path) -> None:
    """A dense difference in bfloat16 and float64, whatever the shape: catches sums, lines or masks that grow with the tensor."""
    draw = np.random.default_rng(9)
    a = draw.integers(0x3C00, 0x4000, 1 << 25).astype("<u2")
    train, infer = (side_of(tmp_path, label, outputs({"a": of_bits(side, "bfloat16")})) for label, side in (("train", a), ("infer", a ^ 1)))
    for shape in VIEWS.values():
        check_peak(train, infer, shape)
    a = draw.standard_normal(1 << 23)
    train, infer = (side_of(tmp_path, label, outputs({"a": of(side, "float64")})) for label, side in (("train", a), ("infer", a + 1e-9)))
    for shape in ([4096, 2048], [1 << 18, 32], [32, 1 << 18]):
        check_peak(train, infer, shape)


def wasteful(seed: int) -> Tensor:
    """24 rows of 1024 bfloat16 elements, saved with the storage of 8192 rows."""
    storage = np.random.default_rng(seed).integers(0x3C00, 0x4000, 8192 * 1024).astype("<u2")
    return Tensor(storage, "bfloat16", (24, 1024), offset=100 * 1024)


def test_a_slice_saved_with_its_whole_storage(tmp_path: Path) -> None:
    """24 of 8192 rows: compared without reading the rest, and said once, with the bytes and what to do about them."""
    kept = wasteful(1).storage.reshape(8192, 1024)[100:124]
    one = {"a": wasteful(1), "b": of_bits(kept, "bfloat16")}
    train, infer = side_of(tmp_path, "train", outputs(one)), side_of(tmp_path, "infer", outputs({"a": one["b"], "b": one["b"]}))
    (results, notes), peak = peak_of(lambda: gate.compare([row_of("a", 0), row_of("b", 1)], [], train, infer))
    assert [result.status for result in results] == ["EXACT", "EXACT"]
    assert peak < 6
    (note,) = [note for note in notes if note.kind == "storage_wasted"]
    assert "clone before saving" in note.text
    assert 2 * 1024 * (8192 - 24) in note.values.values()


def test_wasted_storages_are_said_once(tmp_path: Path) -> None:
    """Three of them on one side: one note; none where a storage is the tensor's own."""
    tensors = {name: wasteful(at) for at, name in enumerate("abc")}
    clean = {name: of_bits(tensor.storage.reshape(8192, 1024)[100:124], "bfloat16") for name, tensor in tensors.items()}
    train, infer = side_of(tmp_path, "train", outputs(tensors)), side_of(tmp_path, "infer", outputs(clean))
    rows = [row_of(name, at) for at, name in enumerate(tensors)]
    assert [note.kind for note in gate.compare(rows, [], train, infer)[1]] == ["storage_wasted"]
    assert gate.compare(rows, [], infer, infer)[1] == []
