"""Mapping rows of parameters, by place: the entries that make the two sides of a joined row hold its weights.

The columns that a row cuts out of an entry's output are the rows that it cuts out of its matrix.  Contents only say how
sure a row is, and whether a matrix lies the other way round: weights that differ keep their row.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
from msprobe_files.operands import Op, Operand, Source

from dump_analysis.floats import Array
from dump_analysis.mapping.contents.turned import turned_entries
from dump_analysis.mapping.contents.weight_samples import Cut, agree, lies_elsewhere, same_bytes
from dump_analysis.mapping.joining.joined import JoinedSides
from dump_analysis.mapping.naming.producers import Producer
from dump_analysis.mapping.naming.rowgraph import lookups
from dump_analysis.mapping.recorded.cuts import cut_op
from dump_analysis.mapping.recorded.nodes import Parameter, SideNodes
from dump_analysis.sides import resolve

_TRANSPOSE = Op("permute", axes=(1, 0))
_UNLIKE = 0.9  # confidence of a row whose sides are not equal, at most
_STEMS = {"logits": "lm_head", "embedding.out": "embedding"}


class Made(NamedTuple):
    """A joined row and the entries that make it. ``columns``: as in a joined row; ``prefix``: of its weights; ``role``: it has one."""

    prefix: str
    role: bool
    train: Producer | None
    infer: Producer | None
    columns: Array | None
    confidence: float


class _Kept(NamedTuple):
    """How the matrices of two entries are kept. ``table``: both are looked up by whole numbers; ``turned``: of each side, [in, out]."""

    table: bool
    turned: tuple[bool, bool]


class WeightRow(NamedTuple):
    """A row of one parameter. ``equal``: its sample is; ``elsewhere``: the rows of train lie elsewhere in infer's matrix."""

    name: str
    train: Parameter
    infer: Parameter
    train_steps: tuple[Op, ...]
    infer_steps: tuple[Op, ...]
    equal: bool
    elsewhere: bool
    confidence: float

    def operand(self, side: str) -> Operand:
        parameter, steps = (self.train, self.train_steps) if side == "train" else (self.infer, self.infer_steps)
        return Operand([Source(parameter.record.name, None, None, steps)])


def stem_of(boundary: str) -> str:
    """What the weights of a boundary are called after: ``layers.0.q.out`` -> ``layers.0.q``."""
    if boundary in _STEMS:
        return _STEMS[boundary]
    if boundary.endswith(".shared_expert.out"):
        return boundary.removesuffix("out") + "down"
    if boundary.endswith(".router.weights"):
        return boundary.removesuffix(".weights")
    return boundary.removesuffix(".out").removesuffix(".logits") if boundary.endswith((".out", "router.logits")) else boundary


def rows_of_places(places: Sequence[Made], train: SideNodes, infer: SideNodes, inputs: dict[tuple[str, str], Array]) -> list[WeightRow]:
    """The rows of all parameters whose entries make joined rows.

    ``inputs``: (train entry, infer entry) -> for each input column of infer the one of train, where they do not stand alike.
    """
    by_entry = [_by_entry(side) for side in (train, infer)]
    tables = [lookups(side) for side in (train, infer)]
    turned = [turned_entries(side) for side in (train, infer)]
    rows: list[WeightRow] = []
    for made in without_overlap(places):
        if made.train is None or made.infer is None:
            continue
        recorded = [found.get(end.entry, []) for found, end in zip(by_entry, _ends(made), strict=True)]
        matrices, vectors = ([[p for p in side if len(p.tensor.shape) == axes] for side in recorded] for axes in (2, 1))
        table = made.train.entry in tables[0] and made.infer.entry in tables[1]
        kept = _Kept(table, (made.train.entry in turned[0], made.infer.entry in turned[1]))
        for left, right in zip(*matrices, strict=False):
            row = _matrix_row(made, left, right, kept, inputs.get((made.train.entry, made.infer.entry)))
            rows += [row] if row is not None else []
        rows += _vector_rows(made, *vectors, beside_matrix=bool(matrices[0]) or bool(matrices[1]))
    return rows


def with_embedding(places: Sequence[Made], train: SideNodes, infer: SideNodes) -> list[Made]:
    """The places; the table of token ids is the embedding also where the stream begins at a multiple of its rows, or at a sum with them."""
    if any(made.prefix == "embedding" and made.train is not None and made.infer is not None for made in places):
        return list(places)
    tables = [_tables_of_ids(side) for side in (train, infer)]
    named = []
    for made in places:
        found = made.train is not None and made.infer is not None and made.train.entry in tables[0] and made.infer.entry in tables[1]
        named.append(made._replace(prefix="embedding") if found else made)
    return named


