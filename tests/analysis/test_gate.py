"""The exact gate: each status, which one counts where several hold, and what the result says beside it."""

import json
import math
from pathlib import Path
from typing import Any

import dumping
import numpy as np
import pytest
from dump_analysis import gate
from dump_analysis.artefacts.boundary_results import BoundaryResult, SidesCount, SidesDtype, SidesShape
from dump_analysis.artefacts.semantic_mapping import MissingRow
from dump_analysis.wording import word
from dumping import compared, compared_all, cut, of, of_bits, output_of, outputs, row_of, side_of
from msprobe_files.errors import DumpError
from running import run_command

NAN, INF = math.nan, math.inf


def count_of(result: BoundaryResult) -> int | None:
    return result.unequal.count if result.unequal else None


# --- each status ---


@pytest.mark.parametrize("dtype", dumping.DTYPES)
def test_equal_bytes_are_exact(tmp_path: Path, dtype: str) -> None:
    """In every format; five elements, so that their bytes are not always a multiple of eight."""
    raw = np.array([0, 1, 2, 1, 0]).astype(dumping.DTYPES[dtype][0])
    raw = raw & 1 if dtype == "bool" else raw
    result = compared(tmp_path, of_bits(raw, dtype), of_bits(raw.copy(), dtype))
    assert (result.status, result.shape, count_of(result), result.max_abs_diff) == ("EXACT", [5], 0, 0.0)
    assert result.dtype == SidesDtype(dtype, dtype)
    assert result.reason is None


@pytest.mark.parametrize("dtype", dumping.DTYPES)
def test_one_element_that_differs_is_not_exact(tmp_path: Path, dtype: str) -> None:
    """In every format, at the last of five elements."""
    raw = np.array([0, 1, 1, 1, 0]).astype(dumping.DTYPES[dtype][0])
    other = raw.copy()
    other[4] = 1
    result = compared(tmp_path, of_bits(raw, dtype), of_bits(other, dtype))
    assert (result.status, count_of(result)) == ("NOT_EXACT", 1)
    assert result.unequal is not None
    assert result.unequal.share == 0.2


def test_the_largest_difference_is_that_of_the_numbers(tmp_path: Path) -> None:
    result = compared(tmp_path, of([1.0, -2.0, 5.0], "bfloat16"), of([1.0, 2.0, 5.5], "bfloat16"))
    assert (result.status, count_of(result), result.max_abs_diff) == ("NOT_EXACT", 2, 4.0)


def test_another_shape(tmp_path: Path) -> None:
    """The same bytes as 2 by 3 and 3 by 2: both shapes are told, nothing is counted."""
    result = compared(tmp_path, of(np.zeros((2, 3))), of(np.zeros((3, 2))))
    assert (result.status, result.shape) == ("SHAPE_DIFF", SidesShape([2, 3], [3, 2]))
    assert (result.unequal, result.special, result.max_abs_diff) == (None, None, None)


def test_an_axis_of_size_one_is_a_shape(tmp_path: Path) -> None:
    """Not squeezed in silence as numpy and other comparators do: only ops change a shape."""
    assert compared(tmp_path, of(np.zeros((1, 3))), of(np.zeros(3))).status == "SHAPE_DIFF"
    assert compared(tmp_path, of(np.zeros((1, 3))), of(np.zeros((3, 1)))).status == "SHAPE_DIFF"
    assert compared(tmp_path, of(3.0), of([3.0])).status == "SHAPE_DIFF"


def test_scalars_are_compared(tmp_path: Path) -> None:
    assert compared(tmp_path, of(3.0), of(3.0)).status == "EXACT"
    result = compared(tmp_path, of(3.0), of(4.0))
    assert (result.status, result.shape, count_of(result), result.max_abs_diff) == ("NOT_EXACT", [], 1, 1.0)


