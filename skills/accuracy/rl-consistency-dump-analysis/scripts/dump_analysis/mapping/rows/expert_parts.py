"""Experts that a side runs one by one: which tokens the rows of their tensors are, found by the values of the experts' input."""

from collections import defaultdict, deque
from collections.abc import Mapping, Sequence
from math import prod
from typing import NamedTuple

import numpy as np
from msprobe_files.errors import DumpError
from msprobe_files.operands import Op, Operand, Source

from dump_analysis import floats
from dump_analysis.floats import Array
from dump_analysis.mapping.recorded.cuts import cut_op
from dump_analysis.mapping.recorded.keys import keys_of
from dump_analysis.mapping.recorded.nodes import Node, Recorded, SideNodes
from dump_analysis.mapping.recorded.token_rows import matrix_ops, rows_of
from dump_analysis.tensors import Files

_COLUMNS = 16  # of a row, that tell tokens apart
_PAIR = 2  # gate and up


class Part(NamedTuple):
    """A recorded tensor of one expert as a matrix. ``half``: 0 or 1 for that half of its columns."""

    recorded: Recorded
    half: int | None = None

    @property
    def matrix(self) -> tuple[Op, ...]:
        """The ops that make it a matrix [rows, columns]."""
        shape = self.recorded.tensor.shape
        size = shape[-1] // 2
        steps = () if len(shape) == 2 else (Op("reshape", shape=_matrix(shape)),)
        return steps if self.half is None else (*steps, Op("slice", axis=1, start=self.half * size, stop=self.half * size + size))

    def operand(self, rows: Array) -> Operand:
        """Some of its rows, in the order given."""
        whole = np.array_equal(rows, np.arange(_matrix(self.recorded.tensor.shape)[0]))
        return Operand([Source(self.recorded.record.name, None, None, self.matrix if whole else (*self.matrix, cut_op(0, rows)))])


class Apart(NamedTuple):
    """One expert by itself. ``tokens``: for each row of its tensors the joined token, -1 for other tokens and padding.

    ``entries``: those that run it, by start.  ``parts``: ``gate`` and ``up``, or ``gate_up`` in one, ``act_mul``, and ``out``.
    """

    tokens: Array
    entries: list[str]
    parts: dict[str, Part]


class _Tensors(NamedTuple):
    """The float tensors of entries within a window: inputs and outputs by entry, in the order of arguments."""

    inputs: Mapping[str, list[Recorded]]
    outputs: Mapping[str, list[Recorded]]


def experts_apart(side: SideNodes, hidden: Node, window: tuple[float, float], known: Mapping[str, int]) -> list[Apart]:
    """The experts that a side ran one by one between two times, in the order of their starts.

    ``hidden``: what the experts take, with a row for every token.  ``known``: entries that weights say are an expert's: these may
    take all tokens.
    """
    files = Files()
    try:
        tensors = _inside(side, window)
        finder = _Finder(side, hidden, files)
        heads: dict[str, Array] = {}
        for entry, inputs in tensors.inputs.items():
            found = next((rows for one in inputs if (rows := finder.tokens(one)) is not None), None)
            whole = found is not None and np.array_equal(found, np.arange(side.window.total))
            if found is not None and (not whole or entry in known):
                heads[entry] = found
        groups = _groups(side, tensors, heads)
    finally:
        files.close()
    joined = np.full(side.window.total + 1, -1)
    joined[side.window.rows] = np.arange(len(side.window.rows))
    return [Apart(joined[heads[group[0]]], group, parts) for group in groups if (parts := _parts(side, tensors, heads, group))]


def rows_at(files: Files, part: Part, rows: Array) -> Array:
    """Some rows of a part, float32 [rows, columns]. Raises DumpError where the file ends early."""
    return rows_of(files, part.recorded.tensor, part.matrix, rows)


def _matrix(shape: Sequence[int]) -> tuple[int, int]:
    return prod(shape[:-1]), shape[-1]


def _inside(side: SideNodes, window: tuple[float, float]) -> _Tensors:
    times = side.records.times
    inputs: dict[str, list[Recorded]] = defaultdict(list)
    outputs: dict[str, list[Recorded]] = defaultdict(list)
    for one in side.records.activations:
        entry = one.spot.entry
        inside = window[0] <= times.start[entry] and times.end[entry] <= window[1]
        if inside and len(one.tensor.shape) > 1 and floats.FORMATS[one.tensor.dtype].kind == "float":
            (outputs if one.spot.io == "output" else inputs)[entry].append(one)
    return _Tensors(inputs, outputs)


