"""Weights joined by content: equal rows, columns or vectors of parameters join the entries that hold them."""

from collections import defaultdict
from collections.abc import Iterable
from math import prod
from typing import NamedTuple

import numpy as np
from msprobe_files.errors import DumpError
from msprobe_files.operands import Op

from dump_analysis import floats
from dump_analysis.floats import Array
from dump_analysis.mapping.recorded.columns import cut
from dump_analysis.mapping.recorded.dataflow import recorded_parts
from dump_analysis.mapping.recorded.keys import keys_of, places_of
from dump_analysis.mapping.recorded.nodes import Node, Parameter, SideNodes, Spot, add
from dump_analysis.mapping.recorded.token_rows import rows_of
from dump_analysis.tensors import Files, cut_stream, elements_of

_KEY = 16  # elements of a row, and rows of a column, that make its key
# Which rows have keys: (up to so many rows, two in so many, these). A coarser choice is part of a finer one, and
# rows of a fused matrix keep their choice as long as parts begin at multiples of 16 (head sizes).
_CHOICES = ((1024, 1, (0, 0)), (16384, 16, (0, 9)), (1 << 62, 64, (0, 41)))
_LARGEST_VECTOR = 1 << 17  # elements; longer ones are flat parameters of a sharded trainer
_SHARED = 0.3  # of the smaller side's keys joins two entries
_TURN = Op("permute", axes=(1, 0))
_WHOLE = 0.9  # of a smaller matrix's rows cut it out of a larger one

Modules = dict[tuple[str, str], tuple[float, str]]


class Lines(NamedTuple):
    """Keys of the rows or columns of an entry's matrices, with their numbers; lines of zeros are left out."""

    keys: Array
    numbers: Array


class EntryKeys(NamedTuple):
    """What an entry's parameters are joined by. ``choice``: the coarsest choice of rows among its matrices (0: all rows)."""

    rows: Lines
    columns: Lines
    vectors: frozenset[int]
    choice: int


# --- keys ---


def keyed(parameters: Iterable[Parameter], turned: frozenset[str] = frozenset()) -> dict[str, EntryKeys]:
    """The keys of every entry's float parameters. ``turned``: entries of matrices [in, out], whose columns are keyed as rows."""
    found: dict[str, list[EntryKeys]] = defaultdict(list)
    files = Files()
    try:
        for parameter in parameters:
            if floats.FORMATS[parameter.tensor.dtype].kind == "float":
                try:
                    found[parameter.entry].append(_keys(files, parameter, turned=parameter.entry in turned))
                except DumpError:
                    continue  # the comparison names the file and says why it cannot be read
    finally:
        files.close()
    return {entry: _together(each) for entry, each in found.items() if each}


def _together(each: list[EntryKeys]) -> EntryKeys:
    rows, columns = (_concatenated([getattr(one, kind) for one in each]) for kind in ("rows", "columns"))
    return EntryKeys(rows, columns, frozenset().union(*(one.vectors for one in each)), max(one.choice for one in each))


def _concatenated(lines: list[Lines]) -> Lines:
    return Lines(np.concatenate([line.keys for line in lines]), np.concatenate([line.numbers for line in lines]))


_NO_LINES = Lines(np.empty(0, np.uint64), np.empty(0, np.int64))


def _keys(files: Files, parameter: Parameter, *, turned: bool) -> EntryKeys:
    shape = parameter.tensor.shape[::-1] if turned else parameter.tensor.shape
    if len(shape) < 2:
        return EntryKeys(_NO_LINES, _NO_LINES, _vector_key(files, parameter), 0)
    rows, width = prod(shape[:-1]), shape[-1]
    choice = next(at for at, (most, _, _) in enumerate(_CHOICES) if rows <= most)
    numbers = np.flatnonzero(_chosen(np.arange(rows), choice))
    flat = (_TURN,) if turned else () if len(shape) == 2 else (Op("reshape", shape=(rows, width)),)
    some = (Op("take", axis=0, picked=tuple(numbers.tolist())),) if choice else ()
    first = width // 3
    part = Op("slice", axis=1, start=first, stop=min(width, first + _KEY))
    down = _lines(_read(files, parameter, (*flat, *some, part)).reshape(len(numbers), -1), numbers)
    return EntryKeys(down, _columns_of(files, parameter, shape, flat), frozenset(), choice)


