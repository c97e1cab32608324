"""Constants that no dump records, found from what was computed with them: usual values, a fit, and which values would do as well."""

from collections.abc import Mapping, Sequence

import numpy as np

from dump_analysis.replay import emulate, trials
from dump_analysis.replay.formulas import Formula
from dump_analysis.replay.modules import Work
from dump_analysis.replay.trials import Trial, Tried

# What frameworks write into their configurations, the most frequent first.
USUAL: dict[str, tuple[float, ...]] = {
    "eps": (1e-6, 1e-5, 1e-8, 1e-12, 1e-7),
    "multiplier": (1.0,),
    "scale": (1.0,),
    "soft_cap": (30.0, 50.0),
    "temperature": (1.0,),
}
UNITS = {"multiplier": 1.0}  # values of a constant that are none: no interval about one is looked for
_STEPS = 8  # of Newton; each squares the error
_HALVINGS = 14  # of an interval in the logarithm: to 1e-4 of its width; more where it is too narrow for these to leave its middle
_MOST_HALVINGS = 40
_SCANS = (1e-2, 1e-3, 1e-4, 1e-5)  # relative widths about a fitted constant
_REACH = 64.0  # an interval is looked for between the value divided and multiplied by so much, then 0 and infinity


def constant_of(formula: Formula) -> str:
    """The constant of a formula that is searched for, "" where it has none."""
    return formula.config[0] if formula.config else ""


def configs(formula: Formula, stated: Mapping[str, float]) -> list[dict[str, float]]:
    """Sets of constants to try first: what is stated, else the usual values of one that is not; one empty set where none is needed."""
    known = {name: stated[name] for name in formula.config if name in stated}
    open_names = [name for name in formula.config if name not in stated]
    if not open_names:
        return [known]
    if any(name not in USUAL for name in open_names) or len(open_names) > 1:
        return []
    return [{**known, open_names[0]: value} for value in USUAL[open_names[0]]]


def fitted(work: Work, closest: Trial, name: str, grid: str) -> float | None:
    """The constant with which a trial's function comes nearest to the record, by Newton's method on its logarithm; None where it fails.

    Elements weigh by their own size, so that each tells as much as its rounding lets it.
    """
    value = closest.config[name]
    for _ in range(_STEPS):
        up, down = value * 1.001, value / 1.001
        along = against = 0.0
        for block in trials.blocks(work, closest.formula, {}, grid):
            base, high, low = (
                closest.formula.truth(block.given._replace(config={**closest.config, name: at}), closest.variant)[0]
                for at in (value, up, down)
            )
            slope = (high - low) / (2 * np.log(1.001))
            weight = np.divide(1.0, base * base, out=np.zeros_like(base), where=base != 0)
            along += float((slope * (block.recorded - base) * weight).sum())
            against += float((slope * slope * weight).sum())
        if not np.isfinite(along + against) or against <= 0:
            return None
        step = float(np.clip(along / against, -3.0, 3.0))
        value *= float(np.exp(step))
        if not 1e-30 < value < 1e30:
            return None
        if abs(step) < 1e-7:
            break
    return value


def near(work: Work, closest: Trial, name: str, value: float, grid: str) -> list[float]:
    """Constants near a fitted one, which rounding has biased: as people and programs write them, and the best of a narrowing scan."""
    found = [value, *(float(f"{value:.{digits}g}") for digits in range(1, 6)), float(np.sqrt(round(value * value)))]
    found += [float(emulate.to_format(np.array([at]), "bfloat16")[0]) for at in (value, found[-1])]
    best = value
    for reach in _SCANS:
        points = best * (1 + reach * np.linspace(-1, 1, 21))
        best = float(min(points, key=lambda at: _outside(work, closest._replace(config={**closest.config, name: float(at)}), grid)))
    return list(dict.fromkeys(at for at in [*found, best] if at))


def _outside(work: Work, trial: Trial, grid: str) -> int:
    """Elements of the first block that a trial leaves."""
    return trials.counted(trial, next(trials.blocks(work, trial.formula, trial.config, grid))).outside


def rounded_to_usual(value: float, low: float, high: float) -> float:
    """The shortest decimal number inside an interval that holds ``value``."""
    for digits in range(1, 12):
        short = float(f"{value:.{digits}g}")
        if low <= short <= high:
            return short
    return value


def interval(work: Work, found: Trial, name: str, grid: str) -> tuple[float, float]:
    """The values of a constant around one that explains the record, all of which explain it."""
    value = found.config[name]
    return _edge(work, found, name, grid, value / _REACH), _edge(work, found, name, grid, value * _REACH)


def _edge(work: Work, found: Trial, name: str, grid: str, far: float) -> float:
    inside, outside = found.config[name], far
    if _explains(work, found, name, grid, far):
        return far
    left = _HALVINGS
    for _ in range(_MOST_HALVINGS):
        middle = float(np.sqrt(inside * outside))
        if _explains(work, found, name, grid, middle):
            inside = middle
        else:
            outside = middle
        left -= 1
        if left <= 0 and inside != found.config[name]:
            break
    return inside


def _explains(work: Work, found: Trial, name: str, grid: str, value: float) -> bool:
    counted = trials.tried(work, [found._replace(config={**found.config, name: value})], grid)
    return bool(counted) and counted[0].explains


def best(found: Sequence[Tried]) -> Tried | None:
    """The trial that explains the record and reproduces most of it; where none does, the one that leaves the smallest share outside.

    A mistake that does not explain the record is no name for it.
    """
    if not found:
        return None
    holding = [one for one in found if one.explains and not one.trial.fault]
    if holding:
        return max(holding, key=lambda one: one.equal / one.of)
    return min(found, key=lambda one: (not one.explains, one.trial.fault, one.outside / one.of, -one.equal))
