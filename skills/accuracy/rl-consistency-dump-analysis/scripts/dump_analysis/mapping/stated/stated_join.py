"""Two sides joined by what they state: slots against slots, the rest node by node, then the parts of fused results."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from dump_analysis.mapping.joining.acceptance import CERTAIN, HALF, Accepted
from dump_analysis.mapping.joining.joined import Joined
from dump_analysis.mapping.joining.rest import join_rest
from dump_analysis.mapping.joining.slots import SlotJoin, join_slots
from dump_analysis.mapping.recorded import layers
from dump_analysis.mapping.recorded.nodes import Node
from dump_analysis.mapping.recorded.signatures import decades
from dump_analysis.mapping.stated.stated import Stated
from dump_analysis.mapping.stated.stated_evidence import StatedEvidence
from dump_analysis.mapping.stated.stated_flow import Flow, find_sums, flow_of, works_on
from dump_analysis.mapping.stated.stated_parts import Fused, fused_of, with_parts
from dump_analysis.mapping.stated.stated_weights import Link, join_weights, modules_of

_MAJORITY = 0.5  # of the layers
_EQUAL = decades(0.0)

_Pair = tuple[Node, Node]


class StatedJoin(NamedTuple):
    """What joins the sides. ``rows``: in the trainer's order; ``flows``: of train and infer; ``links``: of weights.

    ``fused``: results that one side makes in one module and the other in several.
    """

    train: Stated
    infer: Stated
    rows: list[Joined]
    flows: tuple[Flow, Flow]
    links: list[Link]
    fused: list[Fused]


def join_stated(train: Stated, infer: Stated) -> StatedJoin:
    """Join two sides of which statistics or digests are stated."""
    labels = layers.label(train.nodes), layers.label(infer.nodes)
    flows = flow_of(train), flow_of(infer)
    find_sums(train, flows[0])
    find_sums(infer, flows[1])
    links = join_weights(train, infer)
    evidence = StatedEvidence(train, infer, modules_of(links))
    accepted = Accepted(evidence)
    rows = _by_slots(accepted, join_slots(evidence, *labels))
    rows += _one_by_one(accepted)
    rows += _by_norms(accepted, flows, rows)
    rows += _by_sums(accepted, rows)
    rows, fused = with_parts((train, infer), flows, rows, fused_of(flows, rows))
    return StatedJoin(train, infer, sorted(rows, key=lambda row: (row.train.ready, row.train.time)), flows, links, fused)


# --- nodes ---


def _by_slots(accepted: Accepted, slots: Sequence[SlotJoin]) -> list[Joined]:
    """Slots that all layers together join, or equal digests in some, then those that order and modules make plausible."""
    evidence = accepted.evidence
    rows: list[Joined] = []
    doubtful = []
    for slot in slots:
        each = [evidence.likeness(*pair) for pair in slot.pairs]
        likeness = float(np.mean(each))
        if likeness >= CERTAIN or (slot.weights >= HALF and likeness >= HALF) or _EQUAL in each:
            rows += _accept(accepted, [*slot.pairs, *slot.borrowed], slot.weights, likeness, "pattern")
        else:
            doubtful.append((likeness, slot))
    for likeness, slot in sorted(doubtful, key=lambda one: -one[0]):
        taken = {node for row in rows for node in (row.train, row.infer)}
        held = np.mean([accepted.plausible(*pair) for pair in slot.pairs])
        if held >= _MAJORITY and not any(set(pair) & taken for pair in slot.pairs):
            rows += _accept(accepted, slot.pairs, slot.weights, likeness, "order")
    return rows


def _accept(accepted: Accepted, pairs: Sequence[_Pair], weights: float, likeness: float, why: str) -> list[Joined]:
    for pair in pairs:
        accepted.add(*pair)
    return [Joined(train, infer, None, weights, likeness, why) for train, infer in pairs]


def _one_by_one(accepted: Accepted) -> list[Joined]:
    """Nodes outside the repeating block; in it, where other layers speak against a pair, four numbers agree by chance."""
    evidence = accepted.evidence
    rows: list[Joined] = []
    doubtful = []
    for pair in join_rest(evidence, accepted.pairs):
        if None not in (pair[0].slot, pair[1].slot):
            continue
        if evidence.likeness(*pair) >= CERTAIN:
            rows += _accept(accepted, [pair], evidence.share(*pair), evidence.likeness(*pair), "node")
        else:
            doubtful.append(pair)
    for pair in sorted(doubtful, key=lambda pair: -evidence.likeness(*pair)):
        if accepted.joined_by_weights(*pair, evidence.share(*pair)) or accepted.plausible(*pair):
            rows += _accept(accepted, [pair], evidence.share(*pair), evidence.likeness(*pair), "order")
    return rows


def _by_norms(accepted: Accepted, flows: tuple[Flow, Flow], rows: Sequence[Joined]) -> list[Joined]:
    """Where a leaf of each side makes joined nodes of one other node each, these others are joined."""
    taken = {node for row in rows for node in (row.train, row.infer)}
    found: list[Joined] = []
    for row in rows:
        train, infer = works_on(flows[0], row.train), works_on(flows[1], row.infer)
        if train is None or infer is None or train.width != infer.width or {train, infer} & taken:
            continue
        found += _accept(accepted, [(train, infer)], 0.0, accepted.evidence.likeness(train, infer), "order")
        taken |= {train, infer}
    return found


def _by_sums(accepted: Accepted, rows: Sequence[Joined]) -> list[Joined]:
    """z = x + y on both sides with z and x joined joins y; with x and y joined joins z."""
    evidence = accepted.evidence
    partner = {row.train: row.infer for row in rows}
    taken = {node for row in rows for node in (row.train, row.infer)}
    totals = {frozenset(addends): node for node in evidence.infer.nodes if (addends := evidence.infer.sums.get(id(node)))}
    found: list[Joined] = []
    for total in evidence.train.nodes:
        addends = evidence.train.sums.get(id(total))
        if addends is None:
            continue
        known = [partner[node] for node in addends if node in partner]
        if total not in partner and len(known) == len(addends):
            other = totals.get(frozenset(known))
            pairs = [(total, other)] if other is not None else []
        else:
            theirs = evidence.infer.sums.get(id(partner.get(total)), ())
            left = [node for node in addends if node not in partner], [node for node in theirs if node not in known]
            pairs = [(left[0][0], left[1][0])] if len(left[0]) == len(left[1]) == 1 else []
        for pair in pairs:
            if pair[0].width == pair[1].width and not set(pair) & taken:
                found += _accept(accepted, [pair], evidence.share(*pair), evidence.likeness(*pair), "sum")
                partner[pair[0]] = pair[1]
                taken |= set(pair)
    return found
