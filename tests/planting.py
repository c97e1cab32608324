"""Parsed JSON changed at a place, as a person who edits a file changes it."""

from typing import Any

DELETE = object()


def put(value: Any, path: str, new: Any) -> None:
    """Set what lies at ``a.b[0].c``; DELETE removes it."""
    *parents, last = path.replace("[", ".[").split(".")
    for part in parents:
        value = value[int(part[1:-1])] if part.startswith("[") else value[part]
    key = int(last[1:-1]) if last.startswith("[") else last
    if new is DELETE:
        del value[key]
    else:
        value[key] = new
