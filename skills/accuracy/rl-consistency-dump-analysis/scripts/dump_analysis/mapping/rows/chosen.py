"""What routers chose: whole numbers of the chosen experts, their shares, or a map over all experts, found by what they hold."""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from msprobe_files.errors import DumpError
from msprobe_files.operands import Operand, Source

from dump_analysis import floats
from dump_analysis.artefacts.common import Modules, Worded
from dump_analysis.artefacts.semantic_mapping import Basis, MissingRow, Row
from dump_analysis.floats import Array
from dump_analysis.mapping.joining.joined import JoinedSides
from dump_analysis.mapping.naming.gaps import Extra
from dump_analysis.mapping.naming.shared_expert import chosen_of_all
from dump_analysis.mapping.recorded.nodes import Recorded, SideNodes
from dump_analysis.mapping.recorded.token_rows import matrix_ops, window_ops
from dump_analysis.mapping.rows.weight_gaps import Routed
from dump_analysis.tensors import Files, cut_stream, elements_of
from dump_analysis.wording import word

_MOST = 1 << 14  # experts of a layer
_MAJORITY = 0.5
_THIRD = 0.33
_HABIT = 0.2  # of the tokens in another order: near ties exchange fewer
_FOLLOWS = 0.1  # relative: shares that stand in the order of the ids
_COUNTS_UP = 0.7  # share of steps of one from which a vector is positions


class Choice(NamedTuple):
    """What a side recorded of the choice in one layer.

    ``ids``: whole numbers [tokens, k]; ``map``: truth values [tokens, experts]; ``weights``: floats [tokens, k] beside the ids;
    ``dense``: floats [tokens, experts], zero where not chosen; ``logits``: the like, before the choice.
    """

    ids: Recorded | None = None
    map: Recorded | None = None
    weights: Recorded | None = None
    dense: Recorded | None = None
    logits: Recorded | None = None

    def shares(self, side: SideNodes) -> Array | None:
        """The share of each expert in each joined token, float32 [tokens, experts], nought where not chosen; None if not recorded."""
        if self.dense is not None:
            return values_of(side, self.dense)
        if self.ids is None or self.weights is None:
            return None
        return _spread(values_of(side, self.ids), values_of(side, self.weights))

    def through(self, side: SideNodes, rows: int) -> Array | None:
        """Which experts each joined token goes through, [tokens, experts] without noughts for those; None if nothing tells.

        ``rows``: how many rows went through all experts; with logits alone, so many of the largest.
        """
        if self.ids is not None:
            ids = values_of(side, self.ids)
            return _spread(ids, np.ones(ids.shape, np.float32))
        if self.map is not None:
            return values_of(side, self.map)
        if self.logits is None:
            return None
        logits = values_of(side, self.logits)
        k = min(max(1, round(rows / side.window.total)), logits.shape[1])
        return np.asarray(logits >= np.sort(logits, 1)[:, -k][:, None])


def _spread(ids: Array, values: Array) -> Array:
    found = np.zeros((len(ids), int(ids.max()) + 1), np.float32)
    np.put_along_axis(found, ids, values, 1)
    return found


class Chosen(NamedTuple):
    """Rows and gaps of the choices. ``dropped``: names of joined rows that a gap says better."""

    extras: list[Extra]
    dropped: set[str]


def values_of(side: SideNodes, recorded: Recorded) -> Array:
    """A recorded tensor whose rows are tokens, at the joined ones: [tokens, columns]. Raises DumpError where it cannot be read."""
    operand = operand_of(side, recorded)
    files = Files()
    try:
        stream = cut_stream(files, recorded.tensor, operand.sources[0].steps or ())
        raw = stream.read(0, elements_of(stream)).reshape(stream.shape)
        found = floats.values(raw, recorded.tensor.dtype)
        return found.astype(np.float32 if floats.FORMATS[recorded.tensor.dtype].kind == "float" else np.int64)
    finally:
        files.close()


def operand_of(side: SideNodes, recorded: Recorded) -> Operand:
    """The joined tokens of a recorded tensor whose rows are tokens."""
    steps = matrix_ops(recorded.tensor.shape, side.window) or ()
    return Operand([Source(recorded.record.name, None, None, (*steps, *window_ops(side.window)))])


