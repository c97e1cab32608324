"""What an override reaches: where a boundary is given the other side's value of what it is made from, and what a forced round shows."""

from collections.abc import Collection, Iterable, Mapping
from collections.abc import Set as AbstractSet

from dump_analysis.artefacts.boundary_results import BoundaryResult
from dump_analysis.boundaries import INPUTS
from dump_analysis.rounds.feeds import Feeds
from dump_analysis.rounds.observed import Seat
from dump_analysis.rounds.open_points import sources
from dump_analysis.rounds.values import of_side
from dump_analysis.sides import resolve


def is_given(source: str, boundary: str, feeds: Feeds, overridden: Collection[Seat]) -> bool:
    """Whether a boundary gets the other side's value of a source: at the call that makes it, one around that, or one that hands on."""
    calls = _calls(_maker(boundary, feeds), feeds)
    return any(source in feed.boundaries for entry in calls for feed in feeds.of_entry(entry) if feed.seat in overridden)


def decided(feeds: Feeds, compared: Mapping[str, BoundaryResult], given: Collection[Seat], apart: AbstractSet[str]) -> set[str]:
    """The boundaries that a forced round sees made from equal inputs. ``given``: what it overrides; ``apart``: known to differ by itself.

    What is not known to differ by itself is taken to come out equal from equal inputs.
    """
    hidden = {name for feed in feeds.feeds if feed.seat in given for name in feed.alone}
    known = dict(compared)
    equal: set[str] = set()
    for name in compared:  # in order, so that what a value is made from is known
        if all(one in equal - apart or is_given(one, name, feeds, given) for one in sources(name, known)):
            equal.add(name)
    return {name for name in equal if name not in hidden and name not in INPUTS}


def _maker(boundary: str, feeds: Feeds) -> str:
    """The innermost call that makes a boundary's value on the target: one that returns it, else the one that the mapping names."""
    if boundary in feeds.outputs:
        place = resolve(feeds.target, feeds.outputs[boundary].sources[0])
        if place is not None:
            return place.record.entry
    pair = feeds.mapped[boundary].pair
    module = pair.row.module
    made = None if module is None else module.train if feeds.target_side == "train" else module.infer
    return made if made is not None else of_side(pair, feeds.target_side)[1].places[0].record.entry


def _calls(maker: str, feeds: Feeds) -> set[str]:
    """A call, those that made what it was handed and no boundary holds (a rotation's, say), and all the calls around them."""
    found = _closure([maker], feeds.handed_by)
    above = {entry: {parent} for unit in feeds.target.units for entry, parent in (unit.trace or {}).items() if parent is not None}
    return _closure(found, above)


def _closure(start: Iterable[str], following: Mapping[str, AbstractSet[str]]) -> set[str]:
    found = set(start)
    waiting = list(found)
    while waiting:
        new = following.get(waiting.pop(), frozenset()) - found
        found |= new
        waiting += new
    return found
