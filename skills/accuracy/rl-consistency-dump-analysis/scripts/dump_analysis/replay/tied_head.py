"""Logits that follow from their own side's embedding, where the other side recorded a head that is another matrix."""

import contextlib
from collections.abc import Mapping

from dump_analysis.replay.modules import Pair, makes_logits, of_embedding
from dump_analysis.replay.one_side import Replayed, replay
from dump_analysis.replay.own_weights import WEIGHT
from dump_analysis.replay.recorded import CannotReplay
from dump_analysis.tensors import Files


def or_tied(files: Files, pair: Pair, label: str, found: Replayed, stated: Mapping[str, float]) -> Replayed:
    """The replay of a head with the embedding for its weight, as a mistake, if only that explains the logits; else what was found."""
    if found.best.explains or found.work.origin != "borrowed" or not makes_logits(found.work):
        return found
    table, head = of_embedding(files, pair, label).get(WEIGHT), found.work.weights[WEIGHT]
    if table is None or (table.rows, table.columns) != (head.rows, head.columns):
        return found
    with contextlib.suppress(CannotReplay):  # the embedding explains no more than the head
        tied = replay(found.work._replace(weights={WEIGHT: table}, origin="tied"), stated)
        if tied.explained:
            return tied._replace(best=tied.best._replace(trial=tied.best.trial._replace(fault=True)), holding=frozenset(), constants={})
    return found