@pytest.mark.parametrize(
    ("train", "infer", "unequal", "largest"),
    [
        (of([1.0, 2.0], "bfloat16"), of([1.0, 2.0], "float32"), 0, 0.0),
        (of([1.0, 2.0], "bfloat16"), of([1.0, 2.25], "float32"), 1, 0.25),
        (of([1.0, 2.0], "float16"), of([1.0, 2.0], "bfloat16"), 0, 0.0),
        (of([1.0, 1.0 + 2**-40], "float64"), of([1.0, 1.0], "float32"), 1, 2.0**-40),
        (of_bits(np.array([0x38, 0x7E], "u1"), "float8_e4m3fn"), of([1.0, 448.0], "bfloat16"), 0, 0.0),
        (of_bits(np.array([0x38], "u1"), "float8_e4m3fn"), of_bits(np.array([0x3C], "u1"), "float8_e5m2"), 0, 0.0),
        (of([1, 2], "int64"), of([1.0, 2.5], "float32"), 1, 0.5),
        (of([1 + 2j], "complex64"), of([1 + 2j], "complex128"), 0, 0.0),
        (of([1, 0], "bool"), of([1.0, 0.0], "float16"), 0, 0.0),
    ],
)
def test_another_dtype_is_told_and_values_are_compared_all_the_same(
    tmp_path: Path, train: dumping.Tensor, infer: dumping.Tensor, unequal: int, largest: float
) -> None:
    result = compared(tmp_path, train, infer)
    assert (result.status, count_of(result), result.max_abs_diff) == ("DTYPE_DIFF", unequal, largest)
    assert result.dtype == SidesDtype(train.dtype, infer.dtype)


def test_integers_against_floats_are_compared_exactly(tmp_path: Path) -> None:
    """2**53 + 1 is no float64: catches a comparison that rounds the integer first."""
    result = compared(tmp_path, of([2**53 + 1, 2**53], "int64"), of([2.0**53, 2.0**53], "float64"))
    assert (result.status, count_of(result), result.max_abs_diff) == ("DTYPE_DIFF", 1, 1.0)


# --- integers ---


@pytest.mark.parametrize(
    ("left", "right", "a", "b", "unequal", "largest"),
    [
        ("int32", "int64", [7, -7, 2**31 - 1], [7, -7, 2**31 - 1], 0, 0.0),
        ("int32", "int64", [2**24, 2**24 + 1], [2**24, 2**24], 1, 1.0),
        ("int64", "int64", [2**24, 2**24 + 1], [2**24 + 1, 2**24 + 1], 1, 1.0),
        ("int64", "int64", [2**53, 2**62 + 1], [2**53 + 1, 2**62], 2, 1.0),
        ("int64", "int64", [2**63 - 1], [-(2**63)], 1, 2.0**64),
        ("uint64", "int64", [2**63 - 1, 5], [2**63 - 1, 5], 0, 0.0),
        ("uint64", "int64", [2**64 - 1], [-1], 1, 2.0**64),
        ("uint64", "int64", [2**63 + 1], [2**63 - 1], 1, 2.0),
        ("uint64", "uint64", [2**64 - 1, 2**63], [2**64 - 2, 2**63], 1, 1.0),
        ("uint8", "int8", [200, 5], [-56, 5], 1, 256.0),
        ("uint8", "int64", [255, 0], [255, 0], 0, 0.0),
        ("uint16", "int32", [65535], [-1], 1, 65536.0),
        ("bool", "int64", [1, 0], [1, 0], 0, 0.0),
        ("bool", "uint8", [1, 0], [1, 2], 1, 2.0),
        ("bool", "bool", [1, 0, 1], [1, 1, 0], 2, 1.0),
    ],
)
def test_integers_are_compared_by_value(
    tmp_path: Path, left: str, right: str, a: list[int], b: list[int], unequal: int, largest: float
) -> None:
    """Their width is no difference; beyond 2**24 and 2**53 no float comes in between; the sign bit is no value bit."""
    result = compared(tmp_path, of(a, left), of(b, right))
    assert (result.status, count_of(result), result.max_abs_diff) == ("NOT_EXACT" if unequal else "EXACT", unequal, largest)
    assert result.dtype == SidesDtype(left, right)


# --- zeros, NaN, infinities ---


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "bfloat16"])
def test_zeros_of_opposite_sign_are_equal_and_counted(tmp_path: Path, dtype: str) -> None:
    """As torch.equal has it: the bytes differ, the numbers do not; it must be said."""
    result = compared(tmp_path, of([0.0, -0.0, 0.0, 1.0], dtype), of([-0.0, 0.0, 0.0, 1.0], dtype))
    assert (result.status, count_of(result), result.max_abs_diff) == ("EXACT", 0, 0.0)
    assert result.special is not None
    assert result.special.zero_sign == 2