def choices_of(joined: JoinedSides, layers: Mapping[int, Routed]) -> dict[int, tuple[Choice, Choice]]:
    """The choices of both sides in each layer with routed experts."""
    found: dict[int, tuple[Choice, Choice]] = {}
    for layer, routed in layers.items():
        inside = [_inside(side, window) for side, window in ((joined.train, routed.train), (joined.infer, routed.infer))]
        maps = [one.width for recorded in inside for one in recorded if one.kind == "bool"]
        experts = routed.experts or max(maps, default=0)
        found[layer] = _choice(joined.train, inside[0], experts), _choice(joined.infer, inside[1], experts)
    return found


# --- one side ---


class _Wide(NamedTuple):
    """A recorded tensor whose rows are tokens: kind of its dtype, and its columns."""

    recorded: Recorded
    kind: str
    width: int


def _inside(side: SideNodes, window: tuple[float, float]) -> list[_Wide]:
    """The tensors with a row a token that a side recorded between two times."""
    inside = [one for one in side.records.activations if window[0] <= one.spot.time <= window[1]]
    rows = [one for one in inside if matrix_ops(one.tensor.shape, side.window) is not None]
    return [_Wide(one, floats.FORMATS[one.tensor.dtype].kind, one.tensor.elements // side.window.total) for one in rows]


def _choice(side: SideNodes, inside: Sequence[_Wide], experts: int) -> Choice:
    maps = [one.recorded for one in inside if one.kind == "bool" and one.width == experts > 1]
    ids = [one for one in inside if one.kind == "int" and _are_ids(side, one.recorded, one.width, experts)]
    places = {(one.spot.entry, one.spot.io) for one in (maps or [one.recorded for one in ids])}
    beside = [one for one in inside if one.kind == "float" and (one.recorded.spot.entry, one.recorded.spot.io) in places]
    dense = [one.recorded for one in beside if maps and one.width == experts and _is_dense(side, one.recorded)]
    weights = [one.recorded for one in beside if ids and one.width == ids[0].width]
    made = [one.recorded for one in inside if one.kind == "float" and one.width == experts and one.recorded.spot.io == "output"]
    logits = [one for one in made if one.spot.leaf and not _is_dense(side, one)]
    kinds = ([one.recorded for one in ids], maps, weights, dense, logits)
    return Choice(*(next((one for one in found if _readable(side, one)), None) for found in kinds))


def _readable(side: SideNodes, recorded: Recorded) -> bool:
    """Whether a tensor's file holds what its header says; the comparison names the one that does not."""
    try:
        values_of(side, recorded)
    except DumpError:
        return False
    return True


def _are_ids(side: SideNodes, recorded: Recorded, width: int, experts: int) -> bool:
    """Whole numbers below the count of experts, no two alike in a token; one a token if they do not count up."""
    if not 0 < width <= (experts or _MOST):
        return False
    try:
        values = values_of(side, recorded)
    except DumpError:
        return False
    if values.min() < 0 or values.max() >= (experts or _MOST):
        return False
    if width == 1:
        return bool((np.diff(values[:, 0]) == 1).mean() <= _COUNTS_UP) and len(recorded.tensor.shape) > 1
    ordered = np.sort(values, 1)
    return bool((ordered[:, 1:] != ordered[:, :-1]).all())


def _is_dense(side: SideNodes, recorded: Recorded) -> bool:
    try:
        return chosen_of_all(values_of(side, recorded))
    except DumpError:
        return False


# --- both sides ---


def rows_of_choices(joined: JoinedSides, names: Sequence[str], choices: Mapping[int, tuple[Choice, Choice]]) -> Chosen:
    """The rows ``router.experts``, and gaps of the router's places that are not joined."""
    at = {name: n for n, name in enumerate(names)}
    extras: list[Extra] = []
    dropped: set[str] = set()
    orders = _orders(joined, choices)
    for layer, pair in sorted(choices.items()):
        prefix = f"layers.{layer}.router."
        places = [at[name] for name in (prefix + "weights", prefix + "logits", f"layers.{layer}.post_norm.out") if name in at]
        after = max(places, default=at[f"layers.{layer}.moe.out"] - 1)
        order = orders.get(layer)
        if prefix + "logits" in at and _two_kinds(joined, at[prefix + "logits"]):
            dropped.add(prefix + "logits")
        if order is not None and prefix + "weights" in at:
            dropped.add(prefix + "weights")
        extras += [Extra(after, item) for item in _items(joined, prefix, pair, order, dropped, at)]
    return Chosen(extras, dropped)


def _two_kinds(joined: JoinedSides, row: int) -> bool:
    """Whether one side has shares, none below nought, where the other has logits."""
    return bool((joined.rows[row].train.sample >= 0).all() != (joined.rows[row].infer.sample >= 0).all())


def _items(
    joined: JoinedSides, prefix: str, pair: tuple[Choice, Choice], order: Worded | None, dropped: set[str], at: Mapping[str, int]
) -> Iterator[Row | MissingRow]:
    logits, weights = [choice.logits for choice in pair], [choice.weights or choice.dense for choice in pair]
    if (prefix + "logits" not in at or prefix + "logits" in dropped) and any(logits):
        yield _gap(prefix + "logits", pair, logits, None)
    if prefix + "weights" in dropped or (prefix + "weights" not in at and any(weights)):
        yield _gap(prefix + "weights", pair, weights, order)
    said = [choice.ids or choice.map for choice in pair]
    alike = all(choice.ids for choice in pair) or all(choice.map and not choice.ids for choice in pair)
    if alike and order is None:
        yield _row(joined, prefix + "experts", said)
    elif any(said):
        yield _gap(prefix + "experts", pair, said, order)


def _gap(name: str, pair: tuple[Choice, Choice], found: Sequence[Recorded | None], order: Worded | None) -> MissingRow:
    named = [[one.record.name] if one is not None else [] for one in found]
    return MissingRow(name, 0, order or _why(name, pair, found), *named)


def _why(what: str, pair: tuple[Choice, Choice], found: Sequence[Recorded | None]) -> Worded:
    if not all(found):
        return word("no_counterpart", side="infer" if found[0] is not None else "train", what=what)
    maps = ["train" if at == 0 else "infer" for at, choice in enumerate(pair) if choice.ids is None]
    return word("choice_as_map", side=maps[0]) if len(maps) == 1 else word("not_joined", what=what)


def _row(joined: JoinedSides, name: str, said: Sequence[Recorded | None]) -> Row:
    sides = joined.train, joined.infer
    found = [one for one in said if one is not None]
    values = [values_of(side, one) for side, one in zip(sides, found, strict=True)]
    agree = values[0].shape == values[1].shape
    same = float((values[0] == values[1]).all(1).mean()) if agree else 0.0
    moved = _moved(*values) if agree else np.zeros(0, bool)
    basis: list[Basis] = ["values", "structure"] if same > _MAJORITY else ["structure"]
    note = word("choice_in_order", n=int(moved.sum()), of=len(moved)).text if moved.any() else None
    operands = [operand_of(side, one) for side, one in zip(sides, found, strict=True)]
    entries = [one.spot.entry if one.spot.io == "output" else None for one in found]
    return Row(name, 0, operands[0], operands[1], basis, round(0.5 + 0.49 * same, 2), Modules(*entries), note)


def _moved(left: Array, right: Array) -> Array:
    """The tokens that hold the same experts in another order."""
    return np.asarray((np.sort(left, 1) == np.sort(right, 1)).all(1) & (left != right).any(1))


def _orders(joined: JoinedSides, choices: Mapping[int, tuple[Choice, Choice]]) -> dict[int, Worded]:
    """Layer -> the reason to compare no columns of a choice, in all layers or in none.

    Many tokens hold the same experts in another order.  Where their shares stand in that order too, a third of the layers
    tells (a fault hides it in those after it), else most of them.
    """
    found: dict[int, Worded] = {}
    said: list[bool] = []
    sure = True
    for layer, (train, infer) in choices.items():
        sides = (joined.train, train), (joined.infer, infer)
        ids = [values_of(side, choice.ids) for side, choice in sides if choice.ids is not None]
        if len(ids) < len(sides) or ids[0].shape != ids[1].shape:
            continue
        weights = [values_of(side, choice.weights) for side, choice in sides if choice.weights is not None]
        moved = _moved(*ids)
        known = len(weights) == len(sides)
        sure = sure and known
        said.append(bool(moved.mean() > _HABIT) and (not known or _follow(ids, weights, moved)))
        found[layer] = word("choice_order", n=int(moved.sum()), of=len(moved))
    return found if any(said) and sum(said) >= (_THIRD if sure else _MAJORITY) * len(said) else {}


def _follow(ids: Sequence[Array], shares: Sequence[Array], moved: Array) -> bool:
    """Whether the shares of both sides are nearer each other by expert than as they stand."""
    ordered = [np.take_along_axis(share, np.argsort(number, 1), 1)[moved] for number, share in zip(ids, shares, strict=True)]
    by_expert, as_recorded = (float(np.linalg.norm(x - y)) for x, y in (ordered, [share[moved] for share in shares]))
    return by_expert <= max(_FOLLOWS * float(np.linalg.norm(ordered[0])), 0.5 * as_recorded)
