"""One side of a module recomputed: what explains its record, with which constants, and what is left where nothing does."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from dump_analysis.artefacts.common import Worded
from dump_analysis.artefacts.replay_results import Residual
from dump_analysis.replay import search, trials
from dump_analysis.replay.formulas import Formula
from dump_analysis.replay.modules import Work, makes_logits
from dump_analysis.replay.noise import Noise
from dump_analysis.replay.recorded import CannotReplay
from dump_analysis.replay.residual import Where, residual_of, where_of
from dump_analysis.replay.shifted_rows import Shift, shift_of
from dump_analysis.replay.trials import Trial, Tried
from dump_analysis.wording import word


class Constant(NamedTuple):
    """A constant with which a record is explained, and the interval of those that explain it as well (None: not looked for)."""

    value: float
    interval: tuple[float, float] | None
    stated: bool

    def holds(self, value: float) -> bool:
        """Whether another value would explain the record too."""
        low, high = self.interval or (self.value, self.value)
        return low <= value <= high


class Kernel(NamedTuple):
    """How a module errs that no variant explains: how many times the bound it needs, how many the others of its kind need (the median),
    and the gain of its record against the truth. ``errs_as_kernels``: by no more than one may that rounds inside, and no factor explains
    it. ``stands_out``: it errs as none of the others does.
    """

    scale: float
    usual: float
    gain: float
    errs_as_kernels: bool
    stands_out: bool = False


class Replayed(NamedTuple):
    """What recomputing showed. ``best``: the nearest trial; ``holding``: names of the variants that explain the record.

    ``contradicted``: constants that were stated and with which the record does not follow; ``where``: elements that nothing explains.
    ``noise``: what is left of an operator whose kernels are many, against the noise of rounding. ``shift``: of the rows of a head from
    which logits follow that nothing else explains. ``read_in``: groups in which q, k and v were read, 0: three blocks, though their
    rows lie otherwise. ``kernel``: how it errs beside others of its kind, where no variant explains it.
    ``experts_taken``: by number of an expert whose matrices stand for it, where a side mistakes them.
    """

    work: Work
    grid: str
    best: Tried
    holding: frozenset[str]
    constants: dict[str, Constant]
    contradicted: dict[str, float]
    residual: Residual | None
    where: Where | None
    noise: Noise | None = None
    shift: Shift | None = None
    read_in: int | None = None
    kernel: Kernel | None = None
    experts_taken: tuple[int, ...] | None = None

    @property
    def explained(self) -> bool:
        return self.best.explains and not self.best.trial.fault

    @property
    def plausible(self) -> bool:
        """Whether no variant explains the record, but what is left looks like rounding and nothing else."""
        return not self.best.explains and self.noise is not None and self.noise.is_rounding

    @property
    def follows(self) -> bool:
        """Whether a variant explains the record, or what is left of it is rounding."""
        return self.explained or self.plausible


class Unreplayed(NamedTuple):
    """A side that was not recomputed, and why."""

    entry: str | None
    reason: Worded


def replay(work: Work, stated: Mapping[str, float]) -> Replayed:
    """Try every formula and variant. Raises CannotReplay where no formula fits or a constant is not known and cannot be searched for."""
    grid = trials.stored_grid(work.output)
    found: list[Tried] = []
    for formula in trials.formulas_of(work):
        found += _of_formula(work, formula, stated, grid)
        if any(one.explains and not one.trial.fault for one in found):
            break
    best = search.best(found)
    if best is None:
        raise CannotReplay(word("replay_no_variant", entry=work.entry))
    if work.origin == "tied" and not best.explains:  # they are not tied, it seems: nothing is known of the head's weight
        raise CannotReplay(word("replay_no_weight", module=work.entry))
    as_stated = best.explains
    for closest in _closest(found) if not best.explains else ():
        found += _with_other_constants(work, closest, grid)
    best = search.best(found) or best
    explained = best.explains and not best.trial.fault
    holding = frozenset(one.trial.variant.name for one in found if one.explains and not one.trial.fault)
    constants = _constants(work, best.trial, stated, grid) if explained else {}
    contradicted = {} if as_stated else {name: stated[name] for name in constants if name in stated}
    if explained:
        return Replayed(work, grid, best, holding, constants, contradicted, None, None)
    where = where_of(best.touched) if not best.explains and best.touched is not None else None
    shift = shift_of(work, grid) if not best.explains and makes_logits(work) else None
    return Replayed(work, grid, best, holding, constants, contradicted, residual_of(work, best.trial, grid), where, shift=shift)


def _closest(found: Sequence[Tried]) -> list[Tried]:
    """Of each formula that has a constant the nearest trial: a constant far off can make another formula come nearer."""
    by_formula: dict[str, list[Tried]] = {}
    for one in found:
        by_formula.setdefault(one.trial.formula.operator, []).append(one)
    nearest = [search.best(tries) for tries in by_formula.values()]
    return [one for one in nearest if one is not None and search.constant_of(one.trial.formula)]


def _of_formula(work: Work, formula: Formula, stated: Mapping[str, float], grid: str) -> list[Tried]:
    given = search.configs(formula, stated)
    return trials.tried(work, trials.trials_of(work, formula, given, grid), grid) if given else []


def _with_other_constants(work: Work, closest: Tried, grid: str) -> list[Tried]:
    """All variants again with the constant that fits best, and with the usual values where another was stated."""
    formula, name = closest.trial.formula, search.constant_of(closest.trial.formula)
    start = dict(closest.trial.config)
    part = search.telling(work, closest, grid)
    value = search.fitted(part, closest.trial, name)
    wanted = [{**start, name: at} for at in search.USUAL.get(name, ())]
    wanted += [{**start, name: at} for at in search.near(part, closest.trial, name, value)] if value is not None else []
    return trials.tried(work, trials.trials_of(work, formula, wanted, grid), grid) if wanted else []


def _constants(work: Work, trial: Trial, stated: Mapping[str, float], grid: str) -> dict[str, Constant]:
    found = {}
    for name, value in trial.config.items():
        if search.UNITS.get(name) == value:
            found[name] = Constant(value, None, stated.get(name) == value)
            continue
        low, high = search.interval(work, trial, name, grid)
        as_stated = stated.get(name) == value
        short = value if as_stated else search.rounded_to_usual(value, low, high)
        found[name] = Constant(short, (low, high), as_stated)
    return found
