"""The units of a side with what they recorded, and those of them that make one forward together."""

from typing import NamedTuple

from msprobe_files.errors import DumpError
from msprobe_files.units import Unit

from dump_analysis.artefacts.common import Worded
from dump_analysis.mapping.ranks.context import TokenPieces
from dump_analysis.mapping.recorded.nodes import SideRecords, Window
from dump_analysis.mapping.recorded.records import read
from dump_analysis.mapping.tokens.token_vectors import Integers, integers_of
from dump_analysis.sides import Side, side_of
from dump_analysis.wording import word


class Member(NamedTuple):
    """A unit with what it recorded."""

    unit: Unit
    records: SideRecords
    integers: Integers

    @property
    def place(self) -> str:
        return f"step{self.unit.place.step}/rank{self.unit.place.rank}"


class Step(NamedTuple):
    """The members of one dump step that ran the compared tokens, by rank; under context parallel those of them with the same tokens.

    ``window``: which of their token rows are those; ``first``: where the first of them lies in the other side's ids.
    """

    members: list[Member]
    window: Window
    first: int
    matches: int

    @property
    def stop(self) -> int:
        return self.first + self.window.stop - self.window.start

    @property
    def in_one_run(self) -> bool:
        """Whether its tokens are one run of one sequence, so that another step may go on with it."""
        return self.window.batch == 1 and not self.window.further

    @property
    def number(self) -> int:
        return self.members[0].unit.place.step


class Chosen(NamedTuple):
    """The steps that make one forward of a side, in the order of their tokens, and what was left out and why.

    ``alike``: numbers of other steps that match as well as the one that was taken.
    ``pieces``: where steps are groups of ranks with other tokens of one prompt (context parallel), which tokens of which step.
    """

    steps: list[Step]
    remarks: list[Worded]
    alike: list[int]
    pieces: TokenPieces | None = None

    @property
    def main(self) -> Step:
        """The step with most of the tokens."""
        return max(self.steps, key=lambda step: step.matches)


def members_of(side: Side) -> tuple[list[Member], list[Worded]]:
    """The units of a side that recorded tensors of a forward, by step and rank, and which cannot be used.

    Raises DumpError where none can.
    """
    found: list[Member] = []
    unread: list[str] = []
    first: DumpError | None = None
    for unit in (unit for unit in side.units if unit.entries):
        try:
            records = read(side_of(side.label, [unit]))
        except DumpError as error:
            first = first or error
            unread.append(f"step{unit.place.step}/rank{unit.place.rank}")
        else:
            found.append(Member(unit, records, integers_of(records)))
    if not found:
        raise first or DumpError(f"Cannot propose a mapping: the {side.label} dump holds no units with tensors. Dump again.")
    return found, [word("units_unread", side=side.label, units=unread)] if unread else []
