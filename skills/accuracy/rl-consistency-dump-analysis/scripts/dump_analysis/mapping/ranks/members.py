"""Which units of a side belong together: steps and ranks whose token ids are those of the other side."""

from collections import defaultdict
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from msprobe_files.errors import DumpError
from msprobe_files.units import Unit

from dump_analysis.artefacts.common import Worded
from dump_analysis.mapping.ranks.context import TokenPieces, same_tokens, token_pieces
from dump_analysis.mapping.recorded.nodes import SideRecords, Window
from dump_analysis.mapping.recorded.records import read
from dump_analysis.mapping.tokens.token_fits import Fit, best_fit
from dump_analysis.mapping.tokens.token_vectors import Integers, integers_of
from dump_analysis.sides import Side, side_of
from dump_analysis.wording import word

_LAYOUTS = {"plain": "context_plain", "zigzag": "context_zigzag", "other": "context_other"}


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


def choose(train: Sequence[Member], infer: Sequence[Member]) -> tuple[Chosen, Chosen] | None:
    """For each side the steps and ranks that ran the same tokens; None where no ids of the two sides agree.

    Raises DumpError where ranks hold the tokens of one prompt in an order that makes no two runs the same.
    """
    cut = _in_pieces("train", train, infer), _in_pieces("infer", infer, train)
    ids = [
        _of_pieces(own.chosen) if own.chosen is not None else [member.integers for member in members]
        for own, members in zip(cut, (train, infer), strict=True)
    ]
    fits = {(i, j): best_fit(left, right) for i, left in enumerate(ids[0]) for j, right in enumerate(ids[1])}
    found = [(pair, fit) for pair, fit in fits.items() if fit is not None]
    if not found:
        for remark in (remark for own in cut for remark in own.remarks):
            raise DumpError(f"Cannot propose a mapping: {remark.text}. Dump the positions too, or one rank that holds all tokens.")
        return None
    one, other = max(found, key=lambda item: item[1].rank)[0]  # the earliest of equals: dicts keep their order
    left = cut[0].chosen or _chosen("train", train, [fits[at, other] for at in range(len(train))], 0)
    right = cut[1].chosen or _chosen("infer", infer, [fits[one, at] for at in range(len(infer))], 1)
    left, right = (each._replace(remarks=[*own.remarks, *each.remarks]) for each, own in zip((left, right), cut, strict=True))
    return left, right


class _Pieces(NamedTuple):
    """``chosen``: the step whose ranks hold different tokens of one prompt; ``remarks``: where they do, in an order that is not known."""

    chosen: Chosen | None
    remarks: list[Worded]


def _of_pieces(chosen: Chosen) -> list[Integers]:
    """The ids of the whole prompt, as one rank would have recorded them."""
    vectors = chosen.steps[0].members[0].integers.ids
    whole = [vectors[0]._replace(values=chosen.pieces.ids, batch=1, starts=np.zeros(1, np.int64))] if chosen.pieces is not None else []
    return [Integers([], whole)]


def _in_pieces(label: str, members: Sequence[Member], others: Sequence[Member]) -> _Pieces:
    """The step whose ranks hold different tokens of one prompt, if there is one."""
    for number in dict.fromkeys(member.unit.place.step for member in members):
        groups = _same_ids([member for member in members if member.unit.place.step == number])
        ids, theirs = [group[0].integers for group in groups], [other.integers for other in others]
        if len(groups) < 2:
            continue
        pieces = token_pieces(ids, theirs)
        if pieces is None:
            if same_tokens(ids, theirs):
                return _Pieces(None, [word("context_unordered", side=label, step=number, n=len(groups))])
            continue
        length = len(ids[0].ids[0].values)
        steps = [Step(group, Window(0, length, length, 1), pieces.first, length) for group in groups]
        taken = {id(member.unit) for group in groups for member in group}
        aside = [member.place for member in members if id(member.unit) not in taken]
        remarks = [word("units_aside", side=label, units=aside)] if aside else []
        shown = [f"rank{groups[piece.group][0].unit.place.rank} {piece.start}:{piece.stop}" for piece in pieces.order]
        remarks.append(word(_LAYOUTS[pieces.layout], side=label, n=len(groups), order=shown))
        return _Pieces(Chosen(steps, remarks, [], pieces), [])
    return _Pieces(None, [])


def _same_ids(members: Sequence[Member]) -> list[list[Member]]:
    """The members that recorded ids, those with the same ids together."""
    found: dict[bytes, list[Member]] = defaultdict(list)
    for member in members:
        if member.integers.ids:
            found[member.integers.ids[0].values.tobytes()].append(member)
    return list(found.values())


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
