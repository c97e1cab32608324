"""change_ledger.json as records; written before a file is touched, so that a kill at any point loses nothing."""

import contextlib
import fcntl
import os
import re
import time
from pathlib import Path
from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Tuple

from msprobe_files.errors import DumpError

from dump_collection import files

SCHEMA = "change_ledger/1"
NAME, FOLDER, LOCK = "change_ledger.json", "ledger", ".change_ledger.lock"
OPEN, RESTORED, VERIFIED = "open", "restored", "verified"
CREATED, MODIFIED, DELETED = "created", "modified", "deleted"
LINK = "link"  # the mode of a symbolic link; its bytes are its target
_DIGEST = re.compile(r"[0-9a-f]{64}\Z")
_MODE = re.compile(r"[0-7]{4}\Z|link\Z")
_PATIENCE = 60.0  # seconds for another call on the same ledger


class Before(NamedTuple):
    """A file before it was touched. ``mode``: four octal digits, or ``link``; ``backup``: below the ledger's folder."""

    digest: str
    mode: str
    backup: str


class Change(NamedTuple):
    """One file. ``path``: root's label, then the path below it; ``before`` None: there was no file.

    ``after``: the digest that `diff` saw, None before it (and of a deleted file).
    ``folders``: folders that were not there either. ``kept``: left as it stands, at the user's word.
    """

    id: str
    path: str
    kind: str
    before: Optional[Before]
    after: Optional[str]
    why: str
    stage: int
    restored: bool
    kept: bool
    folders: Tuple[str, ...]


class Ledger(NamedTuple):
    """``places``: label of a root -> its absolute path."""

    places: Dict[str, str]
    changes: Tuple[Change, ...]
    state: str

    def open_change(self, path: str) -> Optional[Change]:
        """The change of a path that is not restored yet; there is one at most."""
        return next((change for change in self.changes if change.path == path and not change.restored), None)

    def where(self, path: str) -> str:
        """The absolute path of what a change or a folder names."""
        label, _, below = path.partition("/")
        return os.path.join(self.places[label], below)

    def with_changes(self, changed: Dict[str, Change]) -> "Ledger":
        """The ledger with changes replaced by id; its state follows."""
        changes = tuple(changed.get(change.id, change) for change in self.changes)
        return self._replace(changes=changes, state=RESTORED if all(change.restored for change in changes) else OPEN)


