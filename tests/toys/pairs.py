"""Dumped sides and pairs of the toy, for tests: asked of one process that imports torch and msprobe once."""

import contextlib
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple

from . import switches
from .arch.shapes import Fault
from .manners import Manner
from .switches import Side, Switches

_TESTS = Path(__file__).parent.parent


class Dumped(NamedTuple):
    """A pair of dumps: the root of each side, and what is switched on it."""

    train: Path
    infer: Path
    on: switches.Pair


class Toys:
    """Dumps under ``root``, each made once; a context manager that ends the process.

    ``stored``: the format of weights and of what is computed: bfloat16, float16 or float32.

    The path of ``root`` may hold [A-Za-z0-9_./:-] only: msprobe takes no other.
    """

    def __init__(self, root: Path) -> None:
        self._root = root
        self._made: dict[tuple[Side, object], Path] = {}
        self._log = tempfile.TemporaryFile("w+")  # noqa: SIM115  # closed with the process
        command = [sys.executable, "-m", "toys.dumper"]
        environment = {**os.environ, "PYTHONPATH": str(_TESTS)}
        self._process = subprocess.Popen(
            command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._log, text=True, cwd=root
        )

    def __enter__(self) -> "Toys":  # noqa: PYI034  # Self is not in Python 3.10
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._process.communicate()
        self._log.close()

    def side(self, side: Side, on: Switches = switches.CLEAN, stored: str = "bfloat16") -> Path:
        """The root of a dump of one side."""
        if (side, (on, stored)) not in self._made:
            self._made[side, (on, stored)] = self._dump(side, {"on": on.on, "stored": stored})
        return self._made[side, (on, stored)]

    def architecture(self, side: Side, name: str, fault: Fault | None = None) -> Path:
        """The root of a dump of one side of an architecture."""
        if (side, (name, fault)) not in self._made:
            self._made[side, (name, fault)] = self._dump(side, {"architecture": name, "fault": fault})
        return self._made[side, (name, fault)]

    def run(self, side: Side, manner: Manner) -> Path:
        """The root of what a run leaves that goes on in a manner of its own; it may not be there."""
        if (side, manner) not in self._made:
            self._made[side, manner] = self._dump(side, {"on": (), "stored": "bfloat16", "manner": manner})
        return self._made[side, manner]

    def both(self, train: Switches = switches.CLEAN, infer: Switches = switches.CLEAN, stored: str = "bfloat16") -> Dumped:
        """A pair of dumps with what is switched on each side."""
        return Dumped(self.side("train", train, stored), self.side("infer", infer, stored), switches.Pair(train, infer))

    def pair(self, name: str, side: Side, layer: int = 1, stored: str = "bfloat16") -> Dumped:
        """A pair of dumps with one thing switched on one side."""
        return self.both(*switches.pair_with(name, side, layer), stored)

    def _dump(self, side: Side, asked: dict[str, Any]) -> Path:
        out = self._root / f"{len(self._made)}-{side}"
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with contextlib.suppress(BrokenPipeError):  # it ended: the log says why
            print(json.dumps({"side": side, "out": str(out), **asked}), file=self._process.stdin, flush=True)
        answer = self._process.stdout.readline()
        error = json.loads(answer)["error"] if answer else "the dumping process ended"
        if error:
            self._log.seek(0)
            raise RuntimeError(f"no dump of {side} with {asked}: {error}\n{self._log.read()[-4000:]}")
        return out
