"""Parts of fused results: what one side makes in modules of its own, or records apart later, and the other in one tensor.

The parts are cut out in the order of their modules: statistics are the same for every order of columns, so nothing shows it.
"""

from collections import defaultdict
from collections.abc import Sequence
from typing import NamedTuple

from msprobe_files.operands import Op

from dump_analysis.mapping.joining.joined import Joined
from dump_analysis.mapping.recorded.nodes import Node, Spot
from dump_analysis.mapping.stated.stated import Stated
from dump_analysis.mapping.stated.stated_flow import Flow, matrices
from dump_analysis.statistics import agreement, together

_MOST = 3  # q, k, v
_SOON = 40.0  # time after a fused result, in which its parts are recorded


class Fused(NamedTuple):
    """A result of one leaf on the side ``of`` (0 train, 1 infer), and the results of several leaves that it is on the other."""

    whole: Node
    of: int
    parts: list[Node]


def fused_of(flows: tuple[Flow, Flow], rows: Sequence[Joined]) -> list[Fused]:
    """Results without a row made of a joined node alone, as wide as neighbours that the other side makes of it."""
    mates = {row.train: row.infer for row in rows}, {row.infer: row.train for row in rows}
    found = []
    for apart, of in ((0, 1), (1, 0)):
        wholes = _results(flows[of])
        for source, parts in _results(flows[apart]).items():
            mate = mates[apart].get(source)
            for whole in wholes.get(mate, []) if mate is not None else []:
                run = _making_up(parts, whole.width) if whole not in mates[of] else []
                found += [Fused(whole, of, run)] if run else []
    return found


def with_parts(
    sides: tuple[Stated, Stated], flows: tuple[Flow, Flow], rows: Sequence[Joined], fused: Sequence[Fused]
) -> tuple[list[Joined], list[Fused]]:
    """The rows with those of parts; a joined pair of fused results whose parts are known gives way to them.

    Its ``why`` is then "fused", or "untold" where nothing says how the parts lie in it.
    """
    mates = {row.train: row.infer for row in rows}, {row.infer: row.train for row in rows}
    made, known = [], list(fused)
    for one in fused:
        for part, cut in zip(one.parts, cuts(one.whole, [part.width for part in one.parts]), strict=True):
            if part not in mates[1 - one.of]:
                made.append(_row(part, cut, one.of))
    for row in rows:
        pair = row.train, row.infer
        apart = [_recorded_apart(sides[at], flows[at], pair[at]) for at in (0, 1)]
        parts, why = _of_joined(sides, flows, pair, apart, mates)
        made += [row._replace(why=why or row.why), *parts]
        known += [Fused(pair[at], at, apart[at]) for at in (0, 1) if apart[at] and why == "fused"]
    return made, known


def _row(part: Node, cut: Node, of: int) -> Joined:
    return Joined(*((part, cut) if of == 1 else (cut, part)), None, 0.0, 0.0, "part")


def _of_joined(
    sides: tuple[Stated, Stated],
    flows: tuple[Flow, Flow],
    pair: tuple[Node, Node],
    apart: Sequence[Sequence[Node]],
    mates: tuple[dict[Node, Node], dict[Node, Node]],
) -> tuple[list[Joined], str]:
    """The parts of a fused result that both sides have, and what becomes of the row of the whole ("": it stays).

    Parts are what one side records apart, unless some of that is joined already, else the two factors of a product.
    """
    for at in (0, 1):
        if apart[at]:
            if any(part in mates[at] for part in apart[at]):
                return [], "untold"
            other = cuts(pair[1 - at], [part.width for part in apart[at]])
            return [_row(part, cut, 1 - at) for part, cut in zip(apart[at], other, strict=True)], "fused"
    half = pair[0].width // 2
    if pair[0].width % 2 == 0 and _are_factors(sides, flows, pair, half):
        both = [cuts(node, [half, half]) for node in pair]
        return [Joined(left, right, None, 0.0, 0.0, "part") for left, right in zip(*both, strict=True)], "fused"
    return [], ""


def _recorded_apart(side: Stated, flow: Flow, whole: Node) -> list[Node]:
    """Two or three nodes that no leaf makes, recorded soon after a leaf's result, whose statistics are together the whole's."""
    if whole not in flow.maker or whole not in side.facts:
        return []
    after = [node for node in flow.readers if node not in flow.maker and 0 <= node.time - whole.time < _SOON and node.width < whole.width]
    run = _making_up(sorted((node for node in after if id(node) not in side.nodes.sums), key=lambda node: node.time)[:_MOST], whole.width)
    facts = [side.facts[node] for node in run if node in side.facts]
    return run if facts and agreement(together(facts), side.facts[whole]).agree == "yes" else []


def _are_factors(sides: tuple[Stated, Stated], flows: tuple[Flow, Flow], pair: tuple[Node, Node], half: int) -> bool:
    """Whether all that reads a leaf's result is a leaf without a matrix, which makes a node of half the width of it.

    Not where the other side has a matrix there, nor where the result is such a product itself.
    """
    found = False
    for side, flow, whole in zip(sides, flows, pair, strict=True):
        made_of, readers = flow.takes.get(flow.maker.get(whole, ""), []), flow.readers.get(whole, [])
        if len(made_of) > 1 or any(node.width == 2 * whole.width for node in made_of):
            return False
        halved = [
            entry for entry in readers if len(flow.takes[entry]) == 1 and [node.width for node in flow.gives.get(entry, ())] == [half]
        ]
        if set(halved) & matrices(side):
            return False
        found = found or (len(readers) == len(halved) == 1 and whole in flow.maker)
    return found


def _results(flow: Flow) -> dict[Node, list[Node]]:
    """Node -> what leaves make of it alone, in their order."""
    found: dict[Node, list[Node]] = defaultdict(list)
    for entry, made in flow.gives.items():
        taken = flow.takes.get(entry, [])
        if len(taken) == 1 and len(made) == 1:
            found[taken[0]].append(made[0])
    return {source: sorted(made, key=lambda node: node.time) for source, made in found.items()}


def _making_up(parts: Sequence[Node], width: int) -> list[Node]:
    """Two or three neighbours whose widths add up."""
    for start in range(len(parts)):
        for stop in range(start + 2, min(len(parts), start + _MOST) + 1):
            if sum(part.width for part in parts[start:stop]) == width:
                return list(parts[start:stop])
    return []


def cuts(whole: Node, widths: Sequence[int]) -> list[Node]:
    """A node cut into runs of columns, whose statistics are not known."""
    made, start = [], 0
    first = whole.spots[0]
    for width in widths:
        op = Op("slice", axis=1, start=start, stop=start + width)
        sources = [source._replace(steps=(*(source.steps or ()), op)) for source in whole.sources]
        spot = Spot(whole.time + 0.1 + start * 1e-6, first.entry, first.io, f"{first.path}[slice{start}]", first.leaf)
        sample = whole.sample[:, start : start + width]
        made.append(Node(sample, sources, None, "part", [spot], spot.time, whole.layer))
        start += width
    return made
