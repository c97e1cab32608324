"""Chunks of one prompt in several dump steps: those that adjoin, chunks of a few tokens, steps in which a rank is missing."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from dump_analysis.floats import Array
from dump_analysis.mapping.ranks.members import Member, Step
from dump_analysis.mapping.recorded.nodes import Window
from dump_analysis.mapping.tokens.token_fits import Fit
from dump_analysis.mapping.tokens.token_vectors import Vector, values_of


def adjoining(steps: Sequence[Step]) -> tuple[list[Step], list[int]]:
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


def complete(steps: Sequence[Step]) -> tuple[list[Step], set[int]]:
    """The steps in which all ranks of the adjoining ones took part; numbers of the others: shards without the rest say nothing."""
    near, _ = adjoining(steps)
    ranks = {step.number: {member.unit.place.rank for member in step.members} for step in near}
    every = set().union(*ranks.values())
    lacking = {number for number, held in ranks.items() if held != every}
    if len(lacking) == len(near):
        return list(steps), set()
    return [step for step in steps if step.number not in lacking], lacking


# --- chunks of a few tokens ---


class _Short(NamedTuple):
    """The members of a step whose ids alone are too few to be told from other integers."""

    number: int
    members: list[Member]
    ids: Array


def short_chunks(steps: Sequence[Step], rest: Sequence[Sequence[Member]], best: Fit, side: int) -> list[Step]:
    """Further steps that go on where one of ``steps`` ends, or end where one begins. ``best``: of the longest step, ``side`` its place.

    Their ids stand where that step has its own, and are the other side's next ones. One token behind all others is the last of the
    prompt, or a decoded one, which is none of the prefill.
    """
    own, other = (best.train, best.infer) if side == 0 else (best.infer, best.train)
    left = [short for members in rest if (short := _short(members, own)) is not None]
    found: list[Step] = []
    while True:
        placed = [
            (abs(near.number - short.number), short.number, short, at)
            for short in left
            for near, at in _places(short, [*steps, *found], other)
        ]
        if not placed:
            return found
        _, _, short, at = min(placed, key=lambda one: one[:2])
        length = len(short.ids)
        found.append(Step(short.members, Window(0, length, length, 1), at, length))
        left = [one for one in left if one is not short]


def _short(members: Sequence[Member], own: Vector) -> _Short | None:
    """A step's ids, where the longest step recorded its own; None where its ranks recorded none there, or others."""
    place = own.recorded.spot[1:4]
    found = [next((one for one in member.records.activations if one.spot[1:4] == place), None) for member in members]
    ids = [values for one in found if one is not None and (values := values_of(one)) is not None]
    if not ids or any(not np.array_equal(ids[0], each) for each in ids[1:]):
        return None
    return _Short(members[0].unit.place.step, list(members), ids[0])


def _places(short: _Short, steps: Sequence[Step], other: Vector) -> list[tuple[Step, int]]:
    """Where a short step may stand: beside which one, and where that is in the other side's ids."""
    length = len(short.ids)
    found: list[tuple[Step, int]] = []
    for step in (step for step in steps if step.in_one_run):
        start, stop = other.sequence_at(step.first)
        for at in (step.stop, step.first - length):
            free = all(at + length <= one.first or one.stop <= at for one in steps)
            inside = start <= at and at + length <= stop
            closes = at < step.first or at + length == stop or any(one.first == at + length for one in steps)
            if free and inside and (length > 1 or closes) and np.array_equal(other.values[at : at + length], short.ids):
                found.append((step, at))
    return found
