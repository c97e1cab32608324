"""How [tokens, columns] matrices of several ranks make one: copies, columns side by side, or addends of a sum.

Read from the data of one side alone.  Megatron-core 0.16 and SGLang 0.5.23 (tensor parallel) were measured: what a
column-parallel module returns are columns, what a row-parallel one returns is a partial sum unless it was reduced inside.
"""

import hashlib
import itertools
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from dump_analysis import floats
from dump_analysis.artefacts.assembly_plan import How
from dump_analysis.floats import Array
from dump_analysis.mapping.ranks.reference import Reference
from dump_analysis.mapping.ranks.stages import COPY, Rank
from dump_analysis.mapping.recorded.columns import relative
from dump_analysis.mapping.recorded.dataflow import recorded_parts
from dump_analysis.mapping.recorded.nodes import Node, key_of

_SUM_ERROR = 2.0**-7
_ADDENDS_AMONG, _SUM_WITHIN = 40, 8  # nodes before and after a partial sum, in which the residual stream is looked for

Place = tuple[str, str, str]  # entry, io, path


class Split(NamedTuple):
    """``how`` (replicated, cat or sum), each rank's columns, and for ``cat`` the runs of columns of the whole: (rank, start, stop)."""

    how: How
    widths: list[int]
    runs: list[tuple[int, int, int]]

    @property
    def whole(self) -> int:
        """How many columns the whole has."""
        return sum(stop - start for _, start, stop in self.runs) if self.how == "cat" else self.widths[0]


class Splits:
    """The splits of a stage's tensors, told earliest first: what a module takes tells what it returns."""

    def __init__(self, ranks: Sequence[Rank], reference: Reference | None = None, *, routed: bool = False) -> None:
        self._ranks, self._reference, self._routed = ranks, reference, routed
        self.at: dict[Place, Split] = {}
        self._known: dict[tuple[bytes, ...], Split] = {}
        self._copied: list[Node] | None = None

    def of(self, place: Place, samples: Sequence[Array], dtype: str) -> Split:
        """How these matrices make one; the same matrices at another place lie alike."""
        key = tuple(hashlib.blake2b(sample.tobytes(), digest_size=16).digest() for sample in samples)
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = self._new(place, samples, dtype)
        self.at[place] = known
        return known

    def made_by(self, entry: str) -> Split | None:
        """How what an entry returns first lies."""
        return next((split for place, split in self.at.items() if place[:2] == (entry, "output")), None)

    def taken_by(self, entry: str) -> Split | None:
        """How what an entry takes first lies."""
        return next((split for place, split in self.at.items() if place[0] == entry and place[1] != "output"), None)

    def takes_columns(self, entry: str) -> bool:
        """Whether an entry takes columns of a tensor on each rank: a row-parallel one does."""
        return any(split.how == "cat" and place[0] == entry and place[1] != "output" for place, split in self.at.items())

    def _new(self, place: Place, samples: Sequence[Array], dtype: str) -> Split:
        widths = [sample.shape[1] for sample in samples]
        alike = len(set(widths)) == 1
        if alike and all(relative(samples[0], sample) < COPY for sample in samples[1:]):
            return Split("replicated", widths, [])
        if alike and place[1] == "output" and self._is_partial(place, samples, dtype):
            return Split("sum", widths, [])
        return Split("cat", widths, self._runs(place, samples, widths))

    def _is_partial(self, place: Place, samples: Sequence[Array], dtype: str) -> bool:
        """Whether the sum of these is recorded, alone or in the residual stream; else whether a row-parallel matrix made them."""
        total = samples[0]
        for sample in samples[1:]:
            total = floats.values(floats.rounded(total + sample, dtype), dtype).astype(np.float32)
        first = self._ranks[0].nodes
        if key_of(total) in first.known or self._in_stream(total, first.at.get(place)):
            return True
        shapes = [one.shape for one in self._ranks[0].member.unit.entries[place[0]] if one.category == "parameters"]
        return self.takes_columns(place[0]) and any(shape is not None and (len(shape) > 1 or shape == (0,)) for shape in shapes)

    def _in_stream(self, total: Array, node: Node | None) -> bool:
        """Whether z = x + total for two copied tensors near it: the stream before and after."""
        if self._copied is None:
            self._copied = sorted(self._equal_nodes(), key=lambda one: one.time)
        around = [one for one in self._copied if one.width == total.shape[1]]
        time = node.time if node is not None else 0.0
        before = [one for one in around if one.time <= time][-_ADDENDS_AMONG:]
        after = [one for one in around if one.time > time][:_SUM_WITHIN]
        most = float(np.abs(total).max(initial=0.0))
        for z in after:
            wanted = z.sample - total
            limit = _SUM_ERROR * max(most, float(np.abs(z.sample).max(initial=0.0)))
            if any(np.abs(x.sample - wanted).max() <= limit and np.abs(x.sample).max() > 4 * limit for x in before):
                return True
        return False

    def _equal_nodes(self) -> list[Node]:
        known = [set(rank.nodes.known) for rank in self._ranks[1:]]
        return [node for key, node in self._ranks[0].nodes.known.items() if all(key in other for other in known)]

    def _runs(self, place: Place, samples: Sequence[Array], widths: Sequence[int]) -> list[tuple[int, int, int]]:
        """The columns of the whole: part by part (gate, up; q, k, v), each from all ranks in turn; a copied part once."""
        of_rows = self._by_matrix(place, widths)
        if of_rows is not None:
            return of_rows
        cuts = [self._cuts(rank, place, width) for rank, width in zip(self._ranks, widths, strict=True)]
        if len({len(found) for found in cuts}) > 1:
            cuts = [[(0, width)] for width in widths]
        runs: list[tuple[int, int, int]] = []
        for part in zip(*cuts, strict=True):
            seen: list[bytes] = []
            for rank, (start, stop) in enumerate(part):
                values = np.ascontiguousarray(samples[rank][:, start:stop]).tobytes()
                if values not in seen:
                    runs.append((rank, start, stop))
                seen.append(values)
        return runs

    def _by_matrix(self, place: Place, widths: Sequence[int]) -> list[tuple[int, int, int]] | None:
        """The columns that an entry returns as the rows of its matrix lie in the checkpoint; None where that does not tell."""
        if self._reference is None or place[1] != "output":
            return None
        each = [
            [one.tensor for one in rank.member.records.parameters if one.entry == place[0] and len(one.tensor.shape) == 2]
            for rank in self._ranks
        ]
        shards = [found[0] for found in each if len(found) == 1]
        fits = len(shards) == len(each) and [shard.shape[0] for shard in shards] == list(widths)
        return self._reference.runs(shards) if fits else None

    def _cuts(self, rank: Rank, place: Place, width: int) -> list[tuple[int, int]]:
        """Runs of columns that one rank's code uses apart: act(a)·b, or what it recorded on their own; all of them otherwise."""
        at = rank.nodes.at
        whole = at.get(place)
        entry, io, path = place
        if (entry, io, f"{path}[half0]") in at:
            return [(0, width // 2), (width // 2, width)]
        if whole is None or io != "output":
            return [(0, width)]
        if self._routed and any(2 * node.width == width for node in rank.nodes.nodes):
            return [(0, width // 2), (width // 2, width)]  # gate and up of an expert, whose product may hold the tokens' shares too
        parts = [part for part in recorded_parts(rank.nodes, whole) if part[-1] - part[0] + 1 == len(part)]
        edges = sorted({0, width, *(int(part[0]) for part in parts), *(int(part[-1]) + 1 for part in parts)})
        return list(itertools.pairwise(edges))
