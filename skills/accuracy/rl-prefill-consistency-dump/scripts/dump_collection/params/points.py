"""Differences put together by cause, and what to do about each."""

import re
from typing import Any, Dict, List, NamedTuple, Optional, Sequence, Tuple

from dump_collection.wording import word

from .configs import shown
from .items import Compared
from .judged import MISSING_SIDE, NOT_EFFECTIVE, Item
from .readings import Reading

INSTRUCTION = "param_alignment_instruction/1"
_FRAME = re.compile(r"\A(?:fields|extra)\.")
_VERIFY = "param_align_check: %s EXACT"


class Point(NamedTuple):
    """A mismatch point: differences of one cause, the leading one first. ``layer``: who found it; ``told``: its cause and impact."""

    id: str
    items: Tuple[Item, ...]
    layer: str = "config"
    told: Tuple[Dict[str, Any], ...] = ()

    @property
    def lead(self) -> Item:
        return next((item for item in self.items if item.canonical == item.root), self.items[0])

    def as_json(self) -> Dict[str, Any]:
        told = self.told or (cause(self), impact(self))
        return {"id": self.id, "items": [item.canonical for item in self.items], "cause": told[0], "impact": told[1]}


def of(items: Sequence[Item], layers: Dict[str, Compared]) -> List[Point]:
    """The points of those items that shut the gate, in their order; then the groups of the other layers, without what was waived."""
    groups: Dict[str, List[Item]] = {}
    for item in items:
        if item.shuts and item.as_found is None:
            groups.setdefault(item.root, []).append(item)
    found = [Point("", tuple(group)) for group in groups.values()]
    named = {item.canonical: item for item in items if item.shuts and item.as_found is not None}
    for layer, compared in layers.items():
        for one in compared.groups:
            inside = tuple(named.pop(name) for name in one["items"] if name in named)
            if inside:
                found.append(Point("", inside, layer, (one["cause"], one["impact"])))
    return [point._replace(id="P%d" % (at + 1)) for at, point in enumerate(found)]


def cause(point: Point) -> Dict[str, Any]:
    """Why the sides differ, worded."""
    lead = point.lead
    field, train, infer = _field(lead), _value(lead.train), _value(lead.infer)
    side = "train" if lead.train.keys or lead.train.stated else "infer"
    here = lead.train if side == "train" else lead.infer
    if lead.wanted is not None:
        return _request(lead, shown(lead.wanted["value"]))
    if lead.kind == "conflict":
        return word("sources_contradict", side=side, places=["%s = %s" % (key, shown(value)) for key, value in here.value.items()])
    if lead.kind == "undeclared":
        return word("field_undeclared", side=side, field=field, value=_value(here))
    if lead.kind == "module":
        built = lead.train if (lead.train.key or "").startswith("modules.") else lead.infer
        other = lead.infer if built is lead.train else lead.train
        return word("module_differs", module=lead.canonical[len("config.modules.") :], value=_value(built), other=_value(other))
    if lead.status == MISSING_SIDE:
        return word("field_on_one_side", field=field, value=_value(here), side=side)
    if lead.priority == "switch" and any(item.kind in NOT_EFFECTIVE for item in point.items):
        return word("switch_overwritten", field=field, train=train, infer=infer)
    kind = "value_lost" if lead.lost else ("switch_differs" if lead.priority == "switch" else "value_differs")
    return word(kind, field=field, train=train, infer=infer)


def _request(lead: Item, asked: str) -> Dict[str, Any]:
    name = lead.canonical[len("requested.") :]
    if lead.train.keys or lead.train.stated:
        return word("request_lost", field=name, requested=asked, effective=_value(lead.train))
    near = (lead.note or "").rpartition("the nearest name is ")
    return word("request_unknown", field=name, requested=asked, nearest=near[2] if near[1] else "none")


def impact(point: Point) -> Dict[str, Any]:
    """What the difference changes in a prefill, worded."""
    lead = point.lead
    found = {item.canonical: item for item in point.items}
    factor, length = found.get("config.rope_factor"), found.get("config.rope_orig_max")
    if lead.canonical == "config.pos_embedding" and factor and length and lead.infer.meaning == "yarn":
        return word("yarn_lost", factor=_value(factor.infer), length=_value(length.infer))
    if lead.canonical == "config.sliding_window":
        widths = [side.meaning for side in (lead.train, lead.infer) if isinstance(side.meaning, int) and side.meaning]
        return word("changes_window", window=min(widths)) if widths else word("changes_attention")
    return word("changes_" + lead.module)


def instruction(points: Sequence[Point]) -> Dict[str, Any]:
    """What is to be done about each point: on which side, by which means, and how to see that it is done."""
    return {"schema": INSTRUCTION, "points": [_advice(point) for point in points]}


def _advice(point: Point) -> Dict[str, Any]:
    lead = point.lead
    side, method = "train", "config"
    if point.layer == "weights":
        side, method = "infer", "weight"
    elif point.layer == "structure" or lead.kind in ("undeclared", "module"):
        method = "code"
    if lead.kind == "conflict" and lead.infer.keys:
        side = "infer"
    here = lead.train if side == "train" else lead.infer
    names = [item.canonical for item in point.items]
    target = _first_few(names) if point.told else _target(here.key) or "the field that decides %s" % lead.canonical
    return {
        "id": point.id, "align_side": side, "method": method, "target": target, "action": _action(point, method),
        "verify": _VERIFY % _first_few(names),
    }  # fmt: skip


def _action(point: Point, method: str) -> str:
    lead, again = point.lead, "build the model again"
    if point.told and lead.status == MISSING_SIDE and method == "weight":
        return "%s; then compare again" % point.told[0]["text"]
    if method == "weight":
        return (
            "%s: load the trainer's weights into the engine once more (or one checkpoint into both), then compare again"
            % point.told[0]["text"]
        )
    if point.layer == "structure":
        return "%s: align the configuration that decides which modules and shapes are built, then %s" % (point.told[0]["text"], again)
    if lead.wanted is not None:
        return "make the requested %s reach the model, or drop the request; %s" % (shown(lead.wanted["value"]), again)
    if lead.kind == "conflict":
        return "make the contradicting places agree, then %s" % again
    if lead.kind == "undeclared":
        return "write the field that the installed config class declares (search it: grep -n in transformer_config.py), then %s" % again
    if method == "code":
        return "make the module take the configured value instead of its constructor's default, then %s" % again
    there = lead.infer
    if not there.keys and there.state == "absent":
        return "state what the infer side builds in a field map (infer_expected), or align it; then %s" % again
    meant = "%s = %s" % (there.key, _value(there)) if there.keys else "%s (%s)" % (_value(there), there.note or "its default")
    return "set it to what the infer side has, %s, after whatever writes it last; %s" % (meant, again)


def _target(key: Optional[str]) -> str:
    """Where a person sets it: the fields of a recorded provider are the provider's attributes."""
    if not key:
        return ""
    return ", ".join(_FRAME.sub("provider.", part) for part in key.split(", "))


def _field(item: Item) -> str:
    key = item.train.key or item.infer.key or item.canonical
    return ", ".join(part.rpartition(".")[2] for part in key.split(", "))


def _value(reading: Reading) -> Any:
    value = reading.value
    if value is None and reading.state != "null" and reading.stated:
        value = reading.meaning
    return value if isinstance(value, (int, float)) and not isinstance(value, bool) else shown(value)


def _first_few(names: List[str]) -> str:
    return ", ".join(names[:4]) + (" and %d more" % (len(names) - 4) if len(names) > 4 else "")
