"""param_alignment_report.json: what the collection skill found of the two sides' configurations, structures and weights."""

from typing import Any, Literal

import msgspec

from .common import Worded

ItemStatus = Literal["EXACT", "DIFF", "MISSING_SIDE", "waived"]


class Item(msgspec.Struct, frozen=True):
    """One field, name or weight on both sides."""

    canonical: str
    train: dict[str, Any] | None = None
    infer: dict[str, Any] | None = None
    status: ItemStatus = "EXACT"
    priority: str = ""
    kind: str = ""
    note: Any = None


class Point(msgspec.Struct, frozen=True):
    """Items that differ by one cause."""

    id: str
    items: list[str] = []
    cause: Worded | None = None
    impact: Worded | None = None


class Waiver(msgspec.Struct, frozen=True):
    """What a user lets stand, and why."""

    id: str
    reason: str = ""


class ParamReport(msgspec.Struct, frozen=True, kw_only=True):
    schema: Literal["param_alignment_report/1"] = "param_alignment_report/1"
    layers: dict[str, str] = {}
    items: list[Item] = []
    mismatch_points: list[Point] = []
    requested_not_effective: list[Any] = []
    train_only_keys: list[Any] = []
    infer_only_keys: list[Any] = []
    coverage: dict[str, Any] = {}
    waivers: list[Waiver] = []
    aligned: bool
