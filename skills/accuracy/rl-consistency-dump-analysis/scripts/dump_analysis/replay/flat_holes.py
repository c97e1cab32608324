"""Weights that neither side recorded as their own: the only hole of their size in a flat parameter around the module.

A weight found so is proven by what it explains: a whole output, to the last element.
"""

from collections.abc import Mapping

import numpy as np
from msprobe_files.operands import Op, Operand
from msprobe_files.units import Record, Unit

from dump_analysis import floats
from dump_analysis.artefacts.semantic_mapping import Row
from dump_analysis.boundaries import is_weight
from dump_analysis.mapping.recorded.cuts import cut_op
from dump_analysis.mapping.rows.flat_parameters import holes_of
from dump_analysis.replay.recorded import Cut, Matrix, beside, matrix_by, place_of
from dump_analysis.sides import Place, Side
from dump_analysis.tensors import Files


def cut_out(rows: Mapping[str, Row], label: str) -> dict[str, list[tuple[int, int]]]:
    """Name of a side's recorded parameter -> the stretches of it that the mapping cuts out as weights."""
    found: dict[str, list[tuple[int, int]]] = {}
    for name, row in rows.items():
        for source in (row.train if label == "train" else row.infer).sources if is_weight(name) else ():
            first = source.steps[0] if source.steps else None
            if first is not None and first.op == "slice" and first.start is not None and first.stop is not None:
                found.setdefault(source.name, []).append((first.start, first.stop))
    return found


def weight_in_hole(files: Files, side: Side, taken: dict[str, list[tuple[int, int]]], cut: Cut) -> dict[str, Matrix]:
    """The weight [N, K] of the entry that made a cut, N its output's columns and K its input's, and its bias where the hole is N longer.

    ``taken``: name of a recorded parameter -> the stretches of it that are known to be other weights. None where no hole, or several, fit.
    """
    unit, height = cut.place.unit, cut.width
    tokens = _elements(cut.place.record) // height
    inputs = [record for record in unit.entries[cut.place.record.entry] if record.category in ("input", "kwargs")]
    widths = {_elements(record) // tokens for record in inputs if record.shape and tokens and not floats.is_integer(record.dtype)}
    found = []
    for flat in _flats(unit, cut.place.record.entry):
        holes = holes_of(taken.get(flat.name, []), _elements(flat))
        found += [(flat, *hole, width) for hole in holes for width in widths if hole[1] - hole[0] in (height * width, height * (width + 1))]
    if len(found) != 1:
        return {}
    flat, start, stop, width = found[0]
    place = beside(side, cut.place, flat)
    weights = {"weight": _part(files, place, (start, start + height * width), width, cut)}
    if stop - start > height * width:
        weights["bias"] = _part(files, place, (start + height * width, stop), 1, cut)
    return weights


def bias_behind(files: Files, side: Side, taken: dict[str, list[tuple[int, int]]], weight: Operand, cut: Cut) -> dict[str, Matrix]:
    """What stands right behind a weight [N, K] that is cut out of a flat parameter, where that is a hole of N: its module's bias."""
    source = weight.sources[0]
    first = source.steps[0] if source.steps else None
    place = place_of(side, source)
    if len(weight.sources) > 1 or first is None or first.op != "slice" or first.stop is None or len(place.record.shape or ()) != 1:
        return {}
    stretch = first.stop, first.stop + cut.width
    if stretch not in holes_of(taken.get(place.record.name, []), _elements(place.record)):
        return {}
    return {"bias": _part(files, place, stretch, 1, cut)}


def _part(files: Files, place: Place, stretch: tuple[int, int], width: int, cut: Cut) -> Matrix:
    ops = [Op("slice", axis=0, start=stretch[0], stop=stretch[1])]
    ops += [Op("reshape", shape=(-1, width))] if width > 1 else []
    ops += [] if np.array_equal(cut.columns, np.arange(cut.width)) else [cut_op(0, cut.columns)]
    return matrix_by(files, place, ops)


def _flats(unit: Unit, entry: str) -> list[Record]:
    """The vectors that entries around an entry recorded as parameters."""
    trace, around, above = unit.trace or {}, [], (unit.trace or {}).get(entry)
    while above is not None and above not in around and above != entry:
        around.append(above)
        above = trace.get(above)
    records = [record for name in around for record in unit.entries.get(name, ()) if record.category == "parameters"]
    return [record for record in records if record.file is not None and record.shape is not None and len(record.shape) == 1]


def _elements(record: Record) -> int:
    return int(np.prod(record.shape or (0,)))
