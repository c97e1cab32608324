"""What one side recorded of a mixture of experts: what experts take, the router's logits or what it chose, and the experts' matrices.

The routed sum is recomputed as one stretch from what the router and the experts took. Experts that a side did not record are those of the
other side.
"""

from collections.abc import Mapping

import numpy as np
from msprobe_files import release
from msprobe_files.operands import Operand, Source

from dump_analysis import floats
from dump_analysis.artefacts.replay_results import Span
from dump_analysis.artefacts.semantic_mapping import Row
from dump_analysis.boundaries import layer_of
from dump_analysis.floats import Array
from dump_analysis.replay.experts import RoutedExperts, mapped_experts, single_experts, stacked_experts
from dump_analysis.replay.formulas.routed_experts import ROUTED, WEIGHTED
from dump_analysis.replay.modules import Origin, Pair, Work, entry_of
from dump_analysis.replay.own_weights import elements
from dump_analysis.replay.recorded import CannotReplay, Matrix, beside, cut_of, held, matrix_of, place_of, value_of
from dump_analysis.sides import Place
from dump_analysis.tensors import Files
from dump_analysis.wording import word

SUM = "moe.out"
_HIDDEN = ("post_norm.out", "resid_attn")
_LOGITS, _SHARES, _CHOSEN = "router.logits", "router.weights", "router.experts"


def is_routed_sum(row: Row) -> bool:
    """Whether a row is of the sum of routed experts."""
    return layer_of(row.boundary) is not None and row.boundary.endswith(f".{SUM}")


def span_of(row: Row, pair: Pair) -> Span | None:
    """The boundaries from which to which router and experts are recomputed as one; None for another module."""
    if not is_routed_sum(row):
        return None
    layer = row.boundary.removesuffix(SUM)
    start = [next((layer + name for name in _HIDDEN if layer + name in pair.rows), ""), f"{layer}{_LOGITS}"]
    return Span([name for name in start if name in pair.rows], row.boundary)


def weights_of(pair: Pair, row: Row) -> set[str]:
    """The boundaries of the experts' weights; none of another module."""
    if not is_routed_sum(row):
        return set()
    return {
        name for name in pair.rows if name.startswith(f"{row.boundary.removesuffix(SUM)}experts.") and name.endswith((".weight", ".bias"))
    }


def work_of(files: Files, pair: Pair, row: Row, label: str) -> Work:
    """What is needed to recompute the routed sum of one side. Raises CannotReplay, saying why, where something is missing."""
    seen = _Seen(files, pair, row, label)
    output, hidden = value_of(files, seen.side, seen.operand), seen.hidden()
    experts, origin = seen.experts(hidden.columns)
    logits = seen.by_token(_LOGITS, len(experts.last))
    given = logits or seen.shares(len(experts.last))
    if given is None:
        raise CannotReplay(word("replay_no_choice", side=label, module=row.boundary.removesuffix(".out")))
    entry = entry_of(row, label) or seen.place.record.entry
    operators = (ROUTED,) if logits is not None else (WEIGHTED,)
    made = release.inputs_are(seen.place.unit)
    return Work(entry, (), operators, output, (hidden, given), {}, origin, (), made, experts=experts)


