"""Where the named bridge class is: in sources that were handed, in the usual places of a container, in the installed Megatron-Bridge."""

import difflib
import importlib
import importlib.util
import os
import re
import sys
from pathlib import Path
from typing import Any, Dict, List, NamedTuple, Sequence, Tuple

from msprobe_files.errors import DumpError

AUTO = "AutoBridge"  # Megatron-Bridge's own, which takes the class that is registered for the model's architecture
CONTAINER = ("/workspace/Megatron-Bridge/src", "/workspace/MindSpeed-Bridge")
_CLASS = re.compile(r"^class ([A-Za-z_]\w*Bridge)\b", re.MULTILINE)
_SKIPPED = frozenset((".git", "__pycache__", "tests", "docs", "examples", "node_modules"))


class Place(NamedTuple):
    """A folder of sources that was searched. ``shown``: how an error names it; ``roots``: what is put on the path to import from it."""

    shown: str
    folder: str
    roots: Tuple[str, ...]


def places(sources: Sequence[str]) -> List[Place]:
    """The folders to search, the handed ones first. Raises DumpError where a handed one is not there."""
    found = []
    for source in sources:
        if not os.path.isdir(source):
            raise DumpError("Cannot find the bridge's sources %s: no such folder. Hand the root of its checkout." % source)
        found.append(_place(source))
    return found + [_place(folder) for folder in CONTAINER if os.path.isdir(folder)]


def _place(folder: str) -> Place:
    root = os.path.realpath(folder)
    inside = os.path.join(root, "src")
    return Place(folder, root, (inside, root) if os.path.isdir(inside) else (root,))


def put_on_path(searched: Sequence[Place]) -> None:
    """Let Python import from the places, before anything that is installed."""
    roots = [root for place in searched for root in place.roots]
    sys.path[:0] = [root for root in roots if root not in sys.path]


def bridge_class(name: str, searched: Sequence[Place]) -> Any:
    """The class of that name, imported from where its source stands. Raises DumpError, saying what was looked for and where."""
    whole = [*searched, *(place for place in _installed() if not any(_inside(place.folder, one.folder) for one in searched))]
    known: Dict[str, Tuple[Place, Path]] = {}
    for place in whole:
        for found, path in _classes(Path(place.folder)):
            known.setdefault(found, (place, path))
    if name not in known:
        raise DumpError(_not_found(name, whole, sorted(known)))
    place, path = known[name]
    return getattr(_imported(place, path, name), name)


def _installed() -> List[Place]:
    try:
        spec = importlib.util.find_spec("megatron.bridge")
    except ModuleNotFoundError:
        spec = None
    found = list(spec.submodule_search_locations or ()) if spec is not None else []
    return [Place("the installed megatron.bridge", folder, (str(Path(folder).parent.parent),)) for folder in found]


def _inside(folder: str, root: str) -> bool:
    return Path(root) in Path(os.path.realpath(folder)).parents


def _classes(folder: Path) -> List[Tuple[str, Path]]:
    """Names of bridge classes below a folder with their files; nothing is imported."""
    found = []
    for parent, folders, files in os.walk(str(folder)):
        folders[:] = sorted(one for one in folders if one not in _SKIPPED)
        for file in sorted(files):
            path = Path(parent) / file
            if file.endswith(".py") and path.is_file():
                text = path.read_bytes().decode("utf-8", "replace")
                found += [(name, path) for name in _CLASS.findall(text)]
    return found


def _imported(place: Place, path: Path, name: str) -> Any:
    root = next(root for root in place.roots if Path(root) in path.parents)
    module = ".".join(path.relative_to(root).with_suffix("").parts)
    try:
        return importlib.import_module(module)
    except (Exception, SystemExit) as error:  # noqa: BLE001  # foreign code, run as it is imported
        raise DumpError(
            "Cannot import %s from %s: %s: %s. Run this in the trainer's environment, which has what it needs."
            % (name, place.shown, type(error).__name__, error)
        ) from None


def _not_found(name: str, searched: Sequence[Place], known: Sequence[str]) -> str:
    where = [place.shown for place in searched]
    where += ["%s (no such folder)" % folder for folder in CONTAINER if not os.path.isdir(folder)]
    near = difflib.get_close_matches(name, known, 3, 0.6)
    there = "; %d other bridge classes are there%s" % (len(known), ", the nearest %s" % ", ".join(near) if near else "")
    return (
        "Cannot find the bridge class %s: looked for 'class %s' in %s%s. Hand its sources with --bridge-src ROOT, name another class with "
        "--bridge, or --bridge %s for the one that Megatron-Bridge takes for this model." % (name, name, ", ".join(where), there, AUTO)
    )
