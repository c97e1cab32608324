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


class BoundaryResult(msgspec.Struct, frozen=True):
    """One boundary or weight. Measures that need more than the gate are None."""

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
    ulp: dict[str, Any] | None = None
    direction: dict[str, Any] | None = None
    where: dict[str, Any] | None = None
    gain: dict[str, Any] | None = None
    statistics: dict[str, Any] | None = None
    sampled: dict[str, Any] | None = None
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
