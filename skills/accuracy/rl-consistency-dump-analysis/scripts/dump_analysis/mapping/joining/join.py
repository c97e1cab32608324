"""The whole line from two dumps to joined rows: tokens, nodes, weights, layers, then slots against slots and the rest node by node."""

from typing import NamedTuple

import numpy as np

from dump_analysis.floats import Array
from dump_analysis.mapping.contents import weights
from dump_analysis.mapping.contents.turned import turned_entries
from dump_analysis.mapping.joining.acceptance import Accepted, certain
from dump_analysis.mapping.joining.evidence import Evidence
from dump_analysis.mapping.joining.exchange import Straightened, crossed, straighten
from dump_analysis.mapping.joining.fused_order import in_order_of_roles
from dump_analysis.mapping.joining.joined import Joined, JoinedSides
from dump_analysis.mapping.joining.partial import partial_side
from dump_analysis.mapping.joining.rest import join_rest
from dump_analysis.mapping.joining.slots import SlotJoin, join_slots
from dump_analysis.mapping.joining.transfer import transferred
from dump_analysis.mapping.recorded import dataflow, layers
from dump_analysis.mapping.recorded.columns import column_order
from dump_analysis.mapping.recorded.nodes import Node, SideNodes
from dump_analysis.mapping.recorded.records import nodes_of, picked_tokens, read
from dump_analysis.mapping.tokens.forwards import one_forward
from dump_analysis.sides import Side

_SAMPLE = 32  # token rows; 8 told all tensors of real and generated pairs apart
_MAJORITY = 0.5  # of the layers


def join(train: Side, infer: Side) -> JoinedSides:
    """Join two sides of one unit each by what their tensors hold.

    Raises DumpError where a side has several units, or where the token ids say that the sides ran different prompts.
    """
    *opened, tokens = one_forward(read(train), read(infer))
    picked = picked_tokens(tokens.join.agree, tokens.join.joined, _SAMPLE)
    windows = tokens.train, tokens.infer
    left, right = (nodes_of(opened[at], windows[at], picked, tokens.ids[at], tokens.positions[at]) for at in (0, 1))
    keys = weights.keyed(left.parameters, turned_entries(left)), weights.keyed(right.parameters, turned_entries(right))
    modules = weights.join_modules(*keys)
    speaking = weights.without_stacks(modules, left.parameters, right.parameters)
    for side in (left, right):
        dataflow.split_halves(side)
        dataflow.find_sums(side)
    by_rows = [(mine, theirs, share) for (mine, theirs), (share, how) in speaking.items() if how == "rows"]
    parts = (
        weights.cut_fused(left, keys[0], keys[1], by_rows),
        weights.cut_fused(right, keys[1], keys[0], [(theirs, mine, share) for mine, theirs, share in by_rows]),
    )
    for side in (left, right):
        dataflow.cut_rests(side)
    speaks = slice(None) if picked[-1] in tokens.join.agree or len(picked) < 3 else slice(0, -1)
    evidence = Evidence(left, right, speaking, parts, speaks)
    straightened = straighten(evidence, join_slots(evidence, layers.label(left), layers.label(right)))
    rows = in_order_of_roles(evidence, _join_nodes(evidence, straightened))
    rows += transferred(left, right, sorted(rows, key=_time))
    exchanged = _exchanged(evidence, straightened, rows)
    return JoinedSides(sorted(rows, key=_time), left, right, modules, tokens.join, exchanged, partial_side(*keys))


def _time(row: Joined) -> float:
    return row.train.time


def _exchanged(evidence: Evidence, straightened: Straightened, rows: list[Joined]) -> list[tuple[Joined, Joined]]:
    """The rows that cross: those that roles have put straight, and those of one layer that the other layers outvote."""
    by_pair = {(row.train, row.infer): row for row in rows}
    slots = [(straightened.joins[one].pairs, straightened.joins[other].pairs) for one, other in straightened.exchanged]
    found = [pair for pairs in slots for pair in zip(*pairs, strict=True)]
    found += [pair for pair in crossed(evidence, list(by_pair)) if pair not in found and pair[::-1] not in found]
    return [(by_pair[one], by_pair[other]) for one, other in found]


# --- the two assignments ---


def _join_nodes(evidence: Evidence, straightened: Straightened) -> list[Joined]:
    """Certain slots, then doubtful ones; certain nodes outside, then doubtful ones; last, the other addends of joined sums."""
    accepted = Accepted(evidence)
    slots = straightened.joins
    rows = _join_by_slots(accepted, slots, {at for pair in straightened.exchanged for at in pair})
    doubtful = []
    for left, right in join_rest(evidence, accepted.pairs):
        row = _row(evidence, [(left, right)], (left, right), evidence.share(left, right), "node")
        if row.sure:
            rows += _accepted(accepted, row)
        else:
            doubtful.append(row)
    rows += _borrowed(accepted, slots, rows)
    blind = accepted.blind
    for row in sorted(doubtful, key=lambda row: evidence.when[row.pairs[0][0]] if blind else -row.likeness):
        if accepted.joined_by_weights(*row.pairs[0], row.weights) or accepted.plausible(*row.pairs[0]):
            rows += _accepted(accepted, row._replace(why="order"))
    rows = _by_sums(accepted, rows)
    rows += _carried_streams(accepted, rows)
    return [row._replace(why="name") if row.train in straightened.named else row for row in rows]


