"""Complete cuts: arguments whose override carries everything that a model hands on from one boundary to what follows.

What crosses a boundary of the residual stream is the branch and the residual. A call cuts both where it takes the whole stream, or the two
whose sum the stream is, and what follows is made from what it returns: a layer, a norm that adds first and hands the sum on, the last norm,
the head. An argument inside a branch (of o_proj, say) cuts together with the stream that goes past it, and never alone.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from msprobe_files.operands import Operand, OperandError

from dump_analysis.boundaries import layer_of, place_of
from dump_analysis.mapping.recorded.times import Times, times_of
from dump_analysis.rounds import fitting
from dump_analysis.rounds.feeds import Feed, Feeds
from dump_analysis.rounds.fitting import CannotFit
from dump_analysis.rounds.values import Argument, Mapped, digest_of, of_side
from dump_analysis.sides import Place
from dump_analysis.tensors import Files, SumStream, cut_stream

_STREAM = ("embedding.out", "layers.N.resid_attn", "layers.N.resid_mlp", "final_norm.out")
_RESIDUAL = ("resid_attn", "resid_mlp")
_BRANCH_ENDS = {"layers.N.attn_core.out": "resid_mlp", "layers.N.act_mul.out": "resid_attn"}  # and the stream that goes past


class Given(NamedTuple):
    """One argument of a cut and what it gets."""

    argument: Argument
    operand: Operand


class Cut(NamedTuple):
    """A complete cut at a boundary: what the target's calls get."""

    boundary: str
    order: int
    given: tuple[Given, ...]


class _Call(NamedTuple):
    """A call of the target on one rank: its float arguments, by position, and what they get where the mapping feeds them."""

    entry: str
    start: float
    end: float
    leaf: bool
    arguments: tuple[Argument, ...]
    feeds: Mapping[str, Feed]


def cuts_of(feeds: Feeds) -> list[Cut]:
    """Every complete cut of the target, in the order of the boundaries; of several at one boundary the call that starts first."""
    files = Files()
    try:
        calls = list(_calls(feeds))
        streams = [one for one in feeds.mapped.values() if place_of(one.boundary) in _STREAM and one.digest is not None]
        found = {one.boundary: cut for one in streams if (cut := _at(one, feeds, calls, files)) is not None}
    finally:
        files.close()
    for boundary in feeds.mapped:
        made = _in_branch(boundary, found, feeds)
        if made is not None:
            found[boundary] = made
    return sorted(found.values(), key=lambda cut: cut.order)


def _calls(feeds: Feeds) -> Iterator[_Call]:
    by_place: dict[tuple[str, str], list[Argument]] = {}
    fed = {(feed.argument.place.unit.place.folder, *feed.seat): feed for feed in feeds.feeds}
    units = {unit.place.folder: times_of(unit) for unit in feeds.target.units}
    for argument in [*(feed.argument for feed in feeds.feeds), *feeds.left]:
        by_place.setdefault((argument.place.unit.place.folder, argument.entry), []).append(argument)
    for (folder, entry), taken in by_place.items():
        times: Times = units[folder]
        own = {argument.label: fed[folder, entry, argument.label] for argument in taken if (folder, entry, argument.label) in fed}
        ordered = tuple(sorted(taken, key=lambda argument: argument.label))
        yield _Call(entry, times.start[entry], times.end[entry], entry in times.leaves, ordered, own)


def _at(one: Mapped, feeds: Feeds, calls: Sequence[_Call], files: Files) -> Cut | None:
    """The cut at a boundary of the stream; None where no call takes all of it."""
    found = [(call, given) for call in calls if (given := _given(one, call, feeds, files))]
    if not found:
        return None
    first = min(call.start for call, _ in found)
    entry = next(call.entry for call, _ in found if call.start == first)
    return Cut(one.boundary, one.order, tuple(item for call, given in found if call.entry == entry for item in given))


