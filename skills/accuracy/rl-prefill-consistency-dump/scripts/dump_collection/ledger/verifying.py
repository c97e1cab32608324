"""Verify: whether nothing of a collection is left in the trees. A gate."""

import os
from pathlib import Path
from typing import Dict, Iterator, List, NamedTuple, Sequence, Tuple

from . import records, residue, store
from .records import OPEN, RESTORED, VERIFIED, Change, Ledger
from .residue import Known, Scan
from .restoring import left_folders


class Verdict(NamedTuple):
    """``gaps``: what shuts the gate, each with its remedy. ``remarks``: what was not looked at, and what nobody recorded.

    ``restored``: every change is; gaps that are left are no work for `restore`.
    """

    gaps: Tuple[str, ...]
    remarks: Tuple[str, ...]
    scanned: int
    restored: bool


def verify(workdir: Path, patterns: Sequence[str]) -> Verdict:
    """Compare every recorded file with its bytes of before, and search the roots for switches, markers and debugger calls.

    Words that stood in a file before the first record do not count. The ledger's state becomes ``verified`` where no gap
    is left. Raises DumpError where the ledger or what it noted of a tree cannot be read.
    """
    with records.locked(workdir):
        ledger = records.read(workdir)
        gaps = [gap for change in _latest(ledger) for gap in _of_change(ledger, change)]
        gaps += [
            "%s/ was not there before and holds files that nobody recorded. Remove them, then restore" % folder
            for folder in left_folders(ledger)
        ]
        gaps += _stub_folders(workdir)
        remarks, scanned = [], 0
        for label, place in ledger.places.items():
            found, more, count = _of_tree(ledger, label, place, workdir, patterns)
            gaps += found
            remarks += more
            scanned += count
        closed = RESTORED if all(change.restored for change in ledger.changes) else OPEN
        records.write(workdir, ledger._replace(state=closed if gaps else VERIFIED))
        return Verdict(tuple(gaps), tuple(remarks), scanned, closed == RESTORED)


def _latest(ledger: Ledger) -> List[Change]:
    """The last change of each path: an earlier one was restored before it began."""
    return list({change.path: change for change in ledger.changes}.values())


def _of_change(ledger: Ledger, change: Change) -> Iterator[str]:
    if not change.restored:
        yield "%s (%s) is not restored: %s. Run restore" % (change.path, change.id, change.why)
        return
    here = store.state_of(ledger.where(change.path))
    if here.digest != change.after if change.kept else not here.is_as(change.before):
        yield "%s is not what it was when it was restored. Put it back, or record and restore it anew" % change.path
    for path in _bytecode(ledger, change):
        yield "%s was compiled from %s, which we made. Remove it by its name" % (path, change.path)


def _bytecode(ledger: Ledger, change: Change) -> List[str]:
    """What Python compiled from a file that a collection made and that is gone: PEP 3147, ``__pycache__/<name>.<tag>.pyc``."""
    folder, name = os.path.split(ledger.where(change.path))
    stem, suffix = os.path.splitext(name)
    cache = os.path.join(folder, "__pycache__")
    if change.before is not None or change.kept or suffix != ".py" or not os.path.isdir(cache):
        return []
    below = change.path[: -len(name)] + "__pycache__/"
    return [below + file for file in sorted(os.listdir(cache)) if file.startswith(stem + ".") and file.endswith(".pyc")]


def _stub_folders(workdir: Path) -> Iterator[str]:
    """Transformed source folders beside the ledger; the trees' own are found by `_of_tree`."""
    for name in sorted(os.listdir(str(workdir))):
        if residue.STUB_FOLDER.search(name) and (workdir / name).is_dir():
            yield "the transformed source folder %s is left in the workdir. Remove it once no round needs it" % name


def _of_tree(ledger: Ledger, label: str, place: str, workdir: Path, patterns: Sequence[str]) -> "Tuple[List[str], List[str], int]":
    if not os.path.isdir(place):
        return ["the root %s is not at %s. Write where it is now into places of %s" % (label, place, records.NAME)], [], 0
    before = residue.known(label, workdir)
    wanted = tuple(dict.fromkeys((*residue.PATTERNS, *before.patterns, *patterns)))
    now = residue.scan(place, workdir, wanted, {path: digest for path, (digest, _) in before.texts.items()})
    gaps = list(_words(ledger, label, before, now, workdir))
    in_workdir = os.path.realpath(str(workdir))
    gaps += [
        "the transformed source folder %s/%s is left. Remove it once no round needs it" % (label, folder)
        for folder in now.folders
        if folder not in before.folders and os.path.dirname(os.path.join(place, folder)) != in_workdir
    ]
    return gaps, [*_skipped(label, now), *_unrecorded(ledger, label, before, now)], len(now.texts)


def _words(ledger: Ledger, label: str, before: Known, now: Scan, workdir: Path) -> Iterator[str]:
    """Words in files that are not what they were; where a file was recorded, its backup says what it held."""
    backups = {change.path: change.before for change in ledger.changes if change.before is not None}
    for path, text in now.texts.items():
        digest, counts = before.texts.get(path, ("", {}))
        backup = backups.get(label + "/" + path)
        if digest == text.digest or (backup is not None and backup.digest == text.digest):
            continue
        if backup is not None and text.lines:
            counts = _counts(store.bytes_of(backup, workdir), tuple(text.lines))
        for pattern, lines in text.lines.items():
            if len(lines) > counts.get(pattern, 0):
                where = ", ".join(str(line) for line in lines[:5]) + (" …" if len(lines) > 5 else "")
                more = "" if not counts.get(pattern) else " (%d of them were there before)" % counts[pattern]
                yield "%s/%s:%s holds %s%s. Take it out, or restore the file" % (label, path, where, pattern, more)


def _counts(data: bytes, patterns: Tuple[str, ...]) -> Dict[str, int]:
    found = residue.lines_of(data, residue.compiled(patterns))
    return {pattern: len(lines) for pattern, lines in found.items()}


def _skipped(label: str, now: Scan) -> Iterator[str]:
    by_reason: Dict[str, List[str]] = {}
    for path, reason in now.skipped.items():
        by_reason.setdefault(reason, []).append(path)
    for reason, paths in by_reason.items():
        yield "%s: not searched (%s): %s" % (label, reason, _some(paths))


def _unrecorded(ledger: Ledger, label: str, before: Known, now: Scan) -> Iterator[str]:
    """Files that changed although nobody recorded them: perhaps an edit that was made past the ledger."""
    recorded = {change.path for change in ledger.changes}
    changed = [
        path for path, text in now.texts.items() if before.texts.get(path, ("",))[0] != text.digest and label + "/" + path not in recorded
    ]
    gone = [path for path in before.texts if path not in now.texts and path not in now.skipped and label + "/" + path not in recorded]
    if changed or gone:
        yield "%s: changed since the first record, and not in the ledger: %s" % (label, _some(changed + gone))


def _some(paths: Sequence[str]) -> str:
    return ", ".join(paths[:3]) + (" and %d more" % (len(paths) - 3) if len(paths) > 3 else "")
