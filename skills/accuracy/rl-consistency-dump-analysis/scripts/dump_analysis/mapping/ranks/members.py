"""Which units of a side belong together: steps and ranks whose token ids are those of the other side."""

from collections import defaultdict
from collections.abc import Sequence
from typing import NamedTuple

from msprobe_files.errors import DumpError
from msprobe_files.units import Unit

from dump_analysis.artefacts.common import Worded
from dump_analysis.mapping.ranks.context import TokenPieces, token_pieces
from dump_analysis.mapping.recorded.nodes import SideRecords, Window
from dump_analysis.mapping.recorded.records import read
from dump_analysis.mapping.tokens.token_fits import Fit, best_fit
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
    """The members of one dump step that ran the compared tokens, by rank.

    ``window``: which of their token rows are those; ``first``: where the first of them lies in the other side's ids.
    ``pieces``: where each member holds other tokens (context parallel); the window is then one member's.
    """

    members: list[Member]
    window: Window
    first: int
    matches: int
    pieces: TokenPieces | None = None

    @property
    def stop(self) -> int:
        return self.first + (self.window.stop - self.window.start if self.pieces is None else self.pieces.length)

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
    """

    steps: list[Step]
    remarks: list[Worded]
    alike: list[int]

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


def choose(train: Sequence[Member], infer: Sequence[Member]) -> tuple[Chosen, Chosen] | None:
    """For each side the steps and ranks that ran the same tokens; None where no ids of the two sides agree."""
    fits = {(i, j): best_fit(left.integers, right.integers) for i, left in enumerate(train) for j, right in enumerate(infer)}
    found = [(pair, fit) for pair, fit in fits.items() if fit is not None]
    cut = _in_pieces("train", train, infer), _in_pieces("infer", infer, train)
    if not found and cut == (None, None):
        return None
    one, other = max(found, key=lambda item: item[1].rank)[0] if found else (0, 0)  # the earliest of equals: dicts keep their order
    left = cut[0] or _chosen("train", train, [fits[at, other] for at in range(len(train))], 0)
    right = cut[1] or _chosen("infer", infer, [fits[one, at] for at in range(len(infer))], 1)
    return left, right


def _in_pieces(label: str, members: Sequence[Member], others: Sequence[Member]) -> Chosen | None:
    """The step whose ranks hold different tokens of one prompt, if there is one."""
    for number in dict.fromkeys(member.unit.place.step for member in members):
        ours = [member for member in members if member.unit.place.step == number]
        pieces = token_pieces([member.integers for member in ours], [other.integers for other in others])
        if pieces is not None:
            length = len(ours[0].integers.ids[0].values)
            step = Step(ours, Window(0, length, length, 1), pieces.first, pieces.matches, pieces)
            aside = [member.place for member in members if member not in ours]
            remarks = [word("units_aside", side=label, units=aside)] if aside else []
            kind = "context_zigzag" if pieces.zigzag else "context_plain"
            return Chosen([step], [*remarks, word(kind, side=label, n=len(ours))], [])
    return None


def _chosen(label: str, members: Sequence[Member], fits: Sequence[Fit | None], side: int) -> Chosen:
    remarks: list[Worded] = []
    by_step: dict[int, list[tuple[Member, Fit | None]]] = defaultdict(list)
    for member, fit in zip(members, fits, strict=True):
        by_step[member.unit.place.step].append((member, fit))
    steps = [step for found in by_step.values() if (step := _step(found, side)) is not None]
    kept, alike = _adjoining(steps)
    taken = {id(member.unit) for step in kept for member in step.members}
    aside = [member.place for member in members if id(member.unit) not in taken]
    if aside:
        remarks.append(word("units_aside", side=label, units=aside))
    if alike:
        remarks.append(word("steps_alike", side=label, taken=kept[0].number, others=alike))
    if len(kept) > 1:
        spans = [f"step{step.number} {step.first}:{step.stop}" for step in kept]
        remarks.append(word("chunks_joined", side=label, spans=spans))
    return Chosen(kept, remarks, alike)


def _step(found: Sequence[tuple[Member, Fit | None]], side: int) -> Step | None:
    """The ranks of a step that ran the tokens, and those without ids: later pipeline stages; None where no rank ran them."""
    fits = [(member, fit) for member, fit in found if fit is not None]
    if not fits:
        return None
    _, best = max(fits, key=lambda item: item[1].rank)
    vector = (best.train, best.infer)[side]
    # Other tokens, or the same at another place, are another prompt.
    kept = [member for member, fit in found if (not member.integers.ids if fit is None else _places(fit) == _places(best))]
    runs = [(run[side], run[side] + run.length) for run in best.runs]
    window = Window(*runs[0], len(vector.values), vector.batch, tuple(runs[1:]))
    return Step(kept, window, min(run[1 - side] for run in best.runs), best.matches)


def _places(fit: Fit) -> list[tuple[int, int, int]]:
    return [(run.train, run.infer, run.length) for run in fit.runs]


def _adjoining(steps: Sequence[Step]) -> tuple[list[Step], list[int]]:
    """Steps whose tokens adjoin, around the one with most; and other steps with just the tokens of that one."""
    ordered = sorted(steps, key=lambda step: (-step.matches, step.number))
    best = ordered[0]
    alike = [step.number for step in ordered[1:] if (step.first, step.stop, step.matches) == (best.first, best.stop, best.matches)]
    kept = [best]
    for step in ordered[1:]:
        if step.in_one_run and best.in_one_run and all(step.stop <= other.first or other.stop <= step.first for other in kept):
            kept.append(step)
    kept.sort(key=lambda step: step.first)
    low = high = kept.index(best)
    while low > 0 and kept[low - 1].stop == kept[low].first:
        low -= 1
    while high + 1 < len(kept) and kept[high].stop == kept[high + 1].first:
        high += 1
    return kept[low : high + 1], alike
