"""stub_outcome.json: what the collection says of a round: what was prepared, and which inputs the new dump proves overridden."""

from typing import Any, Literal

import msgspec

from .common import FileDigest, Worded


class Prepared(msgspec.Struct, frozen=True):
    """One file of the source folder, its path below it."""

    file: str
    shape: list[int]
    dtype: str
    digest: str


class NewDump(msgspec.Struct, frozen=True):
    label: str
    path: str
    digest: str


class Effect(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One argument of one call; ``rank`` only where several ranks were overridden."""

    target_entry: str
    rank: int | msgspec.UnsetType = msgspec.UNSET
    input: str
    overridden: bool
    evidence: Worded


class StubOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """``new_dump``, ``effective`` None: prepared, and not verified yet."""

    schema: Literal["stub_outcome/1"] = "stub_outcome/1"
    round: int
    instruction: FileDigest
    load_config: dict[str, Any]
    prepared: list[Prepared]
    new_dump: NewDump | None = None
    effect: list[Effect] = []
    effective: bool | None = None
    warnings: list[Worded] = []
