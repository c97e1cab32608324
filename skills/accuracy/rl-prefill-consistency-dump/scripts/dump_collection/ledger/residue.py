"""Which switches, markers and debugger calls stand in a tree, and which of them stood there before anything was recorded."""

import bisect
import hashlib
import json
import os
import re
from pathlib import Path
from typing import Any, Dict, Iterator, List, Mapping, NamedTuple, Sequence, Tuple

from msprobe_files.errors import DumpError
from msprobe_files.units import load_json

from dump_collection import files

from .records import FOLDER, LOCK, NAME

# What a collection puts into sources and launch scripts. Some trees hold such words of their own (verl from 0.8 and
# vllm-ascend have msprobe built in): only what was not there before the first record counts.
PATTERNS = (
    r"\bDUMP_ON\b", r"\bDUMP_PHASE\b", r"\bPROMPTS_ONLY\b", r"\[DUMP_DIAG\]",
    r"\bdump_config_path\b", r"msprobe[-_]dump[-_]config",
    r"\bPrecisionDebugger\b", r"\b(?:from|import)\s+msprobe\b", r"\bseed_all\b", r"_ensure_debugger",
    r"[dD]ebugger\s*\.\s*(?:start|stop|step)\s*\(",
    r"\bDispatchLogger\b", r"\bdispatch_log\b", r"\bupdate_actor_log\b", r"\bprefill_logprob_diff",
    r'"load"\s*:\s*\{', r"\bdump_after_load\b", r"stub_source_round",
)  # fmt: skip
STUB_FOLDER = re.compile(r"stub_source_round")
HUGE = 8 << 20  # bytes; sources are smaller
_HEAD = 8192  # where git looks for a zero byte, too
_OTHERS = {".git", ".hg", ".svn"}  # version control keeps compressed copies; what is checked out is scanned
_LOGS = (".log", ".jsonl")  # what runs wrote; their words are no switches


class Text(NamedTuple):
    """A text file of a tree. ``lines``: pattern -> the numbers of the lines where it begins."""

    digest: str
    lines: Dict[str, Tuple[int, ...]]


class Scan(NamedTuple):
    """A tree. ``texts`` and ``skipped``: by path below the root; ``folders``: of transformed sources."""

    texts: Dict[str, Text]
    folders: Tuple[str, ...]
    skipped: Dict[str, str]


class Known(NamedTuple):
    """What a tree held before the first record: path -> digest and how often each pattern."""

    patterns: Tuple[str, ...]
    texts: Dict[str, Tuple[str, Dict[str, int]]]
    folders: Tuple[str, ...]


def compiled(patterns: Sequence[str]) -> "Dict[str, re.Pattern[bytes]]":
    """Patterns, ready to search bytes. Raises DumpError for one that is no regular expression."""
    found = {}
    for pattern in patterns:
        try:
            found[pattern] = re.compile(pattern.encode())
        except (re.error, UnicodeEncodeError, OverflowError) as error:
            raise DumpError("Cannot use the pattern %r: %s. Give a regular expression of Python." % (pattern, error))
    return found


def scan(root: str, workdir: Path, patterns: Sequence[str], unchanged: Mapping[str, str]) -> Scan:
    """Search a tree; links are not followed, and what holds no sources is left out: dumps, logs, version control, a workdir in it.

    ``unchanged``: path -> digest of files whose words are known: they are not searched while they are so.
    """
    search = compiled(patterns)
    texts: Dict[str, Text] = {}
    folders: List[str] = []
    skipped: Dict[str, str] = {}
    for path, entry in _walk(root, os.path.realpath(str(workdir)), folders, skipped):
        below = os.path.relpath(path, root)
        try:
            if entry.stat(follow_symlinks=False).st_size > HUGE:
                skipped[below] = "larger than %d MiB" % (HUGE >> 20)
                continue
            with open(path, "rb") as file:
                data = file.read()
        except OSError as error:
            skipped[below] = error.strerror or str(error)
            continue
        if b"\0" in data[:_HEAD]:
            skipped[below] = "binary"
            continue
        digest = hashlib.sha256(data).hexdigest()
        texts[below] = Text(digest, {} if unchanged.get(below) == digest else lines_of(data, search))
    return Scan(texts, tuple(os.path.relpath(folder, root) for folder in folders), skipped)


