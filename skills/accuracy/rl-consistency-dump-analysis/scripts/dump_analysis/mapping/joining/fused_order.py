"""Columns of joined fused outputs whose parts are exchanged in all layers (k and v): put in the order of roles.

Correlation finds each column wherever it lies, so it maps exchanged parts away along with the fault.
"""

from collections import defaultdict
from itertools import combinations

import numpy as np

from dump_analysis.floats import Array
from dump_analysis.mapping.joining.acceptance import CERTAIN
from dump_analysis.mapping.joining.evidence import Evidence
from dump_analysis.mapping.joining.joined import Joined
from dump_analysis.mapping.joining.roles import Roles
from dump_analysis.mapping.joining.transfer import slices_of
from dump_analysis.mapping.recorded.nodes import SideNodes

Swap = tuple[Array, Array]  # columns of infer that change places


def in_order_of_roles(evidence: Evidence, rows: list[Joined]) -> list[Joined]:
    """The rows; in more than half of the layers of one pair of slots parts must stand crosswise, and something after them be unlike.

    A layout that keeps v before k and is followed by equal values only is no exchange.
    """
    roles = Roles(evidence.train), Roles(evidence.infer)
    groups: dict[object, list[Joined]] = defaultdict(list)
    for row in rows:
        if row.columns is not None and row.train.slot is not None and not np.array_equal(row.columns, np.arange(row.train.width)):
            groups[row.train.slot, row.infer.slot].append(row)
    changed: dict[int, Joined] = {}
    for group in groups.values():
        swaps = [swap for row in group if _differs_later(evidence, rows, row) and (swap := _crosswise(evidence, roles, row)) is not None]
        if 2 * len(swaps) > len(group):
            changed.update(
                {id(row.train): row._replace(columns=_exchanged(row.columns, swaps[0])) for row in group if row.columns is not None}
            )
    return [changed.get(id(row.train), row) for row in rows]


def _crosswise(evidence: Evidence, roles: tuple[Roles, Roles], row: Joined) -> Swap | None:
    """The columns of two recorded parts of which the first by its role is joined with the later columns."""
    assert row.columns is not None
    ends: tuple[tuple[SideNodes, Roles, bool], ...] = ((evidence.infer, roles[1], True), (evidence.train, roles[0], False))
    for side, own, is_infer in ends:
        parts = slices_of(side, row.infer if is_infer else row.train, set())
        to_other = row.columns if is_infer else np.argsort(row.columns)
        for (one, places), (other, others) in combinations(parts, 2):
            if one.width != other.width or not own.siblings(one, other):
                continue
            first, second = (places, others) if own.first(one, other) else (others, places)
            if np.median(to_other[first]) > np.median(to_other[second]):
                return (first, second) if is_infer else (to_other[first], to_other[second])
    return None


def _exchanged(columns: Array, swap: Swap) -> Array | None:
    made = columns.copy()
    made[swap[0]], made[swap[1]] = columns[swap[1]], columns[swap[0]]
    return None if np.array_equal(made, np.arange(len(made))) else made


def _differs_later(evidence: Evidence, rows: list[Joined], row: Joined) -> bool:
    later = [other for other in rows if other.train.layer == row.train.layer and other.train.time > row.train.time]
    return any(evidence.likeness(other.train, other.infer) < CERTAIN for other in later)
