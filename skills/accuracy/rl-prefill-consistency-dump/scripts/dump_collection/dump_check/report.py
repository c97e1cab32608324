"""All checks of a pair, as dump_pair_report.json."""

from typing import Any, Dict, List, NamedTuple, Sequence, Tuple

from dump_collection import digests
from dump_collection.dump_check import judged, of_files, of_modules, of_runs, of_tokens, sides
from dump_collection.dump_check.card import Card
from dump_collection.dump_check.checks import Check
from dump_collection.dump_check.judged import Judged

SCHEMA = "dump_pair_report/1"


class Report(NamedTuple):
    """The checks in their order, when each side took its module inputs, and which units were judged."""

    checks: Tuple[Check, ...]
    inputs: Dict[str, str]
    judged: Dict[str, Any]

    @property
    def shut(self) -> List[Check]:
        """The checks that shut the gate. Nothing is comparable whose tokens were not shown to be equal, whatever the reason."""
        found = [check for check in self.checks if check.shut]
        return found or [check for check in self.checks if check.id == "tokens_equal" and check.ok is None]

    @property
    def remarks(self) -> List[Check]:
        return [check for check in self.checks if check.ok is False and not check.shuts]

    @property
    def open_questions(self) -> List[Check]:
        """What the files cannot say, though they were asked."""
        return [check for check in self.checks if check.ok is None and check.asked]

    def as_json(self) -> Dict[str, Any]:
        checks = [check.as_json() for check in self.checks]
        return {"schema": SCHEMA, **self.judged, "checks": checks, "inputs_are": self.inputs, "comparable": not self.shut}


def check_pair(train: Sequence[str], infer: Sequence[str], card: Card) -> Report:
    """Check two dumps; each side is one path or several. Raises DumpError where a path is none of a dump."""
    pair = judged.judge(sides.read_side("train", train), sides.read_side("infer", infer))
    inputs = {side.label: of_modules.inputs_of(side) for side in pair.both}
    checks = [
        *of_files.checks_of_files(pair),
        *of_runs.checks_of_runs(pair),
        *of_tokens.checks_of_tokens(pair, card.prompt_length),
        *of_modules.checks_of_modules(pair, inputs, card),
    ]
    return Report(tuple(checks), inputs, {side.label: _named(side) for side in pair.both})


def _named(side: Judged) -> Dict[str, Any]:
    """A side by its digest, and the units that were judged, so that a later change of the dump is noticed."""
    units = [{"step": unit.place.step, "rank": unit.place.rank, "digest": digests.digest([unit])} for unit in side.units]
    return {"label": side.label, "digest": digests.digest(side.units) if units else None, "units": units}
