"""Results of mapping rows of which a side saved no tensors: decided by digests, else shown by statistics, which decide nothing.

Rows that cut one recorded tensor into parts are taken together: statistics of the parts side by side are those of the whole.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

from msprobe_files import release

from . import stated_words
from .artefacts.boundary_results import BoundaryResult, SidesDtype, SidesOperand, SidesShape, Status, Unequal
from .artefacts.common import Worded
from .artefacts.semantic_mapping import Row
from .sides import Place, Side
from .stated_ends import End, Run, end_of
from .statistics import Agreement, Facts, agreement, facts_of, is_order_blind, may_be_reordered, together
from .tensors import Files
from .wording import word

_AS_THEY_ARE = ("26.0", "26.1", ">=26.1", ">=26.2")  # releases that take digests of bfloat16 as it is: some up to 8.3 do not
_NOTHING = Facts(0, None, None, None, None, None)


class _Stated(NamedTuple):
    row: Row
    train: End
    infer: End


def results(rows: Sequence[Row], train: Side, infer: Side) -> list[BoundaryResult]:
    """The results of rows whose tensors are recorded, at least one of them without a file."""
    files = Files()
    try:
        ends = [_Stated(row, end_of(train, row.train, files), end_of(infer, row.infer, files)) for row in rows]
    finally:
        files.close()
    groups = _groups(ends)
    return [_result(one, groups.get(one.row.boundary) if None in (one.train.facts, one.infer.facts) else None) for one in ends]


# --- parts taken together ---


def _groups(rows: Sequence[_Stated]) -> dict[str, "_Group"]:
    """Boundary -> the rows that cut the same tensor into parts which make up all of it."""
    found: dict[str, _Group] = {}
    for label in ("train", "infer"):
        by_whole: dict[tuple[str, int], list[_Stated]] = {}
        for one in rows:
            cut = getattr(one, label).cut
            if cut is not None:
                by_whole.setdefault((cut.name, cut.axis), []).append(one)
        for members in by_whole.values():
            group = _group(members)
            if group is not None:
                found.update({one.row.boundary: group for one in members if one.row.boundary not in found})
    return found


class _Group(NamedTuple):
    """Rows that are compared together. ``same``: both sides cut one tensor at the same places."""

    names: list[str]
    train: Facts
    infer: Facts
    same: bool


def _group(members: Sequence[_Stated]) -> _Group | None:
    sides: list[Facts] = []
    for label in ("train", "infer"):
        ends: list[End] = [getattr(one, label) for one in members]
        cuts = [end.cut for end in ends if end.cut is not None and end.facts is None]
        known = [end.facts for end in ends if end.facts is not None]
        if len(known) == len(members):
            sides.append(together(known))
        elif len(cuts) == len(members) and len({cut.name for cut in cuts}) == 1 and _covers([cut.run for cut in cuts], cuts[0].size):
            sides.append(cuts[0].whole)
        else:
            return None
    places = [(one.train.cut, one.infer.cut) for one in members]
    shapes = all(one.train.shape == one.infer.shape for one in members)
    same = shapes and all(
        left is not None and right is not None and (left.axis, left.run, left.size) == (right.axis, right.run, right.size)
        for left, right in places
    )
    return _Group([one.row.boundary for one in members], sides[0], sides[1], same)


def _covers(runs: Sequence[Run], size: int) -> bool:
    ordered = sorted(runs)
    ends = [0, *(stop for _, stop in ordered)]
    return [start for start, _ in ordered] == ends[:-1] and ends[-1] == size


# --- one row ---


def _result(one: _Stated, group: _Group | None) -> BoundaryResult:
    status, reason, shown = _judged(one, group)
    dtypes = [end.places[0].record.dtype if end.places else None for end in (one.train, one.infer)]
    shapes = one.train.shape, one.infer.shape
    shape: list[int] | SidesShape | None = None
    if shapes[0] is not None and shapes[1] is not None:
        shape = list(shapes[0]) if shapes[0] == shapes[1] else SidesShape(list(shapes[0]), list(shapes[1]))
    return BoundaryResult(
        one.row.boundary,
        one.row.order,
        status,
        shape=shape,
        dtype=SidesDtype(dtypes[0], dtypes[1]),
        ops_applied=SidesOperand(one.row.train, one.row.infer),
        unequal=Unequal(0, 0.0) if status == "EXACT" else None,
        max_abs_diff=0.0 if status == "EXACT" else None,
        statistics=shown,
        reason=reason,
    )


def _judged(one: _Stated, group: _Group | None) -> tuple[Status, Worded, dict[str, Any] | None]:
    for end in (one.train, one.infer):
        if end.gap is not None:
            return (*end.gap, None)
    train, infer = (group.train, group.infer) if group is not None else (one.train.facts, one.infer.facts)
    found = Agreement("cannot_tell", None, {}, {})
    if train is not None and infer is not None:
        found = agreement(train, infer, computed=not _is_weight(one))
    sums = [label for label in ("train", "infer") if getattr(one.row, label).combine == "sum"]
    if sums and found.agree == "yes":
        found = found._replace(agree="cannot_tell")
    shown = {
        "train": (train or _NOTHING).as_json(),
        "infer": (infer or _NOTHING).as_json(),
        "agree": found.agree,
        "resolution": found.resolution,
    }
    known = (train is not None and train.known) or (infer is not None and infer.known)
    by_digest = _by_digest(one, group)
    if by_digest is not None:
        return by_digest[0], _with_damage(one, by_digest[1]), shown if known else None
    names = group.names if group is not None else []
    reason = _without_statistics(one, group)
    if reason is None and train is not None and infer is not None:
        reason = stated_words.told(train, infer, found, sums)
    reason = reason or word("no_reason")
    reason = word("stats_together", names=names, what=reason) if names else reason
    return "evidence_missing", _with_damage(one, reason), shown if known else None


def _is_weight(one: _Stated) -> bool:
    return all(place.record.category == "parameters" for place in (*one.train.places, *one.infer.places))


def _with_damage(one: _Stated, reason: Worded) -> Worded:
    """The reason of a row, with that a saved file was not used."""
    damaged = one.train.damaged or one.infer.damaged
    return reason if damaged is None else word("stats_in_place_of_file", what=reason, damaged=damaged)


def _without_statistics(one: _Stated, group: _Group | None) -> Worded | None:
    """Why the statistics of a row are not known; None where both sides have some."""
    for label, end in (("train", one.train), ("infer", one.infer)):
        recorded = [facts_of(place.record) for place in end.places]
        if not any(facts.known for facts in recorded) and (end.facts is None or not end.facts.known):
            digests = any(facts.digest is not None for facts in recorded)
            return word("digest_no_rows") if digests else word("statistics_only_tensor", side=label, name=end.places[0].record.name)
        if end.facts is None and group is None:
            return word("stats_untold", why=word("stats_of_part", side=label))
    return None


def _by_digest(one: _Stated, group: _Group | None) -> tuple[Status, Worded] | None:
    """What the digests of a row decide; None where they are not of the same elements, or there are none."""
    if group is not None:
        return _by_digest_of_group(group)
    train, infer = one.train.facts, one.infer.facts
    if train is None or infer is None or train.digest is None or infer.digest is None or not (one.train.plain and one.infer.plain):
        return None
    sizes = [[size for size in end.shape or () if size != 1] for end in (one.train, one.infer)]
    if train.dtype != infer.dtype or sizes[0] != sizes[1]:
        return None
    if one.train.shape != one.infer.shape:
        return "SHAPE_DIFF", word("shapes_but_ones")
    blind = is_order_blind(train.digest)
    if blind != is_order_blind(infer.digest):
        return None
    if train.digest == infer.digest:
        return ("evidence_missing", word("digest_blind", digest=train.digest)) if blind else _equal(train.digest)
    if train.dtype == "bfloat16" and not all(_is_as_it_is(end.places[0], end) for end in (one.train, one.infer)):
        return "evidence_missing", word("digest_releases")
    if _is_weight(one) and may_be_reordered(train, infer):
        return "evidence_missing", word("digest_order", train=train.digest, infer=infer.digest)
    kind = "digest_differs_alike" if train.known and train.numbers == infer.numbers else "digest_differs"
    return "NOT_EXACT", word(kind, train=train.digest, infer=infer.digest)


def _by_digest_of_group(group: _Group) -> tuple[Status, Worded] | None:
    train, infer = group.train.digest, group.infer.digest
    if not group.same or group.train.dtype != group.infer.dtype or train is None or infer is None:
        return None
    if train == infer:
        return None if is_order_blind(train) else _equal(train)
    return "evidence_missing", word("digest_fused", names=group.names, train=train, infer=infer)


def _equal(digest: str) -> tuple[Status, Worded]:
    return "EXACT", word("digest_equal", digest=digest)


def _is_as_it_is(place: Place, end: End) -> bool:
    """Whether it is known that a digest of bfloat16 is of its own bytes, not of float32 ones: a measured one is."""
    measured = place.record.file is not None and end.damaged is None
    return measured or release.release_of(place.unit, release.UNKNOWN) in _AS_THEY_ARE
