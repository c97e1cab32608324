"""Fault sets in every form of the loop, and what was wrong with each."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from . import looping
from .checking import complaints
from .fault_sets import FaultSet
from .looping import Ended, Manner
from .sides import Toys

MANNERS = [Manner(target, forced, replay) for target in looping.SIDES for forced, replay in ((True, True), (False, True), (True, False))]
DESPITE = ("--despite", "weights", "inputs", "config")  # cheap causes that some sets hold; nobody is there who would mend them first


class Outcome(NamedTuple):
    """One loop: how it ended, what is wrong with that, and the seconds that it took."""

    faults: FaultSet
    manner: Manner
    ended: Ended
    wrong: list[str]
    seconds: float

    def __str__(self) -> str:
        rounds = f"{self.ended.effective} of {len(self.ended.results)} rounds effective"
        said = "as injected" if not self.wrong else "".join(f"\n    {line}" for line in self.wrong)
        injected = ", ".join(f"{fault.name}@{fault.layer} {fault.side}" for fault in self.faults.faults) or "nothing"
        return f"set {self.faults.seed} ({injected}), {self.manner}: {rounds}, {self.seconds:.1f} s: {said}"


def run(toys: Toys, faults: FaultSet, work: Path, manners: Sequence[Manner] = MANNERS) -> Iterator[Outcome]:
    """Every form of the loop over one set; with and without replay the pair is analysed once, and rounds start from a copy."""
    analysed: dict[bool, Path] = {}
    for at, manner in enumerate(manners):
        began = time.monotonic()
        if manner.replay not in analysed:
            pair = toys.pair(faults, work / f"pair{len(analysed)}")
            looping.analyse(pair, replay=manner.replay)
            analysed[manner.replay] = pair.work
        shutil.copytree(analysed[manner.replay], work / f"loop{at}")
        ended = looping.rounds(toys.pair(faults, work / f"loop{at}"), manner, *DESPITE)
        yield Outcome(faults, manner, ended, complaints(faults, manner, ended), time.monotonic() - began)
