"""The task card (``task_card.json``): what a run is about, as far as it is known.

Both skills deliver the same empty card in ``references/``.  A field that is not known holds
``"unknown"``; nothing has an invented default, and credentials have no field at all.
"""

import json
from typing import Any, Dict, List

from .errors import DumpError
from .units import load_json

SCHEMA = "task_card/1"
UNKNOWN = "unknown"
GOALS = (UNKNOWN, "first_divergence", "full")
STATES = (UNKNOWN, "granted", "denied")
STAGE_STATES = ("open", "passed", "skipped")
AUTHORISATIONS = (
    "AUTH_STOP_RUNNING_SERVICES", "AUTH_EDIT_TARGET_CODE", "AUTH_RUN_DUMP_JOB", "AUTH_CLEAN_APPROVED_DIRS", "AUTH_RESTORE_CODE",
)  # fmt: skip


def empty() -> Dict[str, Any]:
    """The empty card, its keys in the order of the contract."""
    environment = dict.fromkeys(("ssh", "container", "activation", "msprobe"), UNKNOWN)
    parallel = dict.fromkeys(("tp", "pp", "ep", "cp", "dp"), UNKNOWN)
    dump = dict.fromkeys(("path", "step", "rank"), UNKNOWN)
    return {
        "schema": SCHEMA,
        "goal": UNKNOWN,
        "model": UNKNOWN,
        "train": dict.fromkeys(("framework", "version", "backend", "path"), UNKNOWN),
        "infer": dict.fromkeys(("engine", "version", "path"), UNKNOWN),
        "hardware": UNKNOWN,
        "environments": {"train": dict(environment), "infer": dict(environment)},
        "workdir": UNKNOWN,
        "baseline_command": UNKNOWN,
        "log_location": UNKNOWN,
        "product_root": UNKNOWN,
        "constraints": [],
        "sample": dict.fromkeys(("id", "prompt_source", "prompt_length"), UNKNOWN),
        "evidence_tool": UNKNOWN,
        "scope": UNKNOWN,
        "stop_condition": UNKNOWN,
        "target_metric": UNKNOWN,
        "parallel": {"train": dict(parallel), "infer": dict(parallel)},
        "authorisations": {name: {"state": UNKNOWN, "date": None} for name in AUTHORISATIONS},
        "cards": {"before": UNKNOWN, "after": UNKNOWN, "idle_memory": UNKNOWN, "stopped_processes": []},
        "site": {},
        "official_range": UNKNOWN,
        "dumps": {"train": dict(dump), "infer": dict(dump)},
        "association": UNKNOWN,
        "parameters": UNKNOWN,
        "known_traps": [],
        "stages": {str(stage): {"state": "open", "product": None, "digest": None} for stage in range(10)},
        "notes": "",
    }


def text_of(card: Dict[str, Any]) -> str:
    """The card as it is written to disk."""
    return json.dumps(card, indent=2, ensure_ascii=False) + "\n"


def read(path: str) -> Dict[str, Any]:
    """A card from disk. Raises DumpError where it is no card or holds what a card cannot hold."""
    card = load_json(path)
    wrong = problems(card)
    if wrong:
        raise DumpError("Cannot use %s as a task card: %s. Mend the field and try again." % (path, "; ".join(wrong)))
    return card


def problems(card: Dict[str, Any]) -> List[str]:
    """What is wrong with a card, each with its path; empty where nothing is."""
    found: List[str] = []
    if card.get("schema") != SCHEMA:
        found.append("schema: expected %r, found %r" % (SCHEMA, card.get("schema")))
    _compare(empty(), card, "", found)
    _among(card.get("goal", UNKNOWN), GOALS, "goal", found)
    for name, value in _object(card, "authorisations").items():
        _among(value.get("state") if isinstance(value, dict) else value, STATES, "authorisations.%s.state" % name, found)
    for stage, value in _object(card, "stages").items():
        _among(value.get("state") if isinstance(value, dict) else value, STAGE_STATES, "stages.%s.state" % stage, found)
    return found


def _object(card: Dict[str, Any], key: str) -> Dict[str, Any]:
    value = card.get(key)
    return value if isinstance(value, dict) else {}


def _among(value: Any, allowed: Any, path: str, found: List[str]) -> None:
    if value not in allowed:
        found.append("%s: expected one of %s, found %r" % (path, ", ".join(allowed), value))


def _compare(wanted: Dict[str, Any], given: Dict[str, Any], path: str, found: List[str]) -> None:
    """Every key of the empty card is there, and none beside them (``site`` is free)."""
    for key, value in wanted.items():
        if key not in given:
            found.append('%s%s: missing (write "unknown" where it is not known)' % (path, key))
        elif given[key] is None and value is not None:
            found.append('%s%s: null (write "unknown" where it is not known)' % (path, key))
        elif isinstance(value, dict) and not isinstance(given[key], dict):
            found.append("%s%s: expected an object, found %s" % (path, key, type(given[key]).__name__))
        elif isinstance(value, list) and not isinstance(given[key], list):
            found.append("%s%s: expected a list, found %s" % (path, key, type(given[key]).__name__))
        elif isinstance(value, dict) and value:
            _compare(value, given[key], path + key + ".", found)
    found += ["%s%s: unknown key" % (path, key) for key in given if key not in wanted]
