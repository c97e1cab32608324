"""The measures of a boundary against plain float64 numpy, what must not change them, and what they cost."""

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import dumping
import numpy as np
import pytest
from dump_analysis.artefacts.boundary_results import BoundaryResult, Direction, LinesBeyond, Touched
from dumping import Tensor, compared, compared_all, of, of_bits
from hypothesis import given, settings
from hypothesis import strategies as st

Array = np.ndarray[Any, np.dtype[Any]]

FIRST = (1, 2, 3, 5, 9, 65)


@pytest.fixture(scope="module")
def place() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as folder:
        yield Path(folder)


def bf16(values: Array) -> Array:
    """Codes of the nearest bfloat16, ties to even."""
    bits = np.asarray(values, "<f4").view("<u4").astype("<u8")
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype("<u2")


def coded(values: Array, dtype: str) -> Tensor:
    return of_bits(bf16(values), dtype) if dtype == "bfloat16" else of(values, dtype)


def held(values: Array, dtype: str) -> Array:
    """The values that the format keeps of them, as float64."""
    if dtype == "bfloat16":
        return (bf16(values).astype("<u4") << 16).view("<f4").astype("f8")
    return values.astype({"float32": "<f4", "float16": "<f2", "float64": "<f8"}[dtype]).astype("f8")


# --- plain numpy ---


class Line(NamedTuple):
    scale: Array
    offset: Array
    stderr: Array
    rest: Array


def lines(a: Array, b: Array, axis: int | None) -> Line:
    """b = scale · a + offset by least squares around the means: another form than sums of products."""
    n = a.size if axis is None else a.shape[axis]
    x, d = a - a.mean(axis, keepdims=True), b - a
    y = d - d.mean(axis, keepdims=True)
    slope = (x * y).sum(axis) / (x * x).sum(axis)
    rest = ((y - np.expand_dims(slope, axis if axis is not None else (0, 1)) * x) ** 2).sum(axis)
    stderr = np.sqrt(rest / (n - 2) / (x * x).sum(axis))
    return Line(1 + slope, d.mean(axis) - slope * a.mean(axis), stderr, rest)


def certain(a: Array, line: Line, axis: int, noise: float) -> Line:
    """The line with the error that noise in proportion to a would give its scale, where that is more than its own."""
    x = a - a.mean(axis, keepdims=True)
    return line._replace(stderr=np.maximum(line.stderr, np.sqrt(noise * (a**4).sum(axis)) / (x * x).sum(axis)))


def check_beyond(found: LinesBeyond | None, line: Line, total: float) -> None:
    assert found is not None
    assert found.left_over == pytest.approx(line.rest.sum() / total, rel=1e-5, abs=1e-10)
    clear = np.abs(line.scale - 1) / np.where(line.scale == 1, 1, line.stderr)
    order = [int(at) for at in np.argsort(-clear) if clear[at] > 6]
    assert found.beyond_count == len(order)
    assert [at for at, _, _ in found.beyond] == order[:4]
    for at, scale, stderr in found.beyond:
        assert (scale, stderr) == (pytest.approx(line.scale[at], rel=1e-7), pytest.approx(line.stderr[at], rel=1e-4))


def check_sizes(result: BoundaryResult, a: Array, b: Array) -> None:
    d, norm = np.abs(b - a), np.linalg.norm
    assert result.unequal is not None
    assert (result.unequal.count, result.max_abs_diff) == (np.count_nonzero(a != b), d.max())
    assert result.unequal.share == pytest.approx(np.mean(a != b))
    wanted = [d.mean(), np.sqrt((d * d).mean()), norm(d) / norm(a), (a * b).sum() / norm(a) / norm(b), norm(b) / norm(a)]
    found = [result.mean_abs_diff, result.rms_diff, result.rel_l2, result.cosine, result.norm_ratio]
    assert found == [pytest.approx(size, rel=1e-11) for size in wanted]
    smaller, larger = np.count_nonzero(np.abs(a) < np.abs(b)), np.count_nonzero(np.abs(a) > np.abs(b))
    z = (smaller - larger) / max(1, smaller + larger) ** 0.5
    assert result.direction == Direction(smaller, larger, pytest.approx(z, rel=1e-5))


