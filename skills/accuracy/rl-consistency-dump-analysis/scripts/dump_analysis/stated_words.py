"""What the statistics of two sides say, in words: no percentages, distances in steps of the recorded format."""

import math
from collections.abc import Sequence

from . import floats
from .artefacts.common import Worded
from .statistics import Agreement, Facts
from .wording import word

_FIELDS = {"max": "largest", "min": "smallest", "mean": "mean", "norm": "norm"}
_AVERAGES = ("norm", "mean")
_ORDER = ("norm", "mean", "max", "min")


def told(train: Facts, infer: Facts, found: Agreement, sums: Sequence[str]) -> Worded:
    """What two records say that both hold statistics. ``sums``: sides that record the addends of a sum apart."""
    if not train.elements or not infer.elements:
        return word(
            "stats_untold", why=word("stats_no_shape", sides=[s for s, one in (("train", train), ("infer", infer)) if not one.elements])
        )
    if train.elements != infer.elements:
        return word("stats_untold", why=word("stats_other_rows", train=train.elements, infer=infer.elements))
    if not found.apart:
        return _without_steps(train, infer, found)
    worst = max(found.apart, key=lambda name: found.apart[name])
    if found.agree == "no":
        average = max((name for name in _AVERAGES if name in found.apart), key=lambda name: found.apart[name], default=worst)
        return word("stats_disagree", what=_step(train, infer, found, average if found.apart[average] > 1 else worst))
    if sums:
        return word("stats_untold", why=word("stats_of_sum", side=sums[0]))
    if found.agree == "cannot_tell":
        averages, apart = [name for name in _AVERAGES if name in found.apart], _step(train, infer, found, worst)
        return word("stats_extremes", names=averages, what=apart) if averages else word("stats_extremes_alone", what=apart)
    return word("stats_agree", what=_step(train, infer, found, next(name for name in _ORDER if name in found.apart)))


def _without_steps(train: Facts, infer: Facts, found: Agreement) -> Worded:
    """Integers, what is not finite, and where nothing is recorded of both sides that can be compared."""
    extremes = [[facts.smallest, facts.largest] for facts in (train, infer)]
    shown = [["none" if number is None else f"{number:.8g}" for number in pair] for pair in extremes]
    if found.agree == "yes":
        return word("stats_agree", what=word("stats_of_integers", train=shown[0], infer=shown[1]))
    if found.agree == "no":
        integers = floats.is_integer(train.dtype) and floats.is_integer(infer.dtype)
        return word("stats_disagree", what=word("stats_of_integers" if integers else "stats_not_finite", train=shown[0], infer=shown[1]))
    broken = all(any(number is not None and not math.isfinite(number) for number in facts.numbers) for facts in (train, infer))
    return word("stats_untold", why=word("stats_not_finite_both" if broken else "stats_none_common"))


def _step(train: Facts, infer: Facts, found: Agreement, name: str) -> Worded:
    values = [f"{getattr(facts, _FIELDS[name]):.6g}" for facts in (train, infer)]
    steps, step = f"{found.apart[name]:.2g}", f"{found.steps[name]:.4g}"
    return word("stats_step", name=name, train=values[0], infer=values[1], steps=steps, step=step)
