"""Commands run as a user runs them: as processes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
SCRIPTS = ROOT / "skills/accuracy/rl-consistency-dump-analysis/scripts"
COLLECTION = ROOT / "skills/accuracy/rl-prefill-consistency-dump/scripts"


def run_command(name: str, *arguments: str | Path, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    """A command of the analysis skill; its output is captured."""
    return subprocess.run([sys.executable, SCRIPTS / name, *arguments], capture_output=True, text=True, check=False, cwd=cwd)


def run_collection(name: str, *arguments: str | Path, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    """A command of the collection skill; its output is captured."""
    return subprocess.run([sys.executable, COLLECTION / name, *arguments], capture_output=True, text=True, check=False, cwd=cwd)
