"""What a report rests on: the artefacts of one analysis, read from its folder."""

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
from dump_analysis.artefacts.round_result import RoundResult
from dump_analysis.artefacts.semantic_mapping import SemanticMapping
from dump_analysis.artefacts.stub_instruction import StubInstruction
from dump_analysis.replay.places import module_of
from dump_analysis.rounds import history

CONCLUSION, RESULTS, REPLAY, MAPPING = "conclusion.json", "boundary_results.json", "replay_results.json", "semantic_mapping.json"
PLAN = "round_plan.json"


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
    results_of, instructions = _rounds(folder, conclusion)
    rounds = {**_summaries(conclusion), **results_of}
    told = [rounds[number] for number in sorted(rounds)]
    return Evidence(conclusion, results, replay, mapping, told, instructions, _plan_is_empty(folder))


def _rounds(folder: Path, conclusion: Conclusion) -> tuple[dict[int, dict[str, Any]], dict[int, dict[str, Any]]]:
    """Each round's result and instruction by its number, but for rounds of other dumps and results of another instruction."""
    dumps = {one.label: one.digest for one in conclusion.inputs}
    found: dict[int, dict[str, Any]] = {}
    instructions: dict[int, dict[str, Any]] = {}
    for number in history.numbers_of(folder):
        place = history.folder_of(folder, number)
        digest = None
        if (place / history.INSTRUCTION).is_file():
            instruction, _ = history.read(place, history.INSTRUCTION, StubInstruction)
            if dumps.get(instruction.source_side) != instruction.source_dump.digest:
                continue
            instructions[number] = io.builtins(instruction)
            digest = io.digest_of_file(place / history.INSTRUCTION)
        if (place / history.RESULT).is_file():
            result, _ = history.read(place, history.RESULT, RoundResult)
            if digest is None or result.instruction is None or result.instruction.digest == digest:
                found[number] = io.builtins(result)
    return found, instructions


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
