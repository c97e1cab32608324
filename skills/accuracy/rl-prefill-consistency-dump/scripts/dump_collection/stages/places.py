"""A symbol and the place where it was seen, as the agent wrote it down; opened and searched again."""

import os
import re
from typing import Any, Iterator, List, NamedTuple, Optional

from msprobe_files.errors import DumpError

# FILE:LINE SYMBOL, as a person writes it; FILE:LINE: text, as grep -n prints it
_PLACE = re.compile(r"(?P<file>[^\s:][^:\n]*):(?P<line>\d+)(?:[\s:,]+(?P<symbol>\S.*))?\Z", re.DOTALL)
_LARGEST = 16 << 20  # bytes of a source file


class Place(NamedTuple):
    """``symbol`` empty: only the place was written down."""

    file: str
    line: int
    symbol: str


def place_of(value: Any) -> Optional[Place]:
    """``FILE:LINE SYMBOL``, a line of ``grep -n``, or ``{"at": "FILE:LINE", "symbol"}``; None for anything else."""
    if isinstance(value, dict):
        value = "%s %s" % (value.get("at", ""), value.get("symbol", ""))
    found = _PLACE.match(value.strip()) if isinstance(value, str) else None
    return Place(found.group("file"), int(found.group("line")), (found.group("symbol") or "").strip()) if found else None


def missing_at(place: Place, roots: List[str]) -> Optional[str]:
    """Why a place does not show its symbol: no such file, no such line, or the symbol stands elsewhere; None where it does."""
    paths = [path for path in _candidates(place.file, roots) if os.path.isfile(path)]
    if not paths:
        return "%s is not there below %s" % (place.file, ", ".join(roots) or "any known folder")
    lines = _lines(paths[0])
    if not 1 <= place.line <= len(lines):
        return "%s has %d lines, not %d" % (place.file, len(lines), place.line)
    if _holds(lines[place.line - 1], place.symbol):
        return None
    others = [str(at) for at, line in enumerate(lines, 1) if _holds(line, place.symbol)]
    seen = "it stands in line " + ", ".join(others[:4]) if others else "it stands nowhere in that file"
    return "line %d of %s does not hold %r: %s" % (place.line, place.file, place.symbol, seen)


def _candidates(file: str, roots: List[str]) -> Iterator[str]:
    if os.path.isabs(file):
        yield file
    for root in () if os.path.isabs(file) else roots:
        yield os.path.join(root, file)


def _lines(path: str) -> List[str]:
    """Lines as grep -n counts them: a form feed or a lone carriage return ends none."""
    try:
        with open(path, encoding="utf-8", errors="replace", newline="\n") as file:
            return file.read(_LARGEST).rstrip("\n").split("\n")
    except OSError as error:
        raise DumpError("Cannot read %s: %s. Check its permissions." % (path, error.strerror))


def _holds(line: str, symbol: str) -> bool:
    """A name stands as a whole word; a quoted piece of code stands as it is, whatever its blanks."""
    if re.fullmatch(r"[\w.]+", symbol):
        return re.search(r"(?<![\w])%s(?![\w])" % re.escape(symbol), line) is not None
    return " ".join(symbol.split()) in " ".join(line.split())
