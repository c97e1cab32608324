"""Ops on random tensors against numpy: what a source folder holds is what the operand says, whatever the chain."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch
from dump_collection.override import tensors
from dump_collection.override.instruction import Input, Module
from dump_collection.override.plan import Planned
from dumping import of, write_unit
from hypothesis import given, settings
from hypothesis import strategies as st
from msprobe_files import operands, pt_archive


@st.composite
def chains(draw: st.DrawFn) -> tuple[np.ndarray[Any, Any], list[dict[str, Any]], np.ndarray[Any, Any]]:
    """A tensor of small whole numbers, ops on it, and what numpy makes of them."""
    shape = tuple(draw(st.lists(st.integers(1, 5), min_size=1, max_size=4)))
    start = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    ops: list[dict[str, Any]] = []
    value = start
    for _ in range(draw(st.integers(0, 5))):
        op, value = draw(_op(value))
        ops.append(op)
    return start, ops, value


@st.composite
def _op(draw: st.DrawFn, value: np.ndarray[Any, Any]) -> tuple[dict[str, Any], np.ndarray[Any, Any]]:
    kinds = ["reshape", "add", "cast", *(["slice", "take", "permute"] if value.ndim else [])]
    kind = draw(st.sampled_from([*kinds, *(["squeeze"] if 1 in value.shape else [])]))
    axis = draw(st.integers(-value.ndim, value.ndim - 1)) if value.ndim else 0
    size = value.shape[axis] if value.ndim else 0
    if kind == "squeeze":
        axis = draw(st.sampled_from([at for at, size in enumerate(value.shape) if size == 1])) - draw(st.sampled_from([0, value.ndim]))
        return {"op": kind, "axis": axis}, np.squeeze(value, axis)
    if kind == "slice":
        first = draw(st.integers(0, size - 1))
        last = draw(st.integers(first + 1, size))
        ends = {
            "start": draw(st.sampled_from([first, first - size])),
            "stop": draw(st.sampled_from([last, *([last - size] if last < size else [])])),
        }
        return {"op": kind, "axis": axis, **ends}, np.take(value, range(first, last), axis)
    if kind == "take":
        index = draw(st.lists(st.integers(-size, size - 1), min_size=1, max_size=6))
        return {"op": kind, "axis": axis, "index": index}, np.take(value, index, axis)
    if kind == "permute":
        axes = draw(st.permutations(range(value.ndim)))
        return {"op": kind, "axes": list(axes)}, np.transpose(value, axes)
    if kind == "reshape":
        shape = draw(st.sampled_from([[-1], [1, -1], [value.size], [*value.shape, 1]]))
        return {"op": kind, "shape": shape}, value.reshape(shape)
    if kind == "cast":
        return {"op": kind, "dtype": "float32"}, value
    number = draw(st.integers(-4, 4))
    return {"op": kind, "value": number}, value + np.float32(number)


@settings(max_examples=300, deadline=None)
@given(chains())
def test_ops_do_what_numpy_does(chain: tuple[np.ndarray[Any, Any], list[dict[str, Any]], np.ndarray[Any, Any]]) -> None:
    start, ops, wanted = chain
    operand = operands.parse({"sources": [{"name": "x", "steps": ops}], "combine": None})
    value = torch.from_numpy(start.copy())
    for op in operand.sources[0].steps or ():
        value = tensors.applied(value, op, torch)
    assert tuple(value.shape) == wanted.shape == operands.shape_after(operand.sources[0].steps or (), start.shape)
    assert np.array_equal(value.numpy(), wanted)


def test_a_sum_is_rounded_after_each_addition_from_left_to_right(tmp_path: Path) -> None:
    """In bfloat16 256 + 1 is 256, so 256 + 1 - 256 is 0 and 1 - 256 + 256 is 1; at once it would be 1 both times."""
    entries = {
        f"Module.{name}.A.forward.0": {"output": [of([value], "bfloat16")]} for name, value in (("a", 256.0), ("b", 1.0), ("c", -256.0))
    }
    dumped = write_unit(tmp_path / "train", entries)
    for order, wanted in (("abc", 0.0), ("bca", 1.0)):
        sources = [{"name": f"Module.{name}.A.forward.0.output.0", "steps": []} for name in order]
        asked = Input("", "input", "0", operands.parse({"sources": sources, "combine": "sum"}), (1,), "bfloat16")
        headers = tuple(pt_archive.read_header(str(dumped / "dump_tensor_data" / (source["name"] + ".pt"))) for source in sources)
        file = tmp_path / "out" / order
        tensors.write(Planned("", 0, Module("", "", None, (asked,)), asked, headers), str(file))
        assert torch.load(file, weights_only=True).tolist() == [wanted]
