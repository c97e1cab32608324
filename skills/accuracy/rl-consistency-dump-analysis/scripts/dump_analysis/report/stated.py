"""What a source states beside the findings: acceptance, what became of each difference, metrics that no log of the analysis holds."""

import msgspec

from dump_analysis.artefacts.common import Worded
from dump_analysis.artefacts.report_source import Difference, ReportSource
from dump_analysis.report.said import Voice
from dump_analysis.wording import word

Row = tuple[Worded, str]


def rows(source: ReportSource, voice: Voice) -> list[Row]:
    """Label and value of each; numbers stand as the source has them."""
    contract = source.acceptance_contract
    told: list[Row] = [
        (word("stated_accepted"), said(contract.status, voice)),
        (word("stated_model"), said(contract.requested_model_scope, voice)),
        (word("stated_gates"), voice.say(voice.join(contract.required_gates)) or voice.say(word("in_none"))),
        (word("stated_stop"), said(contract.stop_condition, voice)),
    ]
    if contract.historical_failure_step is not None:
        told.append((word("stated_failed_at"), str(contract.historical_failure_step)))
    if source.results.e2e_metric_value is not None:
        told.append((word("stated_metric"), _metric(source, voice)))
    told += [(word("stated_difference", id=one.diff_id), difference(one, voice)) for one in source.differences]
    return [*told, (word("stated_date"), said(source.generated_at, voice))]


def difference(one: Difference, voice: Voice) -> str:
    """What became of a difference: status, class, sizes and repair."""
    sizes = number(one.discovery_max_abs_diff)
    if one.verification_max_abs_diff is not None:
        sizes = f"{sizes} → {number(one.verification_max_abs_diff)}"
    parts = [one.status, one.root_cause_class, one.root_cause_confidence, f"max |Δ| {sizes}"]
    if one.observation == "conditional":
        parts.insert(1, one.observation)
    return voice.say(" · ".join([*parts, *([one.repair_result] if one.repair_result is not None else [])]))


def number(value: float | None) -> str:
    """A number as it stands in the file."""
    return "–" if value is None else msgspec.json.encode(value).decode()


def said(text: str, voice: Voice) -> str:
    """A text of people, or that nobody knows."""
    return voice.say(word("in_unknown")) if text == "unknown" else voice.say(text)


def _metric(source: ReportSource, voice: Voice) -> str:
    found = source.results
    told = {"name": found.e2e_metric_name, "status": found.e2e_metric_status, "value": number(found.e2e_metric_value)}
    return voice.say(word("stated_metric_is", **told, evidence=found.e2e_metric_evidence))
