"""Whether a stage is done: its own gate and those of the stages before it."""

from pathlib import Path
from typing import Callable, Dict, List, NamedTuple

from msprobe_files.errors import DumpError

from . import beginning, captured, inputs, integration, parameters, site
from .workdir import CARD, Missing, Workdir

RESTORE = 9


class Gap(NamedTuple):
    """What shuts a gate. ``repair``: what mends it, a command or an edit with the command that follows."""

    stage: int
    what: str
    repair: str

    @property
    def line(self) -> str:
        """The gap and its repair in one line."""
        return "stage %d: %s. %s" % (self.stage, self.what, self.repair)


class Gate(NamedTuple):
    """What `check` found: the gate is open where there are no gaps. ``then``: what to do next."""

    gaps: List[Gap]
    then: str


GATES: Dict[int, Callable[[Workdir], Missing]] = {
    0: beginning.target,
    1: beginning.machine,
    2: beginning.authorisations,
    3: site.gate,
    4: inputs.gate,
    5: parameters.gate,
    6: integration.gate,
    7: captured.pair,
    8: captured.override,
    RESTORE: integration.restored,
}


def check(stage: int, folder: Path) -> Gate:
    """The gate of a stage and those of the stages before it, over the files in ``folder``.

    Restoring is owed whatever came before, so stage 9 asks for the task card and itself alone; stage 8 may be left out.
    Raises DumpError where there is no such stage or folder, or a file in it cannot be read.
    """
    if stage not in GATES:
        raise DumpError("Cannot check stage %d: there are the stages 0 to 9. Check one of them." % stage)
    if not folder.is_dir():
        raise DumpError(
            "Cannot check stage %d: there is no folder %s. Check --workdir, or make it and begin with stage 0." % (stage, folder)
        )
    work = Workdir(folder)
    asked = [0, RESTORE] if stage == RESTORE else [at for at in GATES if at <= stage]
    gaps: List[Gap] = []
    for at in asked:
        gaps += [Gap(at, what, repair) for what, repair in GATES[at](work)]
        if at == 0 and gaps:
            break  # what the later gates read is not to be relied on
    return Gate(gaps, gaps[0].repair.replace("Run: ", "", 1) if gaps else _after(work, stage))


def _after(work: Workdir, stage: int) -> str:
    """What follows on an open gate."""
    card = work.shown(CARD)
    return {
        0: "look at the cards and at msprobe in both environments, quote commands and outputs in %s, then %s" % (card, work.check(1)),
        1: "ask the user for the five authorisations, write them into %s, then %s" % (card, work.check(2)),
        2: "find the three places in the code, write them into %s, then %s" % (card, work.check(3)),
        3: "complete the launch command in %s, then %s" % (card, work.check(4)),
        4: "compare the parameters of both sides, also --train-weights and --infer-weights: "
        + work.command("param_align_check.py", "--train-cfg", "FILE", "--infer-cfg", "FILE"),
        5: "before a file is touched: "
        + work.command("change_ledger.py", "record", "--root", "DIR", "--stage", "6", "--why", "TEXT", "FILE"),
        6: "run the command with its switches, then " + work.command("check_dump_pair.py"),
        7: "hand %s, both dumps and their configurations to the analysis; without it: %s"
        % (card, work.command("change_ledger.py", "restore")),
        8: "hand the round's stub_outcome.json and its new dump to the analysis; after the last round: %s"
        % work.command("change_ledger.py", "restore"),
        RESTORE: "tell the user what was collected and that the code is as it was",
    }[stage]
