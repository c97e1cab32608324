"""Which token positions differ, by layer: numbers of positions and sizes only, never what stands there."""

from typing import NamedTuple

from dump_analysis.artefacts.boundary_results import BoundaryResult
from dump_analysis.boundaries import layer_of
from dump_analysis.report.evidence import Evidence
from dump_analysis.report.said import Voice, count
from dump_analysis.wording import word

_PLACE = "resid_mlp"


class Band(NamedTuple):
    """One layer: the largest relative error of a token in each bin, None where nothing differs or the train side is zero."""

    layer: int
    largest: tuple[float | None, ...]


class Positions(NamedTuple):
    """``edges``: one more than bins; ``borders``: positions at which another sequence begins."""

    edges: tuple[int, ...]
    bands: tuple[Band, ...]
    borders: tuple[int, ...]
    low: float
    high: float
    answer: str
    notes: tuple[str, ...]


def positions(evidence: Evidence, voice: Voice) -> Positions | None:
    """The heat map; None where the residual stream has no profile by token, or all of it is equal."""
    rows = [row for row in evidence.results.boundaries if row.boundary.endswith(f".{_PLACE}") and layer_of(row.boundary) is not None]
    profiled = [row for row in rows if row.where is not None and row.where.token_profile is not None]
    if not profiled:
        return None
    edges = _edges(profiled[0])
    profiled = [row for row in profiled if _edges(row) == edges]
    by_layer = {layer_of(row.boundary): row for row in profiled}
    bands = [_band(row, by_layer, len(edges) - 1) for row in rows]
    values = [value for band in bands for value in band.largest if value]
    if not values:
        return None
    borders = _borders(evidence, edges[-1])
    notes = [word("tokens_note", place=_PLACE)] + ([word("tokens_borders")] if borders else [])
    return Positions(tuple(edges), tuple(bands), borders, min(values), max(values), _answer(profiled, voice), tuple(map(voice.say, notes)))


def _edges(row: BoundaryResult) -> list[int]:
    assert row.where is not None
    assert row.where.token_profile is not None
    return row.where.token_profile.edges


def _band(row: BoundaryResult, by_layer: dict[int | None, BoundaryResult], bins: int) -> Band:
    layer = layer_of(row.boundary) or 0
    known = by_layer.get(layer)
    if known is None or known.where is None or known.where.token_profile is None:
        return Band(layer, (None,) * bins)
    return Band(layer, tuple(value or None for value in known.where.token_profile.largest))


def _borders(evidence: Evidence, end: int) -> tuple[int, ...]:
    """Where a new sequence begins in the joined numbering."""
    runs = evidence.mapping.tokens.train if evidence.mapping is not None and evidence.mapping.tokens is not None else []
    found, at, before = [], 0, None
    for sequence, start, stop in runs:
        if before is not None and sequence != before:
            found.append(at)
        at += stop - start
        before = sequence
    return tuple(border for border in found if 0 < border < end)


def _answer(profiled: list[BoundaryResult], voice: Voice) -> str:
    last = profiled[-1]
    assert last.where is not None
    touched, onset = last.where.tokens, last.where.onset_token
    first = profiled[0]
    assert first.where is not None
    if touched is not None and touched.touched == touched.of:
        layer = next(row for row in profiled if row.where and row.where.tokens and row.where.tokens.touched == row.where.tokens.of)
        begins = layer is profiled[0]
        told = word("tokens_all", n=count(touched.of), layer=layer_of(layer.boundary))
        if not begins:
            known = {"onset": first.where.onset_token or 0, "first": layer_of(first.boundary), "layer": layer_of(layer.boundary)}
            told = word("tokens_all_later", n=count(touched.of), **known)
        return voice.say(told)
    k, n = (touched.touched, touched.of) if touched is not None else (0, 0)
    return voice.say(word("tokens_some", k=count(k), n=count(n), boundary=last.boundary, onset=onset or 0))
