"""boundary_results.json: what the exact gate found at every boundary."""

import math
from typing import Any, Literal

import msgspec
from msprobe_files.operands import Operand

from .common import FileDigest, SideLabel, Worded

Status = Literal["EXACT", "NOT_EXACT", "SHAPE_DIFF", "DTYPE_DIFF", "NONFINITE", "MISSING", "evidence_missing"]
Overall = Literal["exact", "nonzero", "not_run", "evidence_missing"]
DIVERGED = frozenset({"NOT_EXACT", "SHAPE_DIFF", "DTYPE_DIFF", "NONFINITE"})
GAPS = frozenset({"MISSING", "evidence_missing"})


class SidesShape(msgspec.Struct, frozen=True):
    train: list[int]
    infer: list[int]


class SidesDtype(msgspec.Struct, frozen=True):
    """Dtypes as dump.json says, before any cast."""

    train: str | None
    infer: str | None


class SidesOperand(msgspec.Struct, frozen=True):
    train: Operand
    infer: Operand


class SidesCount(msgspec.Struct, frozen=True):
    train: int
    infer: int


class Unequal(msgspec.Struct, frozen=True):
    """Elements whose values differ (+0 equals −0; two NaN at one place are counted apart)."""

    count: int
    share: float


class Special(msgspec.Struct, frozen=True):
    """Counted, not hidden: non-finite elements, zeros of opposite sign, NaN at the same place on both sides."""

    nonfinite: SidesCount
    zero_sign: int
    nan_both: int


class Ulp(msgspec.Struct, frozen=True):
    """Distances in the coarser format. ``histogram``: bin -> [|train| < |infer|, the reverse], ``opposite_sign`` -> count."""

    max: int
    max_at_row_scale: float | None
    histogram: dict[str, list[int] | int]


class Direction(msgspec.Struct, frozen=True):
    """``smaller``: |train| < |infer|; ``z``: (smaller − larger) / √(smaller + larger), a standard normal number by chance."""

    smaller: int
    larger: int
    z: float


class Touched(msgspec.Struct, frozen=True):
    touched: int
    of: int


Ranked = list[tuple[int, float | None]]  # [index, relative L2]; None: the train side is zero there


class Worst(msgspec.Struct, frozen=True):
    """The three of each with the largest relative L2; None where the tensor has none or they are not known."""

    tokens: Ranked | None
    columns: Ranked | None
    heads: Ranked | None


class TokenProfile(msgspec.Struct, frozen=True):
    """The largest relative error of a token in each bin of tokens; one more edge than bins."""

    edges: list[int]
    largest: list[float | None]


Pattern = Literal["dense", "scattered", "tokens", "columns", "heads", "block"]


class Where(msgspec.Struct, frozen=True, kw_only=True):
    """Which tokens and columns differ. ``rows``: the matrix rows of a weight, which has no tokens."""

    onset_token: int | None
    tokens: Touched | None
    columns: Touched | None
    rows: Touched | None = None
    worst: Worst
    pattern: Pattern
    token_profile: TokenProfile | None
    hints: list[Worded]


class WholeLine(msgspec.Struct, frozen=True):
    """infer = scale · train + offset over all elements; ``left_over``: share of the squared difference that stays."""

    scale: float
    offset: float
    stderr: float
    left_over: float


class LinesBeyond(msgspec.Struct, frozen=True):
    """A line by token or by column. ``beyond``: the clearest [index, scale, stderr] more than six standard errors from 1."""

    left_over: float
    beyond: list[tuple[int, float, float]]
    beyond_count: int


class Gain(msgspec.Struct, frozen=True):
    whole: WholeLine | None
    token: LinesBeyond | None
    column: LinesBeyond | None


class Sampled(msgspec.Struct, frozen=True):
    """Which rows the ``figures`` named come from: every ``every``-th of the grid, ``rows`` of ``of``."""

    rows: int
    of: int
    every: int
    figures: list[str]


class BoundaryResult(msgspec.Struct, frozen=True):
    """One boundary or weight. Measures are over the elements that are finite on both sides.

    ``rel_l2`` = ‖infer − train‖ / ‖train‖, ``norm_ratio`` = ‖infer‖ / ‖train‖; None where they have no value.
    EXACT rows have None in ``ulp``, ``direction``, ``where`` and ``gain``.
    """

    boundary: str
    order: int
    status: Status
    shape: list[int] | SidesShape | None = None
    dtype: SidesDtype | None = None
    ops_applied: SidesOperand | None = None
    unequal: Unequal | None = None
    special: Special | None = None
    max_abs_diff: float | None = None
    mean_abs_diff: float | None = None
    rms_diff: float | None = None
    rel_l2: float | None = None
    cosine: float | None = None
    norm_ratio: float | None = None
    ulp: Ulp | None = None
    direction: Direction | None = None
    where: Where | None = None
    gain: Gain | None = None
    statistics: dict[str, Any] | None = None
    sampled: Sampled | None = None
    reason: Worded | None = None


def elements(result: BoundaryResult) -> int:
    """How many elements were compared; 0 where the shapes differ or nothing was."""
    if not isinstance(result.shape, list):
        return 0
    return math.prod(result.shape)


class FirstDivergence(msgspec.Struct, frozen=True):
    """The earliest boundary that was compared and is not EXACT, and what lies before it uncompared."""

    boundary: str
    order: int
    predecessors_complete: bool
    uncompared_before: list[str]


class BoundaryResults(msgspec.Struct, frozen=True, kw_only=True):
    schema: Literal["boundary_results/1"] = "boundary_results/1"
    train: SideLabel
    infer: SideLabel
    mapping: FileDigest
    boundaries: list[BoundaryResult]
    weights: list[BoundaryResult]
    first_divergence: FirstDivergence | None
    counts: dict[str, int]
    overall: Overall
