"""A trainer of two FSDP replicas against an engine in one process: rank folders on one side, one process's folder on the other."""

from __future__ import annotations

from pathlib import Path

from toys.parallel.jobs import Job, Model
from toys.parallel.pairs import Parallel

from .fault_sets import FaultSet
from .looping import Pair, Side
from .sides import Toys


def pair(toys: Toys, parallel: Parallel, model: Model, faults: FaultSet, work: Path) -> Pair:
    """The engine runs the prompt of the trainer's rank 0; rank 1 has another one."""
    job = Job(model, prompts=(0, 1), on=faults.on("train"))
    work.mkdir(parents=True, exist_ok=True)

    def again(side: Side, config: Path) -> None:
        if side == "train":
            parallel.run(job, config)
        else:
            toys.run("infer", config, faults)

    return Pair(work, parallel.root(job), toys.side("infer", faults.on("infer")), toys.command, again)
