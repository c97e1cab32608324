"""One value a token that stands one token further on one side, as the log-probability of the next token may."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from msprobe_files.errors import DumpError
from msprobe_files.operands import Operand

from dump_analysis import floats, tensors
from dump_analysis.artefacts.common import Modules, Worded
from dump_analysis.artefacts.semantic_mapping import Row
from dump_analysis.floats import Array
from dump_analysis.mapping.joining.joined import JoinedSides
from dump_analysis.mapping.naming.gaps import Extra
from dump_analysis.mapping.naming.producers import maker_of
from dump_analysis.mapping.recorded.cuts import cut_op, with_ops
from dump_analysis.mapping.recorded.nodes import Node, SideNodes, Window
from dump_analysis.mapping.rows.token_notes import row_before
from dump_analysis.sides import resolve
from dump_analysis.tensors import Files, cut_stream, elements_of
from dump_analysis.wording import word

_CLOSE = 0.05  # relative L2 of values that are one token apart
_CLEARER = 10  # times as close as without the shift
_CONFIDENCE = 0.9
_NAME = "logprobs"


class Shifted(NamedTuple):
    """``extras``: the rows; ``dropped``: names of the joined rows that they replace; ``remarks``: that they are shifted."""

    extras: list[Extra]
    dropped: set[str]
    remarks: list[Worded]


def shifted_rows(joined: JoinedSides, names: Sequence[str]) -> Shifted:
    """Rows of values that agree one token apart and not as they stand: the first and last token of each sequence stand in none."""
    found = Shifted([], set(), [])
    taken = set(names)
    for train, infer, lag in _pairs(joined):
        name = _NAME if _NAME not in taken else train.sources[0].name
        taken.add(name)
        what = word("rows_shifted", lag=lag)
        first, second = (max(0, -lag), max(0, lag))
        operands = [
            with_ops(Operand(node.sources), cut_op(0, _inner(side.window, at, lag)))
            for node, side, at in ((train, joined.train, first), (infer, joined.infer, second))
        ]
        modules = Modules(maker_of(joined.train, train), maker_of(joined.infer, infer))
        row = Row(name, 0, operands[0], operands[1], ["values"], _CONFIDENCE, modules, what.text)
        found.extras.append(Extra(row_before(joined, train.ready), row))
        found.dropped.update(own for own, one in zip(names, joined.rows, strict=True) if one.train is train or one.infer is infer)
        found.remarks.append(word("alignment", boundary=name, what=what))
    return found


def _pairs(joined: JoinedSides) -> Iterator[tuple[Node, Node, int]]:
    """Nodes of one value a token that agree at a lag only."""
    sides = joined.train, joined.infer
    values = [[(node, made) for node in side.nodes if (made := _values(side, node)) is not None] for side in sides]
    left = list(values[1])
    for train, a in values[0]:
        for at, (infer, b) in enumerate(left):
            lag = _lag(a, b, sides[0].window)
            if lag:
                yield train, infer, lag
                del left[at]
                break


def _values(side: SideNodes, node: Node) -> Array | None:
    """All values of a node of one column; None for others, and for what only counts up."""
    if node.width != 1 or node.combine is not None or len(node.sources) != 1:
        return None
    place = resolve(side.records.side, node.sources[0])
    files = Files()
    try:
        if place is None:
            return None
        stream = cut_stream(files, tensors.described(place), node.sources[0].steps or ())
        made = floats.values(stream.read(0, elements_of(stream)), stream.dtype).astype(np.float64)
    except DumpError:
        return None  # the comparison says what is wrong with the file
    finally:
        files.close()
    return made if np.isfinite(made).all() and not (np.diff(made) > 0).all() else None


def _lag(a: Array, b: Array, window: Window) -> int:
    """The lag at which b holds what a holds, 0 where that is no better than without one: a[t] is b[t + lag]."""
    apart = {lag: _distance(a[_inner(window, max(0, -lag), lag)], b[_inner(window, max(0, lag), lag)]) for lag in (-1, 0, 1)}
    best = min((1, -1), key=lambda lag: apart[lag])
    return best if apart[best] < _CLOSE and apart[best] * _CLEARER < apart[0] else 0


def _inner(window: Window, start: int, lag: int) -> Array:
    """Numbers of the joined tokens that have a partner ``lag`` tokens on in their sequence, from its ``start``."""
    firsts = np.append(0, window.lasts[:-1] + 1)
    return np.concatenate([np.arange(low, high + 1 - abs(lag)) + start for low, high in zip(firsts, window.lasts, strict=True)])


def _distance(a: Array, b: Array) -> float:
    size = float(np.linalg.norm(a))
    return float(np.linalg.norm(b - a)) / size if size else float(np.linalg.norm(b) > 0)
