"""Stages 6 and 9: every edit is in the change ledger and compiles; at the end nothing of them is left."""

import os
import platform
import warnings
from typing import Iterator

from msprobe_files.errors import DumpError

from dump_collection.ledger import records, residue, store
from dump_collection.ledger.records import DELETED, Change, Ledger

from .site import to_add
from .workdir import LEDGER, Missing, Workdir, named

_EDITS_FROM = 4  # the first stage that edits


def gate(work: Workdir) -> Missing:
    """Stage 6: what was edited is recorded whole, is as it was recorded, and compiles."""
    if not work.has(LEDGER):
        record = work.command("change_ledger.py", "record", "--root", "DIR", "--stage", "6", "--why", "TEXT", "FILE")
        yield "%s is missing: record each file before it is touched" % LEDGER, "Run (without FILE where nothing is edited): %s" % record
        return
    ledger = records.read(work.folder)
    if ledger.changes:
        yield from work.ask("AUTH_EDIT_TARGET_CODE", 6)
    lost = [] if ledger.changes else to_add(work)
    if lost:
        yield "%s records no edit, but the site says to add: %s" % (LEDGER, named(lost)), "Record the files, then add them: %s --help" % (
            work.command("change_ledger.py", "record"),
        )  # fmt: skip
    for change in ledger.changes:
        yield from _recorded(work, change)
        if not change.restored:
            yield from _as_recorded(work, ledger, change)


def restored(work: Workdir) -> Missing:
    """Stage 9: the ledger is verified, which its own command does, and no transformed source folder is left."""
    if work.has(LEDGER):
        ledger = records.read(work.folder)
        if ledger.changes:
            yield from work.ask("AUTH_RESTORE_CODE", 9)
        left = [change.path for change in ledger.changes if not change.restored]
        if left or ledger.state == records.OPEN:
            yield "%s is open: not restored: %s" % (LEDGER, named(left) or "?"), "Run: %s" % work.command("change_ledger.py", "restore")
        elif ledger.state != records.VERIFIED:
            yield "%s is %r, not verified" % (LEDGER, ledger.state), "Run: %s" % work.command("change_ledger.py", "verify")
    else:
        yield (
            "%s is missing: nothing shows that nothing was edited" % LEDGER,
            "Run: %s"
            % (work.command("change_ledger.py", "record", "--root", "DIR") + ", then: " + work.command("change_ledger.py", "verify")),
        )
    for folder in _source_folders(str(work.folder)):
        yield from work.ask("AUTH_CLEAN_APPROVED_DIRS", 9)
        yield "%s is left" % os.path.relpath(folder, str(work.folder)), "Remove this folder by its name: %s" % folder


def _recorded(work: Workdir, change: Change) -> Missing:
    """An entry says what was there before, what is there now, and what for."""
    name = "%s: %s" % (LEDGER, change.path)
    if not change.why.strip():
        yield "%s does not say what the edit is for" % name, "Write its why, then run: %s" % work.check(6)
    if change.stage < _EDITS_FROM:
        yield "%s: stage is %r" % (name, change.stage), "Write the stage that edits, then run: %s" % work.check(6)
    if change.before is not None and not os.path.isfile(work.at(change.before.backup)):
        yield (
            "%s: the bytes of before are not there (%s)" % (name, change.before.backup),
            "Bring the backup back; without it this file cannot be restored",
        )


def _as_recorded(work: Workdir, ledger: Ledger, change: Change) -> Missing:
    """A file that is edited now: its digest was taken after the edit, and Python reads it. Links are not followed."""
    name, path = "%s: %s" % (LEDGER, change.path), ledger.where(change.path)
    diff = "Run: %s" % work.command("change_ledger.py", "diff")
    here = store.state_of(path)
    if change.kind == DELETED:
        if here.what != store.ABSENT:
            yield "%s is recorded as deleted and is there" % name, diff
        return
    if here.digest is None:
        yield "%s is not there (%s)" % (name, path), diff
        return
    if change.after is None:
        yield "%s was recorded before the edit only" % name, diff
    elif change.after != here.digest:
        yield "%s was changed since it was last looked at" % name, diff
    if path.endswith(".py") and here.what == store.FILE:
        why = _does_not_compile(path)
        if why:
            repair = "Mend the edit, or run this gate with the Python that runs the file where this one, %s, is older; then run: %s"
            yield "%s does not compile: %s" % (name, why), repair % (platform.python_version(), work.command("change_ledger.py", "diff"))


def _does_not_compile(path: str) -> str:
    """Why this Python does not read a file; empty where it does. The code is not run."""
    try:
        with open(path, "rb") as file, warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of the file's own code; stderr holds gaps alone
            compile(file.read(), os.path.basename(path), "exec", dont_inherit=True)
    except (RecursionError, MemoryError):
        return "its expressions nest too deep"
    except (SyntaxError, ValueError) as error:
        line = getattr(error, "lineno", None)
        return "line %s: %s" % (line, error.args[0]) if line else str(error)
    except OSError as error:
        raise DumpError("Cannot read %s: %s. Check its permissions." % (path, error.strerror))
    return ""


def _source_folders(top: str) -> Iterator[str]:
    for folder, below, _ in os.walk(top):
        yield from (os.path.join(folder, name) for name in sorted(below) if residue.STUB_FOLDER.search(name))
        below[:] = [name for name in sorted(below) if not residue.STUB_FOLDER.search(name) and not name.startswith("step")]
