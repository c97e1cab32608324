"""Constants that no dump records, found from what was computed with them: usual values, a fit, and which values would do as well."""

from collections.abc import Mapping, Sequence

import numpy as np

from dump_analysis.replay import emulate, trials
from dump_analysis.replay.blocks import Block, blocks, sample
from dump_analysis.replay.formulas import Formula
from dump_analysis.replay.modules import Work
from dump_analysis.replay.trials import Trial, Tried

# What frameworks write into their configurations, the most frequent first.
USUAL: dict[str, tuple[float, ...]] = {
    "eps": (1e-6, 1e-5, 1e-8, 1e-12, 1e-7),
    "multiplier": (1.0,),
    "scale": (1.0,),
    "soft_cap": (30.0, 50.0),
    "logits_scale": (1.0,),
    "temperature": (1.0,),
}
UNITS = {"multiplier": 1.0, "rope_magnitude": 1.0}  # values of a constant that are none: no interval about one is looked for
_STEPS = 8  # of Newton; each squares the error
# What is left between the two sides of the end of an interval, in the logarithm; where it is so narrow that its middle was not left, less.
_FINE, _FINEST = 2.5e-4, 4e-12
_ROUNDS, _MOST_TOKENS = 8, 512  # for the end of an interval: walks through the whole, tokens that are looked at again
_SCANS = (1e-2, 1e-3, 1e-4, 1e-5)  # relative widths about a fitted constant
_REACH = 2.0**20  # an interval is looked for between the value divided and multiplied by so much


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


def telling(work: Work, closest: Tried, grid: str) -> Block:
    """A sample of the tokens of which a trial that went through the whole module leaves elements."""
    touched = closest.touched
    return sample(work, closest.trial.formula, grid, np.flatnonzero(touched.tokens) if touched is not None else None)


def fitted(part: Block, closest: Trial, name: str) -> float | None:
    """The constant with which a trial's function comes nearest to a record, by Newton's method on its logarithm; None where it fails.

    Elements weigh by their own size, so that each tells as much as its rounding lets it.
    """
    value = closest.config[name]
    given, recorded = part.wide(closest.config)
    for _ in range(_STEPS):
        base, high, low = (
            closest.formula.truth(given._replace(config={**closest.config, name: at}), closest.variant)[0]
            for at in (value, value * 1.001, value / 1.001)
        )
        slope = (high - low) / (2 * np.log(1.001))
        weight = np.divide(1.0, base * base, out=np.zeros_like(base), where=base != 0)
        along = float((slope * (recorded - base) * weight).sum())
        against = float((slope * slope * weight).sum())
        if not np.isfinite(along + against) or against <= 0:
            return None
        step = float(np.clip(along / against, -3.0, 3.0))
        value *= float(np.exp(step))
        if not 1e-30 < value < 1e30:
            return None
        if abs(step) < 1e-7:
            break
    return value


def near(part: Block, closest: Trial, name: str, value: float) -> list[float]:
    """Constants near a fitted one, which rounding has biased: as people and programs write them, and the best of a narrowing scan."""
    found = [value, *(float(f"{value:.{digits}g}") for digits in range(1, 6)), float(np.sqrt(np.round(value * value)))]
    found += [float(emulate.to_format(np.array([at]), "bfloat16")[0]) for at in (value, found[-1])]
    best = value
    for reach in _SCANS:
        points = best * (1 + reach * np.linspace(-1, 1, 21))
        best = float(min(points, key=lambda at: trials.counted(_with(closest, name, float(at)), part).outside))
    return list(dict.fromkeys(at for at in [*found, best] if at))


def _with(trial: Trial, name: str, value: float) -> Trial:
    return trial._replace(config={**trial.config, name: value})


def interval(work: Work, found: Trial, name: str, grid: str) -> tuple[float, float]:
    """The values of a constant around one that explains the record, all of which explain it."""
    value, part = found.config[name], sample(work, found.formula, grid)
    return _edge(work, found, name, grid, part, value / _REACH), _edge(work, found, name, grid, part, value * _REACH)


def _edge(work: Work, found: Trial, name: str, grid: str, part: Block, far: float) -> float:
    """The last value on the way to a far one that explains the record.

    What a sample allows is tried on the whole; nearer values leave no elements but some of those that it leaves there, and so only the
    tokens that hold them are looked at again.
    """
    most = trials.allowed(work.output.rows * work.output.columns)
    edge = _last_inside([part], found, name, far, most)
    for _ in range(_ROUNDS):
        left, ended = _left_by(work, _with(found, name, edge), grid, most)
        edge = _last_inside(left, found, name, edge, most)
        if ended:
            break
    return edge


def _left_by(work: Work, trial: Trial, grid: str, most: float) -> tuple[list[Block], bool]:
    """The tokens of which a trial leaves elements, and whether that is all of them: enough to rule it out will do."""
    left: list[Block] = []
    count = tokens = 0
    for block in blocks(work, trial.formula, trial.config, grid):
        outside = trials.compared(trial, block)[1]
        if outside.any():
            left.append(block.of_tokens(np.flatnonzero(outside.any(axis=1))))
            count, tokens = count + int(outside.sum()), tokens + len(left[-1].recorded)
        if count > most and tokens > _MOST_TOKENS:
            return left, False
    return left, True


def _last_inside(parts: Sequence[Block], found: Trial, name: str, far: float, most: float) -> float:
    """The same of parts of the whole, by bisection of the logarithm."""
    inside, outside = found.config[name], far
    if _left(parts, _with(found, name, far)) <= most:
        return far
    while abs(np.log(outside / inside)) > (_FINE if inside != found.config[name] else _FINEST):
        middle = float(np.sqrt(inside * outside))
        if _left(parts, _with(found, name, middle)) <= most:
            inside = middle
        else:
            outside = middle
    return inside


def _left(parts: Sequence[Block], trial: Trial) -> int:
    return sum(trials.counted(trial, part).outside for part in parts)


def rounded_to_usual(value: float, low: float, high: float) -> float:
    """The shortest decimal number inside an interval that holds ``value``."""
    for digits in range(1, 12):
        short = float(f"{value:.{digits}g}")
        if low <= short <= high:
            return short
    return value


def best(found: Sequence[Tried]) -> Tried | None:
    """The trial that explains the record and reproduces most of it; where none does, that which went farthest and leaves the least.

    A mistake that does not explain the record is no name for it.
    """
    if not found:
        return None
    holding = [one for one in found if one.explains and not one.trial.fault]
    if holding:
        return max(holding, key=lambda one: one.equal / one.of)
    return min(found, key=lambda one: (not one.explains, one.trial.fault, -one.of, one.outside / one.of, -one.equal))
