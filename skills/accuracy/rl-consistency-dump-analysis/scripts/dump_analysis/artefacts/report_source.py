"""report_source.json: the one source of facts of a report, written by `report.source` or by people.

Here is its form and its vocabularies; what may not stand together is in `report.rules`. Fields that nobody knows hold
``"unknown"``. ``from_value`` names every fault of a file, not only the first, because people mend it by hand.
"""

from pathlib import Path
from typing import Any, Literal

import msgspec
from msprobe_files.errors import DumpError

from . import io
from .faults import Fault, faults_of_form

NAME = "report_source.json"
Unknown = Literal["unknown"]
ReportLanguage = Literal["zh-CN", "en"]
PrefillStatus = Literal["exact", "nonzero", "not_run", "evidence_missing"]
EndToEndStatus = Literal["zero", "nonzero", "not_run", "evidence_missing", "exact"]  # exact: how users' files say zero
ContractStatus = Literal["pass", "fail", "not_run", "evidence_missing", "unknown"]
DifferenceStatus = Literal["excluded_known_gap", "pending", "resolved", "unresolved_replayed", "rejected_hypothesis"]
RootCause = Literal[
    "Op path",
    "Input precision",
    "Config",
    "Missing step",
    "Framework bug",
    "Test setup mismatch",
    "Weight sync",
    "State transition",
    "Control plane",
    "unknown",
]
Confidence = Literal["CONFIRMED", "SUPPORTED", "CANDIDATE"]
Checked = Literal["pass", "fail", "not_run", "evidence_missing"]
CheckedOrNot = Literal["pass", "fail", "not_run", "evidence_missing", "not_applicable"]
Count = int | Unknown
Beside = dict[str, Any] | None | msgspec.UnsetType  # what users' files may carry; left out where there is none
Gate = Literal[
    "tensor_prefill",
    "weight_sync",
    "stateful_training",
    "long_horizon_e2e",
    "reduced_model_transfer",
    "requested_model_final",
    "production_patch_hygiene",
    "clean_runtime_activation",
    "performance_regression",
]


class AcceptanceContract(msgspec.Struct, frozen=True):
    """What was asked for: ``required_gates`` name verification axes."""

    status: ContractStatus
    objective: str
    requested_model_scope: str
    required_gates: list[Gate]
    long_horizon_required: bool
    stop_condition: str
    historical_failure_step: int | None = None


class Layout(msgspec.Struct, frozen=True):
    """How many ranks each kind of parallelism has on one side."""

    tp: Count
    pp: Count
    ep: Count
    cp: Count = 1
    dp: Count = 1


class Topology(msgspec.Struct, frozen=True):
    train: Layout
    infer: Layout


class Scope(msgspec.Struct, frozen=True):
    phase: Literal["prefill"]
    model: str
    coverage: str
    training_backend: str
    inference_backend: str
    hardware_backend: str
    evidence_provider: str
    topology: Topology


class ExactGate(msgspec.Struct, frozen=True):
    """The five parts of the exact gate, and whether what ran is the real path (what no dump alone can tell)."""

    same_shape: bool
    same_dtype: bool
    no_nonfinite: bool
    torch_equal: bool
    downstream_checked: bool
    real_path_activation_proved: bool | Unknown
    max_abs_diff: float


class Results(msgspec.Struct, frozen=True):
    """``e2e_metric_value``: a number for zero and nonzero, null otherwise."""

    native_prefill_status: PrefillStatus
    conditional_prefill_status: PrefillStatus
    e2e_metric_status: EndToEndStatus
    e2e_metric_value: float | None
    e2e_metric_name: str
    e2e_metric_evidence: str
    unresolved_replay_ids: list[str]
    native_exact_gate: ExactGate | None


class Difference(msgspec.Struct, frozen=True):
    """One independent difference; ``diff_id`` is the finding's id."""

    diff_id: str
    status: DifferenceStatus
    observation: Literal["native", "conditional"]
    root_cause_class: RootCause
    root_cause_confidence: Confidence
    boundary: str
    discovery_max_abs_diff: float | None
    verification_max_abs_diff: float | None
    summary: str
    proof: list[str]
    repair_result: str | None
    rejected_attempts: list[str]
    verification_gate: ExactGate | None


class PrefillAxis(msgspec.Struct, frozen=True):
    status: PrefillStatus
    evidence: str


class WeightAxis(msgspec.Struct, frozen=True):
    status: Literal["exact", "mismatch", "not_run", "evidence_missing", "not_applicable"]
    evidence: str


class CheckedAxis(msgspec.Struct, frozen=True):
    status: Checked
    evidence: str


class OptionalAxis(msgspec.Struct, frozen=True):
    status: CheckedOrNot
    evidence: str


class VerificationAxes(msgspec.Struct, frozen=True):
    tensor_prefill: PrefillAxis
    weight_sync: WeightAxis
    stateful_training: CheckedAxis
    long_horizon_e2e: CheckedAxis
    reduced_model_transfer: OptionalAxis
    requested_model_final: CheckedAxis
    production_patch_hygiene: CheckedAxis
    clean_runtime_activation: CheckedAxis
    performance_regression: OptionalAxis


class ProvenanceSide(msgspec.Struct, frozen=True):
    """One dump. ``versions``: software by its package name."""

    label: str
    digest: str
    versions: dict[str, str] = {}


class Provenance(msgspec.Struct, frozen=True):
    train: ProvenanceSide
    infer: ProvenanceSide


class Comparison(msgspec.Struct, frozen=True):
    """How the prompts lie beside each other; slices are [start, stop] in the trainer's tokens, null where it is no one slice."""

    prompt_token_length: Count
    train_input_token_length: Count
    infer_prefill_token_length: Count
    train_prompt_slice: list[int] | Unknown | None
    logit_causal_shift: Count
    logit_rows: list[int] | Unknown | None = None


class NamedFile(msgspec.Struct, frozen=True):
    """A file beside the source that the report is made from, by the sha-256 of its bytes."""

    name: str
    digest: str


class Artifacts(msgspec.Struct, frozen=True):
    files: list[NamedFile]
    raw_tensor_included: Literal[False]
    prompt_included: Literal[False]


class ReportSource(msgspec.Struct, frozen=True, kw_only=True):
    schema: Literal["report_source/1"] = "report_source/1"
    schema_version: Literal[1] = 1
    language: ReportLanguage
    title: str
    generated_at: str
    acceptance_contract: AcceptanceContract
    scope: Scope
    results: Results
    differences: list[Difference]
    verification_axes: VerificationAxes
    limitations: list[str]
    provenance: Provenance
    comparison: Comparison
    artifacts: Artifacts
    triage: Beside = msgspec.UNSET
    validation_matrix: Beside = msgspec.UNSET
    metric_progression: Beside = msgspec.UNSET


def from_value(value: Any, shown: str = NAME) -> tuple[ReportSource | None, list[Fault]]:
    """A source from parsed JSON, or every fault of its form. Raises DumpError where it is no report source at all."""
    io.check_schema(value, ReportSource, shown)
    faults = faults_of_form(value, ReportSource)
    return (None, faults) if faults else (msgspec.convert(value, ReportSource), [])


def read(path: str | Path) -> ReportSource:
    """A source whose form holds. Raises DumpError with the first fault and how many there are."""
    source, faults = from_value(io.load(path), Path(path).name)
    if source is None:
        more = f" ({len(faults)} faults in all)" if len(faults) > 1 else ""
        raise DumpError(f"Cannot use {Path(path).name}: {faults[0].line}{more}")
    return source
