"""The assembly plan: how one dump is put together from ranks, stages and dump steps (``ranks`` of a mapping, or a file of its own)."""

from pathlib import Path
from typing import Any, Literal

import msgspec
from msprobe_files.operands import Op, Operand, Source, as_json, parse

from . import io
from .common import SideLabel

How = Literal["replicated", "cat", "sum", "stage", "chunk", "replica"]
Basis = Literal["weights", "values", "dataflow", "tokens", "structure", "declared"]


Steps = list[dict[str, Any]] | msgspec.UnsetType  # left out where there are none


class UnitAt(msgspec.Struct, frozen=True):
    """A unit that takes part."""

    step: int
    rank: int


class Parallel(msgspec.Struct, frozen=True):
    """How many ranks each kind of parallelism has, as far as the dumps show it. ``sp``: ranks hold parts of the tokens as well."""

    tp: int = 1
    pp: int = 1
    ep: int = 1
    cp: int = 1
    sp: bool = False
    dp: int = 1


class PartAt(msgspec.Struct, frozen=True, kw_only=True):
    """A part of a tensor: which recorded tensor, and its ops."""

    rank: int
    dump_step: int
    name: str
    steps: Steps = msgspec.UNSET


class Assembled(msgspec.Struct, frozen=True, kw_only=True):
    """A tensor of the assembled dump. ``order``: its parts; ``steps``: ops after joining.

    ``how``: ``replicated`` and ``replica`` (equal on several ranks: the first is taken), ``cat`` and ``sum`` over ranks,
    ``stage`` (of one rank of one pipeline stage), ``chunk`` (rows of several dump steps, joined like ``cat``).
    """

    name: str
    how: How
    axis: int | None
    order: list[PartAt]
    steps: Steps = msgspec.UNSET


class Disagreement(msgspec.Struct, frozen=True):
    """A tensor that all of its ranks should hold alike and do not."""

    name: str
    ranks: list[int]
    unequal: int
    max_abs_diff: float | None


class SidePlan(msgspec.Struct, frozen=True, kw_only=True):
    """How one side is put together. ``dump``: for which one it was made; a plan that people wrote need not say."""

    dump: SideLabel | msgspec.UnsetType = msgspec.UNSET
    units: list[UnitAt]
    parallel: Parallel = Parallel()
    tensors: list[Assembled]
    basis: list[Basis] = msgspec.field(default_factory=lambda: ["declared"])
    disagree: list[Disagreement] = []


class AssemblyPlan(msgspec.Struct, frozen=True):
    """The plans of both sides; None for a side of one unit."""

    train: SidePlan | None = None
    infer: SidePlan | None = None


def read(path: str | Path) -> AssemblyPlan:
    """A plan that people wrote or a run has proposed. Raises DumpError naming the field that is wrong."""
    value = io.load(path)
    if isinstance(value, dict):
        value = {"schema": "assembly_plan/1", **value}  # `ranks` of a mapping has none
    plan, _ = io.of_value(value, _File, Path(path).name, written_by_people=True)
    return AssemblyPlan(plan.train, plan.infer)


def write(path: str | Path, plan: AssemblyPlan) -> None:
    """Write a plan as a file of its own."""
    io.write(path, _File(train=plan.train, infer=plan.infer))


class _File(msgspec.Struct, frozen=True, kw_only=True):
    schema: Literal["assembly_plan/1"] = "assembly_plan/1"
    train: SidePlan | None = None
    infer: SidePlan | None = None


def ops_of(steps: Steps) -> tuple[Op, ...]:
    """The ops of a plan's JSON. Raises OperandError where one is none."""
    given = [] if isinstance(steps, msgspec.UnsetType) else steps
    return parse({"sources": [{"name": "x", "steps": given}], "combine": None}).sources[0].steps or ()


def as_steps(ops: tuple[Op, ...]) -> Steps:
    """Ops as a plan's JSON: the reverse of `ops_of`."""
    return as_json(Operand([Source("x", None, None, ops)]))["sources"][0]["steps"] if ops else msgspec.UNSET
