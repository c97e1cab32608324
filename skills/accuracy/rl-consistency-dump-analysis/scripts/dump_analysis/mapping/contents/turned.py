"""Which matrices a side keeps turned round, [in, out]: told by what their entries take and return."""

from collections.abc import Iterable

from dump_analysis import floats
from dump_analysis.mapping.recorded.nodes import Parameter, Recorded, SideNodes


def turned_entries(side: SideNodes) -> frozenset[str]:
    """Entries of matrices [in, out]; square ones go with the majority of the others."""
    widths = _widths(side.records.activations)
    found: dict[bool | None, list[str]] = {True: [], False: [], None: []}
    for parameter in side.parameters:
        if len(parameter.tensor.shape) == 2:
            found[_is_turned(parameter, widths)].append(parameter.entry)
    square = found[None] if len(found[True]) > len(found[False]) else []
    return frozenset([*found[True], *square])


def _is_turned(parameter: Parameter, widths: dict[tuple[str, str], int]) -> bool | None:
    """None for a square matrix; a table that whole numbers look up takes no row of floats, and is not turned."""
    rows, columns = parameter.tensor.shape
    taken, returned = (widths.get((parameter.entry, io)) for io in ("input", "output"))
    if rows == columns == taken == returned:
        return None
    return (rows, columns) == (taken, returned)


def _widths(activations: Iterable[Recorded]) -> dict[tuple[str, str], int]:
    """(entry, input | output) -> width of its first float input or output."""
    found: dict[tuple[str, str], int] = {}
    for recorded in activations:
        if floats.FORMATS[recorded.tensor.dtype].kind == "float":
            io = "output" if recorded.spot.io == "output" else "input"
            found.setdefault((recorded.spot.entry, io), recorded.tensor.shape[-1] if recorded.tensor.shape else 1)
    return found
