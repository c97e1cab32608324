"""What one side recorded of a mixture of experts: what experts take, the router's logits, what it chose, and the experts' matrices.

The routed sum is recomputed as one stretch from what the router and the experts took. Where a side recorded no logits, its shares are
recomputed from the router's input and matrix, and the sum from the shares. Experts that a side did not record are those of the other side.
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
from dump_analysis.replay.formulas.expert_choice import CHOICE
from dump_analysis.replay.formulas.routed_experts import ROUTED, WEIGHTED
from dump_analysis.replay.formulas.router_shares import SHARES
from dump_analysis.replay.modules import Origin, Pair, Work, entry_of
from dump_analysis.replay.own_weights import elements
from dump_analysis.replay.recorded import CannotReplay, Matrix, beside, cut_of, held, matrix_of, place_of, value_of
from dump_analysis.sides import Place
from dump_analysis.tensors import Files
from dump_analysis.wording import word

SUM = "moe.out"
_HIDDEN = ("post_norm.out", "resid_attn")
_SHARED = "shared_expert.out"
_LOGITS, _SHARES, _CHOSEN = "router.logits", "router.weights", "router.experts"


def is_routed(row: Row) -> bool:
    """Whether a row is of the sum of routed experts, or of what a router chose."""
    return layer_of(row.boundary) is not None and row.boundary.split(".", 2)[2] in (SUM, _SHARES, _CHOSEN)


def _is_sum(row: Row) -> bool:
    return is_routed(row) and row.boundary.endswith(SUM)


def _layer(row: Row) -> str:
    return ".".join(row.boundary.split(".", 2)[:2]) + "."


def span_of(row: Row, pair: Pair) -> Span | None:
    """The boundaries from which to which router and experts are recomputed as one; None for another module."""
    if not _is_sum(row):
        return None
    names = [next((_layer(row) + name for name in _HIDDEN if _layer(row) + name in pair.rows), ""), f"{_layer(row)}{_LOGITS}"]
    return Span([name for name in names if name in pair.rows], row.boundary)


def weights_of(pair: Pair, row: Row) -> set[str]:
    """The boundaries of the experts' weights; none of another module."""
    names = [name for name in pair.rows if name.startswith(f"{_layer(row)}experts.")] if _is_sum(row) else []
    return {name for name in names if name.endswith((".weight", ".bias"))}


def works_of(files: Files, pair: Pair, row: Row, label: str, *, apart: bool = False) -> list[Work]:
    """What is needed to recompute one side of a row, the router before the sum where both are. ``apart``: by the shares that were
    recorded, though logits were, too. Raises CannotReplay, saying why, where something is missing."""
    seen = _Seen(files, pair, row, label)
    if row.boundary.endswith(_SHARES):
        return [seen.router(seen.needed_shares(), entry_of(row, label))]
    return [seen.choice()] if row.boundary.endswith(_CHOSEN) else seen.sum(apart=apart)


