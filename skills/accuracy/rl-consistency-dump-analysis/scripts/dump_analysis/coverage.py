"""What was not compared and may hide a fault; and what cannot hide one, for replay explains what lies around it on both sides.

A boundary inside a recomputed span, or logits that one side alone has, hides nothing where the span follows on both sides from what was
recorded; a weight that one side did not record hides nothing where the other side's, borrowed, makes what was recorded.
"""

from collections.abc import Sequence

from .artefacts.boundary_results import GAPS, BoundaryResult, BoundaryResults
from .artefacts.common import Worded
from .artefacts.conclusion import Span
from .artefacts.replay_results import ModuleReplay, ReplayResults, SideReplay
from .boundaries import is_weight, layer_of
from .replay.places import module_of
from .wording import word

_RIGHT = ("same", "rounding")
_ROTATED = (".q_rope.out", ".k_rope.out")
_REST_OF = ".other_tokens"  # in the name of a gap: rows of a boundary that one side does not have


class Coverage:
    """Which gaps of a comparison replay covers. ``replay`` None: none of them."""

    def __init__(self, results: BoundaryResults, replay: ReplayResults | None) -> None:
        self._modules = {module.module: module for module in replay.modules} if replay is not None else {}
        self._orders = {result.boundary: result.order for result in results.boundaries}
        self._spans = [module for module in self._modules.values() if module.span is not None and module.verdict in _RIGHT]
        self._all_right = bool(self._modules) and all(module.verdict in _RIGHT for module in self._modules.values())

    def covered_by(self, gap: BoundaryResult) -> str | None:
        """What covers a gap: the end of a span, or the module that makes it; None where a fault may hide in it."""
        if is_weight(gap.boundary) or ".parameters." in gap.boundary:
            return self._of_weight(gap.boundary)
        if gap.boundary.endswith(_REST_OF):
            return self._right(module_of(gap.boundary.removesuffix(_REST_OF)))
        if gap.boundary == "positions":  # attention follows from the angles that were recorded, or rebuilt from the other side's positions
            return self._spans[0].span.to if self._all_right and self._spans and self._spans[0].span is not None else None
        return next((module.span.to for module in self._spans if module.span is not None and self._inside(gap, module)), None)

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
    return side.variant if side.variant is not None else word("variant_not_listed")


def open_points(results: BoundaryResults, coverage: Coverage, replay: ReplayResults | None, cut_short: Sequence[str]) -> list[Worded]:
    """What keeps a pair that differs by rounding only from being called consistent; [] where nothing does."""
    found = [word("open_cut", side=side) for side in cut_short]
    if replay is None:
        return [*found, word("needs_replay")]
    gaps = [row.boundary for row in [*results.boundaries, *results.weights] if row.status in GAPS and coverage.covered_by(row) is None]
    found += [word("open_gaps", names=gaps)] if gaps else []
    edges = [f"{edge.side}: {edge.input}" for edge in replay.edges if edge.how in ("unknown", "altered")]
    return found + ([word("open_edges", names=edges)] if edges else [])
