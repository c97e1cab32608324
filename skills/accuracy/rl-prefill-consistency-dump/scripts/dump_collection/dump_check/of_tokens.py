"""Checks of the tokens: one prompt, whole, alone, without padding, at the same positions on both sides."""

from typing import Any, List, NamedTuple, Optional, Tuple

from dump_collection.dump_check.checks import Check, Finding, over
from dump_collection.dump_check.judged import Judged, Pair
from dump_collection.dump_check.matching import Match, Tokens
from dump_collection.dump_check.pieces import Cut
from dump_collection.dump_check.warm_up import all_warm_up
from dump_collection.wording import word

_ANY = 5  # places shown in evidence
_SUSPECT = 4  # equal ids at the end of both sides, from which they may be padding
_NAMES = (
    "tokens_equal", "positions_equal", "prompt_length", "no_padding", "prompt_only", "one_request_per_step",
    "no_chunked_prefill", "no_prefix_cache",
)  # fmt: skip


class Tail(NamedTuple):
    """What one side ran beyond the joined tokens. ``cached``: the other side has ``before`` from a cache.

    ``padding``: rows of its forwards that are padding; ``requests``: sequences in them.
    """

    before: Tuple[int, ...]
    after: Tuple[int, ...]
    cached: bool
    padding: int
    requests: int
    rows: int

    @property
    def more(self) -> int:
        """Tokens after the joined ones that are no padding."""
        return 0 if _repeats(self.after) else len(self.after)

    @property
    def extra_before(self) -> int:
        return 0 if self.cached or _repeats(self.before) else len(self.before)


def checks_of_tokens(pair: Pair, length: Optional[int]) -> List[Check]:
    """``length``: tokens of the prompt as the task card says, None where it does not."""
    unasked = unasked_because(pair)
    if unasked is not None or pair.match is None:
        reason = unasked if unasked is not None else word("nothing_without_ids")
        checks = [Check(name, None, reason, 4) for name in _NAMES]
        return checks if unasked is not None else [_no_ids(pair), *checks[1:]]
    found = pair.match
    tails = tails_of(pair, found)
    return [
        over("tokens_equal", 4, [_tokens_equal(pair, found, tails)]),
        over("positions_equal", 4, [_positions_equal(found)]),
        over("prompt_length", 0 if length is None and _rows(tails[0]) == _rows(tails[1]) else 4, _lengths(pair, tails, length)),
        over("no_padding", 4, [_no_padding(judged, tail, found) for judged, tail in zip(pair.both, tails)]),
        over("prompt_only", 4, [_prompt_only(judged, tail, found) for judged, tail in zip(pair.both, tails)]),
        over("one_request_per_step", 4, [_one_request(judged, tail) for judged, tail in zip(pair.both, tails)]),
        over("no_chunked_prefill", 4, [_no_chunks(judged, found) for judged in pair.both]),
        over("no_prefix_cache", 4, [_no_prefix(judged, tail, found) for judged, tail in zip(pair.both, reversed(tails))]),
    ]


def unasked_because(pair: Pair) -> Optional[Any]:
    """Why tokens are not looked at: an earlier check says what is wrong with a side; None where they are."""
    for judged in pair.both:
        if not judged.units or not any(record.file for unit in judged.units for record in unit.records()):
            return word("nothing_to_look_at", side=judged.label)
        if all_warm_up(judged.units):
            return word("warm_up_alone", side=judged.label)
    if pair.match is not None:
        for label in ("train", "infer"):
            if _repeats(pair.match.sequence(label).ids) and not _repeats(pair.match.other(label).ids):
                return word("warm_up_alone", side=label)
    return None


def tails_of(pair: Pair, found: Match) -> Tuple[Tail, Tail]:
    """What each side ran beyond the joined tokens: train, infer."""
    tails = [_tail(found, judged.label) for judged in pair.both]
    return tails[0], tails[1]


def _tail(found: Match, label: str) -> Tail:
    own, other, start = found.sequence(label), found.other(label), found.start(label)
    before, after = own.ids[:start], own.ids[start + found.fit.length :]
    begins = other.positions[0] if other.positions else 0
    cached = bool(before) and begins > 0 and (begins == len(before) or not _repeats(before))
    cuts: List[Cut] = []
    for part in own.parts:
        cut = found.cut_of(part.forward)
        cuts += [] if any(cut is one for one in cuts) else [cut]
    pieces = [piece for cut in cuts for piece in cut.pieces]
    requests = [piece for piece in pieces if not piece.constant or any(piece is part for part in own.parts)]
    padding = sum(cut.padding for cut in cuts) + sum(len(piece.ids) for piece in pieces if not any(piece is one for one in requests))
    padding += sum(len(ids) for ids in (() if cached else before, after) if _repeats(ids))
    padding = max(padding, sum(cut.forward.masked for cut in cuts))
    others = sum(len(piece.ids) for piece in requests if not any(piece is part for part in own.parts))
    rows = sum(len(cut.forward.ids.values) for cut in cuts) - others
    parted = len({id(cut.forward) for cut in cuts})
    return Tail(before, after, cached, padding, len(requests) - (len(own.parts) - 1 if parted > 1 else 0), rows)


