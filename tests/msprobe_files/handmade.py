"""Dumps and tensor files made by hand, opcode by opcode: neither torch nor the code under test has a part in them.

Runs on Python 3.8, like the modules that it helps to test.
"""

from __future__ import annotations

import json
import struct
import zipfile
from pathlib import Path
from typing import Any, Dict, Iterable, List, Optional, Sequence, Tuple

SAMPLES = Path(__file__).resolve().parent.parent / "samples"
VERSIONS = SAMPLES / "versions"


def unit_folder(case: str) -> Path:
    """The folder of a sample that holds one unit, such as ``26.2.0/mini_tensor``."""
    (found,) = VERSIONS.joinpath(case).glob("step*/*")
    return found


def sample_file(case: str, stem: str) -> Path:
    """One tensor file of a sample."""
    return unit_folder(case) / "dump_tensor_data" / (stem + ".pt")


# --- a pickle, protocol 2 ---


def text(value: str) -> bytes:
    raw = value.encode("utf-8", "surrogatepass")
    return b"X" + struct.pack("<I", len(raw)) + raw


def number(value: int) -> bytes:
    """BININT or, where that is too small, LONG1."""
    if -(1 << 31) <= value < 1 << 31:
        return b"J" + struct.pack("<i", value)
    raw = value.to_bytes(value.bit_length() // 8 + 1, "little", signed=True)
    return b"\x8a" + bytes([len(raw)]) + raw


def sequence(*items: bytes) -> bytes:
    return b"(" + b"".join(items) + b"t"


def numbers(*values: int) -> bytes:
    return sequence(*map(number, values))


def name(module: str, attribute: str) -> bytes:
    return ("c%s\n%s\n" % (module, attribute)).encode()


def call(function: bytes, *arguments: bytes) -> bytes:
    return function + sequence(*arguments) + b"R"


NO_HOOKS = name("collections", "OrderedDict") + b")R"


def storage(
    kind: bytes = name("torch", "FloatStorage"), key: bytes = text("0"), location: bytes = text("cpu"), elements: bytes = number(4)
) -> bytes:
    return sequence(text("storage"), kind, key, location, elements) + b"Q"


def tensor(
    stored: Optional[bytes] = None,
    offset: bytes = number(0),
    shape: bytes = numbers(2, 2),
    strides: bytes = numbers(2, 1),
    function: bytes = name("torch._utils", "_rebuild_tensor_v2"),
    more: Sequence[bytes] = (),
) -> bytes:
    """A call of ``_rebuild_tensor_v2``; by default 2 x 2 float32 on a storage of 4 elements."""
    return call(function, storage() if stored is None else stored, offset, shape, strides, b"\x89", NO_HOOKS, *more)


def program(body: bytes) -> bytes:
    return b"\x80\x02" + body + b"."


# --- a file ---

SIXTEEN = bytes(range(16))


def write_archive(
    path: Path,
    pickle: bytes,
    data: bytes = SIXTEEN,
    byteorder: bytes = b"little",
    compressed: Iterable[str] = (),
    more: Sequence[Tuple[str, bytes]] = (),
) -> str:
    """A zip as torch.save lays it out, around any pickle and data."""
    with zipfile.ZipFile(path, "w") as archive:
        for member, content in [("data.pkl", pickle), ("byteorder", byteorder), ("data/0", data), *more]:
            kind = zipfile.ZIP_DEFLATED if member in compressed else zipfile.ZIP_STORED
            archive.writestr("archive/" + member, content, kind)
    return str(path)


def write_values(path: Path, dtype: str, raw: bytes, shape: Sequence[int]) -> str:
    """A contiguous tensor of a dtype that has a storage class of its own."""
    kind, size = {"float32": ("Float", 4), "float16": ("Half", 2), "bfloat16": ("BFloat16", 2), "int64": ("Long", 8)}[dtype]
    strides: List[int] = []
    for at in range(len(shape)):
        step = 1
        for length in shape[at + 1 :]:
            step *= length
        strides.append(step)
    stored = storage(name("torch", kind + "Storage"), elements=number(len(raw) // size))
    return write_archive(path, program(tensor(stored, shape=numbers(*shape), strides=numbers(*strides))), raw)


# --- a dump ---


def record(dtype: str = "torch.float32", shape: Sequence[Any] = (2,), **more: Any) -> Dict[str, Any]:
    """A tensor record of dump.json."""
    fields: Dict[str, Any] = {"type": "torch.Tensor", "dtype": dtype, "shape": list(shape)}
    fields.update({"Max": 1.0, "Min": 0.0, "Mean": 0.5, "Norm": 1.0, "requires_grad": False})
    fields.update(more)
    return fields


def write_unit(folder: Path, data: Any, files: Iterable[str] = (), **more: Any) -> Path:
    """A unit's folder with dump.json and, for each name in ``files``, an empty file."""
    tensors = folder / "dump_tensor_data"
    tensors.mkdir(parents=True)
    for file in files:
        (tensors / file).write_bytes(b"")
    fields = {"task": "tensor", "level": "L0", "framework": "pytorch", "dump_data_dir": "/gone/dump_tensor_data", "data": data}
    fields.update(more)
    (folder / "dump.json").write_text(json.dumps(fields))
    return folder
