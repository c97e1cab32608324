"""The folder of one collection: its task card, its artefacts, and the commands that make what it lacks."""

import os
import shlex
from pathlib import Path
from typing import Any, Dict, Iterator, List, Optional, Tuple

from msprobe_files.errors import DumpError
from msprobe_files.task_card import UNKNOWN

from dump_collection import cli, files

CARD, PARAMETERS, LEDGER = "task_card.json", "param_alignment_report.json", "change_ledger.json"
PAIR, OUTCOME, INSTRUCTION = "dump_pair_report.json", "stub_outcome.json", "stub_instruction.json"
SIDES = ("train", "infer")
_SHOWN = 4  # names in one line

Missing = Iterator[Tuple[str, str]]  # what shuts a gate, and its repair


class Workdir:
    """``card``: the task card, empty until stage 0 has read it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.card: Dict[str, Any] = {}

    def has(self, name: str) -> bool:
        return (self.folder / name).is_file()

    def read(self, name: str, schema: str) -> Dict[str, Any]:
        """An artefact. Raises DumpError where it is another or cannot be read."""
        return files.read(self.folder / name, schema)

    def shown(self, name: str) -> str:
        """A file of this folder as a shell takes it."""
        return shlex.quote(str(self.folder / name))

    def at(self, path: str) -> str:
        """A path of an artefact: relative ones are seen from this folder."""
        return os.path.join(str(self.folder), path)

    # --- the task card ---

    def of(self, *path: str) -> Any:
        """A field of the card; ``unknown`` where it is not there."""
        value: Any = self.card
        for key in path:
            value = value.get(key, UNKNOWN) if isinstance(value, dict) else UNKNOWN
        return value

    def lacks(self, *paths: str) -> List[str]:
        """Those of these fields (dotted) that nobody filled in."""
        return [path for path in paths if _says_nothing(self.of(*path.split(".")))]

    def granted(self, name: str) -> bool:
        return bool(self.of("authorisations", name, "state") == "granted")

    def dump(self, side: str) -> Optional[str]:
        """The path of one side's dump; None where the card does not tell it."""
        path = self.of("dumps", side, "path")
        return self.at(path) if isinstance(path, str) and path.strip() and path != UNKNOWN else None

    # --- commands ---

    def command(self, script: str, *arguments: str) -> str:
        return cli.call(script, *arguments, "--workdir", str(self.folder))

    def check(self, stage: int) -> str:
        return self.command("check_stage.py", "--stage", str(stage))

    def mend(self, stage: int) -> str:
        """The repair of a field that people fill in."""
        return "Mend it in %s, then run: %s" % (self.shown(CARD), self.check(stage))

    def ask(self, name: str, stage: int) -> Missing:
        """The gap of an authorisation that a stage needs and does not have."""
        state = self.of("authorisations", name, "state")
        if state == "denied":
            yield "%s is denied: this stage cannot be done" % name, "Tell the user what that leaves out; do not go on with it"
        elif state != "granted":
            yield "%s is not recorded" % name, "Ask the user once, write the answer and its date into %s, then run: %s" % (
                self.shown(CARD), self.check(stage),
            )  # fmt: skip


def _says_nothing(value: Any) -> bool:
    empty = value in (None, [], {}) or value != value  # NaN
    return empty or (isinstance(value, str) and value.strip().lower() in ("", UNKNOWN))


def named(names: List[str]) -> str:
    """Names in one line, the first few of many."""
    more = len(names) - _SHOWN
    return ", ".join(names[:_SHOWN]) + (" and %d more" % more if more > 0 else "")


def objects(value: Any, where: str) -> List[Dict[str, Any]]:
    """A list of objects in an artefact that a person may have edited. Raises DumpError with its path where it is none."""
    if not isinstance(value, list) or any(not isinstance(item, dict) for item in value):
        raise DumpError("Cannot read %s: expected a list of objects. Make the file again by its command." % where)
    return value
