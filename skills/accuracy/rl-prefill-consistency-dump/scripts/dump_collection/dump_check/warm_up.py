"""Forwards that only warm an engine up: activations of zeros, or one id in every row."""

from typing import NamedTuple, Optional, Tuple

from msprobe_files import names, pt_archive
from msprobe_files.errors import DumpError
from msprobe_files.units import Record, Unit, tensor_path

from dump_collection.dump_check import modules

_SAMPLE = 100  # activations looked at in one unit, spread over it


class Zeros(NamedTuple):
    """How many of a unit's activations are zero in every element, of those looked at."""

    zero: int
    of: int

    @property
    def most(self) -> bool:
        return self.of > 0 and 2 * self.zero > self.of


def zeros_of(unit: Unit) -> Zeros:
    """Floating-point outputs of modules; one that cannot be read counts for neither."""
    made = [record for entry in unit.entries if names.parse_entry(entry).kind == "module" for record in modules.outputs(unit, entry)]
    step = max(1, len(made) // _SAMPLE)
    answers = [_is_zero(unit, record) for record in made[::step]]
    known = [answer for answer in answers if answer is not None]
    return Zeros(sum(known), len(known))


def all_warm_up(units: Tuple[Unit, ...]) -> bool:
    """Whether every unit holds zeros in most of its activations."""
    return bool(units) and all(zeros_of(unit).most for unit in units)


def _is_zero(unit: Unit, record: Record) -> Optional[bool]:
    stated = record.statistics["Max"], record.statistics["Min"]
    if record.file is None:
        return stated == (0, 0) if None not in stated else None
    try:
        tensor = pt_archive.read_header(tensor_path(unit, record))
        return all(block.count(0) == len(block) for block in pt_archive.blocks(tensor))
    except DumpError:
        return None