def check_ulps(result: BoundaryResult, a: Array, b: Array, dtype: str) -> None:
    """Steps by signed codes; at the scale of the row by the spacing of the row's largest magnitude."""
    kind, precision, smallest = {"float64": ("i8", 53, -1022), "float32": ("i4", 24, -126), "float16": ("i2", 11, -14)}.get(
        dtype, ("i2", 8, -126)
    )
    codes = [dumping.bits(side, dtype).view(kind).astype("i8") for side in (a, b)]
    left, right = (np.where(code < 0, code - np.iinfo(kind).min, code).astype("u8") for code in codes)
    opposite = a * b < 0
    apart = np.where(opposite, left + right, np.maximum(left, right) - np.minimum(left, right))
    counts: dict[str, Any] = {}
    for name, low, high in zip(("1", "2", "3-4", "5-8", "9-64", ">64"), FIRST, (*FIRST[1:], 2**63 - 1), strict=True):
        inside = (apart >= low) & (apart < high) & ~opposite
        counts[name] = [int((inside & (np.abs(a) < np.abs(b))).sum()), int((inside & (np.abs(a) > np.abs(b))).sum())]
    assert result.ulp is not None
    assert result.ulp.histogram == {**counts, "opposite_sign": int(opposite.sum())}
    assert result.ulp.max == apart.max()
    scale = np.maximum(np.abs(a), np.abs(b)).max(axis=1)
    spacing = 2.0 ** (np.maximum(np.floor(np.log2(np.maximum(scale, 1e-300))), smallest) - precision + 1)
    assert result.ulp.max_at_row_scale == pytest.approx((np.abs(b - a).max(axis=1) / spacing).max(), rel=1e-5)


def check_where(result: BoundaryResult, a: Array, b: Array) -> None:
    where = result.where
    assert where is not None
    for axis, found in ((1, where.worst.tokens), (0, where.worst.columns)):
        touched = (a != b).any(axis=axis)
        if axis == 1:
            assert where.onset_token == np.argmax(touched)
        assert (where.tokens if axis else where.columns) == Touched(int(touched.sum()), len(touched))
        errors = np.linalg.norm(b - a, axis=axis) / np.linalg.norm(a, axis=axis)
        worst = [int(at) for at in np.argsort(-errors, kind="stable")[:3] if touched[at]]
        assert found == [(at, pytest.approx(errors[at], rel=1e-5)) for at in worst]


def check_gain(result: BoundaryResult, a: Array, b: Array, dtype: str) -> None:
    total = float(((b - a) ** 2).sum())
    gain, whole = result.gain, lines(a, b, None)
    assert gain is not None
    assert gain.whole is not None
    assert (gain.whole.scale, gain.whole.stderr) == (pytest.approx(whole.scale, rel=1e-10), pytest.approx(whole.stderr, rel=1e-4))
    assert gain.whole.offset == pytest.approx(whole.offset, rel=1e-5, abs=1e-12)
    assert gain.whole.left_over == pytest.approx(whole.rest / total, rel=1e-5)
    noise = max(whole.rest / float((a**2).sum()), 4.0 ** -{"bfloat16": 8, "float16": 11, "float32": 24, "float64": 53}[dtype])
    check_beyond(gain.token, certain(a, lines(a, b, 1), 1, noise), total)
    check_beyond(gain.column, certain(a, lines(a, b, 0), 0, noise), total)


# --- shapes ---

SHAPES = {
    "a few": ((7, 5), (7, 5)),
    "odd, with a batch axis": ((1, 33, 17), (33, 17)),
    "heads": ((40, 4, 16), (40, 64)),
    "blocks of whole rows": ((911, 257), (911, 257)),
    "rows longer than a block": ((5, 70_001), (5, 70_001)),
}
CHANGES = ["noise", "a few", "scale 1.04", "offset", "column", "row"]


