"""What a report rests on: the artefacts of one analysis, read from its folder."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
from msprobe_files.errors import DumpError

from dump_analysis.artefacts import io, semantic_mapping
from dump_analysis.artefacts.boundary_results import BoundaryResults
from dump_analysis.artefacts.conclusion import Conclusion
from dump_analysis.artefacts.replay_results import ModuleReplay, ReplayResults
from dump_analysis.artefacts.semantic_mapping import SemanticMapping
from dump_analysis.replay.places import module_of

CONCLUSION, RESULTS, REPLAY, MAPPING = "conclusion.json", "boundary_results.json", "replay_results.json", "semantic_mapping.json"
PLAN = "round_plan.json"
_ROUND = re.compile(r"^(?:round\d+/)?round_result\.json$")


@dataclass(frozen=True)
class Evidence:
    """The artefacts of one analysis. ``replay``, ``mapping``: None where it has none.

    ``rounds``: round_result.json of each round; ``instructions``: stub_instruction.json by round, where the round's folder holds it.
    ``no_more_rounds``: the last plan, round_plan.json, says that none adds anything.
    """

    conclusion: Conclusion
    results: BoundaryResults
    replay: ReplayResults | None
    mapping: SemanticMapping | None
    rounds: list[dict[str, Any]]
    instructions: dict[int, dict[str, Any]]
    no_more_rounds: bool = False

    def modules(self) -> dict[str, ModuleReplay]:
        """Recomputed module pairs by name."""
        return {module.module: module for module in self.replay.modules} if self.replay is not None else {}

    def module_at(self, boundary: str, modules: dict[str, ModuleReplay]) -> ModuleReplay | None:
        """The recomputed module pair that makes a boundary."""
        return modules.get(module_of(boundary))


def read(folder: Path, names: Sequence[str]) -> Evidence:
    """The artefacts that ``names`` lists, from ``folder``; rounds lie in folders round1, round2 … of it.

    Raises DumpError where the conclusion or the comparison is missing or cannot be read: without them there is nothing to report.
    """
    listed = set(names)
    for needed in (CONCLUSION, RESULTS):
        if not (folder / needed).is_file():
            raise DumpError(
                f"Cannot render the report: {needed} is not in {folder}. Run diagnose.py into that folder, or hand the right one."
            )
    conclusion, _ = io.read(folder / CONCLUSION, Conclusion)
    results, _ = io.read(folder / RESULTS, BoundaryResults)
    replay = io.read(folder / REPLAY, ReplayResults)[0] if REPLAY in listed and (folder / REPLAY).is_file() else None
    mapping = semantic_mapping.read(folder / MAPPING) if MAPPING in listed and (folder / MAPPING).is_file() else None
    rounds = {**_summaries(conclusion), **_rounds(folder, listed)}
    instructions = {number: found for number in rounds if (found := _instruction(folder / f"round{number}")) is not None}
    told = [rounds[number] for number in sorted(rounds)]
    return Evidence(conclusion, results, replay, mapping, told, instructions, _plan_is_empty(folder))


def _rounds(folder: Path, listed: set[str]) -> dict[int, dict[str, Any]]:
    """Each round's result by its number; those that are listed, and those that lie in the folders of rounds."""
    paths = {folder / name for name in listed if _ROUND.match(name)} | set(folder.glob("round*/round_result.json"))
    found: dict[int, dict[str, Any]] = {}
    for path in sorted(path for path in paths if path.is_file()):
        value = io.load(path)
        if not isinstance(value, dict) or value.get("schema") != "round_result/1" or not isinstance(value.get("round"), int):
            raise DumpError(
                f"Cannot use {path.name} of {path.parent.name}: expected schema round_result/1 with its round. Hand the right file."
            )
        found[value["round"]] = value
    return found


def _summaries(conclusion: Conclusion) -> dict[int, dict[str, Any]]:
    """Rounds as the conclusion tells them in short, in the form of their results: what is not told there is empty."""
    found: dict[int, dict[str, Any]] = {}
    for one in msgspec.to_builtins(conclusion.rounds):
        if isinstance(one, dict) and isinstance(one.get("round"), int):
            isolated = {"boundary": one["isolated"], "status": None} if isinstance(one.get("isolated"), str) else one.get("isolated")
            found[one["round"]] = {**one, "isolated": isolated}
    return found


def _plan_is_empty(folder: Path) -> bool:
    value = io.load(folder / PLAN) if (folder / PLAN).is_file() else None
    return isinstance(value, dict) and value.get("rounds") == []


def _instruction(folder: Path) -> dict[str, Any] | None:
    path = folder / "stub_instruction.json"
    value = io.load(path) if path.is_file() else None
    return value if isinstance(value, dict) else None
