"""The recorded tensors of one side as *nodes*: distinct matrices of [tokens, columns], each with every place that recorded it.

Only a sample of token rows is held.  Tensors whose sampled values are equal are one node with several spots, and
that is the data flow: who made whose input.
"""

import hashlib
from bisect import insort_left
from dataclasses import dataclass, field
from operator import attrgetter
from typing import NamedTuple

import numpy as np
from msprobe_files.operands import Operand, Source
from msprobe_files.units import Record, Unit

from dump_analysis.floats import Array
from dump_analysis.mapping.recorded.times import Times
from dump_analysis.sides import Side
from dump_analysis.tensors import Tensor

Slot = tuple[float, str, str, str]  # module inside the repeating block, io, path, kind


class Spot(NamedTuple):
    """Where a node's tensor was recorded. ``entry`` is a key, never read; ``leaf``: the entry has no recorded child.

    ``time``: inputs at their entry's start, outputs at its end; parts a little after.  ``io``: input, kwargs or output.
    ``path``: the place among the arguments or results, with ``[half0]``, ``[part64]`` or ``[slice64]`` for cut columns.
    """

    time: float
    entry: str
    io: str
    path: str
    leaf: bool


@dataclass(eq=False)
class Node:
    """A distinct tensor of one side as [joined tokens, columns].

    ``sample``: float32 [sampled tokens, columns], the same tokens on both sides, the last joined token last.
    ``sources`` and ``combine`` (None, ``sum``, or ``cat`` on axis 1) give all of its tokens.  ``kind``: ``one`` (as
    recorded), ``half`` (a factor of act(a)·b), ``part`` (other columns of a recorded tensor), ``sum`` (of several ranks, or of two
    outputs of one entry).
    ``spots``: every place, earliest first; ``time``: of the earliest; ``sum_time``: when the addends of a residual sum
    exist, None for others.  ``layer`` and ``slot``: its place in the repeating block, None outside.
    ``union``: all columns beside one part, worth a mapping row only where the other side recorded them as one tensor.
    """

    sample: Array
    sources: list[Source]
    combine: str | None
    kind: str
    spots: list[Spot]
    time: float
    layer: int | None = None
    slot: Slot | None = None
    sum_time: float | None = None
    union: bool = False

    @property
    def width(self) -> int:
        return int(self.sample.shape[1])

    @property
    def ready(self) -> float:
        """When the value exists: sides record a residual sum at different places, its addends at the same."""
        return self.time if self.sum_time is None else self.sum_time


class Parameter(NamedTuple):
    """A recorded parameter of an entry and its file. ``path``: its name inside the entry, a key."""

    entry: str
    path: str
    record: Record
    tensor: Tensor


class Recorded(NamedTuple):
    """A recorded activation and its file."""

    spot: Spot
    record: Record
    tensor: Tensor


class SideRecords(NamedTuple):
    """What one unit recorded in its forward entries, in the order of their starts; what has no readable file is left out."""

    side: Side
    unit: Unit
    times: Times
    activations: list[Recorded]
    parameters: list[Parameter]


class Window(NamedTuple):
    """Which of a side's ``total`` token rows are joined: ``start … stop``, then those of ``further`` sequences, in this order.

    ``batch``: size of the axis of sequences that the rows are made of, 1 without one.  ``ran``: how many sequences the side ran;
    ``numbers``: which of them each joined run of rows is of.
    """

    start: int
    stop: int
    total: int
    batch: int
    further: tuple[tuple[int, int], ...] = ()
    ran: int = 1
    numbers: tuple[int, ...] = (0,)

    @property
    def runs(self) -> tuple[tuple[int, int], ...]:
        """The joined rows as [start, stop) of each sequence."""
        return ((self.start, self.stop), *self.further)

    @property
    def rows(self) -> Array:
        """The number of each joined row among the side's."""
        return np.concatenate([np.arange(*run) for run in self.runs])

    @property
    def lasts(self) -> Array:
        """The number among the joined rows of the last one of each sequence."""
        return np.cumsum([stop - start for start, stop in self.runs]) - 1


@dataclass(eq=False)
class SideNodes:
    """One side as nodes.

    ``picked``: numbers of the sampled tokens among the joined ones.  ``ids``, ``positions``: operands of the joined tokens.
    ``tails``: float outputs whose rows are not the tokens.  ``nodes``: in the order in which they were found.
    ``sums``: id of a node -> the nodes that it is the sum of.  ``layers``: how often the repeating block occurs; ``modules``: entry ->
    its number inside the block.
    ``at``: (entry, io, path) -> the node recorded or cut there.  ``known``: digest -> node, the latest.  ``owners``: entries with
    parameters.
    """

    records: SideRecords
    window: Window
    picked: Array
    ids: Operand | None
    positions: Operand | None
    tails: list[Recorded] = field(default_factory=list)
    nodes: list[Node] = field(default_factory=list)
    sums: dict[int, tuple[Node, ...]] = field(default_factory=dict)
    layers: int = 0
    modules: dict[str, float] = field(default_factory=dict)
    at: dict[tuple[str, str, str], Node] = field(default_factory=dict)
    known: dict[tuple[tuple[int, ...], bytes], Node] = field(default_factory=dict)
    owners: frozenset[str] = field(init=False)

    def __post_init__(self) -> None:
        self.owners = frozenset(parameter.entry for parameter in self.records.parameters)

    @property
    def parameters(self) -> list[Parameter]:
        return self.records.parameters


def add(side: SideNodes, node: Node) -> Node | None:
    """Put a node of one spot into its side; the node that stands for it there, None where its sample holds only zeros.

    A node that is known gets the spot (unless it is only cut out there) and the operand with fewer ops of the two.
    """
    if not node.sample.any():
        return None
    key, spot = key_of(node.sample), node.spots[0]
    known = side.known.setdefault(key, node)
    if known is not node and _was_skipped(side, known, spot):
        known = side.known[key] = node
    if known is node:
        side.nodes.append(node)
    else:
        if node.kind != "part":
            # Of entries that end at once the inner one, which starts last, comes first: never by name.
            insort_left(known.spots, spot, key=attrgetter("time"))
        known.time = min(known.time, node.time)
        if _cost(node) < _cost(known):
            known.sources, known.combine, known.kind = node.sources, node.combine, node.kind
    side.at.setdefault((spot.entry, spot.io, spot.path), known)
    return known


def _was_skipped(side: SideNodes, known: Node, spot: Spot) -> bool:
    """Whether a module that has parameters hands out what it was handed: it makes a value of its own, equal or not.

    Else a norm that is left out on one side would bear the name of the projection before it.
    """
    returned = spot.io == "output" and spot.path == "0" and spot.leaf and spot.entry in side.owners
    return returned and any(other.entry == spot.entry and other.io != "output" for other in known.spots)


def key_of(sample: Array) -> tuple[tuple[int, ...], bytes]:
    """What tells a sample from others: its shape and a digest of its bytes."""
    return sample.shape, hashlib.blake2b(np.ascontiguousarray(sample).tobytes(), digest_size=16).digest()


def _cost(node: Node) -> tuple[int, int]:
    return len(node.sources), sum(len(source.steps or ()) for source in node.sources)


def by_time(side: SideNodes) -> list[Node]:
    """The nodes in the order in which their values exist."""
    return sorted(side.nodes, key=lambda node: node.time)
