"""The loop over a trainer of two FSDP processes: its rank folders are read as a source, and written to as a target."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from toys.parallel.jobs import Model
from toys.parallel.pairs import Parallel

from loop import fsdp, looping, running, sides
from loop.checking import complaints
from loop.fault_sets import Fault, FaultSet
from loop.looping import Manner

SET = FaultSet(0, (Fault("one_channel", "train", 0), Fault("gate_up_order", "infer", 1), Fault("partial_sums", "infer", 2)))


@pytest.fixture(scope="module")
def parallel(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Parallel]:
    with Parallel(tmp_path_factory.mktemp("fsdp")) as process:
        yield process


@pytest.mark.parametrize(
    ("model", "manner"),
    [("fsdp2", Manner("train", forced=True)), ("fsdp1", Manner("infer", forced=False)), ("fsdp1", Manner("train", forced=False))],
)
def test_the_loop_ends_under_fsdp(toys: sides.Toys, parallel: Parallel, tmp_path: Path, model: Model, manner: Manner) -> None:
    """Of two replicas one runs the engine's prompt: only its rank is overridden, and only its dump is judged."""
    pair = fsdp.pair(toys, parallel, model, SET, tmp_path / "w")
    looping.analyse(pair, replay=True)
    ended = looping.rounds(pair, manner, *running.DESPITE)
    assert ended.effective, "no round was run: nothing is tested"
    assert not complaints(SET, manner, ended)
    if manner.target == "train":
        prepared = pair.work / "round1/stub_source_round1/step0"
        assert sorted(folder.name for folder in prepared.iterdir()) == ["rank0"]
        assert sorted(folder.name for folder in (pair.work / "round1/dump/step0").iterdir()) == ["rank0", "rank1"]
