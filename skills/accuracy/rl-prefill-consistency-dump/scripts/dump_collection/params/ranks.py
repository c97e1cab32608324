"""Sides whose ranks hold parts of the model, compared rank by rank: how parts lie is the same on both sides, whatever it is."""

from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple

from msprobe_files.errors import DumpError

from .items import Compared, Item
from .pipelined import as_one
from .sources import Side


def rank_by_rank(train: Side, infer: Side, compare: Callable[[Side, Side], Compared]) -> Compared:
    """One comparison, or one for each rank where ranks hold parts; items that are alike on all ranks stand once.

    The stages of a pipeline are put together first.  Raises DumpError where only one side is in parts, or the two have other ranks.
    """
    train, infer = as_one(train), as_one(infer)
    ranks = [sorted({one.rank for one in side.parameters if one.rank is not None}) for side in (train, infer)]
    if not ranks[0] and not ranks[1]:
        return compare(train, infer)
    if ranks[0] != ranks[1]:
        shown = [
            "%s in %s" % (side.label, "ranks %s" % ", ".join(map(str, own)) if own else "one piece")
            for side, own in zip((train, infer), ranks)
        ]
        raise DumpError(
            "Cannot compare weights: %s, so their parts do not pair. Hand a checkpoint of each side, or ranks of one parallel layout."
            % " and ".join(shown)
        )
    found = {rank: compare(_of_rank(train, rank), _of_rank(infer, rank)) for rank in ranks[0]}
    items, renamed = _items(found)
    only = [tuple(dict.fromkeys(name for one in found.values() for name in names(one))) for names in (_train_only, _infer_only)]
    return Compared(items, _groups(found, renamed), only[0], only[1])


def _named(ranks: Sequence[int]) -> str:
    return "ranks %s" % ", ".join(map(str, ranks)) if ranks else "one piece"


def _of_rank(side: Side, rank: Optional[int]) -> Side:
    return side._replace(parameters=tuple(one._replace(rank=None) for one in side.parameters if one.rank == rank))


def _train_only(one: Compared) -> Sequence[str]:
    return one.train_only


def _infer_only(one: Compared) -> Sequence[str]:
    return one.infer_only


def _items(found: Dict[int, Compared]) -> Tuple[Tuple[Item, ...], Dict[Tuple[int, str], str]]:
    """The items, and what each is called: with its rank where ranks do not say the same."""
    by_name: Dict[str, List[Tuple[int, Item]]] = {}
    for rank, one in found.items():
        for item in one.items:
            by_name.setdefault(item["canonical"], []).append((rank, item))
    items: List[Item] = []
    renamed = {}
    for name, ranked in by_name.items():
        first = ranked[0][1]
        alike = len(ranked) == len(found) and all(_said(item) == _said(first) for _, item in ranked)
        for rank, item in ranked[:1] if alike else ranked:
            items.append(item if alike else {**item, "canonical": "rank%d.%s" % (rank, name)})
        renamed.update({(rank, name): name if alike else "rank%d.%s" % (rank, name) for rank, _ in ranked})
    return tuple(items), renamed


def _said(item: Item) -> Tuple[Any, ...]:
    return tuple(item[key] for key in ("status", "priority", "kind", "note"))


def _groups(found: Dict[int, Compared], renamed: Dict[Tuple[int, str], str]) -> Tuple[Dict[str, Any], ...]:
    """Groups of one cause on several ranks as one."""
    groups: Dict[str, Dict[str, Any]] = {}
    for rank, one in found.items():
        for group in one.groups:
            names = [renamed[rank, name] for name in group["items"]]
            known = groups.setdefault(group["cause"]["text"], {**group, "items": []})
            known["items"] += [name for name in names if name not in known["items"]]
    return tuple(groups.values())