def test_zeros_of_opposite_sign_in_two_formats_and_in_complex_parts(tmp_path: Path) -> None:
    """An element counts once, whichever of its parts is meant."""
    pairs: list[tuple[dumping.Tensor, dumping.Tensor]] = [
        (of([0.0, 1.0], "bfloat16"), of([-0.0, 1.0], "float32")),
        (of_bits(np.array([0x80, 0x38], "u1"), "float8_e4m3fn"), of_bits(np.array([0x00, 0x38], "u1"), "float8_e4m3fn")),
    ]
    zero = np.array([0.0, -0.0])
    for dtype in ("complex64", "complex128"):
        left, right = (np.zeros(2, dumping.DTYPES[dtype][0]) for _ in range(2))
        left.imag, right.imag = zero, zero[::-1]
        pairs.append((of_bits(left[:1], dtype), of_bits(right[:1], dtype)))
    for train, infer in pairs:
        special = compared(tmp_path, train, infer).special
        assert special is not None
        assert special.zero_sign == 1, train.dtype


def test_nan_on_both_sides_is_not_called_equal(tmp_path: Path) -> None:
    """Equal bytes, the same place: NONFINITE, said apart from the elements that differ."""
    result = compared(tmp_path, of([1.0, NAN, 2.0, NAN]), of([1.0, NAN, 2.0, NAN]))
    assert result.status == "NONFINITE"
    assert result.special is not None
    assert (result.special.nonfinite, result.special.nan_both, count_of(result)) == (SidesCount(2, 2), 2, 0)
    assert result.reason is not None
    assert (result.reason.kind, result.reason.values["index"]) == ("nonfinite_found", 1)
    assert (
        result.reason.text == "non-finite elements: 2 on train, 2 on infer; the first is element 1, on both sides; 2 are NaN on both sides"
    )


def test_nan_of_another_payload_is_the_same_nan(tmp_path: Path) -> None:
    raw = np.array([0x7FC0, 0xFFC1, 0x3F80], "<u2")
    other = np.array([0x7FC1, 0x7FC2, 0x3F80], "<u2")
    result = compared(tmp_path, of_bits(raw, "bfloat16"), of_bits(other, "bfloat16"))
    assert result.special is not None
    assert (result.status, result.special.nan_both, count_of(result)) == ("NONFINITE", 2, 0)


@pytest.mark.parametrize("side", ["train", "infer"])
def test_nan_on_one_side_names_side_and_place(tmp_path: Path, side: str) -> None:
    clean, bad = of([1.0, 2.0, 3.0]), of([1.0, 2.0, NAN])
    result = compared(tmp_path, *((bad, clean) if side == "train" else (clean, bad)))
    assert result.status == "NONFINITE"
    assert result.special is not None
    assert result.special.nonfinite == (SidesCount(1, 0) if side == "train" else SidesCount(0, 1))
    assert (result.special.nan_both, count_of(result), result.max_abs_diff) == (0, 1, 0.0)
    assert result.reason is not None
    assert (result.reason.values["first"], result.reason.values["index"]) == (side, 2)


def test_equal_infinities_are_compared_like_numbers_and_noted(tmp_path: Path) -> None:
    """A masked logit is −inf on both sides: EXACT, but counted and said."""
    result = compared(tmp_path, of([-INF, 1.0, -INF], "bfloat16"), of([-INF, 1.0, -INF], "bfloat16"))
    assert (result.status, count_of(result), result.max_abs_diff) == ("EXACT", 0, 0.0)
    assert result.special is not None
    assert result.special.nonfinite == SidesCount(2, 2)
    assert result.reason is not None
    assert (result.reason.kind, result.reason.values["n"]) == ("equal_infinities", 2)


def test_equal_infinities_beside_a_difference(tmp_path: Path) -> None:
    """The largest difference is that of the finite pair, not inf − inf."""
    result = compared(tmp_path, of([-INF, 1.0, INF]), of([-INF, 1.5, INF]))
    assert (result.status, count_of(result), result.max_abs_diff) == ("NOT_EXACT", 1, 0.5)


@pytest.mark.parametrize(("a", "b"), [(INF, -INF), (INF, 1.0), (1.0, -INF), (INF, NAN)])
def test_infinities_that_differ(tmp_path: Path, a: float, b: float) -> None:
    """+inf against −inf passes in comparators that look at places only."""
    result = compared(tmp_path, of([5.0, a]), of([5.0, b]))
    assert (result.status, count_of(result), result.max_abs_diff) == ("NONFINITE", 1, 0.0)
    assert result.special is not None
    assert result.special.nonfinite == SidesCount(int(not math.isfinite(a)), int(not math.isfinite(b)))


