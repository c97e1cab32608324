"""Items of the parameter report about structure and weights, and those of one cause taken together."""

from typing import Any, Dict, List, NamedTuple, Optional, Sequence, Tuple

Item = Dict[str, Any]


class Compared(NamedTuple):
    """What a layer of the check found. ``groups``: {"items": [canonical], "cause": worded, "impact": worded} of what differs."""

    items: Tuple[Item, ...]
    groups: Tuple[Dict[str, Any], ...]
    train_only: Tuple[str, ...]
    infer_only: Tuple[str, ...]


def side_of(keys: Sequence[str], value: Any) -> Dict[str, Any]:
    """One side of an item; without a key it is absent there."""
    if not keys:
        return {"key": None, "value": None, "state": "absent"}
    return {"key": keys[0] if len(keys) == 1 else list(keys), "value": value, "state": "set"}


def item(
    canonical: str,
    train: Dict[str, Any],
    infer: Dict[str, Any],
    status: str,
    priority: str,
    kind: Optional[str],
    note: Optional[Dict[str, Any]],
) -> Item:
    """An item as contracts have it; ``note`` worded, written as its English text."""
    return {
        "canonical": canonical, "train": train, "infer": infer, "status": status, "priority": priority, "kind": kind,
        "note": note["text"] if note is not None else None,
    }  # fmt: skip


def runs(numbers: Sequence[int]) -> List[str]:
    """Whole numbers as stretches, in words: 0–3, 5."""
    from msprobe_files.weight_order import runs_of

    return [str(start) if stop - start == 1 else "%d–%d" % (start, stop - 1) for start, stop in runs_of(sorted(numbers))]
