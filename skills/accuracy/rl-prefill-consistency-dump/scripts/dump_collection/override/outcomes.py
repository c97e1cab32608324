"""stub_outcome.json: the state of a round, read back with its fields checked."""

import re
from pathlib import Path
from typing import Any, Dict, Union

from msprobe_files.errors import DumpError

from dump_collection import files

SCHEMA, NAME = "stub_outcome/1", "stub_outcome.json"
_FILE = re.compile(r"step\d+/(?:rank|proc)\d+/dump_tensor_data/[^/]+\.pt\Z")
_WORDED = {"kind", "values", "text"}


def read(path: Union[str, Path]) -> Dict[str, Any]:
    """The state of a round. Raises DumpError with the field that is not what a preparation writes."""
    outcome = files.read(path, SCHEMA)
    instruction, prepared = outcome.get("instruction"), outcome.get("prepared")
    _need(isinstance(instruction, dict) and isinstance(instruction.get("digest"), str), path, "instruction.digest")
    _need(isinstance(prepared, list) and bool(prepared), path, "prepared")
    for at, item in enumerate(prepared or ()):
        told = isinstance(item, dict) and isinstance(item.get("file"), str) and isinstance(item.get("digest"), str)
        _need(told and _FILE.match(item["file"]) is not None, path, "prepared[%d]" % at)
    new = outcome.get("new_dump", "")
    _need(new is None or (isinstance(new, dict) and isinstance(new.get("path"), str)), path, "new_dump")
    for field in ("effect", "warnings"):
        listed = outcome.get(field)
        _need(isinstance(listed, list) and all(isinstance(item, dict) for item in listed), path, field)
    _need(all(set(item) == _WORDED for item in outcome["warnings"]), path, "warnings")
    return outcome


def _need(holds: bool, path: Union[str, Path], field: str) -> None:
    if not holds:
        raise DumpError("Cannot use %s: %s is not what a preparation writes. Prepare the round again." % (path, field))
