"""An assembled side as files: one step, one rank, read like any other dump; what is unchanged is linked, not copied."""

import contextlib
import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from msprobe_files import names, units
from msprobe_files.errors import DumpError
from msprobe_files.units import Unit

from .assembly import AssembledSide
from .joined_tensors import JoinedTensor
from .pt_writer import write_pt
from .tensors import BLOCK_BYTES, Files, Tensor, cut_stream, elements_of


def write_dump(made: Mapping[str, AssembledSide], folder: Path, advance: Callable[[], object] = lambda: None) -> None:
    """Write each side as a unit with dump.json, construct.json and dump_tensor_data; the folder appears when it is whole.

    ``made``: the unit's place below ``folder``, stepN/rankN -> what it holds. ``advance`` is called after each tensor.
    Raises DumpError where ``folder`` holds something, or cannot be written.
    """
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise DumpError(f"Cannot write to {folder}: it is not empty. Choose another folder.")
    with _hidden_beside(folder) as part:
        for place, one in made.items():
            _write_unit(one, part / place, advance)
        if folder.exists():
            folder.rmdir()
        part.rename(folder)


@contextlib.contextmanager
def _hidden_beside(folder: Path) -> Iterator[Path]:
    """A new folder on the same file system, gone again where it is not renamed."""
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=f".{folder.name}.", dir=folder.parent) as hidden:
            part = Path(hidden) / folder.name
            part.mkdir()
            yield part
    except OSError as error:
        raise DumpError(f"Cannot write to {folder}: {error.strerror}. Choose another folder.") from None


def _write_unit(made: AssembledSide, unit: Path, advance: Callable[[], object]) -> None:
    (unit / "dump_tensor_data").mkdir(parents=True)
    for name, places in made.side.by_name.items():
        for place in places:
            _write_tensor(place.tensor, unit / "dump_tensor_data" / f"{name}.pt")
            advance()
    _write_json(unit / "dump.json", _dump_json(made))
    trace = made.side.units[0].trace
    if trace is not None:
        _write_json(unit / "construct.json", trace)


def _write_tensor(tensor: Tensor | None, path: Path) -> None:
    if not isinstance(tensor, JoinedTensor):
        raise DumpError(f"Cannot write {path.name}: it is no assembled tensor. Report this as a fault of the tool.")
    only = tensor.parts[0]
    if len(tensor.parts) == 1 and not only.source.steps and not tensor.steps:
        try:
            os.link(only.tensor.path, path)
        except OSError:  # another file system
            shutil.copyfile(only.tensor.path, path)
        return
    files = Files()
    try:
        stream = cut_stream(files, tensor, ())
        step, count = BLOCK_BYTES // tensor.item_size, elements_of(stream)
        write_pt(path, stream.dtype, stream.shape, (stream.read(at, min(count, at + step)).tobytes() for at in range(0, count, step)))
    finally:
        files.close()


def _write_json(path: Path, value: Any) -> None:
    path.write_text(json.dumps(value, indent=1, ensure_ascii=False), encoding="utf-8")


# --- dump.json ---


def _dump_json(made: AssembledSide) -> dict[str, Any]:
    """dump.json with every entry as the first unit that holds it recorded it, and what was joined in its new shape."""
    data: dict[str, Any] = {}
    head: dict[str, Any] = {}
    for unit in made.units:
        raw = units.load_json(os.path.join(unit.place.folder, "dump.json"))
        head = head or {key: value for key, value in raw.items() if key != "data"}
        for entry, content in raw["data"].items():
            if isinstance(content, dict) and not names.holds_gradients(entry):
                name, rewritten = _entry(made, unit, entry, content)
                if name is not None:
                    data.setdefault(name, rewritten)
    ordered = {entry: data[entry] for entry in made.side.units[0].entries}
    return {**head, "dump_data_dir": "dump_tensor_data", "data": {**ordered, **data}}


def _entry(made: AssembledSide, unit: Unit, entry: str, content: dict[str, Any]) -> tuple[str | None, dict[str, Any]]:
    """What an entry is called in the assembled dump (None: nothing of it stands there) and its content with the new records."""
    called: list[str] = []
    rewritten = dict(content)
    for key, category in units.SLOTS:
        if key in content:
            rewritten[key] = _slot(made, unit, content[key], (entry, category, ""), called)
    parsed = [names.parse_tensor(name) for name in called]
    return next((name.entry for name in parsed if name is not None), None), rewritten


def _slot(made: AssembledSide, unit: Unit, value: Any, at: tuple[str, str, str], called: list[str]) -> Any:
    entry, category, suffix = at
    if isinstance(value, list):
        return [_slot(made, unit, item, (entry, category, units.suffix_of(suffix, str(nth))), called) for nth, item in enumerate(value)]
    if not isinstance(value, dict):
        return value
    if not (isinstance(value.get("dtype"), str) and isinstance(value.get("shape"), list)):
        return {key: _slot(made, unit, item, (entry, category, units.suffix_of(suffix, str(key))), called) for key, item in value.items()}
    recorded = str(value.get("data_name") or "").removesuffix(".pt") or names.tensor_name(entry, category, suffix)
    name = made.renamed.get((unit.place.step, unit.place.rank, recorded))
    if name is None:  # it fits nowhere, or has no file
        return {key: item for key, item in value.items() if key != "data_name"}
    called.append(name)
    tensor = made.side.by_name[name][0].tensor
    same = tensor is not None and list(tensor.shape) == value["shape"] and len(getattr(tensor, "parts", ())) == 1
    statistics = {} if same else {key: None for key in ("Max", "Min", "Mean", "Norm") if key in value}
    shape = list(tensor.shape) if tensor is not None else value["shape"]
    return {**value, **statistics, "shape": shape, "data_name": f"{name}.pt"}
