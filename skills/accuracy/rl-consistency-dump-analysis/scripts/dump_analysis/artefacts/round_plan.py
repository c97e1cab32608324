"""round_plan.json: which override rounds still add knowledge, which do not, and what to switch where nothing can be overridden."""

from typing import Literal

import msgspec

from .common import FileDigest, SideName, Worded


class PlannedRound(msgspec.Struct, frozen=True):
    """A round; ``instruction`` None: to be written once the rounds before it are judged."""

    round: int
    instruction: FileDigest | None
    adds: Worded


class Ablation(msgspec.Struct, frozen=True):
    """One switch of one side in place of an override."""

    switch: Worded
    side: SideName
    instead_of: str
    expect: Worded


class NotNeeded(msgspec.Struct, frozen=True):
    finding: str
    because: Worded


class RoundPlan(msgspec.Struct, frozen=True, kw_only=True):
    """``open``: findings that no round has confirmed and replay has not proven."""

    schema: Literal["round_plan/1"] = "round_plan/1"
    open: list[str]
    rounds: list[PlannedRound]
    ablations: list[Ablation]
    not_needed: list[NotNeeded]
    remarks: list[Worded] = []
