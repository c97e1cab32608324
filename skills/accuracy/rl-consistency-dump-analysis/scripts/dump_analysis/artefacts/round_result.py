"""round_result.json: what an override round has shown."""

from typing import Literal

import msgspec

from .boundary_results import Status
from .common import FileDigest, SideName, Worded
from .conclusion import Character

Basis = Literal["replay", "noise_floor", "weights", "fingerprint"]
Stop = Literal["all_exact", "only_rounding", "all_listed", "evidence_missing", "continue"]
Inputs = Literal["equal", "carried", "unseen"]


class Isolation(msgspec.Struct, frozen=True):
    boundary: str
    status: Status


class Local(msgspec.Struct, frozen=True):
    """A boundary of a forced round.

    ``inputs``: ``equal`` where all that its value is made from was overridden or is EXACT, so that the difference is its own;
    ``carried`` where something that it is made from differs; ``unseen`` where that was not recorded. ``character`` None: exact, or not
    its own. ``evidence``: why that character.
    """

    module: str
    boundary: str
    status: Status
    character: Character | None
    rel_l2: float | None
    basis: Basis | None
    inputs: Inputs = "equal"
    evidence: list[Worded] = []


class Downstream(msgspec.Struct, frozen=True):
    """A boundary behind the cut, likewise."""

    boundary: str
    status: Status
    character: Character | None
    rel_l2: float | None
    basis: Basis | None = None
    inputs: Inputs = "equal"
    evidence: list[Worded] = []


class Contradiction(msgspec.Struct, frozen=True):
    """Replay and the round disagree: what each says. ``finding`` None: replay knew of no difference."""

    finding: str | None
    boundary: str
    replay: Worded
    round: Worded


class Next(msgspec.Struct, frozen=True):
    boundary: str


class RoundResult(msgspec.Struct, frozen=True, kw_only=True):
    """``why_not``: why the round is not effective, and nothing was judged; ``target_side``: the side that was overridden."""

    schema: Literal["round_result/1"] = "round_result/1"
    round: int
    instruction: FileDigest | None = None
    target_side: SideName | None = None
    kind: Literal["cut", "forced"] | None = None
    effective: bool
    why_not: Worded | None
    isolated: Isolation | None
    local: list[Local]
    downstream: list[Downstream]
    confirmed: list[str]
    contradicted: list[Contradiction]
    next: Next | None
    stop: Stop
