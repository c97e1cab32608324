"""Operands: read, written back, refused with their place, and their shapes against numpy's."""

from __future__ import annotations

import json
from typing import Any, Dict, List, Tuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msprobe_files.operands import Op, Operand, OperandError, Source, as_json, bare_steps, combined_shape, parse, shape_after

NAME = "Module.a.B.forward.0.output.0"


def one(*steps: Any, **more: Any) -> Dict[str, Any]:
    """An operand of one source, as JSON."""
    return {"sources": [dict({"name": NAME, "steps": list(steps)}, **more)], "combine": None}


def steps_of(*steps: Any) -> Tuple[Op, ...]:
    return parse(one(*steps)).sources[0].steps or ()


# --- JSON ---

AXES = st.integers(-4, 3)
SMALL = st.integers(-20, 20)
RUNS = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)).map(sorted), max_size=4)
OPS = st.one_of(
    st.builds(lambda axis: {"op": "squeeze", "axis": axis}, AXES),
    st.builds(lambda a, b, c: {"op": "slice", "axis": a, "start": b, "stop": c}, AXES, st.none() | SMALL, st.none() | SMALL),
    st.builds(lambda axis, index: {"op": "take", "axis": axis, "index": index}, AXES, st.lists(SMALL, max_size=5)),
    st.builds(lambda axis, runs: {"op": "take", "axis": axis, "runs": runs}, AXES, RUNS.filter(len)),
    st.builds(lambda shape: {"op": "reshape", "shape": shape}, st.lists(SMALL, max_size=4)),
    st.builds(lambda axes: {"op": "permute", "axes": axes}, st.lists(AXES, max_size=4)),
    st.builds(lambda dtype: {"op": "cast", "dtype": dtype}, st.sampled_from(["float32", "bfloat16"])),
    st.builds(lambda value: {"op": "add", "value": value}, st.floats(allow_nan=False, allow_infinity=False)),
)
PLACES = st.sampled_from([{}, {"rank": 3}, {"dump_step": 2}, {"rank": 0, "dump_step": 0}])
SOURCES = st.builds(
    lambda name, place, steps: dict({"name": name}, **place, steps=steps),
    st.text(min_size=1, max_size=8),
    PLACES,
    st.lists(OPS, max_size=4),
)
OPERANDS = st.one_of(
    st.builds(lambda source: {"sources": [source], "combine": None}, SOURCES),
    st.builds(lambda sources: {"sources": sources, "combine": "sum"}, st.lists(SOURCES, min_size=1, max_size=3)),
    st.builds(lambda sources, axis: {"sources": sources, "combine": "cat", "axis": axis}, st.lists(SOURCES, min_size=1, max_size=3), AXES),
    st.builds(lambda sources: {"sources": sources, "combine": "zeros"}, st.lists(SOURCES, max_size=2)),
)


@given(OPERANDS)
def test_what_was_read_is_written_back_the_same(value: Dict[str, Any]) -> None:
    """``value`` has every field that a writer gives: nothing may be lost, added or reordered."""
    operand = parse(value)
    assert json.dumps(as_json(operand)) == json.dumps(value)
    assert parse(as_json(operand)) == operand
    assert hash(parse(as_json(operand))) == hash(operand)


def test_defaults_are_filled_in() -> None:
    assert as_json(parse({"sources": [{"name": "a"}]})) == {"sources": [{"name": "a", "steps": []}], "combine": None}
    assert parse({"sources": [{"name": "a"}, {"name": "b"}], "combine": "cat"}).axis == -1
    assert steps_of({"op": "slice", "axis": 0}) == (Op("slice", axis=0),)
    assert steps_of({"op": "cast", "dtype": "torch.float32"}) == (Op("cast", dtype="float32"),)


def test_a_bare_name_is_not_a_source_without_steps() -> None:
    """A bare name still loses its axes of size 1, a source without steps does not."""
    assert parse(NAME) == Operand([Source(NAME, None, None, None)])
    assert parse({"sources": [{"name": NAME}]}) == Operand([Source(NAME, None, None, ())])
    assert parse(NAME) != parse({"sources": [{"name": NAME}]})


def test_a_bare_name_is_written_back_as_one() -> None:
    """`as_json` is the reverse of `parse`: with empty steps it would come back as another operand."""
    assert parse(as_json(parse(NAME))) == parse(NAME)


