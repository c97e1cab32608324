"""Several forwards of one model in a unit (reference policy and actor, micro batches, decode steps): the one that the other side ran."""

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from typing import NamedTuple

from msprobe_files import names

from dump_analysis.artefacts.common import Worded
from dump_analysis.mapping.contents import weights
from dump_analysis.mapping.recorded.nodes import SideRecords
from dump_analysis.mapping.recorded.times import Times
from dump_analysis.mapping.tokens.row_ids import reader_of
from dump_analysis.mapping.tokens.token_fits import Fit, best_fit
from dump_analysis.mapping.tokens.token_join import JoinedTokens, OpenIds, apart, joined_tokens
from dump_analysis.mapping.tokens.token_vectors import Integers, Vector
from dump_analysis.wording import word

_ANEW = 0.25  # of the modules are called again in each forward; a module that is called once a layer stands alone

_Calls = tuple[list["_Forward"], list["_Forward"]]


class OneForward(NamedTuple):
    """What each side recorded in the forward that is compared, and its tokens."""

    train: SideRecords
    infer: SideRecords
    tokens: JoinedTokens


class _Forward(NamedTuple):
    """One forward of a side; ``entry`` begins it."""

    entry: str
    records: SideRecords
    integers: Integers


class _Option(NamedTuple):
    """A forward of each side whose ids fit; ``ends``: train, infer."""

    ends: tuple[_Forward, _Forward]
    fit: Fit


def one_forward(train: SideRecords, infer: SideRecords) -> OneForward:
    """Cut each side down to one forward: the pair whose token ids agree most, of several the one whose weights are equal.

    Where a side records no ids, rows of the first activations stand for them.  Raises NotJoined where nothing tells which token is
    which, or where fewer than half of them agree.
    """
    tokens_of = reader_of(train, infer)
    found = tokens_of.read(train), tokens_of.read(infer)
    fit = best_fit(*found)
    if fit is None:
        raise apart(found)
    calls = _forwards(train, fit.train, tokens_of.read), _forwards(infer, fit.infer, tokens_of.read)
    options = list(_best_by_ids(calls)) if len(calls[0]) + len(calls[1]) > 2 else []
    if not options:
        tokens = joined_tokens(fit, found)
        return OneForward(train, infer, tokens._replace(join=tokens.join._replace(unnamed=tokens_of.unnamed)))
    shares = _weight_shares(options) if len(options) > 1 else [None]
    at = max(range(len(options)), key=lambda n: shares[n] or 0.0)
    rivals = {n for n in range(len(options)) if n != at and _shared(options[n], options[at])}
    equal = {n for n in rivals if shares[n] is None or shares[at] is None or shares[n] == shares[at]}
    left, right = options[at].ends
    tokens = joined_tokens(options[at].fit, (left.integers, right.integers))
    aside = _count(train) - _count(left.records), _count(infer) - _count(right.records)
    remarks = _remarks(calls, options, [at, *sorted(rivals)], [at, *sorted(equal)], aside)
    alike = _alike(remarks, [options[n] for n in (at, *sorted(equal))])
    join = tokens.join._replace(remarks=(*tokens.join.remarks, *remarks), alike=alike, unnamed=tokens_of.unnamed)
    return OneForward(left.records, right.records, tokens._replace(join=join))


# --- cutting a side ---


def _forwards(records: SideRecords, ids: Vector, tokens_of: Callable[[SideRecords], Integers]) -> list[_Forward]:
    """The forwards of a side, earliest first, cut where the module that took the ids is called again."""
    entry = ids.recorded.spot.entry
    groups = _by_module(records.times)
    calls = next((groups[key] for above in _line(records, entry) if (key := _module(above)) is not None), [])
    anew = sum(len(entries) >= len(calls) for entries in groups.values())
    if len(calls) < 2 or anew < _ANEW * len(groups):
        return [_Forward(entry, records, tokens_of(records))]
    lines = [_line(records, call) for call in calls]
    shared = {above for at, line in enumerate(lines) for above in line if any(above in other for other in lines[:at])}
    tops = [[above for above in line if above not in shared][-1] for line in lines]
    part = _part_of(records.times, groups, shared, tops)
    cuts = [_only(records, {one for one, nth in part.items() if nth == at}) for at in range(len(calls))]
    return [_Forward(call, cut, tokens_of(cut)) for call, cut in zip(calls, cuts, strict=True)]


def _by_module(times: Times) -> dict[tuple[str, ...], list[str]]:
    """The calls of every module, earliest first."""
    groups: dict[tuple[str, ...], list[str]] = {}
    for entry in sorted(times.start, key=times.start.__getitem__):
        key = _module(entry)
        if key is not None:
            groups.setdefault(key, []).append(entry)
    return groups