def _columns_of(files: Files, parameter: Parameter, shape: tuple[int, ...], flat: tuple[Op, ...]) -> Lines:
    """The columns of a matrix by some of its rows; of a stack of matrices those of each, as one matrix alone would have them."""
    height, width = shape[-2:]
    stacked = prod(shape[:-2])
    picked = np.unique(np.linspace(0, height - 1, min(height, _KEY)).astype(np.int64))
    rows = (np.arange(stacked)[:, None] * height + picked).reshape(-1)
    columns = rows_of(files, parameter.tensor, flat, rows).reshape(stacked, len(picked), width).transpose(0, 2, 1)
    return _lines(columns.reshape(stacked * width, len(picked)), np.arange(stacked * width))


def _chosen(numbers: Array, choice: int) -> Array:
    """Which rows have keys under a choice."""
    _, every, among = _CHOICES[choice]
    return np.isin(numbers % every, among)


def _read(files: Files, parameter: Parameter, steps: tuple[Op, ...]) -> Array:
    stream = cut_stream(files, parameter.tensor, steps)
    with np.errstate(over="ignore"):
        return floats.values(stream.read(0, elements_of(stream)), parameter.tensor.dtype).astype(np.float32)


def _lines(part: Array, numbers: Array) -> Lines:
    kept = part.any(1)
    return Lines(keys_of(part[kept]), numbers[kept])


def _vector_key(files: Files, parameter: Parameter) -> frozenset[int]:
    """The key of a vector that is not constant: norms often start as ones."""
    if not 1 < parameter.tensor.elements <= _LARGEST_VECTOR:
        return frozenset()
    vector = _read(files, parameter, ())
    return frozenset((int(keys_of(vector[None])[0]),)) if (vector != vector[0]).any() else frozenset()


# --- joins ---


def join_modules(train: dict[str, EntryKeys], infer: dict[str, EntryKeys]) -> Modules:
    """Entries whose parameters are equal: (train, infer) -> (share of the smaller one's keys, rows | cols | vec).

    Columns are keyed by the same rows on both sides, so they join whole columns only.
    """
    joins = _line_joins(train, infer, "rows", "rows", {})
    joins = _line_joins(train, infer, "columns", "cols", joins)
    return {**_vector_joins(train, infer), **joins}


def without_stacks(modules: Modules, train: Iterable[Parameter], infer: Iterable[Parameter]) -> Modules:
    """The joins that speak of outputs: a stack of experts and the matrix of one of them return different values."""
    stacks = [{parameter.entry for parameter in side if len(parameter.tensor.shape) > 2} for side in (train, infer)]
    return {(mine, theirs): found for (mine, theirs), found in modules.items() if (mine in stacks[0]) == (theirs in stacks[1])}


def _line_joins(train: dict[str, EntryKeys], infer: dict[str, EntryKeys], kind: str, how: str, joins: Modules) -> Modules:
    """The joins with those by rows or columns added, where more lines are equal than in the joins before."""
    owners = list(train)
    lines = [getattr(keys, kind) for keys in train.values()]
    keys = np.concatenate([line.keys for line in lines] or [np.empty(0, np.uint64)])
    owner = np.repeat(np.arange(len(owners)), [len(line.keys) for line in lines])
    order = np.argsort(keys, kind="stable")
    joined = dict(joins)
    for entry, other in infer.items():
        wanted = getattr(other, kind)
        for at, votes in _votes(keys[order], owner[order], wanted.keys, len(owners)):
            choice = 0 if kind == "columns" else max(train[owners[at]].choice, other.choice)
            share = min(1.0, votes / max(1, min(_count(wanted, choice), _count(lines[at], choice))))
            if share > max(_SHARED, joined.get((owners[at], entry), (0.0, ""))[0]):
                joined[owners[at], entry] = share, how
    return joined


