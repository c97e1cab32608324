"""Which dumps a round is about: those that were handed, else those that the task card names."""

import os
from pathlib import Path
from typing import Any, Dict, NamedTuple, Optional, Tuple

from msprobe_files import task_card
from msprobe_files.errors import DumpError

from .instruction import Instruction
from .recorded import Recorded, open_dump


class Given(NamedTuple):
    """Paths of both dumps; None where neither a flag nor the task card tells one."""

    source: Optional[str]
    target: Optional[str]


def card_of(workdir: str) -> Dict[str, Any]:
    """The task card of the collection, or the empty one where there is none. Raises DumpError where it cannot be read."""
    path = Path(workdir) / "task_card.json"
    return task_card.read(str(path)) if path.is_file() else task_card.empty()


def given(workdir: str, card: Dict[str, Any], instruction: Instruction, source: Optional[str], target: Optional[str]) -> Given:
    """What was handed as a flag goes before the card, whose relative paths are seen from its folder."""
    told = [_of_card(workdir, card, side) for side in (instruction.source_side, instruction.target_side)]
    return Given(source or told[0], target or told[1])


def open_both(paths: Given) -> Tuple[Recorded, Recorded]:
    """Source and target. Raises DumpError where one is not told or not there."""
    return _open(paths.source, "--source-dump", "the source dump"), _open(paths.target, "--target-dump", "the target's dump")


def open_new(path: str) -> Recorded:
    """The dump of the run that overrode."""
    return open_dump(path, "the new dump")


def earlier(paths: Given) -> Optional[Recorded]:
    """The target's dump of before; None where it is not told or not there any more: it only makes a reason more exact."""
    return open_dump(paths.target, "the target's dump") if paths.target and os.path.exists(paths.target) else None


def _open(path: Optional[str], flag: str, what: str) -> Recorded:
    if path is None:
        raise DumpError("Cannot find %s: the task card in --workdir does not tell its path. Hand it as %s." % (what, flag))
    return open_dump(path, what)


def _of_card(workdir: str, card: Dict[str, Any], side: str) -> Optional[str]:
    path = card["dumps"][side]["path"]
    return os.path.join(workdir, path) if isinstance(path, str) and path not in ("", task_card.UNKNOWN) else None
