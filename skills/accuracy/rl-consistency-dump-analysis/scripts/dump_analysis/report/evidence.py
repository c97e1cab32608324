"""What a report rests on: the artefacts of one analysis, read from its folder."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from msprobe_files.errors import DumpError

from dump_analysis.artefacts import io, semantic_mapping
from dump_analysis.artefacts.boundary_results import BoundaryResults
from dump_analysis.artefacts.common import SideName, Worded
from dump_analysis.artefacts.conclusion import Conclusion, RoundSummary
from dump_analysis.artefacts.replay_results import ModuleReplay, ReplayResults
from dump_analysis.artefacts.round_result import RoundResult
from dump_analysis.artefacts.semantic_mapping import SemanticMapping
from dump_analysis.artefacts.stub_instruction import StubInstruction
from dump_analysis.replay.places import module_of
from dump_analysis.rounds import history

CONCLUSION, RESULTS, REPLAY, MAPPING = "conclusion.json", "boundary_results.json", "replay_results.json", "semantic_mapping.json"
PLAN = "round_plan.json"


@dataclass(frozen=True)
class RoundEvidence:
    """What there is of one override round.

    ``short``: what the conclusion says of it; ``instruction``, ``result``: what its folder holds. Each is None where there is none;
    a round has a summary, a result or both, and where it has both its result says more.
    """

    number: int
    short: RoundSummary | None
    instruction: StubInstruction | None
    result: RoundResult | None

    @property
    def effective(self) -> bool | None:
        """None: planned, not run yet."""
        told = self._told
        return told.effective if told is not None else None

    @property
    def why_not(self) -> Worded | None:
        told = self._told
        return told.why_not if told is not None else None

    @property
    def stop(self) -> str | None:
        """One of `artefacts.round_result.Stop`; None where nothing was judged."""
        told = self._told
        return told.stop if told is not None else None

    @property
    def isolated(self) -> str | None:
        """The boundary from which on both sides went on from equal values; None where the round has no cut."""
        if self.result is not None and self.result.isolated is not None:
            return self.result.isolated.boundary
        if self.result is None and self.short is not None and self.short.isolated is not None:
            return self.short.isolated
        cut = self.instruction.isolate_boundary if self.instruction is not None else None
        return cut.boundary if cut is not None else None

    @property
    def forced(self) -> bool:
        """Whether all modules at once were given equal inputs."""
        kinds = [told.kind for told in (self.instruction, self._told) if told is not None]
        return "forced" in kinds or (self.result is not None and bool(self.result.local))

    @property
    def target(self) -> SideName | None:
        """The side that was overridden."""
        sides = [told.target_side for told in (self.instruction, self._told) if told is not None]
        return sides[0] if sides else None

    @property
    def _told(self) -> RoundResult | RoundSummary | None:
        return self.result if self.result is not None else self.short


@dataclass(frozen=True)
class Evidence:
    """The artefacts of one analysis. ``replay``, ``mapping``: None where it has none.

    ``rounds``: those that were judged or that the conclusion tells, by their number.
    ``no_more_rounds``: the last plan, round_plan.json, says that none adds anything.
    """

    conclusion: Conclusion
    results: BoundaryResults
    replay: ReplayResults | None
    mapping: SemanticMapping | None
    rounds: list[RoundEvidence]
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
    return Evidence(conclusion, results, replay, mapping, _rounds(folder, conclusion), _plan_is_empty(folder))


def _rounds(folder: Path, conclusion: Conclusion) -> list[RoundEvidence]:
    short = {one.round: one for one in conclusion.rounds}
    dumps = {one.label: one.digest for one in conclusion.inputs}
    held = {number: _held(history.folder_of(folder, number), dumps) for number in history.numbers_of(folder)}
    found = [RoundEvidence(number, short.get(number), *held.get(number, (None, None))) for number in sorted(short.keys() | held.keys())]
    return [one for one in found if one.short is not None or one.result is not None]


def _held(place: Path, dumps: dict[str, str]) -> tuple[StubInstruction | None, RoundResult | None]:
    """The instruction and the result in a round's folder, but for a round of other dumps and a result of another instruction.

    ``dumps``: digests by label.
    """
    instruction: StubInstruction | None = None
    digest: str | None = None
    if (place / history.INSTRUCTION).is_file():
        instruction, _ = history.read(place, history.INSTRUCTION, StubInstruction)
        if dumps.get(instruction.source_side) != instruction.source_dump.digest:
            return None, None
        digest = io.digest_of_file(place / history.INSTRUCTION)
    if not (place / history.RESULT).is_file():
        return instruction, None
    result, _ = history.read(place, history.RESULT, RoundResult)
    foreign = digest is not None and result.instruction is not None and result.instruction.digest != digest
    return instruction, None if foreign else result


def _plan_is_empty(folder: Path) -> bool:
    value = io.load(folder / PLAN) if (folder / PLAN).is_file() else None
    return isinstance(value, dict) and value.get("rounds") == []
