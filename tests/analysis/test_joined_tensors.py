"""Ops on a tensor that several files make up, said of its parts: against numpy on the joined array."""

import math
from functools import reduce
from typing import Any

import numpy as np
import pytest
from dump_analysis.joined_tensors import JoinedTensor, Part, joined
from hypothesis import given
from hypothesis import strategies as st
from msprobe_files.operands import Op, Operand, OperandError, Source
from msprobe_files.pt_archive import PtTensor

Array = np.ndarray[Any, Any]


def applied(values: Array, op: Op) -> Array:
    """numpy's own cutting and shaping."""
    if op.op == "squeeze":
        return values.squeeze(op.axis)
    if op.op == "reshape":
        return values.reshape(op.shape)
    if op.op == "permute":
        return values.transpose(op.axes)
    if op.op == "slice":
        return values[(slice(None),) * (op.axis % values.ndim) + (slice(op.start, op.stop),)]
    if op.op == "take":
        return values.take(op.picked, op.axis)
    assert op.op == "cast"
    return values


def value_of(operand: Operand, arrays: dict[str, Array]) -> Array:
    parts = [reduce(applied, source.steps or (), arrays[source.name]) for source in operand.sources]
    if operand.combine == "cat":
        assert operand.axis is not None
        return np.concatenate(parts, operand.axis)
    return sum(parts[1:], parts[0])


def whole_of(arrays: dict[str, Array], combine: str | None, axis: int | None) -> JoinedTensor:
    parts = [
        Part(Source(name, rank, 0, ()), PtTensor(name, "float32", a.shape, tuple(s // 4 for s in a.strides), 0, 0, a.nbytes, "cpu"))
        for rank, (name, a) in enumerate(arrays.items())
    ]
    return joined("whole", parts, combine, axis)


@st.composite
def wholes(draw: st.DrawFn) -> tuple[dict[str, Array], str | None, int | None]:
    shape = draw(st.lists(st.sampled_from([1, 2, 3, 4]), min_size=1, max_size=4))
    combine = draw(st.sampled_from(["cat", "cat", "cat", "sum", None]))
    axis = draw(st.integers(0, len(shape) - 1)) if combine == "cat" else None
    count = 1 if combine is None else draw(st.integers(2, 3))
    arrays: dict[str, Array] = {}
    start = 0
    for at in range(count):
        sizes = list(shape)
        if axis is not None:
            sizes[axis] = draw(st.integers(1, 4))
        arrays[f"p{at}"] = np.arange(start, start + math.prod(sizes), dtype=np.float32).reshape(sizes)
        start += math.prod(sizes)
    return arrays, combine, axis


@st.composite
def op_for(draw: st.DrawFn, shape: tuple[int, ...]) -> Op:
    kinds = ["reshape", "cast"] + (["slice", "take", "permute"] if shape else []) + (["squeeze"] if 1 in shape else [])
    kind = draw(st.sampled_from(kinds))
    if kind == "cast":
        return Op("cast", dtype="float32")
    if kind == "permute":
        return Op("permute", axes=tuple(draw(st.permutations(range(len(shape))))))
    if kind == "reshape":
        return Op("reshape", shape=draw(shapes_of(math.prod(shape))))
    axis = draw(st.sampled_from([at for at, size in enumerate(shape) if size == 1 or kind != "squeeze"]))
    named = draw(st.sampled_from([axis, axis - len(shape)]))
    if kind == "squeeze":
        return Op("squeeze", axis=named)
    if kind == "take":
        return Op("take", axis=named, picked=tuple(draw(st.lists(st.integers(0, shape[axis] - 1), min_size=1, max_size=5))))
    start = draw(st.integers(0, shape[axis] - 1))
    return Op("slice", axis=named, start=start, stop=draw(st.integers(start + 1, shape[axis])))


@st.composite
def shapes_of(draw: st.DrawFn, count: int) -> tuple[int, ...]:
    """A way to lay out so many elements."""
    made: list[int] = []
    while count > 1 and len(made) < 3:
        size = draw(st.sampled_from([n for n in range(1, count + 1) if count % n == 0]))
        made.append(size)
        count //= size
    return (*made, count)


@given(wholes(), st.data())
def test_ops_of_the_whole_are_ops_of_its_parts(whole: tuple[dict[str, Array], str | None, int | None], data: st.DataObject) -> None:
    """Catches every op that picks other elements, or says a reshape across parts that no flat operand can say."""
    arrays, combine, axis = whole
    tensor = whole_of(arrays, combine, axis)
    wanted = value_of(Operand([part.source for part in tensor.parts], combine, axis), arrays)
    assert tensor.shape == wanted.shape
    steps: list[Op] = []
    for _ in range(data.draw(st.integers(1, 4))):
        op = data.draw(op_for(wanted.shape))
        if combine == "sum" and op.op == "cast":
            continue
        steps.append(op)
        wanted = applied(wanted, op)
        try:
            operand, files = tensor.cut(steps)
        except OperandError as error:
            refused = "across parts" in error.why and any(step.op == "reshape" for step in steps)
            if not refused:
                raise
            return
        assert np.array_equal(value_of(operand, arrays), wanted)
        assert [file.path for file in files] == [source.name for source in operand.sources]


@pytest.mark.parametrize(
    ("ops", "sources"),
    [
        ([Op("slice", axis=1, start=0, stop=3)], 1),
        ([Op("slice", axis=1, start=1, stop=5)], 2),
        ([Op("take", axis=1, picked=(5, 0, 4))], 3),
        ([Op("reshape", shape=(2, 2, 3)), Op("reshape", shape=(12,)), Op("reshape", shape=(2, 6))], 2),
        ([Op("permute", axes=(1, 0)), Op("slice", axis=0, start=3, stop=6)], 1),
    ],
)
def test_only_parts_that_are_wanted_are_named(ops: list[Op], sources: int) -> None:
    """Catches an operand that reads a shard of which it takes nothing, and reshapes that cancel out refused."""
    arrays = {"a": np.arange(6, dtype=np.float32).reshape(2, 3), "b": np.arange(6, 12, dtype=np.float32).reshape(2, 3)}
    operand, _ = whole_of(arrays, "cat", 1).cut(ops)
    assert len(operand.sources) == sources
    assert all(source.rank is not None for source in operand.sources)


def test_what_no_flat_operand_says_is_refused() -> None:
    """Catches a cast of a sum said of its addends: the sum of rounded addends is another number."""
    arrays = {"a": np.ones((2, 3), np.float32), "b": np.ones((2, 3), np.float32)}
    with pytest.raises(OperandError, match="cast of a sum of several tensors"):
        whole_of(arrays, "sum", None).cut([Op("cast", dtype="float32")])
    with pytest.raises(OperandError, match="across parts that lie side by side on axis 1"):
        whole_of(arrays, "cat", 1).cut([Op("reshape", shape=(12,)), Op("slice", axis=0, start=0, stop=5)])
    with pytest.raises(OperandError, match="cat on axis 1"):
        whole_of({**arrays, "c": np.ones((3, 3), np.float32)}, "cat", 1)