def _repeats(ids: Tuple[int, ...]) -> bool:
    return len(ids) > 1 and len(set(ids)) == 1


def _rows(tail: Tail) -> int:
    """Rows of the request, those apart that the other side has from a cache."""
    return tail.rows - (len(tail.before) if tail.cached else 0)


def _no_ids(pair: Pair) -> Check:
    without = [judged.label for judged in pair.both if not judged.forwards]
    return Check("tokens_equal", False, word("no_ids", sides=without), 6)


# --- ids, positions, length ---


def _tokens_equal(pair: Pair, found: Match, tails: Tuple[Tail, Tail]) -> Finding:
    fit = found.fit
    if fit.unequal:
        return False, word("tokens_differ", n=len(fit.unequal), of=fit.length, at=list(fit.unequal[:_ANY]))
    for judged, tail in zip(pair.both, tails):
        if tail.extra_before:
            return False, word("tokens_before", side=judged.label, n=tail.extra_before, of=fit.length)
    return True, word("tokens_alike", n=fit.length, of=fit.length)


def _positions_equal(found: Match) -> Finding:
    without = [label for label in ("train", "infer") if found.sequence(label).positions is None]
    if without:
        return None, word("no_positions", sides=without)
    train, infer = (_joined(found.sequence(label), found.start(label), found.fit.length) for label in ("train", "infer"))
    unequal = [n for n, (a, b) in enumerate(zip(train, infer)) if a != b]
    if unequal:
        return False, word("positions_differ", n=len(unequal), of=len(train), train=train[0], infer=infer[0])
    return True, word("positions", first=train[0], last=train[-1])


def _joined(tokens: Tokens, start: int, length: int) -> Tuple[int, ...]:
    return (tokens.positions or ())[start : start + length]


def _lengths(pair: Pair, tails: Tuple[Tail, Tail], length: Optional[int]) -> List[Finding]:
    rows = [_rows(tail) for tail in tails]
    if tails[0].cached or tails[1].cached:
        return [(None, word("length_cached"))]
    if length is not None:
        wrong = [(judged.label, count) for judged, count in zip(pair.both, rows) if count != length]
        if wrong:
            return [(False, word("length_wrong", side=label, n=count, wanted=length)) for label, count in wrong]
        return [(True, word("length_right", n=length))]
    if rows[0] != rows[1]:
        return [(False, word("lengths_differ", train=rows[0], infer=rows[1]))]
    return [(None, word("prompt_length", n=rows[0]))]


def _no_padding(judged: Judged, tail: Tail, found: Match) -> Finding:
    if tail.padding:
        return False, word("padding", side=judged.label, n=tail.padding, of=tail.rows)
    ids = found.sequence(judged.label).ids
    for end in (ids[-_SUSPECT:], ids[:_SUSPECT]):
        if len(ids) > _SUSPECT and _repeats(end):
            return None, word("perhaps_padding", side=judged.label, n=_SUSPECT)
    return True, word("no_padding", side=judged.label, n=tail.rows)


def _prompt_only(judged: Judged, tail: Tail, found: Match) -> Finding:
    if found.fit.unequal:
        return None, word("other_tokens")
    if tail.more:
        return False, word("goes_on", side=judged.label, n=tail.more, of=tail.rows)
    return True, word("ends_together", side=judged.label)


# --- what else ran ---


def _one_request(judged: Judged, tail: Tail) -> Finding:
    if tail.requests > 1:
        return False, word("several_requests", side=judged.label, n=tail.requests)
    return True, word("one_request", side=judged.label)


def _no_chunks(judged: Judged, found: Match) -> Finding:
    """Parts in several forwards; parts of one step on several ranks are context parallel."""
    parts = found.sequence(judged.label).parts
    calls = {(part.forward.unit.place.step, part.forward.ids.record.entry) for part in parts}
    if len(calls) > 1:
        return False, word("chunks", side=judged.label, rows=[len(part.ids) for part in parts])
    return True, word("one_chunk", side=judged.label)


def _no_prefix(judged: Judged, other: Tail, found: Match) -> Finding:
    """A side whose positions begin above 0, where the other side ran the tokens before, took these from a cache."""
    own = found.sequence(judged.label)
    if other.cached:
        return False, word("cached", side=judged.label, n=len(other.before), first=(own.positions or (0,))[0])
    if own.positions is None:
        return None, word("no_positions", sides=[judged.label])
    return True, word("not_cached", side=judged.label)