def test_nonfinite_in_every_format_that_has_it(tmp_path: Path) -> None:
    """NaN of formats without infinity (and infinity of float8_e5m2) on the infer side alone."""
    codes = {"float8_e4m3fn": 0x7F, "float8_e5m2": 0x7C, "float8_e4m3fnuz": 0x80, "float8_e5m2fnuz": 0x80, "float8_e8m0fnu": 0xFF}
    for dtype, code in codes.items():
        clean, bad = np.array([1, 2, 3], "u1"), np.array([1, 2, code], "u1")
        result = compared(tmp_path, of_bits(clean, dtype), of_bits(bad, dtype))
        assert (result.status, count_of(result)) == ("NONFINITE", 1), dtype


def test_the_first_nonfinite_element_of_a_large_tensor(tmp_path: Path) -> None:
    """Counted over blocks, numbered over the whole."""
    left, right = np.zeros(500_000, "<f4"), np.zeros(500_000, "<f4")
    left[[400_001, 499_999]] = NAN
    right[[399_999, 499_999]] = [INF, NAN]
    result = compared(tmp_path, of(left), of(right))
    assert result.special is not None
    assert (result.special.nonfinite, result.special.nan_both, count_of(result)) == (SidesCount(2, 2), 1, 2)
    assert result.reason is not None
    assert (result.reason.values["index"], result.reason.values["first"]) == (399_999, "infer")


def test_signalling_nans_are_compared_without_a_warning(tmp_path: Path) -> None:
    """Memory that was never written: numpy's warnings must not reach the terminal."""
    for dtype, code in (("bfloat16", 0x7F81), ("float16", 0x7C01), ("float32", 0x7F800001)):
        raw = np.array([code, 1], dumping.DTYPES[dtype][0])
        assert compared(tmp_path, of_bits(raw, dtype), of_bits(raw ^ 1, dtype)).status == "NONFINITE"
        assert compared(tmp_path, of_bits(raw, dtype), of([0.0, 1.0], "float64")).status == "NONFINITE"


# --- complex ---


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_complex_elements_count_once(tmp_path: Path, dtype: str) -> None:
    """Both parts of one element differ, the imaginary part of another: two elements, the distance in the plane."""
    result = compared(tmp_path, of([1 + 1j, 0j, 5j], dtype), of([4 + 5j, 1j, 5j], dtype))
    assert (result.status, result.shape, count_of(result)) == ("NOT_EXACT", [3], 2)
    assert result.max_abs_diff == 5.0


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_complex_nan_in_either_part(tmp_path: Path, dtype: str) -> None:
    clean = [1j, 2j, 3j, 4j]
    result = compared(tmp_path, of(clean, dtype), of([1j, complex(NAN, 2), complex(0, NAN), 4j], dtype))
    assert result.special is not None
    assert (result.status, result.special.nonfinite, count_of(result)) == ("NONFINITE", SidesCount(0, 2), 2)


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_complex_infinities(tmp_path: Path, dtype: str) -> None:
    numbers = [complex(INF, 1), 2j]
    assert compared(tmp_path, of(numbers, dtype), of(numbers, dtype)).status == "EXACT"
    assert compared(tmp_path, of(numbers, dtype), of([complex(-INF, 1), 2j], dtype)).status == "NONFINITE"


# --- which of several counts ---


def test_the_order_of_precedence(tmp_path: Path) -> None:
    """MISSING, SHAPE_DIFF, NONFINITE, DTYPE_DIFF, NOT_EXACT: each pair holds all that comes after its own."""
    plain = of([1.0, 2.0])
    cases = {
        "SHAPE_DIFF": (plain, of([NAN, 2.0, 3.0], "bfloat16")),
        "NONFINITE": (plain, of([NAN, 3.0], "bfloat16")),
        "DTYPE_DIFF": (plain, of([1.0, 3.0], "bfloat16")),
        "NOT_EXACT": (plain, of([1.0, 3.0])),
        "EXACT": (plain, of([1.0, 2.0])),
    }
    for status, (train, infer) in cases.items():
        assert compared(tmp_path, train, infer).status == status
    rows = [row_of("a", 0, infer=cut("a", {"op": "squeeze", "axis": 0}))]
    assert compared_all(tmp_path, {"a": plain}, {"a": of([NAN, 2.0, 3.0], "bfloat16")}, rows)[0].status == "MISSING"


def test_infinities_of_two_formats_are_no_nonfinite_difference(tmp_path: Path) -> None:
    assert compared(tmp_path, of([INF, 1.0], "bfloat16"), of([INF, 1.0])).status == "DTYPE_DIFF"


