"""What a router computes and how many experts it chooses, read from the routed sum: what comes nearest, then where it rounds."""

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import NamedTuple

import numpy as np

from dump_analysis.floats import Array
from dump_analysis.replay import search, trials
from dump_analysis.replay.blocks import Block, sample
from dump_analysis.replay.formulas import FORMULAS, Formula, Variant
from dump_analysis.replay.formulas.expert_choice import CHOICE
from dump_analysis.replay.formulas.functions import ACTIVATIONS
from dump_analysis.replay.formulas.routed_experts import BOUND_SCALE, ROUTED, WEIGHTED
from dump_analysis.replay.formulas.router_shares import SHARES
from dump_analysis.replay.formulas.routing import ROUTED_SCALE, TOP_K
from dump_analysis.replay.modules import Work
from dump_analysis.replay.one_side import Constant, Kernel, Replayed
from dump_analysis.replay.recorded import CannotReplay
from dump_analysis.replay.residual import residual_of, where_of
from dump_analysis.replay.ties import with_ties_settled
from dump_analysis.replay.trials import Trial, Tried
from dump_analysis.wording import word

_MOST = 16  # experts of a token
_NEAR = 0.05  # what a sum leaves of a record, relative L2: roundings of 8 bits leave a tenth of it, another choice several times as much
_ALIKE = 1.5  # sums that leave as little as the nearest: functions that are one for these constants
_ACTIVATIONS = ("", *(one.name for one in ACTIVATIONS))
_WIDER = 8.0  # times the bound: what units of matrices may err by that cut, or keep fewer bits, is not known better (tensor cores)
_EXACT = "float32"  # numbers of experts, which no format rounds
_ONE = 2.0**-8  # about 1: a factor that roundings may make


class _Near(NamedTuple):
    """A function with constants, and what its truth leaves of a sample, with the factor that leaves least."""

    variant: Variant
    config: dict[str, float]
    left: float
    factor: float


def replay_routed(work: Work, stated: Mapping[str, float]) -> Replayed:
    """Recompute a routed sum, of experts with equal logits by those that it follows from, or a router's shares. Raises CannotReplay where
    its format is not recomputed."""
    found = _replayed(work, stated)
    if found.best.explains or found.best.touched is None or work.operators[0] != ROUTED:
        return found
    settled = with_ties_settled(work, found.best.trial, found.grid, np.flatnonzero(found.best.touched.tokens))
    return found if settled is None else replay_as(settled, found.best.trial, stated)[0]


def replay_as(work: Work, way: Trial, stated: Mapping[str, float]) -> tuple[Replayed, list[Trial]]:
    """A routed sum recomputed by the function and the constants of another side, wherever it rounds; and the ways that were tried."""
    grid = trials.stored_grid(work.output)
    given = sample(work, way.formula, grid)
    wanted = [Trial(way.formula, variant, way.config) for variant in variants_of(way.formula, way.variant.function, given)]
    found = _of_trials(work, wanted, grid, stated)
    if not found.best.explains and found.best.touched is not None:
        settled = with_ties_settled(work, found.best.trial, grid, np.flatnonzero(found.best.touched.tokens))
        found = found if settled is None else _of_trials(settled, wanted, grid, stated)
    return found, wanted


def _replayed(work: Work, stated: Mapping[str, float]) -> Replayed:
    formula = FORMULAS[work.operators[0]]
    if formula.operator == CHOICE:
        return _chosen(work, formula, stated)
    grid = trials.stored_grid(work.output)
    part = sample(work, formula, grid)
    wanted = []
    for one in _nearest(part, formula):
        configs = _with_scales(part, formula, one, stated)
        wanted += [Trial(formula, variant, config) for config in configs for variant in variants_of(formula, one.variant.function, part)]
    return _of_trials(work, wanted, grid, stated)


def _chosen(work: Work, formula: Formula, stated: Mapping[str, float]) -> Replayed:
    """Numbers of experts, which follow from logits or do not: nothing is left of them that could be measured."""
    config = {TOP_K: float(work.output.columns)}
    found = trials.tried(
        work, [Trial(formula, one, config) for one in formula.fitting(sample(work, formula, _EXACT).wide(config)[0])], _EXACT
    )
    best = _best(found)
    if best is None:
        raise CannotReplay(word("replay_no_variant", entry=work.entry))
    if not best.explains:
        return Replayed(work, _EXACT, best, frozenset(), {}, {}, None, where_of(best.touched) if best.touched is not None else None)
    constants = {TOP_K: _count({config[TOP_K]}, config[TOP_K], stated)}
    contradicted = {name: stated[name] for name, one in constants.items() if name in stated and not one.holds(stated[name])}
    return Replayed(work, _EXACT, best, frozenset({best.trial.variant.name}), constants, contradicted, None, None)


