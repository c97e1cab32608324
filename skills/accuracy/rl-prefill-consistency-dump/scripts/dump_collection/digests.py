"""The digest under which artefacts know a dump (contracts of both skills)."""

import hashlib
import os
from typing import Sequence

from msprobe_files.units import Unit

from dump_collection import files


def digest(of: Sequence[Unit]) -> str:
    """sha-256 of a unit's dump.json; of several units over their sorted lines ``step0/rank0 <hex>``.

    Of a unit without dump.json: over the sorted lines ``<file> <bytes>`` of its tensors. Raises DumpError where it cannot be read.
    """
    each = sorted({"step%d/rank%d %s\n" % (unit.place.step, unit.place.rank, _of_unit(unit)) for unit in of})
    return _of_unit(of[0]) if len(of) == 1 else hashlib.sha256("".join(each).encode()).hexdigest()


def _of_unit(unit: Unit) -> str:
    if unit.place.has_json:
        return files.digest_of_file(os.path.join(unit.place.folder, "dump.json"))
    folder = unit.place.tensor_folder
    sizes = ((name, os.path.getsize(os.path.join(folder, name))) for name in sorted(os.listdir(folder)) if name.endswith(".pt"))
    return hashlib.sha256("".join("%s %d\n" % pair for pair in sizes).encode("utf-8", "surrogateescape")).hexdigest()
