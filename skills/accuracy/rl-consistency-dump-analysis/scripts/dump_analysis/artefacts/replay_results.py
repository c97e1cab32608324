"""replay_results.json: what recomputing each module from its own recorded inputs and weights has shown."""

from typing import Literal

import msgspec

from .common import FileDigest, FindingSide, SideLabel, SideName, Worded

Verdict = Literal["same", "rounding", "logic", "unknown"]
Basis = Literal["variant", "bound", "noise_model"]
Origin = Literal["recorded", "borrowed", "absent"]
How = Literal["copy", "slice", "sum", "product", "rotary_attention", "routed_experts", "altered", "unknown"]


class Span(msgspec.Struct, frozen=True):
    """A stretch between boundaries that was recomputed as one."""

    start: list[str] = msgspec.field(name="from")
    to: str


class ConfigValue(msgspec.Struct, frozen=True):
    """A constant: the value used, which values would explain as much, and where it comes from."""

    value: float | str | list[float] | None
    interval: list[float] | None
    source: Literal["dump", "config", "inferred"]


class Direction(msgspec.Struct, frozen=True):
    """Elements whose recorded magnitude is smaller, or larger, than that of the truth."""

    smaller: int
    larger: int


class GainRange(msgspec.Struct, frozen=True):
    """The smallest and the largest gain of a token, column or head."""

    gain: list[float]


class Residual(msgspec.Struct, frozen=True, kw_only=True):
    """recorded = gain · truth + offset; ``left_over``: the share of the squared residual that the line leaves."""

    against: str
    gain: float
    offset: float
    stderr: float
    direction: Direction
    left_over: float
    token: GainRange | None = None
    column: GainRange | None = None
    head: GainRange | None = None


class SideReplay(msgspec.Struct, frozen=True):
    """One side of a module. Shares and counts are None where nothing was recomputed; ``variant`` None: none explains it."""

    entry: str | None
    via: list[str]
    variant: str | None
    bit_equal: float | None
    explained: float | None
    unexplained: int | None
    of: int
    basis: Basis | None
    config: dict[str, ConfigValue]
    weights: Origin
    residual: Residual | None
    inputs_are: Literal["pre_call", "post_call", "unknown"]


class Local(msgspec.Struct, frozen=True):
    """What a module pair adds by itself: one side's record against the other side's computation on the same inputs.

    ``unequal`` of ``of`` elements, by at most ``ulp_max`` in the coarser format; smaller: |train| < |infer|. ``rel_l2`` is that difference,
    ``propagated`` the one that the inputs brought in, both relative to the train side; None where that is zero.
    """

    unequal: int
    of: int
    ulp_max: int | None
    smaller: int
    larger: int
    rel_l2: float | None
    propagated: float | None


class ModuleReplay(msgspec.Struct, frozen=True):
    """One mapped module pair. ``side``: who is proven to be at fault; ``local`` None: neither side follows, or the operators differ."""

    module: str
    span: Span | None
    operator: str | None
    verdict: Verdict
    train: SideReplay
    infer: SideReplay
    sampled: dict[str, int] | None
    evidence: list[Worded]
    would_decide: list[Worded]
    side: FindingSide = "unknown"
    local: Local | None = None


class AlteredEdge(msgspec.Struct, frozen=True):
    """What was altered: of the value of which boundary, in which tokens and columns (none listed: in all), by which factor if by one."""

    boundary: str
    tokens: list[int]
    columns: list[int]
    gain: float | None


class Edge(msgspec.Struct, frozen=True):
    """Where a module's input came from. ``altered`` only where something was."""

    side: SideName
    input: str
    sources: list[str] = msgspec.field(name="from")
    how: How
    unexplained: int
    altered: AlteredEdge | msgspec.UnsetType = msgspec.UNSET


class WeightRows(msgspec.Struct, frozen=True):
    """Matrix rows that the other side does not have."""

    train: list[int]
    infer: list[int]
    of: int


class WeightReplay(msgspec.Struct, frozen=True, omit_defaults=True):
    """One mapped weight. ``evidence``: how the two differ, the sentence of its kind first.

    ``side``: the one that holds an earlier checkpoint's; ``format_only``: one side keeps the other's values in a coarser format.
    """

    name: str
    status: str
    kind: str | None
    rows: WeightRows | None
    evidence: list[Worded] = []
    side: FindingSide = "unknown"
    format_only: bool = False


class Calibration(msgspec.Struct, frozen=True):
    """One operator on one side, over all its modules."""

    modules: int
    elements: int
    unexplained: int
    bound_scale: float | None


class ReplayResults(msgspec.Struct, frozen=True, kw_only=True):
    schema: Literal["replay_results/1"] = "replay_results/1"
    train: SideLabel
    infer: SideLabel
    mapping: FileDigest
    modules: list[ModuleReplay]
    edges: list[Edge]
    weights: list[WeightReplay]
    calibration: dict[str, dict[str, Calibration]]
