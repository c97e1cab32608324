"""Operands as streams: any chain of ops on any strided tensor, read in any pieces, equals numpy on the whole array."""

import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import dumping
import numpy as np
import pytest
from dump_analysis import tensors
from dumping import Tensor
from hypothesis import given, settings
from hypothesis import strategies as st
from msprobe_files import pt_archive
from msprobe_files.operands import OperandError, parse

Array = np.ndarray[Any, np.dtype[Any]]
Ops = list[dict[str, Any]]
many = settings(max_examples=250, deadline=None, derandomize=True)
RAWS = {"u1": "uint8", "<u2": "bfloat16", "<u4": "float32", "<u8": "float64", "<c16": "complex128"}
LARGEST = 300_000  # elements


@pytest.fixture(scope="module")
def place() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as folder:
        yield Path(folder)


def stream_on(place: Path, written: Sequence[Tensor], operand: Any) -> tuple[tensors.Files, tensors.Stream]:
    """The operand's stream over files of these tensors."""
    headers = [pt_archive.read_header(str(dumping.write_pt(place / f"{at}.pt", tensor))) for at, tensor in enumerate(written)]
    files = tensors.Files()
    return files, tensors.stream_of(files, parse(operand), headers)


def operand_of(ops: Ops) -> dict[str, Any]:
    return {"sources": [{"name": "a", "steps": ops}]}


def seen(tensor: Tensor) -> Array:
    """The tensor as numpy sees it: a strided view of its storage."""
    width = tensor.storage.itemsize
    strides = dumping.row_major(tensor.shape) if tensor.strides is None else tensor.strides
    return np.lib.stride_tricks.as_strided(tensor.storage[tensor.offset :], tensor.shape, [step * width for step in strides])


def applied(array: Array, op: dict[str, Any]) -> Array:
    """One op by numpy, on the whole array."""
    if op["op"] == "squeeze":
        return np.squeeze(array, op["axis"])
    if op["op"] == "slice":
        return np.take(array, range(array.shape[op["axis"]])[op.get("start") : op.get("stop")], op["axis"])
    if op["op"] == "take":
        index = op["index"] if "index" in op else [at for start, stop in op["runs"] for at in range(start, stop)]
        return np.take(array, np.array(index, int), op["axis"])
    return np.reshape(array, op["shape"]) if op["op"] == "reshape" else np.transpose(array, op["axes"])


def separable(offsets: Array) -> bool:
    """Whether each offset is a sum of one number an axis: what a layout of axes can hold."""
    total = offsets.reshape(-1)[0] if offsets.size else 0
    made = np.full(offsets.shape, total)
    for axis in range(offsets.ndim):
        line = np.moveaxis(offsets, axis, 0).reshape(offsets.shape[axis], -1)[:, 0] - total
        made = made + line.reshape([-1 if at == axis else 1 for at in range(offsets.ndim)])
    return np.array_equal(made, offsets)


# --- what is drawn ---


@st.composite
def strided(draw: st.DrawFn, large: bool = False) -> Tensor:
    """A tensor of up to four axes in a storage with gaps, other axis orders, an offset, and now and then a stride of 0."""
    sizes = st.sampled_from([1, 1, 2, 3, 4, 6] if not large else [1, 2, 3, 5, 64, 300, 40_000, 90_000])
    shape: list[int] = []
    for _ in range(draw(st.integers(1 if large else 0, 4))):
        size = draw(sizes)
        shape.append(size if np.prod(shape, dtype=int) * size <= LARGEST else 1)
    strides, step = [0] * len(shape), 1
    for axis in draw(st.permutations(range(len(shape)))) if draw(st.booleans()) else range(len(shape))[::-1]:
        gap = draw(st.sampled_from([0, 0, 0, 1, 3]))
        strides[axis] = 0 if gap == 3 and not large else step
        step = step * shape[axis] + (gap if gap < 3 else 0)
    offset = draw(st.sampled_from([0, 0, 1, 5]))
    reach = offset + 1 + sum((size - 1) * stride for size, stride in zip(shape, strides, strict=True))
    count = max(reach, int(np.prod(shape, dtype=int))) + draw(st.integers(0, 3))  # a storage smaller than its tensor is refused
    raw = draw(st.sampled_from(list(RAWS)))
    storage = np.frombuffer(np.random.default_rng(count).bytes(count * np.dtype(raw).itemsize), raw)
    return Tensor(storage, RAWS[raw], tuple(shape), tuple(strides), offset)


