"""A whole report source from the folder of an analysis; what no artefact knows holds ``unknown`` and is a person's to fill."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from dump_analysis.artefacts import io
from dump_analysis.artefacts.report_source import AcceptanceContract, Artifacts, ReportSource
from dump_analysis.wording import Language, word

from . import axes, differences, limitations, scope
from .facts import Facts, of_folder

UNKNOWN = "unknown"
_LEFT = re.compile(r"unknown[:：].*|(.*[^\w-])?unknown", re.DOTALL)  # alone, before what is asked, or after what is known


def from_results(folder: Path, language: Language) -> tuple[ReportSource, list[str]]:
    """The source and the warnings of reading. Raises DumpError where there is no conclusion, or a file cannot be read."""
    facts = of_folder(folder, language)
    model = scope.model(facts)
    source = ReportSource(
        language=language,
        title=facts.say(word("report_title", model=model)) if not is_left(model) else facts.say(word("report_title_plain")),
        generated_at=UNKNOWN,
        acceptance_contract=_contract(facts),
        scope=scope.scope(facts),
        results=axes.results(facts),
        differences=differences.differences(facts),
        verification_axes=axes.axes(facts),
        limitations=limitations.limitations(facts),
        provenance=scope.provenance(facts),
        comparison=scope.comparison(facts),
        artifacts=Artifacts(facts.files, False, False),
    )
    return source, facts.warnings


def _contract(facts: Facts) -> AcceptanceContract:
    """What this analysis is for; whether that was accepted is a person's to say."""
    first_only = facts.stated("goal") == "first_divergence"
    return AcceptanceContract(
        status="unknown",
        objective=facts.say(word("report_objective_first") if first_only else word("report_objective")),
        requested_model_scope=facts.stated("scope") or UNKNOWN,
        required_gates=["tensor_prefill", "weight_sync"],
        long_horizon_required=False,
        stop_condition=facts.stated("stop_condition") or facts.say(word("report_stop")),
    )


def is_left(value: object) -> bool:
    """Whether a value says that nobody has told it yet."""
    return isinstance(value, str) and _LEFT.fullmatch(value) is not None


def left_to_people(source: ReportSource) -> list[str]:
    """The JSON paths of the fields that nobody has told yet."""
    return [path for path, value in _texts(io.builtins(source), "") if is_left(value)]


def _texts(value: Any, path: str) -> Iterator[tuple[str, str]]:
    if isinstance(value, str):
        yield path, value
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from _texts(item, f"{path}.{key}" if path else str(key))
    elif isinstance(value, list):
        for at, item in enumerate(value):
            yield from _texts(item, f"{path}[{at}]")
