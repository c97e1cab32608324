"""How the commands of the collection end where nobody can be told: their exit code stays a gate's answer."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from running import COLLECTION

GATE = ("check_stage.py", "--stage", "0", "--workdir")


def ended(*command: str | Path, stdout: str, stderr: str) -> int:
    """The exit code of a command whose streams lead to these files; ``-``: closed by the caller."""
    redirected = f"{_to('', stdout)} {_to('2', stderr)}"
    script = [sys.executable, COLLECTION / command[0], *command[1:]]
    return subprocess.run(["sh", "-c", f'"$@" {redirected}', "sh", *script], check=False).returncode


def _to(stream: str, place: str) -> str:
    return f"{stream}>&-" if place == "-" else f"{stream}>{place}"


@pytest.mark.parametrize("stderr", ["/dev/full", "-", "/dev/null"])
def test_a_shut_gate_is_1_and_a_failure_is_2_whoever_listens(tmp_path: Path, stderr: str) -> None:
    """An error line that cannot be written must not turn "cannot" into the interpreter's own 1, which means "shut"."""
    assert ended(*GATE, tmp_path, stdout="/dev/null", stderr=stderr) == 1
    assert ended(*GATE, tmp_path / "gone", stdout="/dev/null", stderr=stderr) == 2
    assert ended("check_stage.py", "--bogus", stdout="/dev/null", stderr=stderr) == 2


def test_an_answer_that_cannot_be_written_is_no_answer(tmp_path: Path) -> None:
    assert ended(*GATE, tmp_path, stdout="/dev/full", stderr="/dev/null") == 2
    assert ended(*GATE, tmp_path, stdout="-", stderr="-") == 1


def test_a_full_disk_is_not_called_a_fault_of_the_tool(tmp_path: Path) -> None:
    with open("/dev/full", "w") as full:
        command = [sys.executable, COLLECTION / GATE[0], *GATE[1:], tmp_path]
        ran = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert ran.returncode == 2
    assert ran.stderr.splitlines()[-1] == "Cannot finish: No space left on device. Mend that and run it again."
