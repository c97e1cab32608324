"""Small dumps in msprobe's layout, written without torch: dump.json, construct.json and ``.pt`` files like torch.save's."""

from __future__ import annotations

import io
import json
import math
import struct
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from dump_analysis.artefacts.boundary_results import BoundaryResult
    from dump_analysis.artefacts.semantic_mapping import Row
    from dump_analysis.sides import Side

# dtype -> numpy type of the raw elements, and the storage class that torch names (None: untyped storage)
DTYPES: dict[str, tuple[str, str | None]] = {
    "float64": ("<u8", "DoubleStorage"), "float32": ("<u4", "FloatStorage"), "float16": ("<u2", "HalfStorage"),
    "bfloat16": ("<u2", "BFloat16Storage"), "int64": ("<i8", "LongStorage"), "int32": ("<i4", "IntStorage"),
    "int16": ("<i2", "ShortStorage"), "int8": ("i1", "CharStorage"), "uint8": ("u1", "ByteStorage"), "bool": ("u1", "BoolStorage"),
    "complex64": ("<c8", "ComplexFloatStorage"), "complex128": ("<c16", "ComplexDoubleStorage"),
    "uint64": ("<u8", None), "uint32": ("<u4", None), "uint16": ("<u2", None), "float8_e4m3fn": ("u1", None),
    "float8_e5m2": ("u1", None), "float8_e4m3fnuz": ("u1", None), "float8_e5m2fnuz": ("u1", None), "float8_e8m0fnu": ("u1", None),
}  # fmt: skip
_PACKED = {
    "float64": (8, "d"), "float32": (4, "f"), "float16": (2, "e"), "int64": (8, "q"), "uint64": (8, "Q"), "int32": (4, "i"),
    "uint32": (4, "I"), "int16": (2, "h"), "uint16": (2, "H"), "int8": (1, "b"), "uint8": (1, "B"), "bool": (1, "B"),
}  # fmt: skip
_WIDTHS = {"float64": "<f8", "float32": "<f4", "float16": "<f2"}


class Tensor(NamedTuple):
    """A tensor to record: its storage as raw elements, and how it views it. ``recorded``: the dtype that dump.json states."""

    storage: np.ndarray[Any, Any]
    dtype: str
    shape: tuple[int, ...]
    strides: tuple[int, ...] | None = None
    offset: int = 0
    recorded: str | None = None


def of_bits(raw: np.ndarray[Any, Any], dtype: str, recorded: str | None = None) -> Tensor:
    """A contiguous tensor of raw elements; ``raw`` has its shape."""
    return Tensor(np.ascontiguousarray(raw).reshape(-1), dtype, raw.shape, recorded=recorded)


def of(values: Any, dtype: str = "float32", recorded: str | None = None) -> Tensor:
    """A contiguous tensor of values that ``dtype`` holds exactly."""
    return of_bits(bits(values, dtype), dtype, recorded)


def bits(values: Any, dtype: str) -> np.ndarray[Any, Any]:
    """Raw elements of values that the format holds exactly. Not for float8: hand its codes to `of_bits`."""
    raw = DTYPES[dtype][0]
    if dtype == "bfloat16":
        wide = np.array(values, "<f4").view("<u4")
        assert not (wide & 0xFFFF).any(), "no bfloat16 values"
        return (wide >> 16).astype("<u2")
    if dtype in _WIDTHS:
        return np.array(values, _WIDTHS[dtype]).view(raw)
    made = np.array(values)
    return made.astype(raw) if made.size == 0 else np.array(values, raw)


# --- what bits mean, by the standard library ---


