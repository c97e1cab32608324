"""Which arguments of the target's calls hold a boundary's value, and what of the source side takes their place.

An argument is known by its bytes, never by its name: it holds what the target made at a boundary, a rank's part of that, several values
side by side (a fused projection's), or some rows (a head that sees the last token alone). It gets the source's value of that boundary.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from msprobe_files.operands import Operand, OperandError, Source, shape_after
from msprobe_files.pt_archive import PtTensor

from dump_analysis.artefacts.common import SideName
from dump_analysis.artefacts.semantic_mapping import Row
from dump_analysis.mapping.recorded.times import Times, times_of
from dump_analysis.rounds import fitting
from dump_analysis.rounds.fitting import CannotFit, Shape, value_shape
from dump_analysis.rounds.observed import Seat, handed_by, outputs, outputs_of, seats_of
from dump_analysis.rounds.values import Argument, Digest, Mapped, arguments, digest_of, mapped, of_side, row_digests
from dump_analysis.sides import Side
from dump_analysis.tensors import Files, cut_stream, stream_of

# Formats that hold every value of another: the source's value is given as the target's format without a change.
_WIDENS = {("bfloat16", "float32"), ("float16", "float32"), ("bfloat16", "float64"), ("float16", "float64"), ("float32", "float64")}
_MOST_ROWS = 1 << 12  # of an argument that is looked up row by row


class Feed(NamedTuple):
    """An argument and what it gets: the source's operand, and the boundaries whose values that is.

    ``alone``: the target recorded a boundary's value at this argument and as no output, so that overriding it hides how it came out.
    """

    argument: Argument
    operand: Operand
    boundaries: tuple[str, ...]
    alone: tuple[str, ...]

    @property
    def seat(self) -> Seat:
        return self.argument.entry, self.argument.label


class Feeds(NamedTuple):
    """One direction of an override. ``feeds``: in the order in which the calls start; ``left``: arguments that nothing feeds.

    ``mapped``: the compared boundaries by name, in the mapping's order; ``outputs``, ``handed_by``: see `observed`.
    """

    source: Side
    target: Side
    source_side: SideName
    target_side: SideName
    feeds: list[Feed]
    left: list[Argument]
    mapped: dict[str, Mapped]
    outputs: dict[str, Operand]
    handed_by: dict[str, frozenset[str]]

    def of_entry(self, entry: str) -> list[Feed]:
        """What a call gets, on all ranks."""
        return [feed for feed in self.feeds if feed.argument.entry == entry]


class _Piece(NamedTuple):
    """Columns of a boundary's value, which a rank holds; ``columns`` None: all of it."""

    of: Mapped
    columns: tuple[int, int] | None


class _Held(NamedTuple):
    """What an argument may hold: pieces side by side, and when the target has made them. ``made_by``: the calls that record them."""

    pieces: tuple[_Piece, ...]
    time: float
    made_by: frozenset[str]


def feeds_of(rows: Sequence[Row], train: Side, infer: Side, target: SideName) -> Feeds:
    """What the mapping feeds of one side's calls from the other side."""
    source, other = (infer, train) if target == "train" else (train, infer)
    files = Files()
    try:
        known = mapped(rows, train, infer, target, files)
        made = outputs(other, files)
        seen_at = outputs_of(known, target, other, made)
        seen_alone: dict[Seat, list[str]] = defaultdict(list)
        for one in known:
            for seat in seats_of(one, target) if one.boundary not in seen_at else ():
                seen_alone[seat].append(one.boundary)
        finder = _Finder(known, target, other, files)
        feeds, left = [], []
        for argument in arguments(other, files):
            fed = finder.feed(argument, tuple(seen_alone[argument.entry, argument.label]))
            (left.append(argument) if fed is None else feeds.append(fed))
    finally:
        files.close()
    by_name = {one.boundary: one for one in known}
    return Feeds(source, other, "infer" if target == "train" else "train", target, feeds, left, by_name, seen_at, handed_by(left, made))