def _module(entry: str) -> tuple[str, ...] | None:
    """What all calls of one module have in common; None for other entries: one API is called for many purposes."""
    parsed = names.parse_entry(entry)
    return (*parsed.path, parsed.class_name) if parsed.kind == "module" else None


def _line(records: SideRecords, entry: str) -> list[str]:
    """An entry and the recorded ones above it."""
    trace = records.unit.trace or {}
    line, climbed = [entry], {entry}
    above = trace.get(entry)
    while above is not None and above not in climbed:
        climbed.add(above)
        line += [above] if above in records.times.start else []
        above = trace.get(above)
    return line


def _part_of(times: Times, groups: dict[tuple[str, ...], list[str]], shared: AbstractSet[str], tops: Sequence[str]) -> dict[str, int]:
    """Entry -> number of its forward; what spans several forwards is in none.

    A module that is called as often as there are forwards is called once in each; other entries go by time.
    """
    starts = [times.start[top] for top in tops]
    part = {entry: max(0, bisect_right(starts, start) - 1) for entry, start in times.start.items() if entry not in shared}
    for entries in groups.values():
        if len(entries) == len(tops):
            part.update({entry: at for at, entry in enumerate(entries) if entry not in shared})
    return part


def _only(records: SideRecords, kept: AbstractSet[str]) -> SideRecords:
    """What a side recorded in some of its entries."""
    start, end = ({entry: time for entry, time in moments.items() if entry in kept} for moments in records.times[:2])
    return records._replace(
        times=records.times._replace(start=start, end=end, leaves=records.times.leaves & kept),
        activations=[one for one in records.activations if one.spot.entry in kept],
        parameters=[one for one in records.parameters if one.entry in kept],
    )


# --- choosing ---


def _best_by_ids(calls: _Calls) -> Iterator[_Option]:
    """The pairs of forwards in which most ids agree, earliest first."""
    found = [((left, right), best_fit(left.integers, right.integers)) for left in calls[0] for right in calls[1]]
    fits = [_Option(ends, fit) for ends, fit in found if fit is not None]
    best = max((option.fit.rank for option in fits), default=None)
    return (option for option in fits if option.fit.rank == best)


def _weight_shares(options: Sequence[_Option]) -> list[float | None]:
    """For each pair the mean share of equal weights over the engine's entries; None where a side recorded none."""
    train, infer = ({option.ends[at].entry: option.ends[at].records for option in options} for at in (0, 1))
    keys = [{entry: weights.keyed(one.parameters) for entry, one in found.items()} for found in (train, infer)]
    shares: list[float | None] = []
    for (left, right), _ in options:
        best: dict[str, float] = {}
        own, other = keys[0][left.entry], keys[1][right.entry]
        for (_, theirs), (share, _) in weights.join_modules(own, other).items():
            best[theirs] = max(share, best.get(theirs, 0.0))
        shares.append(sum(best.values()) / len(other) if own and other else None)
    return shares


def _shared(one: _Option, other: _Option) -> bool:
    """Whether two pairs want the same forward of a side: only then not both can be right."""
    return any(mine is theirs for mine, theirs in zip(one.ends, other.ends, strict=True))


# --- words ---


def _count(records: SideRecords) -> int:
    return len(records.activations) + len(records.parameters)


def _remarks(
    calls: _Calls, options: Sequence[_Option], by_ids: Sequence[int], by_weights: Sequence[int], aside: tuple[int, int]
) -> tuple[Worded, ...]:
    """Which forward of a side is compared and why, and how many tensors of others are left ``aside``.

    ``by_ids``, ``by_weights``: places of the options that each leaves, the chosen one first.
    """
    made = []
    for at, label in ((0, "train"), (1, "infer")):
        of_ids, of_weights = (list(dict.fromkeys(options[n].ends[at].entry for n in left)) for left in (by_ids, by_weights))
        values = {"side": label, "n": len(calls[at]), "entry": of_ids[0], "aside": aside[at]}
        if len(of_weights) > 1:
            made.append(word("forwards_alike", side=label, entries=of_weights, aside=aside[at]))
        elif len(of_ids) > 1:
            made.append(word("forward_by_weights", **values))
        elif len(calls[at]) > 1:
            made.append(word("forward_by_ids", **values))
    return tuple(made)


def _alike(remarks: Sequence[Worded], equal: Sequence[_Option]) -> OpenIds | None:
    """What names the ids of all forwards that the data cannot tell apart; None where one stands alone."""
    reason = next((remark for remark in remarks if remark.kind == "forwards_alike"), None)
    if reason is None:
        return None
    vectors = [option.fit.train for option in equal], [option.fit.infer for option in equal]
    return OpenIds(reason, *(list(dict.fromkeys(vector.recorded.record.name for vector in side)) for side in vectors))
