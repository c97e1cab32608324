"""A dump by its tensors: which units it has, and where a tensor of a name, step and rank lies."""

import os
from typing import Dict, Iterator, List, NamedTuple, Optional, Sequence, Tuple

from msprobe_files import release, units
from msprobe_files.errors import DumpError
from msprobe_files.operands import Source
from msprobe_files.pt_archive import PtTensor, read_header
from msprobe_files.units import Record, Unit, tensor_path

from dump_collection import digests as digests_of


class Recorded(NamedTuple):
    """One dump: its units and, for each of them, its tensors by name."""

    path: str
    units: Tuple[Unit, ...]
    tensors: Tuple[Dict[str, Record], ...]

    @property
    def ranks(self) -> Tuple[int, ...]:
        return tuple(sorted({unit.place.rank for unit in self.units}))

    @property
    def steps(self) -> Tuple[int, ...]:
        return tuple(sorted({unit.place.step for unit in self.units}))

    def holders(self, name: str) -> "List[Tuple[Unit, Record]]":
        """The units that hold a tensor of that name, and its record there."""
        return [(unit, tensors[name]) for unit, tensors in zip(self.units, self.tensors) if name in tensors]


def open_dump(path: str, what: str) -> Recorded:
    """Read a dump's JSON files. ``what``: how errors call it. Raises DumpError where there is nothing in it."""
    places = units.find_units(path)
    read = tuple(unit for unit in map(units.read_unit, places) if unit.entries)
    if not read:
        raise DumpError("Cannot use %s as %s: it holds no dump. Check the path, or dump again." % (path, what))
    return Recorded(path, read, tuple({record.name: record for record in unit.records()} for unit in read))


def named(units_of: Sequence[Unit]) -> str:
    """Units as a reader tells them apart."""
    return ", ".join("step%d/%s" % (unit.place.step, os.path.basename(unit.place.folder)) for unit in units_of)


def find(source: Recorded, wanted: Source, target_rank: int) -> Tuple[Unit, Record, PtTensor]:
    """The file of a source and what it holds. Raises LookupError or DumpError with the reason.

    A source without a rank is, where the dump has several, that of the target's rank.
    """
    found = source.holders(wanted.name)
    if not found:
        near = _near(source, wanted.name)
        raise LookupError("the source dump holds no %s%s" % (wanted.name, "; it holds " + ", ".join(near) if near else ""))
    if wanted.dump_step is not None:
        found = [item for item in found if item[0].place.step == wanted.dump_step]
    if wanted.rank is not None:
        found = [item for item in found if item[0].place.rank == wanted.rank]
    elif len(found) > 1:
        found = [item for item in found if item[0].place.rank == target_rank]
    if not found:
        held = named([unit for unit, _ in source.holders(wanted.name)])
        rank = wanted.rank if wanted.rank is not None else target_rank
        step = "any step" if wanted.dump_step is None else "step %d" % wanted.dump_step
        raise LookupError("%s is not there for rank %d and %s; the source dump holds it in %s" % (wanted.name, rank, step, held))
    if len(found) > 1:
        raise LookupError("%s is in several units, %s: say rank and dump_step" % (wanted.name, named([unit for unit, _ in found])))
    unit, record = found[0]
    return unit, record, read_header(tensor_path(unit, record))


def _near(source: Recorded, name: str) -> List[str]:
    """Tensors of the same entry, else none: what a reader would look for next."""
    entry = name.rpartition(".output.")[0] or name.rpartition(".input.")[0]
    return [other for other in source.tensors[0] if entry and other.startswith(entry + ".")][:4]


def digests(dump: Recorded) -> Iterator[str]:
    """The digests under which the analysis may know this dump: all of it, one step of it, one unit of it."""
    yield digests_of.digest(dump.units)
    for step in dump.steps:
        yield digests_of.digest([unit for unit in dump.units if unit.place.step == step])
    for unit in dump.units:
        yield digests_of.digest([unit])


def recorded_inputs(unit: Unit, entry: str) -> Dict[str, Optional[Tuple[Tuple[int, ...], Optional[str]]]]:
    """The tensor arguments of a call by ``input.<i>`` and ``kwargs.<name>``: shape and dtype; None where nested in another argument."""
    found: Dict[str, Optional[Tuple[Tuple[int, ...], Optional[str]]]] = {}
    for record in unit.entries.get(entry, ()):
        if record.category in ("input", "kwargs"):
            whole = record.suffix.isdigit() or (record.category == "kwargs" and "." not in record.suffix)
            found[record.category + "." + record.suffix] = (record.shape or (), record.dtype) if whole else None
    return found


def inputs_are(unit: Unit) -> str:
    """When the unit took its module inputs: ``pre_call``, ``post_call`` or ``unknown``, also where that needs numpy and none is here."""
    try:
        return release.inputs_are(unit)
    except ImportError:  # only a unit without stack.json needs it; whoever asks takes unknown as no evidence
        return release.UNKNOWN
