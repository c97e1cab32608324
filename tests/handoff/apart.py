"""Both skills as their users have them: each a folder of its own, away from the other, run as processes."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

from running import COLLECTION, SCRIPTS


class Apart(NamedTuple):
    """Where each skill's folder was copied to."""

    analyst: Path
    collector: Path

    def analysis(self, name: str, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
        """A command of the analysis; its output is captured."""
        return _run(self.analyst / "scripts" / name, arguments)

    def collection(self, name: str, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
        """A command of the collection."""
        return _run(self.collector / "scripts" / name, arguments)


def copied(root: Path) -> Apart:
    """Copies of both skills, without anything beside them; the paths hold a space."""
    made = []
    for scripts in (SCRIPTS, COLLECTION):
        skill = scripts.parent
        made.append(root / f"only {skill.name}" / skill.name)
        shutil.copytree(skill, made[-1], ignore=shutil.ignore_patterns("__pycache__"))
    return Apart(*made)


def _run(script: Path, arguments: tuple[str | Path, ...]) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, script, *arguments], capture_output=True, text=True, check=False, cwd=script.parent)
