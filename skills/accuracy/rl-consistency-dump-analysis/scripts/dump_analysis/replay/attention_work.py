"""What one side recorded of rotation and attention: which tensors are q, k and v, how they fall into heads and sequences, and the table.

Where a side recorded the attention itself, its inputs are the rotated q, k and v; where it did not, rotation and attention are one
stretch from the projections to what the output projection received. All is judged from shapes, contents and the mapping.
"""

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from msprobe_files import release
from msprobe_files.units import Record

from dump_analysis import floats
from dump_analysis.artefacts.replay_results import Span
from dump_analysis.artefacts.semantic_mapping import Row
from dump_analysis.floats import Array
from dump_analysis.replay import heads, rotary_tables
from dump_analysis.replay.attention_seen import K_ROPE, Q_ROPE, Seen, known_width, operand_of, seen_of
from dump_analysis.replay.blocks import blocks
from dump_analysis.replay.formulas import FORMULAS
from dump_analysis.replay.formulas.attention import WINDOW
from dump_analysis.replay.formulas.attention_kernels import SCALE, SOFT_CAP
from dump_analysis.replay.heads import Heads
from dump_analysis.replay.modules import Pair, Work, entry_of
from dump_analysis.replay.recorded import CannotReplay, Matrix, beside, held, matrix_of, value_of
from dump_analysis.sides import Place
from dump_analysis.tensors import Files, described, same_file
from dump_analysis.wording import word

CORE = "attn_core.out"
_SOURCES = {Q_ROPE: ("q_norm.out", "q.out"), K_ROPE: ("k_norm.out", "k.out")}
_KEYED: tuple[heads.Role, ...] = ("query", "key", "value")
_WIDTHS = (128, 64, 256, 96, 80, 32, 112, 192, 16, 8, 512, 160)  # of heads, the most frequent first


def is_attention(row: Row) -> bool:
    """Whether a row is of rotation or attention."""
    return row.boundary.startswith("layers.") and row.boundary.endswith((f".{CORE}", f".{Q_ROPE}", f".{K_ROPE}"))


def works_of(files: Files, pair: Pair, row: Row, label: str, stated: Mapping[str, float]) -> list[Work]:
    """What is needed to recompute one side, in the order of computation. Raises CannotReplay, saying why, where something is missing."""
    layer, place = _split(row.boundary)
    seen = seen_of(files, pair, row, label, layer, stated)
    entry = entry_of(row, label) or seen.cut.place.record.entry
    if place != CORE:
        return _rotations(seen, entry, {place: _own(seen, row)}, None)
    return _attention(seen, row, entry)


def span_of(row: Row, pair: Pair) -> Span | None:
    """The boundaries from which and to which rotation and attention are recomputed as one; None for one module."""
    if not is_attention(row):
        return None
    layer, place = _split(row.boundary)
    if place != CORE or f"{layer}{Q_ROPE}" in pair.rows:
        return None
    start = [next((f"{layer}{name}" for name in _SOURCES[part] if f"{layer}{name}" in pair.rows), "") for part in (Q_ROPE, K_ROPE)]
    return Span([*(name for name in start if name), f"{layer}v.out"], row.boundary)


def _split(boundary: str) -> tuple[str, str]:
    _, number, place = boundary.split(".", 2)
    return f"layers.{number}.", place


def _own(seen: Seen, row: Row) -> Matrix:
    return value_of(seen.files, seen.side, operand_of(row, seen.side.label))


# --- the rotation ---


def _rotations(seen: Seen, entry: str, rotated: Mapping[str, Matrix], width: int | None) -> list[Work]:
    """The table, where it was recorded, and the rotation of each value, by place. ``width``: of a head, None: not known yet."""
    table = rotary_tables.recorded(seen.files, seen.side, seen.cut.place, entry, seen.rows, seen.positions)
    works = [] if table is None or seen.positions is None else [_table_work(seen, table, entry)]
    for place, output in rotated.items():
        given = _first(seen.value, _SOURCES[place])
        if given is None or (given.rows, given.columns) != (output.rows, output.columns):
            raise CannotReplay(word("replay_no_input", entry=entry))
        inputs, roles = _with_table(seen, given, table)
        wide = width or known_width(seen) or (2 * table.cos.shape[1] if table is not None else None)
        if wide is None or output.columns % wide:
            raise CannotReplay(word("replay_no_heads", name=output.name, width=wide or 0))
        layout = Heads(wide, wide, roles, seen.sequences, table.laid_out if table is not None else None)
        works.append(Work(entry, (), ("rotary",), output, inputs, {}, "absent", (), _inputs_are(seen), heads=layout))
    return works


