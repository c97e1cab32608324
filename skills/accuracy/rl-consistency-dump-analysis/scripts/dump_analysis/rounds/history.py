"""The rounds that an analysis has behind it: their instructions and what they have shown."""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from dump_analysis.artefacts import io
from dump_analysis.artefacts.common import SideName
from dump_analysis.artefacts.round_result import Downstream, Local, RoundResult
from dump_analysis.artefacts.stub_instruction import StubInstruction

INSTRUCTION, OUTCOME, RESULT = "stub_instruction.json", "stub_outcome.json", "round_result.json"
_FOLDER = re.compile(r"round([1-9][0-9]{0,5})\Z")


class Round(NamedTuple):
    """One round. ``result`` None: not judged yet."""

    number: int
    instruction: StubInstruction
    digest: str
    result: RoundResult | None
    result_digest: str | None = None

    @property
    def effective(self) -> bool:
        return self.result is not None and self.result.effective

    @property
    def judged(self) -> Iterator[Local | Downstream]:
        """The boundaries that the round judged; none where it was not effective."""
        if self.result is not None and self.result.effective:
            yield from self.result.local
            yield from self.result.downstream


def folder_of(workdir: Path, number: int) -> Path:
    """The folder of a round below that of its analysis."""
    return workdir / f"round{number}"


def result_label(one: Round) -> str:
    """How the inputs of a conclusion call a round's result."""
    return f"round{one.number}/{RESULT}"


def rounds_of(workdir: Path) -> tuple[list[Round], list[str]]:
    """The rounds of an analysis by their number, and warnings. Raises DumpError where a file of one cannot be read.

    A result of another instruction than the one beside it is not used.
    """
    found, warnings = [], []
    numbers = sorted(int(match[1]) for path in workdir.iterdir() if (match := _FOLDER.match(path.name))) if workdir.is_dir() else []
    for number in numbers:
        folder = folder_of(workdir, number)
        if not (folder / INSTRUCTION).is_file():
            continue
        instruction, told = io.read(folder / INSTRUCTION, StubInstruction)
        digest = io.digest_of_file(folder / INSTRUCTION)
        result: RoundResult | None = None
        of_result = None
        if (folder / RESULT).is_file():
            result, more = io.read(folder / RESULT, RoundResult)
            told += more
            if result.instruction is not None and result.instruction.digest != digest:
                told.append(f"round{number}/{RESULT} is of another instruction and is not used; judge the round again")
                result = None
            of_result = io.digest_of_file(folder / RESULT) if result is not None else None
        warnings += told
        found.append(Round(number, instruction, digest, result, of_result))
    return found, warnings


def next_number(rounds: Sequence[Round]) -> int:
    """The number of the next round: that of one that was planned and not judged, else one more than the last."""
    waiting = [one.number for one in rounds if one.result is None]
    return waiting[0] if waiting else max((one.number for one in rounds), default=0) + 1


def withdraw(workdir: Path, rounds: Sequence[Round]) -> None:
    """Take away the instruction of a round that was planned and not begun, where no round adds anything any more."""
    for one in rounds:
        folder = folder_of(workdir, one.number)
        if one.result is None and not (folder / OUTCOME).exists() and not (folder / RESULT).exists():
            (folder / INSTRUCTION).unlink()
            if not any(folder.iterdir()):
                folder.rmdir()


def equal_inputs(rounds: Sequence[Round], target: SideName | None = None) -> dict[str, Local | Downstream]:
    """What effective rounds saw of each boundary whose inputs were equal, the latest round last. ``target``: of one side's override."""
    found: dict[str, Local | Downstream] = {}
    for one in rounds:
        if target in (None, one.instruction.target_side):
            found.update({seen.boundary: seen for seen in one.judged if seen.inputs == "equal"})
    return found
