"""Weights that one side keeps in flat parameters, cut out of them by what the other side recorded (FSDP1).

A flat parameter is a vector that an entry around other entries recorded; it holds their parameters one after the other. Where a
weight begins is found by its rows; where all of them differ, by where the same weight begins in other layers, or by the only hole of its
size. Source: torch.distributed.fsdp.FlatParameter (torch 2): parameters flattened in the order of their registration.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from msprobe_files.errors import DumpError
from msprobe_files.operands import Op

from dump_analysis.boundaries import layer_of, place_of
from dump_analysis.floats import Array
from dump_analysis.mapping.contents.flat_search import Rows, offsets, sample
from dump_analysis.mapping.contents.weight_samples import Cut, agree
from dump_analysis.mapping.naming.producers import Producer
from dump_analysis.mapping.naming.rowgraph import lookups
from dump_analysis.mapping.recorded.cuts import cut_op
from dump_analysis.mapping.recorded.nodes import Parameter, SideNodes
from dump_analysis.mapping.rows.weight_rows import Made, WeightRow, without_overlap
from dump_analysis.tensors import Files

_SAMPLED = 8  # rows of each weight


class _Wanted(NamedTuple):
    """A weight that the other side recorded. ``rows``: which of the flat side's rows (of a vector, elements) stand in which of its own.

    ``size``: elements of the whole weight on the flat side; ``width``: of a row there.
    """

    made: Made
    name: str
    flat: Parameter
    other: Parameter
    rows: Array
    other_rows: Array
    size: int
    width: int


class _Placed(NamedTuple):
    """Where a weight begins in its flat parameter."""

    wanted: _Wanted
    start: int

    @property
    def stop(self) -> int:
        return self.start + self.wanted.size


def flat_rows(places: Sequence[Made], held: Sequence[WeightRow], train: SideNodes, infer: SideNodes) -> list[WeightRow]:
    """Rows of the weights that lie in flat parameters of either side and in parameters of their own on the other."""
    found: list[WeightRow] = []
    for label, side, other in (("train", train, infer), ("infer", infer, train)):
        taken = {row.name for row in [*held, *found]}
        wanted = [one for one in _wanted(places, label, _flats(side), side, other) if one.name not in taken]
        placed = _placed(wanted)
        found += [_row(placed[name], label) for name in dict.fromkeys(one.name for one in wanted) if name in placed]
    return found


def _flats(side: SideNodes) -> list[Parameter]:
    """Vectors that are no gain or bias of what their entry returns, of entries around others where that is known."""
    times = side.records.times
    widths: dict[str, set[int]] = {}
    for one in side.records.activations:
        if one.spot.io == "output" and one.tensor.shape:
            widths.setdefault(one.spot.entry, set()).add(one.tensor.shape[-1])
    vectors = [parameter for parameter in side.parameters if len(parameter.tensor.shape) == 1]
    vectors = [parameter for parameter in vectors if not times.traced or parameter.entry not in times.leaves]
    return [parameter for parameter in vectors if parameter.tensor.shape[0] not in widths.get(parameter.entry, set())]


# --- what is looked for ---


def _wanted(places: Sequence[Made], label: str, flats: Sequence[Parameter], side: SideNodes, other: SideNodes) -> Iterator[_Wanted]:
    tables = lookups(other)
    owners = {parameter.entry for parameter in side.parameters}
    for made in without_overlap(places) if flats else ():
        ends = (made.train, made.infer) if label == "train" else (made.infer, made.train)
        if ends[0] is None or ends[1] is None or ends[0].entry in owners:
            continue
        recorded = [parameter for parameter in other.parameters if parameter.entry == ends[1].entry]
        matrices = [parameter for parameter in recorded if len(parameter.tensor.shape) == 2]
        vectors = [parameter for parameter in recorded if len(parameter.tensor.shape) == 1]
        rows = _rows(made, label, ends[0], ends[1])
        for flat in _around(flats, ends[0].entry, side):
            if len(matrices) == 1:
                yield from _matrix(made, flat, matrices[0], rows, ends, table=ends[1].entry in tables)
            for kind, vector in zip(("bias",) if matrices else ("weight", "bias"), vectors, strict=False):
                yield _vector(made, f"{made.prefix}.{kind}", flat, vector, rows, ends)


def _around(flats: Sequence[Parameter], entry: str, side: SideNodes) -> list[Parameter]:
    """The flat parameters of the innermost and of the outermost entry around an entry.

    Where starts are not known, of the first and the last one that end behind it: entries that it lies in end behind it.
    """
    times = side.records.times
    around = [
        p for p in flats if times.end[entry] <= times.end[p.entry] and (not times.traced or times.start[p.entry] <= times.start[entry])
    ]
    around.sort(key=lambda parameter: times.end[parameter.entry])
    return around if len(around) < 2 else [around[0], around[-1]]


def _rows(made: Made, label: str, own: Producer, other: Producer) -> tuple[Array, Array]:
    """Which of an entry's output columns are which of the other entry's."""
    if made.columns is None:
        return own.columns, other.columns
    return (own.columns[made.columns], other.columns) if label == "train" else (own.columns, other.columns[made.columns])


def _matrix(
    made: Made, flat: Parameter, other: Parameter, rows: tuple[Array, Array], ends: tuple[Producer | None, Producer | None], *, table: bool
) -> Iterator[_Wanted]:
    height, width = other.tensor.shape
    own, theirs = ends
    assert own is not None
    assert theirs is not None
    if table and width == theirs.width == own.width:
        every = np.arange(height)
        yield _Wanted(made, f"{made.prefix}.weight", flat, other, every, every, height * width, width)
    elif not table and height == theirs.width:
        yield _Wanted(made, f"{made.prefix}.weight", flat, other, *rows, own.width * width, width)


def _vector(
    made: Made, name: str, flat: Parameter, other: Parameter, rows: tuple[Array, Array], ends: tuple[Producer | None, Producer | None]
) -> _Wanted:
    own, theirs = ends
    assert own is not None
    assert theirs is not None
    if other.tensor.shape[0] == theirs.width:
        return _Wanted(made, name, flat, other, *rows, own.width, 1)
    every = np.arange(other.tensor.shape[0])  # a gain per head
    return _Wanted(made, name, flat, other, every, every, len(every), 1)


# --- where it lies ---


def _placed(wanted: Sequence[_Wanted]) -> dict[str, _Placed]:
    """Name of a weight -> its place."""
    found: dict[str, _Placed] = {}
    for flat in _distinct(wanted):
        own = [one for one in wanted if one.flat == flat]
        files = Files()
        try:
            begins = offsets(files, flat.tensor, [_sample(files, one) for one in own])
        except DumpError:
            continue  # the comparison names the file and says why it cannot be read
        finally:
            files.close()
        for one, at in zip(own, begins, strict=True):
            if at is not None and at + one.size <= flat.tensor.elements:
                found.setdefault(one.name, _Placed(one, at))
    nearest = list({one.name: one for one in reversed(wanted)}.values())
    for further in (_behind_their_matrices, _as_in_other_layers, _in_the_only_hole):
        found |= further(nearest, found)
    return found


def _distinct(wanted: Sequence[_Wanted]) -> list[Parameter]:
    return list({one.flat.record.name: one.flat for one in wanted}.values())


def _sample(files: Files, one: _Wanted) -> Rows:
    if one.width == 1:  # a vector: as one row, if its elements stand side by side
        if not np.array_equal(np.diff(one.rows), np.ones(len(one.rows) - 1)) or not np.array_equal(
            np.diff(one.other_rows), np.diff(one.rows)
        ):
            return Rows(np.empty((0, 0), np.uint16), np.empty(0, np.int64), one.other.tensor.dtype)
        return sample(one.other.tensor, files, [int(one.other_rows[0])], len(one.rows), one.rows[:1])
    picked = np.unique(np.linspace(0, len(one.rows) - 1, min(len(one.rows), _SAMPLED)).astype(np.int64))
    starts = [int(row) * one.width for row in one.other_rows[picked]]
    return sample(one.other.tensor, files, starts, one.width, one.rows[picked] * one.width)


def _behind_their_matrices(wanted: Sequence[_Wanted], found: dict[str, _Placed]) -> dict[str, _Placed]:
    """Biases none of which was found, right behind the matrix of the same module, where that place is a hole of their size."""
    made = {}
    for one in wanted:
        matrix = found.get(f"{one.made.prefix}.weight")
        if one.name in found or matrix is None or matrix.wanted.flat != one.flat or not one.name.endswith(".bias"):
            continue
        if (matrix.stop, matrix.stop + one.size) in _holes(one.flat, found):
            made[one.name] = _Placed(one, matrix.stop)
    return made


def _as_in_other_layers(wanted: Sequence[_Wanted], found: dict[str, _Placed]) -> dict[str, _Placed]:
    """Weights none of whose rows was found, where the same weight of other layers begins in flat parameters of one size, if it is free."""
    usual: dict[tuple[str, int, int], set[int]] = {}
    for name, placed in found.items():
        usual.setdefault((place_of(name), placed.wanted.flat.tensor.elements, placed.wanted.size), set()).add(placed.start)
    made = {}
    for one in wanted:
        at = usual.get((place_of(one.name), one.flat.tensor.elements, one.size), set())
        if one.name not in found and layer_of(one.name) is not None and len(at) == 1 and _is_free(_Placed(one, min(at)), found):
            made[one.name] = _Placed(one, min(at))
    return made


def _is_free(place: _Placed, found: dict[str, _Placed]) -> bool:
    """Whether no other weight lies there; the parts of one fused matrix lie in one place."""
    own = [two for two in found.values() if two.wanted.flat == place.wanted.flat]
    return all(place.stop <= two.start or two.stop <= place.start or (two.start, two.stop) == (place.start, place.stop) for two in own)


def _in_the_only_hole(wanted: Sequence[_Wanted], found: dict[str, _Placed]) -> dict[str, _Placed]:
    """Weights that alone have the size of the one hole of that size."""
    made = {}
    for flat in _distinct(wanted):
        left = [one for one in wanted if one.flat == flat and one.name not in found]
        holes = _holes(flat, found)
        for one in left:
            fitting = [start for start, stop in holes if stop - start == one.size]
            if len(fitting) == 1 and sum(two.size == one.size for two in left) == 1 and one.size < flat.tensor.elements:
                made[one.name] = _Placed(one, fitting[0])
    return made


def _holes(flat: Parameter, found: dict[str, _Placed]) -> list[tuple[int, int]]:
    taken = [(place.start, place.stop) for place in found.values() if place.wanted.flat == flat]
    return holes_of(taken, flat.tensor.elements)


def holes_of(taken: Sequence[tuple[int, int]], size: int) -> list[tuple[int, int]]:
    """The stretches of 0 … size that no stretch takes."""
    holes, at = [], 0
    for start, stop in [*sorted(taken), (size, size)]:
        if at < start:
            holes.append((at, start))
        at = max(at, stop)
    return holes


# --- the row ---


def _row(place: _Placed, label: str) -> WeightRow:
    one = place.wanted
    cut: list[Op] = [Op("slice", axis=0, start=place.start, stop=place.stop)]
    if one.width > 1:
        cut.append(Op("reshape", shape=(-1, one.width)))
    own = tuple(cut + _picked(one.rows, one.size // one.width))
    theirs = tuple(_picked(one.other_rows, one.other.tensor.shape[0]))
    equal = agree(Cut(one.flat.tensor, own), Cut(one.other.tensor, theirs))
    confidence = 0.99 if equal else min(0.9, one.made.confidence)
    sides = (one.flat, one.other, own, theirs) if label == "train" else (one.other, one.flat, theirs, own)
    return WeightRow(one.name, *sides, equal, False, confidence)


def _picked(rows: Array, count: int) -> list[Op]:
    return [] if np.array_equal(rows, np.arange(count)) else [cut_op(0, rows)]
