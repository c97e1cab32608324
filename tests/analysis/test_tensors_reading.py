"""What the comparison reads and holds: bytes once, memory by blocks, files closed."""

import os
import resource
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import dumping
import numpy as np
import pytest
from dump_analysis import gate, sides
from dump_analysis.artefacts.boundary_results import BoundaryResult
from dump_analysis.sides import Side
from dump_analysis.tensors import Files
from dumping import Tensor, cut, output_of, outputs, row_of
from msprobe_files.errors import DumpError

MIB = 1 << 20
Array = np.ndarray[Any, np.dtype[Any]]


def random_bits(*shape: int, seed: int = 0) -> Array:
    """Finite bfloat16 elements."""
    return (np.random.default_rng(seed).integers(0, 0x4000, shape)).astype("<u2")


def columns(name: str, start: int, stop: int) -> dict[str, Any]:
    return cut(name, {"op": "slice", "axis": 1, "start": start, "stop": stop})


@pytest.fixture
def bytes_read(monkeypatch: pytest.MonkeyPatch) -> Callable[[], int]:
    """How many bytes were read with ``os.pread`` so far."""
    count = 0
    real = os.pread

    def counting(handle: int, size: int, at: int) -> bytes:
        nonlocal count
        data = real(handle, size, at)
        count += len(data)
        return data

    monkeypatch.setattr(os, "pread", counting)
    return lambda: count


def sides_of(root: Path, train: dict[str, Tensor], infer: dict[str, Tensor]) -> tuple[Side, Side]:
    return dumping.side_of(root, "train", outputs(train)), dumping.side_of(root, "infer", outputs(infer))


def statuses(results: list[BoundaryResult]) -> list[str]:
    return [result.status for result in results]


# --- bytes ---


@pytest.mark.parametrize(
    ("tokens", "widths"),
    [(3000, (256, 64, 64)), (9, (70_000, 70_000, 70_000)), (20, (100_000, 1000, 1000))],
    ids=["rows shorter than a block", "rows longer than a block", "parts of unlike size"],
)
def test_a_fused_tensor_cut_three_ways_is_read_once(
    tmp_path: Path, bytes_read: Callable[[], int], tokens: int, widths: tuple[int, ...]
) -> None:
    """q, k, v out of one qkv file: catches three passes over it, which is what the walk in step is for."""
    whole = random_bits(tokens, sum(widths))
    ends = np.cumsum((0, *widths)).tolist()
    parts = {name: dumping.of_bits(whole[:, ends[at] : ends[at + 1]], "bfloat16") for at, name in enumerate("qkv")}
    train, infer = sides_of(tmp_path, parts, {"qkv": dumping.of_bits(whole, "bfloat16")})
    rows = [row_of(name, at, infer=columns("qkv", ends[at], ends[at + 1])) for at, name in enumerate("qkv")]
    assert statuses(gate.compare(rows, [], train, infer)[0]) == ["EXACT"] * 3
    assert 2 * whole.nbytes <= bytes_read() <= 2.1 * whole.nbytes


def test_interleaved_heads_of_a_fused_tensor_are_read_once(tmp_path: Path, bytes_read: Callable[[], int]) -> None:
    """Groups of 2 query heads, a key and a value head side by side (Megatron's order), cut on an inner axis."""
    tokens, groups, head = 4000, 4, 32
    whole = random_bits(tokens, groups * 4 * head)
    heads = whole.reshape(tokens, groups, 4, head)
    taken = {"q": (0, 2), "k": (2, 3), "v": (3, 4)}
    parts = {name: dumping.of_bits(heads[:, :, a:b].reshape(tokens, -1), "bfloat16") for name, (a, b) in taken.items()}
    train, infer = sides_of(tmp_path, {"qkv": dumping.of_bits(whole, "bfloat16")}, parts)
    rows = []
    for at, (name, (start, stop)) in enumerate(taken.items()):
        ops = [
            {"op": "reshape", "shape": [tokens, groups, 4, head]},
            {"op": "slice", "axis": 2, "start": start, "stop": stop},
            {"op": "reshape", "shape": [tokens, -1]},
        ]
        rows.append(row_of(name, at, train=cut("qkv", *ops)))
    assert statuses(gate.compare(rows, [], train, infer)[0]) == ["EXACT"] * 3
    assert bytes_read() <= 2.1 * whole.nbytes


def test_a_few_rows_of_a_large_tensor_do_not_cost_the_whole(tmp_path: Path, bytes_read: Callable[[], int]) -> None:
    """Every 100th row of 16 MiB: catches a read of all that lies between."""
    whole = random_bits(8192, 1024)
    picked = list(range(0, 8192, 100))
    train, infer = sides_of(tmp_path, {"a": dumping.of_bits(whole, "bfloat16")}, {"a": dumping.of_bits(whole[picked], "bfloat16")})
    row = row_of("a", 0, train=cut("a", {"op": "take", "axis": 0, "index": picked}))
    assert statuses(gate.compare([row], [], train, infer)[0]) == ["EXACT"]
    assert bytes_read() < 4 * 2 * 1024 * 2 * len(picked)


