"""What would decide a finding: what its own modules ask for, else what the conclusion asks for of its places."""

from collections.abc import Sequence

from dump_analysis.artefacts.common import Worded
from dump_analysis.artefacts.conclusion import Finding
from dump_analysis.artefacts.replay_results import ModuleReplay
from dump_analysis.report.evidence import Evidence
from dump_analysis.report.said import Voice
from dump_analysis.report.states import places_of

_MOST = 4


def modules_of(finding: Finding, evidence: Evidence) -> list[ModuleReplay]:
    """The recomputed module pairs at a finding's places, in their order."""
    known = evidence.modules()
    found = [evidence.module_at(boundary, known) for boundary in places_of(finding)]
    return [module for module in found if module is not None]


def decide(finding: Finding, evidence: Evidence, voice: Voice) -> tuple[str, ...]:
    """Sentences; none for a fault whose side is proven, or for rounding."""
    if finding.character == "rounding" or (finding.character == "logic" and finding.side in ("train", "infer", "both")):
        return ()
    own = [told for module in modules_of(finding, evidence) for told in module.would_decide]
    of_conclusion = evidence.conclusion.would_decide
    named = [told for told in of_conclusion if names_any(told, {*places_of(finding), finding.boundary, *finding.boundaries})]
    rest = [told for told in of_conclusion if told.kind != "decide_gap"] or of_conclusion
    return tuple(dict.fromkeys(voice.say(told) for told in (own or named or _of_cause(finding, rest) or rest[:1])))[:_MOST]


def _of_cause(finding: Finding, told: Sequence[Worded]) -> list[Worded]:
    """Sentences about the constant that the cause names."""
    name = finding.cause.values.get("name")
    return [sentence for sentence in told if isinstance(name, str) and name in sentence.values.values()]


def names_any(told: Worded, boundaries: set[str]) -> bool:
    """Whether a sentence speaks of one of these boundaries."""
    named = [item for value in told.values.values() for item in (value if isinstance(value, list) else [value])]
    return any(isinstance(item, str) and item in boundaries for item in named)
