"""The bound of an operator's errors as the modules of one side need it, where no variant models its kernel.

A program whose kernel nobody has written down errs by more than `bounds` allows for float32, in all modules of an operator alike. How
many times the bound a module needs is the largest |recorded - truth| beyond its roundings, over the bound; what the *other* modules of
its kind need (the median: one of them may hold a fault) is the constant that it is judged by. A module that needs much more than all
others stands out beside its kernel. A module that needs no more follows if what it leaves looks like rounding: no gain, no
line of tokens or columns of its own, no drift to one side. A gain that all modules have may be an accumulator that cuts or a factor:
the bound swallows neither.
"""

import statistics
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from dump_analysis.boundaries import layer_of, place_of
from dump_analysis.replay import leftover, trials
from dump_analysis.replay.attention_noise import judged
from dump_analysis.replay.attention_search import usual_attention
from dump_analysis.replay.formulas import FORMULAS
from dump_analysis.replay.leftover import Left
from dump_analysis.replay.modules import makes_logits
from dump_analysis.replay.noise import GROSS, MOST_OF_A_KERNEL, Noise
from dump_analysis.replay.one_side import Constant, Kernel, Replayed, Unreplayed
from dump_analysis.replay.stated_attention import with_window
from dump_analysis.replay.trials import Trial, Tried
from dump_analysis.tensors import Files

_FEWEST = 3  # modules of a kind: two others to hold a module against
_GAIN_ERRORS = 6.0  # standard errors of a gain that is taken for one

_Side = Replayed | Unreplayed
_Family = tuple[str, str, int]  # operator, function, columns of the input: the bound grows by the root of their number, errors may by more


class Recorded(NamedTuple):
    """One side of the module that makes the value of a boundary."""

    boundary: str
    side: _Side
    files: Files

    @property
    def place(self) -> str:
        """What all layers have one of; "" where a module stands in no layer."""
        return place_of(self.boundary) if layer_of(self.boundary) is not None else ""


class _Member(NamedTuple):
    """A module of a family: its number, what is known of it, and by what it is measured."""

    at: int
    place: str
    one: Replayed
    files: Files
    trial: Trial


def calibrated(sides: Sequence[Recorded], stated: Mapping[str, float]) -> list[_Side]:
    """The modules of one side, those that no variant explains judged by what the others of their kind need.

    ``stated``: constants of that side: where a formula has one, a module follows only by those.
    """
    found = [one.side for one in sides]
    families = _families(sides, stated)
    for (operator, *_), members in families.items():
        alike = [member for (other, *_), others in families.items() if other == operator for member in others]
        for at, one in _judged(members, stated, known=_is_known(alike)):
            found[at] = one
    for at, one in _noisier(sides, stated):
        found[at] = one
    return found


def scale_of(sides: Sequence[_Side]) -> float | None:
    """By how much the bound was widened at most where modules of an operator were judged by it; None where none was."""
    known = [one.kernel.usual for one in sides if isinstance(one, Replayed) and one.kernel is not None and one.work.heads is None]
    return max(known, default=None)


def _families(sides: Sequence[Recorded], stated: Mapping[str, float]) -> dict[_Family, list[_Member]]:
    found: dict[_Family, list[_Member]] = {}
    for at, recorded in enumerate(sides):
        one = recorded.side
        if isinstance(one, Unreplayed) or one.work.heads is not None or one.work.guessed or (one.best.explains and one.best.trial.fault):
            continue
        trial = _measured_by(one, stated)
        if trial is not None:
            family = (trial.formula.operator, trial.variant.function, one.work.inputs[0].columns)
            found.setdefault(family, []).append(_Member(at, recorded.place, one, recorded.files, trial))
    return found


def _measured_by(one: Replayed, stated: Mapping[str, float]) -> Trial | None:
    """The usual variant of what comes nearest, with the constants that are stated; None where it does not run.

    A head is one of the linears, whatever is done to its logits.
    """
    nearest = one.best.trial
    formula = FORMULAS["linear"] if makes_logits(one.work) else nearest.formula
    config = {name: stated.get(name, nearest.config.get(name, 0.0)) for name in formula.config}
    function = nearest.variant.function if formula is nearest.formula else ""
    variants = [variant for variant in leftover.runs_on(one.work, formula, config) if variant.function == function]
    return Trial(formula, variants[0], config) if variants else None


# --- attention, whose kernels are held against the noise of rounding ---


def _noisier(sides: Sequence[Recorded], stated: Mapping[str, float]) -> list[tuple[int, Replayed]]:
    """Attention of which no variant explains a layer, and rounding none either: how noisy each is with the constants that are usual,
    beside the others."""
    found = []
    for place in dict.fromkeys(one.place for one in sides if one.place):
        alike = [(at, one.side, one) for at, one in enumerate(sides) if one.place == place and isinstance(one.side, Replayed)]
        if len(alike) < _FEWEST or any(side.noise is None or side.follows for _, side, _ in alike):
            continue
        noises = {at: _noise(side, recorded, stated) for at, side, recorded in alike}
        for at, side, _ in alike:
            others = [noise for other, noise in noises.items() if other != at]
            usual, most = statistics.median_low(noise.rms for noise in others), max(noise.rms for noise in others)
            stands_out = most < MOST_OF_A_KERNEL and _is_noisier(noises[at], others)
            kernel = Kernel(noises[at].rms, usual, 1.0, max(most, noises[at].rms) < MOST_OF_A_KERNEL, stands_out)
            found.append((at, side._replace(kernel=kernel)))
    return found


