"""Weights whose rows stand in other weights of the other side: k for v, gate for up."""

from typing import Any, Dict, List, Optional, Sequence, Tuple

from msprobe_files.weight_kinds import Difference
from msprobe_files.weight_order import permutation

from dump_collection.wording import word

from .found import Found

_UNTOLD = ("partial", "small_update", "different")  # kinds that exchanged rows may look like


def exchanged(found: Sequence[Found]) -> List[Found]:
    """The weights, as swapped where all rows of a layer's weights that differ are rows of these on the other side, one for one."""
    groups: Dict[Tuple[Optional[int], Optional[int], str, int], List[int]] = {}
    for at, one in enumerate(found):
        if one.how is not None and one.kind in _UNTOLD:
            groups.setdefault((one.pair.layer, one.pair.expert, one.name.rpartition(".")[2], one.size[1]), []).append(at)
    told = list(found)
    for group in groups.values():
        for at, others in _exchanged([(at, _how(found[at])) for at in group]).items():
            names = [found[other].name for other in others]
            told[at] = found[at]._replace(kind="swapped", note=word("weight_exchanged", others=names))
    return told


def _how(one: Found) -> Difference:
    assert one.how is not None
    return one.how


def _exchanged(group: Sequence[Tuple[int, Difference]]) -> Dict[int, List[int]]:
    """Which weights each one's rows are those of, where the rows that differ are the same on both sides but for their order."""
    import numpy as np

    left = _closed(group)
    if len(left) < 2:
        return {}
    keys = [[_touched(how, side) for _, how in left] for side in (0, 1)]
    places = permutation(np.concatenate(keys[0]), np.concatenate(keys[1]))
    if places is None:
        return {}
    owner = np.repeat(np.arange(len(left)), [len(one) for one in keys[0]])
    made = {}
    for at, (index, _) in enumerate(left):
        others = [left[other][0] for other in np.unique(owner[places[owner == at]]).tolist()]
        made[index] = [other for other in others if other != index] or [index]
    return made


def _closed(group: Sequence[Tuple[int, Difference]]) -> List[Tuple[int, Difference]]:
    """The weights whose rows that differ, of either side, are all among those of the other side of these weights."""
    import numpy as np

    left = list(group)
    while left:
        union = [np.concatenate([_touched(how, side) for _, how in left]) for side in (0, 1)]
        kept = [one for one in left if all(np.isin(_touched(one[1], side), union[1 - side]).all() for side in (0, 1))]
        if len(kept) == len(left):
            break
        left = kept
    return left


def _touched(how: Difference, side: int) -> Any:
    import numpy as np

    return np.concatenate([how.keys[side][start:stop] for start, stop in how.rows])