def _with_table(seen: Seen, given: Matrix, table: rotary_tables.Recorded | None) -> tuple[tuple[Matrix, ...], tuple[heads.Role, ...]]:
    if table is not None:
        parts = _table_parts(table, seen.rows.compared)
        return (given, *parts), ("query", "table", "table") if len(parts) == 2 else ("query", "table")
    if seen.positions is None:
        raise CannotReplay(word("replay_no_positions", side=seen.side.label))
    return (given, held("positions", "float32", seen.positions[:, None])), ("query", "position")


def _table_parts(table: rotary_tables.Recorded, rows: Array) -> tuple[Matrix, ...]:
    """Some rows of cos and sin, or of the angles."""
    return tuple(held(table.names[0], "float32", part[rows]) for part in (table.cos, table.sin) if part is not None)


def _table_work(seen: Seen, table: rotary_tables.Recorded, entry: str) -> Work:
    assert seen.positions is not None
    output = (table.cos if table.sin is None else np.concatenate([table.cos, table.sin], 1))[seen.rows.compared]
    operator = "rotary_angles" if table.sin is None else "rotary_table"
    inputs = (held("positions", "float32", seen.positions[:, None]),)
    return Work(entry, (), (operator,), held(table.names[0], table.dtype, output), inputs, {}, "absent", (), _inputs_are(seen))


def _inputs_are(seen: Seen) -> str:
    return release.inputs_are(seen.cut.place.unit)


# --- attention ---


def _attention(seen: Seen, row: Row, entry: str) -> list[Work]:
    """One work of attention where its inputs were recorded, after those of the rotation where nobody compares that; else one stretch."""
    output, inputs = _own(seen, row), _attention_inputs(seen, row)
    q, k, v = seen.value(Q_ROPE), seen.by_key(K_ROPE), seen.by_key("v.out")
    if inputs is None and q is not None and k is not None and v is not None:
        inputs = (q, k, v)
    if inputs is None:
        return _stretch(seen, entry, output)
    work = _with_heads(seen, Work(entry, (), ("attention",), output, inputs, {}, "absent", (), _inputs_are(seen)), _KEYED, None)
    if seen.row(Q_ROPE) is not None or not _is_turned(seen, inputs[0]) or work.heads is None:
        return [work]
    keys = _compared(seen, inputs[1])
    return [*_rotations(seen, entry, {Q_ROPE: inputs[0], K_ROPE: keys}, work.heads.width), work]


def _compared(seen: Seen, keys: Matrix) -> Matrix:
    """The compared rows of what is read by key."""
    return held(keys.name, keys.dtype, keys.read(0, keys.rows)[seen.rows.compared]) if seen.padded else keys


def _stretch(seen: Seen, entry: str, output: Matrix) -> list[Work]:
    """From the projections to the attention's output."""
    q, k, v = _first(seen.value, _SOURCES[Q_ROPE]), _first(seen.by_key, _SOURCES[K_ROPE]), seen.by_key("v.out")
    if q is None or k is None or v is None:
        raise CannotReplay(word("replay_no_input", entry=entry))
    table = rotary_tables.recorded(seen.files, seen.side, seen.cut.place, seen.cut.place.record.entry, seen.rows, seen.positions)
    if table is None or table.sin is None:
        raise CannotReplay(word("replay_no_table", side=seen.side.label))
    of_keys = np.arange(seen.rows.total) if seen.padded else seen.rows.compared
    parts = (*_table_parts(table, seen.rows.compared), *_table_parts(table, of_keys))
    work = Work(entry, (), ("rotary_attention",), output, (q, k, v, *parts), {}, "absent", (), _inputs_are(seen))
    before = [] if seen.positions is None else [_table_work(seen, table, entry)]
    work = _with_heads(seen, work, (*_KEYED, "table", "table", "key_table", "key_table"), 2 * table.cos.shape[1])
    assert work.heads is not None
    return [*before, work._replace(heads=work.heads._replace(laid_out=table.laid_out))]


