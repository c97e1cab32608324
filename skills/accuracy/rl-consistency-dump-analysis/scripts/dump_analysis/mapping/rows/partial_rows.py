"""Where ranks of a side are missing: only what all ranks hold alike is compared, what needs a matrix becomes a gap."""

from collections.abc import Mapping, Sequence

from dump_analysis.artefacts.semantic_mapping import MissingRow, Row
from dump_analysis.mapping.joining.joined import JoinedSides
from dump_analysis.mapping.naming.producers import Producer
from dump_analysis.wording import word

_Ends = tuple[Producer | None, Producer | None]
# What every rank of a tensor parallel run holds whole: inputs, the residual stream and its norms, what the router says.
_WHOLE = {
    *("input_ids", "positions", "embedding", "input_norm", "post_norm", "attn_post_norm", "mlp_post_norm", "final_norm"),
    *("resid_attn", "resid_mlp"),
}


def whole_rows(joined: JoinedSides, rows: list[Row], makers: Mapping[str, _Ends]) -> tuple[list[Row], list[MissingRow]]:
    """The rows that no matrix made, and gaps for the others; all rows where no rank is missing. ``makers``: of each boundary."""
    if joined.partial is None:
        return rows, []
    cut = {name for name in makers if name.rpartition(".")[2] not in _WHOLE and name.removesuffix(".out").rpartition(".")[2] not in _WHOLE}
    return [row for row in rows if row.boundary not in cut], _gaps(joined, [row for row in rows if row.boundary in cut])


def whole_weights(joined: JoinedSides, rows: list[Row]) -> tuple[list[Row], list[MissingRow]]:
    """Likewise for weights: those beside a matrix are cut with it, norms are whole on every rank."""
    if joined.partial is None:
        return rows, []
    holders = _holders(joined)
    cut = [row for row in rows if row.module is None or {row.module.train, row.module.infer} & holders]
    return [row for row in rows if row not in cut], _gaps(joined, cut)


def _holders(joined: JoinedSides) -> set[str]:
    """Entries that hold a matrix."""
    return {parameter.entry for side in (joined.train, joined.infer) for parameter in side.parameters if len(parameter.tensor.shape) > 1}


def _gaps(joined: JoinedSides, rows: Sequence[Row]) -> list[MissingRow]:
    if joined.partial is None:
        return []
    reason = word("holds_a_part", side=joined.partial.side)
    names = [[source.name for source in operand.sources] for row in rows for operand in (row.train, row.infer)]
    return [MissingRow(row.boundary, row.order, reason, *names[2 * at : 2 * at + 2]) for at, row in enumerate(rows)]
