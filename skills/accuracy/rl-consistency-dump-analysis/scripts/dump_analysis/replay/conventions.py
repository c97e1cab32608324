"""What two right modules may arrange otherwise between themselves and what is stored or called around them.

A norm's gain is stored as it is or less one; a linear's bias is added inside or handed on to whoever called it.
"""

import numpy as np

from dump_analysis.artefacts.common import Worded
from dump_analysis.floats import Array
from dump_analysis.replay.emulate import to_format
from dump_analysis.replay.one_side import Replayed
from dump_analysis.replay.own_weights import HANDED_BIAS
from dump_analysis.wording import word

LESS_ONE = "1+w"  # the function of a variant that adds one to the gains that it is given
_GAINS = ("norm_weight", "weight")  # of a norm inside a linear, of a norm
_SIDES = ("train", "infer")
_ROUNDED_SUM = "add_rounded+"  # in a variant's name: the sum of two inputs is rounded first, as an addition of its own leaves it


def gains_agree(train: Replayed, infer: Replayed) -> Worded | None:
    """That one side stores its gains less one and adds it, where the gains that both sides apply are the same: else None.

    The same: what is stored as it is holds the other side's sum, rounded as it is stored.
    """
    found = _gains(train, infer)
    if found is None or _adds_one(train) == _adds_one(infer) or not (train.explained and infer.explained):
        return None
    less, plain = ("train", "infer") if _adds_one(train) else ("infer", "train")
    at = _SIDES.index(less)
    stored = (train if plain == "train" else infer).work.weights[_gain_name(train)].dtype
    whole = to_format(found[at] + 1.0, stored)
    return word("replay_gain_less_one", side=less, other=plain) if np.array_equal(whole, found[1 - at]) else None


def gains_apart(train: Replayed, infer: Replayed) -> tuple[Worded, ...]:
    """The side that adds one to gains that hold it, or does not where they do not, as the gains' middle tells."""
    found = _gains(train, infer)
    if found is None:
        return ()
    if _adds_one(train) != _adds_one(infer) and np.array_equal(*found):
        holds_one = abs(float(np.median(found[0])) - 1.0) < abs(float(np.median(found[0])))
        side = next(label for label, one in zip(_SIDES, (train, infer), strict=True) if _adds_one(one) == holds_one)
        return (word("replay_gain_twice" if holds_one else "replay_gain_never", side=side),)
    if _adds_one(train) and _adds_one(infer) and abs(float(np.median(found[1] - found[0]))) > 0.5:
        return (word("replay_gain_twice", side="infer" if np.median(found[1]) > np.median(found[0]) else "train"),)
    if not _adds_one(train) and not _adds_one(infer) and abs(float(np.median(found[1] - found[0]))) > 0.5:
        return (word("replay_gain_never", side="train" if np.median(found[1]) > np.median(found[0]) else "infer"),)
    return ()


def bias_is_left(train: Replayed, infer: Replayed) -> Worded | None:
    """That one side alone hands its bias on, so that the two outputs mean different things: else None."""
    handing = [label for label, one in zip(_SIDES, (train, infer), strict=True) if HANDED_BIAS in one.work.weights]
    return word("replay_bias_left", side=handing[0]) if len(handing) == 1 else None


def function_of(one: Replayed) -> tuple[str, str]:
    """What a side computes, wherever it rounds: operator and function."""
    return one.best.trial.formula.operator, one.best.trial.variant.function


def without_offset(name: str) -> str:
    """A variant's name without whether its gains are stored less one."""
    return name.replace(f"{LESS_ONE}+", "")


def without_rounded_sum(variant: str) -> str:
    """A variant's name as that of one input, which somebody else may have summed and rounded."""
    return variant.replace(_ROUNDED_SUM, "")


def chosen(train: Replayed, infer: Replayed) -> tuple[str, str]:
    """The variants of both sides as they are told apart: one that explains both where there is one, with the format where that differs."""
    one, two = (without_rounded_sum(side.best.trial.variant.name) for side in (train, infer))
    held = [{without_rounded_sum(name) for name in side.holding} for side in (train, infer)]
    if one != two and one in held[1]:
        two = one
    elif one != two and two in held[0]:
        one = two
    if train.grid != infer.grid:
        return f"{one} {train.grid}", f"{two} {infer.grid}"
    return one, two


def _adds_one(one: Replayed) -> bool:
    return LESS_ONE in one.best.trial.variant.function.split()


def _gain_name(one: Replayed) -> str:
    return next((name for name in _GAINS if name in one.work.weights), "")


def _gains(train: Replayed, infer: Replayed) -> tuple[Array, Array] | None:
    """The stored gains of both sides, where both compute one kind of norm with gains of one shape."""
    (one, first), (two, second) = function_of(train), function_of(infer)
    if one != two or "norm" not in one or {*first.split()} - {LESS_ONE} != {*second.split()} - {LESS_ONE}:
        return None
    name = _gain_name(train)
    if name == "" or name != _gain_name(infer):
        return None
    made = [side.work.weights[name] for side in (train, infer)]
    if (made[0].rows, made[0].columns) != (made[1].rows, made[1].columns):
        return None
    return made[0].read(0, made[0].rows), made[1].read(0, made[1].rows)
