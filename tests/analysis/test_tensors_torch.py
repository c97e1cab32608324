"""Operands against torch: files that torch.save wrote, ops as torch does them; and our own files as torch.load reads them."""

import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import dumping
import numpy as np
import pytest
import torch
from dump_analysis import tensors
from dumping import Tensor
from hypothesis import given, settings
from hypothesis import strategies as st
from msprobe_files import pt_archive
from msprobe_files.operands import parse

many = settings(max_examples=100, deadline=None, derandomize=True)
FLOATS = ["float64", "float32", "float16", "bfloat16"]
ALL = list(dumping.DTYPES)


@pytest.fixture(scope="module")
def place() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as folder:
        yield Path(folder)


def raw_bytes(tensor: torch.Tensor) -> bytes:
    """The bytes of a tensor's elements in row-major order."""
    flat = tensor.contiguous().reshape(-1)
    return bytes(flat.view(torch.uint8).numpy().tobytes()) if flat.numel() else b""


def read_by_us(place: Path, saved: Sequence[torch.Tensor], operand: Any) -> tuple[bytes, tuple[int, ...], str]:
    """Save by torch, then cut, join and read by the code under test, in two pieces."""
    headers = []
    for at, tensor in enumerate(saved):
        torch.save(tensor, place / f"{at}.pt")
        headers.append(pt_archive.read_header(str(place / f"{at}.pt")))
    files = tensors.Files()
    stream = tensors.stream_of(files, parse(operand), headers)
    total = int(np.prod(stream.shape, dtype=int))
    data = stream.read(0, (total + 1) // 2).tobytes() + (stream.read((total + 1) // 2, total).tobytes() if total > 1 else b"")
    files.close()
    return data, stream.shape, stream.dtype


def same(place: Path, saved: Sequence[torch.Tensor], operand: Any, wanted: torch.Tensor) -> None:
    assert read_by_us(place, saved, operand) == (raw_bytes(wanted), tuple(wanted.shape), str(wanted.dtype)[6:])


def random_tensor(dtype: str, *shape: int, seed: int = 0) -> torch.Tensor:
    """Any bits that are numbers of the format; integers over their whole range."""
    generator = torch.Generator().manual_seed(seed)
    kind = getattr(torch, dtype)
    if dtype == "bool":
        return torch.randint(0, 2, shape, generator=generator).to(kind)
    width = torch.empty(0, dtype=kind).element_size()
    numbers = torch.randint(0, 256, (*shape, width), generator=generator, dtype=torch.uint8)
    numbers[..., -1] &= 0x3F  # no NaN, no infinity
    return numbers.view(kind).reshape(shape)


# --- our files ---


@pytest.mark.parametrize("dtype", ALL)
def test_torch_loads_what_we_write(place: Path, dtype: str) -> None:
    """Holds the writer of the test dumps to the real format: dtype, shape, strides, offset and bytes."""
    tensor = random_tensor(dtype, 40)
    storage = np.frombuffer(raw_bytes(tensor), dumping.DTYPES[dtype][0])
    written = Tensor(storage, dtype, (2, 3, 1), (12, 4, 7), 5)
    found = torch.load(dumping.write_pt(place / "x.pt", written), weights_only=True)
    assert (found.dtype, found.stride(), found.storage_offset()) == (getattr(torch, dtype), (12, 4, 7), 5)
    assert raw_bytes(found) == raw_bytes(torch.as_strided(tensor, (2, 3, 1), (12, 4, 7), 5))
    scalar = torch.load(dumping.write_pt(place / "x.pt", Tensor(storage[:1], dtype, ())), weights_only=True)
    assert raw_bytes(scalar) == raw_bytes(tensor[0])


@pytest.mark.parametrize("dtype", FLOATS)
def test_the_bits_of_values_are_torchs(dtype: str) -> None:
    values = [0.0, -0.0, 1.0, -2.5, float("inf"), float("-inf"), 2.0**-14, 1.0078125]
    assert dumping.bits(values, dtype).tobytes() == raw_bytes(torch.tensor(values, dtype=getattr(torch, dtype)))


# --- cuts ---

CUTS: dict[str, tuple[list[dict[str, Any]], Callable[[torch.Tensor], torch.Tensor]]] = {
    "squeeze": ([{"op": "squeeze", "axis": 1}], lambda x: x.squeeze(1)),
    "squeeze from the end": ([{"op": "squeeze", "axis": -3}], lambda x: x.squeeze(-3)),
    "slice": ([{"op": "slice", "axis": 2, "start": 1, "stop": 5}], lambda x: x[:, :, 1:5]),
    "slice from the end": ([{"op": "slice", "axis": -1, "start": -3, "stop": -1}], lambda x: x[..., -3:-1]),
    "take": ([{"op": "take", "axis": 2, "index": [5, 0, 5]}], lambda x: x.index_select(2, torch.tensor([5, 0, 5]))),
    "runs": ([{"op": "take", "axis": 0, "runs": [[2, 4], [0, 1]]}], lambda x: torch.cat([x[2:4], x[0:1]])),
    "reshape": ([{"op": "reshape", "shape": [4, -1, 4]}], lambda x: x.reshape(4, -1, 4)),
    "permute": ([{"op": "permute", "axes": [2, 0, 3, 1]}], lambda x: x.permute(2, 0, 3, 1)),
    "reshape after permute": (
        [{"op": "permute", "axes": [2, 1, 0, 3]}, {"op": "reshape", "shape": [6, -1]}],
        lambda x: x.permute(2, 1, 0, 3).reshape(6, -1),
    ),
    "heads": (
        [{"op": "reshape", "shape": [4, 3, 2, 8]}, {"op": "slice", "axis": 2, "start": 1}, {"op": "reshape", "shape": [4, 24]}],
        lambda x: x.reshape(4, 3, 2, 8)[:, :, 1:].reshape(4, 24),
    ),
}


@pytest.mark.parametrize(("ops", "torchs"), CUTS.values(), ids=CUTS)
@pytest.mark.parametrize("dtype", ["bfloat16", "float8_e4m3fn", "int64", "complex128", "uint16"])
def test_cuts_are_torchs(place: Path, dtype: str, ops: list[dict[str, Any]], torchs: Callable[[torch.Tensor], torch.Tensor]) -> None:
    """On a contiguous tensor and on a transposed view with an offset, as torch saves it (with its whole storage)."""
    tensor = random_tensor(dtype, 4, 1, 6, 8)
    view = random_tensor(dtype, 9, 8, 1, 6, seed=1)[3:7].permute(0, 2, 3, 1)
    places = torchs(torch.arange(192).reshape(4, 1, 6, 8))
    for saved in (tensor, view):
        wanted = saved.reshape(-1)[places.reshape(-1)].reshape(places.shape)
        same(place, [saved], {"sources": [{"name": "a", "steps": ops}]}, wanted)


@pytest.mark.parametrize("dtype", ALL)
def test_every_dtype_is_cut_and_joined(place: Path, dtype: str) -> None:
    """Rows and columns of two tensors side by side, moved as bytes: catches an item size that is wrong."""
    left, right = random_tensor(dtype, 5, 7), random_tensor(dtype, 5, 4, seed=1)
    ops = [{"op": "slice", "axis": 1, "start": 2, "stop": 4}]
    operand = {"sources": [{"name": "a", "steps": ops}, {"name": "b"}], "combine": "cat", "axis": 1}
    as_bytes = torch.cat([left.view(torch.uint8).reshape(5, 7, -1)[:, 2:4], right.view(torch.uint8).reshape(5, 4, -1)], 1)
    assert read_by_us(place, [left, right], operand) == (raw_bytes(as_bytes), (5, 6), dtype)


@pytest.mark.parametrize("axis", [0, 1, 2, -1, -2])
def test_cat_on_every_axis(place: Path, axis: int) -> None:
    parts = [random_tensor("bfloat16", *[size if at == axis % 3 else 3 for at in range(3)], seed=size) for size in (2, 1, 4)]
    sources = [{"name": str(at)} for at in range(3)]
    same(place, parts, {"sources": sources, "combine": "cat", "axis": axis}, torch.cat(parts, axis))


# --- values ---


@pytest.mark.parametrize("before", [*FLOATS, "int64", "int32", "uint8", "bool", "float8_e4m3fn", "float8_e5m2"])
@pytest.mark.parametrize("after", FLOATS)
def test_casts_are_torchs(place: Path, before: str, after: str) -> None:
    tensor = random_tensor(before, 500, seed=5)
    same(place, [tensor], {"sources": [{"name": "a", "steps": [{"op": "cast", "dtype": after}]}]}, tensor.to(getattr(torch, after)))


@pytest.mark.parametrize("dtype", [*FLOATS, "int64", "int32"])
@pytest.mark.parametrize("value", [1.0, -1.0, 3.0, 32768.0])
def test_add_is_torchs(place: Path, dtype: str, value: float) -> None:
    """A norm that stores weight − 1 is the use: the sum is rounded to the tensor's own format."""
    numbers = torch.randn(500, generator=torch.Generator().manual_seed(1), dtype=torch.float64) * 2e4
    tensor = numbers.clamp(-65504, 65504).to(getattr(torch, dtype))
    wanted = tensor + (int(value) if "int" in dtype else value)
    same(place, [tensor], {"sources": [{"name": "a", "steps": [{"op": "add", "value": value}]}]}, wanted)


@pytest.mark.parametrize("dtype", FLOATS)
def test_sums_run_from_left_to_right(place: Path, dtype: str) -> None:
    """Of random numbers, five addends: rounding after each addition, in the order given. Truth: torch's own additions."""

    @many
    @given(st.integers(0, 10_000), st.integers(2, 5))
    def judge(seed: int, count: int) -> None:
        draw = torch.Generator().manual_seed(seed)
        parts = [(torch.randn(20, generator=draw) * 10 ** float(at)).to(getattr(torch, dtype)) for at in range(count)]
        wanted = parts[0]
        for part in parts[1:]:
            wanted = wanted + part
        same(place, parts, {"sources": [{"name": str(at)} for at in range(count)], "combine": "sum"}, wanted)

    judge()


@pytest.mark.parametrize("dtype", ["int64", "int8", "uint8", "bool"])
def test_sums_of_integers_wrap_as_in_torch(place: Path, dtype: str) -> None:
    left, right = random_tensor(dtype, 300), random_tensor(dtype, 300, seed=1)
    same(place, [left, right, right], {"sources": [{"name": name} for name in "abc"], "combine": "sum"}, left + right + right)


def test_sums_that_overflow_are_infinite_without_a_warning(place: Path) -> None:
    largest = torch.tensor([65504.0, -65504.0, 1.0], dtype=torch.float16)
    same(place, [largest, largest], {"sources": [{"name": "a"}, {"name": "b"}], "combine": "sum"}, largest + largest)
    both = torch.tensor([float("inf"), 3.0, float("nan")], dtype=torch.bfloat16)
    data, _, _ = read_by_us(place, [both, -both], {"sources": [{"name": "a"}, {"name": "b"}], "combine": "sum"})
    found = torch.frombuffer(bytearray(data), dtype=torch.bfloat16)
    assert torch.equal(found.isnan(), (both - both).isnan())
