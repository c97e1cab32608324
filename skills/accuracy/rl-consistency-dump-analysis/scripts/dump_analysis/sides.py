"""One side of an analysis: its units, what a tensor's name means there, and its digest."""

import fnmatch
import hashlib
import os
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from msprobe_files import units
from msprobe_files.errors import DumpError
from msprobe_files.operands import Source
from msprobe_files.units import Record, Unit

from .joined_tensors import JoinedTensor

_HEAD = 4096  # bytes
GLOB_SIGNS = frozenset("*?[")

# The order in which to look for the reason of an empty dump (public reports, most frequent first).
EMPTY_CHECKS = (
    "was the engine in graph mode (vLLM enforce_eager, SGLang disable_cuda_graph)",
    "does the model runner in use have the debugger's hook",
    "is msprobe installed in that environment",
    "is the configured rank part of the run",
)


class Place(NamedTuple):
    """A recorded tensor and the unit that holds it. ``tensor``: what it is made of, in a unit that is put together from others."""

    unit: Unit
    record: Record
    tensor: JoinedTensor | None = None


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


def empty_reason(side: Side) -> str | None:
    """One line for the user where a side holds no tensor at all, with the checks to make in order; else None."""
    if side.by_name:
        return None
    return f"the {side.label} dump holds no tensors. Check, in this order: " + "; ".join(EMPTY_CHECKS)


def entry_outputs(place: Place) -> Iterable[Record]:
    """The outputs of the entry that a tensor belongs to."""
    return (record for record in place.unit.entries.get(place.record.entry, ()) if record.category == "output")