def _tables_of_ids(side: SideNodes) -> set[str]:
    place = resolve(side.records.side, side.ids.sources[0]) if side.ids is not None else None
    ids = next((one.tensor for one in side.records.activations if place is not None and one.record is place.record), None)
    inputs = [one for one in side.records.activations if one.spot.io != "output" and one.spot.entry in lookups(side)]
    return {one.spot.entry for one in inputs if ids is not None and same_bytes(one.tensor, ids)}


def permuted_inputs(joined: JoinedSides) -> dict[tuple[str, str], Array]:
    """(train entry, infer entry) -> for each column that infer's entry takes the one that train's takes, where they are not alike."""
    found: dict[tuple[str, str], Array] = {}
    for row in joined.rows:
        if row.columns is not None and not np.array_equal(row.columns, np.arange(len(row.columns))):
            ends = [{spot.entry for spot in node.spots if spot.io != "output"} for node in (row.train, row.infer)]
            found.update({(one, other): row.columns for one in ends[0] for other in ends[1]})
    return found


def _by_entry(side: SideNodes) -> dict[str, list[Parameter]]:
    found: dict[str, list[Parameter]] = {}
    for parameter in side.parameters:
        found.setdefault(parameter.entry, []).append(parameter)
    return found


def covered(places: Sequence[Made]) -> set[int]:
    """Places without a role, by number, that lie within one that has a role or that narrower places of the same entries make up."""
    return {at for group in _groups(places) for at in group if not places[at].role and _is_covered(places, at, group)}


def _groups(places: Sequence[Made]) -> list[list[int]]:
    """Numbers of the places that the same pair of entries makes."""
    groups: dict[tuple[str, str], list[int]] = {}
    for at, made in enumerate(places):
        if made.train is not None and made.infer is not None:
            groups.setdefault((made.train.entry, made.infer.entry), []).append(at)
    return list(groups.values())


def _is_covered(places: Sequence[Made], at: int, group: Sequence[int]) -> bool:
    own = [set(end.columns.tolist()) for end in _ends(places[at])]
    parts = [[set(end.columns.tolist()) for end in _ends(places[other])] for other in group if other != at]
    inside = [part for part in parts if part[0] < own[0] and part[1] < own[1]]
    around = [other for other in group if places[other].role and other != at]
    if any(own[side] < set(_ends(places[other])[side].columns.tolist()) for other in around for side in (0, 1)):
        return True
    return len(inside) > 1 and all(set().union(*(part[side] for part in inside)) == own[side] for side in (0, 1))


def without_overlap(places: Sequence[Made]) -> Iterator[Made]:
    """Each part of a pair of entries once: a whole output gives way to its parts where these are all of it, else they to it."""
    said = covered(places)
    for group in _groups(places):
        distinct: dict[tuple[bytes, bytes], Made] = {}
        for at in group:
            if at not in said:
                train, infer = _ends(places[at])
                distinct.setdefault((train.columns.tobytes(), infer.columns.tobytes()), places[at])
        wholes = [made for made in distinct.values() if _ends(made)[0].whole and _ends(made)[1].whole]
        yield from wholes or [made for made in distinct.values() if not _is_within(made, distinct.values())]


def _is_within(made: Made, others: Iterable[Made]) -> bool:
    """Whether a place that has a role holds this one's columns and more, on both sides."""
    own = [set(end.columns.tolist()) for end in _ends(made)]
    wider = ([set(end.columns.tolist()) for end in _ends(other)] for other in others if other.role and other is not made)
    return any(own[0] < wide[0] and own[1] < wide[1] for wide in wider)


def _ends(made: Made) -> tuple[Producer, Producer]:
    assert made.train is not None
    assert made.infer is not None
    return made.train, made.infer


