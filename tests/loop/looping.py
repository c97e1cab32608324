"""The loop: mapping, comparison, replay, then round after round until nothing is open. Every step is a command of one of the skills."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal, NamedTuple, Protocol

from running import COLLECTION, SCRIPTS

Side = Literal["train", "infer"]
SIDES: tuple[Side, Side] = ("train", "infer")
MOST_ROUNDS = 12  # a loop that does not end by itself is stopped here, and has failed


class Ran(Protocol):
    """How a command ended."""

    @property
    def returncode(self) -> int: ...
    @property
    def stdout(self) -> str: ...
    @property
    def stderr(self) -> str: ...


class Pair(NamedTuple):
    """What is looked into: the first dumps, the folder of the analysis, and how things are run.

    ``command``: a script with its arguments, to its end. ``again``: a side under another configuration of msprobe, all else the same.
    """

    work: Path
    train: Path
    infer: Path
    command: Callable[[Path, list[str]], Ran]
    again: Callable[[Side, Path], None]

    @property
    def dumps(self) -> list[str]:
        """The first pair, as flags."""
        return ["--train", str(self.train), "--infer", str(self.infer)]


class Manner(NamedTuple):
    """One form of the loop. ``target``: the side that the first round overrides, later ones that of the plan.

    ``forced``: all cuts at once; ``replay``: whether modules are recomputed as well.
    """

    target: Side
    forced: bool
    replay: bool = True

    def __str__(self) -> str:
        return f"{'forced' if self.forced else 'cuts'} into {self.target}{'' if self.replay else ', no replay'}"


class Ended(NamedTuple):
    """``results``: round_result.json of each round, in order. ``conclusion``: conclusion.json at the end."""

    results: list[dict[str, Any]]
    conclusion: dict[str, Any]
    plan: dict[str, Any]

    @property
    def effective(self) -> int:
        return sum(result["effective"] for result in self.results)


def analyse(pair: Pair, *, replay: bool) -> None:
    """Everything before the first round."""
    mapping, work = ["--mapping", str(pair.work / "semantic_mapping.json")], pair.work
    _analysis(pair, "propose_mapping.py", *pair.dumps, "--output", mapping[1])
    _analysis(pair, "analyze_dump_boundaries.py", *pair.dumps, *mapping, "--output", str(work / "boundary_results.json"))
    if replay:
        _analysis(pair, "replay_boundaries.py", *pair.dumps, *mapping, "--output", str(work / "replay_results.json"))
    _analysis(pair, "conclude.py", "--workdir", str(work))


def rounds(pair: Pair, manner: Manner, *more: str) -> Ended:
    """Rounds until the plan has none left, or a result says to stop. ``more``: flags of the plan."""
    results: list[dict[str, Any]] = []
    while len(results) < MOST_ROUNDS:
        plan = planned(pair, manner, *more, later=bool(results))
        instruction = pair.work / f"round{len(results) + 1}/stub_instruction.json"
        if not plan["rounds"] or not instruction.is_file():
            break
        collected(pair, instruction)
        results.append(judged(pair, len(results) + 1))
        _analysis(pair, "conclude.py", "--workdir", str(pair.work))
        if results[-1]["stop"] != "continue":
            break
    return Ended(results, read(pair.work / "conclusion.json"), read(pair.work / "round_plan.json"))


def planned(pair: Pair, manner: Manner, *more: str, later: bool = False) -> dict[str, Any]:
    """The next round's instruction, where one still adds something. ``later``: not the first round."""
    flags = [*(["--all"] if manner.forced else []), *([] if later else ["--target", manner.target]), *more]
    _analysis(pair, "make_stub_instruction.py", *pair.dumps, "--workdir", str(pair.work), *flags)
    return read(pair.work / "round_plan.json")


def collected(pair: Pair, instruction: Path) -> Ran:
    """The round carried out: sources prepared, the target run again under `load`, the effect proven."""
    asked = read(instruction)
    target, folder = asked["target_side"], instruction.parent
    paths = {"train": pair.train, "infer": pair.infer}
    apply = [
        "--instruction", str(instruction), "--source-dump", str(paths[asked["source_side"]]), "--target-dump", str(paths[target]),
        "--output-dir", str(folder),
    ]  # fmt: skip
    told(pair.command(COLLECTION / "apply_stub_instruction.py", apply))
    pair.again(target, folder / "msprobe_load.json")
    return pair.command(COLLECTION / "apply_stub_instruction.py", [*apply, "--verify", str(folder / "dump")])


def judged(pair: Pair, number: int) -> dict[str, Any]:
    """round_result.json."""
    _analysis(pair, "judge_round.py", *pair.dumps, "--workdir", str(pair.work), "--round", str(number))
    return read(pair.work / f"round{number}/round_result.json")


def read(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


def told(ran: Ran) -> Ran:
    """A command that had to do its work."""
    assert ran.returncode == 0, f"{ran.returncode}\n{ran.stdout}\n{ran.stderr}"
    return ran


def _analysis(pair: Pair, name: str, *arguments: str) -> Ran:
    return told(pair.command(SCRIPTS / name, list(arguments)))
