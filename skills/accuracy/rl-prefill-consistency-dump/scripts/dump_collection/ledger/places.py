"""Which root a path lies in, and what must not be recorded."""

import os
from pathlib import Path
from typing import Dict, List, Sequence, Tuple

from msprobe_files.errors import DumpError

from .records import FOLDER, LOCK, NAME


def with_roots(places: Dict[str, str], roots: Sequence[str]) -> Dict[str, str]:
    """The places with further roots: label -> absolute path without links.

    Raises DumpError where a root is no folder, or lies in another: a file would have two names then.
    """
    found = dict(places)
    for root in roots:
        path = os.path.realpath(root)
        if not os.path.isdir(path) or path == os.path.sep:
            raise DumpError("Cannot use %s as a root: it is no folder of sources. Name the folder whose files are to be edited." % root)
        if path in found.values():
            continue
        for label, other in found.items():
            if _inside(path, other) or _inside(other, path):
                raise DumpError("Cannot use %s as a root: it and the root %s (%s) lie in each other. Name one." % (root, label, other))
        name, n = os.path.basename(path), 2
        while name in found:
            name, n = "%s-%d" % (os.path.basename(path), n), n + 1
        found[name] = path
    return found


def locate(path: str, places: Dict[str, str], workdir: Path) -> Tuple[str, str]:
    """Where a path lies: ``label/path below``, and its absolute path, links in its folders resolved and itself not.

    Raises DumpError where it lies in no root, or is the ledger itself.
    """
    whole = os.path.abspath(path)
    full = os.path.join(os.path.realpath(os.path.dirname(whole)), os.path.basename(whole))
    own = os.path.realpath(str(workdir))
    if full in (os.path.join(own, NAME), os.path.join(own, LOCK)) or _inside(full, os.path.join(own, FOLDER)):
        raise DumpError("Cannot record %s: it belongs to the ledger itself. Leave it alone." % path)
    for label, place in places.items():
        if full != place and _inside(full, place):
            below = os.path.relpath(full, place)
            try:
                below.encode()
            except UnicodeEncodeError:
                raise DumpError("Cannot record %r: its name is not UTF-8. Rename it, or copy the tree elsewhere." % path)
            return label + "/" + below, full
    known = ", ".join("%s (%s)" % (label, place) for label, place in places.items()) or "none"
    raise DumpError("Cannot use %s: it lies in no root of the ledger; known are: %s. Add its tree by --root." % (path, known))


def still_inside(full: str, place: str) -> bool:
    """Whether a path of the ledger still lies in its root: a folder on the way may be a link by now."""
    return _inside(os.path.join(os.path.realpath(os.path.dirname(full)), os.path.basename(full)), place)


def missing_folders(full: str, label: str, place: str) -> Tuple[str, ...]:
    """The folders above a file that are not there yet, the outermost first, as the ledger names them."""
    missing: List[str] = []
    folder = os.path.dirname(full)
    while folder != place and not os.path.lexists(folder):
        missing.insert(0, label + "/" + os.path.relpath(folder, place))
        folder = os.path.dirname(folder)
    return tuple(missing)


def _inside(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip(os.path.sep) + os.path.sep)
