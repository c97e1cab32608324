"""One side of an analysis: its units, what a tensor's name means there, and its digest."""

import fnmatch
import hashlib
import os
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from msprobe_files import names, pt_archive, units
from msprobe_files.errors import DumpError
from msprobe_files.operands import Source
from msprobe_files.pt_archive import PtTensor
from msprobe_files.units import Record, Unit

GLOB_SIGNS = frozenset("*?[")

# The order in which to look for the reason of an empty dump (public reports, most frequent first).
EMPTY_CHECKS = (
    "was the engine in graph mode (vLLM enforce_eager, SGLang disable_cuda_graph)",
    "does the model runner in use have the debugger's hook",
    "is msprobe installed in that environment",
    "is the configured rank part of the run",
)


class Place(NamedTuple):
    """A recorded tensor and the unit that holds it."""

    unit: Unit
    record: Record


class Side(NamedTuple):
    """The units of one side. ``label`` is ``train`` or ``infer``; ``by_name``: a tensor's name -> where it is recorded."""

    label: str
    units: tuple[Unit, ...]
    digest: str
    by_name: dict[str, tuple[Place, ...]]


def open_side(label: str, paths: Sequence[str]) -> Side:
    """Find and read all units under the given paths. A side without any unit is allowed: nothing was dumped.

    Raises DumpError where a path does not exist or a dump.json is cut.
    """
    places = {place.folder: place for path in paths for place in units.find_units(path)}
    ordered = sorted(places.values(), key=lambda place: (place.step, place.rank, place.folder))
    return side_of(label, [units.read_unit(place) for place in ordered])


def side_of(label: str, read: Sequence[Unit]) -> Side:
    """A side of units that were read."""
    index: dict[str, list[Place]] = {}
    for unit in read:
        for record in unit.records():
            index.setdefault(record.name, []).append(Place(unit, record))
    return Side(label, tuple(read), _digest(read), {name: tuple(found) for name, found in index.items()})


def _digest(read: Sequence[Unit]) -> str:
    each = {f"step{unit.place.step}/rank{unit.place.rank} {_unit_digest(unit)}\n" for unit in read}
    if len(read) == 1:
        return _unit_digest(read[0])
    return hashlib.sha256("".join(sorted(each)).encode()).hexdigest()


def _unit_digest(unit: Unit) -> str:
    if unit.place.has_json:
        with open(os.path.join(unit.place.folder, "dump.json"), "rb") as file:
            return hashlib.sha256(file.read()).hexdigest()
    folder = unit.place.tensor_folder
    lines = sorted(f"{name} {os.path.getsize(os.path.join(folder, name))}\n" for name in os.listdir(folder) if name.endswith(".pt"))
    return hashlib.sha256("".join(lines).encode()).hexdigest()


# --- what may be compared ---


def check_comparable(train: Side, infer: Side) -> None:
    """Refuse what would make a comparison meaningless. Raises DumpError.

    One folder against itself (always equal), two dumps of one step and rank (which one?), and a side
    whose layers all hold one captured buffer (C17, B18 of the public cases).
    """
    shared = {os.path.realpath(unit.place.folder) for unit in train.units} & {os.path.realpath(unit.place.folder) for unit in infer.units}
    if shared:
        raise DumpError("Cannot compare: both sides resolve to the same files. Hand the trainer's dump and the engine's.")
    for side in (train, infer):
        doubled = duplicates(side)
        if doubled:
            raise DumpError(
                f"Cannot compare: several dumps of {side.label} under one step and rank: {', '.join(doubled)}. Hand one of them."
            )
        captured = captured_layers(side)
        if captured:
            raise DumpError(
                f"Cannot compare: {captured} layer outputs on the {side.label} side are bitwise equal: captured buffer, not data. "
                "Dump again in eager mode, with a copy inside the hook."
            )


def duplicates(side: Side) -> list[str]:
    """Folder names of units that share their step and rank with another."""
    seen: dict[tuple[int, int], list[str]] = {}
    for unit in side.units:
        tail = unit.place.folder.split(os.sep)[-2:]
        seen.setdefault((unit.place.step, unit.place.rank), []).append("/".join(tail))
    return [name for found in seen.values() if len(found) > 1 for name in found]


def captured_layers(side: Side) -> int:
    """How many layers hold one and the same output, where *all* of a unit's layers do; else 0.

    Under graph capture or buffer reuse the hook copies one final buffer into every layer's file. At
    least three layers; outputs of zeros (a dummy run) and single elements prove nothing.
    """
    for unit in side.units:
        layers: dict[int, list[Record]] = {}
        for entry, records in unit.entries.items():
            path = names.parse_entry(entry).path
            position = names.layer_position(path)
            if position is not None and position == len(path) - 1:
                layers.setdefault(int(path[position]), [r for r in records if r.category == "output"])
        if len(layers) >= 3 and _all_equal(unit, list(layers.values())):
            return len(layers)
    return 0