def _of_trials(work: Work, wanted: Sequence[Trial], grid: str, stated: Mapping[str, float]) -> Replayed:
    found = trials.tried(work, wanted, grid)
    best = _best(found)
    if best is None:
        raise CannotReplay(word("replay_no_variant", entry=work.entry))
    if not best.explains:
        where = where_of(best.touched) if best.touched is not None else None
        off = Replayed(work, grid, best, frozenset(), {}, {}, residual_of(work, best.trial, grid), where)
        return _of_another_kernel(off) or off
    alike = [one for one in found if one.explains and one.trial.variant.function == best.trial.variant.function]
    same = [one for one in alike if one.trial.config == best.trial.config]
    constants = {name: _constant(work, best.trial, name, stated, grid) for name in best.trial.config if name != TOP_K}
    if TOP_K in best.trial.config:
        constants[TOP_K] = _count({one.trial.config[TOP_K] for one in alike}, best.trial.config[TOP_K], stated)
    contradicted = {name: stated[name] for name, one in constants.items() if name in stated and not one.holds(stated[name])}
    return Replayed(work, grid, best, frozenset(one.trial.variant.name for one in same), constants, contradicted, None, None)


def _of_another_kernel(off: Replayed) -> Replayed | None:
    """A side that follows where sums inside its experts may err by more than the bound says: a kernel whose accumulation nobody has
    measured, and no fault. A rounding there that falls the other way moves a whole token."""
    if off.work.experts is None:
        return None
    trial = off.best.trial._replace(config={**off.best.trial.config, BOUND_SCALE: _WIDER})
    if not trials.tried(off.work, [trial], off.grid)[0].explains:
        return None
    return off._replace(where=None, kernel=Kernel(_WIDER, 1.0, 1.0, errs_as_kernels=True))


def variants_of(formula: Formula, function: str, part: Block) -> list[Variant]:
    """The variants of a formula that compute one function of what they are given."""
    return [one for one in formula.fitting(part.wide({})[0]) if one.function == function]


def _best(found: Sequence[Tried]) -> Tried | None:
    """Of functions that explain the record alike the first, for on one token's experts, or on all, several are one."""
    holding = [one for one in found if one.explains]
    first = [one for one in holding if one.trial.variant.function == holding[0].trial.variant.function]
    return search.best(first or found)


def _constant(work: Work, trial: Trial, name: str, stated: Mapping[str, float], grid: str) -> Constant:
    value = trial.config[name]
    if value == 1.0:
        return Constant(value, None, stated.get(name) == value)
    low, high = search.interval(work, trial, name, grid)
    if low <= stated.get(name, np.nan) <= high:
        return Constant(stated[name], (low, high), True)
    return Constant(search.rounded_to_usual(value, low, high), (low, high), False)


def _count(possible: set[float], best: float, stated: Mapping[str, float]) -> Constant:
    """How many experts a token has, and how many would do as well: shares may be too small to show."""
    value = stated[TOP_K] if stated.get(TOP_K) in possible else best
    return Constant(value, (min(possible), max(possible)) if len(possible) > 1 else None, value == stated.get(TOP_K))


# --- which function, with which constants ---


def _nearest(part: Block, formula: Formula) -> list[_Near]:
    """The functions whose truth comes nearest to a sample of the record, in the order of the formula: activations one after the other,
    until one comes near."""
    fitting = formula.fitting(part.wide({**dict.fromkeys(formula.config, 1.0)})[0])
    functions = list({variant.function: variant for variant in fitting}.values())
    found: list[_Near] = []
    for _, alike in groupby(sorted(functions, key=lambda one: _ACTIVATIONS.index(_activation(one))), key=_activation):
        found += [_near(part, formula, variant, config) for variant in alike for config in _configs(part, formula)]
        if min(one.left for one in found) < _NEAR:
            break
    least = min(one.left for one in found)
    return [one for one in found if one.left <= _ALIKE * least or one.left < 1e-6]


def _activation(variant: Variant) -> str:
    """ "" for a router by itself."""
    last = variant.function.rpartition(" ")[2]
    return last if last in _ACTIVATIONS else ""


def _configs(part: Block, formula: Formula) -> list[dict[str, float]]:
    if formula.operator == WEIGHTED:
        return [{ROUTED_SCALE: 1.0}]
    if formula.operator == SHARES:
        return [{TOP_K: float(part.given.inputs[1].shape[1]), ROUTED_SCALE: 1.0}]
    return [{TOP_K: float(count), ROUTED_SCALE: 1.0} for count in range(1, min(_MOST, part.given.inputs[1].shape[1]) + 1)]


def _near(part: Block, formula: Formula, variant: Variant, config: dict[str, float]) -> _Near:
    given, recorded = part.wide(config)
    truth: Array = formula.truth(given, variant)[0]
    square = float((truth * truth).sum())
    factor = float((truth * recorded).sum()) / square if square else 0.0
    size = float(np.linalg.norm(recorded)) or 1.0
    return _Near(variant, config, float(np.linalg.norm(recorded - factor * truth)) / size, factor)


def _with_scales(part: Block, formula: Formula, one: _Near, stated: Mapping[str, float]) -> list[dict[str, float]]:
    """The constants of a function with the factors that its sums may have: 1 where that is near, else what is stated and what fits."""
    if abs(one.factor - 1.0) < _ONE or one.left > _NEAR:
        return [one.config]
    nearest = Trial(formula, one.variant, {**one.config, ROUTED_SCALE: one.factor})
    scales = [*([stated[ROUTED_SCALE]] if ROUTED_SCALE in stated else []), *search.near(part, nearest, ROUTED_SCALE, one.factor)]
    return [{**one.config, ROUTED_SCALE: scale} for scale in dict.fromkeys(scales)]
