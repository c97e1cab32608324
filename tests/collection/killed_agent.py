"""The agent of `agent`, killed in the middle of everything that it does; after each kill both ways out are taken.

*Back*: ``restore`` and ``verify``, and the trees are as they were; then everything is put as the kill left it. *On*: the same
command once more, as if nothing had happened.
"""

from __future__ import annotations

import os
import shutil
import signal
from collections import Counter
from collections.abc import Mapping
from typing import Any

from .agent import EDITED, MADE, Agent, Place, checking, commands
from .trees import content
from .warm import Kill, Ran, Warm

# What a command does to files; a kill comes before the call.
TOUCHING = ("open", "read", "write", "replace", "rename", "mkdir", "unlink", "chmod", "fchmod", "stat", "lstat", "scandir")
SAVING, COMPUTING = Kill(("save",), 20), Kill(("forward",), 20)  # in the middle of a forward: msprobe has saved 19 tensors


class Killed(Agent):
    """``kills``: how many of each stage."""

    def __init__(self, place: Place, warm: Warm) -> None:
        super().__init__(place, warm)
        self.trees = (place.trainer, place.engine)
        self.untouched = self._content()
        self.kills: Counter[int] = Counter()

    def _content(self) -> list[Any]:
        return [content(tree) for tree in self.trees]

    def shell(self, line: str) -> Ran:
        """A command of the skill is killed before its 2nd, 8th, 32nd, … call that touches a file, until it runs through."""
        if not line.startswith("python3 scripts/"):
            return super().shell(line)
        at, ran = 2, self.run(line, Kill(TOUCHING, 2))
        while ran.returncode == -signal.SIGKILL:
            self.kills[self.now] += 1
            if at in (8, 128) and "check_stage" not in line:  # a gate only reads
                self.go_back()
            at *= 4
            ran = self.run(line, Kill(TOUCHING, at))
        return ran

    def go_back(self) -> None:
        """Restore and verify give the trees of before; afterwards everything is as the kill left it."""
        if not (self.place.work / "change_ledger.json").exists():
            assert self._content() == self.untouched
            return
        aside = self.place.base / "aside"
        kept = [*self.trees, self.place.work]
        for folder in kept:
            shutil.copytree(folder, aside / folder.name, symlinks=True)
        for line in commands(9):
            ran = self.run(line)
            assert ran.returncode == 0, ran
        assert self._content() == self.untouched
        for folder in kept:
            shutil.rmtree(folder)
            os.rename(aside / folder.name, folder)

    def write(self, name: str, value: Mapping[str, Any]) -> None:
        """A file is cut in the middle first: the gate says so in a line."""
        super().write(name, value)
        path = self.place.work / name
        whole = path.read_bytes()
        path.write_bytes(whole[: len(whole) // 2])
        ran = self.run(checking(self.now))
        assert ran.returncode in (1, 2), ran
        assert "Traceback" not in ran.stderr
        path.write_bytes(whole)

    def edit(self) -> None:
        """One file is cut in the middle of its edit, and the others are not edited yet: the patch does not apply any more."""
        path, aside = self.place.trainer / EDITED[0], self.place.base / "unedited"
        shutil.copytree(self.place.trainer, aside, symlinks=True)
        super().edit()
        edited = path.read_bytes()
        shutil.rmtree(self.place.trainer)
        os.rename(aside, self.place.trainer)
        path.write_bytes(edited[: len(edited) // 2])
        self.kills[self.now] += 1
        self.go_back()
        restore, _ = commands(9)
        self.command(restore)
        assert self._content() == self.untouched
        self.command(commands(6)[0])
        super().edit()
        assert (self.place.trainer / MADE).exists()

    def job(self, line: str) -> str:
        """Each part of a launch command is killed in the middle of its forward; then all of it is started again."""
        for part in line.split(" && "):
            recording = "DUMP_ON=1" in part or "--msprobe-dump-config" in part
            assert self.run(part, SAVING if recording else COMPUTING).returncode == -signal.SIGKILL
            self.kills[self.now] += 1
            self.go_back()
        if self.now == 7:
            self._fresh_dumps()
        elif self.now == 8:
            self._fresh_round()
        return super().job(line)

    def _fresh_dumps(self) -> None:
        """Half a dump is none; SKILL.md says to take another folder."""
        dumps = {side: f"{self.place.base}/dumps/{self.round0}/{side}" for side in ("train", "infer")}
        ran = self.run(commands(7)[0] + f" --train {dumps['train']} --infer {dumps['infer']}")
        assert (ran.returncode, ran.stderr.count("not_killed")) == (1, 1), ran
        self.round0 = "round0-again"
        self.configure(commands(6)[2:])

    def _fresh_round(self) -> None:
        _, prepare, verify = commands(8)
        ran = self.run(verify)
        assert ran.returncode in (1, 2), ran
        assert "Traceback" not in ran.stderr
        ran = self.run(prepare)
        assert (ran.returncode, "it holds an earlier run" in ran.stderr) == (2, True), ran
        os.rename(self.place.work / "round1/dump", self.place.work / "round1/dump-killed")
