"""What one side recorded of a layer's attention: its rows, which of them are which sequence's, positions, and how wide its heads are."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from msprobe_files.operands import Op, Operand

from dump_analysis.artefacts.semantic_mapping import Row
from dump_analysis.floats import Array
from dump_analysis.mapping.recorded.cuts import with_ops
from dump_analysis.replay import heads, rotary_tables
from dump_analysis.replay.modules import Pair
from dump_analysis.replay.recorded import CannotReplay, Cut, Matrix, cut_of, matrix_of, value_of
from dump_analysis.sides import Side
from dump_analysis.tensors import Files, described
from dump_analysis.wording import word

Q_ROPE, K_ROPE = "q_rope.out", "k_rope.out"
_MOST_AROUND = 4096  # rows of a flat tensor that are read for each of its sequences


class Seen(NamedTuple):
    """One side of a layer: its files and mapping, the cut that the attention's output is, its rows, and the tokens' positions."""

    files: Files
    pair: Pair
    side: Side
    layer: str
    cut: Cut
    rows: rotary_tables.Rows
    sequences: tuple[heads.Sequence, ...]
    positions: Array | None
    stated: Mapping[str, float]

    def row(self, place: str) -> Row | None:
        return self.pair.rows.get(f"{self.layer}{place}")

    @property
    def padded(self) -> bool:
        """Whether keys stand around those of the compared tokens."""
        return any(one.before or one.after for one in self.sequences)

    def by_key(self, place: str) -> Matrix | None:
        """The value of a boundary at all keys: at all rows that were recorded, where keys stand around the compared ones."""
        row = self.row(place)
        if row is None or not self.padded:
            return self.value(place)
        cut = cut_of(self.side, operand_of(row, self.side.label))
        by_token = int(np.prod(described(cut.place).shape)) // self.rows.total
        if by_token != cut.width and len(cut.columns) == cut.width:  # a row a head, all of it
            return matrix_of(self.files, cut.place, by_token)
        return matrix_of(self.files, cut.place, cut.width, columns=cut.columns)

    def value(self, place: str) -> Matrix | None:
        """The value of a boundary of the layer as [tokens, columns]; None where it is not mapped."""
        row = self.row(place)
        return None if row is None else value_of(self.files, self.side, operand_of(row, self.side.label))


def operand_of(row: Row, label: str) -> Operand:
    return row.train if label == "train" else row.infer


# --- rows, sequences and positions ---


def seen_of(files: Files, pair: Pair, row: Row, label: str, layer: str, stated: Mapping[str, float]) -> Seen:
    side = pair.side(label)
    cut = cut_of(side, operand_of(row, label))
    output = value_of(files, side, operand_of(row, label))
    shape = described(cut.place).shape
    total = int(np.prod(shape)) // output.columns
    whole = cut.rows if cut.width == output.columns else np.unique(cut.rows * cut.width // output.columns)
    if len(whole) != output.rows:
        raise CannotReplay(word("replay_scattered", side=label, name=cut.place.record.name))
    length, places = _batch(shape, total, whole)
    positions = _positions(files, pair, side, output.rows)
    sequences = _sequences(_lengths(pair, label, output.rows, positions), whole, places, length)
    return Seen(files, pair, side, layer, cut, rotary_tables.Rows(places, length, whole), sequences, positions, stated)


def _batch(shape: tuple[int, ...], total: int, compared: Array) -> tuple[int, Array]:
    """Tokens of one row of a batch, and the place of each row of a tensor in it. Flat tensors have none: 0."""
    rows = np.arange(total)
    if len(shape) > 2 and shape[0] * shape[1] == total:
        if shape[1] == 1 or (len(compared) > 1 and (np.diff(compared) == shape[1]).all()):  # tokens first
            return shape[0], rows // shape[1]
        return shape[1], rows % shape[1]
    return 0, rows


def _positions(files: Files, pair: Pair, side: Side, count: int) -> Array | None:
    row = pair.rows.get("positions")
    if row is None:
        return None
    found = value_of(files, side, with_ops(operand_of(row, side.label), Op("reshape", shape=(-1, 1))))
    return found.read(0, found.rows)[:, 0] if found.rows == count else None


def _lengths(pair: Pair, label: str, count: int, positions: Array | None) -> list[int]:
    """Tokens of each sequence: as the mapping says, else from where positions start anew, else all of one."""
    if pair.tokens is not None:
        lengths = [stop - start for _, start, stop in getattr(pair.tokens, label)]
        if sum(lengths) == count:
            return lengths
    if positions is None:
        return [count]
    starts = np.flatnonzero(np.diff(positions) != 1) + 1
    return [int(size) for size in np.diff([0, *starts, count])]


def _sequences(lengths: Sequence[int], compared: Array, places: Array, length: int) -> tuple[heads.Sequence, ...]:
    """Keys that stand around a sequence in its row of a batch are handed to kernels, too, which mask them; in a flat tensor they are not.

    Where the tokens of a batch do not lie side by side, only the compared ones are read.
    """
    stops = np.cumsum(lengths)
    own = tuple(heads.Sequence(int(stop - size), int(stop), int(stop - size), int(stop)) for size, stop in zip(lengths, stops, strict=True))
    total, flat = len(places), length == 0
    side_by_side = all(compared[one.stop - 1] - compared[one.start] == one.stop - 1 - one.start for one in own)
    if not side_by_side or (flat and total > _MOST_AROUND) or (not flat and (places != np.arange(total) % length).any()):
        return own
    around = tuple(_around(one, int(compared[one.start]), length or total, flat) for one in own)
    return around if any(one.before or one.after for one in around) else own


def _around(own: heads.Sequence, start: int, length: int, apart: bool) -> heads.Sequence:
    """A sequence whose first token is row ``start``, with all keys of its row of ``length``."""
    row = start // length * length
    stop = start + own.stop - own.start
    return own._replace(first=row, last=row + length, before=start - row, after=row + length - stop, apart=apart)


# --- heads ---


def known_width(seen: Seen) -> int | None:
    """Columns of a head: as a norm of heads or the last axis of any side's tensor says, or as is stated."""
    for label in ("train", "infer"):
        for place in ("q_norm", "k_norm"):
            norm, whole = seen.row(f"{place}.weight"), seen.row(f"{place}.out")
            width = _last_axis(seen, norm, label, 1)
            wide = _last_axis(seen, whole, label, 4)
            if wide is not None and width == wide:
                return wide
        for place in (Q_ROPE, K_ROPE):
            wide = _last_axis(seen, seen.row(place), label, 4)
            if wide is not None:
                return wide
    return int(seen.stated["head_dim"]) if "head_dim" in seen.stated else None


def _last_axis(seen: Seen, row: Row | None, label: str, axes: int) -> int | None:
    """The last axis of what a side recorded of a row, if it has so many axes or more."""
    if row is None:
        return None
    found = seen.pair.side(label).by_name.get(operand_of(row, label).sources[0].name, ())
    shape = found[0].record.shape if found else None
    return shape[-1] if shape is not None and len(shape) >= axes else None