def _all_equal(unit: Unit, layers: list[list[Record]]) -> bool:
    first = layers[0]
    if not first or any(len(records) != len(first) for records in layers):
        return False
    proven = False
    for at, record in enumerate(first):
        data = _file_bytes(unit, record)
        if data is None or any(_file_bytes(unit, records[at]) != data for records in layers[1:]):
            return False
        proven = proven or (len(data) > 8 and data.count(data[:1]) != len(data))
    return proven


def _file_bytes(unit: Unit, record: Record) -> bytes | None:
    try:
        return pt_archive.read_bytes(pt_archive.read_header(units.tensor_path(unit, record)))
    except DumpError:
        return None


# --- what a name means ---


def resolve(side: Side, source: Source) -> Place | None:
    """Where the tensor of a mapping's source is recorded; None where no unit has it.

    ``source.name`` is a tensor's name, or a glob that must hit exactly one. Raises DumpError listing
    the candidates where several tensors or several units fit.
    """
    name = source.name
    if name not in side.by_name and GLOB_SIGNS & set(name):
        hits = fnmatch.filter(side.by_name, name)
        if len(hits) > 1:
            shown = ", ".join(sorted(hits)[:6]) + (" …" if len(hits) > 6 else "")
            raise DumpError(f"Cannot use the glob {name}: it matches {len(hits)} tensors of {side.label}: {shown}. Narrow it to one.")
        name = hits[0] if hits else name
    found = [
        place
        for place in side.by_name.get(name, ())
        if source.rank in (None, place.unit.place.rank) and source.dump_step in (None, place.unit.place.step)
    ]
    if len(found) > 1:
        shown = ", ".join(f"step{place.unit.place.step}/rank{place.unit.place.rank}" for place in found)
        raise DumpError(
            f"Cannot use {name}: {len(found)} units of {side.label} hold it ({shown}). "
            "Say dump_step and rank in the mapping, or hand one folder."
        )
    return found[0] if found else None


def same_tensors(side: Side, names_asked: Iterable[str], named: Iterable[str]) -> set[str]:
    """Those of ``names_asked`` whose bytes equal those of some tensor in ``named`` of the same unit, whatever their shape."""
    by_size: dict[tuple[str, str, int], list[PtTensor]] = {}
    for name in named:
        for place in side.by_name.get(name, ()):
            tensor = _readable(place)
            if tensor is not None:
                by_size.setdefault((place.unit.place.folder, tensor.dtype, tensor.elements), []).append(tensor)
    found: set[str] = set()
    for name in names_asked:
        for place in side.by_name.get(name, ()):
            tensor = _readable(place)
            if tensor is None:
                continue
            twins = by_size.get((place.unit.place.folder, tensor.dtype, tensor.elements), [])
            if any(_same_file_bytes(tensor, twin) for twin in twins):
                found.add(name)
    return found


def _readable(place: Place) -> PtTensor | None:
    try:
        tensor = pt_archive.read_header(units.tensor_path(place.unit, place.record))
    except DumpError:
        return None  # what cannot be read equals nothing
    return tensor if tensor.contiguous and tensor.elements else None


def _same_file_bytes(left: PtTensor, right: PtTensor) -> bool:
    """Equal data, block by block; most unequal pairs part in the first block."""
    size = left.elements * left.item_size
    with open(left.path, "rb") as a, open(right.path, "rb") as b:
        a.seek(left.start)
        b.seek(right.start)
        for at in range(0, size, 1 << 17):
            count = min(1 << 17, size - at)
            if a.read(count) != b.read(count):
                return False
    return True


def empty_reason(side: Side) -> str | None:
    """One line for the user where a side holds no tensor at all, with the checks to make in order; else None."""
    if side.by_name:
        return None
    return f"the {side.label} dump holds no tensors. Check, in this order: " + "; ".join(EMPTY_CHECKS)


def category_of(name: str) -> str | None:
    """``input``, ``kwargs``, ``output`` or ``parameters`` of a tensor's name; None where it follows no rule."""
    parsed = names.parse_tensor(name)
    return parsed.category if parsed else None


def entry_outputs(place: Place) -> Iterable[Record]:
    """The outputs of the entry that a tensor belongs to."""
    return (record for record in place.unit.entries.get(place.record.entry, ()) if record.category == "output")
