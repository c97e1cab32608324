"""Last-position logits: an output with one row a sequence against the last joined token of each in the other side's full tensor.

Two full tensors of unequal width (a padded vocabulary) are joined here too, the wider one cut.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from msprobe_files.errors import DumpError
from msprobe_files.operands import Op, Operand, Source

from dump_analysis import floats
from dump_analysis.floats import Array
from dump_analysis.mapping.joining.joined import Joined
from dump_analysis.mapping.naming.producers import Makers
from dump_analysis.mapping.recorded.cuts import cut_op, with_ops
from dump_analysis.mapping.recorded.nodes import Node, Recorded, SideNodes
from dump_analysis.tensors import Files, cut_stream

_NARROWEST = 16  # columns; fewer are no vocabulary
_PADDING = 256  # a padded vocabulary is at most twice as wide and this
_LIKE = 0.3  # cosine below which two rows are not the same
_LATEST = 4  # tails looked at, from the end


class TailRow(NamedTuple):
    """A row of logits. ``cosine``: of the two last rows. ``last_only``: sides that keep one row; ``padded``: the wider side.

    ``time``: when the trainer's were recorded.
    """

    train: Operand
    infer: Operand
    cosine: float
    last_only: tuple[str, ...]
    padded: str | None
    time: float


class _End(NamedTuple):
    """A value that may be logits: its last joined row, when it was recorded, and how to cut it. ``tail``: one row a sequence."""

    row: Array
    time: float
    operand: Operand
    tail: bool
    final: bool


def logits_row(rows: Sequence[Joined], train: SideNodes, infer: SideNodes) -> TailRow | None:
    """The row of logits, where the joined rows do not hold it: one side keeps the last position only, or pads its vocabulary."""
    used = {id(node) for row in rows for node in (row.train, row.infer)}
    padded = _padded(used, train, infer)
    if padded is not None:
        return padded
    ends = _later(_ends(train), [row.train for row in rows]), _later(_ends(infer), [row.infer for row in rows])
    best = max(_pairs(*ends), key=lambda pair: (_likeness(*pair), pair[0].time), default=None)
    if best is None or _likeness(*best) <= _LIKE:
        return None
    return _row(*best, train.window.lasts)


def _later(ends: Sequence[_End], nodes: Sequence[Node]) -> list[_End]:
    """Those that come after all joined rows: an expert that one token goes through returns one row too."""
    last = max((node.time for node in nodes), default=0.0)
    return [end for end in ends if end.time >= last]


def _likeness(left: _End, right: _End) -> float:
    """Cosine over the common columns; the last tensors of both sides pass whatever a fault left of them."""
    width = min(len(left.row), len(right.row))
    found = cosine(left.row[:width], right.row[:width])
    return max(found, _LIKE + 0.01) if left.final and right.final else found


def cosine(x: Array, y: Array) -> float:
    """Of two arrays of one shape, 0 where one is zero."""
    size = float(np.linalg.norm(x)) * float(np.linalg.norm(y))
    return float((x.ravel().astype(np.float64) @ y.ravel().astype(np.float64)) / size) if size else 0.0


def _pairs(left: Sequence[_End], right: Sequence[_End]) -> Iterator[tuple[_End, _End]]:
    """Pairs of which one is a tail; a full tensor may be wider than the tail, whose side computed no padded columns."""
    for one in left:
        for other in right:
            widths = len(one.row), len(other.row)
            narrow, wide = min(widths), max(widths)
            fits = narrow >= _NARROWEST and wide <= 2 * narrow + _PADDING
            if fits and ((one.tail and (other.tail or widths[0] == narrow)) or (other.tail and widths[1] == narrow)):
                yield one, other


def _ends(side: SideNodes) -> list[_End]:
    """Tails and full tensors of a side, the latest first among the tails."""
    nodes = [node for node in side.nodes if node.combine is None and node.kind != "sum"]
    tails = [end for record in sorted(side.tails, key=lambda tail: -tail.spot.time)[:_LATEST] if (end := _tail(side, record)) is not None]
    last = max((node.time for node in nodes), default=0.0)
    last = max([last, *(end.time for end in tails)])
    makers = Makers(side)
    full = [_End(node.sample[-1], node.time, makers.operand(node, None), False, node.time >= last) for node in nodes]
    return [end._replace(final=end.time >= last) for end in tails] + full


def _tail(side: SideNodes, record: Recorded) -> _End | None:
    """The rows of the joined sequences in an output with one row a sequence; None where its rows are not that."""
    count, ours = side.window.ran, side.window.numbers
    shape = record.tensor.shape
    width = next((size for size in reversed(shape) if size != 1), 0)
    if width == 0 or record.tensor.elements != count * width:
        return None
    steps: tuple[Op, ...] = () if shape == (count, width) else (Op("reshape", shape=(count, width)),)
    if ours != tuple(range(count)):
        steps = (*steps, cut_op(0, ours))
    files = Files()
    try:
        stream = cut_stream(files, record.tensor, steps)
        last = width * (len(ours) - 1)
        row = floats.values(stream.read(last, last + width), stream.dtype).astype(np.float32)
    except DumpError:
        return None  # the comparison names the file
    finally:
        files.close()
    if not np.isfinite(row).all():
        return None
    return _End(row, record.spot.time, Operand([Source(record.record.name, None, None, steps)]), True, False)


def _row(left: _End, right: _End, lasts: Array) -> TailRow:
    width = min(len(left.row), len(right.row))
    made = []
    for end in (left, right):
        ops = [] if len(end.row) == width else [Op("slice", axis=1, start=0, stop=width)]
        ops += [] if end.tail else [cut_op(0, lasts)]
        made.append(with_ops(end.operand, *ops))
    kept = tuple(label for label, end in (("train", left), ("infer", right)) if end.tail)
    wider = None if len(left.row) == len(right.row) else "train" if len(left.row) > width else "infer"
    return TailRow(made[0], made[1], cosine(left.row[:width], right.row[:width]), kept, wider, left.time)


def _padded(used: set[int], train: SideNodes, infer: SideNodes) -> TailRow | None:
    """The last full tensors of both sides where one is wider."""
    ends = [max((node for node in side.nodes if node.kind == "one"), key=lambda node: node.time, default=None) for side in (train, infer)]
    left, right = ends
    if left is None or right is None or id(left) in used or id(right) in used or left.width == right.width:
        return None
    width = min(left.width, right.width)
    found = cosine(left.sample[:, :width], right.sample[:, :width])
    if width < _NARROWEST or max(left.width, right.width) > 2 * width + _PADDING or found <= _LIKE:
        return None
    made = [_to_width(node, width) for node in (left, right)]
    return TailRow(made[0], made[1], found, (), "train" if left.width > width else "infer", left.time)


def _to_width(node: Node, width: int) -> Operand:
    operand = Operand(node.sources, node.combine)
    return operand if node.width == width else with_ops(operand, Op("slice", axis=1, start=0, stop=width))