def number_of(code: int, dtype: str) -> float | int:
    """The number that one element's bits stand for, of every real format."""
    if dtype in _PACKED:
        width, kind = _PACKED[dtype]
        return struct.unpack(f"<{kind}", (code % (1 << 8 * width)).to_bytes(width, "little"))[0]
    if dtype == "bfloat16":
        return number_of(code << 16, "float32")
    if dtype == "float8_e5m2":
        return number_of(code << 8, "float16")
    if dtype == "float8_e8m0fnu":
        return math.nan if code == 0xFF else 2.0 ** (code - 127)
    if dtype == "float8_e4m3fn":
        return math.nan if code & 0x7F == 0x7F else _by_half(code, 3) * 2**8
    if code == 0x80:
        return math.nan
    if dtype == "float8_e4m3fnuz":
        return _by_half(code, 3) * 2**7
    top = (code >> 2) & 0x1F == 0x1F  # an ordinary binade here, infinity in float16: read one binade lower
    return _by_half(code - 4 * top, 2) / (1 if top else 2)


def _by_half(code: int, mantissa: int) -> float | int:
    """An 8-bit code read as float16: the same exponent field, the mantissa filled up with zeros."""
    return number_of((code & 0x80) << 8 | (code & 0x7F) << (10 - mantissa), "float16")


# --- one .pt file ---


def pt_bytes(tensor: Tensor) -> bytes:
    """The file that torch.save would write: a zip of stored members, the data at a multiple of 64."""
    data = tensor.storage.tobytes()
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        members = {"data.pkl": _pickle(tensor), "byteorder": b"little", "data/0": data, "version": b"3\n"}
        for name, content in members.items():
            info = zipfile.ZipInfo(f"archive/{name}", (1980, 1, 1, 0, 0, 0))
            if name.startswith("data/"):
                gap = -(file.tell() + 30 + len(info.filename) + 4) % 64
                info.extra = struct.pack("<2sH", b"FB", gap) + b"Z" * gap
            archive.writestr(info, content)
    return file.getvalue()


def write_pt(path: Path, tensor: Tensor) -> Path:
    """Write one tensor's file; returns its path."""
    path.write_bytes(pt_bytes(tensor))
    return path


def _pickle(tensor: Tensor) -> bytes:
    """Protocol 2: ``_rebuild_tensor_v2(storage, offset, shape, strides, False, OrderedDict())``; v3 adds the dtype."""
    storage = DTYPES[tensor.dtype][1]
    strides = tensor.strides if tensor.strides is not None else row_major(tensor.shape)
    version, kind, count = 2, f"ctorch\n{storage}\n".encode(), len(tensor.storage)
    tail = b""
    if storage is None:
        version, kind, count = 3, b"ctorch.storage\nUntypedStorage\n", tensor.storage.nbytes
        tail = f"ctorch\n{tensor.dtype}\n".encode()
    persistent = b"(" + _text("storage") + kind + _text("0") + _text("cpu") + _number(count) + b"tQ"
    shape, steps = (b"(" + b"".join(map(_number, sizes)) + b"t" for sizes in (tensor.shape, strides))
    arguments = persistent + _number(tensor.offset) + shape + steps + b"\x89" + b"ccollections\nOrderedDict\n)R" + tail
    return f"\x80\x02ctorch._utils\n_rebuild_tensor_v{version}\n(".encode("latin-1") + arguments + b"tR."


def _text(text: str) -> bytes:
    return b"X" + struct.pack("<I", len(text)) + text.encode()


def _number(value: int) -> bytes:
    return b"J" + struct.pack("<i", value)


def row_major(shape: Sequence[int]) -> tuple[int, ...]:
    """Strides of a contiguous tensor, in elements."""
    return tuple(int(np.prod(shape[at + 1 :], dtype=np.int64)) for at in range(len(shape)))


# --- a dump ---

if TYPE_CHECKING:
    # A record as msprobe would write it, or None, stands for itself: no file is written.
    Slot = Sequence[Tensor | dict[str, Any] | None] | Mapping[str, Tensor | dict[str, Any]]
    Entries = Mapping[str, Mapping[str, Slot]]
else:
    Slot = Entries = Any
_SLOTS = {"input": "input_args", "kwargs": "input_kwargs", "output": "output", "parameters": "parameters"}


