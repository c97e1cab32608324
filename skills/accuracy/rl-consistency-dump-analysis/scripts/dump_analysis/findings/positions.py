"""Positions that differ by one constant: rotary attention depends on their differences alone, so that nothing is left of it behind."""

from collections.abc import Sequence

from dump_analysis.artefacts.boundary_results import DIVERGED, BoundaryResult
from dump_analysis.artefacts.common import Worded
from dump_analysis.artefacts.replay_results import ReplayResults
from dump_analysis.boundaries import INPUTS
from dump_analysis.wording import word

_TURNED = ("q_rope.out", "k_rope.out", "attn_core.out")  # where positions may show first; learned ones show before
_OPERATORS = frozenset({"rotary", "rotary_attention", "attention"})
_RIGHT = ("same", "rounding")


def heals(result: BoundaryResult, boundaries: Sequence[BoundaryResult], replay: ReplayResults | None) -> Worded | None:
    """What is said of a constant offset of positions; None where it is none, or something else than rotary attention may have read it.

    Rotations of a side whose frequencies depend on the length do not come out the same on both sides.
    """
    hints = result.where.hints if result.where is not None else []
    offset = next((hint.values["offset"] for hint in hints if hint.kind == "one_offset"), None)
    first = next((other.boundary for other in boundaries if other.boundary not in INPUTS and other.status in DIVERGED), _TURNED[0])
    turned = [module for module in replay.modules if module.operator in _OPERATORS] if replay is not None else []
    right = bool(turned) and all(module.verdict in _RIGHT for module in turned)
    if result.boundary != "positions" or offset is None or not right or not first.endswith(_TURNED):
        return None
    return word("positions_heal", offset=offset, n=len(turned))
