"""Stage 0: the task card holds facts or ``unknown``, and says where both dumps lie."""

import os
import re
from collections.abc import Iterator
from typing import Any

from msprobe_files import task_card, units

from .workdir import CARD, LABELS, PLACES, Workdir, may_be, number, of_folder

_NO_FACTS = frozenset({"n/a", "na", "null", "nil", "tbd", "todo", "fixme", "?", "??", "-", "...", "…", "xxx", "待定", "未知", "不详"})
_TEMPLATE = re.compile(r"<[^<>]*>|\$\w+|.*\bpath/to\b.*", re.DOTALL)


def gate(work: Workdir) -> Iterator[tuple[str, str]]:
    """Each gap and its repair."""
    if not work.has(CARD):
        yield f"{CARD} is missing", f"Run: {work.template()}"
        return
    work.card = units.load_json(str(work.folder / CARD))
    mend = f"Mend it in {work.shown(CARD)}, then run: {work.check(0)}"
    for what in [*task_card.problems(work.card), *_no_facts(work.card, "")]:
        yield f"{CARD}: {what}", mend
    for label in LABELS:
        path = work.dump(label)
        if path is None:
            yield f"{CARD}: dumps.{label}.path is not known", f"Ask where that dump lies, write it there, then run: {work.check(0)}"
        elif not os.path.exists(path):
            yield f"{CARD}: dumps.{label}.path: there is no {path}", mend
        else:
            for what in _places_apart(label, path, work.field(label)):
                yield f"{CARD}: {what}", mend
    paths = {os.path.realpath(path) for label in LABELS if (path := work.dump(label)) is not None}
    if len(paths) == 1 and all(work.dump(label) for label in LABELS):
        yield f"{CARD}: both dumps have one path, {paths.pop()}, and a dump cannot be compared with itself", mend


def _no_facts(value: Any, path: str) -> Iterator[str]:
    """Fields that hold neither a fact nor ``unknown``: empty text and what stands in templates."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _no_facts(inner, f"{path}.{key}" if path else str(key))
    elif isinstance(value, list):
        for at, inner in enumerate(value):
            yield from _no_facts(inner, f"{path}[{at}]")
    elif isinstance(value, str) and path != "notes":
        if not value.strip():
            yield f'{path} is empty (write "unknown" where it is not known)'
        elif value.strip().lower() in _NO_FACTS or _TEMPLATE.fullmatch(value.strip()):
            yield f'{path}: {value!r} is no fact (write "unknown" where it is not known)'


def _places_apart(label: str, path: str, side: dict[str, Any]) -> Iterator[str]:
    """A step or rank of the task card that the dump's folders contradict: a default that somebody invented."""
    places = units.find_units(path)
    for what in PLACES:
        wanted = side.get(what)
        if wanted in (None, task_card.UNKNOWN, ""):
            continue
        if number(wanted) is None:
            yield f"dumps.{label}.{what}: expected a number or unknown, found {wanted!r}"
        elif places and not any(may_be(place, what, wanted) for place in places):
            held = sorted({found for place in places if (found := of_folder(place, what)) is not None})
            yield f"dumps.{label}.{what} is {wanted}, but the dump holds {what} {', '.join(map(str, held))}"
