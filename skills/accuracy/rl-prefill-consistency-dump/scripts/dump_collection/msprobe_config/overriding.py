"""How a ``load`` section is written, and checked against its source folder: msprobe itself only warns, and then overrides half.

Measured on mindstudio-probe 26.2.0, the first release with ``load``; earlier ones ignore the section without a word.
``core/dump/common_config.LoadConfig``, ``core/dump/service.BaseService.start``, ``TensorLoader.update_step_rank``.
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


def windows(steps: Sequence[int]) -> List[int]:
    """The ``step`` of a configuration that overrides ``steps``: each of them and the one after it.

    ``start`` returns before it looks at a step that the configuration does not name (``_need_stop_service``), and the forwards
    of such a step, a decode step or a training forward, get the tensors of the last one that it looked at.
    """
    return sorted({*steps, *(step + 1 for step in steps)})


def section(path: str, modules: Sequence[str], steps: Sequence[int], dump_after_load: bool) -> Dict[str, Any]:
    """The section. ``path``: the folder above ``stepN``, absolute.

    ``step`` names what is overridden, so that the start of the next window switches the loader off. The filter of ranks stays
    empty: it means the running rank, and one that names another process overrides nothing and says nothing.
    """
    return {"path": path, "modules": list(modules), "step": list(steps), "rank": [], "dump_after_load": dump_after_load}


def load_section(path: str, modules: Sequence[str], dump_after_load: bool, steps: Sequence[int]) -> Loaded:
    """The section for a source folder and entries of the target, of which ``steps`` are overridden.

    Raises DumpError where msprobe would stop, or would not override.
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
    return Loaded(section(source, modules, steps, dump_after_load), tuple(warnings))


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
