"""What may not stand together in a report source: every contradiction, with its JSON path and what to do."""

import datetime as dt
import re
from collections import Counter
from collections.abc import Iterator, Sequence

import msgspec

from dump_analysis.artefacts.faults import Fault
from dump_analysis.artefacts.report_source import Difference, ExactGate, ReportSource

_DIGEST = re.compile(r"[0-9a-f]{64}|unknown")
_FILE = re.compile(r"(?!\.)[\w.-]+(/(?!\.)[\w.-]+)*")  # below the source: no root, no way up
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}(T[0-9]{2}:[0-9]{2}(:[0-9]{2})?(Z|[+-][0-9]{2}:[0-9]{2})?)?")
_STATIC = ("same_shape", "same_dtype", "no_nonfinite", "torch_equal", "downstream_checked")


def as_said(source: ReportSource) -> tuple[ReportSource, list[str]]:
    """The source in the words of the report, and a note of each word that was put another way."""
    if source.results.e2e_metric_status != "exact":
        return source, []
    results = msgspec.structs.replace(source.results, e2e_metric_status="zero")
    return msgspec.structs.replace(source, results=results), ['results.e2e_metric_status: "exact" is read as "zero"']


def contradictions(source: ReportSource) -> list[Fault]:
    """What contradicts itself within a source; empty where nothing does."""
    found: list[Fault] = []
    for rule in (_metric, _prefill, _replayed, _differences, _axes, _contract, _numbers, _names, _texts):
        found += rule(source)
    return found


def _metric(source: ReportSource) -> Iterator[Fault]:
    results = source.results
    status, value = results.e2e_metric_status, results.e2e_metric_value
    path = "results.e2e_metric_value"
    if status in ("not_run", "evidence_missing"):
        if value is not None:
            yield Fault(path, f"{status} takes null, found {value!r}", f'Write null, or "zero" or "nonzero" where {value!r} was measured.')
    elif value is None:
        yield Fault(path, f"{status} needs the measured number, found null", 'Write the number, or "evidence_missing" as the status.')
    elif status == "nonzero" and value == 0:
        yield Fault(path, "nonzero needs a number that is not 0", 'Write "zero" where 0 was measured, "not_run" where nothing was.')
    elif status != "nonzero" and value != 0:
        yield Fault(path, f"{status} needs 0, found {value!r}", 'Write "nonzero" as the status.')


def _prefill(source: ReportSource) -> Iterator[Fault]:
    results = source.results
    path = "results.native_exact_gate"
    if results.native_prefill_status != "exact":
        if results.native_exact_gate is not None:
            yield Fault(path, f"only exact has a gate, and native_prefill_status is {results.native_prefill_status}", "Write null.")
        return
    yield from _gate(results.native_exact_gate, path, "exact")
    if results.unresolved_replay_ids:
        why = f"exact leaves nothing unresolved, found {', '.join(results.unresolved_replay_ids)}"
        yield Fault("results.unresolved_replay_ids", why, "Empty the list, or write nonzero as results.native_prefill_status.")
    for at, one in enumerate(source.differences):
        if one.status not in ("resolved", "rejected_hypothesis") and one.observation == "native" and one.discovery_max_abs_diff:
            why = f"{one.diff_id} differs by {one.discovery_max_abs_diff!r}, and results.native_prefill_status is exact"
            yield Fault(f"differences[{at}].discovery_max_abs_diff", why, "Write nonzero as results.native_prefill_status.")


def _gate(gate: ExactGate | None, path: str, needed_by: str) -> Iterator[Fault]:
    """The gate whole and open; whether the real path ran may be unknown, as no dump tells it."""
    if gate is None:
        yield Fault(path, f"{needed_by} needs the exact gate, found null", "Write the gate with its seven parts, or another status.")
        return
    shut = [name for name in _STATIC if getattr(gate, name) is not True]
    shut += ["real_path_activation_proved"] if gate.real_path_activation_proved is False else []
    for name in shut:
        yield Fault(f"{path}.{name}", f"{needed_by} needs true, found false", "Prove it, or write another status.")
    if gate.max_abs_diff != 0:
        yield Fault(f"{path}.max_abs_diff", f"{needed_by} needs 0, found {gate.max_abs_diff!r}", "Write another status.")


