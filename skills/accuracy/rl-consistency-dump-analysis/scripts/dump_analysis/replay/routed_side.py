"""Both sides of a routed sum recomputed."""

from collections.abc import Mapping

from dump_analysis.artefacts.semantic_mapping import Row
from dump_analysis.replay.modules import Pair, entry_of
from dump_analysis.replay.one_side import Replayed, Unreplayed
from dump_analysis.replay.recorded import CannotReplay
from dump_analysis.replay.routed_search import replay_routed
from dump_analysis.replay.routed_work import work_of
from dump_analysis.tensors import Files


def replay_sums(files: Files, pair: Pair, row: Row, stated: Mapping[str, Mapping[str, float]]) -> dict[str, Replayed | Unreplayed]:
    """Both sides of a row of a routed sum."""
    return {label: _side(files, pair, row, label, stated.get(label, {})) for label in ("train", "infer")}


def _side(files: Files, pair: Pair, row: Row, label: str, stated: Mapping[str, float]) -> Replayed | Unreplayed:
    try:
        return replay_routed(work_of(files, pair, row, label), stated)
    except CannotReplay as why:
        return Unreplayed(entry_of(row, label), why.reason)
    finally:
        files.close()
