"""Which units of a side belong together: steps and ranks whose token ids are those of the other side."""

from collections import defaultdict
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from msprobe_files.errors import DumpError

from dump_analysis.artefacts.common import Worded
from dump_analysis.mapping.ranks.chunks import adjoining, complete, short_chunks
from dump_analysis.mapping.ranks.context import same_tokens, token_pieces
from dump_analysis.mapping.ranks.members import Chosen, Member, Step
from dump_analysis.mapping.recorded.nodes import Window
from dump_analysis.mapping.tokens.token_fits import Fit, best_fit
from dump_analysis.mapping.tokens.token_vectors import Integers
from dump_analysis.wording import word

_LAYOUTS = {"plain": "context_plain", "zigzag": "context_zigzag", "other": "context_other"}


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
    rest = [[member for member, _ in found] for found in by_step.values() if all(fit is None for _, fit in found)]
    steps += short_chunks(steps, rest, max((fit for fit in fits if fit is not None), key=lambda fit: fit.rank), side)
    kept, lacking = complete(steps)
    kept, alike = adjoining(kept)
    taken = {id(member.unit) for step in kept for member in step.members}
    beyond = [step for step in steps if step.in_one_run and (step.stop <= kept[0].first or kept[-1].stop <= step.first)]
    lost = [step for step in beyond if step.number not in alike]  # what overlaps is another request with the same beginning
    apart = {id(member.unit) for step in lost for member in step.members}
    aside = [member.place for member in members if id(member.unit) not in taken | apart]
    remarks += [word("units_aside", side=label, units=aside)] if aside else []
    short = [f"step{step.number}" for step in lost if step.number in lacking]
    remarks += [word("chunk_lacks_ranks", side=label, steps=short)] if short else []
    past = [f"step{step.number} {step.first}:{step.stop}" for step in lost if step.number not in lacking]
    remarks += [word("chunks_past_gap", side=label, spans=past)] if past else []
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
