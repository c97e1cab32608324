"""Log-probabilities: what a module without parameters makes of logits, one value a token or one a word, joined by what it is.

Their values need not be alike (a temperature moves all of them) and their rows need not be the tokens (the last one has no next token), so
that neither signatures nor rows join them. They are told by shapes, by the logits they are made of, and by being at most nought.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from msprobe_files.errors import DumpError
from msprobe_files.operands import Op, Operand, Source

from dump_analysis import floats
from dump_analysis.artefacts.common import Modules
from dump_analysis.artefacts.semantic_mapping import Row
from dump_analysis.floats import Array
from dump_analysis.mapping.joining.joined import JoinedSides
from dump_analysis.mapping.naming.gaps import Extra
from dump_analysis.mapping.naming.tails import TailRow
from dump_analysis.mapping.recorded.cuts import cut_op
from dump_analysis.mapping.recorded.nodes import Recorded, SideNodes
from dump_analysis.mapping.rows.token_notes import row_before
from dump_analysis.sides import resolve
from dump_analysis.tensors import Files, cut_stream, elements_of

NAME = "logprobs"
_CONFIDENCE = 0.9


class LogProbs(NamedTuple):
    """``extras``: the row, if there is one; ``dropped``: names of the joined rows that it replaces."""

    extras: list[Extra]
    dropped: set[str]


class _Made(NamedTuple):
    """An output of log-probabilities: ``rows`` of them, of so many ``words`` each (1: one was looked up)."""

    recorded: Recorded
    rows: int
    words: int


def log_prob_rows(joined: JoinedSides, names: Sequence[str], tail: TailRow | None) -> LogProbs:
    """The row of log-probabilities of each token that has one after it, where each side made them once and alike."""
    if NAME in names:
        return LogProbs([], set())
    sides = (joined.train, joined.infer)
    operands = _logits(joined, names, tail)
    if operands is None:
        return LogProbs([], set())
    made = [_made(side, operand) for side, operand in zip(sides, operands, strict=True)]
    if any(len(found) != 1 for found in made) or (made[0][0].words == 1) != (made[1][0].words == 1):
        return LogProbs([], set())
    train, infer = made[0][0], made[1][0]
    words = min(train.words, infer.words)
    ends = [_operand(side, one, words) for side, one in zip(sides, (train, infer), strict=True)]
    modules = Modules(train.recorded.spot.entry, infer.recorded.spot.entry)
    row = Row(NAME, 0, ends[0], ends[1], ["structure", "dataflow"], _CONFIDENCE, modules, None)
    outputs = {one.recorded.record.name for one in (train, infer)}
    replaced = {
        name for name, one in zip(names, joined.rows, strict=True) if outputs & {node.sources[0].name for node in (one.train, one.infer)}
    }
    return LogProbs([Extra(row_before(joined, train.recorded.spot.time), row)], replaced)


def _logits(joined: JoinedSides, names: Sequence[str], tail: TailRow | None) -> tuple[Operand, Operand] | None:
    if tail is not None:
        return tail.train, tail.infer
    found = [row for name, row in zip(names, joined.rows, strict=True) if name == "logits"]
    return (Operand(found[0].train.sources), Operand(found[0].infer.sources)) if found else None


def _made(side: SideNodes, logits: Operand) -> list[_Made]:
    """Outputs that may be log-probabilities of a side: of leaves without parameters that were handed rows as wide as its logits."""
    place = resolve(side.records.side, logits.sources[0])
    width = (place.record.shape or (0,))[-1] if place is not None else 0
    own = {parameter.entry for parameter in side.records.parameters}
    handed = {
        one.spot.entry: one.tensor.elements // width
        for one in side.records.activations
        if width > 1 and one.spot.io != "output" and one.spot.leaf and _is_float(one) and one.tensor.shape[-1:] == (width,)
    }
    found = []
    for one in side.records.activations:
        rows = handed.get(one.spot.entry, 0)
        words = next((count for count in (1, width) if one.tensor.elements == rows * count), 0)
        if one.spot.io == "output" and one.spot.entry not in own and words and _is_float(one) and _fits(side, rows) and _below_nought(one):
            found.append(_Made(one, rows, words))
    return found


def _is_float(one: Recorded) -> bool:
    return not floats.is_integer(one.tensor.dtype)


def _fits(side: SideNodes, rows: int) -> bool:
    """Whether the rows are all of the side's, or all but the last of its only sequence."""
    window = side.window
    return rows == window.total or (rows == window.total - 1 and window.ran == window.batch == 1)


def _below_nought(one: Recorded) -> bool:
    """Whether no value is above nought, and some are below, as logarithms of probabilities are."""
    files = Files()
    try:
        stream = cut_stream(files, one.tensor, ())
        values = floats.values(stream.read(0, elements_of(stream)), stream.dtype).astype(np.float64)
    except DumpError:
        return False  # the comparison says what is wrong with the file
    finally:
        files.close()
    return bool((values <= 0.0).all() and (values < 0.0).any())


def _operand(side: SideNodes, made: _Made, words: int) -> Operand:
    """The joined tokens that have one after them in their sequence, as [tokens] or [tokens, words]."""
    shape = (made.rows,) if made.words == 1 else (made.rows, made.words)
    steps = [Op("reshape", shape=shape), cut_op(0, _with_next(side))]
    steps += [Op("slice", axis=1, start=0, stop=words)] if made.words != words else []
    return Operand([Source(made.recorded.record.name, None, None, tuple(steps))])


def _with_next(side: SideNodes) -> Array:
    return np.concatenate([np.arange(start, stop - 1) for start, stop in side.window.runs])
