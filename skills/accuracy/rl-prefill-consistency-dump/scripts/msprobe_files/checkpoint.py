"""The weights of a checkpoint as byte ranges of its files: safetensors, and files of torch.save. Nothing is loaded.

Format: a safetensors file is the size of its header (8 bytes, little-endian), the header, JSON of name ->
{"dtype", "shape", "data_offsets": [start, stop) after the header}, and the data, row-major
(https://github.com/huggingface/safetensors#format). Shards are listed in ``*.index.json``: {"weight_map": {name: file}}.
"""

import json
import os
from math import prod
from pathlib import Path
from typing import Any, Dict, List, Tuple, Union

from . import pt_archive
from .errors import DumpError
from .pt_archive import ITEM_SIZES, PtTensor
from .units import load_json

_DTYPES = {
    "F64": "float64", "F32": "float32", "F16": "float16", "BF16": "bfloat16",
    "F8_E4M3": "float8_e4m3fn", "F8_E5M2": "float8_e5m2", "F8_E8M0": "float8_e8m0fnu",
    "I64": "int64", "I32": "int32", "I16": "int16", "I8": "int8",
    "U64": "uint64", "U32": "uint32", "U16": "uint16", "U8": "uint8", "BOOL": "bool", "C64": "complex64",
}  # fmt: skip
_LARGEST_HEADER = 100_000_000  # bytes, as the format's own reader has it
_TORCH = (".pt", ".pth", ".bin")
_POINTER = b"version https://git-lfs"


def read(path: Union[str, Path]) -> Dict[str, PtTensor]:
    """Name -> where a weight lies, of a folder (its index, or all its files) or of one file; data is read by `tensors.cut_stream`.

    Raises DumpError where nothing there is a checkpoint, a file is missing, cut or hostile, or two files hold one name.
    """
    found: Dict[str, PtTensor] = {}
    files, listed = _files(Path(path))
    for file in files:
        for name, tensor in _of_file(file).items():
            if name in found:
                raise _unreadable(path, f"{os.path.basename(found[name].path)} and {file.name} both hold {name}")
            found[name] = tensor
    if not found:
        raise _unreadable(path, "it holds no tensors")
    lacking = next((name for name in listed if name not in found), None)
    if lacking is not None:
        raise _unreadable(path, f"its index lists {lacking}, which none of its files holds")
    return found


def _files(path: Path) -> Tuple[List[Path], List[str]]:
    """The files, and the weights that an index says are in them."""
    if not path.is_dir():
        return [path], []
    for kinds in ((".safetensors",), _TORCH):
        indices = sorted(file for file in path.glob("*.index.json") if file.name[: -len(".index.json")].endswith(kinds))
        if len(indices) > 1:
            raise _unreadable(path, f"it holds several indices: {', '.join(index.name for index in indices)}", "Hand a folder with one.")
        if indices:
            return _listed(indices[0])
        files = sorted(file for file in path.iterdir() if file.suffix in kinds and file.is_file())
        if files:
            return files, []
    raise _unreadable(path, "it holds no .safetensors, .bin, .pt or .pth file", "Hand the folder of the weights, or one such file.")


def _listed(index: Path) -> Tuple[List[Path], List[str]]:
    shards = load_json(str(index)).get("weight_map")
    if not isinstance(shards, dict) or not all(isinstance(name, str) for name in shards.values()):
        raise _unreadable(index, "it has no weight_map of names and files")
    names = sorted(set(shards.values()))
    outside = [name for name in names if os.path.basename(name) != name]
    if outside:
        raise _unreadable(index, f"it names a file outside its folder: {outside[0][:100]}")
    return [index.parent / name for name in names], list(shards)


def _of_file(path: Path) -> Dict[str, PtTensor]:
    try:
        with open(path, "rb") as file:
            head = file.read(len(_POINTER))
            size = os.fstat(file.fileno()).st_size
            if head == _POINTER:
                raise _unreadable(path, "it is a pointer of git-lfs, not the file itself", "Fetch the file (git lfs pull).")
            if path.suffix in _TORCH:
                return pt_archive.read_headers(str(path))
            length = int.from_bytes(head[:8], "little")
            if len(head) < 8 or length > min(size - 8, _LARGEST_HEADER):
                raise _unreadable(path, "it is no safetensors file, or is cut in its header")
            file.seek(8)
            header = json.loads(file.read(length).decode("utf-8"))
    except OSError as error:
        raise _unreadable(path, error.strerror or str(error)) from None
    except (ValueError, RecursionError):
        raise _unreadable(path, "its header is no JSON") from None
    if not isinstance(header, dict):
        raise _unreadable(path, "its header is no JSON object")
    return {name: _placed(path, name, said, 8 + length, size) for name, said in header.items() if name != "__metadata__"}


def _placed(path: Path, name: str, said: Any, origin: int, size: int) -> PtTensor:
    """The tensor that a header describes. ``origin``: where the data begins; ``size``: of the file."""
    shown = name[:100]
    try:
        kind, shape, (start, stop) = said["dtype"], said["shape"], said["data_offsets"]
    except (TypeError, KeyError, ValueError):
        raise _unreadable(path, f"its header does not say where {shown} lies") from None
    if not isinstance(shape, list) or not all(type(count) is int and count >= 0 for count in (start, stop, *shape)):
        raise _unreadable(path, f"the shape or place of {shown} is no count")
    dtype = _DTYPES.get(kind) if isinstance(kind, str) else None
    if dtype is None:
        raise _unreadable(path, f"the dtype of {shown}, {str(kind)[:20]}, is not known", "Hand a checkpoint in the format of the dump.")
    if stop - start != prod(shape) * ITEM_SIZES[dtype] or origin + stop > size:
        raise _unreadable(path, f"{shown} does not fit: {shape[:8]} of {kind} in bytes {start}:{stop} of {size - origin}")
    strides = tuple(prod(shape[axis + 1 :]) for axis in range(len(shape)))
    return PtTensor(str(path), dtype, tuple(shape), strides, origin + start, origin + start, stop - start, "cpu")


def _unreadable(path: Union[str, Path], why: str, remedy: str = "Copy or save it again.") -> DumpError:
    shown = "".join(sign if sign.isprintable() else "?" for sign in why)
    return DumpError(f"Cannot read the checkpoint {Path(path).name or path}: {shown}. {remedy}")