@contextlib.contextmanager
def locked(workdir: Path) -> Iterator[None]:
    """One call at a time on a ledger. The lock is the kernel's: it ends with its process, whatever ends that.

    Raises DumpError where another call does not end, or the file system has no locks.
    """
    path = workdir / LOCK
    try:
        workdir.mkdir(parents=True, exist_ok=True)
        handle = os.open(str(path), os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as error:
        raise DumpError("Cannot use the ledger in %s: %s. Choose another --workdir." % (workdir, error.strerror))
    try:
        _wait_for(handle, path)
        yield
    finally:
        os.close(handle)


def _wait_for(handle: int, path: Path) -> None:
    until = time.monotonic() + _PATIENCE
    while True:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            if time.monotonic() > until:
                raise DumpError("Cannot use the ledger: another call holds %s for %d s. Wait for it, or end it." % (path, _PATIENCE))
            time.sleep(0.05)
        except OSError as error:
            raise DumpError("Cannot lock %s: %s. Put --workdir on a file system that has locks." % (path, error.strerror))


def read(workdir: Path) -> Ledger:
    """The ledger of a folder. Raises DumpError, with the JSON path, where it is none."""
    path = workdir / NAME
    if not path.is_file():
        raise DumpError("Cannot use the ledger: there is no %s. Check --workdir, or begin with record." % path)
    value = files.read(path, SCHEMA)
    places = _places(value, workdir)
    changes = tuple(_change(item, "changes[%d]" % at, places) for at, item in enumerate(_field(value, "changes", list, "")))
    state = _field(value, "state", str, "")
    if state not in (OPEN, RESTORED, VERIFIED):
        raise _wrong("state", "one of %s, %s, %s" % (OPEN, RESTORED, VERIFIED), state)
    return Ledger(places, changes, state)


def _places(value: Dict[str, Any], workdir: Path) -> Dict[str, str]:
    if "places" not in value:  # roots that lie beside the ledger need none
        roots = _field(value, "roots", list, "")
        return {str(root): os.path.join(os.path.realpath(str(workdir)), str(root)) for root in roots}
    places = {}
    for at, place in enumerate(_field(value, "places", list, "")):
        here = "places[%d]" % at
        path = _nameable(_field(place, "path", str, here), here + ".path")
        if not os.path.isabs(path):
            raise _wrong(here + ".path", "an absolute path", path)
        places[_field(place, "root", str, here)] = path
    return places


def write(workdir: Path, ledger: Ledger) -> None:
    """Write the ledger, all or nothing, on disk when this returns."""
    files.write(workdir / NAME, value_of(ledger))


def value_of(ledger: Ledger) -> Dict[str, Any]:
    """The ledger as JSON holds it."""
    places = [{"root": label, "path": path} for label, path in ledger.places.items()]
    changes = [_value_of(change) for change in ledger.changes]
    return {"schema": SCHEMA, "roots": list(ledger.places), "places": places, "changes": changes, "state": ledger.state}


def _value_of(change: Change) -> Dict[str, Any]:
    value = dict(change._asdict())
    value["before"] = None if change.before is None else dict(change.before._asdict())
    value["after"] = None if change.after is None else {"digest": change.after}
    value["folders"] = list(change.folders)
    for rare in ("kept", "folders"):
        if not value[rare]:
            del value[rare]
    return value


def _change(item: Any, here: str, places: Dict[str, str]) -> Change:
    path = _field(item, "path", str, here)
    folders: List[Any] = _field(item, "folders", list, here) if isinstance(item, dict) and "folders" in item else []
    for each in [path, *folders]:
        _below(each, here, places)
        _nameable(each, here + ".path")
    before, after = item.get("before"), item.get("after")
    kind = _field(item, "kind", str, here)
    if kind not in (CREATED, MODIFIED, DELETED) or (before is None) != (kind == CREATED):
        raise _wrong(here + ".kind", "created (then before is null), modified or deleted", kind)
    return Change(
        _field(item, "id", str, here),
        path,
        kind,
        None if before is None else _before(before, here + ".before"),
        None if after is None else _matching(_field(after, "digest", str, here + ".after"), _DIGEST, here + ".after.digest"),
        _field(item, "why", str, here),
        _field(item, "stage", int, here),
        _field(item, "restored", bool, here),
        item.get("kept") is True,
        tuple(folders),
    )


def _before(value: Any, here: str) -> Before:
    digest = _matching(_field(value, "digest", str, here), _DIGEST, here + ".digest")
    mode = _matching(_field(value, "mode", str, here), _MODE, here + ".mode")
    backup = _nameable(_field(value, "backup", str, here), here + ".backup")
    if not backup or os.path.isabs(backup) or ".." in backup.split("/"):
        raise _wrong(here + ".backup", "a path below the folder of the ledger", backup)
    return Before(digest, mode, backup)


def _below(path: Any, here: str, places: Dict[str, str]) -> None:
    label, _, below = path.partition("/") if isinstance(path, str) else ("", "", "")
    if label not in places or not below or {"", ".", ".."} & set(below.split("/")):
        raise _wrong(here + ".path", "one of the roots (%s) and a path below it" % ", ".join(places), path)


def _nameable(path: str, here: str) -> str:
    """The path, where the system can hold such a name at all: no zero byte, and bytes for every character."""
    try:
        if b"\0" not in os.fsencode(path):
            return path
    except UnicodeEncodeError:
        pass  # said below, like a zero byte
    raise _wrong(here, "a path that the system can hold", path)


def _matching(value: str, form: "re.Pattern[str]", here: str) -> str:
    if not form.match(value):
        raise _wrong(here, "the form %s" % form.pattern.replace("\\Z", ""), value)
    return value


def _field(value: Any, key: str, kind: type, here: str) -> Any:
    where = here + "." + key if here else key
    found = value.get(key) if isinstance(value, dict) else None
    if not isinstance(found, kind) or (kind is int and isinstance(found, bool)):
        raise _wrong(where, "a value of type %s" % kind.__name__, found)
    return found


def _wrong(where: str, expected: str, found: Any) -> DumpError:
    return DumpError("Cannot use %s: %s: expected %s, found %r. Put back the file as it was written." % (NAME, where, expected, found))
