"""stub_instruction.json: which module inputs of one side the collection is to override with what the other side recorded.

Source: mindstudio-probe 26.2.0, ``load``: arguments that are tensors themselves, positional (``index``) or by keyword (``kwarg``).
"""

from typing import Literal

import msgspec
from msprobe_files.operands import Operand

from .common import SideLabel, SideName, Worded

Kind = Literal["cut", "forced"]


class Expect(msgspec.Struct, frozen=True):
    """What the target's call must receive."""

    shape: list[int]
    dtype: str


class StubInput(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One argument, by its position or by its name; ``operand``: tensors of the source side, cut and shaped for it."""

    index: int | msgspec.UnsetType = msgspec.UNSET
    kwarg: str | msgspec.UnsetType = msgspec.UNSET
    operand: Operand = msgspec.field(name="from")
    expect: Expect

    @property
    def label(self) -> str:
        """The argument as the target's tensors are called: ``input.0``, ``kwargs.hidden_states``."""
        return f"input.{self.index}" if self.index is not msgspec.UNSET else f"kwargs.{self.kwarg}"


class StubModule(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One call of a module of the target; without ``rank`` on every rank."""

    target_entry: str
    rank: int | msgspec.UnsetType = msgspec.UNSET
    inputs: list[StubInput]


class Isolated(msgspec.Struct, frozen=True):
    """The boundary from which on both sides go on from equal values, and the modules that make it."""

    boundary: str
    train: str | None
    infer: str | None


class Expected(msgspec.Struct, frozen=True):
    """What an outcome at a boundary would mean."""

    boundary: str
    if_: Literal["EXACT", "NOT_EXACT"] = msgspec.field(name="if")
    means: Worded


class Requires(msgspec.Struct, frozen=True):
    msprobe_load: bool
    level: Literal["L0", "mix"]


class StubInstruction(msgspec.Struct, frozen=True, kw_only=True):
    schema: Literal["stub_instruction/1"] = "stub_instruction/1"
    round: int
    kind: Kind
    source_side: SideName
    target_side: SideName
    isolate_boundary: Isolated | None
    modules: list[StubModule]
    dump_after_load: bool = True
    expected: list[Expected]
    reason: Worded
    source_dump: SideLabel
    requires: Requires