class _Seen:
    """One side of a row: where it is recorded, and which of the side's rows are compared."""

    def __init__(self, files: Files, pair: Pair, row: Row, label: str) -> None:
        self.files, self.pair, self.row, self.label, self.side = files, pair, row, label, pair.side(label)
        self.layer = _layer(row)
        self.operand = _operand(row, label)
        self.place = place_of(self.side, self.operand.sources[0])
        self.cut = cut_of(self.side, self.operand)
        self.module = row.boundary.removesuffix(".out")

    # --- works ---

    def sum(self, *, apart: bool) -> list[Work]:
        """The routed sum, of shares that were recorded after the router: where there are no logits, or where ``apart``."""
        output, hidden = value_of(self.files, self.side, self.operand), self.hidden()
        experts, origin = self.experts(hidden.columns)
        count, entry = len(experts.last), entry_of(self.row, self.label)
        logits = self.by_token(_LOGITS, count) if not apart and self.layer + _SHARES not in self.pair.rows else None
        shares = self.shares(count) if logits is None else None
        given = logits or shares
        if given is None:
            raise CannotReplay(word("replay_no_choice", side=self.label, module=self.module))
        shared = self.by_token(_SHARED, hidden.columns)
        inputs = (hidden, given) if shared is None else (hidden, given, shared)
        made = self._work(entry, (ROUTED,) if logits is not None else (WEIGHTED,), output, inputs)
        made = made._replace(origin=origin, experts=experts)
        if shares is None or self.layer + _SHARES in self.pair.rows:  # shares that both sides recorded are a row of their own
            return [made]
        return [self.router(shares, None), made]

    def router(self, shares: Matrix, entry: str | None) -> Work:
        """The shares of all experts from what the router was handed."""
        values = shares.read(0, shares.rows)
        most = int((values != 0).sum(axis=1).max(initial=0))
        chosen = held(shares.name, "int64", np.argsort(-np.abs(values), axis=1, kind="stable")[:, :most].astype(np.float64))
        logits = self.by_token(_LOGITS, shares.columns)
        if logits is not None:
            return self._work(entry, (SHARES,), shares, (logits, chosen))
        return self._weighed(entry, (SHARES,), shares, (self.hidden(), chosen))

    def choice(self) -> Work:
        chosen, logits = self._chosen(), self.by_token(_LOGITS)
        entry = entry_of(self.row, self.label)
        if logits is not None:
            return self._work(entry, (CHOICE,), chosen, (logits,))
        return self._weighed(entry, (CHOICE,), chosen, (self.hidden(),))

    def _chosen(self) -> Matrix:
        """The numbers of the chosen experts, those of a map by its columns where all tokens have as many."""
        made = value_of(self.files, self.side, self.operand)
        if made.dtype != "bool":
            return made
        inside = made.read(0, made.rows) != 0
        if len(set(inside.sum(axis=1).tolist())) != 1:
            raise CannotReplay(word("replay_no_choice", side=self.label, module=self.module))
        return held(made.name, "int64", np.nonzero(inside)[1].reshape(made.rows, -1).astype(np.float64))

    def _work(self, entry: str | None, operators: tuple[str, ...], output: Matrix, inputs: tuple[Matrix, ...]) -> Work:
        own = entry or self.place.record.entry
        return Work(own, (), operators, output, inputs, {}, "absent", (), release.inputs_are(self.place.unit))

    def _weighed(self, entry: str | None, operators: tuple[str, ...], output: Matrix, inputs: tuple[Matrix, ...]) -> Work:
        """With the router's matrix, the other side's where this side recorded none."""
        row = self.pair.rows.get(f"{self.layer}router.weight")
        if row is None:
            raise CannotReplay(word("replay_no_router", side=self.label, module=self.module))
        weight = value_of(self.files, self.side, _operand(row, self.label))
        return self._work(entry, operators, output, inputs)._replace(weights={"weight": weight}, origin="recorded")

    # --- what is recorded ---

    def hidden(self) -> Matrix:
        """What the experts take: what the entry that returns the sum was handed, else the value before it."""
        entry, width = entry_of(self.row, self.label), self.cut.width
        for record in self.place.unit.entries.get(entry or "", ()) if _is_sum(self.row) else ():
            same = record.category in ("input", "kwargs") and record.file is not None and elements(record) == elements(self.place.record)
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
        width = elements(place.record) // rows if rows else 0
        if not width or elements(place.record) != rows * width or (columns is not None and width != columns):
            return None
        return matrix_of(self.files, place, width, self.cut.rows)

    def _recorded(self, name: str) -> Place | None:
        row, gap = self.pair.rows.get(self.layer + name), self.pair.gaps.get(self.layer + name)
        if row is not None:
            return place_of(self.side, _operand(row, self.label).sources[0])
        named = getattr(gap, self.label) if gap is not None else []
        return place_of(self.side, Source(named[0], None, None, None)) if named else None

    def needed_shares(self) -> Matrix:
        """Of a row of shares those of all experts. Raises CannotReplay."""
        shares = self.shares(self._count())
        if shares is None:
            raise CannotReplay(word("replay_no_choice", side=self.label, module=self.module))
        return shares

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
            raise CannotReplay(word("replay_no_weight", module=self.module))
        return borrowed, "borrowed"

    def _experts(self, label: str, columns: int) -> RoutedExperts | None:
        side, count = self.pair.side(label), self._count()
        rows = _rows_of_experts(self.pair.rows, self.layer, label)
        if rows and (not count or len(rows) == count):
            return mapped_experts(self.files, side, rows)
        made = place_of(side, _operand(self.row, label).sources[0])
        entry = entry_of(self.row, label) or made.record.entry
        stacked = stacked_experts(self.files, side, made, entry, columns)
        return stacked or (single_experts(self.files, side, made, entry, count) if count else None)

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
