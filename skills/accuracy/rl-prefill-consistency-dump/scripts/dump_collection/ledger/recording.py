"""Record: what a file was, stored and written down before it is touched."""

import os
from pathlib import Path
from typing import Dict, List, NamedTuple, Sequence, Tuple

from msprobe_files.errors import DumpError

from . import places, records, residue, store
from .records import CREATED, FOLDER, LINK, MODIFIED, OPEN, Before, Change, Ledger
from .store import FILE, State


class Recorded(NamedTuple):
    """What `record` wrote down. ``notes``: what the user should know of it."""

    changes: Tuple[Change, ...]
    notes: Tuple[str, ...]


def record(
    workdir: Path, paths: Sequence[str], created: Sequence[str], roots: Sequence[str], patterns: Sequence[str], why: str, stage: int
) -> Recorded:
    """Record files that are about to be edited or deleted, and ``created`` ones that are about to be made.

    A root is searched for ``patterns`` and the known words when it is first named, so that `verify` can tell what was
    there before. A file that is recorded and not restored yet may be recorded again: another edit begins. Nothing is
    written down unless all paths can be. Raises DumpError for a path that lies in no root, is special, or has the wrong kind.
    """
    with records.locked(workdir):
        ledger = records.read(workdir) if (workdir / records.NAME).exists() else Ledger({}, (), OPEN)
        found = places.with_roots(ledger.places, roots)
        if not found:
            raise DumpError("Cannot record: the ledger has no root. Name the trees whose files are to be edited by --root DIR.")
        work = _Work(workdir, ledger._replace(places=found), why, stage)
        wanted = [work.checked(path, False) for path in paths] + [work.checked(path, True) for path in created]
        for label in found:
            if label not in ledger.places:
                residue.note(found[label], label, workdir, tuple(dict.fromkeys((*residue.PATTERNS, *patterns))))
            elif patterns:
                residue.add_patterns(label, workdir, patterns)
        for name, full in [item for each in wanted for item in each]:
            work.add(name, full)
        records.write(workdir, work.ledger)
        return Recorded(tuple(work.done.values()), tuple(work.notes))


class _Work:
    """The ledger as a call fills it."""

    def __init__(self, workdir: Path, ledger: Ledger, why: str, stage: int) -> None:
        self.workdir, self.ledger, self.why, self.stage = workdir, ledger, why, stage
        self.done: Dict[str, Change] = {}
        self.notes: List[str] = []

    def checked(self, path: str, make: bool) -> List[Tuple[str, str]]:
        """A path and, of a link, the file that an edit through it would change; refused before anything is stored."""
        name, full = places.locate(path, self.ledger.places, self.workdir)
        what = store.state_of(full).what
        again = self.ledger.open_change(name)
        if what == store.ABSENT and not make and again is None:
            raise DumpError("Cannot record %s: there is no such file. If it is about to be made, give it by --created." % path)
        if what != store.ABSENT and make and (again is None or again.kind != CREATED):
            raise DumpError("Cannot record %s as created: it is there already. Leave out --created, else it would be lost." % path)
        if what not in (store.ABSENT, FILE, LINK):
            kind = "a folder" if what == store.FOLDER_THERE else "no ordinary file"
            raise DumpError("Cannot record %s: it is %s. Name the files that are to be edited." % (path, kind))
        items = [(name, full)]
        target = os.path.realpath(full)
        if what == LINK and os.path.exists(target):
            items += self.checked(target, False)
        return items

    def add(self, name: str, full: str) -> None:
        """Store a file and write its change down."""
        if name in self.done:
            return
        again = self.ledger.open_change(name)
        here = store.keep(full, self.workdir) if os.path.lexists(full) else State(store.ABSENT)
        if again is None:
            change = self._new(name, full, here)
            self.ledger = self.ledger._replace(changes=(*self.ledger.changes, change), state=OPEN)
        else:
            if again.after not in (None, here.digest):
                self.notes.append(
                    "%s was changed after its last diff; it now counts as an edit of ours (kept: %s/%s)" % (name, FOLDER, here.digest)
                )
            reasons = again.why.split("; ")
            why = again.why if self.why in reasons else "; ".join([*reasons, self.why])
            kind = CREATED if again.before is None else MODIFIED
            change = again._replace(after=None, kind=kind, why=why, stage=self.stage)
            self.ledger = self.ledger.with_changes({change.id: change})
        self.done[name] = change

    def _new(self, name: str, full: str, here: State) -> Change:
        label = name.partition("/")[0]
        before = None
        if here.digest is not None:
            before = Before(here.digest, here.mode, FOLDER + "/" + here.digest)
        folders = places.missing_folders(full, label, self.ledger.places[label])
        number = "C%d" % (len(self.ledger.changes) + 1)
        return Change(number, name, MODIFIED if before else CREATED, before, None, self.why, self.stage, False, False, folders)
