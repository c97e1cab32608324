"""What a mapping says of tokens: which rows were joined, ids that are not compared, tokens of which one side has no logits."""

from collections.abc import Sequence

import msgspec
from msprobe_files.operands import Operand

from dump_analysis.artefacts.common import Worded
from dump_analysis.artefacts.semantic_mapping import MissingRow, Row, TokenCoverage, Tokens
from dump_analysis.mapping.joining.joined import JoinedSides
from dump_analysis.mapping.naming.gaps import Extra
from dump_analysis.mapping.naming.tails import TailRow
from dump_analysis.wording import word


def tokens_of(joined: JoinedSides, shifted: Sequence[Worded]) -> Tokens:
    """The joined rows of each side as [sequence, start, stop], sequence by sequence, and what is odd about them."""
    tokens = joined.tokens
    remarks = [*tokens.remarks, *shifted]
    remarks += [word("cached_tokens", side=tokens.cached[0], n=tokens.cached[1])] if tokens.cached is not None else []
    remarks += [tokens.unnamed.reason] if tokens.unnamed is not None else []
    remarks += [] if tokens.matches == tokens.joined else [word("ids_differ", n=tokens.joined - tokens.matches, of=tokens.joined)]
    coverage = TokenCoverage(tokens.joined, tokens.train_total, tokens.infer_total)
    train, infer = ([[n, run[at], run[at] + run.length] for n, run in enumerate(tokens.runs)] for at in (0, 1))
    return Tokens(train, infer, coverage, remarks)


def with_open_ids(joined: JoinedSides, rows: list[Row], missing: list[MissingRow]) -> tuple[list[Row], list[MissingRow]]:
    """Where several forwards match equally, the row of the ids becomes a gap that names the ids of all; where there is none, it is one."""
    tokens = joined.tokens
    if tokens.unnamed is not None:
        later = [msgspec.structs.replace(row, order=row.order + 1) for row in rows]
        after = [msgspec.structs.replace(row, order=row.order + 1) for row in missing]
        return later, [MissingRow("input_ids", 0, *tokens.unnamed), *after]
    if tokens.alike is None:
        return rows, missing
    gaps = [MissingRow(row.boundary, row.order, *tokens.alike) for row in rows if row.boundary == "input_ids"]
    return [row for row in rows if row.boundary != "input_ids"], [*gaps, *missing]


def without_cached(joined: JoinedSides) -> list[Extra]:
    """The first tokens of which a side has no rows, as it took them from a cache: a gap that an equal rest does not close."""
    if joined.tokens.cached is None:
        return []
    side, n = joined.tokens.cached
    label = "train" if side == "infer" else "infer"
    operand: Operand | None = getattr(joined, label).ids
    names = {side: [], label: [source.name for source in operand.sources] if operand is not None else []}
    return [Extra(-1, MissingRow("input_ids.cached_tokens", 0, word("cached_tokens", side=side, n=n), names["train"], names["infer"]))]


def row_before(joined: JoinedSides, time: float) -> int:
    """Index of the last joined row whose value the trainer has by a time, -1 before all of them."""
    return sum(row.train.ready <= time for row in joined.rows) - 1


def without_logits(joined: JoinedSides, tail: TailRow | None) -> list[Extra]:
    """The joined tokens whose logits one side alone has; nothing where both have all of them or the last only."""
    left = joined.tokens.joined - len(joined.tokens.runs)
    if tail is None or len(tail.last_only) != 1 or not left:
        return []
    names = {label: [source.name for source in operand.sources] for label, operand in (("train", tail.train), ("infer", tail.infer))}
    names[tail.last_only[0]] = []
    reason = word("other_rows", side=tail.last_only[0], n=left)
    return [Extra(row_before(joined, tail.time), MissingRow("logits.other_tokens", 0, reason, names["train"], names["infer"]))]
