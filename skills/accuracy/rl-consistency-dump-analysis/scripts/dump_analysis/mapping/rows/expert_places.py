"""Mapping rows of what single experts compute, where both sides run them one by one; a gap a layer where one side does."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from msprobe_files.errors import DumpError

from dump_analysis.artefacts.common import Modules
from dump_analysis.artefacts.semantic_mapping import Basis, MissingRow, Row
from dump_analysis.floats import Array
from dump_analysis.mapping.joining.joined import JoinedSides
from dump_analysis.mapping.recorded.nodes import Node
from dump_analysis.mapping.rows.chosen import Choice
from dump_analysis.mapping.rows.expert_parts import Apart, Part, experts_apart, rows_at
from dump_analysis.mapping.rows.weight_gaps import Routed
from dump_analysis.mapping.rows.weight_rows import WeightRow
from dump_analysis.tensors import Files
from dump_analysis.wording import word

_KINDS = ("gate", "up", "gate_up", "act_mul", "out")
_NUMBERED = re.compile(r"layers\.(\d+)\.experts\.(\d+)\.")
_HALF = 0.5  # of the tokens tell an expert's number
_ALIKE = 0.15  # relative L2 of the rows of a right pair
_SHARES = 0.1  # relative: rows that differ by the router's shares
_TOKENS = 16  # that are read of each expert
_ENOUGH = 3  # one layer in so many says that shares are worked in: a fault upstream hides it in the others


class _Pair(NamedTuple):
    """One expert on both sides. ``tokens``: the joined tokens that went through it on both; ``rows``: where they stand on each side."""

    number: int
    train: Apart
    infer: Apart
    tokens: Array
    rows: tuple[Array, Array]


class LayerExperts(NamedTuple):
    """The experts of one layer by number, of each side that runs them one by one. ``shares``: the router's, where a side recorded them."""

    layer: int
    train: dict[int, Apart]
    infer: dict[int, Apart]
    shares: Array | None

    def pairs(self) -> list["_Pair"]:
        return [_pair(number, self.train[number], self.infer[number]) for number in sorted(self.train.keys() & self.infer.keys())]

    def numbers(self, side: str) -> dict[str, int]:
        """Entry -> the number of its expert."""
        found: dict[int, Apart] = getattr(self, side)
        return {entry: number for number, apart in found.items() for entry in apart.entries}


def layer_experts(
    joined: JoinedSides, layer: int, routed: Routed, hidden: tuple[Node, Node], choices: tuple[Choice, Choice], weights: Sequence[WeightRow]
) -> LayerExperts:
    """Find the experts. ``hidden``: what they take on each side; ``weights``: rows that number experts."""
    found: list[dict[int, Apart]] = []
    windows = routed.train, routed.infer
    for at, side in enumerate((joined.train, joined.infer)):
        known, stacked = _known(weights, layer, "train" if at == 0 else "infer")
        apart = experts_apart(side, hidden[at], windows[at], known)
        through = choices[at].through(side, sum(len(expert.tokens) for expert in apart))
        found.append(_numbered(apart, known, None if stacked else through, routed.experts))
    shares = [choice.shares(side) for choice, side in zip(choices, (joined.train, joined.infer), strict=True)]
    return LayerExperts(layer, found[0], found[1], next((share for share in shares if share is not None), None))


def rows_of_experts(layers: Sequence[LayerExperts]) -> Iterator[tuple[int, Row | MissingRow]]:
    """Rows and gaps ``experts.N.`` of all layers, each with its layer."""
    both = [one for one in layers if one.train and one.infer]
    votes = [_weighted(one.pairs(), one.shares) for one in both]
    weighted: dict[str, str] = {}
    for kind in ("act_mul", "out"):
        said = Counter(vote[kind] for vote in votes if kind in vote).most_common(1)
        weighted |= {kind: said[0][0]} if said and _ENOUGH * said[0][1] >= len(votes) else {}
    for one in layers:
        apart = one.train and one.infer
        items = [*_rows(one, weighted), *_lost(one, weighted)] if apart else _one_sided(one)
        yield from ((one.layer, item) for item in items)