# --- dtypes that disagree within a side, casts ---


def test_b07_the_json_says_the_dtype_and_the_file_another(tmp_path: Path) -> None:
    """B07: no DTYPE_DIFF where both JSONs agree; values are compared exactly; one note a side."""
    same, apart = of([1.0, 2.0], "float32", recorded="bfloat16"), of([1.0, 2.0 + 2**-20], "float32", recorded="bfloat16")
    plain = of([1.0, 2.0], "bfloat16")
    train, infer = (
        side_of(tmp_path, "train", outputs({"a": plain, "b": plain})),
        side_of(tmp_path, "infer", outputs({"a": same, "b": apart})),
    )
    results, notes = gate.compare([row_of("a", 0), row_of("b", 1)], [], train, infer)
    assert [(result.status, count_of(result)) for result in results] == [("EXACT", 0), ("NOT_EXACT", 1)]
    assert results[1].max_abs_diff == 2.0**-20
    assert {result.dtype for result in results} == {SidesDtype("bfloat16", "bfloat16")}
    assert [(note.kind, note.values["side"], note.values["n"]) for note in notes] == [("dtype_in_file", "infer", 2)]
    assert (notes[0].values["name"], notes[0].values["recorded"], notes[0].values["stored"]) == (output_of("a"), "bfloat16", "float32")


def test_b07_noted_once_for_each_side(tmp_path: Path) -> None:
    odd = {name: of([1.0], "float32", recorded="bfloat16") for name in "abc"}
    train, infer = side_of(tmp_path, "train", outputs(odd)), side_of(tmp_path, "infer", outputs(odd))
    _, notes = gate.compare([row_of(name, at) for at, name in enumerate("abc")], [], train, infer)
    assert [(note.values["side"], note.values["n"]) for note in notes] == [("train", 3), ("infer", 3)]


def test_b07_the_json_decides_where_the_files_agree(tmp_path: Path) -> None:
    """Both files hold float32; one JSON says bfloat16: a DTYPE_DIFF, by the JSONs."""
    result = compared(tmp_path, of([1.0], "float32", recorded="bfloat16"), of([1.0], "float32"))
    assert (result.status, count_of(result)) == ("DTYPE_DIFF", 0)


def test_without_a_dump_json_the_files_say_the_dtype(tmp_path: Path) -> None:
    from dump_analysis import sides

    unit = dumping.write_unit(tmp_path / "files", outputs({"a": of([1.0], "bfloat16")}), listed=False)
    train, infer = sides.open_side("train", [str(unit)]), side_of(tmp_path, "infer", outputs({"a": of([1.0])}))
    results, notes = gate.compare([row_of("a", 0)], [], train, infer)
    assert (results[0].status, results[0].dtype, notes) == ("DTYPE_DIFF", SidesDtype("bfloat16", "float32"), [])


def test_a_cast_brings_the_dtypes_together_and_stays_visible(tmp_path: Path) -> None:
    """1 + 2**-20 is rounded to bfloat16 by the row: EXACT, with the dtypes before the cast and the op in the result."""
    rows = [row_of("a", 0, train=cut("a", {"op": "cast", "dtype": "bfloat16"}))]
    (result,) = compared_all(tmp_path, {"a": of([1.0 + 2**-20, 2.0])}, {"a": of([1.0, 2.0], "bfloat16")}, rows)
    assert (result.status, result.dtype) == ("EXACT", SidesDtype("float32", "bfloat16"))
    assert result.ops_applied is not None
    assert [op.op for op in result.ops_applied.train.sources[0].steps or ()] == ["cast"]


def test_a_cast_can_part_the_dtypes(tmp_path: Path) -> None:
    rows = [row_of("a", 0, train=cut("a", {"op": "cast", "dtype": "float32"}))]
    (result,) = compared_all(tmp_path, {"a": of([1.0], "bfloat16")}, {"a": of([1.0], "bfloat16")}, rows)
    assert (result.status, count_of(result)) == ("DTYPE_DIFF", 0)


def test_a_cast_that_overflows_or_loses_nan_warns_nobody(tmp_path: Path) -> None:
    rows = [row_of("a", 0, train=cut("a", {"op": "cast", "dtype": "float16"}))]
    (result,) = compared_all(tmp_path, {"a": of([1e30, 1.0])}, {"a": of([INF, 1.0], "float16")}, rows)
    assert (result.status, count_of(result)) == ("EXACT", 0)


