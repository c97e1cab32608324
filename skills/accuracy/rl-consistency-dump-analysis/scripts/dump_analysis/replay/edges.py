"""Where the inputs of both sides came from, as written, and what was altered between modules told in verdicts."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import msgspec

from dump_analysis.artefacts.common import FindingSide, SideName, Worded
from dump_analysis.artefacts.replay_results import AlteredEdge, Edge, How, ModuleReplay
from dump_analysis.artefacts.semantic_mapping import Row
from dump_analysis.floats import FEW_DIGITS, shown
from dump_analysis.replay import places
from dump_analysis.replay.alterations import SIDES, Altered, View, altered_of, view_of, without_repeats
from dump_analysis.replay.elsewhere import Elsewhere, taken_elsewhere
from dump_analysis.replay.flow import Flow
from dump_analysis.replay.one_side import Replayed, Unreplayed
from dump_analysis.replay.traced import Traced
from dump_analysis.wording import word

Made = Mapping[tuple[str, str], Replayed | Unreplayed]  # (boundary, side) -> what recomputing its value showed
Stated = Mapping[str, Mapping[str, float]]  # side -> constants by name
_ATTENTION = ".attn_core.out"
_BY_OPERATOR: dict[str, How] = {"residual_add": "sum", "gated_activation": "product", "activation": "product", "embedding": "product"}
_BY_OPERATOR |= {"routed_experts": "routed_experts", "weighted_experts": "routed_experts"}
# How a change is told that has no one factor.
_TOLD = {
    "gain": "replay_altered_gains", "moved": "replay_altered_moved", "lost": "replay_altered_lost", "other": "replay_altered_other",
}  # fmt: skip


class Edges(NamedTuple):
    """What is written of both sides, and the findings among it, in the mapping's order."""

    edges: list[Edge]
    altered: list[Altered]
    elsewhere: list[Elsewhere]


def edges_of(rows: Sequence[Row], flows: Mapping[str, Flow], found: Mapping[str, Sequence[Traced]], made: Made, stated: Stated) -> Edges:
    """Edges of both sides and what was altered. ``made``: what recomputing the values between modules has shown."""
    view = view_of(rows, flows, found, stated)
    altered = altered_of(view)
    convicted = {(one.side, one.input): one for one in altered}
    edges = [_edge(view, label, one, convicted, made) for label in SIDES if label in flows for one in found[label]]
    order = {row.boundary: at for at, row in enumerate(rows)}
    elsewhere = taken_elsewhere(rows, view) if len(flows) == len(SIDES) else []
    return Edges(edges, sorted(without_repeats(altered), key=lambda one: order[one.boundary]), elsewhere)


def _edge(view: View, side: SideName, one: Traced, convicted: Mapping[tuple[SideName, str], Altered], made: Made) -> Edge:
    flow, origin = view.flows[side], one.origin
    name = flow.recorded_as(one.recorded.record.name)[0]
    sources = [name for source in origin.sources for name in flow.names_of(source)]
    altered = convicted.get((side, name)) if one.altered else None
    if altered is not None:
        return Edge(side, name, sources, "altered", origin.unexplained, _written(altered))
    if origin.how is not None and not one.altered:
        return Edge(side, name, sources, origin.how, 0)
    recomputed = _recomputed(view, side, one, made)
    if recomputed is not None:
        return Edge(side, name, sources or recomputed[0], *recomputed[1:])
    if origin.gain is not None:
        return Edge(side, name, sources, "product", 0)
    return Edge(side, name, sources, "unknown", origin.unexplained)


def _recomputed(view: View, label: str, one: Traced, made: Made) -> tuple[list[str], How, int] | None:
    """A value between modules that recomputing explains: what it was recomputed from, and how."""
    flow = view.flows[label]
    for row in view.mapped[label].holding.get(one.node, ()) if one.node is not None else ():
        replayed = made.get((row.boundary, label))
        if not isinstance(replayed, Replayed) or not replayed.explained:
            continue
        how = _BY_OPERATOR.get(replayed.best.trial.formula.operator, "rotary_attention" if row.boundary.endswith(_ATTENTION) else None)
        names = list(dict.fromkeys(name for before in replayed.work.inputs for name in flow.recorded_as(before.name)))
        if how is not None:
            return names, how, replayed.best.outside
    return None


def _written(altered: Altered) -> AlteredEdge:
    """Lists of tokens and columns that hold only some of them."""
    change = altered.change
    tokens = list(change.tokens) if change is not None and len(change.tokens) < change.of_tokens else []
    columns = list(change.columns) if change is not None and len(change.columns) < change.of_columns else []
    gain = shown(altered.gain, FEW_DIGITS) if altered.gain is not None else None
    return AlteredEdge(altered.boundary, tokens, columns, gain)


def with_findings(modules: Sequence[ModuleReplay], edges: Edges) -> list[ModuleReplay]:
    """The verdicts with what was altered on the way to each module, or taken from elsewhere: logic, on the side whose dump proves it."""
    found: dict[str, list[tuple[FindingSide, Worded]]] = {}
    for altered in edges.altered:
        against = altered.wrong not in ("unknown", altered.side)
        told = word("replay_not_altered", side=altered.wrong, sources=list(altered.sources), gain=altered.gain) if against else None
        found.setdefault(places.module_of(altered.boundary), []).append((altered.wrong, told or said_of(altered)))
    for taken in edges.elsewhere:
        told = word("replay_elsewhere", side=taken.side, input=taken.input, held=taken.held, usual=taken.usual)
        found.setdefault(places.module_of(taken.boundary), []).append((taken.side, told))
    return [_convicted(module, found.get(module.module, [])) for module in modules]


def _convicted(module: ModuleReplay, told: Sequence[tuple[FindingSide, Worded]]) -> ModuleReplay:
    if not told:
        return module
    sides = ({side for side, _ in told} | ({module.side} if module.verdict == "logic" else set())) - {"unknown"}
    side: FindingSide = "both" if len(sides) > 1 else next(iter(sides), "unknown")
    return msgspec.structs.replace(module, verdict="logic", side=side, evidence=[*(said for _, said in told), *module.evidence])


def said_of(altered: Altered) -> Worded:
    """What was altered, in a sentence."""
    change = altered.change
    if change is None:
        where = word("replay_everywhere")
    elif len(change.tokens) * 2 < change.of_tokens:
        where = word("replay_in_tokens", tokens=list(change.tokens), of=change.of_tokens)
    else:
        where = word("replay_in_columns", columns=list(change.columns), of=change.of_columns)
    if altered.gain is not None:
        how = word("replay_altered_gain", gain=shown(altered.gain, FEW_DIGITS))
    else:
        how = word(_TOLD[change.how if change is not None else "other"])
    return word("replay_altered", side=altered.side, input=altered.input, sources=list(altered.sources), where=where, how=how)
