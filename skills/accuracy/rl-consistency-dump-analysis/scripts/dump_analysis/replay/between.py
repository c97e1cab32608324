"""What passes between the modules of a pair: where inputs came from, what was altered, and what follows from that.

A value that is rightly made of an altered one is no finding of its own: it is recomputed from what was there.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import NamedTuple

import msgspec
import numpy as np
from msprobe_files.errors import DumpError
from msprobe_files.operands import Operand

from dump_analysis.artefacts.common import Worded
from dump_analysis.artefacts.replay_results import ModuleReplay
from dump_analysis.artefacts.semantic_mapping import Row
from dump_analysis.mapping.naming.rowgraph import first_spot
from dump_analysis.mapping.recorded.nodes import Node
from dump_analysis.replay import places
from dump_analysis.replay.alterations import Altered, operand_of
from dump_analysis.replay.changed import difference
from dump_analysis.replay.edges import Edges, Stated, edges_of, with_findings
from dump_analysis.replay.flow import Flow, flows_of
from dump_analysis.replay.modules import Pair
from dump_analysis.replay.one_side import Replayed, Unreplayed, replay
from dump_analysis.replay.origins import Origin, is_sum
from dump_analysis.replay.overwritten import anew
from dump_analysis.replay.recorded import CannotReplay, Matrix, value_of
from dump_analysis.replay.traced import Traced, traced
from dump_analysis.sides import Side
from dump_analysis.tensors import SumStream
from dump_analysis.wording import word

Sided = dict[str, Replayed | Unreplayed]


class Inputs(NamedTuple):
    """Where inputs came from, and what was altered; by module what is told of inputs that were overwritten. ``untraced``: why nothing
    is known of where they came from.
    """

    edges: Edges
    told: dict[str, list[Worded]]
    untraced: str | None


def inputs_of(pair: Pair, found: Sequence[tuple[Row, Sided]], stated: Stated) -> Inputs:
    """``found``: what recomputing has shown. What was made of overwritten or of altered inputs is replaced there by what it is worth."""
    flows, taken, untraced = _traced(pair, found)
    told: dict[str, list[Worded]] = {}
    for row, both, label, one in _unexplained(found):
        again = anew(flows.get(label), pair.side(label), operand_of(row, label), one, stated.get(label, {}))
        if again is not None:
            both[label] = again.replayed
            told.setdefault(places.module_of(row.boundary), []).extend(again.told)
    made = {(row.boundary, label): one for row, both in found for label, one in both.items()}
    edges = edges_of([row for row, _ in found], flows, taken, made, stated)
    for row, both, label, one in _unexplained(found) if flows else ():
        both[label] = _of_altered(flows[label], pair, row, one, edges.altered, stated.get(label, {})) or one
        names = _made_of(flows[label], row) if both[label] is one and places.is_between(row.boundary) else []
        if names:
            told.setdefault(places.module_of(row.boundary), []).append(word("replay_made_of", side=label, sources=names))
    for flow in flows.values():
        flow.files.close()
    return Inputs(edges, told, untraced)


def _traced(pair: Pair, found: Sequence[tuple[Row, Sided]]) -> tuple[dict[str, Flow], dict[str, list[Traced]], str | None]:
    """What each side recorded, and where its inputs came from; or nothing, and why, if there is a reason to tell."""
    if not any(isinstance(one, Replayed) for _, both in found for one in both.values()):
        return {}, {}, None  # nothing was recorded but statistics
    try:
        flows = flows_of(pair.train, pair.infer)
        return flows, {label: traced(flow) for label, flow in flows.items()}, None
    except DumpError as error:
        return {}, {}, str(error)


def _unexplained(found: Sequence[tuple[Row, Sided]]) -> Iterator[tuple[Row, Sided, str, Replayed]]:
    for row, both in found:
        for label, one in list(both.items()):
            if isinstance(one, Replayed) and not one.explained:
                yield row, both, label, one


def with_inputs(modules: Sequence[ModuleReplay], inputs: Inputs) -> list[ModuleReplay]:
    """The verdicts with what is told of their inputs: one that is altered or another one is logic, on the side whose dump proves it."""
    told = [msgspec.structs.replace(module, evidence=[*module.evidence, *inputs.told.get(module.module, [])]) for module in modules]
    return with_findings(told, inputs.edges)


def _of_altered(
    flow: Flow, pair: Pair, row: Row, was: Replayed, altered: Sequence[Altered], stated: Mapping[str, float]
) -> Replayed | None:
    """A value between modules that is right but for what was altered before, recomputed: a sum of what its side added, or a value made
    before that was altered. None for others.
    """
    own = [one for one in altered if one.side == flow.label]
    before = places.sources_of(row.boundary, pair.rows) if own else None
    if before is None:
        return None
    operands = [operand_of(pair.rows[name], flow.label) for name in before.boundaries]
    side = pair.side(flow.label)
    ways = (_as_handed_on, _as_multiplied)
    for inputs in (partial(_as_added, flow, side, row, operands, own), *(partial(way, flow, side, operands, own) for way in ways)):
        try:
            given = inputs()
            found = replay(was.work._replace(inputs=given), stated) if given else None
        except CannotReplay:
            continue
        if found is not None and found.explained:
            return found
    return None


def _as_added(flow: Flow, side: Side, row: Row, operands: Sequence[Operand], altered: Sequence[Altered]) -> tuple[Matrix, ...]:
    """What a side added, if all but one of the addends are what the mapping says, and that one differs where it was altered; else none."""
    nodes = flow.nodes_in(operand_of(row, flow.label))
    added = list(flow.nodes.sums.get(id(nodes[0]), ())) if len(nodes) == 1 else []
    left: list[Operand] = []
    loose = list(added)
    for operand in operands:
        held = [node for node in loose if node in flow.nodes_in(operand) and operand.combine is None]
        loose = [node for node in loose if node not in held[:1]]
        left += [operand] if not held else []
    if len(left) != 1 or len(loose) != 1:
        return ()
    return tuple(map(flow.matrix, added)) if _is_altered(flow, loose[0], value_of(flow.files, side, left[0]), altered) else ()


def _as_handed_on(flow: Flow, side: Side, operands: Sequence[Operand], altered: Sequence[Altered]) -> tuple[Matrix, ...]:
    """What the mapping says, with what altered values were before; none where no altered value is among them."""
    were = {one.node: one.origin for one in altered}
    nodes = [flow.nodes_in(operand)[0] if operand.combine is None and flow.nodes_in(operand) else None for operand in operands]
    if not any(node in were for node in nodes):
        return ()
    return tuple(
        _before(flow, were[node]) if node in were else value_of(flow.files, side, operand)
        for node, operand in zip(nodes, operands, strict=True)
    )


def _as_multiplied(flow: Flow, side: Side, operands: Sequence[Operand], altered: Sequence[Altered]) -> tuple[Matrix, ...]:
    """What the mapping says, with what was made of it by a number where that is handed on; none where no such value is among them."""
    made = {one.origin.sources[0]: one.node for one in altered if one.change is None}
    nodes = [flow.nodes_in(operand)[0] if operand.combine is None and flow.nodes_in(operand) else None for operand in operands]
    if not any(node in made for node in nodes):
        return ()
    return tuple(
        flow.matrix(made[node]) if node in made else value_of(flow.files, side, operand)
        for node, operand in zip(nodes, operands, strict=True)
    )


def _before(flow: Flow, origin: Origin) -> Matrix:
    """What a value was made of, unaltered. Raises CannotReplay where that is no copy and no sum."""
    made = [flow.matrix(source) for source in origin.sources]
    if origin.how == "copy":
        return made[0]
    if origin.how != "sum":
        raise CannotReplay(word("replay_no_input", entry=made[0].name))
    return made[0]._replace(stream=SumStream([one.stream for one in made], (made[0].rows, made[0].columns)))


def _made_of(flow: Flow, row: Row) -> list[str]:
    """The values whose sum a mapped value is, or the one that it is itself, whatever the mapping says of it."""
    nodes = flow.nodes_in(operand_of(row, flow.label))
    if len(nodes) != 1:
        return []
    addends = flow.nodes.sums.get(id(nodes[0]), ())
    if addends:
        return [name for node in addends for name in flow.names_of(node)] if is_sum(flow, nodes[0], addends) else []
    names = flow.names_of(nodes[0])
    return names if first_spot(nodes[0]).io == "output" and operand_of(row, flow.label).sources[0].name not in names else []


def _is_altered(flow: Flow, node: Node, expected: Matrix, altered: Sequence[Altered]) -> bool:
    """Whether a value is an altered one, or differs from what it should be only where one before it was altered."""
    before = [one for one in altered if one.side == flow.label and one.node.time <= node.time]
    if any(one.node is node for one in before):
        return True
    made = flow.matrix(node)
    if (made.rows, made.columns) != (expected.rows, expected.columns):
        return False
    found = difference(made, lambda start, stop: [expected.read(start, stop)])
    touched = (np.flatnonzero(found.tokens), np.flatnonzero(found.columns))
    changes = [one.change for one in before if one.change is not None]
    return any(set(touched[0]) <= set(change.tokens) and set(touched[1]) <= set(change.columns) for change in changes)
