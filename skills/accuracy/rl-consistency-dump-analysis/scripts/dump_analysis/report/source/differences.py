"""Findings as the differences of a report source; what is rounding only stands in the limitations."""

from dump_analysis.artefacts.conclusion import Finding
from dump_analysis.artefacts.report_source import Confidence, Difference, RootCause
from dump_analysis.boundaries import is_weight
from dump_analysis.wording import word

from .facts import Facts

# The class of a cause that recomputing has told; of one that says nothing of its kind the class stays unknown.
_CLASSES: dict[str, RootCause] = {
    "replay_cause_constant": "Config",
    "replay_constants": "Config",
    "stated_windows_apart": "Config",
    "stated_constants_apart": "Config",
    "replay_bias_alone": "Missing step",
    "replay_gain_twice": "Missing step",
    "replay_gain_never": "Missing step",
    "replay_fits_unchanged": "Missing step",
    "replay_fits_without": "Missing step",
    "replay_not_altered": "Missing step",
    "replay_altered": "Op path",
    "replay_elsewhere": "Op path",
    "replay_functions": "Op path",
    "replay_mistake": "Op path",
    "replay_unexplained": "Op path",
    "replay_fits_gain": "Op path",
    "replay_fits_addend": "Op path",
    "replay_fits_columns": "Op path",
    "replay_fits_tokens": "Op path",
    "replay_rows_shifted": "Op path",
    "replay_experts_exchanged": "Weight sync",
    "replay_experts_shifted": "Weight sync",
    "replay_qkv_read_in_groups": "Op path",
    "replay_qkv_read_in_blocks": "Op path",
    "replay_fits_offsets": "Weight sync",
    "replay_head_tied": "Weight sync",
    "weights_differ_so": "Weight sync",
}
_SIDES = {"train": "report_side_train", "infer": "report_side_infer", "both": "report_side_both", "unknown": "report_side_unknown"}
_PROVEN = frozenset({"replay", "round", "weights", "inputs", "replicas", "config"})


def differences(facts: Facts) -> list[Difference]:
    """One a finding that is a fault or not decided."""
    return [_difference(facts, found) for found in facts.conclusion.findings if found.character != "rounding"]


def _difference(facts: Facts, found: Finding) -> Difference:
    row = facts.row(found.boundary)
    summary = word("report_difference", cause=found.cause, side=word(_SIDES[found.side]))
    attempts = [word("report_attempt", cause=one.cause, because=one.because) for one in found.ruled_out]
    kind = root_cause(found)
    return Difference(
        diff_id=found.id,
        status="excluded_known_gap" if found.character == "logic" else "pending",
        observation="native",
        root_cause_class=kind,
        root_cause_confidence=_confidence(found, kind),
        boundary=found.boundary,
        discovery_max_abs_diff=row.max_abs_diff if row is not None else None,
        verification_max_abs_diff=None,
        summary=facts.say(summary),
        proof=[facts.say(sentence) for sentence in found.evidence],
        repair_result=None,
        rejected_attempts=[facts.say(attempt) for attempt in attempts],
        verification_gate=None,
    )


def root_cause(found: Finding) -> RootCause:
    """The class of a finding's cause: by what confirms it, else by what recomputing tells."""
    if found.character != "logic":
        return "unknown"
    if "weights" in found.confirmed_by or ("replicas" in found.confirmed_by and is_weight(found.boundary)):
        return "Weight sync"
    if "inputs" in found.confirmed_by or "replicas" in found.confirmed_by:
        return "Test setup mismatch"
    cause = found.cause.values.get("cause") if found.cause.kind == "replay_in_modules" else None
    kinds = [found.cause.kind, getattr(cause, "kind", None) or (cause.get("kind") if isinstance(cause, dict) else None)]
    return next((_CLASSES[kind] for kind in kinds if kind in _CLASSES), "unknown")


def _confidence(found: Finding, kind: RootCause) -> Confidence:
    """Confirmed is a class that is known of a fault that is proven."""
    if found.character != "logic" or not _PROVEN & set(found.confirmed_by):
        return "CANDIDATE" if found.character != "logic" else "SUPPORTED"
    return "SUPPORTED" if kind == "unknown" else "CONFIRMED"