def one_op(draw: st.DrawFn, shape: tuple[int, ...]) -> dict[str, Any]:
    """An op that fits the shape; axes may be negative, a take may repeat, go backwards and count from the end."""
    ones = [axis for axis, size in enumerate(shape) if size == 1]
    kinds = ["reshape", "permute", *(["slice", "slice", "take"] if shape else []), *(["squeeze"] if ones else [])]
    kind = draw(st.sampled_from(kinds))
    if kind == "permute":
        return {"op": kind, "axes": draw(st.permutations(range(len(shape))))}
    if kind == "reshape":
        return {"op": kind, "shape": draw(new_shape(shape))}
    axis = draw(st.sampled_from(ones if kind == "squeeze" else range(len(shape))))
    size, named = shape[axis], axis - len(shape) * draw(st.booleans())
    if kind == "squeeze":
        return {"op": kind, "axis": named}
    start = draw(st.sampled_from([0, size - 1, min(1, size - 1)]) | st.integers(0, size - 1))
    stop = draw(st.sampled_from([start + 1, size]) | st.integers(start + 1, size))
    if kind == "slice":
        ends = {
            "start": draw(st.sampled_from([start, start - size])),
            "stop": stop if stop == size else draw(st.sampled_from([stop, stop - size])),
        }
        return {"op": kind, "axis": named, **{key: value for key, value in ends.items() if draw(st.integers(0, 4))}}
    if draw(st.booleans()):
        return {"op": kind, "axis": named, "runs": [[start, stop], *([[0, start]] if draw(st.booleans()) else [])]}
    return {"op": kind, "axis": named, "index": draw(st.lists(st.integers(-size, size - 1), min_size=1, max_size=7))}