def test_one_element_costs_its_row_and_no_more(tmp_path: Path, bytes_read: Callable[[], int]) -> None:
    whole = random_bits(8, 200_000)
    train, infer = sides_of(tmp_path, {"a": dumping.of_bits(whole, "bfloat16")}, {"a": dumping.of_bits(whole[3:4, 7:8], "bfloat16")})
    ops = [{"op": "slice", "axis": 0, "start": 3, "stop": 4}, {"op": "slice", "axis": 1, "start": 7, "stop": 8}]
    assert statuses(gate.compare([row_of("a", 0, train=cut("a", *ops))], [], train, infer)[0]) == ["EXACT"]
    assert bytes_read() < 2 * 200_000 + 100


def test_logits_without_their_padding_are_read_about_once(tmp_path: Path, bytes_read: Callable[[], int]) -> None:
    """A vocabulary padded by 128 columns, rows a little longer than a block: catches whole rows fetched again for each block."""
    whole = random_bits(40, 152_064)
    kept = whole[:, :151_936]
    train, infer = sides_of(tmp_path, {"a": dumping.of_bits(whole, "bfloat16")}, {"a": dumping.of_bits(kept, "bfloat16")})
    assert statuses(gate.compare([row_of("a", 0, train=columns("a", 0, 151_936))], [], train, infer)[0]) == ["EXACT"]
    assert bytes_read() < 2.2 * whole.nbytes


# --- memory ---


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, Array]]:
    """A unit with one tensor of 64 MiB, [2, 4096, 4096] bfloat16; the bits are a function of the place."""
    bits = (np.arange(32 * MIB, dtype=np.uint32) * np.uint32(2654435761) >> np.uint32(18)).astype("<u2").reshape(2, 4096, 4096)
    root = tmp_path_factory.mktemp("large")
    dumping.write_unit(root, outputs({"a": dumping.of_bits(bits, "bfloat16")}))
    yield root, bits
    for file in root.rglob("*.pt"):
        file.unlink()


def linked(root: Path, name: str, source: Path) -> Side:
    """A side that holds the same file under another folder."""
    unit = dumping.write_unit(root / name, {})
    origin = source / "step0" / "rank0"
    for file in (origin / "dump_tensor_data").iterdir():
        os.link(file, unit / "dump_tensor_data" / file.name)
    (unit / "dump.json").write_bytes((origin / "dump.json").read_bytes())
    return sides.open_side(name, [str(unit)])


def peak_of(call: Callable[[], Any]) -> tuple[Any, float]:
    """The call's answer and the MiB that it held at most."""
    tracemalloc.start()
    answer = call()
    peak = tracemalloc.get_traced_memory()[1] / MIB
    tracemalloc.stop()
    return answer, peak


BOTH_WAYS: dict[str, list[dict[str, Any]]] = {
    "as it is": [],
    "another dtype": [{"op": "cast", "dtype": "float32"}],
    "a batch of sequences without their first token": [{"op": "slice", "axis": 1, "start": 1}],
    "all columns but one": [{"op": "slice", "axis": 2, "start": 1}],
    "a column": [{"op": "slice", "axis": 2, "start": 5, "stop": 6}],
    "a column of short rows": [{"op": "reshape", "shape": [-1, 1024]}, {"op": "slice", "axis": 1, "start": 5, "stop": 6}],
    "some columns, turned": [
        {"op": "reshape", "shape": [-1, 1024]},
        {"op": "slice", "axis": 1, "start": 0, "stop": 64},
        {"op": "permute", "axes": [1, 0]},
    ],
    "two long rows, cut": [{"op": "reshape", "shape": [2, -1]}, {"op": "slice", "axis": 1, "start": 3}],
    "batch axis inside": [{"op": "permute", "axes": [1, 0, 2]}],
    "heads before tokens": [{"op": "reshape", "shape": [2, 4096, 32, 128]}, {"op": "permute", "axes": [0, 2, 1, 3]}],
    "a take of tokens": [{"op": "take", "axis": 1, "runs": [[2048, 4096], [0, 2048]]}],
}


@pytest.mark.parametrize("ops", BOTH_WAYS.values(), ids=BOTH_WAYS)
def test_comparing_64_mib_holds_blocks_only(tmp_path: Path, large: tuple[Path, Array], ops: list[dict[str, Any]]) -> None:
    """Catches offsets, rows or pieces that grow with the tensor. Peak of all that Python and numpy allocate."""
    train, infer = linked(tmp_path, "train", large[0]), linked(tmp_path, "infer", large[0])
    row = row_of("a", 0, train=cut("a", *ops), infer=cut("a", *ops))
    (results, _), peak = peak_of(lambda: gate.compare([row], [], train, infer))
    assert statuses(results) == ["EXACT"]
    assert peak < 8