def _one_sided(one: LayerExperts) -> list[MissingRow]:
    named = [
        [part.recorded.record.name for _, apart in sorted(found.items()) for part in apart.parts.values()]
        for found in (one.train, one.infer)
    ]
    if not any(named):
        return []
    return [MissingRow(f"layers.{one.layer}.experts.N.out", 0, word("experts_together", side="infer" if named[0] else "train"), *named)]


# --- which expert it is ---


def _known(weights: Sequence[WeightRow], layer: int, side: str) -> tuple[dict[str, int], bool]:
    """Entry -> the number of the expert whose matrices it holds, and whether the other side's stack of all experts tells these."""
    numbers: dict[str, set[int]] = {}
    stacked = False
    for row in weights:
        match = _NUMBERED.match(row.name)
        if match is not None and int(match[1]) == layer:
            numbers.setdefault(getattr(row, side).entry, set()).add(int(match[2]))
            stacked |= _is_cut(row, side)
    return {entry: next(iter(found)) for entry, found in numbers.items() if len(found) == 1}, stacked


def _is_cut(row: WeightRow, side: str) -> bool:
    """Whether the other side's matrix is cut out of a stack."""
    return len((row.infer if side == "train" else row.train).tensor.shape) > 2


def _numbered(apart: Sequence[Apart], known: Mapping[str, int], through: Array | None, experts: int) -> dict[int, Apart]:
    """Experts by number: as the router's choice says, else as their weights do, else in their order where all have run."""
    found: dict[int, Apart] = {}
    for at, expert in enumerate(apart):
        by_weights = [known[entry] for entry in expert.entries if entry in known]
        number = _chosen_number(expert.tokens, through, found) if through is not None else None
        if number is None and by_weights:
            number = by_weights[0]
        if number is None and len(apart) == experts:
            number = at
        if number is not None:
            found.setdefault(number, expert)
    return found


def _chosen_number(tokens: Array, through: Array, taken: Mapping[int, Apart]) -> int | None:
    """The expert that most of the tokens go through, and hardly any others; of several alike the first that is free."""
    here = np.zeros(len(through), bool)
    here[tokens[tokens >= 0]] = True
    chosen = through != 0
    common = (chosen & here[:, None]).sum(0) / np.maximum((chosen | here[:, None]).sum(0), 1)
    common[[number for number in taken if number < len(common)]] = 0.0
    best = int(common.argmax())
    return best if common[best] > _HALF else None


# --- rows ---


def _pair(number: int, train: Apart, infer: Apart) -> _Pair:
    both = np.intersect1d(train.tokens[train.tokens >= 0], infer.tokens[infer.tokens >= 0])
    rows = [_places(apart.tokens, both) for apart in (train, infer)]
    return _Pair(number, train, infer, both, (rows[0], rows[1]))


def _places(tokens: Array, wanted: Array) -> Array:
    order = np.argsort(tokens, kind="stable")
    return np.asarray(order[np.searchsorted(tokens[order], wanted)])


def _rows(one: LayerExperts, weighted: Mapping[str, str]) -> Iterator[Row | MissingRow]:
    pairs = one.pairs()
    for pair in pairs:
        for kind, parts in _common_parts(pair).items():
            if kind in weighted:
                continue
            if not len(pair.tokens):
                yield _without_tokens(_name(one.layer, pair.number, kind), kind, pair.train, pair.infer)
            else:
                yield _row(_name(one.layer, pair.number, kind), pair, parts)
    for kind, side in weighted.items():
        named = [[_common_parts(pair)[kind][at].recorded.record.name for pair in pairs if kind in _common_parts(pair)] for at in (0, 1)]
        if any(named):
            yield MissingRow(_name(one.layer, "N", kind), 0, word("experts_weighted", side=side), *named)


def _name(layer: int, number: int | str, kind: str) -> str:
    return f"layers.{layer}.experts.{number}." + ("out" if kind == "out" else f"{kind}.out")