def lines_of(data: bytes, search: "Dict[str, re.Pattern[bytes]]") -> Dict[str, Tuple[int, ...]]:
    """Where each pattern stands, as line numbers; patterns that stand nowhere are left out."""
    hits = {pattern: [match.start() for match in regex.finditer(data)] for pattern, regex in search.items()}
    if not any(hits.values()):
        return {}
    ends = [match.start() for match in re.finditer(b"\n", data)]
    return {pattern: tuple(bisect.bisect_left(ends, at) + 1 for at in found) for pattern, found in hits.items() if found}


def _walk(root: str, workdir: str, folders: List[str], skipped: Dict[str, str]) -> "Iterator[Tuple[str, os.DirEntry[str]]]":
    pending = [root]
    while pending:
        folder = pending.pop()
        try:
            entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
        except OSError as error:
            skipped[os.path.relpath(folder, root)] = error.strerror or str(error)
            continue
        names = {entry.name for entry in entries}
        if "dump.json" in names and names & {"construct.json", "stack.json"}:
            skipped[os.path.relpath(folder, root)] = "a dump"  # stack.json quotes the debugger's calls
            continue
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                reason = "version control" if entry.name in _OTHERS else "the workdir" if entry.path == workdir else None
                if reason is not None:
                    skipped[os.path.relpath(entry.path, root)] = reason
                elif entry.path != os.path.join(workdir, FOLDER):
                    pending.append(entry.path)
                    if STUB_FOLDER.search(entry.name):
                        folders.append(entry.path)
            elif entry.is_file(follow_symlinks=False) and entry.path not in (os.path.join(workdir, NAME), os.path.join(workdir, LOCK)):
                if entry.name.endswith(_LOGS):
                    skipped[os.path.relpath(entry.path, root)] = "a log"
                else:
                    yield entry.path, entry


# --- what was there before ---


def note(root: str, label: str, workdir: Path, patterns: Sequence[str]) -> None:
    """Note what a tree holds now, before anything in it is recorded."""
    found = scan(root, workdir, patterns, {})
    texts: Dict[str, Any] = {}
    for path, text in found.texts.items():
        texts[path] = [text.digest, {pattern: len(lines) for pattern, lines in text.lines.items()}]
    value = {"schema": "tree_before/1", "patterns": list(patterns), "texts": texts, "folders": list(found.folders)}
    files.write_bytes(_path(workdir, label), json.dumps(value).encode())  # names that are no UTF-8 need its escapes


def known(label: str, workdir: Path) -> Known:
    """What `note` wrote of a root. Raises DumpError where it is not there: nothing could be told from before then."""
    path = _path(workdir, label)
    if not path.is_file():
        raise DumpError("Cannot tell what %s held before: there is no %s. Put back the ledger's folder." % (label, path))
    value = load_json(str(path))
    try:
        texts = {name: (str(digest), dict(counts)) for name, (digest, counts) in value["texts"].items()}
        return Known(_texts(value["patterns"]), texts, _texts(value["folders"]))
    except (KeyError, TypeError, ValueError, AttributeError):
        raise DumpError("Cannot use %s: it is not as it was written. Put it back." % path)


def _texts(value: Any) -> Tuple[str, ...]:
    if not isinstance(value, list) or any(not isinstance(item, str) for item in value):
        raise ValueError("no list of texts")
    return tuple(value)


def _path(workdir: Path, label: str) -> Path:
    return workdir / FOLDER / ("before." + label + ".json")


def add_patterns(label: str, workdir: Path, patterns: Sequence[str]) -> None:
    """Search for further words from now on; in files that change they count wherever they stand."""
    compiled(patterns)
    before = known(label, workdir)
    value = load_json(str(_path(workdir, label)))
    value["patterns"] = list(dict.fromkeys((*before.patterns, *patterns)))
    files.write_bytes(_path(workdir, label), json.dumps(value).encode())
