"""In which order the shards of a stage lie in the whole: that of the ranks, unless the matrices of a checkpoint or of the other side
show another one.
"""

from collections import Counter
from collections.abc import Sequence

import numpy as np

from dump_analysis.mapping.contents.weights import EntryKeys, keyed
from dump_analysis.mapping.ranks.members import Member
from dump_analysis.mapping.ranks.reference import Reference
from dump_analysis.mapping.ranks.stages import Rank
from dump_analysis.tensors import Tensor

_Held = dict[str, EntryKeys]
_Spot = tuple[str, int, int]  # entry, number of the member, row


def in_order(stage: list[Rank], others: Sequence[Member], reference: Reference | None) -> list[Rank]:
    """The ranks in the order in which the first rows of most of their matrices stand in one matrix of the checkpoint.

    Without one, or where it holds none of their rows: in one matrix of the other side.
    """
    if len(stage) < 2:
        return stage
    if reference is not None and (told := votes_of(stage, reference)):
        return _voted(stage, told)
    own = [keyed(rank.member.records.parameters) for rank in stage]
    index = _rows_of(others)
    votes: Counter[tuple[int, ...]] = Counter()
    for entry in own[0]:
        spots = [_first_spot(held, entry, index) for held in own]
        known = [spot for spot in spots if spot is not None]
        if len(known) == len(stage) and len({spot[0] for spot in known}) == 1 and len(set(known)) == len(stage):
            votes[tuple(sorted(range(len(stage)), key=lambda at: known[at][1:]))] += 1
    return _voted(stage, votes) if votes else stage


def _voted(stage: list[Rank], votes: Counter[tuple[int, ...]]) -> list[Rank]:
    order, count = votes.most_common(1)[0]
    return [stage[at] for at in order] if 2 * count > votes.total() else stage


def votes_of(stage: Sequence[Rank], reference: Reference) -> Counter[tuple[int, ...]]:
    """How many matrices of the ranks lie in the checkpoint in each order."""
    held: dict[tuple[str, str], list[Tensor]] = {}
    for rank in stage:
        for one in rank.member.records.parameters:
            if len(one.tensor.shape) > 1:
                held.setdefault((one.entry, one.path), []).append(one.tensor)
    found = (reference.order(shards) for shards in held.values() if len(shards) == len(stage))
    return Counter(order for order in found if order is not None)


def _rows_of(members: Sequence[Member]) -> dict[int, _Spot]:
    """Key of a row -> where it stands first."""
    found: dict[int, _Spot] = {}
    for number, member in enumerate(members):
        for entry, keys in keyed(member.records.parameters).items():
            for key, row in zip(keys.rows.keys.tolist(), keys.rows.numbers.tolist(), strict=True):
                found.setdefault(key, (entry, number, row))
    return found


def _first_spot(held: _Held, entry: str, index: dict[int, _Spot]) -> _Spot | None:
    """Where the first keyed row of an entry's matrices stands on the other side."""
    keys = held[entry].rows if entry in held else None
    if keys is None or not len(keys.keys):
        return None
    return index.get(int(keys.keys[int(np.argmin(keys.numbers))]))