def _common_parts(pair: _Pair) -> dict[str, tuple[Part, Part]]:
    """What both sides recorded of an expert; gate and up in one are cut in halves where the other side has them apart."""
    sides = [dict(apart.parts) for apart in (pair.train, pair.infer)]
    for own, other in (sides, sides[::-1]):
        if "gate_up" in own and "gate" in other:
            own |= {"gate": Part(own["gate_up"].recorded, 0), "up": Part(own["gate_up"].recorded, 1)}
    return {kind: (sides[0][kind], sides[1][kind]) for kind in _KINDS if kind in sides[0] and kind in sides[1]}


def _row(name: str, pair: _Pair, parts: tuple[Part, Part]) -> Row:
    values = _sample(pair, parts)
    alike = values is not None and values[0].shape == values[1].shape and _apart(*values) < _ALIKE
    basis: list[Basis] = ["values", "structure"] if alike else ["structure"]
    note = word("expert_rows", n=len(pair.tokens), train=len(pair.train.tokens), infer=len(pair.infer.tokens)).text
    entries = [part.recorded.spot.entry for part in parts]
    modules = Modules(*(entry if part.recorded.spot.io == "output" else None for entry, part in zip(entries, parts, strict=True)))
    operands = [part.operand(rows) for part, rows in zip(parts, pair.rows, strict=True)]
    return Row(name, 0, operands[0], operands[1], basis, 0.9 if alike else 0.6, modules, note)


def _sample(pair: _Pair, parts: tuple[Part, Part]) -> tuple[Array, Array] | None:
    """Up to 16 common rows of both sides, float32; None where a file cannot be read."""
    files = Files()
    try:
        found = [rows_at(files, part, rows[:_TOKENS]) for part, rows in zip(parts, pair.rows, strict=True)]
        return found[0], found[1]
    except DumpError:
        return None
    finally:
        files.close()


def _apart(left: Array, right: Array) -> float:
    return float(np.linalg.norm(left - right) / (np.linalg.norm(left) + 1e-30))


def _lost(one: LayerExperts, weighted: Mapping[str, str]) -> Iterator[MissingRow]:
    """Experts that only one side has run."""
    for number in sorted(one.train.keys() ^ one.infer.keys()):
        train, infer = one.train.get(number), one.infer.get(number)
        kinds = [apart.parts for apart in (train, infer) if apart is not None]
        for kind in (kind for kind in kinds[0] if kind not in weighted):
            yield _without_tokens(_name(one.layer, number, kind), kind, train, infer)


def _without_tokens(name: str, kind: str, train: Apart | None, infer: Apart | None) -> MissingRow:
    counts = [0 if apart is None else int((apart.tokens >= 0).sum()) for apart in (train, infer)]
    named = [[apart.parts[kind].recorded.record.name] if apart is not None and kind in apart.parts else [] for apart in (train, infer)]
    return MissingRow(name, 0, word("expert_without_tokens", train=counts[0], infer=counts[1]), *named)


# --- shares ---


def _weighted(pairs: Sequence[_Pair], shares: Array | None) -> dict[str, str]:
    """Kind -> the side whose rows are those of the other times the router's shares, judged over all experts together."""
    found: dict[str, str] = {}
    for kind in ("act_mul", "out") if shares is not None else ():
        gains: list[Array] = []
        wanted: list[Array] = []
        for pair in pairs:
            parts = _common_parts(pair).get(kind)
            values = _sample(pair, parts) if parts is not None and len(pair.tokens) else None
            if values is not None and values[0].shape == values[1].shape and shares is not None and pair.number < shares.shape[1]:
                gains.append((values[0] * values[1]).sum(1) / np.maximum((values[1] ** 2).sum(1), 1e-30))
                wanted.append(shares[pair.tokens[:_TOKENS], pair.number])
        gain, share = (np.concatenate(some) if some else np.empty(0) for some in (gains, wanted))
        if len(gain) and np.median(np.abs(gain - 1)) > _SHARES:
            for side, own in (("train", gain), ("infer", 1 / np.where(gain == 0, np.inf, gain))):
                if np.median(np.abs(own - share) / np.maximum(share, 1e-30)) < _SHARES:
                    found[kind] = side
    return found
