"""Stage 3: what runs here, and the three places in its code, each opened and searched for its symbol."""

from typing import Any, List

from dump_collection.quotes import quotes_of

from .places import missing_at, place_of
from .workdir import CARD, SIDES, Missing, Workdir

PLACES = {
    "prompt_cut": "where the prompt is cut out of what log_prob gets",
    "main_forward": "the main log_prob forward",
    "request_id": "what ties a dump step to a request",
}
_TO_ADD = ("to add", "要加")


def gate(work: Workdir) -> Missing:
    """The form is known; each symbol of ``site`` stands where the card says, or is to be added."""
    for field in work.lacks("train.framework", "train.version", "infer.engine", "infer.version"):
        yield "%s: %s is not known" % (CARD, field), work.mend(3)
    site = work.of("site")
    if not isinstance(site, dict):
        return
    roots = roots_of(work)
    for name, what in PLACES.items():
        if name not in site:
            repair = 'Find %s by grep -n, write "%s": "FILE:LINE SYMBOL" (or "to add") into %s, then run: %s'
            yield "%s: site.%s is missing" % (CARD, name), repair % (what, name, work.shown(CARD), work.check(3))
    for name, value in site.items():
        for wrong in _wrong(name, value, roots):
            yield "%s: site.%s: %s" % (CARD, name, wrong), work.mend(3)


def roots_of(work: Workdir) -> List[str]:
    """Folders that relative paths of the site are seen from: the sources of both sides, then the folder of the collection."""
    paths = [work.of(side, "path") for side in SIDES]
    return [work.at(path) for path in paths if isinstance(path, str) and path not in ("unknown", "")] + [str(work.folder)]


def to_add(work: Workdir) -> List[str]:
    """Symbols that the site lacks and an edit brings."""
    site = work.of("site")
    return [name for name, value in site.items() if is_to_add(value)] if isinstance(site, dict) else []


def is_to_add(value: Any) -> bool:
    return isinstance(value, str) and value.strip().lower().startswith(_TO_ADD)


def _wrong(name: str, value: Any, roots: List[str]) -> List[str]:
    """What is wrong with one entry; of a quoted grep the first line that it printed is looked up."""
    if is_to_add(value):
        return []
    quoted = [line for quote in quotes_of(value) for line in quote.output.splitlines() if place_of(line)]
    found = [place_of(line) for line in quoted[:1]] or [place_of(value)]
    place = found[0]
    if place is None:
        return ['expected "FILE:LINE SYMBOL", a line of grep -n, or "to add", found %r' % (value,)]
    if not place.symbol and name in PLACES:
        return ['names no symbol: write "%s:%d SYMBOL"' % (place.file, place.line)]
    wrong = missing_at(place if place.symbol else place._replace(symbol=name), roots)
    return [wrong] if wrong else []
