"""A process that has imported torch and msprobe, and runs Python scripts each in a fork of its own, as ``python3 SCRIPT …`` would.

A line on stdin asks for one: ``{"argv": ["/train.py", "x"], "environment": {}, "cwd": "/", "out": "/stdout", "err": "/stderr",
"kill": {"names": ["open"], "at": 3} | null}``; a line on stdout answers ``{"status": 0}``: the exit code, or minus the signal.
With ``kill`` the run kills itself (SIGKILL) before its third call of a function of one of these names.
"""

from __future__ import annotations

import atexit
import json
import os
import runpy
import signal
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple

_TESTS = Path(__file__).parent.parent


class Kill(NamedTuple):
    """Before the ``at``-th call (from 1) of a function of one of these names."""

    names: tuple[str, ...]
    at: int


class Ran(NamedTuple):
    """``returncode``: minus the signal where it was killed, as `subprocess` has it."""

    returncode: int
    stdout: str
    stderr: str


class Warm:
    """Runs of scripts; a context manager that ends the process."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._process = subprocess.Popen(
            [sys.executable, "-m", "collection.warm"], env={**os.environ, "PYTHONPATH": str(_TESTS)}, cwd=root,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip

    def __enter__(self) -> Warm:  # noqa: PYI034  # Self is not in Python 3.10
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._process.communicate()

    def run(self, argv: Sequence[str], *, environment: Mapping[str, str], cwd: Path, kill: Kill | None = None) -> Ran:
        """One script with its arguments, to its end."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with tempfile.TemporaryDirectory(dir=self._root) as folder:
            out, err = Path(folder) / "out", Path(folder) / "err"
            request: dict[str, Any] = {
                "argv": list(argv),
                "environment": dict(environment),
                "cwd": str(cwd),
                "out": str(out),
                "err": str(err),
            }
            print(json.dumps({**request, "kill": kill._asdict() if kill else None}), file=self._process.stdin, flush=True)
            answer = self._process.stdout.readline()
            assert answer, "the process ended"
            return Ran(json.loads(answer)["status"], out.read_text(), err.read_text())


def _run(request: dict[str, Any]) -> None:
    for number, path in ((1, request["out"]), (2, request["err"])):
        os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), number)
    os.environ.update(request["environment"])
    os.chdir(request["cwd"])
    os.fsync = lambda handle: None  # type: ignore[assignment]  # a killed process loses nothing that it has written
    sys.dont_write_bytecode = os.environ.get("PYTHONDONTWRITEBYTECODE", "") != ""  # read by the interpreter when it starts
    sys.argv = list(request["argv"])
    sys.path.insert(0, os.path.dirname(os.path.abspath(sys.argv[0])))
    if request["kill"]:
        _kill(request["kill"]["names"], request["kill"]["at"])
    runpy.run_path(sys.argv[0], run_name="__main__")


def _kill(names: Sequence[str], at: int) -> None:
    wanted, left = frozenset(names), [at]

    def count(frame: Any, event: str, function: Any) -> None:
        name = function.__name__ if event == "c_call" else frame.f_code.co_name if event == "call" else None
        if name in wanted:
            left[0] -= 1
            if left[0] == 0:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.setprofile(count)


def _code(request: dict[str, Any]) -> int:
    """The exit code of a run, as the interpreter makes it."""
    code = 0
    try:
        _run(request)
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:  # noqa: BLE001  # as the interpreter does it: it is shown, and the run has failed
        traceback.print_exc()
        code = 1
    sys.setprofile(None)
    atexit._run_exitfuncs()  # msprobe closes its files there
    sys.stdout.flush()
    sys.stderr.flush()
    return code


def main() -> None:
    import msprobe.pytorch  # type: ignore[import-untyped]  # noqa: F401  # all imported once, before the forks
    import torch
    import toys.engine
    import toys.trainer  # noqa: F401

    torch.set_num_threads(1)
    answer_to = os.dup(1)
    os.dup2(2, 1)
    for line in sys.stdin:
        request = json.loads(line)
        child = os.fork()
        if child == 0:
            os._exit(_code(request))
        _, status = os.waitpid(child, 0)
        os.write(answer_to, json.dumps({"status": os.waitstatus_to_exitcode(status)}).encode() + b"\n")
    os._exit(0)  # no second is spent on taking torch apart


if __name__ == "__main__":
    main()
