"""Which causes of the table fit a measured boundary, each with what speaks for it, what against it, and what would decide.

Fitting is no proof: several causes leave one fingerprint, and a cause that nobody has written down leaves any.
"""

from collections.abc import Sequence
from typing import NamedTuple

from dump_analysis.artefacts.boundary_results import DIVERGED, BoundaryResult
from dump_analysis.artefacts.common import Worded
from dump_analysis.artefacts.replay_results import ModuleReplay
from dump_analysis.causes.around import place_in_table, signs_around
from dump_analysis.causes.looks import Signs, signs_of
from dump_analysis.causes.table import PLACES, TABLE, Cause, Family, alternatives
from dump_analysis.wording import word

_CONFIRM: dict[Family, str] = {
    "A": "confirm_artefact", "W": "confirm_weights", "C": "confirm_config",
    "K": "confirm_code", "R": "confirm_rounding", "L": "confirm_logprobs",
}  # fmt: skip
_REFUTE: dict[Family, str] = {
    "A": "refute_artefact", "W": "refute_weights", "C": "refute_config",
    "K": "refute_code", "R": "refute_rounding", "L": "refute_logprobs",
}  # fmt: skip


class Ranked(NamedTuple):
    """A cause that fits a boundary. ``experiment``: what would confirm it; ``refuted_by``: what would exclude it."""

    cause: Cause
    speaks_for: tuple[Worded, ...]
    speaks_against: tuple[Worded, ...]
    experiment: Worded
    refuted_by: Worded

    @property
    def worded(self) -> Worded:
        return word(self.cause.kind)


def ranked(
    result: BoundaryResult, boundaries: Sequence[BoundaryResult], weights: Sequence[BoundaryResult], replay: ModuleReplay | None = None
) -> list[Ranked]:
    """The causes that fit, the best first. ``boundaries``, ``weights``: all results; ``replay``: of the module that makes the boundary.

    Where replay has decided between rounding and logic, causes of the other kind no longer fit; nor do weights that are equal.
    """
    if result.status not in DIVERGED:
        return []
    signs = signs_of(result) | signs_around(result, boundaries, weights)
    place = place_in_table(result.boundary)
    found = [_fitting(cause, signs) for cause in TABLE if _stands_at(cause, place) and _is_open(cause, signs, replay)]
    return sorted((one for one in found if one is not None), key=_order)


def _order(one: Ranked) -> tuple[int, int]:
    """Fewest measures against it, then most for it; the order of the table decides ties."""
    return len(one.speaks_against), -len(one.speaks_for)


def _stands_at(cause: Cause, place: str) -> bool:
    return not cause.places or any(place in PLACES[name] for name in cause.places.split())


def _is_open(cause: Cause, signs: Signs, replay: ModuleReplay | None) -> bool:
    if cause.family == "W" and "weights.equal" in signs:
        return False
    if replay is None or replay.verdict == "unknown":
        return True
    return cause.family in ("R", "A") if replay.verdict != "logic" else cause.family != "R"


def _fitting(cause: Cause, signs: Signs) -> Ranked | None:
    """None where something that the cause needs was not measured."""
    speaks_for, speaks_against = [], []
    for choice in alternatives(cause.needs):
        held = next((sign for sign in choice if sign in signs), None)
        if held is None:
            return None
        if not held.endswith(".unknown"):
            speaks_for.append(_told(held, signs))
    for choice in alternatives(cause.usual):
        held = next((sign for sign in choice if sign in signs), None)
        if held is not None:
            speaks_for.append(_told(held, signs))
        elif (other := _measured_instead(choice, signs)) is not None:
            speaks_against.append(word("speaks_against", expected=word(f"trait.{choice[0]}"), measured=_told(other, signs)))
    once = {told.text: told for told in speaks_for}
    return Ranked(cause, tuple(once.values()), tuple(speaks_against), word(_CONFIRM[cause.family]), word(_REFUTE[cause.family]))


def _measured_instead(choice: Sequence[str], signs: Signs) -> str | None:
    """Another value of the same dimension; of what was not compared, none."""
    dimensions = {sign.partition(".")[0] for sign in choice}
    return next((sign for sign in signs if sign.partition(".")[0] in dimensions and not sign.endswith(".unknown")), None)


def _told(sign: str, signs: Signs) -> Worded:
    return word("speaks_for", trait=word(f"trait.{sign}"), figure=signs[sign])
