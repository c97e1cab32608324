"""How the ranks of one stage hold every tensor, as it was recorded: copies, columns, rows of tokens, or partial sums; parts in order."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from math import prod
from typing import NamedTuple

import numpy as np
from msprobe_files import names
from msprobe_files.errors import DumpError
from msprobe_files.operands import Op

from dump_analysis import floats
from dump_analysis.artefacts.assembly_plan import How
from dump_analysis.floats import Array
from dump_analysis.mapping.ranks.experts import Apart, around
from dump_analysis.mapping.ranks.reference import Reference
from dump_analysis.mapping.ranks.splits import Place, Split, Splits
from dump_analysis.mapping.ranks.stages import Rank, near
from dump_analysis.mapping.recorded.dataflow import split_halves
from dump_analysis.mapping.recorded.nodes import Parameter, Recorded, Window
from dump_analysis.mapping.recorded.token_rows import matrix_ops
from dump_analysis.tensors import Tensor, same_file


class Held(NamedTuple):
    """How a tensor lies on the ranks. ``parts``: (number of the rank in the stage, ops), in order; ``steps``: ops after joining."""

    how: How
    axis: int | None
    parts: list[tuple[int, tuple[Op, ...]]]
    steps: tuple[Op, ...] = ()


class Shards(NamedTuple):
    """``held``: tensor's name -> how it lies; ``unplaced``: names of tensors for which nothing fits; ``copies``: what should be equal.

    ``cut_tokens``: whether ranks hold parts of the tokens (sequence parallel).
    """

    held: dict[str, Held]
    unplaced: list[str]
    copies: list[str]
    cut_tokens: bool


def shards_of(stage: Sequence[Rank], reference: Reference | None = None, apart: Apart | None = None, *, routed: bool = False) -> Shards:
    """How every tensor of a stage lies on its ranks. ``reference``: a checkpoint that holds every matrix whole.

    ``apart``: the experts that were taken out of the stage; ``routed``: the stage is such experts.
    """
    for rank in stage:
        split_halves(rank.nodes)
    found = _Stage(stage, reference, apart, routed=routed)
    for place, each in found.activations():
        found.put(next(iter(each.values())).record.name, _or_none(partial(found.activation, place, each)), len(each))
    for held in found.parameters():
        found.put(next(iter(held.values())).record.name, _or_none(partial(found.parameter, held)), len(held))
    return Shards(found.held, found.unplaced, found.copies, found.cut_tokens)


def _or_none(look: Callable[[], Held | None]) -> Held | None:
    """None where a file cannot be read: nothing is known of how it lies."""
    try:
        return look()
    except DumpError:
        return None


class _Stage:
    """The ranks of a stage while their tensors are looked at, earliest first: what went before tells what comes after."""

    def __init__(self, stage: Sequence[Rank], reference: Reference | None, apart: Apart | None, *, routed: bool) -> None:
        self.ranks, self._reference = stage, reference
        self._holders = [group[0] for group in apart.groups] if apart is not None else []
        self._around = around(apart, stage) if apart is not None else set()
        self.held: dict[str, Held] = {}
        self.unplaced: list[str] = []
        self.copies: list[str] = []
        self.cut_tokens = False
        self._lost: set[str] = set()
        self._window = stage[0].nodes.window
        self._splits = Splits(stage, reference, routed=routed)

    def put(self, name: str, held: Held | None, ranks: int) -> None:
        if held is None:
            self.unplaced.append(name)
            parsed = names.parse_tensor(name)
            self._lost |= {parsed.entry} if parsed is not None and parsed.category == "output" else set()
            return
        self.held[name] = held
        if held.how == "replicated" and ranks > 1:
            self.copies.append(name)

    def activations(self) -> list[tuple[Place, dict[int, Recorded]]]:
        """What the ranks recorded at one place, earliest first: number of the rank -> what it recorded."""
        found: dict[Place, dict[int, Recorded]] = {}
        for number, rank in enumerate(self.ranks):
            for one in sorted(rank.member.records.activations, key=lambda one: one.spot.time):
                found.setdefault(one.spot[1:4], {}).setdefault(number, one)
        return sorted(found.items(), key=lambda item: next(iter(item[1].values())).spot.time)

    def parameters(self) -> list[dict[int, Parameter]]:
        found: dict[tuple[str, str], dict[int, Parameter]] = {}
        for number, rank in enumerate(self.ranks):
            for one in rank.member.records.parameters:
                found.setdefault((one.entry, one.path), {}).setdefault(number, one)
        return list(found.values())

    def _of_one(self, held: Mapping[int, Recorded | Parameter]) -> Held | None:
        """What one rank alone holds (an expert, the words of all ranks); nothing where another one names it and its file cannot be read."""
        ((number, one),) = held.items()
        name, entry = one.record.name, one.record.entry
        named = [rank for rank in self.ranks if any(name == record.name for record in rank.member.unit.entries.get(entry, ()))]
        return Held("stage", None, [(number, ())]) if len(named) == 1 else None

    # --- activations ---

    def activation(self, place: Place, held: Mapping[int, Recorded]) -> Held | None:
        if len(held) == 1:
            return self._of_one(held)
        if len(held) < len(self.ranks):
            return None
        each = list(held.values())
        samples = [self._sample(rank, place, one) for rank, one in zip(self.ranks, each, strict=True)]
        if all(sample is not None for sample in samples):
            split = self._splits.of(place, [sample for sample in samples if sample is not None], each[0].tensor.dtype)
            return _placed(split, [one.tensor.shape for one in each], self._window)
        return self._other(each) or (self._by_experts(each) if place[0] in self._around else None)

    def _by_experts(self, each: Sequence[Recorded]) -> Held | None:
        """Rows or counts of all experts of a rank, one expert after the other: those of the ranks follow each other."""
        shapes = [each[rank].tensor.shape for rank in self._holders]
        if len(shapes) < 2 or len({shape[1:] for shape in shapes}) > 1 or not shapes[0]:
            return None
        counted = len(shapes[0]) == 1 and len(set(shapes)) == 1
        routed = sum(shape[0] for shape in shapes) % (self._window.total // self._window.batch) == 0
        return Held("cat", 0, [(rank, ()) for rank in self._holders]) if counted or routed else None

    def _sample(self, rank: Rank, place: Place, one: Recorded) -> Array | None:
        """The sampled tokens of what a rank holds; None where its rows are not the tokens."""
        node = rank.nodes.at.get(place)
        if node is not None:
            return node.sample
        if floats.FORMATS[one.tensor.dtype].kind != "float" or matrix_ops(one.tensor.shape, self._window) is None:
            return None
        return np.zeros((len(rank.nodes.picked), one.tensor.elements // self._window.total), np.float32)

    def _other(self, each: Sequence[Recorded]) -> Held | None:
        """What is not [tokens, columns] on every rank: copies, rows of tokens, or columns of one row a sequence."""
        if all_equal([one.tensor for one in each]):
            return _copies(len(each))
        shapes = [one.tensor.shape for one in each]
        length = self._window.total // self._window.batch
        axis = _joins_on(shapes, length)
        if axis is not None:
            self.cut_tokens = True
            return Held("cat", axis, [(rank, ()) for rank in range(len(each))])
        rows = prod(shapes[0][:-1])
        told = rows == self._window.ran or shapes[0].count(length) > 1  # one row a sequence, or scores of tokens by tokens
        return _beside(shapes, length) if told and floats.FORMATS[each[0].tensor.dtype].kind == "float" else None

    # --- parameters ---

    def parameter(self, held: Mapping[int, Parameter]) -> Held | None:
        if len(held) == 1:
            return self._of_one(held)
        if len(held) < len(self.ranks):
            return None
        each = list(held.values())
        tensors = [one.tensor for one in each]
        shapes = [tensor.shape for tensor in tensors]
        if all_equal(tensors):
            return _copies(len(each))
        entry = each[0].entry
        if entry in self._lost or len({len(shape) for shape in shapes}) > 1:
            return None  # experts of other numbers, say: what they return fits nowhere either
        return self._vector(entry, shapes) if len(shapes[0]) == 1 else self._matrix(entry, tensors)

    def _vector(self, entry: str, shapes: Sequence[tuple[int, ...]]) -> Held | None:
        """A vector that differs between ranks: cut as what the entry returns is, or a copy that should not differ."""
        made = self._splits.made_by(entry)
        lengths = [shape[0] for shape in shapes]
        if made is None:
            return None
        if made.how == "cat" and made.widths == lengths:
            return Held("cat", 0, [(rank, _slice(0, start, stop, lengths[rank])) for rank, start, stop in made.runs])
        if len(set(lengths)) == 1 and all(width % lengths[0] == 0 for width in made.widths) and sum(lengths) != made.whole:
            return _copies(len(shapes))  # of every head, or of all columns
        return Held("cat", 0, [(rank, ()) for rank in range(len(shapes))]) if sum(lengths) == made.whole else None

    def _matrix(self, entry: str, tensors: Sequence[Tensor]) -> Held | None:
        """A matrix that differs between ranks: cut by rows or columns, or, where each is as large as the whole, a copy."""
        shapes = [tensor.shape for tensor in tensors]
        made, taken = self._splits.made_by(entry), self._splits.taken_by(entry)
        if made is not None and taken is not None and all(shape == (made.whole, taken.whole) for shape in shapes):
            return _copies(len(shapes))
        if taken is None and len(set(shapes)) == 1 and near(tensors):
            return _copies(len(shapes))  # a table of rows for ids
        axis = 1 if len(shapes[0]) == 2 and self._splits.takes_columns(entry) else 0
        if len(shapes[0]) > 2:
            axis = self._axis_of_stack(entry, shapes[0])
        if len(shapes[0]) > 2 and axis == 1 and self._is_pair(entry, shapes[0]):
            half = shapes[0][1] // 2
            return Held("cat", 1, [(rank, _slice(1, at, at + half, 2 * half)) for at in (0, half) for rank in range(len(shapes))])
        if len({shape[:axis] + shape[axis + 1 :] for shape in shapes}) > 1:
            return None
        if made is not None and made.how == "cat" and axis == 0 and made.widths == [shape[0] for shape in shapes]:
            return Held("cat", 0, [(rank, _slice(0, start, stop, shapes[rank][0])) for rank, start, stop in made.runs])
        told = self._reference.runs(tensors) if self._reference is not None and len(shapes[0]) == 2 else None
        if axis == 0 and told is not None:
            return Held("cat", 0, [(rank, _slice(0, start, stop, shapes[rank][0])) for rank, start, stop in told])
        return Held("cat", axis, [(rank, ()) for rank in range(len(shapes))])

    def _is_pair(self, entry: str, shape: tuple[int, ...]) -> bool:
        """Whether stacked matrices [experts, rows, columns] are gate and up: the entry holds others that take half of the rows."""
        others = [one.tensor.shape for one in self.ranks[0].member.records.parameters if one.entry == entry and len(one.tensor.shape) == 3]
        return any(other[0] == shape[0] and 2 * other[2] == shape[1] for other in others)

    def _axis_of_stack(self, entry: str, shape: tuple[int, ...]) -> int:
        """Of stacked experts [experts, rows, columns]: other experts on each rank, unless the columns or rows are cut."""
        width = next((one.tensor.shape[-1] for one in self.ranks[0].member.records.activations if one.spot.entry == entry), 0)
        routed = {one.tensor.shape[-1] for one in self.ranks[0].member.records.activations if one.tensor.shape}
        if shape[0] * len(self.ranks) in routed:
            return 0
        return 1 if shape[2] == width else 2


def token_axis(shape: tuple[int, ...], total: int) -> int | None:
    """The axis whose items are tokens, or several items a token (heads); None where there is none."""
    if total in shape:
        return shape.index(total)
    return 0 if total > 1 and shape and shape[0] and shape[0] % total == 0 else None


def _copies(ranks: int) -> Held:
    return Held("replicated", None, [(rank, ()) for rank in range(ranks)])


def all_equal(tensors: Sequence[Tensor]) -> bool:
    """Whether tensors hold the same bytes. Raises DumpError where a file cannot be read."""
    first = tensors[0]
    return all(other.shape == first.shape and other.dtype == first.dtype and same_file(first, other) for other in tensors[1:])


def _joins_on(shapes: Sequence[tuple[int, ...]], length: int) -> int | None:
    """The axis on which parts make up all tokens, all others being equal; None where there is none."""
    for axis in range(min(2, *(len(shape) for shape in shapes))):
        others = {shape[:axis] + shape[axis + 1 :] for shape in shapes}
        if len(others) == 1 and sum(shape[axis] for shape in shapes) == length:
            return axis
    return None


def _beside(shapes: Sequence[tuple[int, ...]], length: int) -> Held | None:
    """Parts side by side on the last axis that is not tokens: words of logits, heads of attention scores [1, heads, tokens, tokens]."""
    first = shapes[0]
    axis = max((at for at, size in enumerate(first) if size not in (1, length)), default=None)
    if axis is None or len({shape[:axis] + shape[axis + 1 :] for shape in shapes}) > 1:
        return None
    return Held("cat", axis, [(rank, ()) for rank in range(len(shapes))])


# --- the recorded form ---


def _placed(split: Split, shapes: Sequence[tuple[int, ...]], window: Window) -> Held | None:
    """What a split of [tokens, columns] says of tensors as they were recorded."""
    if split.how == "replicated":
        return _copies(len(shapes))
    if split.how == "sum":
        return Held("sum", None, [(rank, ()) for rank in range(len(shapes))]) if len(set(shapes)) == 1 else None
    forms = [_columns_form(shape, window) for shape in shapes]
    before, axis, unit = forms[0]
    if any(form[1:] != (axis, unit) for form in forms) or any(start % unit or stop % unit for _, start, stop in split.runs):
        return None
    parts = []
    for rank, start, stop in split.runs:
        size = prod(shapes[rank]) // window.total // unit
        parts.append((rank, (*forms[rank][0], *_slice(axis, start // unit, stop // unit, size))))
    heads = sum(stop - start for _, start, stop in split.runs) // unit
    flat = len(before) > 0 and before[0].op == "reshape" and len(shapes[0]) == 2
    return Held("cat", axis, parts, (Op("reshape", shape=(window.total * heads, unit)),) if flat else ())


def _columns_form(shape: tuple[int, ...], window: Window) -> tuple[tuple[Op, ...], int, int]:
    """Ops, the axis of columns (or heads) and how many columns an item of it is: as recorded where one axis holds them, else a matrix."""
    total = window.total
    long = [axis for axis, size in enumerate(shape) if size != 1]
    if len(shape) == 2 and shape[0] != total and shape[0] % total == 0:  # [tokens · heads, D]
        return (Op("reshape", shape=(total, shape[0] // total, shape[1])),), 1, shape[1]
    if window.batch == 1 and long and shape[long[0]] == total:
        after = [axis for axis in long if axis > long[0]]
        if after:
            return (), after[0], prod(shape[after[0] + 1 :])
    return matrix_ops(shape, window) or (), 1, 1


def _slice(axis: int, start: int, stop: int, size: int) -> tuple[Op, ...]:
    return () if (start, stop) == (0, size) else (Op("slice", axis=axis, start=start, stop=stop),)
