"""Which of the values that are seen at an overridden argument alone stay open in which forced round.

A value between modules (an attention core, a product, a residual sum) may be recorded only as the argument of the module that takes it:
overriding that argument hides how it came out, leaving it open lets a difference in it through. So two rounds see all: of any two such
values that follow on each other one is overridden and the other is not.
"""

from collections.abc import Collection

from dump_analysis.artefacts.boundary_results import BoundaryResult
from dump_analysis.boundaries import layer_of
from dump_analysis.rounds.open_points import sources

ROUNDS = 2


def open_in(alone: Collection[str], compared: dict[str, BoundaryResult], turn: int) -> set[str]:
    """The boundaries, of those that are seen at an argument alone, whose argument stays as it is in forced round ``turn`` (0 or 1)."""
    level: dict[str, int] = {}
    for name in compared:  # in order, so that what a value is made from has its level
        if name in alone:
            level[name] = 1 + max((level.get(one, 0) for one in _before(name, compared)), default=0)
    return {name for name, at in level.items() if at % ROUNDS != turn}


def _before(boundary: str, compared: dict[str, BoundaryResult]) -> set[str]:
    """Everything in the same layer that a value follows from."""
    found: set[str] = set()
    waiting = [boundary]
    while waiting:
        for one in sources(waiting.pop(), compared) - found:
            if layer_of(one) == layer_of(boundary):
                found.add(one)
                waiting.append(one)
    return found