@pytest.mark.parametrize("combine", [None, "sum", "zeros"])
def test_an_axis_that_means_nothing_changes_nothing(combine: Any) -> None:
    """The contract shows ``"axis": 0`` beside every combine."""
    operand = parse({"sources": [{"name": "a"}], "combine": combine, "axis": 0})
    assert parse(as_json(operand)) == operand
    assert operand == parse({"sources": [{"name": "a"}], "combine": combine})


def test_runs_are_written_out_and_kept() -> None:
    (op,) = steps_of({"op": "take", "axis": 1, "runs": [[2, 4], [7, 7], [0, 1]]})
    assert (op.picked, op.runs) == ((2, 3, 0), ((2, 4), (7, 7), (0, 1)))


SOURCE = {"name": "a", "steps": []}
S = "sources[0].steps[0]"


@pytest.mark.parametrize(
    ("value", "where", "why"),
    [
        (7, "", "expected an object, found 7"),
        (None, "", "expected an object, found null"),
        ([], "", "expected an object, found a list"),
        ({}, "sources", "expected a list of tensors, found null"),
        ({"sources": NAME}, "sources", "expected a list of tensors, found a text"),
        ({"sources": []}, "sources", "expected at least one tensor"),
        ({"sources": [], "combine": "sum"}, "sources", "expected at least one tensor, found none"),
        ({"sources": [SOURCE, SOURCE]}, "combine", '2 sources need "sum" or "cat"'),
        ({"sources": [SOURCE], "combine": "mean"}, "combine", "expected null, \"sum\", \"cat\" or \"zeros\", found 'mean'"),
        ({"sources": [SOURCE], "combine": ["sum"]}, "combine", "found ['sum']"),
        ({"sources": [SOURCE], "axis": "0"}, "axis", "expected a whole number, found a text"),
        ({"sources": [SOURCE], "axis": True}, "axis", "expected a whole number, found True"),
        ({"sources": [SOURCE], "combin": "cat"}, "combin", 'unknown key; did you mean "combine"?'),
        ({"sources": [SOURCE], "zzz": 1}, "zzz", "unknown key; known: sources, combine, axis"),
        ({"sources": [SOURCE, 3], "combine": "sum"}, "sources[1]", "expected an object, found 3"),
        ({"sources": [SOURCE, {"steps": []}], "combine": "sum"}, "sources[1].name", "expected a tensor's name, found null"),
        ({"sources": [{"name": ""}]}, "sources[0].name", "expected a tensor's name, found a text"),
        ({"sources": [{"name": "a", "step": []}]}, "sources[0].step", 'unknown key; did you mean "steps"?'),
        ({"sources": [{"name": "a", "steps": None}]}, "sources[0].steps", "expected a list of ops, found null"),
        ({"sources": [{"name": "a", "steps": {}}]}, "sources[0].steps", "expected a list of ops, found an object"),
        ({"sources": [{"name": "a", "rank": 0.0}]}, "sources[0].rank", "expected a whole number, found 0.0"),
        ({"sources": [{"name": "a", "dump_step": "0"}]}, "sources[0].dump_step", "expected a whole number, found a text"),
        (one("squeeze"), S, "expected an op, found a text"),
        (one({}), S + ".op", "expected one of squeeze, slice, take, reshape, permute, cast, add, found None"),
        (one({"op": ["cast"]}), S + ".op", "found ['cast']"),
        (one({"op": "sqeeze", "axis": 0}), S + ".op", "found 'sqeeze'; did you mean \"squeeze\"?"),
        (one({"op": "add", "value": 1}, {"op": "transpose"}), "sources[0].steps[1].op", "found 'transpose'"),
        (one({"op": "squeeze"}), S, 'squeeze needs "axis"'),
        (one({"op": "squeeze", "axes": 0}), S + ".axes", 'unknown key; did you mean "axis"?'),
        (one({"op": "squeeze", "axis": None}), S + ".axis", "expected a whole number, found null"),
        (one({"op": "slice", "axis": 0, "end": 3}), S + ".end", "unknown key"),
        (one({"op": "slice", "axis": 0, "stop": 3.5}), S + ".stop", "expected a whole number, found 3.5"),
        (one({"op": "slice", "axis": 0, "start": True}), S + ".start", "expected a whole number, found True"),
        (one({"op": "take", "axis": 0}), S, 'take needs either "index" or "runs"'),
        (one({"op": "take", "axis": 0, "index": [], "runs": []}), S, 'take needs either "index" or "runs"'),
        (one({"op": "take", "axis": 0, "index": 3}), S + ".index", "expected a list of whole numbers, found 3"),
        (one({"op": "take", "axis": 0, "index": [0, "1"]}), S + ".index[1]", "expected a whole number, found a text"),
        (one({"op": "take", "axis": 0, "runs": 3}), S + ".runs", "expected a list of [start, stop], found 3"),
        (one({"op": "take", "axis": 0, "runs": [[0, 2], [3]]}), S + ".runs[1]", "expected [start, stop], found [3]"),
        (one({"op": "take", "axis": 0, "runs": [[2, 0]]}), S + ".runs[0]", "expected [start, stop], found [2, 0]"),
        (one({"op": "take", "axis": 0, "runs": [[-2, 0]]}), S + ".runs[0]", "expected [start, stop], found [-2, 0]"),
        (one({"op": "take", "axis": 0, "runs": [[0, None]]}), S + ".runs[0][1]", "expected a whole number, found null"),
        (one({"op": "take", "axis": 0, "runs": [[0, 1 << 60]]}), S + ".runs", "more than 2**24 items"),
        (one({"op": "take", "axis": 0, "runs": [[0, 1 << 20]] * 17}), S + ".runs", "more than 2**24 items"),
        (one({"op": "reshape", "shape": "2,3"}), S + ".shape", "expected a list of whole numbers, found a text"),
        (one({"op": "reshape", "shape": [2, None]}), S + ".shape[1]", "expected a whole number, found null"),
        (one({"op": "permute", "axes": [[0]]}), S + ".axes[0]", "expected a whole number, found a list"),
        (one({"op": "cast", "dtype": 32}), S + ".dtype", "expected a dtype's name, found 32"),
        (one({"op": "add", "value": "1"}), S + ".value", "expected a number, found a text"),
        (one({"op": "add", "value": True}), S + ".value", "expected a number, found True"),
        (one({"op": "add", "value": 10**400}), S + ".value", "expected a number"),
        (one({"op": "add", "value": float("nan")}), S + ".value", "expected a number"),
        (one({"op": "add", "value": float("inf")}), S + ".value", "expected a number"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_named_with_its_place(value: Any, where: str, why: str) -> None:
    """Mappings are written by hand: the message must lead to the spot, and to the word that was meant."""
    with pytest.raises(OperandError) as caught:
        parse(value)
    assert caught.value.where == where
    assert why in caught.value.why
    assert str(caught.value) == (where + ": " if where else "") + caught.value.why


KEYS = ["sources", "combine", "axis", "name", "rank", "steps", "op", "index", "runs", "shape", "axes", "dtype", "value"]
ANY = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.sampled_from(["squeeze", "take", "sum", "cat", "a", "axis"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=4),
    max_leaves=20,
)


@settings(deadline=None)
@given(ANY | st.builds(lambda step: one(step), ANY) | st.builds(lambda value: one({"op": "add", "value": value}), ANY))
def test_any_json_is_read_or_refused(value: Any) -> None:
    try:
        operand = parse(value)
    except OperandError:
        return
    assert isinstance(operand, Operand)


# --- shapes ---

SHAPES = st.lists(st.integers(0, 4), max_size=4).map(tuple)


def by_numpy(op: Dict[str, Any], data: Any) -> Any:
    """The op as numpy has it. Where numpy clips a slice that leaves its axis, this raises."""
    kind = op["op"]
    if "axis" in op and not -data.ndim <= op["axis"] < data.ndim:
        raise ValueError  # numpy lets axes 0 and -1 of a number pass
    if kind == "squeeze":
        return np.squeeze(data, op["axis"])
    if kind == "reshape":
        return data.reshape(op["shape"])
    if kind == "permute":
        return data.transpose(op["axes"])
    if kind == "take":
        index = op["index"] if "index" in op else [at for start, stop in op["runs"] for at in range(start, stop)]
        if not all(-data.shape[op["axis"]] <= at < data.shape[op["axis"]] for at in index):
            raise ValueError  # numpy does not look where the result is empty
        return np.take(data, np.array(index, int), op["axis"])
    if kind == "slice":
        size = data.shape[op["axis"]]
        ends = [0 if op["start"] is None else op["start"], size if op["stop"] is None else op["stop"]]
        ends = [end + size if end < 0 else end for end in ends]
        if not 0 <= ends[0] <= ends[1] <= size:
            raise ValueError
        cut = [slice(None)] * data.ndim
        cut[op["axis"]] = slice(ends[0], ends[1])
        return data[tuple(cut)]
    return data


AXIS, END = st.integers(-5, 4), st.none() | st.integers(-5, 5)
SHAPE_OPS = st.one_of(
    st.builds(lambda axis: {"op": "squeeze", "axis": axis}, AXIS),
    st.builds(lambda axis, start, stop: {"op": "slice", "axis": axis, "start": start, "stop": stop}, AXIS, END, END),
    st.builds(lambda axis, index: {"op": "take", "axis": axis, "index": index}, AXIS, st.lists(st.integers(-4, 3), max_size=4)),
    st.builds(lambda axis, runs: {"op": "take", "axis": axis, "runs": runs}, AXIS, RUNS),
    st.builds(lambda shape: {"op": "reshape", "shape": shape}, st.lists(st.integers(-1, 8), max_size=4)),
    st.builds(lambda axes: {"op": "permute", "axes": axes}, st.lists(st.integers(-5, 5), max_size=4)),
    st.builds(lambda axes: {"op": "permute", "axes": axes}, st.permutations(range(3))),
    st.just({"op": "cast", "dtype": "float32"}),
    st.just({"op": "add", "value": 1.0}),
)


@settings(max_examples=800, deadline=None)
@given(SHAPES, st.lists(SHAPE_OPS, min_size=1, max_size=3))
def test_shapes_are_those_of_numpy(shape: Tuple[int, ...], ops: List[Dict[str, Any]]) -> None:
    """Where numpy refuses an op, so must we, and name it."""
    data = np.zeros(shape)
    for at, op in enumerate(ops):
        try:
            data = by_numpy(op, data)
        except (ValueError, IndexError):
            with pytest.raises(OperandError) as caught:
                shape_after(steps_of(*ops), shape)
            assert caught.value.where == "steps[%d]" % at
            return
    assert shape_after(steps_of(*ops), shape) == data.shape


@pytest.mark.parametrize("axes", [[0, 1, 5], [0, 1, -4], [3, 4, 5], [0, 0, 1], [0, 1], [0, 1, 2, 3], []])
def test_axes_that_are_no_order_are_refused(axes: List[int]) -> None:
    """5 is 2 modulo 3, and still no axis of three."""
    with pytest.raises(OperandError, match="no order of the 3 axes"):
        shape_after(steps_of({"op": "permute", "axes": axes}), (2, 3, 4))


@pytest.mark.parametrize(
    ("op", "shape", "why"),
    [
        ({"op": "squeeze", "axis": 1}, (1, 3), "squeeze of axis 1, which has size 3 in [1, 3]"),
        ({"op": "squeeze", "axis": 2}, (1, 3), "axis 2 of a tensor with shape [1, 3]"),
        ({"op": "squeeze", "axis": -3}, (1, 3), "axis -3 of a tensor with shape [1, 3]"),
        ({"op": "squeeze", "axis": 0}, (), "axis 0 of a tensor with shape []"),
        ({"op": "slice", "axis": 0, "start": 0, "stop": 25}, (24, 2), "slice 0:25 on axis 0, which has size 24"),
        ({"op": "slice", "axis": 0, "start": -25}, (24, 2), "slice -25:None on axis 0, which has size 24"),
        ({"op": "slice", "axis": 0, "start": 5, "stop": 3}, (24, 2), "slice 5:3 on axis 0, which has size 24"),
        ({"op": "take", "axis": -1, "index": [0, 2]}, (24, 2), "take of item 2 on axis -1, which has size 2"),
        ({"op": "take", "axis": 0, "index": [-25]}, (24, 2), "take of item -25 on axis 0, which has size 24"),
        ({"op": "reshape", "shape": [-1, 5]}, (24, 2), "reshape of [24, 2] to [-1, 5]"),
        ({"op": "reshape", "shape": [-1, -1]}, (24, 2), "reshape of [24, 2] to [-1, -1]"),
        ({"op": "reshape", "shape": [-2, 24]}, (24, 2), "reshape to [-2, 24]"),
        ({"op": "reshape", "shape": [0, -1]}, (0, 2), "reshape of [0, 2] to [0, -1]"),
    ],
)
def test_an_op_that_does_not_fit_says_on_what(op: Dict[str, Any], shape: Tuple[int, ...], why: str) -> None:
    with pytest.raises(OperandError) as caught:
        shape_after(steps_of({"op": "cast", "dtype": "float32"}, op), shape, "train.sources[0].steps")
    assert str(caught.value) == "train.sources[0].steps[1]: " + why


@pytest.mark.parametrize(
    ("shape", "integer", "weight", "left"),
    [
        ((1, 24, 896), False, False, (24, 896)),
        ((24, 1, 896), False, False, (24, 896)),
        ((1, 24, 2, 64), False, False, (24, 2, 64)),
        ((1, 1, 1, 7), False, False, (1, 7)),
        ((1, 7), False, False, (1, 7)),
        ((1, 24), True, False, (24,)),
        ((1, 1, 1), True, False, (1,)),
        ((1,), True, False, (1,)),
        ((1, 1, 5), False, True, (1, 1, 5)),
        ((), False, False, ()),
        ((3, 0, 1), False, False, (3, 0)),
    ],
)
def test_bare_names_lose_axes_of_size_1(shape: Tuple[int, ...], integer: bool, weight: bool, left: Tuple[int, ...]) -> None:
    """While more than two axes are left (integers: more than one; weights: none)."""
    steps = bare_steps(shape, integer, weight)
    assert shape_after(steps, shape) == left
    assert {op.op for op in steps} <= {"squeeze"}


@given(st.lists(st.integers(1, 3), max_size=6).map(tuple), st.booleans())
def test_bare_names_keep_every_axis_that_holds_something(shape: Tuple[int, ...], integer: bool) -> None:
    keep, left = (1 if integer else 2), shape_after(bare_steps(shape, integer, weight=False), shape)
    assert [size for size in left if size > 1] == [size for size in shape if size > 1]
    assert len(left) <= keep or 1 not in left
    assert len(left) >= min(keep, len(shape))


PARTS = st.lists(st.lists(st.integers(0, 3), max_size=3).map(tuple), min_size=1, max_size=3)


@given(PARTS | st.tuples(SHAPES).map(lambda one: list(one) * 3), st.integers(-4, 3))
def test_joined_shapes_are_those_of_numpy(shapes: List[Tuple[int, ...]], axis: int) -> None:
    sources = [{"name": "a"}] * len(shapes)
    cat, total = parse({"sources": sources, "combine": "cat", "axis": axis}), parse({"sources": sources, "combine": "sum"})
    try:
        joined = np.concatenate([np.zeros(shape) for shape in shapes], axis).shape
    except ValueError:
        with pytest.raises(OperandError):
            combined_shape(cat, shapes)
    else:
        assert combined_shape(cat, shapes) == joined
    if len(set(shapes)) == 1:
        assert combined_shape(total, shapes) == shapes[0]
    else:
        with pytest.raises(OperandError, match=r"^sources\[[12]\]: sum of "):
            combined_shape(total, shapes)


def test_cat_joins_on_the_last_axis_unless_told() -> None:
    sources = [{"name": "a"}, {"name": "b"}]
    assert combined_shape(parse({"sources": sources, "combine": "cat"}), [(2, 3), (2, 4)]) == (2, 7)
    with pytest.raises(OperandError, match=r"^sources\[1\]: cat on axis 0 of \[2, 3\] and \[2, 4\]$"):
        combined_shape(parse({"sources": sources, "combine": "cat", "axis": 0}), [(2, 3), (2, 4)])


def test_zeros_without_sources_have_no_shape_of_their_own() -> None:
    """An override of zeros: whoever asks must get an error with a place, not a traceback."""
    with pytest.raises(OperandError):
        combined_shape(parse({"sources": [], "combine": "zeros"}), [])
