"""What kind of difference a module makes from equal inputs: by replay, by its weights, against the noise floor, or by how it looks.

From equal inputs what differs is made in the module: rounding then is at most a few steps of the format at the scale of a row, to both
sides, in no one place. What looks otherwise is logic by its fingerprint, and said to be so; replay and bytes go before looks.
"""

from collections.abc import Mapping
from typing import NamedTuple

from dump_analysis.artefacts.boundary_results import DIVERGED, BoundaryResult, BoundaryResults
from dump_analysis.artefacts.common import Worded
from dump_analysis.artefacts.conclusion import Character
from dump_analysis.artefacts.noise_floor import FloorPoint
from dump_analysis.artefacts.replay_results import ModuleReplay
from dump_analysis.artefacts.round_result import Basis
from dump_analysis.boundaries import made_by
from dump_analysis.causes.looks import signs_of
from dump_analysis.replay.places import module_of
from dump_analysis.wording import word

# Signs that no rounding of activations leaves (measured on single causes: `causes.looks`).
_LOGIC = (
    "way.one_sided", "way.leaning", "ulp.beyond_8", "rel.large", "pattern.tokens", "pattern.columns", "pattern.heads", "scale.one",
    "by_token.scale", "by_column.scale", "by_token.offset", "by_column.offset", "offset.one", "zero.train", "zero.infer", "zero.tokens",
    "moved.lag", "moved.some", "shape.longer", "shape.wider", "shape.other", "values.other_of_same_size",
)  # fmt: skip
# What every rounding of the toys leaves, on either side, of which faults leave some: bytes of weights, or replay, tell those.
_SMALL = ("ulp.within_2", "rel.rounding")
_SUMS = ("resid_attn", "resid_mlp")
_ONE_ROUNDING = 1.0  # ULP at the scale of a row: more than equal addends may part by, in any order and through any format


class Judged(NamedTuple):
    """``basis`` None: nothing tells the character; ``character`` None: the difference is not the module's own, or there is none."""

    character: Character | None
    basis: Basis | None
    evidence: list[Worded]


class Evidence(NamedTuple):
    """What a round is judged by, beside its own dump. ``floor``: boundary -> its noise."""

    modules: Mapping[str, ModuleReplay]
    results: BoundaryResults
    floor: Mapping[str, FloorPoint]

    def verdict(self, boundary: str) -> str | None:
        """What replay says of the module that makes a boundary."""
        module = self.modules.get(module_of(boundary))
        return module.verdict if module is not None else None


def character(result: BoundaryResult, known: Evidence) -> Judged:
    """The character of a difference that a module makes from equal inputs."""
    verdict = known.verdict(result.boundary)
    if verdict in ("rounding", "logic"):
        return Judged(
            "rounding" if verdict == "rounding" else "logic",
            "replay",
            [word("by_replay", module=module_of(result.boundary), verdict=verdict)],
        )
    weights = [row.boundary for row in known.results.weights if made_by(row.boundary) == result.boundary and row.status in DIVERGED]
    if weights:
        return Judged("logic", "weights", [word("by_weights", weights=weights)])
    floor = known.floor.get(result.boundary)
    if floor is not None and _within(result, floor):
        return Judged("rounding", "noise_floor", [word("by_floor", boundary=result.boundary, rel=result.rel_l2 or 0.0, floor=floor.rel_l2)])
    above = [_above(result, floor)] if floor is not None else []
    return by_looks(result, above)


def _within(result: BoundaryResult, floor: FloorPoint) -> bool:
    """No larger than what runs that must agree leave there, in size and at its worst element."""
    return (result.rel_l2 or 0.0) <= floor.rel_l2 and (result.max_abs_diff or 0.0) <= floor.max_abs


def _above(result: BoundaryResult, floor: FloorPoint) -> Worded:
    if not floor.rel_l2:
        return word("above_silence", boundary=result.boundary)
    return word("above_floor", boundary=result.boundary, times=(result.rel_l2 or 0.0) / floor.rel_l2)


def by_looks(result: BoundaryResult, more: list[Worded]) -> Judged:
    """The character by the fingerprint alone."""
    signs = signs_of(result)
    against = [signs[name] for name in _LOGIC if name in signs]
    if result.status in ("NONFINITE", "SHAPE_DIFF") or against:
        return Judged("logic", "fingerprint", [*more, word("looks_logic", signs=against)])
    far = result.ulp.max_at_row_scale if result.ulp is not None else None
    if result.boundary.endswith(_SUMS) and far is not None and far > _ONE_ROUNDING:
        return Judged("logic", "fingerprint", [*more, word("looks_no_sum", ulps=far)])
    if all(name in signs for name in _SMALL):
        return Judged("rounding", "fingerprint", [*more, word("looks_rounding", signs=[signs[name] for name in _SMALL])])
    return Judged("unknown", None, more)
