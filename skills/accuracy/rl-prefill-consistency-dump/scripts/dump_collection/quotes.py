"""What the agent filled into the task card by hand: a command and what it printed."""

import re
from typing import Any, List, NamedTuple, Optional

_PROMPT = re.compile(r"^[ \t]*[$#] (?P<command>.*\S.*)$", re.MULTILINE)
_VERSION = re.compile(r"\b\d+\.\d+(?:\.\d+)*(?:\.?(?:post|rc|dev)\d+)?\b")


class Quote(NamedTuple):
    """A command that was run and what it printed."""

    command: str
    output: str


def quotes_of(value: Any) -> List[Quote]:
    """The quotes in a field: ``{"command", "output"}``, a text ``$ command`` with the output below it, or a list of these."""
    if isinstance(value, list):
        return [quote for item in value for quote in quotes_of(item)]
    if isinstance(value, dict):
        command, output = value.get("command"), value.get("output")
        told = all(isinstance(text, str) and text.strip().lower() not in ("", "unknown") for text in (command, output))
        return [Quote(str(command).strip(), str(output).strip())] if told else []
    found = _PROMPT.search(value) if isinstance(value, str) else None
    printed = value[found.end() :].strip() if found else ""
    return [Quote(found.group("command").strip(), printed)] if found and printed else []


def version_in(value: Any) -> Optional[str]:
    """The first version that a quoted command printed; of a text that quotes none, the version that it begins with."""
    quotes = quotes_of(value)
    if not quotes:
        found = _VERSION.match(value.strip()) if isinstance(value, str) else None
        return found.group() if found else None
    printed = [match.group() for quote in quotes for match in [_VERSION.search(quote.output)] if match]
    return printed[0] if printed else None
