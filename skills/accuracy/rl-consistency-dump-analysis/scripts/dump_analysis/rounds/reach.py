"""What an override reaches: where a boundary is given the other side's value of what it is made from, and what a forced round shows."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from collections.abc import Set as AbstractSet

from dump_analysis.artefacts.boundary_results import BoundaryResult
from dump_analysis.boundaries import INPUTS
from dump_analysis.rounds.feeds import Feed, Feeds
from dump_analysis.rounds.observed import Seat
from dump_analysis.rounds.open_points import sources_of_all
from dump_analysis.rounds.values import of_side
from dump_analysis.sides import resolve


class Reach:
    """The overrides of one direction, looked up by the calls that make a boundary's value."""

    def __init__(self, feeds: Feeds) -> None:
        self.feeds = feeds
        self._taken: dict[str, list[Feed]] = defaultdict(list)
        for feed in feeds.feeds:
            self._taken[feed.argument.entry].append(feed)
        self._around = {entry: {above} for unit in feeds.target.units for entry, above in (unit.trace or {}).items() if above is not None}
        self._calls: dict[str, set[str]] = {}

    def is_given(self, source: str, boundary: str, overridden: Collection[Seat]) -> bool:
        """Whether a boundary gets the other side's value of a source: at the call that makes it, one around that, or one that hands on."""
        taken = (feed for entry in self._calls_of(boundary) for feed in self._taken.get(entry, ()))
        return any(source in feed.boundaries and feed.seat in overridden for feed in taken)

    def decided(self, compared: Mapping[str, BoundaryResult], given: Collection[Seat], apart: AbstractSet[str]) -> set[str]:
        """The boundaries that a forced round sees made from equal inputs.

        ``given``: what it overrides; ``apart``: what is known to differ by itself. What is not known to is taken to come out equal from
        equal inputs.
        """
        hidden = {name for feed in self.feeds.feeds if feed.seat in given for name in feed.alone}
        equal: set[str] = set()
        for name, made_from in sources_of_all(compared).items():  # in order, so that what a value is made from is known
            if all((one in equal and one not in apart) or self.is_given(one, name, given) for one in made_from):
                equal.add(name)
        return equal - hidden - set(INPUTS)

    def _calls_of(self, boundary: str) -> set[str]:
        """The call that makes a value, those that made what it was handed and no boundary holds (a rotation's, say), all calls around them.

        None where the mapping was edited since the comparison.
        """
        if boundary not in self._calls:
            made = [self._maker(boundary)] if boundary in self.feeds.mapped else []
            self._calls[boundary] = _closure(_closure(made, self.feeds.handed_by), self._around)
        return self._calls[boundary]

    def _maker(self, boundary: str) -> str:
        """The innermost call that makes a boundary's value on the target: one that returns it, else the one that the mapping names."""
        feeds = self.feeds
        if boundary in feeds.outputs:
            place = resolve(feeds.target, feeds.outputs[boundary].sources[0])
            if place is not None:
                return place.record.entry
        pair = feeds.mapped[boundary].pair
        module = pair.row.module
        made = None if module is None else module.train if feeds.target_side == "train" else module.infer
        return made if made is not None else of_side(pair, feeds.target_side)[1].places[0].record.entry


def _closure(start: Iterable[str], following: Mapping[str, AbstractSet[str]]) -> set[str]:
    found = set(start)
    waiting = list(found)
    while waiting:
        new = following.get(waiting.pop(), frozenset()) - found
        found |= new
        waiting += new
    return found
