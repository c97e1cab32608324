"""One compared field as it stands in the report, with what it was read from."""

from typing import Any, Dict, List, NamedTuple, Optional, Tuple

from .configs import public
from .readings import NOWHERE, Reading
from .table import NO_EFFECT, PRIORITIES

EXACT, DIFF, MISSING_SIDE, WAIVED = "EXACT", "DIFF", "MISSING_SIDE", "waived"
NOT_EFFECTIVE = ("requested_not_effective", "undeclared")  # kinds: a value that is there and that nothing reads


class Item(NamedTuple):
    """``root``: the canonical name of the difference that it follows from, its own where it follows from none. ``module``: what uses it.

    ``wanted``: what was asked for, where the item is about a request; ``lost``: the side's value is its library's default.
    ``as_found``: the item as another layer wrote it.
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
    as_found: Optional[Dict[str, Any]] = None

    @property
    def shuts(self) -> bool:
        """Whether it is a difference that keeps the gate shut."""
        return self.status in (DIFF, MISSING_SIDE) and self.priority != NO_EFFECT

    def as_json(self) -> Dict[str, Any]:
        if self.as_found is not None:
            return {**self.as_found, "status": self.status}
        sides = {
            name: {"key": side.key, "value": public(side.value), "state": side.state}
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


def from_layer(value: Dict[str, Any]) -> Item:
    """An item of the structure or weight layer."""
    return Item(value["canonical"], NOWHERE, NOWHERE, value["status"], value["priority"], value["kind"], value["note"], as_found=value)


def in_order(items: List[Item]) -> List[Item]:
    """What shuts the gate first, then by priority; the order of the table within."""
    return sorted(items, key=lambda item: (not item.shuts, PRIORITIES.index(item.priority)))


def notes(*told: Optional[str]) -> Optional[str]:
    """Several notes as one, each once."""
    return "; ".join(dict.fromkeys(note for note in told if note)) or None


def keys_used(items: List[Item], side: str) -> Tuple[str, ...]:
    """The places of one side that some comparison consumed."""
    return tuple(key for item in items for key in getattr(item, side).keys)
