"""Rows of weights where no tensors were saved: of modules that joined rows show to correspond, fused ones cut by their rows."""

from collections.abc import Iterator, Sequence

from msprobe_files.operands import Op, Operand, Source

from dump_analysis.artefacts.common import Modules
from dump_analysis.artefacts.semantic_mapping import Basis, MissingRow, Row
from dump_analysis.mapping.recorded.nodes import Parameter
from dump_analysis.mapping.rows.weight_rows import stem_of
from dump_analysis.mapping.stated.stated import Stated
from dump_analysis.mapping.stated.stated_join import StatedJoin
from dump_analysis.statistics import is_order_blind
from dump_analysis.wording import word

_LINKED, _PLACED = 0.9, 0.6

_Entry = tuple[str, int, int]  # an entry, and which rows of its parameters: start, stop (0, 0: all)
_Own = dict[str, list[Parameter]]


def weights_of(join: StatedJoin, names: Sequence[str]) -> tuple[list[Row], list[MissingRow]]:
    """The rows of all parameters whose modules make joined rows, in their order, and what one side alone records of them."""
    own = _parameters(join.train), _parameters(join.infer)
    linked = {(id(mine), id(theirs)) for link in join.links for mine in link.train for theirs in link.infer}
    rows: list[Row] = []
    missing: list[MissingRow] = []
    taken: set[str] = set()
    for stem, mine, theirs, why in _pairs(join, names):
        sides = [{one.path: one for one in own[at].get(end[0], [])} if end else {} for at, end in enumerate((mine, theirs))]
        for path in dict.fromkeys([*sides[0], *sides[1]]):
            name, left, right = f"{stem}.{path}", sides[0].get(path), sides[1].get(path)
            if name in taken:
                continue
            taken.add(name)
            order = len(rows) + len(missing)
            if left is not None and right is not None and why == "untold" and not _same_bytes(left, right):
                reason = word("layout_untold", what=name)
                missing.append(MissingRow(name, order, reason, [left.record.name], [right.record.name]))
            elif left is not None and right is not None and mine and theirs:
                known = (id(left), id(right)) in linked
                basis: list[Basis] = ["weights"] if known else ["structure"]
                modules = Modules(left.entry, right.entry)
                confidence = _LINKED if known else _PLACED
                operands = _without_ones(left, right, _operand(left, mine), _operand(right, theirs))
                rows.append(Row(name, order, *operands, basis, confidence, modules))
            else:
                lacks = "infer" if left is not None else "train"
                found = [[one.record.name] if one is not None else [] for one in (left, right)]
                missing.append(MissingRow(name, order, word("not_recorded", side=lacks, what=name), *found))
    return rows, missing


def _same_bytes(one: Parameter, other: Parameter) -> bool:
    """Whether digests say that two parameters are equal however their rows lie."""
    digest = one.record.digest
    return digest is not None and digest == other.record.digest and not is_order_blind(digest)


def _parameters(side: Stated) -> _Own:
    found: _Own = {}
    for parameter in side.nodes.parameters:
        found.setdefault(parameter.entry, []).append(parameter)
    return found


def _operand(parameter: Parameter, end: _Entry) -> Operand:
    _, start, stop = end
    size = parameter.tensor.shape[0] if parameter.tensor.shape else 0
    steps = (Op("slice", axis=0, start=start, stop=stop),) if stop and (start, stop) != (0, size) else ()
    return Operand([Source(parameter.record.name, None, None, steps)])


def _without_ones(left: Parameter, right: Parameter, train: Operand, infer: Operand) -> tuple[Operand, Operand]:
    """The operands with their axes of size 1 squeezed away, where whole parameters differ in such axes alone."""
    shapes = [one.tensor.shape for one in (left, right)]
    kept = [[size for size in shape if size != 1] for shape in shapes]
    if shapes[0] == shapes[1] or kept[0] != kept[1] or any(operand.sources[0].steps for operand in (train, infer)):
        return train, infer
    squeezed = [tuple(Op("squeeze", axis=axis) for axis in reversed(range(len(shape))) if shape[axis] == 1) for shape in shapes]
    return _with_steps(train, squeezed[0]), _with_steps(infer, squeezed[1])


def _with_steps(operand: Operand, steps: tuple[Op, ...]) -> Operand:
    return Operand([source._replace(steps=steps) for source in operand.sources])


def _pairs(join: StatedJoin, names: Sequence[str]) -> Iterator[tuple[str, _Entry | None, _Entry | None, str]]:
    """What weights are called after, the leaf of each side that makes the row, and why the row is there."""
    cut = _cut_ends(join)
    for row, name in zip(join.rows, names, strict=True):
        if name.rpartition(".")[2].startswith("resid_") or row.why == "fused":
            continue
        ends: list[_Entry | None] = []
        for at, node in enumerate((row.train, row.infer)):
            maker = join.flows[at].maker.get(node)
            own: _Entry | None = (maker, 0, 0) if maker is not None else None
            if node.kind == "part":
                step = (node.sources[0].steps or ())[-1]
                own = (node.spots[0].entry, step.start or 0, step.stop or 0)
            ends.append(own)
        mate = cut.get(id(row.train)) or cut.get(id(row.infer))
        if mate is not None:
            ends[mate[0]] = mate[1]
        yield stem_of(name), ends[0], ends[1], row.why


def _cut_ends(join: StatedJoin) -> dict[int, tuple[int, _Entry]]:
    """A result of a module of its own -> the side that makes it in a fused one, and which rows of that module's parameters do."""
    found: dict[int, tuple[int, _Entry]] = {}
    for fused in join.fused:
        maker, start = join.flows[fused.of].maker.get(fused.whole), 0
        for part in fused.parts:
            if maker is not None:
                found[id(part)] = fused.of, (maker, start, start + part.width)
            start += part.width
    return found