class _Proposed(NamedTuple):
    """Pairs that are accepted or left together."""

    pairs: list[tuple[Node, Node]]
    columns: Array | None
    weights: float
    likeness: float
    sure: bool
    why: str


def _join_by_slots(accepted: Accepted, slots: list[SlotJoin], by_role: set[int]) -> list[Joined]:
    """``by_role``: places of the slots that roles have joined, whatever their values say."""
    rows: list[Joined] = []
    doubtful = []
    for at, slot in enumerate(slots):
        row = _row(accepted.evidence, slot.pairs, slot.best, slot.weights, "pattern")
        if row.sure or at in by_role:
            rows += _accepted(accepted, row)
        else:
            doubtful.append(row)
    for row in sorted(doubtful, key=lambda row: -row.likeness):
        held = np.mean([accepted.plausible(*pair) for pair in row.pairs]) >= _MAJORITY
        if held or accepted.joined_by_weights(*row.pairs[0], row.weights):
            rows += _accepted(accepted, row._replace(why="order"))
    return rows


def _borrowed(accepted: Accepted, slots: list[SlotJoin], rows: list[Joined]) -> list[Joined]:
    """The layers in which a slot of a joined pair of slots has no node of its own, unless all of theirs are joined otherwise."""
    by_pair = {(row.train, row.infer): row for row in rows}
    taken = {node for row in rows for node in (row.train, row.infer)}
    found: list[Joined] = []
    for slot in slots:
        row = by_pair.get(slot.pairs[0])
        for pair in slot.borrowed:
            if row is not None and not set(pair) <= taken:
                accepted.add(*pair)
                found.append(row._replace(train=pair[0], infer=pair[1]))
    return found


def _row(evidence: Evidence, pairs: list[tuple[Node, Node]], best: tuple[Node, Node], share: float, why: str) -> _Proposed:
    order = column_order(*(node.sample[evidence.rows] for node in best))
    likeness = evidence.likeness(*best)
    return _Proposed(pairs, order.columns, share, likeness, certain(likeness, share, aligned=order.agree), why)


def _accepted(accepted: Accepted, row: _Proposed) -> list[Joined]:
    for pair in row.pairs:
        accepted.add(*pair)
    return [Joined(train, infer, row.columns, row.weights, row.likeness, row.why) for train, infer in row.pairs]


def _by_sums(accepted: Accepted, rows: list[Joined]) -> list[Joined]:
    """z = x + y on both sides with z and x joined joins y, of three addends the last one: the rows with those joined.

    A doubtful row gives way: what adds up is surer than order.
    """
    evidence = accepted.evidence
    partner = {row.train: row.infer for row in rows}
    taken = {node for row in rows if row.why != "order" for node in (row.train, row.infer)}
    found = []
    for row in rows:
        addends, others = evidence.train.sums.get(id(row.train)), evidence.infer.sums.get(id(row.infer))
        if addends is None or others is None:
            continue
        met = [partner[node] for node in addends if partner.get(node) in others]
        loose = [node for node in addends if partner.get(node) not in others]
        rest = [node for node in others if node not in met]
        if len(addends) == len(others) and len(loose) == len(rest) == 1 and not {loose[0], rest[0]} & taken:
            found += _accepted(accepted, _row(evidence, [(loose[0], rest[0])], (loose[0], rest[0]), 0.0, "sum"))
            taken |= {loose[0], rest[0]}
    new = {node for row in found for node in (row.train, row.infer)}
    return [row for row in rows if not {row.train, row.infer} & new] + found


def _carried_streams(accepted: Accepted, rows: list[Joined]) -> list[Joined]:
    """A residual sum that nothing has joined meets what the joined norm of the other side normalises.

    A residual that is lost in all layers leaves no sum there, only the tensor that was to be added.
    """
    evidence = accepted.evidence
    carried = _carried(evidence.train), _carried(evidence.infer)
    taken = {node for row in rows for node in (row.train, row.infer)}
    found = []
    for row in rows:
        train, infer = carried[0].get(row.train), carried[1].get(row.infer)
        if train is None or infer is None or train.width != infer.width:
            continue
        sums = [node for node in (train, infer) if id(node) in evidence.train.sums or id(node) in evidence.infer.sums]
        if any(node not in taken for node in sums):
            found += _accepted(accepted, _row(evidence, [(train, infer)], (train, infer), 0.0, "sum"))
            taken |= {train, infer}
    return found


def _carried(side: SideNodes) -> dict[Node, Node]:
    """First output of a leaf -> its other output of that width, else its only input of that width."""
    outputs: dict[str, list[Node]] = {}
    inputs: dict[str, list[Node]] = {}
    for recorded in side.records.activations:
        entry, io, path = recorded.spot.entry, recorded.spot.io, recorded.spot.path
        node = side.at.get((entry, io, path))
        if node is not None and recorded.spot.leaf:
            (outputs if io == "output" else inputs).setdefault(entry, []).append(node)
    found: dict[Node, Node] = {}
    for entry, (first, *others) in outputs.items():
        for candidates in (others, inputs.get(entry, [])):
            alike = [node for node in candidates if node.width == first.width and node is not first]
            if len(alike) == 1:
                found.setdefault(first, alike[0])
                break
    return found
