"""What differs between the parameters of the two sides before anything runs: hypotheses, and what keeps a pair from being consistent."""

from typing import NamedTuple

from .artefacts.common import Worded
from .artefacts.conclusion import Hypothesis
from .artefacts.param_report import ParamReport, Point
from .wording import word

_APART = ("DIFF", "MISSING_SIDE")
_NONE = "no_effect"  # the priority of a field that cannot change a prefill


class Parameters(NamedTuple):
    """Hypotheses of all points, and what would decide those that nobody waived."""

    hypotheses: list[Hypothesis]
    open: list[Worded]

    @property
    def names(self) -> list[str]:
        """The open points."""
        return [told.values["point"] for told in self.open]


def parameters(report: ParamReport | None) -> Parameters:
    """Of a report; nothing where there is none."""
    if report is None:
        return Parameters([], [])
    waived = {waiver.id: waiver.reason for waiver in report.waivers}
    hypotheses, still_open = [], []
    for point in [*report.mismatch_points, *_loose(report)]:
        reason = _reason(report, point, waived)
        if reason is None:
            still_open.append(word("param_decides", point=point.id, items=point.items))
            hypotheses.append(Hypothesis(f"param_{point.id}", "supported", _told(point), [], [still_open[-1]]))
        else:
            told = word("param_waived", point=point.id, items=point.items, reason=reason)
            hypotheses.append(Hypothesis(f"param_{point.id}", "open", told, [], []))
    return Parameters(hypotheses, still_open)


def _loose(report: ParamReport) -> list[Point]:
    """What differs and stands in no point, as one: a report that says it is not aligned is not taken for one that is."""
    known = {name for point in report.mismatch_points for name in point.items}
    left = [item.canonical for item in report.items if item.status in _APART and item.priority != _NONE and item.canonical not in known]
    return [Point("other", left)] if left or not (report.aligned or report.mismatch_points) else []


def _reason(report: ParamReport, point: Point, waived: dict[str, str]) -> str | None:
    """Why a point is let stand: it, or every one of its items, was waived. None where it is open."""
    if point.id in waived:
        return waived[point.id]
    status = {item.canonical: item.status for item in report.items}
    reasons = [waived.get(name, "") for name in point.items if name in waived or status.get(name) == "waived"]
    return "; ".join(dict.fromkeys(filter(None, reasons))) if point.items and len(reasons) == len(point.items) else None


def _told(point: Point) -> Worded:
    if point.cause is None:
        return word("param_open", point=point.id, items=point.items)
    return word("param_open_because", point=point.id, items=point.items, cause=point.cause)
