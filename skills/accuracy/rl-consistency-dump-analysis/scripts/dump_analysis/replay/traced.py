"""Where each input of one side's modules came from."""

from typing import NamedTuple

from dump_analysis import floats
from dump_analysis.mapping.naming.rowgraph import first_spot
from dump_analysis.mapping.recorded.nodes import Node, Recorded
from dump_analysis.replay.flow import Flow
from dump_analysis.replay.origins import Origin, origin_of, origin_of_rows


class Traced(NamedTuple):
    """What one side recorded at a place between modules, and how it came to be. ``node`` None: its rows are no tokens."""

    recorded: Recorded
    node: Node | None
    origin: Origin

    @property
    def altered(self) -> bool:
        """Whether it is an earlier value, but not quite; it may be meant so."""
        return self.origin.change is not None or self.origin.gain is not None


def traced(flow: Flow) -> list[Traced]:
    """Every floating input of the side's innermost modules; of the modules around them only what comes in or goes out altered."""
    found = [Traced(one, None, Origin(None, (), one.tensor.elements, one.tensor.elements)) for one in flow.overwritten]
    origins: dict[Node, Origin] = {}
    for one in sorted(flow.nodes.records.activations, key=lambda one: one.spot.time):
        if floats.is_integer(one.tensor.dtype) or (one.spot.leaf and one.spot.io == "output"):
            continue
        node = flow.node_at(one.spot)
        if node is None:
            found += [Traced(one, None, origin_of_rows(flow, one))] if one.spot.leaf else []
            continue
        first = flow.first(node)
        if _is_given(flow, node):
            found += [Traced(one, node, _copied(node, one))] if one.spot.leaf and first is not one else []
            continue
        origin = origins.setdefault(node, origins.get(node) or origin_of(flow, node))
        made = Traced(one, node, origin)
        if made.altered and first is not one:
            made = Traced(one, node, _copied(node, one))
        found += [made] if one.spot.leaf or made.altered else []
    return found


def _copied(node: Node, one: Recorded) -> Origin:
    return Origin("copy", (node,), 0, one.tensor.elements)


def _is_given(flow: Flow, node: Node) -> bool:
    """Whether a module returned a value first, or it is there before any module returned one: an input of the model."""
    first = first_spot(node)
    if first.leaf and first.io == "output":
        return True
    return not any(first_spot(other).io == "output" for other in flow.before(first))