def test_comparing_64_mib_that_differ_everywhere_holds_blocks_only(tmp_path: Path, large: tuple[Path, Array]) -> None:
    bits = large[1]
    train, infer = (
        linked(tmp_path, "train", large[0]),
        dumping.side_of(tmp_path, "infer", outputs({"a": dumping.of_bits(bits ^ 1, "bfloat16")})),
    )
    (results, _), peak = peak_of(lambda: gate.compare([row_of("a", 0)], [], train, infer))
    assert statuses(results) == ["NOT_EXACT"]
    assert results[0].unequal is not None
    assert results[0].unequal.count == bits.size
    assert peak < 12


@pytest.mark.parametrize(("combine", "axis"), [("cat", 0), ("cat", 1), ("cat", 2), ("sum", None)])
def test_joining_tensors_of_64_mib_holds_blocks_only(tmp_path: Path, large: tuple[Path, Array], combine: str, axis: int | None) -> None:
    """Two sequences of two prompts joined on any axis: catches a join that holds whole rows."""
    train, infer = linked(tmp_path, "train", large[0]), linked(tmp_path, "infer", large[0])
    source = {"name": output_of("a"), "steps": [{"op": "slice", "axis": 1, "start": 1}]}
    operand = {"sources": [source, source], "combine": combine, **({} if axis is None else {"axis": axis})}
    (results, _), peak = peak_of(lambda: gate.compare([row_of("a", 0, operand, operand)], [], train, infer))
    assert statuses(results) == ["EXACT"]
    assert peak < 8


def norm_of(count: int, *, in_place: bool) -> dumping.Entries:
    """An add + norm of bfloat16: its two inputs recorded after it overwrote them, or before (1.0 + 1.0 = 2.0)."""
    ones, twos, threes = (dumping.of_bits(np.full(count, code, "<u2"), "bfloat16") for code in (0x3F80, 0x4000, 0x4040))
    given = [threes, twos] if in_place else [ones, ones]
    return {"Module.norm.RMSNorm.forward.0": {"input": given, "output": [threes, twos], "parameters": {"weight": dumping.of([1.0])}}}


@pytest.mark.parametrize(("in_place", "count", "limit"), [(True, 8 * MIB, 8), (False, 4 * MIB, 32)])
def test_telling_when_inputs_were_taken_holds_blocks_only(tmp_path: Path, in_place: bool, count: int, limit: int) -> None:
    """It is told from the norm's tensors, of 16 and 8 MiB: catches tensors that are read whole, and widened whole."""
    entries = norm_of(count, in_place=in_place)
    train, infer = dumping.side_of(tmp_path, "train", entries), dumping.side_of(tmp_path, "infer", entries)
    name = "Module.norm.RMSNorm.forward.0.input.0"
    (results, _), peak = peak_of(lambda: gate.compare([row_of("a", 0, name, name)], [], train, infer))
    assert statuses(results) == ["evidence_missing" if in_place else "EXACT"]
    assert peak < limit


# --- files ---


def test_no_file_stays_open(tmp_path: Path) -> None:
    train, infer = sides_of(
        tmp_path, {"a": dumping.of([1.0]), "b": dumping.of([2.0])}, {"a": dumping.of([1.0]), "b": dumping.of([1.0, 2.0])}
    )
    before = len(os.listdir("/dev/fd"))
    gate.compare([row_of("a", 0), row_of("b", 1), row_of("c", 2)], [], train, infer)
    assert len(os.listdir("/dev/fd")) == before


def test_more_sources_than_files_may_be_open(tmp_path: Path) -> None:
    """A row of 300 experts' outputs: catches "too many open files"."""
    parts = {f"e{at}": dumping.of(np.full((1, 4), at)) for at in range(300)}
    whole = dumping.of(np.repeat(np.arange(300), 4).reshape(300, 4))
    train, infer = sides_of(tmp_path, parts, {"a": whole})
    operand = {"sources": [{"name": output_of(name)} for name in parts], "combine": "cat", "axis": 0}
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (256, hard))
        results, _ = gate.compare([row_of("a", 0, train=operand)], [], train, infer)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert statuses(results) == ["EXACT"]


def test_a_file_that_ends_early_or_is_gone_is_named_without_its_folder(tmp_path: Path) -> None:
    (tmp_path / "x.pt").write_bytes(b"12345678")
    for name, stop in (("x.pt", 9), ("y.pt", 1)):
        files = Files()
        with pytest.raises(DumpError, match=f"Cannot read {name}: ") as caught:
            files.read(str(tmp_path / name), 0, stop)
        assert str(tmp_path) not in str(caught.value)
        files.close()


def test_windows_give_the_bytes_asked_for(tmp_path: Path) -> None:
    """Reads inside, across and after the bytes of the read before."""
    content = np.random.default_rng(3).bytes(1_000_000)
    (tmp_path / "x.pt").write_bytes(content)
    files = Files()
    for start, stop in ((0, 1000), (0, 1000), (10, 20), (999, 1001), (5, 999_999), (6, 7), (400, 800), (0, 1_000_000)):
        assert files.read(str(tmp_path / "x.pt"), start, stop) == content[start:stop]
    files.close()
