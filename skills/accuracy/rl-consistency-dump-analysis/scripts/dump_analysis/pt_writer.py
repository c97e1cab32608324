"""A ``.pt`` file of one tensor written without torch: a stored zip as ``torch.save`` makes it, which torch and `pt_archive` read."""

import struct
import zipfile
from collections.abc import Iterable
from math import prod
from pathlib import Path

from msprobe_files.errors import DumpError
from msprobe_files.pt_archive import ITEM_SIZES

# torch 2.13 ``torch/_utils.py`` _rebuild_tensor_v2: dtypes that have a storage class of their own.
_STORAGES = {
    "float64": "DoubleStorage", "float32": "FloatStorage", "float16": "HalfStorage", "bfloat16": "BFloat16Storage",
    "int64": "LongStorage", "int32": "IntStorage", "int16": "ShortStorage", "int8": "CharStorage", "uint8": "ByteStorage",
    "bool": "BoolStorage", "complex64": "ComplexFloatStorage", "complex128": "ComplexDoubleStorage",
}  # fmt: skip


def write_pt(path: Path, dtype: str, shape: tuple[int, ...], blocks: Iterable[bytes]) -> None:
    """Write a contiguous tensor from its bytes, block by block. Raises DumpError for a dtype without a storage class, or wrong bytes."""
    if dtype not in _STORAGES:
        raise DumpError(f"Cannot write {path.name}: torch has no storage class for {dtype}. Compare the dumps without assembling files.")
    size = prod(shape) * ITEM_SIZES[dtype]
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr(_member("archive/data.pkl"), _pickle(dtype, shape))
        archive.writestr(_member("archive/byteorder"), b"little")
        with archive.open(_member("archive/data/0", size), "w") as member:
            written = sum(member.write(block) for block in blocks)
        archive.writestr(_member("archive/version"), b"3\n")
    if written != size:
        raise DumpError(f"Cannot write {path.name}: {written} bytes for {size}. Report this as a fault of the tool.")


def _member(name: str, size: int = 0) -> zipfile.ZipInfo:
    """A member with a fixed date: the same tensor makes the same file."""
    info = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
    info.file_size = size
    return info


def _pickle(dtype: str, shape: tuple[int, ...]) -> bytes:
    """Protocol 2: ``_rebuild_tensor_v2(persistent storage, 0, shape, strides, False, OrderedDict())``."""
    strides = tuple(prod(shape[axis + 1 :]) for axis in range(len(shape)))
    storage = [_text("storage"), _name("torch", _STORAGES[dtype]), _text("0"), _text("cpu"), _number(prod(shape))]
    arguments = [
        b"(" + b"".join(storage) + b"tQ",
        _number(0),
        _numbers(shape),
        _numbers(strides),
        b"\x89",
        _name("collections", "OrderedDict") + b")R",
    ]
    return b"\x80\x02" + _name("torch._utils", "_rebuild_tensor_v2") + b"(" + b"".join(arguments) + b"tR."


def _text(value: str) -> bytes:
    raw = value.encode()
    return b"X" + struct.pack("<I", len(raw)) + raw


def _number(value: int) -> bytes:
    if value < 1 << 31:
        return b"J" + struct.pack("<i", value)
    raw = value.to_bytes(value.bit_length() // 8 + 1, "little", signed=True)
    return b"\x8a" + bytes([len(raw)]) + raw


def _numbers(values: tuple[int, ...]) -> bytes:
    return b"(" + b"".join(map(_number, values)) + b"t"


def _name(module: str, attribute: str) -> bytes:
    return f"c{module}\n{attribute}\n".encode()
