"""Diff: what was edited since it was recorded, and whether somebody else has edited it after that."""

import difflib
import os
from pathlib import Path
from typing import List, NamedTuple, Sequence, Tuple

from . import records, store
from .records import CREATED, DELETED, LINK, MODIFIED, Change, Ledger
from .store import ABSENT, State

UNTOUCHED, EDITED, CHANGED_SINCE = "untouched", "edited", "changed since"
_NULL = "/dev/null"


class Seen(NamedTuple):
    """A change as it stands. ``state``: untouched, edited, or changed since its last diff; ``patch``: from before to now."""

    change: Change
    state: str
    patch: str
    added: int
    removed: int


def diff(workdir: Path) -> Tuple[Seen, ...]:
    """The open changes. What a file is now is written down, so that a later change by somebody else is noticed.

    A file that changed after its last diff keeps the digest of that one: only `record` makes it an edit of ours.
    """
    with records.locked(workdir):
        ledger = records.read(workdir)
        seen, changed = [], {}
        for change in ledger.changes:
            if change.restored:
                continue
            here = store.state_of(ledger.where(change.path))
            state = standing(change, here)
            if state == EDITED or (state == UNTOUCHED and here.digest is not None):
                change = changed[change.id] = _sealed(ledger, change, here, workdir)
            patch = _patch(ledger, change, here, workdir)
            added, removed = (sum(line.startswith(sign) and not line.startswith(3 * sign) for line in patch) for sign in "+-")
            seen.append(Seen(change, state, "".join(patch), added, removed))
        if changed:
            records.write(workdir, ledger.with_changes(changed))
        return tuple(seen)


def standing(change: Change, here: State) -> str:
    """Whether what lies there is still as before, our edit, or somebody's later work.

    As long as no diff saw an edit, every change is taken for the one that was announced: a kill in the middle of it must
    not shut the way back.
    """
    if here.is_as(change.before):
        return UNTOUCHED
    if here.what not in (ABSENT, store.FILE, LINK):
        return CHANGED_SINCE
    if here.what == ABSENT:
        return EDITED
    unedited = None if change.before is None else change.before.digest
    if change.kind == DELETED or change.after not in (None, unedited, here.digest):
        return CHANGED_SINCE
    return EDITED


def _sealed(ledger: Ledger, change: Change, here: State, workdir: Path) -> Change:
    if here.what == ABSENT:
        return change._replace(after=None, kind=DELETED)
    if here.digest != change.after:
        store.keep(ledger.where(change.path), workdir)
    return change._replace(after=here.digest, kind=CREATED if change.before is None else MODIFIED)


# --- as text ---


def _patch(ledger: Ledger, change: Change, here: State, workdir: Path) -> List[str]:
    """A unified diff as git writes it; the first folder is the root's label."""
    old_mode = "" if change.before is None else change.before.mode
    head = ["diff --git a/%s b/%s\n" % (change.path, change.path)]
    if change.before is None and here.what != ABSENT:
        head.append("new file mode %s\n" % _git_mode(here.mode))
    elif change.before is not None and here.what == ABSENT:
        head.append("deleted file mode %s\n" % _git_mode(old_mode))
    elif here.mode != old_mode and here.what != ABSENT:
        head += ["old mode %s\n" % _git_mode(old_mode), "new mode %s\n" % _git_mode(here.mode)]
    before = b"" if change.before is None else store.bytes_of(change.before, workdir)
    now = _bytes(ledger.where(change.path), here)
    if before == now:
        return head if len(head) > 1 else []
    if b"\0" in before or b"\0" in now:
        return [*head, "Binary files a/%s and b/%s differ\n" % (change.path, change.path)]
    names = (_NULL if change.before is None else "a/" + change.path, _NULL if here.what == ABSENT else "b/" + change.path)
    return head + _unified(_lines(before), _lines(now), names)


def _unified(before: Sequence[str], now: Sequence[str], names: Tuple[str, str]) -> List[str]:
    lines = difflib.unified_diff(before, now, names[0], names[1])
    return [line if line.endswith("\n") else line + "\n\\ No newline at end of file\n" for line in lines]


def _lines(data: bytes) -> List[str]:
    """Lines as patches cut them: at line feeds alone, so that a carriage return stays in its line."""
    text = data.decode("utf-8", "surrogateescape")
    return [line + "\n" for line in text.split("\n")[:-1]] + ([text.rpartition("\n")[2]] if text and not text.endswith("\n") else [])


def _bytes(path: str, here: State) -> bytes:
    if here.what == LINK:
        return os.fsencode(os.readlink(path))
    if here.what != store.FILE:
        return b""
    with open(path, "rb") as file:
        return file.read()


def _git_mode(mode: str) -> str:
    return "120000" if mode == LINK else "100" + mode[1:]
