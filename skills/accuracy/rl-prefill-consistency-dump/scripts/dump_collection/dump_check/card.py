"""What the task card says of things that a dump cannot show."""

import re
from typing import Any, Dict, NamedTuple, Optional, Tuple

from dump_collection.quotes import version_in

_VALUE = r"(?:\s*[=:]\s*|\s+)['\"]?(true|false|1|0)\b"
# Switches of the public launch commands (vLLM, SGLang, their prefixes in slime and vime, verl's keys). SGLang's native
# msprobe option switches graphs off by itself (0.5.11 and later, server_args.py).
_EAGER = re.compile(r"enforce[-_]eager(?:%s)?|disable[-_]cuda[-_]graph(?:%s)?" % (_VALUE, _VALUE), re.IGNORECASE)
_NATIVE = re.compile(r"msprobe-dump-config", re.IGNORECASE)
_DYNAMO_OFF = re.compile(r"TORCHDYNAMO_DISABLE\s*=\s*['\"]?1")
_COMPILED = re.compile(r"use_torch_compile%s|--compile\b" % _VALUE, re.IGNORECASE)


class Card(NamedTuple):
    """``eager``: by side, None where the card does not say; ``msprobe``: of train and infer, empty unless both are known."""

    prompt_length: Optional[int]
    eager: Dict[str, Optional[bool]]
    command: str
    msprobe: Tuple[str, ...]


NO_CARD = Card(None, {"train": None, "infer": None}, "unknown", ())


def read(card: Dict[str, Any]) -> Card:
    """What a task card (already checked by `msprobe_files.task_card`) says."""
    command = str(card["baseline_command"])
    versions = [version_in(card["environments"][side]["msprobe"]) for side in ("train", "infer")]
    known = tuple(version for version in versions if version is not None)
    known = known if len(known) == len(versions) else ()
    return Card(_number(card["sample"]["prompt_length"]), {"train": _train(command), "infer": _infer(command)}, command, known)


def _number(value: Any) -> Optional[int]:
    """A count, also where it was written as text; None for anything else."""
    return int(value) if re.match(r"[0-9]+\Z", str(value)) else None


def _infer(command: str) -> Optional[bool]:
    found = [match.group(1) or match.group(2) for match in _EAGER.finditer(command)]
    if any(value is not None and value.lower() in ("false", "0") for value in found):
        return False
    return True if found or _NATIVE.search(command) else None


def _train(command: str) -> Optional[bool]:
    compiled = _COMPILED.search(command)
    if compiled and (compiled.group(1) or "true").lower() in ("true", "1"):
        return False
    return True if _DYNAMO_OFF.search(command) or compiled else None
