"""The matrices of routed experts as a side recorded them: stacked or one module an expert, gate and up in one or apart."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from msprobe_files.operands import Op, Operand
from msprobe_files.units import Record

from dump_analysis.floats import Array
from dump_analysis.replay.formulas.kinds import Experts
from dump_analysis.replay.own_weights import elements, parameters
from dump_analysis.replay.recorded import Matrix, beside, matrix_by, value_of
from dump_analysis.sides import Place, Side
from dump_analysis.tensors import Files

_TURN = Op("permute", axes=(1, 0))
_KINDS = (("gate_up", "down"), ("gate", "up", "down"))
_AT_ONCE = 1 << 21  # elements of the outputs of a part's experts, of which a token has eight or fewer
_EACH = 8


class RoutedExperts(NamedTuple):
    """By number of the expert: ``first``, gate over up [2 I, H] in one matrix or in two, and ``last``, down [H, I].

    ``up_first``: up is taken for gate, and gate for up.
    """

    first: tuple[tuple[Matrix, ...], ...]
    last: tuple[Matrix, ...]
    up_first: bool = False

    def matrices(self, expert: int) -> tuple[Array, Array]:
        """Those of one expert, float64."""
        first = np.concatenate([made.read(0, made.rows) for made in self.first[expert]])
        last = self.last[expert]
        return np.roll(first, len(first) // 2, axis=0) if self.up_first else first, last.read(0, last.rows)

    def loaded(self) -> Experts:
        """As a formula is given them for one part of a module."""
        return Experts(self.matrices, {})

    def tokens_at_once(self) -> int:
        """How many tokens make a part of a module."""
        return max(1, _AT_ONCE // (self.last[0].rows * min(_EACH, len(self.last))))

    def in_order(self, order: Sequence[int]) -> "RoutedExperts":
        """With the experts in another order."""
        return RoutedExperts(tuple(self.first[at] for at in order), tuple(self.last[at] for at in order))


def mapped_experts(files: Files, side: Side, rows: Sequence[dict[str, Operand]]) -> RoutedExperts | None:
    """From the mapping's rows of each expert, by kind of weight; None where an expert lacks one."""
    kinds = next((kinds for kinds in _KINDS if rows and all(set(kinds) <= set(own) for own in rows)), None)
    if kinds is None:
        return None
    read = [[value_of(files, side, own[kind]) for kind in kinds] for own in rows]
    return _fitting([(tuple(made[:-1]), made[-1]) for made in read])


def stacked_experts(files: Files, side: Side, made: Place, entry: str, columns: int) -> RoutedExperts | None:
    """From the stacks of matrices [E, rows, columns] that an entry, or one inside it, owns; ``columns``: of what experts take."""
    stacks = [(place, place.record.shape or ()) for place in _inside(side, made, entry, 3)]
    if len(stacks) not in (2, 3) or len({shape[0] for _, shape in stacks}) != 1:
        return None
    *ahead, (down, shape) = stacks
    turned = all(own[2] != columns and own[1] == columns for _, own in ahead)
    if not turned and any(own[2] != columns for _, own in ahead):
        return None
    last_turned = shape[1] != columns or (turned and shape[2] == columns)
    found = []
    for at in range(shape[0]):
        first = tuple(_of_stack(files, place, at, turned=turned) for place, _ in ahead)
        found.append((first, _of_stack(files, down, at, turned=last_turned)))
    return _fitting(found)


def single_experts(files: Files, side: Side, made: Place, entry: str, count: int) -> RoutedExperts | None:
    """From the matrices of entries inside the entry, as many groups of alike ones as there are experts."""
    places = _inside(side, made, entry, 2)
    shapes = [place.record.shape for place in places]
    repeated = [place for place, shape in zip(places, shapes, strict=True) if shapes.count(shape) >= count]
    for kinds in _KINDS:
        size = len(kinds)
        if len(repeated) == count * size and all(
            repeated[at].record.shape == repeated[at % size].record.shape for at in range(count * size)
        ):
            read = [matrix_by(files, place, ()) for place in repeated]
            groups = [read[at : at + size] for at in range(0, len(read), size)]
            return _fitting([(tuple(group[:-1]), group[-1]) for group in groups])
    return None


def _fitting(found: Sequence[tuple[tuple[Matrix, ...], Matrix]]) -> RoutedExperts | None:
    """None where the products do not fit together."""
    if not all(sum(part.rows for part in first) == 2 * last.columns and first[0].columns == last.rows for first, last in found):
        return None
    return RoutedExperts(tuple(first for first, _ in found), tuple(last for _, last in found))


def _of_stack(files: Files, place: Place, at: int, *, turned: bool) -> Matrix:
    steps = [Op("slice", axis=0, start=at, stop=at + 1), Op("squeeze", axis=0)]
    return matrix_by(files, place, [*steps, _TURN] if turned else steps)


def _inside(side: Side, made: Place, around: str, axes: int) -> list[Place]:
    """The parameters with so many axes of an entry and of those inside it, in the order in which they were recorded."""
    parents = made.unit.trace or {}
    found = []
    for entry, records in made.unit.entries.items():
        at: str | None = entry
        while at is not None and at != around:
            at = parents.get(at)
        found += [beside(side, made, record) for record in _weights(records, axes)] if at is not None else []
    return found


def _weights(records: tuple[Record, ...], axes: int) -> list[Record]:
    return [record for record in parameters(records) if len(record.shape or ()) == axes and elements(record)]
