"""The configuration of the run that overrides, and which msprobe can carry it out."""

import importlib.util
import os
from typing import Any, Dict, Sequence

from msprobe_files import release
from msprobe_files.errors import DumpError
from msprobe_files.units import Unit

from dump_collection.msprobe_config import configuring, overriding, releases
from dump_collection.quotes import version_in

from .plan import Plan
from .recorded import inputs_are

_LOADER = ("pytorch", "dump", "module_load", "tensor_loader.py")
_GET = "Before 26.2.0 msprobe ignores the load section without a word. %s, dump the target again with it, and hand that dump." % (
    releases.GET_26_2
)


def config(plan: Plan, *, level: str, load_path: str, dump_path: str, dump_after_load: bool) -> Dict[str, Any]:
    """A whole configuration file of msprobe. ``load_path``: the folder above ``stepN``; both paths absolute."""
    load = overriding.section(load_path, plan.entries, [plan.step], dump_after_load)
    return {**configuring.plain("tensor", level, dump_path, overriding.windows([plan.step])), "load": load}


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
        if releases.release_of(stated).is_before(26, 2):
            raise DumpError("Cannot override: the task card says msprobe %s for %s. %s" % (stated, side, _GET))
        return stated
    here = importlib.util.find_spec("msprobe")  # finds it without importing it
    folders = list(here.submodule_search_locations or ()) if here else []
    if folders and not any(os.path.isfile(os.path.join(folder, *_LOADER)) for folder in folders):
        raise DumpError("Cannot override: the msprobe installed here has no %s. %s" % ("/".join(_LOADER), _GET))
    return ">=26.2" if folders else release.UNKNOWN