class _Finder:
    """Looks arguments of one side up among the values of its boundaries."""

    def __init__(self, known: Sequence[Mapped], target: SideName, side: Side, files: Files) -> None:
        self._target, self._files = target, files
        self._source: SideName = "infer" if target == "train" else "train"
        self._times: dict[int, Times] = {id(unit): times_of(unit) for unit in side.units}
        self._held: dict[Digest, list[_Held]] = defaultdict(list)
        self._known = [one for one in known if one.digest is not None]
        for one in self._known:
            if one.digest is not None:
                self._hold(one.digest, (_Piece(one, None),))
            for piece, digest in self._of_ranks(one):
                self._hold(digest, (piece,))
        self._add_fused()

    def _hold(self, digest: Digest, pieces: tuple[_Piece, ...]) -> None:
        made_by = {place.record.entry for piece in pieces for place in of_side(piece.of.pair, self._target)[1].places}
        self._held[digest].append(_Held(pieces, max(piece.of.time for piece in pieces), frozenset(made_by)))

    def feed(self, argument: Argument, alone: tuple[str, ...]) -> Feed | None:
        """What an argument gets; None where it holds no boundary's value, or one that cannot be shaped for it.

        A module that hands on what it was handed (an identity) makes its argument's boundary itself.
        """
        start = self._times[id(argument.place.unit)].start[argument.entry]
        held = self._held.get(argument.digest, ())
        before = [one for one in held if one.time <= start]
        for one in sorted(before, key=lambda one: (one.time, one.pieces[-1].of.order), reverse=True):
            if (made := self._made(one, argument, alone)) is not None:
                return made
        for one in held:
            names = tuple(piece.of.boundary for piece in one.pieces)
            if one.made_by == {argument.entry} and (made := self._made(one, argument, (*alone, *names))) is not None:
                return made
        return self._of_rows(argument, start, alone)

    def _made(self, held: _Held, argument: Argument, alone: tuple[str, ...]) -> Feed | None:
        try:
            return Feed(argument, self._operand(held, argument), tuple(piece.of.boundary for piece in held.pieces), alone)
        except (CannotFit, OperandError):
            return None

    def _operand(self, held: _Held, argument: Argument) -> Operand:
        wanted = argument.tensor.shape
        parts = [self._piece(piece) for piece in held.pieces]
        made = fitting.side_by_side(parts, wanted) if len(parts) > 1 else fitting.shaped(*parts[0], wanted)
        return self._in_format(made, [piece.of for piece in held.pieces], argument)

    def _piece(self, piece: _Piece) -> tuple[Operand, list[Shape]]:
        operand, shapes = self._of(piece.of)
        if piece.columns is None:
            return operand, shapes
        made = fitting.columns(operand, shapes, *piece.columns)
        return made, fitting.shapes_of(operand, shapes, made)

    def _of(self, one: Mapped) -> tuple[Operand, list[Shape]]:
        operand, found = of_side(one.pair, self._source)
        return operand, [tensor.shape for tensor in found.tensors]

    def _in_format(self, operand: Operand, boundaries: Sequence[Mapped], argument: Argument) -> Operand:
        formats = {stream_of(self._files, *self._tensors(one)).dtype for one in boundaries}
        wanted = argument.tensor.dtype
        if formats == {wanted}:
            return operand
        if len(formats) == 1 and (formats.pop(), wanted) in _WIDENS:
            return fitting.widened(operand, wanted)
        raise CannotFit(f"a value that {wanted} does not hold")

    def _tensors(self, one: Mapped) -> tuple[Operand, tuple[PtTensor, ...]]:
        operand, found = of_side(one.pair, self._source)
        return operand, found.tensors

    # --- more than whole values ---

    def _of_ranks(self, one: Mapped) -> Iterator[tuple[_Piece, Digest]]:
        """The columns that each rank of the target holds of a value that is cut over ranks."""
        for source, tensor, columns in self._rank_parts(one):
            if columns is not None:
                yield _Piece(one, columns), digest_of(stream_of(self._files, Operand([source]), [tensor]))

    def _rank_parts(self, one: Mapped) -> Iterator[tuple[Source, PtTensor, tuple[int, int] | None]]:
        """The target's tensors of a value, and which columns of it each holds; None: all."""
        operand, found = of_side(one.pair, self._target)
        if operand.combine is None:
            yield operand.sources[0], found.tensors[0], None
        shapes = [shape_after(source.steps or (), tensor.shape) for source, tensor in zip(operand.sources, found.tensors, strict=True)]
        if operand.combine != "cat" or operand.axis not in (-1, len(shapes[0]) - 1):
            return
        start = 0
        for source, tensor, shape in zip(operand.sources, found.tensors, shapes, strict=True):
            yield source, tensor, (start, start + shape[-1])
            start += shape[-1]

    def _add_fused(self) -> None:
        """Tensors whose columns are the values of several boundaries one after the other."""
        groups: dict[str, list[tuple[int, int, _Piece, PtTensor]]] = defaultdict(list)
        for one in self._known:
            for source, tensor, columns in self._rank_parts(one):
                cut = _columns_of(source, tensor)
                if cut is not None:
                    groups[tensor.path].append((*cut, _Piece(one, columns), tensor))
        for cuts in groups.values():
            cuts.sort(key=lambda cut: cut[:2])
            width = cuts[0][3].shape[-1]
            if len(cuts) > 1 and [cut[0] for cut in cuts] == [0, *(cut[1] for cut in cuts[:-1])] and cuts[-1][1] == width:
                self._hold(digest_of(cut_stream(self._files, cuts[0][3], ())), tuple(cut[2] for cut in cuts))

    def _of_rows(self, argument: Argument, start: float, alone: tuple[str, ...]) -> Feed | None:
        """An argument that holds some rows of a value: the last tokens', say."""
        width = argument.tensor.shape[-1] if argument.tensor.shape else 0
        if not width or argument.tensor.elements // width > _MOST_ROWS:
            return None
        wanted = row_digests(cut_stream(self._files, argument.tensor, ()), width)
        for one in sorted(self._known, key=lambda one: one.time, reverse=True):
            operand, found = of_side(one.pair, self._target)
            shape = value_shape(operand, [tensor.shape for tensor in found.tensors])
            if one.time > start or len(shape) != 2 or shape[1] != width or shape[0] <= len(wanted):
                continue
            have = row_digests(stream_of(self._files, operand, found.tensors), width)
            picked = _picked(wanted, have)
            if picked is None:
                continue
            try:
                return Feed(argument, self._rows_operand(one, argument, picked), (one.boundary,), alone)
            except (CannotFit, OperandError):
                continue
        return None

    def _rows_operand(self, one: Mapped, argument: Argument, picked: list[int]) -> Operand:
        operand, shapes = self._of(one)
        made = fitting.rows(operand, shapes, picked)
        return self._in_format(fitting.shaped(made, shapes, argument.tensor.shape), (one,), argument)


def _picked(wanted: Sequence[bytes], have: Sequence[bytes]) -> list[int] | None:
    """Which rows were taken: the last ones, or rows that each stand there once; None where that is not so."""
    if list(have[-len(wanted) :]) == list(wanted):
        return list(range(len(have) - len(wanted), len(have)))
    return [have.index(row) for row in wanted] if all(have.count(row) == 1 for row in wanted) else None


def _columns_of(source: Source, tensor: PtTensor) -> tuple[int, int] | None:
    """Start and stop of the columns that a source cuts out of its tensor, where all else it does is to drop axes of size 1."""
    cuts = [(at, op) for at, op in enumerate(source.steps or ()) if op.op == "slice"]
    if len(cuts) != 1 or any(op.op not in ("slice", "squeeze") for op in source.steps or ()):
        return None
    at, cut = cuts[0]
    shape = shape_after((source.steps or ())[:at], tensor.shape)
    if cut.axis not in (-1, len(shape) - 1):
        return None
    return cut.start or 0, shape[-1] if cut.stop is None else cut.stop