# --- gaps ---


def test_a_tensor_that_no_dump_names_is_missing(tmp_path: Path) -> None:
    """On either side; the reason names the side and the tensor, the operands stand in the result."""
    for side, names in (("infer", ("a", "b")), ("train", ("b", "a"))):
        rows = [row_of("x", 0, output_of("a"), output_of("a"))]
        (result,) = compared_all(tmp_path / side, {names[0]: of([1.0])}, {names[1]: of([1.0])}, rows)
        assert result.status == "MISSING"
        assert result.reason is not None
        assert (result.reason.kind, result.reason.values) == ("tensor_missing", {"side": side, "name": output_of("a")})
        assert result.ops_applied is not None
        assert (result.unequal, result.max_abs_diff) == (None, None)


def test_ops_that_do_not_fit_are_missing_with_the_op(tmp_path: Path) -> None:
    """One wrong row must not end the comparison."""
    wrong = row_of("a", 0, train=cut("a", {"op": "slice", "axis": 0, "stop": 9}))
    results = compared_all(tmp_path, {"a": of([1.0]), "b": of([1.0])}, {"a": of([1.0]), "b": of([1.0])}, [wrong, row_of("b", 1)])
    assert [result.status for result in results] == ["MISSING", "EXACT"]
    assert results[0].reason is not None
    assert results[0].reason.values["where"] == "sources[0].steps[0]"


@pytest.mark.parametrize(
    "ops",
    [
        [{"op": "permute", "axes": [2, 1]}],
        [{"op": "slice", "axis": 0, "start": 1, "stop": 1}],
        [{"op": "take", "axis": 1, "index": []}],
        [{"op": "slice", "axis": 0, "start": 2}, {"op": "reshape", "shape": [0, 5]}],
    ],
    ids=["permute", "slice", "take", "reshape"],
)
def test_a_row_that_leaves_nothing_to_compare_is_never_exact(tmp_path: Path, ops: list[dict[str, Any]]) -> None:
    """Nor a crash: an empty cut, or axes that are not there, on both sides."""
    tensor = of([[1.0, 2.0], [3.0, 4.0]])
    rows = [row_of("a", 0, cut("a", *ops), cut("a", *ops)), row_of("b", 1)]
    results = compared_all(tmp_path, {"a": tensor, "b": tensor}, {"a": tensor, "b": tensor}, rows)
    assert results[0].status in ("MISSING", "evidence_missing")
    assert results[0].reason is not None
    assert results[1].status == "EXACT"


@pytest.mark.parametrize("dtype", ["float8_e4m3fn", "complex64", "complex128"])
def test_a_value_op_on_a_format_that_has_none_ends_its_row_only(tmp_path: Path, dtype: str) -> None:
    """A sum of float8 outputs, an add to complex ones: never a traceback."""
    tensor = of_bits(np.ones(4, dumping.DTYPES[dtype][0]), dtype)
    twice = {"sources": [{"name": output_of("a")}, {"name": output_of("a")}], "combine": "sum"}
    add = cut("a", {"op": "add", "value": 1.0})
    rows = [row_of("s", 0, twice, twice), row_of("p", 1, add, add), row_of("b", 2)]
    results = compared_all(tmp_path, {"a": tensor, "b": tensor}, {"a": tensor, "b": tensor}, rows)
    assert [result.status for result in results] == ["MISSING", "MISSING", "EXACT"]


def test_statistics_without_a_tensor_prove_nothing(tmp_path: Path) -> None:
    """Equal statistics on both sides: evidence_missing, never EXACT."""
    told = dumping.record_of(of([1.0, 2.0]))
    results = compared_all(tmp_path, {"a": told}, {"a": told})
    assert results[0].status == "evidence_missing"
    assert results[0].reason is not None
    assert results[0].reason.kind == "statistics_only_tensor"


def test_a_tensor_without_elements_proves_nothing(tmp_path: Path) -> None:
    """Recorded without a file, and saved empty."""
    empty = of(np.zeros((0, 4)))
    for item in (empty, dumping.record_of(empty)):
        results = compared_all(tmp_path, {"a": item}, {"a": item})
        assert results[0].status == "evidence_missing"
        assert results[0].reason is not None
        assert results[0].reason.kind == "no_elements"


