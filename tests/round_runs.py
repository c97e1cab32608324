"""An analysis in a folder, and its rounds carried out by the collection's command and the real msprobe on the toys."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any, NamedTuple

from collection.loading import Loading
from collection.warm import Ran, Warm
from running import COLLECTION, SCRIPTS
from toys.pairs import Toys
from toys.switches import Switches

ALL = ("weights", "inputs", "config")
On = tuple[tuple[str, int], ...]


class Machine(NamedTuple):
    """The two processes that everything is forked from: one runs toys, one commands."""

    toys: Loading
    commands: Warm

    def run(self, script: Path, *arguments: str | Path) -> Ran:
        return self.commands.run([str(script), *map(str, arguments)], environment={}, cwd=script.parent)


class Analysed(NamedTuple):
    """A pair of toys and the folder of its analysis."""

    machine: Machine
    train: Path
    infer: Path
    on: dict[str, On]
    workdir: Path

    @property
    def pair(self) -> tuple[str | Path, ...]:
        return "--train", self.train, "--infer", self.infer, "--workdir", self.workdir

    def read(self, name: str) -> Any:
        return json.loads((self.workdir / name).read_text(encoding="utf-8"))

    def plan(self, *more: str) -> int | None:
        """Plan the next round; its number, None where none adds anything."""
        ran = self.machine.run(SCRIPTS / "make_stub_instruction.py", *self.pair, "--despite", *ALL, *more)
        assert ran.returncode == 0, ran.stderr
        rounds = self.read("round_plan.json")["rounds"]
        return rounds[0]["round"] if rounds else None

    def carry_out(self, number: int, on: On | None = None, forwards: tuple[str, ...] = ("window",)) -> Path:
        """Prepare a round, run its target with the override, and verify it; the new dump. ``on``: what is switched in that run."""
        folder = self.workdir / f"round{number}"
        made = json.loads((folder / "stub_instruction.json").read_text(encoding="utf-8"))
        dumps, target = {"train": self.train, "infer": self.infer}, made["target_side"]
        arguments = (
            "--instruction", folder / "stub_instruction.json", "--source-dump", dumps[made["source_side"]],
            "--target-dump", dumps[target], "--output-dir", folder, "--workdir", self.workdir,
        )  # fmt: skip
        ran = self.machine.run(COLLECTION / "apply_stub_instruction.py", *arguments)
        assert ran.returncode == 0, ran.stderr
        self.machine.toys.run(target, folder / "msprobe_load.json", forwards=forwards, on=self.on[target] if on is None else on)
        self.machine.run(COLLECTION / "apply_stub_instruction.py", *arguments, "--verify", folder / "dump")
        return folder / "dump"

    def judge(self, number: int, *more: str | Path) -> Any:
        """The exit code of the judgement with --exit-code, and the result."""
        ran = self.machine.run(SCRIPTS / "judge_round.py", *self.pair, "--round", str(number), "--exit-code", *more)
        assert ran.returncode in (0, 1, 3), ran.stderr
        return ran.returncode, self.read(f"round{number}/round_result.json")

    def conclude(self) -> Any:
        ran = self.machine.run(SCRIPTS / "conclude.py", "--workdir", self.workdir)
        assert ran.returncode == 0, ran.stderr
        return self.read("conclusion.json")


def analyse(machine: Machine, toys: Toys, folder: Path, train: On = (), infer: On = (), *, replay: bool = True) -> Analysed:
    """A pair with what is switched on each side, diagnosed; without replay nothing but what was compared is known."""
    on: dict[str, On] = {"train": train, "infer": infer}
    dumps = toys.side("train", Switches(train)), toys.side("infer", Switches(infer))
    ran = machine.run(SCRIPTS / "diagnose.py", "--train", dumps[0], "--infer", dumps[1], "--output-dir", folder)
    assert ran.returncode == 0, ran.stderr
    found = Analysed(machine, *dumps, on, folder)
    if not replay:
        (folder / "replay_results.json").unlink()
        found.conclude()
    return found


def copy_of(found: Analysed, folder: Path) -> Analysed:
    """The same analysis in another folder, to be spoiled there."""
    shutil.copytree(found.workdir, folder)
    return found._replace(workdir=folder)


def differing(result: Any) -> dict[str, str]:
    """The boundaries that a round saw differ from equal inputs, and the basis of their character."""
    return {
        one["boundary"]: one["basis"]
        for one in result["local"] + result["downstream"]
        if one["status"] != "EXACT" and one["inputs"] == "equal"
    }
