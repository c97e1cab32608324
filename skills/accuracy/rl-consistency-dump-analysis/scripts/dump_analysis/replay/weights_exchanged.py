"""Weights whose rows stand in other weights of the other side: k for v, gate for up, one group's queries among its keys."""

from collections.abc import Mapping, Sequence

import numpy as np
from msprobe_files.weight_kinds import Difference
from msprobe_files.weight_order import grouping_of, permutation

from dump_analysis.artefacts.common import Worded
from dump_analysis.boundaries import layer_of
from dump_analysis.floats import Array
from dump_analysis.wording import word

_FUSED = ("q", "k", "v")
_UNTOLD = ("partial", "small_update", "different")  # kinds that exchanged rows may look like


def exchanged(differing: Mapping[str, Difference]) -> dict[str, Worded]:
    """Name of a weight -> what infer's rows are, where all rows that differ are rows of train's that differ, one for one."""
    found: dict[str, Worded] = {}
    for names in _groups(differing):
        group = _closed(names, differing)
        keys = [[_touched(differing[name], side) for name in group] for side in (0, 1)]
        places = permutation(np.concatenate(keys[0]), np.concatenate(keys[1])) if len(group) > 1 else None
        if places is not None:
            found |= _named(group, [len(one) for one in keys[0]], places, {name: differing[name] for name in group})
    return found


def _groups(differing: Mapping[str, Difference]) -> list[list[str]]:
    """Weights of one kind, layer and row length that differ."""
    groups: dict[tuple[int | None, str, int], list[str]] = {}
    for name, how in differing.items():
        if how.kind in _UNTOLD:
            groups.setdefault((layer_of(name), name.rpartition(".")[2], how.of // len(how.keys[0])), []).append(name)
    return list(groups.values())


def _closed(names: Sequence[str], differing: Mapping[str, Difference]) -> list[str]:
    """The weights whose rows that differ, of either side, are all among those of the other side of these weights."""
    left = list(names)
    while left:
        union = [np.concatenate([_touched(differing[name], side) for name in left]) for side in (0, 1)]
        kept = [name for name in left if all(np.isin(_touched(differing[name], side), union[1 - side]).all() for side in (0, 1))]
        if kept == left:
            break
        left = kept
    return left


def _touched(how: Difference, side: int) -> Array:
    return np.concatenate([how.keys[side][start:stop] for start, stop in how.rows])


def _named(group: Sequence[str], sizes: Sequence[int], places: Array, differing: Mapping[str, Difference]) -> dict[str, Worded]:
    grouping = _by_group(differing)
    if grouping is not None:
        plain, fused = ("train", "infer") if grouping[0] else ("infer", "train")
        return {name: word("weight_grouped", weight=name, plain=plain, fused=fused, groups=grouping[1]) for name in group}
    owner = np.repeat(np.arange(len(group)), sizes)
    found = {}
    for at, name in enumerate(group):
        others = np.unique(owner[places[owner == at]])
        found[name] = word("weight_exchanged", weight=name, others=[group[other] for other in others if other != at] or [name])
    return found


def _by_group(differing: Mapping[str, Difference]) -> tuple[bool, int] | None:
    """Whether the rows of q, k and v side by side are in the order by group, as `grouping_of` says it; None for any other weights."""
    parts = {name.split(".")[-2]: how for name, how in differing.items()}
    if sorted(parts) != sorted(_FUSED) or len(differing) != len(_FUSED):
        return None
    keys = [np.concatenate([parts[part].keys[side] for part in _FUSED]) for side in (0, 1)]
    places = permutation(keys[0], keys[1])
    return None if places is None else grouping_of(places, [len(parts[part].keys[0]) for part in _FUSED])