def _count(lines: Lines, choice: int) -> int:
    return int(_chosen(lines.numbers, choice).sum())


def _votes(keys: Array, owner: Array, wanted: Array, owners: int) -> list[tuple[int, int]]:
    """How many wanted keys each owner holds; of several owners of one key the first and the last count."""
    if not len(keys) or not len(wanted):
        return []
    low, high = np.searchsorted(keys, wanted), np.searchsorted(keys, wanted, "right")
    votes = np.bincount(np.concatenate([owner[low[high > low]], owner[high[high > low + 1] - 1]]), minlength=owners)
    return [(int(at), int(votes[at])) for at in np.flatnonzero(votes)]


def _vector_joins(train: dict[str, EntryKeys], infer: dict[str, EntryKeys]) -> Modules:
    """Entries without matrices that hold an equal vector."""
    holders: dict[int, list[str]] = defaultdict(list)
    for entry, keys in train.items():
        for key in () if len(keys.rows.keys) else keys.vectors:
            holders[key].append(entry)
    plain = {entry: keys for entry, keys in infer.items() if not len(keys.rows.keys)}
    return {
        (holder, entry): (1.0, "vec") for entry, keys in plain.items() for key in sorted(keys.vectors) for holder in holders.get(key, ())
    }


# --- slices of fused outputs ---


def cut_fused(
    side: SideNodes, own: dict[str, EntryKeys], other: dict[str, EntryKeys], joins: Iterable[tuple[str, str, float]]
) -> list[tuple[str, Node]]:
    """Cut an output where the weights of its columns make up a whole module of the other side; (that module, the part) of each.

    ``joins``: (own entry, other entry, share of equal rows).  Where the side's own data flow splits the output otherwise, its
    split stands: a wrongly laid out weight would bend the mapping along with the fault.
    """
    made = []
    for mine, theirs, share in joins:
        large, small = own[mine], other[theirs]
        whole = side.at.get((mine, "output", "0"))
        choice = max(large.choice, small.choice)
        if share < _WHOLE or whole is None or _count(small.rows, choice) >= _count(large.rows, choice):
            continue
        columns = _columns(large, small, whole.width)
        if not 0 < len(columns) < whole.width or columns[-1] >= whole.width:
            continue
        if any(0 < np.isin(part, columns).sum() < len(part) for part in recorded_parts(side, whole)):
            continue
        times = side.records.times
        place = Spot(times.end[mine] + 0.1, mine, "output", f"0[part{columns[0]}]", mine in times.leaves)
        part = add(side, cut(whole, columns, "part", place))
        if part is not None:
            made.append((theirs, part))
    return made


def _columns(large: EntryKeys, small: EntryKeys, width: int) -> Array:
    """The rows of a larger matrix that are a smaller one's, rising; a row without a key goes with the keyed one before it."""
    choice = max(large.choice, small.choice)
    wanted = small.rows.keys[_chosen(small.rows.numbers, choice)]
    at = places_of(large.rows.keys, wanted)
    if (at >= 0).sum() < _WHOLE * len(wanted):
        return np.empty(0, np.int64)
    found = np.unique(large.rows.numbers[at[at >= 0]])
    if choice == 0:
        return found
    starts = np.flatnonzero(_chosen(np.arange(width), choice))
    stops = np.append(starts[1:], width)
    runs = zip(found, stops[np.searchsorted(starts, found)], strict=True)
    return np.concatenate([np.arange(start, stop) for start, stop in runs])
