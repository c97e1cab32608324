"""Which tokens a mapping takes, as slices."""

from collections.abc import Sequence
from itertools import pairwise

from msprobe_files.operands import Operand

from dump_analysis.artefacts.report_source import Count, Unknown

from .facts import Facts

Slice = list[int] | Unknown | None


def one_slice(pieces: Sequence[Sequence[int]]) -> list[int] | None:
    """The tokens of one sequence as [start, stop]; None where they are no one slice. ``pieces``: [sequence, start, stop]."""
    if not pieces or len({piece[0] for piece in pieces}) > 1:
        return None
    ordered = sorted([piece[1], piece[2]] for piece in pieces)
    broken = any(before[1] != after[0] for before, after in pairwise(ordered))
    return None if broken else [ordered[0][0], ordered[-1][1]]


def logit_rows(facts: Facts) -> tuple[Slice, Count]:
    """The trainer's rows of the logits that were compared, and by how many rows the engine's stand later.

    ``unknown`` where the mapping does not tell: it has no logits, or takes single rows of them.
    """
    row = facts.row("logits")
    tokens = facts.mapping.tokens if facts.mapping else None
    if row is None or row.ops_applied is None or not isinstance(row.shape, list) or len(row.shape) != 2 or tokens is None:
        return "unknown", "unknown"
    count, joined = row.shape[0], (one_slice(tokens.train), one_slice(tokens.infer))
    train = _start(row.ops_applied.train, count, tokens.coverage.train)
    infer = _start(row.ops_applied.infer, count, tokens.coverage.infer)
    rows: Slice = [train, train + count] if train is not None else "unknown"
    if train is None or infer is None or joined[0] is None or joined[1] is None:
        return rows, "unknown"
    shift = (infer - joined[1][0]) - (train - joined[0][0])
    return rows, "unknown" if shift and count == 1 else shift  # a single row may be the last of its sequence, wherever it lies


def _start(operand: Operand, count: int, tokens: int) -> int | None:
    """The first token of ``count`` rows: as the operand cuts it, else all tokens, else the last ones, which an engine keeps.

    None where parts of it begin at other rows, or single rows are taken.
    """
    starts = set()
    for source in operand.sources:
        steps = source.steps or ()
        if any(op.op == "take" for op in steps):
            return None
        cuts = [op.start or 0 for op in steps if op.op == "slice" and (op.stop or 0) - (op.start or 0) == count]
        starts.add(cuts[-1] if cuts else tokens - count)
    return starts.pop() if len(starts) == 1 else None