class _Seen:
    """One side of a routed sum: where it is recorded, and which of the side's rows are compared."""

    def __init__(self, files: Files, pair: Pair, row: Row, label: str) -> None:
        self.files, self.pair, self.row, self.label, self.side = files, pair, row, label, pair.side(label)
        self.layer = row.boundary.removesuffix(SUM)
        self.operand = _operand(row, label)
        self.place = place_of(self.side, self.operand.sources[0])
        self.cut = cut_of(self.side, self.operand)

    def hidden(self) -> Matrix:
        """What the experts take: what the entry that returns the sum was handed, else the value before it."""
        entry, width = entry_of(self.row, self.label), self.cut.width
        size = elements(self.place.record)
        for record in self.place.unit.entries.get(entry or "", ()):
            same = record.category in ("input", "kwargs") and record.file is not None and elements(record) == size
            if same and not floats.is_integer(record.dtype):
                return matrix_of(self.files, beside(self.side, self.place, record), width, self.cut.rows)
        for name in _HIDDEN:
            if (row := self.pair.rows.get(self.layer + name)) is not None:
                return value_of(self.files, self.side, _operand(row, self.label))
        raise CannotReplay(word("replay_no_input", entry=entry or self.place.record.name))

    def by_token(self, name: str, columns: int | None = None) -> Matrix | None:
        """What the side recorded of a place of the router, compared or not, with a row a token; None where it has no such one."""
        place = self._recorded(name)
        if place is None:
            return None
        rows = elements(self.place.record) // self.cut.width
        width = elements(place.record) // rows
        if elements(place.record) != rows * width or (columns is not None and width != columns):
            return None
        return matrix_of(self.files, place, width, self.cut.rows)

    def _recorded(self, name: str) -> Place | None:
        row, gap = self.pair.rows.get(self.layer + name), self.pair.gaps.get(self.layer + name)
        if row is not None:
            return place_of(self.side, _operand(row, self.label).sources[0])
        named = getattr(gap, self.label) if gap is not None else []
        return place_of(self.side, Source(named[0], None, None, None)) if named else None

    def shares(self, count: int) -> Matrix | None:
        """The recorded shares of all experts: as they were recorded, or those of the chosen ones put in their places."""
        shares = self.by_token(_SHARES)
        if shares is None or shares.columns == count:
            return shares
        chosen = self.by_token(_CHOSEN, shares.columns)
        if chosen is None or not floats.is_integer(chosen.dtype):
            return None
        values, numbers = shares.read(0, shares.rows), chosen.read(0, chosen.rows).astype(np.int64)
        if numbers.min(initial=0) < 0 or numbers.max(initial=0) >= count:
            return None
        return held(shares.name, shares.dtype, _in_places(values, numbers, count))

    def experts(self, columns: int) -> tuple[RoutedExperts, Origin]:
        """The side's own experts, else the other's."""
        if (own := self._experts(self.label, columns)) is not None:
            return own, "recorded"
        borrowed = self._experts("infer" if self.label == "train" else "train", columns)
        if borrowed is None:
            raise CannotReplay(word("replay_no_weight", module=self.row.boundary.removesuffix(".out")))
        return borrowed, "borrowed"

    def _experts(self, label: str, columns: int) -> RoutedExperts | None:
        side, count = self.pair.side(label), self._count()
        rows = _rows_of_experts(self.pair.rows, self.layer, label)
        if rows and (not count or len(rows) == count):
            return mapped_experts(self.files, side, rows)
        made = place_of(side, _operand(self.row, label).sources[0])
        stacked = stacked_experts(self.files, side, made, columns)
        return stacked or (single_experts(self.files, side, made, count) if count else None)

    def _count(self) -> int:
        """How many experts there are: as many as the router's matrix has rows, 0 where it is not mapped."""
        row = self.pair.rows.get(f"{self.layer}router.weight")
        return value_of(self.files, self.side, _operand(row, self.label)).rows if row is not None else 0


def _operand(row: Row, label: str) -> Operand:
    return row.train if label == "train" else row.infer


def _rows_of_experts(rows: Mapping[str, Row], layer: str, label: str) -> list[dict[str, Operand]]:
    """The operands of each expert's weights by kind, the experts by number as far as these follow each other."""
    found: list[dict[str, Operand]] = []
    while own := {
        kind: _operand(row, label)
        for kind in ("gate_up", "gate", "up", "down")
        if (row := rows.get(f"{layer}experts.{len(found)}.{kind}.weight")) is not None
    }:
        found.append(own)
    return found


def _in_places(values: Array, numbers: Array, count: int) -> Array:
    found = np.zeros((len(values), count))
    np.put_along_axis(found, numbers, values, axis=1)
    return found