def _first(value: Callable[[str], Matrix | None], names: Sequence[str]) -> Matrix | None:
    return next((found for name in names if (found := value(name)) is not None), None)


def _with_heads(seen: Seen, work: Work, roles: tuple[heads.Role, ...], turned: int | None) -> Work:
    """The work with its heads: as wide as is known, else as wide as makes the output come nearest. ``turned``: columns that a table turns.

    Raises CannotReplay where no width fits the shapes.
    """
    known = known_width(seen)
    widths = [known] if known is not None else [width for width in _WIDTHS if turned is None or width >= turned]
    found = [work._replace(heads=layout) for width in widths if (layout := _layout(work, width, roles, seen.sequences)) is not None]
    if not found:
        raise CannotReplay(word("replay_no_heads", name=work.output.name, width=known or turned or 0))
    return found[0] if len(found) == 1 else min(found, key=_distance)


def _distance(work: Work) -> float:
    """How far the first head is from the truth with the usual constants, relative to it."""
    formula = FORMULAS[work.operators[0]]
    assert work.heads is not None
    usual = {SCALE: work.heads.width**-0.5, WINDOW: np.inf, SOFT_CAP: np.inf}
    block = next(blocks(work, formula, usual, work.output.dtype))
    apart = formula.truth(block.given)[0] - block.recorded
    return float(np.linalg.norm(apart) / max(np.linalg.norm(block.recorded), 1e-300))


def _layout(work: Work, width: int, roles: tuple[heads.Role, ...], sequences: tuple[heads.Sequence, ...]) -> Heads | None:
    """None where shapes do not come out as heads of this width."""
    q, k, v = work.inputs[:3]
    count, groups = q.columns // width, k.columns // width
    even = count and groups and q.columns % width == k.columns % width == 0 and count % groups == v.columns % groups == 0
    stop = max(one.last for one in sequences)
    alike = q.rows == work.output.rows and all(one.rows >= stop for one in (k, v))
    if not even or not alike or work.output.columns != count * (v.columns // groups):
        return None
    return Heads(width, v.columns // groups, roles, sequences)


def _attention_inputs(seen: Seen, row: Row) -> tuple[Matrix, Matrix, Matrix] | None:
    """q, k and v of the entry that handed the value out, if it was handed three such tensors and owns no weight."""
    place = seen.cut.place
    named = [name for name in (place.record.entry, entry_of(row, seen.side.label)) if name is not None]
    for entry in dict.fromkeys([*named, *place.unit.entries]):
        records = place.unit.entries.get(entry, ())
        given = [record for record in records if _is_by_token(seen, record)][:3]
        owns = any(record.category == "parameters" and record.suffix != "sinks" for record in records)
        if owns or len(given) < 3:
            continue
        if any(record.category == "output" and _same(place, beside(seen.side, place, record)) for record in records):
            q, k, v = (_by_token(seen, record, whole=seen.padded and at > 0) for at, record in enumerate(given))
            return q, k, v
    return None


def _same(one: Place, other: Place) -> bool:
    if other.record.file is None or other.record.file in other.unit.missing_files:
        return False
    if one.record.name == other.record.name:
        return True
    alike = (_elements(one.record), one.record.dtype) == (_elements(other.record), other.record.dtype)
    told = one.record.statistics and other.record.statistics and one.record.statistics != other.record.statistics
    return alike and not told and same_file(*map(described, (one, other)))


def _is_by_token(seen: Seen, record: Record) -> bool:
    """Whether a floating input holds some columns for each token."""
    floating = record.category in ("input", "kwargs") and record.file is not None and not floats.is_integer(record.dtype)
    return floating and _elements(record) % seen.rows.total == 0 and _elements(record) > seen.rows.total


def _by_token(seen: Seen, record: Record, *, whole: bool) -> Matrix:
    """The input cut to the compared tokens, or whole."""
    width = _elements(record) // seen.rows.total
    return matrix_of(seen.files, beside(seen.side, seen.cut.place, record), width, None if whole else seen.rows.compared)


def _is_turned(seen: Seen, q: Matrix) -> bool:
    """Whether the attention was handed something else than the projections made."""
    given = _first(seen.value, _SOURCES[Q_ROPE])
    return given is not None and not np.array_equal(given.read(0, given.rows), q.read(0, q.rows))


def _elements(record: Record) -> int:
    return int(np.prod(record.shape or (0,)))
