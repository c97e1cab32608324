"""What rounds could still add: findings that nothing has confirmed, boundaries that nothing has judged; and what they could not."""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from dump_analysis.artefacts.boundary_results import DIVERGED, BoundaryResult, BoundaryResults
from dump_analysis.artefacts.common import Worded
from dump_analysis.artefacts.conclusion import Conclusion, Finding
from dump_analysis.artefacts.replay_results import ReplayResults
from dump_analysis.artefacts.round_plan import NotNeeded
from dump_analysis.boundaries import INPUTS, layer_of, made_by
from dump_analysis.replay.places import module_of
from dump_analysis.rounds.history import Round, equal_inputs
from dump_analysis.rounds.made_from import made_from
from dump_analysis.wording import word

DECIDED = ("same", "rounding", "logic")  # verdicts of replay


class Ground(NamedTuple):
    """What a plan and a judgement rest on. ``adds_up``: boundaries that only hand on what they add (`sums`)."""

    results: BoundaryResults
    conclusion: Conclusion
    replay: ReplayResults | None
    rounds: Sequence[Round]
    adds_up: frozenset[str]

    @property
    def compared(self) -> dict[str, BoundaryResult]:
        """The boundaries that were compared, in order."""
        return {row.boundary: row for row in self.results.boundaries if row.status == "EXACT" or row.status in DIVERGED}

    def verdict(self, boundary: str) -> str | None:
        """What replay says of the module that makes a boundary; None where it says nothing."""
        name = module_of(boundary)
        found = [one.verdict for one in self.replay.modules if one.module == name] if self.replay is not None else []
        return found[0] if found else None

    def is_decided(self, boundary: str) -> bool:
        """Whether it is known without a round if a boundary differs by itself: by replay, or since it only adds up what differs."""
        return boundary in self.adds_up or self.verdict(boundary) in DECIDED


class Open(NamedTuple):
    """``findings``: still to confirm; ``unjudged``: differing boundaries of which nothing tells whether the difference is their own."""

    findings: list[Finding]
    unjudged: list[str]
    not_needed: list[NotNeeded]


def layers_of(names: Iterable[str]) -> int:
    """How many layers the boundaries name."""
    return max((layer for name in names if (layer := layer_of(name)) is not None), default=-1) + 1


def sources(boundary: str, known: dict[str, BoundaryResult]) -> set[str]:
    """The compared boundaries that a value is made from."""
    return made_from(boundary, {name: row.order for name, row in known.items()}, layers_of(known))


def sources_of_all(known: Mapping[str, BoundaryResult]) -> dict[str, set[str]]:
    """`sources` of each of the boundaries, in their order."""
    orders, layers = {name: row.order for name, row in known.items()}, layers_of(known)
    return {name: made_from(name, orders, layers) for name in known}


def open_points(ground: Ground) -> Open:
    """What no evidence so far decides."""
    compared, seen = ground.compared, equal_inputs(ground.rounds)
    told = {finding.id: why for finding in ground.conclusion.findings if (why := _not_needed(finding, ground, compared)) is not None}
    findings = [finding for finding in ground.conclusion.findings if finding.id not in told]
    unjudged = [name for name in carried_in(ground) if name not in seen]
    return Open(findings, unjudged, [NotNeeded(name, why) for name, why in told.items()])


def carried_in(ground: Ground) -> list[str]:
    """Boundaries that differ where something that they are made from does, and of which replay decides nothing; in order."""
    compared = ground.compared
    differing = [name for name, row in compared.items() if row.status in DIVERGED and name not in INPUTS and not ground.is_decided(name)]
    made_from_all = sources_of_all(compared)
    return [name for name in differing if any(compared[one].status != "EXACT" for one in made_from_all[name])]


def _not_needed(finding: Finding, ground: Ground, compared: dict[str, BoundaryResult]) -> Worded | None:
    """Why no round need confirm a finding; None where one would add something."""
    by = finding.confirmed_by
    if "weights" in by:
        return word("round_weights_decide")
    if "inputs" in by or "replicas" in by:
        return word("round_bytes_decide")
    if finding.boundary not in compared:
        return word("round_nothing_compared", boundary=finding.boundary)
    if finding.character == "rounding" and "replay" in by:
        return word("round_explained")
    names = {*finding.boundaries, *map(made_by, finding.boundaries)}
    judged = [(one.number, seen) for one in ground.rounds for seen in one.judged if seen.inputs == "equal" and seen.boundary in names]
    done = [number for number, seen in judged if seen.status != "EXACT" or seen.boundary == finding.boundary]
    if done:
        return word("round_confirmed", round=done[0])
    if all(compared[one].status == "EXACT" for one in sources(finding.boundary, compared)):
        return word("round_equal_already", boundary=finding.boundary)
    return None


def differences(ground: Ground) -> list[str]:
    """The boundaries known to differ by themselves, in order: those of findings, and those that rounds saw differ from equal inputs."""
    compared = ground.compared
    names = {name for finding in ground.conclusion.findings for name in (finding.boundary, *finding.boundaries)}
    names |= {made_by(name) for name in names}
    names |= {name for name, seen in equal_inputs(ground.rounds).items() if seen.status != "EXACT"}
    return [name for name, row in compared.items() if name in names and row.status in DIVERGED]
