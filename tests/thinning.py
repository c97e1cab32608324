"""Dumps as task ``statistics`` leaves them, made of committed ones: the same JSON files without their tensors."""

import json
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from editing import unit_of

Digest = Callable[[bytes], str]


def crc(data: bytes) -> str:
    """What ``summary_mode: md5`` writes of the bytes of a contiguous tensor."""
    return f"{zlib.crc32(data):08x}"


def xor(data: bytes) -> str:
    """What ``summary_mode: xor`` writes: the exclusive or of all 8-byte words."""
    words = np.frombuffer(data + bytes(-len(data) % 8), "<u8")
    return f"0x{int(np.bitwise_xor.reduce(words)):016x}"


def thinned(side: Path, target: Path, digest: Digest | None = None, *, statistics: bool = True) -> Path:
    """A dump of one unit without its tensors, below ``target``; with digests of them, and without statistics where xor leaves none."""
    unit = unit_of(side)
    folder = target / "step0/rank0"
    folder.mkdir(parents=True)
    for name in ("dump.json", "construct.json"):
        if (unit / name).is_file():
            value = json.loads((unit / name).read_text())
            if name == "dump.json":
                value.update(task="statistics", dump_data_dir=None)
                _strip(value["data"], unit / "dump_tensor_data", digest, statistics)
            (folder / name).write_text(json.dumps(value))
    return target


def _strip(value: Any, folder: Path, digest: Digest | None, statistics: bool) -> None:
    if isinstance(value, list):
        for item in value:
            _strip(item, folder, digest, statistics)
    elif isinstance(value, dict):
        file = value.pop("data_name", None)
        if isinstance(file, str) and digest is not None:
            value["md5"] = digest(_data(folder / file))
        if "dtype" in value and not statistics:
            for key in ("Max", "Min", "Mean", "Norm"):
                value.pop(key, None)
        for item in value.values():
            _strip(item, folder, digest, statistics)


def _data(path: Path) -> bytes:
    """The bytes of a saved tensor, which msprobe clones before it saves: its storage holds nothing else."""
    with zipfile.ZipFile(path) as archive:
        (name,) = [name for name in archive.namelist() if name.endswith("/data/0")]
        return archive.read(name)
