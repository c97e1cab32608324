"""One compared field as it stands in the report, with what it was read from."""

from typing import Any, Dict, List, NamedTuple, Optional, Tuple

from .readings import ABSENT, NOWHERE, Reading
from .table import NO_EFFECT, PRIORITIES

EXACT, DIFF, MISSING_SIDE, WAIVED = "EXACT", "DIFF", "MISSING_SIDE", "waived"
NOT_EFFECTIVE = ("requested_not_effective", "undeclared")  # kinds: a value that is there and that nothing reads


class Item(NamedTuple):
    """``root``: the canonical name of the difference that it follows from, its own where it follows from none. ``module``: what uses it.

    ``wanted``: what was asked for, where the item is about a request; ``lost``: the side's value is its library's default.
    """

    canonical: str
    train: Reading
    infer: Reading
    status: str
    priority: str
    kind: str
    note: Optional[str]
    module: str = "all"
    root: str = ""
    wanted: Any = None
    lost: bool = False

    @property
    def shuts(self) -> bool:
        """Whether it is a difference that keeps the gate shut."""
        return self.status in (DIFF, MISSING_SIDE) and self.priority != NO_EFFECT

    def as_json(self) -> Dict[str, Any]:
        sides = {
            name: {"key": side.key, "value": side.value, "state": side.state}
            for name, side in (("train", self.train), ("infer", self.infer))
        }
        return {
            "canonical": self.canonical,
            **sides,
            "status": self.status,
            "priority": self.priority,
            "kind": self.kind,
            "note": self.note,
        }


def from_json(value: Dict[str, Any], module: str) -> Item:
    """An item of the structure or weight layer; items of one kind are one difference."""
    train, infer = (_reading(value.get(side) or {}) for side in ("train", "infer"))
    return Item(
        str(value["canonical"]), train, infer, str(value["status"]), str(value["priority"]), str(value["kind"]), value.get("note"), module,
        root="%s %s" % (module, value["kind"]),
    )  # fmt: skip


def _reading(side: Dict[str, Any]) -> Reading:
    key = side.get("key")
    return NOWHERE._replace(keys=(str(key),) if key else (), value=side.get("value"), state=side.get("state", ABSENT))


def in_order(items: List[Item]) -> List[Item]:
    """What shuts the gate first, then by priority; the order of the table within."""
    return sorted(items, key=lambda item: (not item.shuts, PRIORITIES.index(item.priority)))


def notes(*told: Optional[str]) -> Optional[str]:
    """Several notes as one, each once."""
    return "; ".join(dict.fromkeys(note for note in told if note)) or None


def keys_used(items: List[Item], side: str) -> Tuple[str, ...]:
    """The places of one side that some comparison consumed."""
    return tuple(key for item in items for key in getattr(item, side).keys)
