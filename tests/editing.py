"""Copies of real dumps, changed on purpose: how the tests make their damaged and faulty sides."""

import json
import shutil
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any


def copy_side(source: Path, target: Path) -> Path:
    """A side of a sample, copied so that it may be changed."""
    shutil.copytree(source, target, copy_function=shutil.copyfile)
    return target


def unit_of(side: Path) -> Path:
    """The folder of a side's only dump.json."""
    (found,) = side.rglob("dump.json")
    return found.parent


def tensor_file(side: Path, name: str) -> Path:
    return unit_of(side) / "dump_tensor_data" / f"{name}.pt"


def edit_tensor(path: Path, change: Callable[[bytearray], None]) -> None:
    """Change the raw data of a .pt file; the zip is written anew by the standard library."""
    with zipfile.ZipFile(path) as archive:
        members = {info.filename: archive.read(info) for info in archive.infolist()}
    (data,) = [name for name in members if name.endswith("/data/0")]
    raw = bytearray(members[data])
    change(raw)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive:
        for name, content in members.items():
            archive.writestr(name, bytes(raw) if name == data else content)


def edit_json(path: Path, change: Callable[[Any], None]) -> None:
    """Change a JSON file of a dump in place."""
    value = json.loads(path.read_text())
    change(value)
    path.write_text(json.dumps(value))


def set_bfloat16(index: int, bits: int) -> Callable[[bytearray], None]:
    """A change that puts the given bits into one bfloat16 element."""

    def change(raw: bytearray) -> None:
        raw[2 * index : 2 * index + 2] = bits.to_bytes(2, "little")

    return change