def _matrix_row(made: Made, left: Parameter, right: Parameter, kept: _Kept, inputs: Array | None) -> WeightRow | None:
    """The row of a matrix on each side; None where its shape does not fit what its entry makes."""
    ends = _ends(made)
    axes = [
        _output_axis(parameter, end, kept.table, turned) for parameter, end, turned in zip((left, right), ends, kept.turned, strict=True)
    ]
    if None in axes:
        return None
    picked = [ends[0].columns if made.columns is None else ends[0].columns[made.columns], ends[1].columns]
    steps = [_picks(parameter, axis, columns) for parameter, axis, columns in zip((left, right), axes, picked, strict=True)]
    sizes = [parameter.tensor.shape[1 - axis] for parameter, axis in zip((left, right), axes, strict=True) if axis is not None]
    if sizes[0] != sizes[1]:
        if not kept.table:
            return None
        rows = min(sizes)  # the larger vocabulary is padded
        steps = [[*ops, *_first(rows, size, 1 - (axis or 0))] for ops, size, axis in zip(steps, sizes, axes, strict=True)]
    elif inputs is not None and len(inputs) == sizes[0]:
        steps[0].append(cut_op(1 - (axes[0] or 0), inputs))
    if axes[0] != axes[1]:
        steps[0].append(_TRANSPOSE)
    return _judged(made, f"{made.prefix}.weight", left, right, tuple(steps[0]), tuple(steps[1]))


def _output_axis(parameter: Parameter, end: Producer, table: bool, turned: bool) -> int | None:
    """The axis of a matrix that holds what its entry returns: rows, unless only the columns are as many, or it is a table or turned."""
    rows, columns = parameter.tensor.shape
    if table or turned:
        return 1 if columns == end.width else None
    return 0 if rows == end.width else 1 if columns == end.width else None


def _picks(parameter: Parameter, axis: int | None, columns: Array) -> list[Op]:
    whole = axis is not None and np.array_equal(columns, np.arange(parameter.tensor.shape[axis]))
    return [] if axis is None or whole else [cut_op(axis, columns)]


def _first(count: int, size: int, axis: int) -> list[Op]:
    return [] if size == count else [Op("slice", axis=axis, start=0, stop=count)]


def _judged(
    made: Made, name: str, left: Parameter, right: Parameter, train_steps: tuple[Op, ...], infer_steps: tuple[Op, ...]
) -> WeightRow:
    """The row with what its contents say; a square matrix that agrees only when turned round is turned round."""
    ends = Cut(left.tensor, train_steps), Cut(right.tensor, infer_steps)
    equal = agree(*ends)
    elsewhere = False
    if not equal and len(left.tensor.shape) == 2:
        turned = Cut(left.tensor, (*train_steps, _TRANSPOSE))
        if agree(turned, ends[1]):
            train_steps, equal = turned.steps, True
        else:
            elsewhere = lies_elsewhere(*ends)
    return WeightRow(name, left, right, train_steps, infer_steps, equal, elsewhere, 0.99 if equal else min(_UNLIKE, made.confidence))


def _vector_rows(made: Made, left: Sequence[Parameter], right: Sequence[Parameter], *, beside_matrix: bool) -> Iterator[WeightRow]:
    """Biases beside a matrix, cut like its rows; without a matrix gains, then shifts, as recorded."""
    ends = _ends(made)
    kinds = ("bias",) if beside_matrix else ("weight", "bias")
    fitting = [
        [p for p in found if not beside_matrix or p.tensor.shape[0] == end.width] for found, end in zip((left, right), ends, strict=True)
    ]
    columns = ends[0].columns if made.columns is None else ends[0].columns[made.columns]
    for kind, (one, other) in zip(kinds, _matched(fitting[0], fitting[1], columns, ends[1].columns), strict=False):
        steps = [_vector_cut(parameter, at, end) for parameter, at, end in ((one, columns, ends[0]), (other, ends[1].columns, ends[1]))]
        yield _judged(made, f"{made.prefix}.{kind}", one, other, steps[0], steps[1])


def _vector_cut(parameter: Parameter, columns: Array, end: Producer) -> tuple[Op, ...]:
    size = parameter.tensor.shape[0]
    return () if size != end.width or np.array_equal(columns, np.arange(size)) else (cut_op(0, columns),)


def _matched(left: Sequence[Parameter], right: Sequence[Parameter], columns: Array, others: Array) -> Iterable[tuple[Parameter, Parameter]]:
    """Vectors of two entries: in their order, but equal ones first where one side has several."""
    if len(left) == len(right) == 1 or not left or not right:
        return list(zip(left, right, strict=False))
    pairs, free = [], list(right)
    for one in left:
        sizes = [other for other in free if _cut_size(one, columns) == _cut_size(other, others)]
        best = next((other for other in sizes if agree(Cut(one.tensor, ()), Cut(other.tensor, ()))), sizes[0] if sizes else None)
        if best is not None:
            free.remove(best)
            pairs.append((one, best))
    return pairs


def _cut_size(parameter: Parameter, columns: Array) -> int:
    return min(parameter.tensor.shape[0], len(columns))
