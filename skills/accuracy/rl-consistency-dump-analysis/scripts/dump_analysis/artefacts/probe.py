"""probe.json: facts of one or both dumps, from stage 1."""

from typing import Literal

import msgspec

from .common import Worded


class TensorCounts(msgspec.Struct, frozen=True):
    """Recorded tensors of a unit; ``input`` counts keyword arguments too."""

    input: int
    output: int
    parameters: int


class UnitFacts(msgspec.Struct, frozen=True):
    """One unit. ``folder`` is below the path that was given; ``msprobe`` a release range or ``unknown``."""

    folder: str
    step: int
    rank: int
    msprobe: str
    task: str | None
    level: str | None
    entries: int
    tensors: TensorCounts
    missing_files: list[str]
    stale_files: list[str]
    complete: bool
    inputs_are: Literal["pre_call", "post_call", "unknown"]


class SideFacts(msgspec.Struct, frozen=True):
    """One side. ``prefixes``: the path of the repeated layers (N for the number) and its ancestors;
    ``fused``: entries that look fused; ``trace``: keys of construct.json, over all units."""

    label: str
    digest: str
    units: list[UnitFacts]
    prefixes: list[str]
    fused: list[str]
    trace: int


class Probe(msgspec.Struct, frozen=True, kw_only=True):
    """What the dumps hold. A side that was not given, or cannot be read, is None (and a remark says why)."""

    schema: Literal["probe/1"] = "probe/1"
    train: SideFacts | None
    infer: SideFacts | None
    remarks: list[Worded]
