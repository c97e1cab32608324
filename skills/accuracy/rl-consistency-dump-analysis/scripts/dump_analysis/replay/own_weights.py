"""The weights that an entry recorded of its own, as the formulas take them: told by shapes and by what the entry returns.

A matrix is [outputs, inputs], or the turned form in which transformers' Conv1D stores it; a matrix with as many elements as a token has
numbers is the gains of a norm's heads. A bias that the entry also returns as it is was not added: whoever called it adds it later, as
Megatron-Core's linears with skip_bias_add leave it.
"""

import math
from typing import Literal

from msprobe_files.operands import Op
from msprobe_files.units import Record

from dump_analysis.floats import is_integer
from dump_analysis.mapping.recorded.cuts import cut_op
from dump_analysis.replay.recorded import Cut, Matrix, beside, matrix_of, turned
from dump_analysis.sides import Place, Side
from dump_analysis.tensors import Files, same

WEIGHT, BIAS, HANDED_BIAS = "weight", "bias", "handed_bias"
Layout = Literal["rows", "turned", "heads"]


def own_weights(files: Files, side: Side, cut: Cut, *, is_turned: bool = False) -> dict[str, Matrix]:
    """Weight and bias of the entry that made a cut, the rows of them that make its columns; none where it recorded no weight.

    ``is_turned``: the mapping turns the matrix, which the shape of a square one cannot tell. Gains of heads come as [heads, D].
    """
    found: dict[str, Matrix] = {}
    records = cut.place.unit.entries[cut.place.record.entry]
    for record in parameters(records):
        if record.suffix not in (WEIGHT, BIAS) or record.shape is None:
            continue
        place = beside(side, cut.place, record)
        if len(record.shape) == 1:
            picked = cut.columns if record.shape[0] == cut.width else None
            name = HANDED_BIAS if record.suffix == BIAS and _handed_on(files, side, place) else record.suffix
            found[name] = matrix_of(files, place, record.shape[0], columns=picked)
        elif len(record.shape) == 2:
            found[record.suffix] = _matrix(files, place, cut, layout_of(cut.place, record, is_turned=is_turned))
    return found if WEIGHT in found else {}


def layout_of(made: Place, weight: Record, *, is_turned: bool = False) -> Layout:
    """How a matrix of two axes is meant, by the sizes of what its entry was handed and returned."""
    rows, columns = weight.shape or (0, 0)
    size, width = elements(made.record), (made.record.shape or (0,))[-1]
    records = made.unit.entries[made.record.entry]
    handed = [
        elements(one) for one in records if one.category in ("input", "kwargs") and one.file is not None and not is_integer(one.dtype)
    ]
    if any(one * rows == size * columns for one in handed) and width == rows and not is_turned:
        return "rows"
    if any(one * columns == size * rows for one in handed) and width == columns and (rows != columns or is_turned):
        return "turned"
    return "heads" if size in handed and width in (columns, rows * columns) else "rows"


def _matrix(files: Files, place: Place, cut: Cut, layout: Layout) -> Matrix:
    rows, columns = place.record.shape or (0, 0)
    if layout == "turned":
        return turned(files, place, [Op("permute", axes=(1, 0)), cut_op(0, cut.columns)])
    picked = cut.columns if layout == "rows" and rows == cut.width else None
    return matrix_of(files, place, columns, picked)


def _handed_on(files: Files, side: Side, bias: Place) -> bool:
    """Whether the entry returns its bias as it is."""
    records = bias.unit.entries[bias.record.entry]
    width = elements(bias.record)
    returned = (one for one in records if one.category == "output" and one.file is not None and elements(one) == width)
    own = matrix_of(files, bias, width).stream
    return any(same(own, matrix_of(files, beside(side, bias, one), width).stream) for one in returned)


def parameters(records: tuple[Record, ...]) -> list[Record]:
    """The floating parameters that hold anything."""
    return [record for record in records if record.category == "parameters" and record.file is not None and elements(record)]


def elements(record: Record) -> int:
    """How many there are; none where no shape is known."""
    return math.prod(record.shape or (0,))