class _Finder:
    """Finds the rows of a tensor among the tokens of a side by 16 of their columns."""

    def __init__(self, side: SideNodes, hidden: Node, files: Files) -> None:
        self._files = files
        self._total, self._width = side.window.total, hidden.width
        source = next((one for one in side.records.activations if one.record.name == hidden.sources[0].name), None)
        ops = None if source is None or hidden.kind != "one" else matrix_ops(source.tensor.shape, side.window)
        self._places: dict[int, list[int]] = defaultdict(list)
        if source is not None and ops is not None:
            for row, key in enumerate(self._keys(source, ops, self._total)[0].tolist()):
                self._places[key].append(row)

    def _keys(self, recorded: Recorded, ops: tuple[Op, ...], count: int) -> tuple[Array, Array]:
        first = self._width // 3
        cut = Op("slice", axis=1, start=first, stop=min(self._width, first + _COLUMNS))
        rows = rows_of(self._files, recorded.tensor, (*ops, cut), np.arange(count))
        return keys_of(rows), np.asarray(rows.any(1))

    def tokens(self, recorded: Recorded) -> Array | None:
        """The token of each row, the number of tokens for rows of zeros; None where a row is no token's, or stands more than once."""
        count, width = _matrix(recorded.tensor.shape)
        if width != self._width or not self._places or count > self._total:
            return None
        try:
            keys, filled = self._keys(recorded, Part(recorded).matrix, count)
        except DumpError:
            return None
        free = {key: deque(self._places[key]) for key in set(keys.tolist()) & self._places.keys()}
        found = [free[key].popleft() if free.get(key) else -1 for key in keys.tolist()]
        tokens = np.where(filled, found, self._total)
        return tokens if filled.any() and (tokens >= 0).all() else None


def _groups(side: SideNodes, tensors: _Tensors, heads: Mapping[str, Array]) -> list[list[str]]:
    """Entries that run one expert: those that take its tokens, then those that go on with as many rows."""
    times = side.records.times
    groups: list[list[str]] = []
    going_on, until = False, -1.0
    for entry in sorted({*tensors.inputs, *tensors.outputs}, key=times.start.__getitem__):
        tokens = heads.get(entry)
        group = groups[-1] if groups and until > -1.0 else None
        if tokens is not None:
            same = group is not None and np.array_equal(heads[group[0]], tokens)
            if group is None or not same or (going_on and times.start[entry] > until and entry in times.leaves):
                groups.append([])
                going_on, until = False, times.end[entry]
            groups[-1].append(entry)
        elif group is not None and _rows(tensors, entry) == {len(heads[group[0]])}:
            group.append(entry)
            going_on = True
        else:
            until = -1.0
    return groups


def _rows(tensors: _Tensors, entry: str) -> set[int]:
    return {_matrix(one.tensor.shape)[0] for one in (*tensors.inputs.get(entry, ()), *tensors.outputs.get(entry, ()))}


def _parts(side: SideNodes, tensors: _Tensors, heads: Mapping[str, Array], group: Sequence[str]) -> dict[str, Part]:
    """The parts of one expert: what leaves that takes its tokens return, and what its last leaf takes and returns."""
    leaves = [entry for entry in group if entry in side.records.times.leaves and tensors.outputs.get(entry)]
    if not leaves:
        return {}
    last = leaves[-1]
    parts: dict[str, Part] = {}
    first = [tensors.outputs[entry][0] for entry in leaves if entry in heads and entry != last]
    if last not in heads and tensors.inputs.get(last):
        core = tensors.inputs[last][0]
        width = core.tensor.shape[-1]
        if len(first) == _PAIR:
            parts |= {"gate": Part(first[0]), "up": Part(first[1])}
        elif len(first) == 1:
            parts["gate_up" if first[0].tensor.shape[-1] == _PAIR * width else "up"] = Part(first[0])
        parts["act_mul"] = Part(core)
    parts["out"] = Part(tensors.outputs[last][0])
    return parts
