"""The units of one side: those that can be used, and why the others cannot."""

import os
import re
from typing import List, NamedTuple, Sequence, Tuple

from msprobe_files.errors import DumpError
from msprobe_files.units import Unit, UnitPlace, find_units, read_unit

_OWN = re.compile(r"(rank|proc|pid)\d*\Z")


class Side(NamedTuple):
    """``label``: train or infer. ``unread``: units whose dump.json cannot be read, and why."""

    label: str
    units: Tuple[Unit, ...]
    unread: Tuple[Tuple[UnitPlace, str], ...]

    @property
    def usable(self) -> Tuple[Unit, ...]:
        """Units whose run ended and that list what they recorded, as tensors or as statistics."""
        return tuple(unit for unit in self.units if unit.order_known and not unit.killed and unit.entries)

    @property
    def empty(self) -> Tuple[Unit, ...]:
        """Units with a dump.json that lists nothing, and no tensor beside it."""
        return tuple(unit for unit in self.units if unit.place.has_json and not unit.entries)


def read_side(label: str, paths: Sequence[str]) -> Side:
    """All units below some paths. Raises DumpError where a path does not exist or is no dump."""
    units: List[Unit] = []
    unread: List[Tuple[UnitPlace, str]] = []
    seen = set()
    for path in paths:
        for place in find_units(path):
            if place.folder in seen:
                continue
            seen.add(place.folder)
            try:
                units.append(read_unit(place))
            except DumpError as error:
                unread.append((place, str(error)))
    units.sort(key=lambda unit: (unit.place.step, unit.place.rank, unit.place.folder))
    return Side(label, tuple(units), tuple(unread))


def shown(place: UnitPlace) -> str:
    """A unit as evidence names it: its step and its own folder, where that is one of msprobe's; no path of the machine."""
    own = os.path.basename(place.folder)
    return "step%d/%s" % (place.step, own if _OWN.match(own) else "rank%d" % place.rank)
