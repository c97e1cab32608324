"""What a hypothesis rests on."""

from collections.abc import Sequence
from typing import NamedTuple

from dump_analysis.artefacts.common import Worded
from dump_analysis.artefacts.conclusion import HypothesisState
from dump_analysis.wording import word


class Ground(NamedTuple):
    """``would_decide``: of an open hypothesis; ``modules``: those that the ground names, for the findings about them."""

    state: HypothesisState
    because: Worded
    would_decide: tuple[Worded, ...] = ()
    modules: frozenset[str] = frozenset()


def one_of_each_kind(told: Sequence[Worded]) -> tuple[Worded, ...]:
    """The first sentence of each kind, and how many more there are."""
    each = {one.text: one for one in told}.values()
    kinds: dict[str, list[Worded]] = {}
    for one in each:
        kinds.setdefault(one.kind, []).append(one)
    return tuple(found[0] if len(found) == 1 else word("decide_and_more", first=found[0], n=len(found) - 1) for found in kinds.values())