def test_what_the_mapping_calls_missing_keeps_its_reason(tmp_path: Path) -> None:
    """The rows of both kinds come in one order."""
    reason = word("sum_nothing")
    train, infer = side_of(tmp_path, "train", outputs({"a": of([1.0])})), side_of(tmp_path, "infer", outputs({"a": of([1.0])}))
    results, _ = gate.compare(
        [row_of("a", 1)], [MissingRow("early", 0, reason, [], []), MissingRow("late", 2, reason, [], [])], train, infer
    )
    assert [(result.boundary, result.status) for result in results] == [
        ("early", "evidence_missing"),
        ("a", "EXACT"),
        ("late", "evidence_missing"),
    ]
    assert results[0].reason == reason


def norm(bits: "np.ndarray[Any, Any]", before: bool) -> dumping.Entries:
    """A fused add + norm that works in place, whose two inputs were recorded before or after it ran."""
    done = [of_bits(bits, "bfloat16"), of_bits(bits + 1, "bfloat16")]
    first = [of_bits(bits[::-1], "bfloat16")] * 2 if before else done
    return {"Module.norm.RMSNorm.forward.0": {"input": first, "output": done, "parameters": {"weight": of([1.0])}}}


@pytest.mark.parametrize(("before", "status"), [(False, "evidence_missing"), (True, "EXACT")])
def test_an_input_that_its_module_had_overwritten_is_no_input(tmp_path: Path, before: bool, status: str) -> None:
    """msprobe before 26.2 records inputs after the call: a norm that works in place shows its result there."""
    bits = np.arange(0x3F80, 0x3FA0, 2).astype("<u2")
    train, infer = (
        side_of(tmp_path, "train", norm(bits, before)),
        side_of(tmp_path, "infer", norm(bits, True) if before else norm(bits, False)),
    )
    name = "Module.norm.RMSNorm.forward.0.{}.0"
    rows = [row_of(kind, at, name.format(kind), name.format(kind)) for at, kind in enumerate(("input", "output"))]
    results, _ = gate.compare(rows, [], train, infer)
    assert [result.status for result in results] == [status, "EXACT"]


# --- many rows ---


def test_results_come_in_the_order_of_the_mapping(tmp_path: Path) -> None:
    """Whatever the order of the rows, of the files they share, and of the gaps between them."""
    tensors = {f"t{at}": of([[float(at)] * 2] * 3) for at in range(7)}
    rows = [row_of(f"b{at}", at, output_of(f"t{at % 9}"), output_of(f"t{at % 9}")) for at in range(40)]
    shuffled = [rows[at] for at in np.random.default_rng(2).permutation(40)]
    results = compared_all(tmp_path, tensors, tensors, shuffled)
    assert [result.boundary for result in results] == [f"b{at}" for at in range(40)]
    assert [result.status for result in results] == ["EXACT" if at % 9 < 7 else "MISSING" for at in range(40)]


def test_sixty_rows_of_one_fused_file(tmp_path: Path) -> None:
    """More than are walked in step at once; one differs, at its last element."""
    whole = np.arange(300 * 120, dtype="<f4").reshape(300, 120)
    other = whole.copy()
    other[299, 2 * 41 + 1] = -1.0
    parts = [cut("all", {"op": "slice", "axis": 1, "start": 2 * at, "stop": 2 * at + 2}) for at in range(60)]
    rows = [row_of(f"b{at}", at, part, part) for at, part in enumerate(parts)]
    results = compared_all(tmp_path, {"all": of(whole)}, {"all": of(other)}, rows)
    assert [result.boundary for result in results if result.status != "EXACT"] == ["b41"]
    assert count_of(results[41]) == 1
    assert results[41].max_abs_diff == float(whole[299, 83]) + 1.0


def test_every_row_is_reported_as_done_once(tmp_path: Path) -> None:
    """For the progress bar: compared, missing, unfit and of another shape alike."""
    done: list[int] = []
    train = side_of(tmp_path, "train", outputs({"a": of([1.0]), "b": of([1.0, 2.0])}))
    infer = side_of(tmp_path, "infer", outputs({"a": of([1.0]), "b": of([1.0])}))
    rows = [row_of("a", 0), row_of("b", 1), row_of("c", 2), row_of("d", 3, cut("a", {"op": "squeeze", "axis": 3}), output_of("a"))]
    gate.compare(rows, [], train, infer, advance=lambda: done.append(1))
    assert len(done) == 4


