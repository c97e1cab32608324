"""conclusion.json: everything so far in one conclusion."""

from typing import Any, Literal

import msgspec

from .boundary_results import FirstDivergence, Overall
from .common import FindingSide, Modules, SideName, Worded

Consistency = Literal["consistent", "inconsistent", "undecided"]
Character = Literal["logic", "rounding", "unknown"]
Confirmation = Literal["replay", "round", "weights", "inputs", "replicas", "config", "fingerprint"]
HypothesisState = Literal["excluded", "supported", "open"]
LogStatus = Literal["measured", "not_run", "evidence_missing"]


class Size(msgspec.Struct, frozen=True):
    """How much differs. ``unequal`` of ``of`` elements; the rest comes with the measures and with replay."""

    unequal: int | None
    of: int | None
    ulp_max: int | None = None
    smaller: int | None = None
    larger: int | None = None
    unexplained: int | None = None


class RuledOut(msgspec.Struct, frozen=True):
    cause: Worded
    because: Worded


class ChainLink(msgspec.Struct, frozen=True):
    layer: int
    local: float | None
    propagated: float | None


class Fix(msgspec.Struct, frozen=True):
    side: FindingSide
    action: Worded
    expect: Worded


class Finding(msgspec.Struct, frozen=True):
    """One independent difference; ``boundary`` is its first place."""

    id: str
    boundary: str
    layers: list[int]
    boundaries: list[str]
    module: Modules
    character: Character
    side: FindingSide
    cause: Worded
    size: Size
    evidence: list[Worded]
    ruled_out: list[RuledOut]
    chain: list[ChainLink]
    rounds: list[int]
    confirmed_by: list[Confirmation]
    resolvable: Literal["yes", "no", "unknown"]
    fix: Fix | None


class Hypothesis(msgspec.Struct, frozen=True):
    """``would_decide``: of an open one."""

    name: str
    state: HypothesisState
    because: Worded
    findings: list[str]
    would_decide: list[Worded] = []


class Span(msgspec.Struct, frozen=True):
    """Boundaries between which everything is explained though it was not compared."""

    from_: list[str] = msgspec.field(name="from")
    to: str
    explained_by: Worded


class Uncompared(msgspec.Struct, frozen=True):
    boundary: str
    reason: Worded
    covered_by: str | None


class LogMetric(msgspec.Struct, frozen=True):
    """A metric that a training log states; never computed here.

    ``mean``, ``max``, ``std``: of ``step``, the last that was measured; ``by_step``: [step, mean] of each measured step, the
    step None where the log names none. None where nothing was measured, and where only a bound is known: ``note`` says which.
    """

    status: LogStatus
    mean: float | None = None
    max: float | None = None
    std: float | None = None
    step: int | None = None
    by_step: list[Any] = []
    source: str | None = None
    note: Worded | None = None


class EndToEndMetric(msgspec.Struct, frozen=True):
    """The metric of the response segment, likewise; ``valid`` 0 says that it was not computed."""

    status: LogStatus
    name: str | None = None
    mean: float | None = None
    max: float | None = None
    std: float | None = None
    valid: float | None = None
    step: int | None = None
    by_step: list[Any] = []
    source: str | None = None
    note: Worded | None = None


class Metrics(msgspec.Struct, frozen=True):
    prefill_logprob_diff: LogMetric
    e2e: EndToEndMetric


class Input(msgspec.Struct, frozen=True):
    """A dump or file that the conclusion rests on."""

    label: str
    digest: str
    step: int | None = None
    rank: int | None = None
    request_id: str | None = None


class RoundSummary(msgspec.Struct, frozen=True, kw_only=True):
    """An override round. ``effective`` None: planned, not judged yet; ``differ``: what differs by itself, seen from equal inputs."""

    round: int
    kind: Literal["cut", "forced"]
    target_side: SideName
    isolated: str | None
    effective: bool | None
    why_not: Worded | None
    differ: list[str]
    contradicted: list[Worded]
    stop: str | None


class Conclusion(msgspec.Struct, frozen=True, kw_only=True):
    schema: Literal["conclusion/1"] = "conclusion/1"
    overall: Overall
    consistency: Consistency
    summary: list[Worded]
    first_divergence: FirstDivergence | None
    findings: list[Finding]
    hypotheses: list[Hypothesis]
    spans: list[Span]
    evidence_missing: list[Uncompared]
    would_decide: list[Worded]
    account: dict[str, Any] | None
    metrics: Metrics
    inputs: list[Input]
    rounds: list[RoundSummary]
