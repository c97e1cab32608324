"""A mapping that people wrote, made complete on two dumps: globs to names, bare names to ops, weights on a line of their own."""

import msgspec
from msprobe_files import names, pt_archive, units
from msprobe_files.errors import DumpError
from msprobe_files.operands import Operand, Source, bare_steps

from dump_analysis import floats
from dump_analysis.artefacts.common import Modules, SideLabel
from dump_analysis.artefacts.older_mapping import OlderOperand, fitting
from dump_analysis.artefacts.semantic_mapping import Row, SemanticMapping, Unmapped
from dump_analysis.mapping import named
from dump_analysis.sides import Place, Side, resolve


def complete(mapping: SemanticMapping, train: Side, infer: Side) -> SemanticMapping:
    """The mapping with every operand resolved on the two dumps; a name that no dump has is left as it is.

    Raises DumpError where a glob or a name fits several tensors.
    """
    rows = [_row(row, train, infer) for row in mapping.boundaries]
    weights = [_row(row, train, infer) for row in mapping.weights]
    listed = [row for row in rows if _is_weight(row)]
    if listed and not mapping.weights:  # a bare list holds both kinds
        weights = [msgspec.structs.replace(row, order=at) for at, row in enumerate(listed)]
        rows = [row for row in rows if not _is_weight(row)]
    return msgspec.structs.replace(
        mapping,
        train=SideLabel(train.label, train.digest),
        infer=SideLabel(infer.label, infer.digest),
        boundaries=rows,
        weights=weights,
    )


def as_declared(mapping: SemanticMapping) -> SemanticMapping:
    """The mapping without what joined its rows on other dumps."""
    rows, weights = (
        [msgspec.structs.replace(row, basis=["declared"], module=None) for row in rows] for rows in (mapping.boundaries, mapping.weights)
    )
    return msgspec.structs.replace(mapping, boundaries=rows, weights=weights, tokens=None, ranks=None)


def with_unmapped(mapping: SemanticMapping, train: Side, infer: Side) -> SemanticMapping:
    """The mapping with the recorded tensors that it leaves out, weights that it cuts only in part among them.

    Reads many files, so only done where the mapping is written.
    """
    left = {}
    for side in (train, infer):
        own = getattr(mapping.ranks, side.label) if mapping.ranks is not None else None
        units = None if own is None else {(at.step, at.rank) for at in own.units}
        recorded = [
            place
            for places in side.by_name.values()
            for place in places
            if place.record.category != "parameters_grad" and (units is None or (place.unit.place.step, place.unit.place.rank) in units)
        ]
        left[side.label] = sorted({*named.left_out(mapping, side, recorded), *named.partly_named(mapping, side)})
    return msgspec.structs.replace(mapping, unmapped=Unmapped(left["train"], left["infer"]))


def _row(row: Row, train: Side, infer: Side) -> Row:
    try:
        left, right = _operand(train, row.train), _operand(infer, row.infer)
    except DumpError as error:
        raise DumpError(f"{error} (boundary {row.boundary})") from None
    module = row.module or Modules(_module(train, left), _module(infer, right))
    return msgspec.structs.replace(row, train=left, infer=right, module=module)


def _is_weight(row: Row) -> bool:
    """Whether a completed row names parameters on both sides."""
    parsed = [names.parse_tensor(source.name) for operand in (row.train, row.infer) for source in operand.sources]
    return bool(parsed) and all(name is not None and name.category == "parameters" for name in parsed)


def _operand(side: Side, operand: Operand) -> Operand:
    older = isinstance(operand, OlderOperand)
    return Operand([_source(side, source, older=older) for source in operand.sources], operand.combine, operand.axis)


def _source(side: Side, source: Source, *, older: bool) -> Source:
    place = resolve(side, source)
    if place is None:
        return source
    steps = source.steps
    if steps is None or older:
        shape, dtype = _shape_and_dtype(place)
        if steps is None:
            steps = () if shape is None else bare_steps(shape, floats.is_integer(dtype), place.record.category == "parameters")
        elif shape is not None:
            steps = fitting(steps, shape)
    return source._replace(name=place.record.name, steps=steps)


def _shape_and_dtype(place: Place) -> tuple[tuple[int, ...] | None, str | None]:
    if place.record.shape is not None:
        return place.record.shape, place.record.dtype
    try:
        tensor = pt_archive.read_header(units.tensor_path(place.unit, place.record))
    except DumpError:
        return None, None  # the comparison names the file and says why it cannot be read
    return tensor.shape, tensor.dtype


def _module(side: Side, operand: Operand) -> str | None:
    """The entry that made the value, where the first source is an output or a parameter of it; else its recorded parent."""
    place = resolve(side, operand.sources[0]) if operand.sources else None
    if place is None:
        return None
    if place.record.category in ("output", "parameters"):
        return place.record.entry
    trace = place.unit.trace or {}
    return trace.get(place.record.entry)
