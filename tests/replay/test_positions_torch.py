"""Positions that differ by one constant: when nothing behind them is their effect, and when it may be."""

from pathlib import Path

import msgspec
from dump_analysis import pipeline
from dump_analysis.artefacts import io
from dump_analysis.artefacts.boundary_results import BoundaryResult, BoundaryResults
from dump_analysis.artefacts.replay_results import ReplayResults
from dump_analysis.findings.positions import heals
from test_findings_toys_torch import concluded
from toys.pairs import Toys


def test_a_constant_offset_heals_in_rotary_attention_alone(toys: Toys, tmp_path: Path) -> None:
    """Positions that are added to the embedding, or counted otherwise in one token, or a rotation that is not the same, do not heal."""
    concluded(toys.pair("positions_off_by_one", "infer"), tmp_path)
    rows = io.read(tmp_path / pipeline.RESULTS, BoundaryResults)[0].boundaries
    replay, _ = io.read(tmp_path / pipeline.REPLAY, ReplayResults)
    (positions,) = [row for row in rows if row.boundary == "positions"]
    told = heals(positions, rows, replay)
    assert told is not None
    assert told.values == {"offset": 1, "n": 3}
    assert heals(positions, rows, None) is None
    assert heals(positions, [_apart(row) if row.boundary == "embedding.out" else row for row in rows], replay) is None
    assert positions.where is not None
    uneven = msgspec.structs.replace(positions, where=msgspec.structs.replace(positions.where, hints=[]))
    assert heals(uneven, rows, replay) is None
    doubted = [msgspec.structs.replace(one, verdict="unknown") if one.module == "layers.1.attn_core" else one for one in replay.modules]
    assert heals(positions, rows, msgspec.structs.replace(replay, modules=doubted)) is None


def _apart(row: BoundaryResult) -> BoundaryResult:
    return msgspec.structs.replace(row, status="NOT_EXACT")