def test_b12_a_truncated_file_costs_its_own_rows_only(tmp_path: Path) -> None:
    """B12: cut anywhere, whatever the zip reader finds there; never a traceback, never EXACT."""
    whole = {name: of(np.arange(16, dtype="<f4")) for name in "ab"}
    train, infer = side_of(tmp_path, "train", outputs(whole)), side_of(tmp_path, "infer", outputs(whole))
    path = tmp_path / "infer/step0/rank0/dump_tensor_data" / f"{output_of('a')}.pt"
    complete = path.read_bytes()
    for size in range(0, len(complete), 7):
        path.write_bytes(complete[:size])
        results, _ = gate.compare([row_of("a", 0), row_of("b", 1)], [], train, infer)
        assert [result.status for result in results] == ["MISSING", "EXACT"], size
        assert results[0].reason is not None
        assert path.name in results[0].reason.text
        assert str(tmp_path) not in results[0].reason.text


def test_a_file_that_is_gone_is_missing(tmp_path: Path) -> None:
    train, infer = side_of(tmp_path, "train", outputs({"a": of([1.0])})), side_of(tmp_path, "infer", outputs({"a": of([1.0])}))
    (tmp_path / "train/step0/rank0/dump_tensor_data" / f"{output_of('a')}.pt").unlink()
    results, _ = gate.compare([row_of("a", 0)], [], train, infer)
    assert results[0].status == "MISSING"


def test_a_glob_of_two_tensors_is_refused(tmp_path: Path) -> None:
    """Not the first of them, in silence."""
    with pytest.raises(DumpError, match="matches 2 tensors of train"):
        compared_all(tmp_path, {"a": of([1.0]), "b": of([1.0])}, {"a": of([1.0])}, [row_of("a", 0, train="Module.*.output.0")])


def test_a_file_that_shrinks_while_it_is_compared_is_missing(tmp_path: Path) -> None:
    """After its header was read, here when the first row is reported as done."""
    train, infer = side_of(tmp_path, "train", outputs({"a": of([1.0] * 64)})), side_of(tmp_path, "infer", outputs({"a": of([1.0] * 64)}))
    path = tmp_path / "infer/step0/rank0/dump_tensor_data" / f"{output_of('a')}.pt"

    def shrink() -> None:
        path.write_bytes(path.read_bytes()[:300])

    results, _ = gate.compare([row_of("gone", 0), row_of("a", 1)], [], train, infer, advance=shrink)
    assert [result.status for result in results] == ["MISSING", "MISSING"]
    assert results[1].reason is not None
    assert path.name in results[1].reason.text


def test_zeros_belong_to_overrides_and_are_missing_here(tmp_path: Path) -> None:
    zeros = {"sources": [], "combine": "zeros"}
    (result,) = compared_all(tmp_path, {"a": of([0.0])}, {"a": of([0.0])}, [row_of("a", 0, zeros, output_of("a"))])
    assert result.status == "MISSING"
    assert result.reason is not None
    assert "zeros" in result.reason.text


def test_the_place_named_is_the_first_where_the_sides_differ(tmp_path: Path) -> None:
    """NaN on both sides at 0, an infinity on infer alone at 2: the second is what a reader must look at."""
    result = compared(tmp_path, of([NAN, 1.0, 2.0, NAN]), of([NAN, 1.0, INF, NAN]))
    assert result.reason is not None
    assert (result.reason.values["index"], result.reason.values["first"]) == (2, "infer")
    assert result.special is not None
    assert (result.special.nan_both, result.special.nonfinite) == (2, SidesCount(2, 3))


def test_b07_one_note_a_side_over_boundaries_and_weights(tmp_path: Path) -> None:
    """On the terminal: the two kinds of rows are compared one after the other."""
    odd = of([1.0, 2.0], "float32", recorded="bfloat16")
    entries = {"Module.a.M.forward.0": {"output": [odd], "parameters": {"weight": odd}}}
    sides_given = [dumping.write_unit(tmp_path / label, entries) for label in ("train", "infer")]
    names = ["Module.a.M.forward.0.output.0", "Module.a.M.forward.0.parameters.weight"]
    mapping = tmp_path / "m.json"
    mapping.write_text(json.dumps([{"boundary": name, "train": name, "infer": name} for name in names]))
    output = tmp_path / "out" / "r.json"
    ran = run_command(
        "analyze_dump_boundaries.py", "--train", sides_given[0], "--infer", sides_given[1], "--mapping", mapping, "--output", output
    )
    assert ran.returncode == 0, ran.stderr
    assert [ran.stderr.count(f"{side}: in ") for side in ("train", "infer")] == [1, 1]
    assert "2 tensors" in ran.stderr
