"""param_alignment_report.json: all layers that were checked, their differences, and what nobody compared."""

from typing import Any, Dict, List, NamedTuple, Sequence

from . import comparison, configs, declared, layers, points, written
from .configs import Config
from .judged import NOT_EFFECTIVE, WAIVED, Item, from_layer, in_order, keys_used, notes
from .layers import LAYERS
from .points import Point
from .readings import value_of
from .table import BY_NAME, NO_EFFECT
from .weights import Stated

_NOTHING = "Cannot compare the configurations: no field of either side is known. State them in a field map (--mapping)."
SCHEMA = "param_alignment_report/1"
CHECKED, NOT_CHECKED = "checked", "not_checked"


class Files(NamedTuple):
    """What the command was given, as paths; None: not given."""

    train: str
    infer: str
    mapping: Any = None
    requested: Any = None
    waivers: Any = None
    train_weights: Sequence[str] = ()
    infer_weights: Sequence[str] = ()
    previous: Any = None


class Report(NamedTuple):
    """``layers``: which were checked. ``coverage``: by side the fields that a comparison consumed, and those that none did.

    ``keys``: parameters that one side alone has. ``errors``: why something that was given could not be compared.
    """

    layers: Dict[str, str]
    items: List[Item]
    points: List[Point]
    waivers: List[written.Waiver]
    coverage: Dict[str, Dict[str, Any]]
    keys: Dict[str, List[str]]
    warnings: List[str]
    errors: List[str]

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


def check(given: Files) -> Report:
    """Both configurations, and the built models where they were given, in one report. Raises DumpError where a file cannot be used."""
    train, infer = configs.read(given.train, "train"), configs.read(given.infer, "infer")
    found, warnings = _configuration(given, train, infer)
    built = layers.Found({}, [])
    if given.train_weights:
        built = layers.compare(given.train_weights, given.infer_weights, given.previous, _stated(train, infer))
    of_layers = built.layers
    found = _as_laid(found, built)
    items = found + [from_layer(item) for compared in of_layers.values() for item in compared.items]
    waived = written.waivers(given.waivers) if given.waivers else []
    items, more = _waive(items, waived)
    checked = {"config": CHECKED if found else NOT_CHECKED}
    checked.update({name: CHECKED if name in of_layers else NOT_CHECKED for name in LAYERS})
    ordered = in_order(items)
    return Report(
        checked, ordered, points.of(ordered, of_layers), waived, {side.side: _coverage(side, found) for side in (train, infer)},
        {
            "train": [key for compared in of_layers.values() for key in compared.train_only],
            "infer": [key for compared in of_layers.values() for key in compared.infer_only],
        },
        warnings + more, built.errors if found else [*built.errors, _NOTHING],
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


def _stated(train: Config, infer: Config) -> Stated:
    """What the configurations say of how rows are read."""
    groups = comparison.read(train, BY_NAME["num_kv_heads"]).meaning
    neighbours = [comparison.read(config, BY_NAME["rotary_interleaved"]).meaning for config in (train, infer)]
    turns = [value_of(config, "moe_mlp_glu_interleave_size") for config in (train, infer)]
    return Stated(
        groups if isinstance(groups, int) else None,
        (neighbours[0] if isinstance(neighbours[0], bool) else None, neighbours[1] if isinstance(neighbours[1], bool) else None),
        (turns[0] if isinstance(turns[0], int) else None, turns[1] if isinstance(turns[1], int) else None),
    )


def _as_laid(found: Sequence[Item], built: layers.Found) -> List[Item]:
    """Rotary pairs that stand in another order on either side are read alike where q and k are laid out so."""
    compared = built.layers["weights"].items if "weights" in built.layers else ()
    of_heads = [one for one in compared if one["canonical"].rpartition(".")[0].rpartition(".")[2] in ("q", "k")]
    if not of_heads or any((one["status"], one["kind"]) != ("EXACT", "neighbours") for one in of_heads):
        return list(found)
    note = "the rows of q and k stand in the order in which each side rotates them"
    return [
        one._replace(status="EXACT", note=notes(one.note, note)) if one.canonical == "config.rotary_interleaved" else one for one in found
    ]
