"""What a proposed mapping has otherwise than the one that stood in its place: rows that came, went, or join other tensors."""

from collections.abc import Iterator

from msprobe_files.operands import Operand

from dump_analysis.artefacts.common import Worded
from dump_analysis.artefacts.semantic_mapping import MissingRow, Row, SemanticMapping
from dump_analysis.wording import word

_Item = Row | MissingRow


def changes(before: SemanticMapping, after: SemanticMapping) -> list[Worded] | None:
    """What changed, in the order of the new mapping, then the rows that are gone; None where it is of other dumps or had no rows."""
    if not before.boundaries or (before.train, before.infer) != (after.train, after.infer):
        return None
    old, new = _items(before), _items(after)
    found = [sentence for name, item in new.items() for sentence in _changed(name, old.get(name), item)]
    return found + [word("row_gone", boundary=name) for name in old if name not in new]


def _items(mapping: SemanticMapping) -> dict[str, _Item]:
    items: list[_Item] = [*mapping.boundaries, *mapping.weights, *mapping.evidence_missing]
    return {item.boundary: item for item in sorted(items, key=lambda item: item.order)}


def _changed(name: str, old: _Item | None, new: _Item) -> Iterator[Worded]:
    if old is None:
        yield word("row_new", boundary=name)
    elif isinstance(old, Row) and isinstance(new, Row):
        yield from _of_rows(name, old, new)
    elif isinstance(old, MissingRow) != isinstance(new, MissingRow):
        yield word("row_joined" if isinstance(new, Row) else "row_parted", boundary=name)


def _of_rows(name: str, old: Row, new: Row) -> Iterator[Worded]:
    for side in ("train", "infer"):
        one, other = getattr(old, side), getattr(new, side)
        if _names(one) != _names(other):
            yield word("row_changed", boundary=name, side=side, before=_names(one), after=_names(other))
        elif one != other:
            yield word("row_cut", boundary=name, side=side)
        made = [getattr(row.module, side) if row.module is not None else None for row in (old, new)]
        if made[0] != made[1]:
            yield word("row_module", boundary=name, side=side, before=made[0] or "–", after=made[1] or "–")
    if set(old.basis) != set(new.basis):
        yield word("row_basis", boundary=name, before=old.basis, after=new.basis)


def _names(operand: Operand) -> list[str]:
    return [source.name for source in operand.sources]