def changed(a: Array, change: str, draw: np.random.Generator) -> Array:
    b = a + draw.standard_normal(a.shape) * 0.02 * (change != "a few")
    if change == "a few":
        b = np.where(draw.random(a.shape) < 0.05, a * 1.01, a)
    elif change == "scale 1.04":
        b = b * 1.04
    elif change == "offset":
        b = b + 0.5
    elif change == "column":
        b[:, a.shape[1] // 2] *= 3
    elif change == "row":
        b[a.shape[0] // 2] = -2 * b[a.shape[0] // 2] + 1
    return b


@pytest.mark.parametrize(("shape", "grid"), SHAPES.values(), ids=SHAPES)
@pytest.mark.parametrize("dtype", ["bfloat16", "float32", "float16", "float64"])
def test_every_figure_against_plain_numpy(tmp_path: Path, shape: tuple[int, ...], grid: tuple[int, int], dtype: str) -> None:
    """Six kinds of difference each. Catches a wrong axis, a block's edge, an item lost or counted twice, a swapped side."""
    draw = np.random.default_rng(sum(shape))
    train = held(draw.standard_normal(grid) * 3 + 0.1, dtype)
    infers = {change: held(changed(train, change, draw), dtype) for change in CHANGES}
    results = compared_all(
        tmp_path,
        dict.fromkeys(infers, coded(train.reshape(shape), dtype)),
        {change: coded(infer.reshape(shape), dtype) for change, infer in infers.items()},
    )
    for result, infer in zip(results, infers.values(), strict=True):
        check_sizes(result, train, infer)
        check_ulps(result, train, infer, dtype)
        check_where(result, train, infer)
        check_gain(result, train, infer, dtype)


LAYOUTS = [(71_610,), (1, 71_610), (71_610, 1), (2, 35_805), (310, 231), (1, 310, 231), (310, 21, 11), (1, 1, 35_805, 2), (3, 10, 2387)]


@pytest.mark.parametrize("dtype", ["bfloat16", "float32"])
def test_the_layout_of_the_elements_changes_no_number(tmp_path: Path, dtype: str) -> None:
    """The same elements as one row, one column, tokens, heads: catches a figure that depends on how blocks are cut."""
    draw = np.random.default_rng(4)
    train = held(draw.standard_normal(71_610), dtype)
    infer = np.where(draw.random(71_610) < 0.3, held(train * 1.02, dtype), train)
    sides = ({str(shape): coded(side.reshape(shape), dtype) for shape in LAYOUTS} for side in (train, infer))
    whole = lines(train, infer, None)
    results = compared_all(tmp_path, *sides)
    for result in results:
        check_sizes(result, train, infer)
        assert result.ulp is not None
        assert results[0].ulp is not None
        assert (result.ulp.max, result.ulp.histogram) == (results[0].ulp.max, results[0].ulp.histogram)
        assert result.gain is not None
        assert result.gain.whole is not None
        assert (result.gain.whole.scale, result.gain.whole.stderr) == (
            pytest.approx(whole.scale, rel=1e-10), pytest.approx(whole.stderr, rel=1e-4),
        )  # fmt: skip


# --- what must not change ---


@st.composite
def two_sides(draw: st.DrawFn) -> tuple[str, Array, Array, Array]:
    """A dtype, both sides of a few tokens and columns, and an order of the tokens."""
    dtype = draw(st.sampled_from(["bfloat16", "float32", "float16", "float64"]))
    tokens, width = draw(st.integers(1, 7)), draw(st.integers(1, 7))
    random = np.random.default_rng(draw(st.integers(0, 2**32)))
    train = np.round(random.standard_normal((tokens, width)) * 4) / 4
    share = draw(st.sampled_from([0.1, 0.5, 1.0]))
    other = random.standard_normal((tokens, width)) * draw(st.sampled_from([0.01, 1.0]))
    infer = np.where(random.random((tokens, width)) < share, train + other, train)
    return dtype, held(train, dtype), held(infer, dtype), random.permutation(tokens)


def worst(result: BoundaryResult, kind: str) -> list[float | None]:
    assert result.where is not None
    return [error for _, error in getattr(result.where.worst, kind) or []]


def check_exchanged(result: BoundaryResult, back: BoundaryResult) -> None:
    for name in ("unequal", "max_abs_diff", "mean_abs_diff", "rms_diff", "cosine"):
        assert getattr(back, name) == getattr(result, name), name
    if result.norm_ratio and back.norm_ratio:
        assert result.norm_ratio * back.norm_ratio == pytest.approx(1, rel=1e-11)
    assert result.direction is not None
    assert result.ulp is not None
    turned = {name: bins[::-1] if isinstance(bins, list) else bins for name, bins in result.ulp.histogram.items()}
    assert back.direction == Direction(result.direction.larger, result.direction.smaller, -result.direction.z)
    assert back.ulp is not None
    assert (back.ulp.max, back.ulp.max_at_row_scale, back.ulp.histogram) == (result.ulp.max, result.ulp.max_at_row_scale, turned)


def check_doubled(result: BoundaryResult, doubled: BoundaryResult) -> None:
    for name in ("unequal", "rel_l2", "cosine", "norm_ratio", "direction"):
        assert getattr(doubled, name) == getattr(result, name), name
    assert doubled.ulp is not None
    assert result.ulp is not None
    assert (doubled.ulp.max_at_row_scale, doubled.ulp.histogram) == (result.ulp.max_at_row_scale, result.ulp.histogram)
    for name in ("max_abs_diff", "mean_abs_diff", "rms_diff"):
        assert getattr(doubled, name) == pytest.approx(2 * getattr(result, name), rel=1e-11), name


def test_exchanged_sides_permuted_tokens_and_doubled_values(place: Path) -> None:
    """Exchanging mirrors what has a direction and nothing else; an order of tokens moves `where` only; doubling scales sizes only."""

    @settings(max_examples=150, deadline=None, derandomize=True)
    @given(two_sides())
    def judge(drawn: tuple[str, Array, Array, Array]) -> None:
        dtype, a, b, order = drawn
        sides = [[a, b, a[order], 2 * a], [b, a, b[order], 2 * b]]
        named = ({str(at): coded(side, dtype) for at, side in enumerate(each)} for each in sides)
        result, back, permuted, doubled = compared_all(place, *named)
        if (a == b).all():
            assert [each.status for each in (result, back, permuted, doubled)] == ["EXACT"] * 4
            return
        check_exchanged(result, back)
        check_doubled(result, doubled)
        assert (permuted.unequal, permuted.ulp, permuted.direction) == (result.unequal, result.ulp, result.direction)
        assert permuted.where is not None
        assert result.where is not None
        assert permuted.where.onset_token == np.flatnonzero((a != b).any(axis=1)[order])[0]
        assert (permuted.where.tokens, permuted.where.columns) == (result.where.tokens, result.where.columns)
        assert worst(permuted, "tokens") == worst(result, "tokens")
        assert worst(permuted, "columns") == worst(result, "columns")

    judge()


# --- nothing to measure ---


def test_an_exact_row_has_sizes_and_no_more(tmp_path: Path) -> None:
    """Also with both zeros, equal infinities: None, not a histogram of zeros."""
    for infer in ([1.0, 0.0, 2.0], [1.0, -0.0, 2.0]):
        result = compared(tmp_path, of([1.0, 0.0, 2.0]), of(infer))
        assert (result.status, result.max_abs_diff, result.rel_l2) == ("EXACT", 0.0, 0.0)
        assert (result.ulp, result.direction, result.where, result.gain) == (None, None, None, None)


@pytest.mark.parametrize("train", [[np.nan, np.inf], [np.inf, 1.0]])
@pytest.mark.parametrize("infer", [[np.nan, np.inf], [-np.inf, np.nan]])
def test_where_no_pair_is_finite_nothing_is_zero(tmp_path: Path, train: list[float], infer: list[float]) -> None:
    """ "No violation" is not "no difference": a largest difference of 0.0 would read as equal."""
    result = compared(tmp_path, of([train, train]), of([infer, infer]))
    assert result.status == "NONFINITE"
    if not (np.isfinite(train) & np.isfinite(infer)).any():
        sizes = [result.max_abs_diff, result.mean_abs_diff, result.rms_diff, result.rel_l2, result.cosine, result.norm_ratio]
        assert sizes == [None] * 6
        assert (result.ulp, result.direction, result.gain) == (None, None, None)


@pytest.mark.parametrize("dtype", ["bfloat16", "float32", "float64"])
def test_pairs_that_are_not_finite_are_left_out(tmp_path: Path, dtype: str) -> None:
    """NaN and infinities on either side: sizes, directions and lines by token and column are those of the others. Truth: lstsq."""
    draw = np.random.default_rng(6)
    train = held(draw.standard_normal((30, 20)) + 1, dtype)
    infer = held(train * 1.5 + 0.1 * draw.standard_normal((30, 20)), dtype)
    strange = draw.random((30, 20)) < 0.2
    broken = [np.where(strange & (draw.random((30, 20)) < 0.6), value, side) for side, value in ((train, np.inf), (infer, np.nan))]
    kept = np.isfinite(broken[0]) & np.isfinite(broken[1])
    sides = [
        of_bits(np.where(np.isnan(side), 0x7FC0, bf16(np.nan_to_num(side, posinf=np.inf))), dtype)
        if dtype == "bfloat16"
        else of(side, dtype)
        for side in broken
    ]
    result = compared(tmp_path, *sides)
    a, b = train[kept], infer[kept]
    d = b - a
    assert result.status == "NONFINITE"
    assert (result.mean_abs_diff, result.rms_diff) == (
        pytest.approx(np.abs(d).mean(), rel=1e-11),
        pytest.approx((d * d).mean() ** 0.5, rel=1e-11),
    )
    assert result.norm_ratio == pytest.approx(np.linalg.norm(b) / np.linalg.norm(a), rel=1e-11)
    assert result.direction is not None
    assert result.direction.smaller == np.count_nonzero(np.abs(a) < np.abs(b))
    assert result.gain is not None
    assert result.gain.whole is not None
    assert result.gain.whole.scale == pytest.approx(np.linalg.lstsq(np.c_[a, np.ones(len(a))], b, rcond=None)[0][0], rel=1e-9)
    for axis, found in ((0, result.gain.token), (1, result.gain.column)):
        assert found is not None
        assert found.beyond_count > 0
        for at, scale, _ in found.beyond:
            x, y = (np.take(side, at, axis)[np.take(kept, at, axis)] for side in (train, infer))
            assert scale == pytest.approx(np.linalg.lstsq(np.c_[x, np.ones(len(x))], y, rcond=None)[0][0], rel=1e-7)


def test_d16_no_violation_is_not_no_difference(tmp_path: Path) -> None:
    """Case D16: one element in ten thousand is identical and all others are off by half a step of bfloat16. Catches a largest
    difference that starts at 0 and only looks at what exceeds a tolerance: share and size are over all elements, and not EXACT."""
    train = np.random.default_rng(16).standard_normal((100, 100)).astype("<f4")
    infer = train * np.float32(1 + 2**-9)
    infer[50, 50] = train[50, 50]
    found = compared(tmp_path, of(train), of(infer))
    assert found.status == "NOT_EXACT"
    assert found.unequal is not None
    assert (found.unequal.count, found.unequal.share) == (9999, 0.9999)
    apart = np.abs(infer.astype("f8") - train.astype("f8"))
    assert found.max_abs_diff == apart.max()
    assert found.mean_abs_diff == pytest.approx(apart.mean(), rel=1e-12)
