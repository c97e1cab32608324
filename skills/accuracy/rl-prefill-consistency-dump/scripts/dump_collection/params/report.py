"""param_alignment_report.json: all layers that were checked, their differences, and what nobody compared."""

from typing import Any, Dict, List, NamedTuple, Sequence

from . import comparison, configs, declared, points, written
from .configs import Config
from .judged import NOT_EFFECTIVE, WAIVED, Item, in_order, keys_used
from .points import Point
from .table import NO_EFFECT

SCHEMA = "param_alignment_report/1"
CHECKED, NOT_CHECKED = "checked", "not_checked"
LAYERS = ("structure", "weights")


class Files(NamedTuple):
    """What the command was given, as paths; None: not given."""

    train: str
    infer: str
    mapping: Any = None
    requested: Any = None
    waivers: Any = None


class Report(NamedTuple):
    """``layers``: which were checked. ``coverage``: by side the fields that a comparison consumed, and those that none did."""

    layers: Dict[str, str]
    items: List[Item]
    points: List[Point]
    waivers: List[written.Waiver]
    coverage: Dict[str, Dict[str, Any]]
    keys: Dict[str, List[str]]
    warnings: List[str]

    @property
    def aligned(self) -> bool:
        """Nothing that was checked differs without a waiver."""
        return not self.points

    def as_json(self) -> Dict[str, Any]:
        return {
            "schema": SCHEMA,
            "layers": self.layers,
            "items": [item.as_json() for item in self.items],
            "mismatch_points": [point.as_json() for point in self.points],
            "requested_not_effective": [item.canonical for item in self.items if item.kind in NOT_EFFECTIVE],
            "train_only_keys": self.keys["train"],
            "infer_only_keys": self.keys["infer"],
            "coverage": self.coverage,
            "waivers": [{"id": waiver.item, "reason": waiver.reason} for waiver in self.waivers],
            "aligned": self.aligned,
        }

    def without_effect(self) -> List[Item]:
        return [item for item in self.items if item.priority == NO_EFFECT and item.status not in ("EXACT", WAIVED)]


def check(given: Files, of_layers: Dict[str, List[Item]]) -> Report:
    """Both configurations, and the items of the other layers that were checked (``of_layers``, by name), in one report.

    Raises DumpError where a file cannot be used.
    """
    train, infer = configs.read(given.train, "train"), configs.read(given.infer, "infer")
    found, warnings = _configuration(given, train, infer)
    items = found + [item for name in LAYERS for item in of_layers.get(name, [])]
    waived = written.waivers(given.waivers) if given.waivers else []
    items, more = _waive(items, waived)
    layers = {"config": CHECKED if found else NOT_CHECKED}
    layers.update({name: CHECKED if name in of_layers else NOT_CHECKED for name in LAYERS})
    ordered = in_order(items)
    return Report(
        layers, ordered, points.of(ordered), waived, {side.side: _coverage(side, found) for side in (train, infer)},
        {side: _only(side, of_layers.get("structure", [])) for side in ("train", "infer")}, warnings + more,
    )  # fmt: skip


def _configuration(given: Files, train: Config, infer: Config) -> Any:
    rows = written.field_map(given.mapping) if given.mapping else []
    mapped, warnings = declared.by_map(rows, train, infer, comparison.compare(train, infer) if rows else [])
    found = mapped + comparison.compare(train, infer, mapped)
    if given.requested:
        found += declared.by_request(written.requested(given.requested), train)
    return found + list(declared.by_modules(train, infer)), warnings


def _waive(items: Sequence[Item], waivers: Sequence[written.Waiver]) -> Any:
    """Items that a user lets pass; and a warning for each waiver that fits none."""
    names = {item.canonical for item in items} | {"layers." + name for name in LAYERS}
    allowed = {waiver.item for waiver in waivers}
    kept = [item._replace(status=WAIVED) if item.canonical in allowed and item.status != "EXACT" else item for item in items]
    return kept, ["the waiver of %s fits no item" % waiver.item for waiver in waivers if waiver.item not in names]


def _coverage(config: Config, items: Sequence[Item]) -> Dict[str, Any]:
    used, fields = set(keys_used(list(items), config.side)), config.fields()
    left = [path for path in fields if path not in used]
    return {"compared": len(fields) - len(left), "fields": len(fields), "not_compared": left}


def _only(side: str, items: Sequence[Item]) -> List[str]:
    """Parameters that one side alone has."""
    one, other = ("train", "infer") if side == "train" else ("infer", "train")
    return [key for item in items if item.status == "MISSING_SIDE" and not getattr(item, other).keys for key in getattr(item, one).keys]