def _replayed(source: ReportSource) -> Iterator[Fault]:
    listed, path = source.results.unresolved_replay_ids, "results.unresolved_replay_ids"
    status = {one.diff_id: one.status for one in source.differences}
    for at, one in enumerate(listed):
        if status.get(one) != "unresolved_replayed":
            why = f"{one} is {status[one]}" if one in status else f"{one} is no difference"
            yield Fault(f"{path}[{at}]", f"{why}, not unresolved_replayed", "Remove it, or correct the difference.")
        elif one in listed[:at]:
            yield Fault(f"{path}[{at}]", f"{one} stands twice", "Remove one.")
    for at, difference in enumerate(source.differences):
        if difference.status == "unresolved_replayed" and difference.diff_id not in listed:
            why = f"unresolved_replayed, and {path} lacks {difference.diff_id}"
            yield Fault(f"differences[{at}].status", why, f"Add {difference.diff_id} to {path}.")


def _differences(source: ReportSource) -> Iterator[Fault]:
    seen = Counter(one.diff_id for one in source.differences)
    for at, one in enumerate(source.differences):
        path = f"differences[{at}]"
        if not one.diff_id.strip():
            yield Fault(f"{path}.diff_id", "is empty", "Write an id of its own.")
        elif seen[one.diff_id] > 1:
            yield Fault(f"{path}.diff_id", f"{one.diff_id} stands {seen[one.diff_id]} times", "Write an id of its own.")
        if one.root_cause_class == "unknown" and one.root_cause_confidence == "CONFIRMED":
            yield Fault(f"{path}.root_cause_confidence", "CONFIRMED of an unknown cause", "Write the class, or SUPPORTED or CANDIDATE.")
        yield from _resolved(one, path) if one.status == "resolved" else _not_resolved(one, path)


def _resolved(one: Difference, path: str) -> Iterator[Fault]:
    """Resolved is what was repaired, run again, and is equal now."""
    yield from _gate(one.verification_gate, f"{path}.verification_gate", "resolved")
    if one.verification_max_abs_diff != 0:
        why = f"resolved needs 0, found {msgspec.json.encode(one.verification_max_abs_diff).decode()}"
        yield Fault(
            f"{path}.verification_max_abs_diff", why, "Write what was measured after the repair, or excluded_known_gap as the status."
        )
    if one.repair_result is None:
        yield Fault(f"{path}.repair_result", "resolved needs what was repaired, found null", "Write it, or another status.")


def _not_resolved(one: Difference, path: str) -> Iterator[Fault]:
    if one.verification_gate is not None:
        yield Fault(f"{path}.verification_gate", f"only resolved has one, and the status is {one.status}", "Write null.")


def _axes(source: ReportSource) -> Iterator[Fault]:
    axes, results = source.verification_axes, source.results
    native = results.native_prefill_status
    if axes.tensor_prefill.status != native:
        why = f"{axes.tensor_prefill.status}, and results.native_prefill_status is {native}"
        yield Fault("verification_axes.tensor_prefill.status", why, "Write the same in both.")
    if axes.long_horizon_e2e.status == "pass" and results.e2e_metric_status not in ("zero", "exact"):
        why = f"pass needs results.e2e_metric_status zero, found {results.e2e_metric_status}"
        yield Fault("verification_axes.long_horizon_e2e.status", why, "Write what was measured.")
    of_weights = [one.diff_id for one in source.differences if one.root_cause_class == "Weight sync" and _stands(one)]
    if axes.weight_sync.status == "exact" and of_weights:
        why = f"exact, and {', '.join(of_weights)} is of class Weight sync"
        yield Fault("verification_axes.weight_sync.status", why, "Write mismatch, or correct the class.")


def _stands(one: Difference) -> bool:
    return one.status in ("excluded_known_gap", "unresolved_replayed") and one.observation == "native"


def _contract(source: ReportSource) -> Iterator[Fault]:
    contract, path = source.acceptance_contract, "acceptance_contract"
    for gate, count in Counter(contract.required_gates).items():
        if count > 1:
            yield Fault(f"{path}.required_gates", f"{gate} stands {count} times", "Remove the others.")
    if contract.long_horizon_required != ("long_horizon_e2e" in contract.required_gates):
        said = "true" if contract.long_horizon_required else "false"
        why = f"{said}, and required_gates {'lacks' if contract.long_horizon_required else 'holds'} long_horizon_e2e"
        yield Fault(f"{path}.long_horizon_required", why, "Make the two agree.")
    if contract.historical_failure_step is not None and contract.historical_failure_step < 0:
        yield Fault(f"{path}.historical_failure_step", f"{contract.historical_failure_step} is no step", "Write a step, or null.")
    if contract.status == "pass":
        statuses = {gate: getattr(source.verification_axes, gate).status for gate in contract.required_gates}
        shut = [f"{gate} {status}" for gate, status in statuses.items() if status not in ("exact", "pass")]
        if shut:
            yield Fault(
                f"{path}.status", f"pass, and of the required gates these are not open: {', '.join(shut)}", "Write fail or not_run."
            )


