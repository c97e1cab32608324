"""How much a difference matters at the end: the last boundary that was measured, and the same without one finding."""

from typing import NamedTuple

from dump_analysis.artefacts.boundary_results import GAPS
from dump_analysis.report.evidence import Evidence


class End(NamedTuple):
    """The last boundary with a relative difference: the logits where they were compared."""

    boundary: str
    rel_l2: float


class Without(NamedTuple):
    """The logits' relative difference with one finding's effect taken away, re-enacted.

    A round does not measure this: it takes away everything before the place where it makes the inputs equal.
    """

    finding: str
    rel_l2: float


def end_of(evidence: Evidence) -> End | None:
    """The logits, or what was measured last; None where nothing was."""
    rows = [row for row in evidence.results.boundaries if row.status not in GAPS and row.rel_l2 is not None]
    row = next((row for row in rows if row.boundary == "logits"), rows[-1] if rows else None)
    return End(row.boundary, row.rel_l2) if row is not None and row.rel_l2 is not None else None


def without(evidence: Evidence, finding: str) -> Without | None:
    """What is left at the logits without one finding; None where nobody re-enacted that."""
    account = evidence.conclusion.account
    for repair in (account or {}).get("repairs", []):
        if repair.get("findings") == [finding] and isinstance(repair.get("logits_rel_l2"), int | float):
            return Without(finding, float(repair["logits_rel_l2"]))
    return None


def largest_without(evidence: Evidence) -> Without | None:
    """The fault whose absence leaves least at the logits."""
    faults = [finding.id for finding in evidence.conclusion.findings if finding.character == "logic"]
    measured = [found for fault in faults if (found := without(evidence, fault)) is not None]
    return min(measured, key=lambda one: one.rel_l2, default=None)
