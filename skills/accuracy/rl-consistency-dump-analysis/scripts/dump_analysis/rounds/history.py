"""The rounds that an analysis has behind it: their instructions and what they have shown."""

import re
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple, TypeVar

from msprobe_files.errors import DumpError

from dump_analysis.artefacts import io
from dump_analysis.artefacts.common import SideName
from dump_analysis.artefacts.round_result import Downstream, Local, RoundResult
from dump_analysis.artefacts.stub_instruction import StubInstruction
from dump_analysis.artefacts.stub_outcome import StubOutcome

INSTRUCTION, OUTCOME, RESULT = "stub_instruction.json", "stub_outcome.json", "round_result.json"
T = TypeVar("T", StubInstruction, StubOutcome, RoundResult)
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


def numbers_of(workdir: Path) -> list[int]:
    """The numbers of the rounds that have a folder here; a folder of another name (``round1_old``) is none of a round."""
    if not workdir.is_dir():
        return []
    return sorted(int(match[1]) for path in workdir.iterdir() if (match := _FOLDER.match(path.name)) and path.is_dir())


def taken(workdir: Path) -> list[int]:
    """The numbers of the rounds whose folder holds anything; one that was made and left empty is free."""
    return [number for number in numbers_of(workdir) if any(folder_of(workdir, number).iterdir())]


def read(folder: Path, name: str, kind: type[T]) -> tuple[T, list[str]]:
    """The instruction or result in the folder of a round, and warnings. Raises DumpError where it is that of a round of another number."""
    shown = f"{folder.name}/{name}"
    found, warnings = io.of_value(io.load(folder / name), kind, shown)
    if folder.name != f"round{found.round}":
        what = f"round: {found.round}, and its folder is {folder.name}"
        raise DumpError(f"Cannot use {shown}: {what}. Move that folder away, or give it back its name.")
    return found, warnings


def rounds_of(workdir: Path) -> tuple[list[Round], list[str]]:
    """The rounds of an analysis by their number, and warnings. Raises DumpError where a file of one cannot be read.

    A result of another instruction than the one beside it is not used.
    """
    found, warnings = [], []
    for number in numbers_of(workdir):
        folder = folder_of(workdir, number)
        if not (folder / INSTRUCTION).is_file():
            continue
        instruction, told = read(folder, INSTRUCTION, StubInstruction)
        digest = io.digest_of_file(folder / INSTRUCTION)
        result: RoundResult | None = None
        of_result = None
        if (folder / RESULT).is_file():
            result, more = read(folder, RESULT, RoundResult)
            told += more
            if result.instruction is not None and result.instruction.digest != digest:
                told.append(f"round{number}/{RESULT} is of another instruction and is not used; judge the round again")
                result = None
            of_result = io.digest_of_file(folder / RESULT) if result is not None else None
        warnings += told
        found.append(Round(number, instruction, digest, result, of_result))
    return found, warnings


def next_number(rounds: Sequence[Round], taken: Sequence[int]) -> int:
    """The number of the next round: that of one that was planned and not judged, else one more than the last that is ``taken``."""
    waiting = [one.number for one in rounds if one.result is None]
    return waiting[0] if waiting else max(taken, default=0) + 1


def withdraw(workdir: Path, rounds: Sequence[Round], planned: Collection[str]) -> None:
    """Take away the instruction of a round that was planned and not begun, where no round adds anything any more.

    ``planned``: digests of what a plan wrote; what people have edited stays.
    """
    for one in rounds:
        folder = folder_of(workdir, one.number)
        if one.result is None and one.digest in planned and not (folder / OUTCOME).exists() and not (folder / RESULT).exists():
            (folder / INSTRUCTION).unlink()
            if not any(folder.iterdir()):
                folder.rmdir()


def equal_inputs(rounds: Sequence[Round]) -> dict[str, Local | Downstream]:
    """What effective rounds saw of each boundary whose inputs were equal, the latest round last."""
    return {seen.boundary: seen for one in rounds for seen in one.judged if seen.inputs == "equal"}


def forced_into(rounds: Sequence[Round], target: SideName) -> list[Round]:
    """The effective forced rounds that overrode a side."""
    return [one for one in rounds if one.effective and one.instruction.kind == "forced" and one.instruction.target_side == target]


def seats_in(instruction: StubInstruction) -> frozenset[tuple[str, str]]:
    """The arguments that an instruction overrides: calls and the labels of their arguments."""
    return frozenset((module.target_entry, item.label) for module in instruction.modules for item in module.inputs)
