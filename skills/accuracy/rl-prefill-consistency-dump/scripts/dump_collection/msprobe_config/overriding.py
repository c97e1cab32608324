"""The ``load`` section, checked against its source folder before a run: msprobe itself only warns, and then overrides half.

Measured on mindstudio-probe 26.2.0, the first release with ``load``; earlier ones ignore the section without a word.
"""

import os
import re
from typing import Any, Dict, Iterator, List, NamedTuple, Sequence, Tuple

from msprobe_files.errors import DumpError

_ENTRY = re.compile(r"Module\..+\.forward\.(\d+)\Z")
_STEP = re.compile(r"step\d+\Z")
_TENSORS = "dump_tensor_data"


class Loaded(NamedTuple):
    """A ``load`` section and what is to be known of it."""

    section: Dict[str, Any]
    warnings: Tuple[str, ...]


def load_section(path: str, modules: Sequence[str], dump_after_load: bool, steps: Sequence[int]) -> Loaded:
    """The section for a source folder and entries of the target, which runs ``steps``.

    ``step`` and ``rank`` stay empty: they filter the running step and rank, and with ``dump_after_load`` false a step that
    is not the first is never overridden (26.2.0). Raises DumpError where msprobe would stop, or would not override.
    """
    source = os.path.realpath(path)
    folders = _unit_folders(source, path)
    held = {os.path.relpath(folder, source).partition(os.path.sep)[0] for folder, _ in folders}
    lacking = [step for step in steps if "step%d" % step not in held]
    if lacking:
        raise DumpError(
            "Cannot override step %d from %s: it holds %s. Give the step that runs by --step, or make the source folder for it."
            % (lacking[0], path, ", ".join(sorted(held)))
        )
    warnings: List[str] = []
    for entry in modules:
        found = _ENTRY.match(entry)
        if not found or ".backward." in entry:
            raise DumpError(
                "Cannot override %s: expected Module.<path>.<Class>.forward.<call>. Take the entry from the target's dump.json." % entry
            )
        if modules.count(entry) > 1:
            raise DumpError("Cannot override %s: it is named twice, and msprobe refuses that. Name it once." % entry)
        without = [folder for folder, names in folders if not any(_is_input(name, entry) for name in names)]
        if without:
            raise DumpError(
                "Cannot override %s: %s holds no %s.input.* or .kwargs.* file. Make the source folder by apply_stub_instruction.py."
                % (entry, os.path.relpath(without[0], source), entry)
            )
        if int(found.group(1)):
            warnings.append("%s is the call with index %s: the calls before it are not overridden" % (entry, found.group(1)))
    warnings += _of_units([os.path.basename(os.path.dirname(folder)) for folder, _ in folders])
    section = {"path": source, "modules": list(modules), "step": [], "rank": [], "dump_after_load": dump_after_load}
    return Loaded(section, tuple(warnings))


def _unit_folders(source: str, path: str) -> "List[Tuple[str, List[str]]]":
    """The folders that msprobe looks in, ``stepN/{rankM,procP}/dump_tensor_data``, and the names in each."""
    if not os.path.isdir(source):
        raise DumpError("Cannot override from %s: there is no such folder. Make it by apply_stub_instruction.py." % path)
    found = []
    for step in sorted(filter(_STEP.match, os.listdir(source))):
        for unit in sorted(os.listdir(os.path.join(source, step))):
            folder = os.path.join(source, step, unit, _TENSORS)
            if re.match(r"(rank\d+|proc\d*)\Z", unit) and os.path.isdir(folder):
                found.append((folder, os.listdir(folder)))
    if not found:
        raise DumpError(
            "Cannot override from %s: it holds no stepN/rankM/%s (one process: procP). Give the folder above stepN." % (path, _TENSORS)
        )
    return found


def _is_input(name: str, entry: str) -> bool:
    return name.endswith(".pt") and name.startswith((entry + ".input.", entry + ".kwargs."))


def _of_units(units: Sequence[str]) -> Iterator[str]:
    single = [unit for unit in units if unit.startswith("proc")]
    if single and len(single) == len(units):
        yield (
            "the source holds %s only: a target under torch.distributed reads rankM and would override nothing. Rename it for such a target"
            % single[0]
        )
    if len(set(single)) > 1:
        yield "the source holds several proc folders: msprobe takes the first in directory order. Leave one"