def _given(one: Mapped, call: _Call, feeds: Feeds, files: Files) -> list[Given]:
    """What a call gets in a cut at a boundary; nothing where it does not carry the whole stream."""
    whole = [feed for feed in call.feeds.values() if feed.boundaries == (one.boundary,) and one.boundary not in feed.alone]
    if whole and (_is_end(one, call, feeds) or _goes_on_in(one, call, feeds)):
        return [Given(feed.argument, feed.operand) for feed in whole[:1]]
    alike = one.digest[:2] if one.digest is not None and one.boundary.endswith(_RESIDUAL) else None
    pair = [argument for argument in call.arguments if argument.digest[:2] == alike]
    if len(pair) != 2 or not _adds(one, call, pair, feeds, files) or not (call.leaf or _goes_on_in(one, call, feeds)):
        return []
    operand, found = of_side(one.pair, feeds.source_side)
    try:
        stream = fitting.shaped(operand, [tensor.shape for tensor in found.tensors], pair[0].tensor.shape)
    except (CannotFit, OperandError):
        return []
    if {tensor.dtype for tensor in found.tensors} != {pair[0].tensor.dtype}:
        return []
    return [Given(pair[0], stream), Given(pair[1], fitting.zeros_like(stream))]


def _adds(one: Mapped, call: _Call, pair: Sequence[Argument], feeds: Feeds, files: Files) -> bool:
    """Whether the stream is the sum of two arguments: it is bit for bit, or the call, a module without modules inside, returns it."""
    parts = [cut_stream(files, argument.tensor, ()) for argument in pair]
    if parts[0].shape == parts[1].shape and digest_of(SumStream(parts, parts[0].shape)) == one.digest:
        return call.leaf is False or _returns(one, call, feeds)
    return call.leaf and _returns(one, call, feeds)


def _returns(one: Mapped, call: _Call, feeds: Feeds) -> bool:
    """Whether the boundary is an output of the call, by its row or by its bytes."""
    return any(place.record.entry == call.entry and place.record.category == "output" for place in _places(one, feeds))


def _places(one: Mapped, feeds: Feeds) -> tuple[Place, ...]:
    return of_side(one.pair, feeds.target_side)[1].places


def _is_end(one: Mapped, call: _Call, feeds: Feeds) -> bool:
    """Whether the call makes what comes after the last layer: the last norm from the stream, or the head from the norm."""
    after = {"final_norm.out": ("logits", "logprobs")}.get(one.boundary, ("final_norm.out",))
    if one.boundary != "final_norm.out" and any(other.order > one.order for other in feeds.mapped.values() if layer_of(other.boundary)):
        return False
    named = [feeds.mapped[name] for name in after if name in feeds.mapped]
    return any(place.record.entry == call.entry for other in named for place in _places(other, feeds))


def _goes_on_in(one: Mapped, call: _Call, feeds: Feeds) -> bool:
    """Whether the stream goes on inside a call: it has modules inside, and the next layer's end is made there."""
    layer = -1 if one.boundary == "embedding.out" else layer_of(one.boundary)
    following = feeds.mapped.get(f"layers.{layer + 1}.resid_attn") if layer is not None else None
    if call.leaf or following is None or place_of(one.boundary) == "layers.N.resid_attn":
        return False
    times = [(times_of(place.unit), place.record.entry) for place in _places(following, feeds)]
    return all(call.start <= known.start[entry] and known.end[entry] <= call.end for known, entry in times)


def _in_branch(boundary: str, found: Mapping[str, Cut], feeds: Feeds) -> Cut | None:
    """The end of a branch together with the stream that goes past it, which is cut where it enters."""
    past = _BRANCH_ENDS.get(place_of(boundary))
    layer = layer_of(boundary)
    if past is None or layer is None:
        return None
    stream = f"layers.{layer}.{past}" if past == "resid_attn" else f"layers.{layer - 1}.{past}" if layer else "embedding.out"
    branch = [feed for feed in feeds.feeds if feed.boundaries == (boundary,)]
    if stream not in found or not branch:
        return None
    given = [*found[stream].given, *(Given(feed.argument, feed.operand) for feed in branch)]
    return Cut(boundary, feeds.mapped[boundary].order, tuple(given))
