"""Whether a report source says what the results beside it say: what contradicts them is refused, what was edited since is told."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from dump_analysis.artefacts import file_names, io
from dump_analysis.artefacts.conclusion import Conclusion, Finding
from dump_analysis.artefacts.faults import Fault
from dump_analysis.artefacts.report_source import Difference, ReportSource
from dump_analysis.report.source.axes import weight_sync
from dump_analysis.report.source.facts import Facts, of_folder

_FINDING = re.compile(r"F[0-9]+")  # how conclusions number their findings


class Beside(NamedTuple):
    """The results beside a source; None where there is no conclusion to ask."""

    facts: Facts | None
    faults: list[Fault]
    warnings: list[str]


def beside(source: ReportSource, folder: Path) -> Beside:
    """The results in ``folder``, whether the source names them or not, and what is wrong with the files that it names.

    Raises DumpError where one is no artefact of its name.
    """
    faults: list[Fault] = []
    warnings: list[str] = []
    for at, one in enumerate(source.artifacts.files):
        if not (folder / one.name).is_file():
            faults.append(
                Fault(f"artifacts.files[{at}].name", f"{one.name} is not beside the source", "Put it there, or remove the entry.")
            )
        elif one.digest not in ("unknown", io.digest_of_file(folder / one.name)):
            warnings.append(f"artifacts.files[{at}].digest: {one.name} was made or edited since")
    if not (folder / file_names.CONCLUSION).is_file():
        return Beside(None, faults, warnings)
    facts = of_folder(folder, source.language)
    return Beside(facts, faults, warnings + facts.warnings)


def disagreements(source: ReportSource, found: Beside) -> list[Fault]:
    """What the results say otherwise."""
    if found.facts is None:
        return []
    conclusion = found.facts.conclusion
    faults = [*_results(source, conclusion), *_dumps(source, conclusion), *_named(source, conclusion)]
    faults += [fault for at, one in enumerate(source.differences) for fault in _difference(at, one, found.facts)]
    return faults + list(_weights(source, found.facts))


def _results(source: ReportSource, conclusion: Conclusion) -> Iterator[Fault]:
    results, metric = source.results, conclusion.metrics.e2e
    if results.native_prefill_status != conclusion.overall:
        why = f"{results.native_prefill_status}, and {file_names.CONCLUSION} says {conclusion.overall}"
        yield Fault("results.native_prefill_status", why, f"Write {conclusion.overall}, or conclude again.")
    if results.conditional_prefill_status != "not_run" and not conclusion.rounds:
        why = f"{results.conditional_prefill_status}, and {file_names.CONCLUSION} knows of no round"
        yield Fault("results.conditional_prefill_status", why, "Write not_run.")
    claimed = results.e2e_metric_status in ("zero", "nonzero", "exact")
    if claimed and metric.status == "not_run":
        why = f"{results.e2e_metric_status}, and the log says that it was not computed (valid 0)"
        yield Fault("results.e2e_metric_status", why, "Write not_run, with null as the value.")
    if metric.status == "measured" and metric.mean is not None and (not claimed or results.e2e_metric_value != metric.mean):
        why = f"found {results.e2e_metric_value!r} ({results.e2e_metric_status}), the log measured {metric.mean!r}"
        yield Fault("results.e2e_metric_value", why, "Write what was measured.")


def _dumps(source: ReportSource, conclusion: Conclusion) -> Iterator[Fault]:
    digests = {one.label: one.digest for one in conclusion.inputs}
    for side in ("train", "infer"):
        stated = getattr(source.provenance, side).digest
        if side in digests and stated != digests[side]:
            why = f"{file_names.CONCLUSION} is of another {side} dump ({digests[side][:12]}…)"
            yield Fault(f"provenance.{side}.digest", why, "Write its digest, or put the right files beside the source.")


def _named(source: ReportSource, conclusion: Conclusion) -> Iterator[Fault]:
    """Every fault is a difference, every rounding one or a limitation: nothing that was found goes out of sight."""
    told = {one.diff_id for one in source.differences}
    limits = " ".join(source.limitations)
    for one in conclusion.findings:
        if one.id in told or (one.character == "rounding" and re.search(rf"\b{re.escape(one.id)}\b", limits, re.ASCII)):
            continue
        where = "limitations" if one.character == "rounding" else "differences"
        why = f"lacks {one.id} ({one.character}, at {one.boundary}) of {file_names.CONCLUSION}"
        yield Fault(where, why, f"Add {one.id}.")
    ids = {one.id for one in conclusion.findings}
    for at, difference in enumerate(source.differences):
        if _FINDING.fullmatch(difference.diff_id) and difference.diff_id not in ids:
            why = f"{difference.diff_id} is no finding of {file_names.CONCLUSION}"
            yield Fault(f"differences[{at}].diff_id", why, "Remove it, or give it an id of its own.")


def _difference(at: int, one: Difference, facts: Facts) -> Iterator[Fault]:
    finding = next((each for each in facts.conclusion.findings if each.id == one.diff_id), None)
    if finding is None:
        return
    path = f"differences[{at}]"
    yield from _status(path, one, finding, facts.conclusion.overall)
    if one.boundary != finding.boundary:
        yield Fault(f"{path}.boundary", f"{one.boundary}, and {one.diff_id} is at {finding.boundary}", f"Write {finding.boundary}.")
        return
    row = facts.row(finding.boundary)
    if row is not None and row.max_abs_diff != one.discovery_max_abs_diff:
        why = f"found {one.discovery_max_abs_diff!r}, {file_names.RESULTS} measured {row.max_abs_diff!r}"
        yield Fault(f"{path}.discovery_max_abs_diff", why, "Write what was measured.")


def _status(path: str, one: Difference, finding: Finding, overall: str) -> Iterator[Fault]:
    """A difference that the native run still shows is a known gap, and what is not decided is not confirmed."""
    if finding.character == "logic" and overall == "nonzero" and one.status not in ("excluded_known_gap", "unresolved_replayed"):
        why = f"{one.status}, and {one.diff_id} is a fault that the native run still shows"
        yield Fault(f"{path}.status", why, "Write excluded_known_gap.")
    elif finding.character != "logic" and one.status == "resolved":
        why = f"resolved, and {file_names.CONCLUSION} still finds {one.diff_id} ({finding.character})"
        yield Fault(f"{path}.status", why, "Write excluded_known_gap for rounding, pending for what is not decided.")
    if finding.character == "unknown" and one.root_cause_confidence == "CONFIRMED":
        why = f"CONFIRMED, and {file_names.CONCLUSION} has not decided {one.diff_id}"
        yield Fault(f"{path}.root_cause_confidence", why, "Write CANDIDATE or SUPPORTED.")


def _weights(source: ReportSource, facts: Facts) -> Iterator[Fault]:
    """``exact`` is said of weights that were all compared bit for bit."""
    found = weight_sync(facts)
    if source.verification_axes.weight_sync.status == "exact" and found.status != "exact":
        why = f"exact, and the results say {found.status} ({found.evidence})"
        yield Fault("verification_axes.weight_sync.status", why, f"Write {found.status}.")
