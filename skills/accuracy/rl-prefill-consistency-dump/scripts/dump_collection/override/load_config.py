"""The configuration of the run that overrides, and which msprobe can carry it out.

msprobe 26.2.0: ``core/dump/common_config.LoadConfig``, ``core/dump/service.BaseService.start``,
``pytorch/dump/module_dump/module_processor.build_module_hook``.
"""

import importlib.util
import os
import re
from typing import Any, Dict, Sequence

from msprobe_files import release
from msprobe_files.errors import DumpError
from msprobe_files.units import Unit

from dump_collection.quotes import version_in

from .plan import Plan
from .recorded import inputs_are

_FIRST = (26, 2)
_LOADER = ("pytorch", "dump", "module_load", "tensor_loader.py")
_GET = (
    "Before 26.2.0 msprobe ignores the load section without a word. "
    "Install it where the target runs (python3 -m pip install 'mindstudio-probe>=26.2.0'), dump the target again with it, "
    "and hand that dump."
)
# What msprobe takes in a path (FileCheckConst.FILE_VALID_PATTERN); others raise at the first start().
_PATH = re.compile(r"[A-Za-z0-9_.:/-]+\Z")


def config(plan: Plan, *, level: str, load_path: str, dump_path: str, dump_after_load: bool) -> Dict[str, Any]:
    """A whole configuration file of msprobe. ``load_path``: the folder above ``stepN``; both paths absolute.

    The steps are N and N + 1, the load section's is N: with N alone msprobe does not look at the step number after N, and the
    next forward, a decode step or a training forward, gets the cached tensors of N as well; the start of N + 1 is what switches
    the loader off. The rank filter stays empty: one that names a rank of another process leaves no dump and no message.
    """
    return {
        "task": "tensor",
        "dump_path": dump_path,
        "rank": [],
        "step": [plan.step, plan.step + 1],
        "level": level,
        "tensor": {"scope": [], "list": [], "data_mode": ["forward"], "summary_mode": "statistics"},
        "load": {"path": load_path, "modules": plan.entries, "step": [plan.step], "rank": [], "dump_after_load": dump_after_load},
    }


def require_path(path: str) -> None:
    """Raises DumpError where msprobe would refuse a path."""
    if not _PATH.match(path):
        odd = "".join(sorted({sign for sign in path if not _PATH.match(sign)}))
        raise DumpError(
            "Cannot use %s: msprobe takes letters, digits and _ . : / - in a path, not %r. Choose another --output-dir." % (path, odd)
        )


def require_load(units_of: Sequence[Unit], card: Dict[str, Any], side: str) -> str:
    """Which msprobe the target runs, as far as it is known; raises DumpError where that one has no ``load``.

    The best evidence first: the target's own dump, the task card, the msprobe that is installed here.
    """
    for unit in units_of:
        told = release.release_of(unit, inputs_are(unit))
        if told == ">=26.2":
            return told
        if told in ("<=8.3", "<=26.0", "26.0", "26.1"):
            raise DumpError("Cannot override: the target's dump was made by msprobe %s. %s" % (told, _GET))
    stated = version_in(card["environments"][side]["msprobe"])
    if stated is not None:
        if tuple(int(part) for part in stated.split(".")[:2]) < _FIRST:
            raise DumpError("Cannot override: the task card says msprobe %s for %s. %s" % (stated, side, _GET))
        return stated
    here = importlib.util.find_spec("msprobe")  # finds it without importing it
    folders = list(here.submodule_search_locations or ()) if here else []
    if folders and not any(os.path.isfile(os.path.join(folder, *_LOADER)) for folder in folders):
        raise DumpError("Cannot override: the msprobe installed here has no %s. %s" % ("/".join(_LOADER), _GET))
    return ">=26.2" if folders else release.UNKNOWN
