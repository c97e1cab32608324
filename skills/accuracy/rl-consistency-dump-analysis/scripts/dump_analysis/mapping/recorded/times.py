"""When each entry of a unit started and ended, rebuilt from what msprobe writes about order."""

from typing import NamedTuple

from msprobe_files import names
from msprobe_files.units import Unit


class Times(NamedTuple):
    """Start and end of every forward entry on one count; ``leaves``: entries without a recorded child.

    ``traced``: construct.json tells starts and nesting.  Without it only the order of ends is known (dump.json): every
    entry then counts as a leaf that starts right before its end, which puts the inputs of a module with children late.
    """

    start: dict[str, float]
    end: dict[str, float]
    leaves: frozenset[str]
    traced: bool


def times_of(unit: Unit) -> Times:
    """Times from construct.json, whose keys stand in the order of starts and whose values are parents.

    ``start = 2 · place``, ``end = 2 · place of the last descendant + 1``.
    """
    trace = unit.trace or {}
    forward = [entry for entry in unit.entries if _is_forward(entry)]
    known = set(forward)
    order = [entry for entry in trace if entry in known]
    order += [entry for entry in forward if entry not in trace]
    place = {entry: at for at, entry in enumerate(order)}
    last, parents = dict(place), set()
    for entry in order:
        parent, climbed = trace.get(entry), {entry}
        while parent is not None and parent not in climbed:  # a parent that recorded nothing is climbed through
            if parent in place:
                last[parent] = max(last[parent], place[entry])
                parents.add(parent)
            climbed.add(parent)
            parent = trace.get(parent)
    return Times(
        {entry: 2.0 * at for entry, at in place.items()},
        {entry: 2.0 * last[entry] + 1.0 for entry in order},
        frozenset(known - parents),
        unit.trace is not None,
    )


def _is_forward(entry: str) -> bool:
    return not names.holds_gradients(entry) and names.parse_entry(entry).direction != "backward"
