"""The cos and sin, or the angles, that a side recorded for a layer: known by what they hold, not by their names."""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from msprobe_files.units import Record, Unit

from dump_analysis import floats
from dump_analysis.floats import Array
from dump_analysis.replay.formulas.rotary import INTERLEAVED
from dump_analysis.replay.recorded import beside, matrix_of
from dump_analysis.sides import Place, Side
from dump_analysis.tensors import Files

_WIDEST = 512  # columns of a table
_CIRCLE = 0.02  # relative: cos² + sin² of 16-bit numbers are within .008 of one constant
_LINE = 1e-4  # relative: float32 angles against positions


class Recorded(NamedTuple):
    """cos and sin [rows, pairs], or in ``cos`` angles and None; rows are all that the side's tensors have.

    ``interleaved``: whether each angle stands twice side by side; None where it stands once.
    """

    cos: Array
    sin: Array | None
    dtype: str
    names: tuple[str, ...]
    interleaved: bool | None

    @property
    def laid_out(self) -> str | None:
        """The function of a rotation for which the table is laid out."""
        return None if self.interleaved is None else INTERLEAVED if self.interleaved else ""


class Rows(NamedTuple):
    """Rows of a side's tensors: ``places`` [total] of each in its row of a batch, which are ``length`` long; ``compared``: numbers of
    those that are."""

    places: Array
    length: int
    compared: Array

    @property
    def total(self) -> int:
        return len(self.places)


def recorded(files: Files, side: Side, near: Place, entry: str, rows: Rows, positions: Array | None) -> Recorded | None:
    """The table nearest to an entry: among what the entries around it were handed, else the only one of the unit.

    ``near``: any tensor of the unit. ``positions``: of the compared tokens [rows], which tell angles. None where there is no table, or
    several that are not the same.
    """
    unit = near.unit
    for around in _around(unit, entry):
        own = [record for record in unit.entries.get(around, ()) if record.category in ("input", "kwargs")]
        found = _among(files, side, near, own, rows, positions)
        if found is not None:
            return found
    made = [record for record in unit.records() if record.category == "output"]
    each = [one for group in _by_entry(made) if (one := _among(files, side, near, group, rows, positions)) is not None]
    alike = all(np.array_equal(one.cos, each[0].cos) for one in each)
    return each[0] if each and alike else None


def _around(unit: Unit, entry: str) -> Iterator[str]:
    """The entries that enclose one, the innermost first."""
    trace, seen = unit.trace or {}, {entry}
    parent = trace.get(entry)
    while parent is not None and parent not in seen:
        yield parent
        seen.add(parent)
        parent = trace.get(parent)


def _by_entry(records: Sequence[Record]) -> list[list[Record]]:
    found: dict[str, list[Record]] = {}
    for record in records:
        found.setdefault(record.entry, []).append(record)
    return list(found.values())


def _among(files: Files, side: Side, near: Place, records: Sequence[Record], rows: Rows, positions: Array | None) -> Recorded | None:
    fitting = [record for record in records if _width(record, rows) is not None]
    for one, two in pairwise(fitting):
        if one.shape == two.shape and one.dtype == two.dtype:
            cos, sin = (_read(files, side, near, record, rows) for record in (one, two))
            if _on_a_circle(cos[rows.compared], sin[rows.compared]):
                return _once(Recorded(cos, sin, one.dtype or "", (one.name, two.name), None))
    for one in fitting:
        if one.dtype == "float32" and positions is not None:
            angles = _read(files, side, near, one, rows)
            if _on_lines(angles[rows.compared], positions):
                return _once(Recorded(angles, None, "float32", (one.name,), None))
    return None


def _width(record: Record, rows: Rows) -> int | None:
    """Columns of a tensor that holds one row a token, or a place; None for any other."""
    if record.file is None or not record.shape or record.dtype is None or floats.is_integer(record.dtype):
        return None
    elements = int(np.prod(record.shape))
    width = record.shape[-1]
    return width if 1 < width <= _WIDEST and elements in (rows.total * width, rows.length * width) else None


def _read(files: Files, side: Side, near: Place, record: Record, rows: Rows) -> Array:
    width = (record.shape or (0,))[-1]
    matrix = matrix_of(files, beside(side, near, record), width)
    whole = matrix.read(0, matrix.rows)
    return whole if matrix.rows == rows.total else whole[rows.places]


def _on_a_circle(cos: Array, sin: Array) -> bool:
    """Whether cos² + sin² is one constant, and not all rows are the same."""
    squares = cos * cos + sin * sin
    middle = float(np.median(squares))
    varies = len(cos) == 1 or bool((cos != cos[:1]).any())
    return middle > 0 and bool((np.abs(squares - middle) <= _CIRCLE * middle).all()) and varies


def _on_lines(angles: Array, positions: Array) -> bool:
    """Whether each column is position times a number."""
    last = int(np.argmax(np.abs(positions)))
    if not positions[last] or not angles[last].any():
        return False
    straight = positions[:, None] / positions[last] * angles[last]
    return bool((np.abs(angles - straight) <= _LINE * np.abs(straight) + 1e-6).all())


def _once(table: Recorded) -> Recorded:
    """Each angle once: both halves of a table, or each two columns, may hold the same."""
    both = [part for part in (table.cos, table.sin) if part is not None]
    half = table.cos.shape[1] // 2
    if table.cos.shape[1] % 2:
        return table
    if all(np.array_equal(part[:, :half], part[:, half:]) for part in both):
        cut, interleaved = slice(0, half), False
    elif all(np.array_equal(part[:, ::2], part[:, 1::2]) for part in both):
        cut, interleaved = slice(0, None, 2), True
    else:
        return table
    return table._replace(cos=table.cos[:, cut], sin=None if table.sin is None else table.sin[:, cut], interleaved=interleaved)
