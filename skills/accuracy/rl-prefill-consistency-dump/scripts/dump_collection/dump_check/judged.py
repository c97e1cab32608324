"""The units whose forwards are compared: those that ran the joined tokens, and the ranks beside them."""

from typing import List, NamedTuple, Optional, Tuple

from msprobe_files.units import Unit

from dump_collection.dump_check import embedding
from dump_collection.dump_check.integers import Forward
from dump_collection.dump_check.matching import Match, cuts_of, match
from dump_collection.dump_check.pieces import Cut
from dump_collection.dump_check.sides import Side
from dump_collection.dump_check.warm_up import zeros_of


class Judged(NamedTuple):
    """``units``: what is judged of a side, and their ``forwards``.

    ``rivals``: units of a step and rank that nothing tells apart; ``asleep``: units of zeros, left aside.
    """

    side: Side
    units: Tuple[Unit, ...]
    forwards: Tuple[Forward, ...]
    rivals: Tuple[Unit, ...]
    asleep: Tuple[Unit, ...]

    @property
    def label(self) -> str:
        return self.side.label


class Pair(NamedTuple):
    """Both sides; ``match`` is None where a side has no token ids that can be read."""

    train: Judged
    infer: Judged
    match: Optional[Match]

    @property
    def both(self) -> Tuple[Judged, Judged]:
        return self.train, self.infer


def judge(train: Side, infer: Side) -> Pair:
    """Choose what is judged on each side by the token ids; without them the first step that holds anything."""
    awake = [_awake(side) for side in (train, infer)]
    cuts = [cuts_of(units) for units in awake]
    found = match(cuts[0], cuts[1])
    sides = [_judged(side, units, found, own) for side, units, own in zip((train, infer), awake, cuts)]
    return Pair(sides[0], sides[1], found)


def _awake(side: Side) -> Tuple[Unit, ...]:
    """The usable units without those of zeros, where others are left."""
    return tuple(unit for unit in side.usable if not zeros_of(unit).most) or side.usable


def _judged(side: Side, awake: Tuple[Unit, ...], found: Optional[Match], cuts: Tuple[Cut, ...]) -> Judged:
    asleep = tuple(unit for unit in side.usable if not any(unit is one for one in awake))
    if found is None:
        first = [unit for unit in awake if unit.place.step == awake[0].place.step]
        return Judged(side, tuple(first), _forwards(first, cuts), _rivals(first), asleep)
    own = found.sequence(side.label)
    chosen: List[Unit] = []
    for part in own.parts:
        chosen += [] if any(part.forward.unit is unit for unit in chosen) else [part.forward.unit]
    steps = {unit.place.step for unit in chosen}
    parts = {part.ids for part in own.parts}
    held = {id(cut.forward.unit) for cut in cuts}
    same = {id(cut.forward.unit) for cut in cuts if any(piece.ids in parts for piece in cut.pieces)}
    # A later pipeline stage sees no ids; it belongs to the step. A replica with other tokens does not.
    units = [
        unit for unit in awake
        if unit.place.step in steps and (id(unit) in same or (id(unit) not in held and not embedding.calls_of(unit)))
    ]  # fmt: skip
    return Judged(side, tuple(units), _forwards(units, cuts), _rivals(units), asleep)


def _forwards(units: List[Unit], cuts: Tuple[Cut, ...]) -> Tuple[Forward, ...]:
    return tuple(cut.forward for cut in cuts if any(cut.forward.unit is unit for unit in units))


def _rivals(units: List[Unit]) -> Tuple[Unit, ...]:
    places = [(unit.place.step, unit.place.rank) for unit in units]
    return tuple(unit for unit, place in zip(units, places) if places.count(place) > 1)