def _numbers(source: ReportSource) -> Iterator[Fault]:
    sides = msgspec.to_builtins(source.scope.topology)
    for side, layout in sides.items():
        for kind, count in layout.items():
            if isinstance(count, int) and count < 1:
                yield Fault(f"scope.topology.{side}.{kind}", f"{count} is no number of ranks", "Write 1 or more, or unknown.")
    comparison = msgspec.to_builtins(source.comparison)
    for name in ("prompt_token_length", "train_input_token_length", "infer_prefill_token_length"):
        if isinstance(comparison[name], int) and comparison[name] < 0:
            yield Fault(f"comparison.{name}", f"{comparison[name]} is no length", "Write a length, or unknown.")
    length = comparison["train_input_token_length"]
    for name in ("train_prompt_slice", "logit_rows"):
        cut = comparison[name]
        if isinstance(cut, list) and not _is_slice(cut, length if isinstance(length, int) else None):
            within = f" within {length} tokens" if isinstance(length, int) else ""
            yield Fault(f"comparison.{name}", f"expected [start, stop]{within}, found {cut}", "Write the slice, or null.")
    for at, one in enumerate(source.differences):
        for name in ("discovery_max_abs_diff", "verification_max_abs_diff"):
            size = getattr(one, name)
            if size is not None and size < 0:
                yield Fault(f"differences[{at}].{name}", f"{size!r} is no absolute difference", "Write what was measured, or null.")


def _is_slice(cut: Sequence[int], length: int | None) -> bool:
    return len(cut) == 2 and 0 <= cut[0] < cut[1] and (length is None or cut[1] <= length)


def _names(source: ReportSource) -> Iterator[Fault]:
    """Digests, files beside the source, and the date."""
    digests = [(f"provenance.{side}.digest", getattr(source.provenance, side).digest) for side in ("train", "infer")]
    files = source.artifacts.files
    digests += [(f"artifacts.files[{at}].digest", one.digest) for at, one in enumerate(files)]
    for path, digest in digests:
        if not _DIGEST.fullmatch(digest):
            yield Fault(path, "expected 64 lowercase hex digits", "Write the sha-256, or unknown.")
    seen = Counter(one.name for one in files)
    for at, one in enumerate(files):
        if not _FILE.fullmatch(one.name):
            yield Fault(f"artifacts.files[{at}].name", "expected a name below the folder of the source", "Write the name alone.")
        elif seen[one.name] > 1:
            yield Fault(f"artifacts.files[{at}].name", f"{one.name} stands {seen[one.name]} times", "Remove the others.")
    if not _is_date(source.generated_at):
        yield Fault("generated_at", "expected a date as 2026-11-29, or unknown", "Write the date.")


def _is_date(text: str) -> bool:
    if not _DATE.fullmatch(text):
        return text == "unknown"
    try:
        return bool(dt.date.fromisoformat(text[:10]))
    except ValueError:
        return False


def _texts(source: ReportSource) -> Iterator[Fault]:
    """Texts that a reader needs; what nobody knows says so."""
    contract, scope = source.acceptance_contract, source.scope
    told = {"title": source.title, "results.e2e_metric_name": source.results.e2e_metric_name}
    told |= {"results.e2e_metric_evidence": source.results.e2e_metric_evidence}
    told |= {f"acceptance_contract.{name}": getattr(contract, name) for name in ("objective", "requested_model_scope", "stop_condition")}
    fields = ("model", "coverage", "training_backend", "inference_backend", "hardware_backend", "evidence_provider")
    told |= {f"scope.{name}": getattr(scope, name) for name in fields}
    axes = source.verification_axes
    told |= {f"verification_axes.{name}.evidence": getattr(axes, name).evidence for name in axes.__struct_fields__}
    told |= {f"limitations[{at}]": text for at, text in enumerate(source.limitations)}
    for at, one in enumerate(source.differences):
        told |= {f"differences[{at}].summary": one.summary, f"differences[{at}].boundary": one.boundary}
    for path, text in told.items():
        if not text.strip():
            yield Fault(path, "is empty", 'Write it, or "unknown".')
