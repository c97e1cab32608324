"""A side that holds a part of each matrix only: a rank of a tensor parallel run whose other ranks were not handed in.

Its shards would be compared with whole tensors, and every weight would look changed.
"""

from typing import NamedTuple

import numpy as np

from dump_analysis.mapping.contents.weights import EntryKeys

_FEWEST = 3  # matrices that must show it
_FOUND = 0.1  # of a matrix's rows on the other side: less says nothing
_WHOLE = 0.95  # fifteen of sixteen ranks hold less; a stale matrix alone does not speak for most
_MOST = 0.5  # of the matrices: heads of k and v may lie on several ranks
_FEWER = 0.97  # of the other side's rows: a rank of a stale engine has as many as its trainer


class PartialSide(NamedTuple):
    """``side`` holds about ``share`` of the rows of the other side's matrices."""

    side: str
    share: float


def partial_side(train: dict[str, EntryKeys], infer: dict[str, EntryKeys]) -> PartialSide | None:
    """The side whose matrices are parts of the other's, by content; None where neither is, or weights were not recorded."""
    for side, own, other in (("train", train, infer), ("infer", infer, train)):
        share = _share(own, other)
        if share is not None and _share(other, own) is None:
            return PartialSide(side, share)
    return None


def _share(own: dict[str, EntryKeys], other: dict[str, EntryKeys]) -> float | None:
    """The middle share of the other side's rows that this side holds, where that is a part of most matrices."""
    counts = [sum(len(lines.rows.keys) for lines in side.values()) for side in (own, other)]
    if counts[0] >= _FEWER * counts[1]:
        return None
    keys = np.unique(np.concatenate([lines.rows.keys for lines in own.values()] or [np.empty(0, np.uint64)]))
    shares = [float(np.isin(lines.rows.keys, keys).mean()) for lines in other.values() if len(lines.rows.keys)]
    seen = [share for share in shares if share > _FOUND]
    part = [share for share in seen if share < _WHOLE]
    return float(np.median(part)) if len(seen) >= _FEWEST and len(part) >= _MOST * len(seen) else None
