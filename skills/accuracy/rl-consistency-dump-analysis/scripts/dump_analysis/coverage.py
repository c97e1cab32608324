"""What was not compared and may hide a fault; and what cannot hide one, for replay explains what lies around it on both sides.

A boundary inside a recomputed span, or logits that one side alone has, hides nothing where the span follows on both sides from what was
recorded; a weight that one side did not record hides nothing where the other side's, borrowed, makes what was recorded.
"""

from collections.abc import Sequence

from msprobe_files import names

from .artefacts.boundary_results import GAPS, BoundaryResult, BoundaryResults
from .artefacts.common import Worded
from .artefacts.conclusion import Span
from .artefacts.replay_results import Edge, ModuleReplay, ReplayResults, SideReplay
from .artefacts.semantic_mapping import SemanticMapping
from .boundaries import is_weight, layer_of
from .replay.places import module_of
from .wording import word

_RIGHT = ("same", "rounding")
_SIDES = ("train", "infer")
_NORM_INSIDE = "norm_linear"  # the operator of a linear that normalises what it is handed
_ROTATED = (".q_rope.out", ".k_rope.out")
_REST_OF = ".other_tokens"  # in the name of a gap: rows of a boundary that one side does not have


class Coverage:
    """Which gaps of a comparison replay covers. ``replay`` None: none of them."""

    def __init__(self, results: BoundaryResults, replay: ReplayResults | None, mapping: SemanticMapping | None = None) -> None:
        self._modules = {module.module: module for module in replay.modules} if replay is not None else {}
        self._orders = {result.boundary: result.order for result in results.boundaries}
        self._spans = [module for module in self._modules.values() if module.span is not None and module.verdict in _RIGHT]
        self._inside_linears = [module for module in self._modules.values() if module.operator == _NORM_INSIDE and module.verdict in _RIGHT]
        self._named = {
            (label, source.name): row.boundary
            for row in (mapping.boundaries if mapping is not None else ())
            for label in _SIDES
            for source in getattr(row, label).sources
        }
        self._entries = {label: {getattr(module, label).entry for module in self._modules.values()} for label in _SIDES}
        self._all_right = bool(self._modules) and all(module.verdict in _RIGHT for module in self._modules.values())

    def covered_by(self, gap: BoundaryResult) -> str | None:
        """What covers a gap: the end of a span, or the module that makes it; None where a fault may hide in it."""
        if is_weight(gap.boundary) or ".parameters." in gap.boundary:
            return self._of_weight(gap.boundary)
        if gap.boundary.endswith(_REST_OF):
            return self._right(module_of(gap.boundary.removesuffix(_REST_OF)))
        if gap.boundary == "positions":  # attention follows from the angles that were recorded, or rebuilt from the other side's positions
            return self._spans[0].span.to if self._all_right and self._spans and self._spans[0].span is not None else None
        if gap.boundary.endswith("norm.out") and (follower := self._follower(gap)) in self._inside_linears and follower is not None:
            return follower.module
        return next((module.span.to for module in self._spans if module.span is not None and self._inside(gap, module)), None)

    def _follower(self, gap: BoundaryResult) -> ModuleReplay | None:
        """The module that makes the next boundary."""
        later = [name for name, order in sorted(self._orders.items(), key=lambda one: one[1]) if order > gap.order]
        return next((self._modules[name] for name in map(module_of, later) if name in self._modules), None)

    def is_settled(self, edge: Edge) -> bool:
        """Whether nothing can hide in an input whose maker is not known: recomputing explains its value, or rests on others than it."""
        if edge.how != "unknown":
            return edge.how != "altered"
        boundary = self._named.get((edge.side, edge.input))
        if boundary is not None and self._right(module_of(boundary)) is not None:
            return True
        own = names.parse_tensor(edge.input)
        return own is not None and own.entry not in self._entries[edge.side]

    def _of_weight(self, name: str) -> str | None:
        """A weight of its own module; one with another name (fused, flat) is covered where every module follows."""
        own = self._right(name.removesuffix(".weight").removesuffix(".bias"))
        if own is not None:
            return own
        known = name.removesuffix(".weight").removesuffix(".bias") in self._modules
        return "logits" if self._all_right and not known else None

    def _right(self, name: str) -> str | None:
        module = self._modules.get(name)
        return name if module is not None and module.verdict in _RIGHT else None

    def _inside(self, gap: BoundaryResult, module: ModuleReplay) -> bool:
        if module.span is None or layer_of(gap.boundary) != layer_of(module.span.to):
            return False
        starts = [self._orders[name] for name in module.span.start if name in self._orders]
        end = self._orders.get(module.span.to)
        if end is None or not starts:
            return False
        begin = min(starts) if gap.boundary.endswith(_ROTATED) else max(starts)  # q and k may be rotated before v is made
        return begin < gap.order <= end

    def spans(self) -> list[Span]:
        """The stretches that were recomputed as one and follow on both sides."""
        return [
            Span(module.span.start, module.span.to, word("replay_span", train=_by(module.train), infer=_by(module.infer)))
            for module in self._spans
            if module.span is not None
        ]


def _by(side: SideReplay) -> Worded | str:
    return side.variant if side.variant is not None else word("kernel_not_listed")


def open_points(results: BoundaryResults, coverage: Coverage, replay: ReplayResults | None, cut_short: Sequence[str]) -> list[Worded]:
    """What keeps a pair that differs by rounding only from being called consistent; [] where nothing does."""
    found = [word("open_cut", side=side) for side in cut_short]
    if replay is None:
        return [*found, word("needs_replay")]
    gaps = [row.boundary for row in [*results.boundaries, *results.weights] if row.status in GAPS and coverage.covered_by(row) is None]
    found += [word("open_gaps", names=gaps)] if gaps else []
    edges = [f"{edge.side}: {edge.input}" for edge in replay.edges if not coverage.is_settled(edge)]
    return found + ([word("open_edges", names=edges)] if edges else [])
