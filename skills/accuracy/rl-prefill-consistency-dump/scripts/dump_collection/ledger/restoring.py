"""Restore: every file as it was before it was recorded, or a line that says why not and how to go on."""

import contextlib
import os
import shlex
from pathlib import Path
from typing import Dict, List, NamedTuple, Sequence, Tuple

from msprobe_files.errors import DumpError

from . import places, records, store
from .changes import CHANGED_SINCE, UNTOUCHED, standing
from .records import CREATED, DELETED, FOLDER, LINK, MODIFIED, Change, Ledger
from .store import ABSENT, FILE, State


class Restoration(NamedTuple):
    """What was put back, what was not and why, and which folders were not there before and hold things of somebody else."""

    restored: Tuple[str, ...]
    refused: Tuple[str, ...]
    left_folders: Tuple[str, ...]
    still_open: int


def restore(workdir: Path, paths: Sequence[str], keep: Sequence[str]) -> Restoration:
    """Put back the files of ``paths``, or all; those of ``keep`` stay as they stand and count as restored.

    What is overwritten is stored first. A file that somebody changed after the last diff is refused. A kill at any point
    is mended by a second call. Raises DumpError where a path is not in the ledger.
    """
    with records.locked(workdir):
        ledger = records.read(workdir)
        kept = [_open(ledger, path, workdir) for path in keep]
        wanted = [_open(ledger, path, workdir) for path in paths] if paths else [] if keep else _all_open(ledger)
        refused: List[str] = []
        able = [change for change in reversed(wanted) if _may(ledger, change, workdir, refused)]
        ledger = ledger.with_changes({change.id: _reopened(change) for change in able})
        records.write(workdir, ledger)  # a file half put back must not look like somebody's work
        done = {change.id: _kept_as_it_stands(ledger, change) for change in kept}
        for change in able:
            try:
                _put_back(ledger, change, workdir)
                done[change.id] = change._replace(restored=True)
            except DumpError as error:
                refused.append(str(error))
        ledger = ledger.with_changes(done)
        left = _remove_folders(ledger)
        records.write(workdir, ledger)
        names = tuple(change.path for change in done.values())
        return Restoration(names, tuple(refused), left, sum(not change.restored for change in ledger.changes))


def _all_open(ledger: Ledger) -> List[Change]:
    return [change for change in ledger.changes if not change.restored]


def _open(ledger: Ledger, path: str, workdir: Path) -> Change:
    name, _ = places.locate(path, ledger.places, workdir)
    change = ledger.open_change(name)
    if change is None:
        raise DumpError("Cannot restore %s: the ledger has no open change of it. Run diff to see the open ones." % path)
    return change


def _may(ledger: Ledger, change: Change, workdir: Path, refused: List[str]) -> bool:
    full, label = ledger.where(change.path), change.path.partition("/")[0]
    if not os.path.isdir(ledger.places[label]):
        raise DumpError(
            "Cannot restore %s: its root %s is not at %s. Write where it is now into places of %s."
            % (change.path, label, ledger.places[label], records.NAME)
        )
    if not places.still_inside(full, ledger.places[label]):
        refused.append("Cannot restore %s: a folder on its way is a link out of its root now. Put the folder back first." % change.path)
        return False
    here = store.state_of(full)
    if here.what not in (ABSENT, FILE, LINK):
        refused.append("Cannot restore %s: a folder or special file lies there now. Move it away and restore again." % change.path)
        return False
    if standing(change, here) != CHANGED_SINCE:
        return True
    refused.append(_changed_since(change, full, here, workdir))
    return False


def _changed_since(change: Change, full: str, here: State, workdir: Path) -> str:
    """How to go on: take out our edit and keep the other, or count the other as ours."""
    store.keep(full, workdir)
    ours = "recreated after it was deleted" if change.kind == DELETED else "changed after its last diff"
    merge = ""
    if change.before is not None and change.after is not None and here.what == FILE:
        backups = (shlex.quote(str(workdir / FOLDER / change.after)), shlex.quote(str(workdir / change.before.backup)))
        merge = " To take out only our edit: git merge-file %s %s %s, then restore --keep on it." % (shlex.quote(full), *backups)
    return (
        "Cannot restore %s: it was %s, so somebody's work would be lost.%s To give it up (its bytes stay in %s/%s): record it again, "
        "then restore. To leave it as it stands: restore --keep on it." % (change.path, ours, merge, FOLDER, here.digest)
    )


def _reopened(change: Change) -> Change:
    return change._replace(after=None, kind=CREATED if change.before is None else MODIFIED)


def _put_back(ledger: Ledger, change: Change, workdir: Path) -> None:
    full = ledger.where(change.path)
    here = store.state_of(full)
    if standing(_reopened(change), here) == UNTOUCHED:
        return
    if here.what != ABSENT:
        store.keep(full, workdir)  # nothing is overwritten that is not kept somewhere
    if change.before is None:
        store.remove(full)
    else:
        store.put_back(full, change.before, workdir)
    if not store.state_of(full).is_as(change.before):
        raise DumpError("Cannot restore %s: it is not as before although it was written. Check who else writes it." % change.path)


def _kept_as_it_stands(ledger: Ledger, change: Change) -> Change:
    return change._replace(restored=True, kept=True, after=store.state_of(ledger.where(change.path)).digest)


def left_folders(ledger: Ledger) -> Tuple[str, ...]:
    """Folders that were not there before a file was recorded in them, and are there now."""
    named: Dict[str, None] = {folder: None for change in ledger.changes if not change.kept for folder in change.folders}
    return tuple(folder for folder in sorted(named, key=len, reverse=True) if os.path.isdir(ledger.where(folder)))


def _remove_folders(ledger: Ledger) -> Tuple[str, ...]:
    """Remove such folders where they are empty, the innermost first; what else lies there was not recorded and stays."""
    for folder in left_folders(ledger):
        with contextlib.suppress(OSError):  # not empty, a link, or forbidden: named in the answer
            os.rmdir(ledger.where(folder))
    return left_folders(ledger)