def _noise(one: Replayed, recorded: Recorded, stated: Mapping[str, float]) -> Noise:
    trial, layer = one.best.trial, recorded.boundary.split(".")[1]
    try:
        usual = usual_attention(one.work, with_window(stated, layer))
        return judged(one.work, trial.formula, usual, one.grid, trial.variant.function).noise
    finally:
        recorded.files.close()


def _is_noisier(own: Noise, others: Sequence[Noise]) -> bool:
    figures = [(one.rms, one.token, one.column, one.largest) for one in (own, *others)]
    return any(first > GROSS * max(rest) for first, *rest in zip(*figures, strict=True))


# --- one family ---


def _is_known(members: Sequence[_Member]) -> bool:
    """Whether variants explain at least half of the modules."""
    return 2 * sum(member.one.best.explains for member in members) >= len(members)


def _judged(members: Sequence[_Member], stated: Mapping[str, float], *, known: bool) -> list[tuple[int, Replayed]]:
    """``known``: whether the kernel of most modules of the operator is: a family of it that fails as one follows from nothing then."""
    failing = [member for member in members if not member.one.best.explains]
    left = {member.at: _left(member) for member in failing if len(_others(member, members)) >= _FEWEST - 1}
    narrow = _is_known(members)  # then a bound that is too narrow for some modules is all that may be behind it
    failing = [one for one in failing if one.at in left and not (narrow and _is_no_kernel(one.one, left[one.at]))]
    found = []
    for member in failing:
        others = _others(member, members)
        left |= {other.at: _left(other) for other in others if other.at not in left}
        one, follows = _with_kernel(member, left[member.at], [left[other.at] for other in others], stated)
        may_follow = follows and (narrow or not known)
        found.append((member.at, _followed(member, one, one.kernel.usual) if may_follow and one.kernel is not None else one))
        member.files.close()
    if narrow or 2 * sum(one.follows for _, one in found) > len(found):
        return found
    # One kernel, one answer: a module of too few elements to tell follows no more than the others.
    return [(member.at, member.one._replace(kernel=one.kernel)) for member, (_, one) in zip(failing, found, strict=True)]


def _is_no_kernel(one: Replayed, left: Left) -> bool:
    """Whether what is left is far beyond the bound, or all in one line."""
    return left.scale > GROSS or _in_a_line(one)


def _in_a_line(one: Replayed) -> bool:
    """Whether all that nothing explains is in one token or in one column."""
    return one.where is not None and 1 in (len(one.where.tokens), len(one.where.columns))


def _others(member: _Member, members: Sequence[_Member]) -> list[_Member]:
    """Those of its place in other layers; of a module that stands in no layer all others."""
    return [other for other in members if other is not member and member.place in ("", other.place)]


def _left(member: _Member) -> Left:
    try:
        return leftover.of(member.one.work, member.trial, member.one.grid)
    finally:
        member.files.close()


def _with_kernel(member: _Member, own: Left, others: Sequence[Left], stated: Mapping[str, float]) -> tuple[Replayed, bool]:
    """With what the others of its kind need; and whether it may follow by that: its constants are known, and it errs as kernels do."""
    usual = statistics.median_low(other.scale for other in others)  # of two the smaller: the other may hold a fault
    if not 0 < usual < float("inf"):
        return member.one, False
    stands_out = bool(member.place) and _stands_out(own, others)
    if own.scale > GROSS * usual and not stands_out:
        return member.one, False
    stated_all = all(name in stated for name in member.trial.formula.config)
    kernel = Kernel(own.scale, usual, own.gain, own.errs_as_kernels, stands_out)
    return member.one._replace(kernel=kernel), stated_all and own.errs_as_kernels and not stands_out


def _followed(member: _Member, one: Replayed, usual: float) -> Replayed:
    """By the bound, if what is left looks like rounding."""
    noise = leftover.noises(member.one.work, member.trial, member.one.grid, usual).rounding
    if noise is None:
        return one
    constants = {name: Constant(value, None, True) for name, value in member.trial.config.items()}
    return one._replace(best=_by_its_function(member), constants=constants, noise=noise)


def _stands_out(own: Left, others: Sequence[Left]) -> bool:
    """Whether a module errs as none of the others does, which err as kernels do."""
    if not all(other.errs_as_kernels for other in others):
        return False
    if abs(own.gain - 1) > max(_GAIN_ERRORS * own.stderr, GROSS * max(abs(other.gain - 1) for other in others)):
        return True
    figures = [(one.scale, one.relative, one.line) for one in (own, *others)]
    return any(first > GROSS * max(rest) for first, *rest in zip(*figures, strict=True))


def _by_its_function(member: _Member) -> Tried:
    """With the function that it is measured by, where another came nearer by accident."""
    if member.one.best.trial.formula is member.trial.formula:
        return member.one.best
    return trials.tried(member.one.work, [member.trial], member.one.grid)[0]