def write_unit(root: Path, entries: Entries, *, step: int = 0, rank: int = 0, trace: Any = None, listed: bool = True) -> Path:
    """One unit under ``root``; returns its folder.

    ``entries``: entry -> category -> tensors by position or by name. ``trace``: construct.json.
    ``listed`` False: the run ended before dump.json was written.
    """
    unit = root / f"step{step}" / f"rank{rank}"
    folder = unit / "dump_tensor_data"
    folder.mkdir(parents=True, exist_ok=True)
    data = {
        entry: {_SLOTS[slot]: _slot(folder, f"{entry}.{slot}", content) for slot, content in slots.items()}
        for entry, slots in entries.items()
    }
    if listed:
        dump = {"task": "tensor", "level": "L0", "framework": "pytorch", "dump_data_dir": str(folder), "data": data}
        (unit / "dump.json").write_text(json.dumps(dump))
    if trace is not None:
        (unit / "construct.json").write_text(json.dumps(trace))
    return unit


def _slot(folder: Path, stem: str, content: Slot) -> Any:
    if isinstance(content, Mapping):
        return {name: _recorded(folder, f"{stem}.{name}", item) for name, item in content.items()}
    return [_recorded(folder, f"{stem}.{at}", item) for at, item in enumerate(content)]


def _recorded(folder: Path, stem: str, item: Tensor | dict[str, Any] | None) -> dict[str, Any] | None:
    if not isinstance(item, Tensor):
        return item
    write_pt(folder / f"{stem}.pt", item)
    return {**record_of(item), "data_name": f"{stem}.pt"}


def record_of(tensor: Tensor) -> dict[str, Any]:
    """What dump.json holds of a tensor of which only statistics were taken."""
    fields = {"type": "torch.Tensor", "dtype": f"torch.{tensor.recorded or tensor.dtype}", "shape": list(tensor.shape)}
    return {**fields, "Max": None, "Min": None, "Mean": None, "Norm": None, "requires_grad": False}


def entry_of(name: str) -> str:
    """The entry of a module that bears a short name."""
    return f"Module.{name}.M.forward.0"


def output_of(name: str) -> str:
    """The name of its one output."""
    return f"{entry_of(name)}.output.0"


def outputs(tensors: Mapping[str, Tensor | dict[str, Any]]) -> Entries:
    """Entries of modules with one output each, in the order given."""
    return {entry_of(name): {"output": [tensor]} for name, tensor in tensors.items()}


# --- for the comparison ---


def side_of(root: Path, label: str, entries: Entries, trace: Any = None) -> Side:
    """A side of one unit, written and read."""
    from dump_analysis import sides

    return sides.open_side(label, [str(write_unit(root / label, entries, trace=trace))])


def row_of(name: str, order: int, train: Any = None, infer: Any = None) -> Row:
    """A mapping row between the outputs of two modules of that name, or between operands given as JSON."""
    from dump_analysis.artefacts.semantic_mapping import Row
    from msprobe_files.operands import parse

    return Row(name, order, parse(train or output_of(name)), parse(infer or output_of(name)))


def cut(name: str, *steps: Mapping[str, Any]) -> dict[str, Any]:
    """An operand as JSON: the output of a module and its ops."""
    return {"sources": [{"name": output_of(name), "steps": list(steps)}], "combine": None}


def compared(root: Path, train: Tensor, infer: Tensor) -> BoundaryResult:
    """What the gate says of two tensors."""
    return compared_all(root, {"a": train}, {"a": infer})[0]


def compared_all(root: Path, train: Mapping[str, Any], infer: Mapping[str, Any], rows: Sequence[Row] | None = None) -> list[BoundaryResult]:
    """What the gate says of outputs of the same names, or of the rows given."""
    from dump_analysis import gate

    left, right = side_of(root, "train", outputs(train)), side_of(root, "infer", outputs(infer))
    return gate.compare(rows or [row_of(name, at) for at, name in enumerate(train)], [], left, right)[0]