@st.composite
def new_shape(draw: st.DrawFn, shape: tuple[int, ...]) -> list[int]:
    """Neighbours merged and axes split, at random; one size may be left to the reader."""
    sizes = [size for size in shape if size != 1 or draw(st.booleans())]
    for _ in range(draw(st.integers(0, 2))):
        at = draw(st.integers(0, len(sizes)))
        kind = draw(st.sampled_from(["merge", "split", "add"]))
        if kind == "merge" and at + 1 < len(sizes):
            sizes[at : at + 2] = [sizes[at] * sizes[at + 1]]
        elif kind == "split" and at < len(sizes):
            part = draw(st.sampled_from([part for part in (1, 2, 3, 4, 5, 10, 64) if sizes[at] % part == 0]))
            sizes[at : at + 1] = [sizes[at] // part, part]
        else:
            sizes.insert(at, 1)
    if sizes and draw(st.booleans()):
        sizes[draw(st.integers(0, len(sizes) - 1))] = -1
    return sizes


@st.composite
def chain(draw: st.DrawFn, shape: tuple[int, ...]) -> Ops:
    """Up to five ops, each fitting what the one before left."""
    ops: Ops = []
    array = np.empty(shape, "u1")
    for _ in range(draw(st.integers(0, 5))):
        op = one_op(draw, array.shape)
        after = applied(array, op)
        if after.size <= LARGEST:
            ops.append(op)
            array = after
    return ops


@st.composite
def pieces(draw: st.DrawFn, total: int) -> list[tuple[int, int]]:
    """Ranges of a flattened tensor: all of it, its ends, and some at random."""
    ends = st.integers(0, total - 1).flatmap(lambda start: st.tuples(st.just(start), st.integers(start + 1, total)))
    return [(0, total), (total - 1, total), *draw(st.lists(ends, max_size=4))]


def check(data: st.DataObject, place: Path, tensor: Tensor) -> None:
    """Draw a chain; the stream gives numpy's elements. It may refuse where no layout of axes can hold them, and only there."""
    ops = data.draw(chain(tensor.shape))
    wanted, followed = seen(tensor), True
    offsets = seen(tensor._replace(storage=np.arange(len(tensor.storage))))
    for op in ops:
        wanted, offsets = applied(wanted, op), applied(offsets, op)
        followed = followed and separable(offsets)
    try:
        files, stream = stream_on(place, [tensor], operand_of(ops))
    except OperandError:
        assert not followed
        return
    assert (stream.shape, stream.dtype) == (wanted.shape, tensor.dtype)
    flat = wanted.reshape(-1)
    for start, stop in data.draw(pieces(flat.size)):
        found = stream.read(start, stop)
        assert found.tobytes() == flat[start:stop].tobytes(), (start, stop)
    files.close()


def test_any_chain_on_a_small_tensor(place: Path) -> None:
    """Catches a lost offset, an exchanged axis, a wrong run of any op in any order. Truth: numpy on the whole array."""

    @settings(many, max_examples=1000)
    @given(st.data())
    def judge(data: st.DataObject) -> None:
        check(data, place, data.draw(strided()))

    judge()


def test_any_chain_on_a_tensor_larger_than_a_block(place: Path) -> None:
    """The same where rows are longer than a block, sparse reads are cut to pieces and offsets are not held as tables."""

    @settings(many, max_examples=300)
    @given(st.data())
    def judge(data: st.DataObject) -> None:
        check(data, place, data.draw(strided(large=True)))

    judge()


# --- by hand ---


def read_whole(place: Path, array: Array, *ops: dict[str, Any]) -> Array:
    """A uint8, int64 or float32 array written, cut and read."""
    dtype = {"u": "uint8", "i": "int64", "f": "float32"}[array.dtype.kind]
    files, stream = stream_on(place, [dumping.of(array, dtype)], operand_of(list(ops)))
    found = stream.read(0, int(np.prod(stream.shape, dtype=int)))
    files.close()
    return found.view(array.dtype).reshape(stream.shape)


def test_one_sequence_of_a_batch_without_its_first_tokens(place: Path) -> None:
    """Catches an offset of the batch axis that is lost where the rest of the cut is one long run."""
    array = np.arange(4 * 300 * 128, dtype=np.float32).reshape(4, 300, 128)
    ops = {"op": "slice", "axis": 0, "start": 2, "stop": 3}, {"op": "slice", "axis": 1, "start": 5}
    np.testing.assert_array_equal(read_whole(place, array, *ops), array[2:3, 5:])


def test_the_last_row_of_wide_rows(place: Path) -> None:
    """The logits of the last token, taken: catches the first row in its place."""
    array = np.arange(3 * 90_000, dtype=np.float32).reshape(3, 90_000)
    for op in (
        {"op": "take", "axis": 0, "index": [-1]},
        {"op": "slice", "axis": 0, "start": -1},
        {"op": "take", "axis": 0, "runs": [[2, 3]]},
    ):
        np.testing.assert_array_equal(read_whole(place, array, op), array[2:])


def test_an_axis_of_size_one_that_a_reshape_drops_keeps_its_place(place: Path) -> None:
    """Catches column 5 read as column 0."""
    array = np.arange(24).reshape(3, 8)
    ops = {"op": "slice", "axis": 1, "start": 5, "stop": 6}, {"op": "reshape", "shape": [3]}
    np.testing.assert_array_equal(read_whole(place, array, *ops), array[:, 5])
    np.testing.assert_array_equal(read_whole(place, array, *ops, {"op": "take", "axis": 0, "index": [2, 0]}), array[[2, 0], 5])
    ops = (
        {"op": "slice", "axis": 0, "start": 2, "stop": 3},
        {"op": "slice", "axis": 1, "start": 5, "stop": 6},
        {"op": "reshape", "shape": []},
    )
    assert read_whole(place, array, *ops) == array[2, 5]


def test_a_take_of_heads_is_split_and_merged(place: Path) -> None:
    """Every other head: regular along the axis, so that a split after the take can be followed."""
    array = np.arange(5 * 32, dtype=np.uint8).reshape(5, 32)
    ops = [{"op": "reshape", "shape": [5, 8, 4]}, {"op": "take", "axis": 1, "runs": [[0, 2], [4, 6]]}]
    wanted = array.reshape(5, 8, 4)[:, [0, 1, 4, 5]]
    np.testing.assert_array_equal(read_whole(place, array, *ops, {"op": "reshape", "shape": [5, 16]}), wanted.reshape(5, 16))
    np.testing.assert_array_equal(read_whole(place, array, *ops, {"op": "reshape", "shape": [5, 2, 2, -1]}), wanted.reshape(5, 2, 2, 4))


def test_a_reshape_that_cannot_be_followed_is_refused(place: Path) -> None:
    """Rows 0, 2, 3, 7 in twos, then turned: no two axes say that. Catches wrong data instead of an error that names the op."""
    ops = [{"op": "take", "axis": 0, "index": [0, 2, 3, 7]}, {"op": "reshape", "shape": [2, 2, 3]}, {"op": "permute", "axes": [1, 0, 2]}]
    with pytest.raises(OperandError, match=r"sources\[0\]\.steps\[1\].*reshape first"):
        read_whole(place, np.arange(24).reshape(8, 3), *ops)


@pytest.mark.parametrize(
    "op",
    [
        {"op": "squeeze", "axis": 0},
        {"op": "slice", "axis": 0, "start": 2, "stop": 4},
        {"op": "slice", "axis": 2, "start": 0, "stop": 1},
        {"op": "take", "axis": 1, "index": [4]},
        {"op": "take", "axis": 1, "index": [-5]},
        {"op": "reshape", "shape": [5, -1]},
        {"op": "reshape", "shape": [13]},
        {"op": "permute", "axes": [0]},
        {"op": "permute", "axes": [0, 0]},
        {"op": "permute", "axes": [2, 1]},
    ],
)
def test_an_op_that_does_not_fit_is_an_operand_error(place: Path, op: dict[str, Any]) -> None:
    """On 3 by 4: another exception would end the whole comparison for one wrong row."""
    with pytest.raises(OperandError, match=r"sources\[0\]\.steps\[0\]"):
        read_whole(place, np.arange(12).reshape(3, 4), op)


def test_the_error_names_the_op_that_does_not_fit(place: Path) -> None:
    with pytest.raises(OperandError) as caught:
        read_whole(place, np.arange(12).reshape(3, 4), {"op": "permute", "axes": [1, 0]}, {"op": "squeeze", "axis": 1})
    assert caught.value.where == "sources[0].steps[1]"


def test_negative_axes_permute_like_positive_ones(place: Path) -> None:
    array = np.arange(24).reshape(2, 3, 4)
    np.testing.assert_array_equal(read_whole(place, array, {"op": "permute", "axes": [-1, 0, -2]}), array.transpose(2, 0, 1))


# --- values that ops change ---


def test_cast_and_add_come_in_their_order(place: Path) -> None:
    """(x + 0.5) in bfloat16, cast to float32, + 2**-10: the first sum is rounded to 8 bits, the second is not."""
    files, stream = stream_on(
        place,
        [dumping.of([1.0, 256.0, -0.5], "bfloat16")],
        operand_of([{"op": "add", "value": 0.5}, {"op": "cast", "dtype": "float32"}, {"op": "add", "value": 2.0**-10}]),
    )
    assert stream.dtype == "float32"
    assert stream.read(0, 3).view("<f4").tolist() == [1.5 + 2.0**-10, 256.0 + 2.0**-10, 2.0**-10]
    files.close()


def test_a_cast_holds_for_a_part_of_a_cut_tensor(place: Path) -> None:
    array = np.arange(24, dtype=np.float32).reshape(4, 6)
    ops = [{"op": "cast", "dtype": "int32"}, {"op": "slice", "axis": 1, "start": 2, "stop": 4}, {"op": "permute", "axes": [1, 0]}]
    files, stream = stream_on(place, [dumping.of(array)], operand_of(ops))
    assert stream.dtype == "int32"
    assert stream.read(3, 6).tolist() == array[:, 2:4].T.reshape(-1)[3:6].tolist()
    files.close()


@pytest.mark.parametrize(
    ("dtype", "op"),
    [
        ("float32", {"op": "cast", "dtype": "complex64"}),
        ("float32", {"op": "cast", "dtype": "float8_e4m3fn"}),
        ("float32", {"op": "cast", "dtype": "float7"}),
        ("complex64", {"op": "cast", "dtype": "float32"}),
        ("complex128", {"op": "cast", "dtype": "bfloat16"}),
        ("complex64", {"op": "add", "value": 1.0}),
        ("complex128", {"op": "add", "value": 1.0}),
        ("float8_e4m3fn", {"op": "add", "value": 1.0}),
    ],
)
def test_a_value_op_that_is_not_done_here_is_refused(place: Path, dtype: str, op: dict[str, Any]) -> None:
    """Before anything is read: never bits taken for numbers, never an error that ends the whole comparison."""
    raw = np.ones(4, dumping.DTYPES[dtype][0])
    with pytest.raises(OperandError):
        stream_on(place, [dumping.of_bits(raw, dtype)], operand_of([op]))


@pytest.mark.parametrize("dtype", ["float8_e5m2", "complex64", "complex128"])
def test_a_sum_that_is_not_done_here_is_refused(place: Path, dtype: str) -> None:
    raw = np.ones(4, dumping.DTYPES[dtype][0])
    with pytest.raises(OperandError):
        stream_on(place, [dumping.of_bits(raw, dtype)] * 2, {"sources": [{"name": "a"}, {"name": "b"}], "combine": "sum"})


def test_a_float8_tensor_can_be_cast_and_then_added_to(place: Path) -> None:
    raw = np.array([0x38, 0xB8, 0x7E], "u1")  # 1, −1, 448
    files, stream = stream_on(
        place, [dumping.of_bits(raw, "float8_e4m3fn")], operand_of([{"op": "cast", "dtype": "bfloat16"}, {"op": "add", "value": 1.0}])
    )
    assert stream.read(0, 3).tolist() == dumping.bits([2.0, 0.0, 448.0], "bfloat16").tolist()  # 449 is a tie: to even
    files.close()


def test_an_addition_that_overflows_is_infinite_without_a_warning(place: Path) -> None:
    for dtype in ("float32", "bfloat16"):
        largest = {"float32": 3.0e38, "bfloat16": 2.0**127}[dtype]
        files, stream = stream_on(place, [dumping.of([largest, -1.0], dtype)], operand_of([{"op": "add", "value": largest}]))
        assert stream.read(0, 1).tolist() == dumping.bits([np.inf], dtype).tolist()
        files.close()


def test_integers_are_added_to_within_their_width(place: Path) -> None:
    files, stream = stream_on(place, [dumping.of([5, 250], "uint8")], operand_of([{"op": "add", "value": 1.0}]))
    assert stream.read(0, 2).tolist() == [6, 251]
    files.close()


@pytest.mark.parametrize(("dtype", "value"), [("int64", 0.5), ("uint8", -1.0), ("int8", 300.0), ("bool", 1.0)])
def test_a_number_that_the_integers_lack_is_not_added(place: Path, dtype: str, value: float) -> None:
    """Catches an addition of 0.5 that adds nothing, and one of −1 that adds 255."""
    with pytest.raises(OperandError, match=r"sources\[0\]\.steps\[0\]"):
        stream_on(place, [dumping.of([1, 0], dtype)], operand_of([{"op": "add", "value": value}]))


# --- several sources ---


def parts_of(draw: st.DrawFn, whole: Array, axis: int) -> list[Array]:
    cuts = sorted(draw(st.sets(st.integers(1, whole.shape[axis] - 1), max_size=3))) if whole.shape[axis] > 1 else []
    return np.split(whole, cuts, axis)


@pytest.mark.parametrize("sizes", [[1, 2, 3, 4], [1, 3, 150, 400]], ids=["small", "large"])
def test_sources_side_by_side_on_any_axis(place: Path, sizes: list[int]) -> None:
    """An array cut into pieces, some saved as views, is the array again. Catches order, widths, rows that a piece cuts."""

    @many
    @given(st.data())
    def judge(data: st.DataObject) -> None:
        shape: list[int] = []
        for _ in range(data.draw(st.integers(1, 3))):
            size = data.draw(st.sampled_from(sizes))
            shape.append(size if np.prod(shape, dtype=int) * size <= LARGEST else 1)
        whole = np.frombuffer(np.random.default_rng(7).bytes(2 * int(np.prod(shape))), "<u2").reshape(shape)
        axis = data.draw(st.integers(-len(shape), len(shape) - 1))
        parts = parts_of(data.draw, whole, axis)
        written = [as_view(part) if data.draw(st.booleans()) else dumping.of_bits(part, "bfloat16") for part in parts]
        listed = {"sources": [{"name": f"n{at}"} for at in range(len(parts))], "combine": "cat", "axis": axis}
        files, stream = stream_on(place, written, listed)
        assert stream.shape == whole.shape
        for start, stop in data.draw(pieces(whole.size)):
            assert stream.read(start, stop).tobytes() == whole.reshape(-1)[start:stop].tobytes()
        files.close()

    judge()


def as_view(part: Array) -> Tensor:
    """The same values as the transposed, shifted view of a storage."""
    turned = np.ascontiguousarray(part.T)
    strides = dumping.row_major(turned.shape)[::-1]
    return Tensor(np.concatenate([np.zeros(3, turned.dtype), turned.reshape(-1)]), "bfloat16", part.shape, strides, 3)


def test_each_source_is_cut_by_its_own_ops(place: Path) -> None:
    """Rows 0 … 1 of one tensor beside rows 4, 3 of another, and the same added up."""
    left, right = np.arange(12, dtype=np.float32).reshape(4, 3), 100 + np.arange(15, dtype=np.float32).reshape(5, 3)
    sources = [
        {"name": "a", "steps": [{"op": "slice", "axis": 0, "stop": 2}]},
        {"name": "b", "steps": [{"op": "take", "axis": 0, "index": [-1, 3]}]},
    ]
    wanted = {"cat": np.concatenate([left[:2], right[[4, 3]]], 1), "sum": left[:2] + right[[4, 3]]}
    for combine, array in wanted.items():
        files, stream = stream_on(place, [dumping.of(left), dumping.of(right)], {"sources": sources, "combine": combine, "axis": 1})
        assert stream.read(0, array.size).view("<f4").tolist() == array.reshape(-1).tolist()
        files.close()


def test_a_sum_is_rounded_after_each_addition(place: Path) -> None:
    """bfloat16: 256 + 1 is a tie and goes to 256, twice; 1 + 1 + 256 is 258. Catches a wide sum and another order."""
    for order, wanted in (((256.0, 1.0, 1.0), 256.0), ((1.0, 1.0, 256.0), 258.0)):
        listed = {"sources": [{"name": f"n{at}"} for at in range(3)], "combine": "sum"}
        files, stream = stream_on(place, [dumping.of([value] * 5, "bfloat16") for value in order], listed)
        assert stream.read(1, 4).tolist() == dumping.bits([wanted] * 3, "bfloat16").tolist()
        files.close()


def test_sums_of_integers_and_bools(place: Path) -> None:
    for dtype, parts, wanted in (("int64", [2**62, 2**53 + 1, 1], 2**62 + 2**53 + 2), ("int8", [100, 100], -56), ("bool", [1, 1], 1)):
        listed = {"sources": [{"name": f"n{at}"} for at in range(len(parts))], "combine": "sum"}
        files, stream = stream_on(place, [dumping.of([part], dtype) for part in parts], listed)
        assert stream.read(0, 1).tolist() == [wanted]
        files.close()


@pytest.mark.parametrize(
    ("shapes", "combine", "at"),
    [
        ([(2, 3), (3, 2)], "sum", 1),
        ([(2, 3), (2, 3), (2, 1)], "sum", 2),
        ([(2, 3), (2, 4)], "cat", 1),
        ([(2, 3), (2, 3, 1)], "cat", 1),
    ],
)
def test_sources_that_do_not_fit_together(place: Path, shapes: list[tuple[int, ...]], combine: str, at: int) -> None:
    """No broadcasting: the error names the source."""
    listed = {"sources": [{"name": f"n{number}"} for number in range(len(shapes))], "combine": combine, "axis": 0}
    with pytest.raises(OperandError, match=rf"sources\[{at}\]"):
        stream_on(place, [dumping.of(np.zeros(shape)) for shape in shapes], listed)


@pytest.mark.parametrize("combine", ["sum", "cat"])
def test_sources_of_two_dtypes_are_refused(place: Path, combine: str) -> None:
    listed = {"sources": [{"name": "a"}, {"name": "b"}], "combine": combine, "axis": 0}
    with pytest.raises(OperandError, match="bfloat16 and float32; add a cast"):
        stream_on(place, [dumping.of([1.0]), dumping.of([1.0], "bfloat16")], listed)


def test_a_scalar_has_no_axis_to_be_joined_on(place: Path) -> None:
    listed = {"sources": [{"name": "a"}, {"name": "b"}], "combine": "cat", "axis": 0}
    with pytest.raises(OperandError, match="axis"):
        stream_on(place, [dumping.of(1.0), dumping.of(2.0)], listed)
