"""What the statistics of two sides say, in words: no percentages, distances in steps of the recorded format."""

from collections.abc import Sequence

from .artefacts.common import Worded
from .statistics import Agreement, Facts
from .wording import word

_FIELDS = {"max": "largest", "min": "smallest", "mean": "mean", "norm": "norm"}
_ORDER = ("norm", "mean", "max", "min")


def told(train: Facts, infer: Facts, found: Agreement, sums: Sequence[str]) -> Worded:
    """What two records say that both hold statistics. ``sums``: sides that record the addends of a sum apart."""
    if train.elements != infer.elements:
        return word("stats_untold", why=word("stats_other_rows", train=train.elements, infer=infer.elements))
    if not found.apart:
        return _without_steps(train, infer, found)
    worst = max(found.apart, key=lambda name: found.apart[name])
    if found.agree == "no":
        averages = max((name for name in ("norm", "mean") if name in found.apart), key=lambda name: found.apart[name], default=worst)
        return word("stats_disagree", what=_step(train, infer, found, averages if found.apart[averages] > 1 else worst))
    if sums:
        return word("stats_untold", why=word("stats_of_sum", side=sums[0]))
    if found.agree == "cannot_tell":
        return word("stats_extremes", what=_step(train, infer, found, worst))
    return word("stats_agree", what=_step(train, infer, found, next(name for name in _ORDER if name in found.apart)))


def _without_steps(train: Facts, infer: Facts, found: Agreement) -> Worded:
    """Integers, and what is not finite."""
    extremes = [[facts.smallest, facts.largest] for facts in (train, infer)]
    shown = [["none" if number is None else f"{number:.8g}" for number in pair] for pair in extremes]
    if found.agree == "yes":
        return word("stats_agree", what=word("stats_of_integers", train=shown[0], infer=shown[1]))
    if found.agree == "no":
        integers = train.norm is None and infer.norm is None
        return word("stats_disagree", what=word("stats_of_integers" if integers else "stats_not_finite", train=shown[0], infer=shown[1]))
    return word("stats_untold", why=word("stats_not_finite_both"))


def _step(train: Facts, infer: Facts, found: Agreement, name: str) -> Worded:
    values = [getattr(facts, _FIELDS[name]) for facts in (train, infer)]
    steps = found.apart[name]
    step = abs(values[0] - values[1]) / steps if steps else None
    shown = f"{found.resolution:.4g}" if step is None and found.resolution is not None else f"{step:.4g}" if step is not None else "?"
    return word("stats_step", name=name, train=f"{values[0]:.6g}", infer=f"{values[1]:.6g}", steps=f"{steps:.2g}", step=shown)
