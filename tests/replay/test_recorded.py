"""Cuts of recorded tensors against numpy's own indexing of the same numbers."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import dumping
import numpy as np
import pytest
from dump_analysis.replay.recorded import CannotReplay, cut_of, matrix_of, value_of
from dump_analysis.sides import Side, open_side
from dump_analysis.tensors import Files
from msprobe_files.operands import parse

Numbers = "np.ndarray[Any, Any]"
NAME = dumping.output_of("made")


def side_with(folder: Path, shape: tuple[int, ...], dtype: str = "float32") -> tuple[Side, Any]:
    """A side that recorded one output of whole numbers, and those."""
    numbers = np.arange(np.prod(shape), dtype=np.float64).reshape(shape) % 251
    dumping.write_unit(folder, dumping.outputs({"made": dumping.of(numbers, dtype)}))
    return open_side("train", [str(folder)]), numbers


def operand(*steps: dict[str, Any]) -> Any:
    return parse({"sources": [{"name": NAME, "steps": list(steps)}]})


SQUEEZE = {"op": "squeeze", "axis": 0}
# (shape, ops, width or None, what numpy takes of it as [-1, width])
CUTS: dict[str, tuple[tuple[int, ...], list[dict[str, Any]], int | None, Callable[[Any], Any]]] = {
    "all": ((5, 6), [], None, lambda x: x),
    "batch": ((1, 5, 6), [SQUEEZE], None, lambda x: x[0]),
    "columns": ((5, 6), [{"op": "slice", "axis": 1, "start": 2, "stop": 5}], None, lambda x: x[:, 2:5]),
    "tokens": ((1, 5, 6), [SQUEEZE, {"op": "slice", "axis": 0, "start": 1}], None, lambda x: x[0, 1:]),
    "both": ((5, 6), [{"op": "take", "axis": 0, "index": [4, 1]}, {"op": "take", "axis": 1, "index": [5, 0, 2]}], None,
             lambda x: x[[4, 1]][:, [5, 0, 2]]),
    "groups": ((5, 6), [{"op": "reshape", "shape": [5, 2, 3]}, {"op": "slice", "axis": 2, "start": 0, "stop": 2},
                        {"op": "reshape", "shape": [5, 4]}], None, lambda x: x[:, [0, 1, 3, 4]]),
    "turned": ((5, 2, 6), [{"op": "permute", "axes": [1, 0, 2]}, {"op": "reshape", "shape": [10, 6]}], None,
               lambda x: x.transpose(1, 0, 2).reshape(10, 6)),
    "heads side by side": ((5, 2, 3), [{"op": "reshape", "shape": [5, 6]}], 3, lambda x: x.reshape(10, 3)),
    "heads in a row": ((5, 6), [{"op": "slice", "axis": 0, "start": 1}], 3, lambda x: x[1:].reshape(8, 3)),
    "cast": ((5, 6), [{"op": "cast", "dtype": "bfloat16"}], None, lambda x: x),
}  # fmt: skip


@pytest.mark.parametrize("name", CUTS)
def test_a_cut_is_what_numpy_takes(tmp_path: Path, name: str) -> None:
    """A row or column too many, in another order, or rounded by a cast that only the comparison needs."""
    shape, steps, width, taken = CUTS[name]
    side, numbers = side_with(tmp_path, shape)
    cut = cut_of(side, operand(*steps), width)
    files = Files()
    made = matrix_of(files, cut.place, cut.width, cut.rows, cut.columns)
    expected = taken(numbers)
    assert (made.rows, made.columns) == expected.shape
    np.testing.assert_array_equal(made.read(0, made.rows), expected)
    np.testing.assert_array_equal(made.read(1, 2), expected[1:2])
    files.close()


def test_parts_of_one_tensor_side_by_side_are_one_cut(tmp_path: Path) -> None:
    side, numbers = side_with(tmp_path, (5, 6))
    sources = [{"name": NAME, "steps": [{"op": "slice", "axis": 1, "start": at, "stop": at + 2}]} for at in (4, 0)]
    cut = cut_of(side, parse({"sources": sources, "combine": "cat", "axis": 1}))
    assert cut.columns.tolist() == [4, 5, 0, 1]
    np.testing.assert_array_equal(matrix_of(Files(), cut.place, 6, cut.rows, cut.columns).read(0, 5), numbers[:, [4, 5, 0, 1]])


def test_scattered_elements_and_sums_are_no_cut(tmp_path: Path) -> None:
    """What is no rows and columns of one record must not be taken for a module's output."""
    side, _ = side_with(tmp_path, (4, 6))
    with pytest.raises(CannotReplay, match="no rows and columns"):
        cut_of(side, operand({"op": "permute", "axes": [1, 0]}))
    both = parse({"sources": [{"name": NAME, "steps": []}, {"name": dumping.output_of("other"), "steps": []}], "combine": "sum"})
    with pytest.raises(CannotReplay, match="did not record the value itself"):
        cut_of(side, both)
    with pytest.raises(CannotReplay):
        cut_of(side, parse(dumping.output_of("other")))


def test_values_are_those_of_the_format(tmp_path: Path) -> None:
    side, numbers = side_with(tmp_path, (3, 8), "bfloat16")
    made = value_of(Files(), side, operand({"op": "slice", "axis": 1, "start": 1}))
    assert (made.dtype, made.rows, made.columns) == ("bfloat16", 3, 7)
    assert made.read(0, 3).dtype == np.float64
    np.testing.assert_array_equal(made.read(0, 3), numbers[:, 1:])


def test_a_part_is_what_numpy_takes(tmp_path: Path) -> None:
    """Would catch rows that run on into the next: all columns, some, the last one."""
    side, numbers = side_with(tmp_path, (5, 8), "bfloat16")
    made = value_of(Files(), side, operand())
    for rows, columns in ((slice(0, 5), slice(0, 8)), (slice(1, 4), slice(2, 5)), (slice(4, 5), slice(7, 8))):
        found = made.part(rows, columns)
        assert found.dtype == np.float64
        np.testing.assert_array_equal(found, numbers[rows, columns])
