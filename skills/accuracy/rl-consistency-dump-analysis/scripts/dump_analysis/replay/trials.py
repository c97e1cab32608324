"""Trying the variants of the formulas that fit on what a side recorded: block by block, how many elements each reproduces."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from dump_analysis.floats import Array
from dump_analysis.replay import emulate
from dump_analysis.replay.blocks import Block, blocks, rows_in_cache, sample, spans
from dump_analysis.replay.formulas import FORMULAS, Formula, Variant
from dump_analysis.replay.modules import Work
from dump_analysis.replay.recorded import CannotReplay, Matrix
from dump_analysis.wording import word

_NONE = (np.zeros((0, 0), bool), np.zeros((0, 0), bool))  # of a module that a trial does not fit
_FALSE_ALARMS = 2e-6  # share of elements that the bounds of bounds.py leave out by chance
_DEVIATIONS = 3.0  # of a count that chance makes


class Trial(NamedTuple):
    """A variant of a formula with constants. ``fault``: it computes something else, and names a mistake."""

    formula: Formula
    variant: Variant
    config: Mapping[str, float]
    fault: bool = False


class Touched(NamedTuple):
    """Which tokens and which columns of a module hold elements that a trial leaves."""

    tokens: Array
    columns: Array


class Tried(NamedTuple):
    """How many of ``of`` elements a trial reproduces bit for bit, and how many lie outside its interval.

    ``touched``: where those are, if the trial went through the whole module.
    """

    trial: Trial
    of: int
    equal: int
    outside: int
    touched: Touched | None = None

    @property
    def explains(self) -> bool:
        return self.outside <= allowed(self.of)


def allowed(of: int) -> float:
    """How many of so many elements may lie outside by chance."""
    return 1 + _FALSE_ALARMS * of


def stored_grid(output: Matrix) -> str:
    """The format on whose grid the output lies: a float32 tensor may hold bfloat16 results. Raises CannotReplay for other formats."""
    if output.dtype not in emulate.FORMATS:
        raise CannotReplay(word("replay_format", name=output.name, dtype=output.dtype))
    if output.dtype != "float32":
        return output.dtype
    possible = list(emulate.GRIDS)
    for block in spans(output.rows, rows_in_cache(output.columns)):
        values = output.stored(*block)
        possible = [grid for grid in possible if emulate.on_grid(values, grid)]
        if not possible:
            return output.dtype
    return possible[0]


# --- trying ---


def trials_of(work: Work, formula: Formula, configs: Sequence[Mapping[str, float]], grid: str) -> list[Trial]:
    """Every variant that can run, with every set of constants."""
    part = sample(work, formula, grid)
    found = []
    for config in configs or [{}]:
        given = part.wide(config)[0]
        found += [Trial(formula, variant, config) for variant in formula.fitting(given)]
        found += [Trial(formula, variant, config, True) for variant in formula.faults if variant.applies(given)]
    return found


def tried(work: Work, trials: Sequence[Trial], grid: str) -> list[Tried]:
    """What each trial reproduces, those of a function that makes another shape left out: it is none of the module's.

    A sample rules out those that leave more of it than of the whole is allowed; of those that differ in constants alone one goes through
    the whole, the others only where that one leaves anything. Of trials that fail only the nearest goes on: the counts of one that was
    given up are of the part that it saw.
    """
    if not trials:
        return []
    part, whole = sample(work, trials[0].formula, grid), work.output.rows * work.output.columns
    seen = [one for one in (counted(trial, part) for trial in trials) if one.of]
    trials = [one.trial for one in seen]
    if not trials:
        return []
    hopeful = [at for at, one in enumerate(seen) if one.outside <= allowed(whole)]
    first = _one_a_variant(seen, hopeful) or [min(range(len(seen)), key=lambda at: _distance(seen[at]))]
    found = dict(zip(first, _through(work, [trials[at] for at in first], grid), strict=True))
    complete = {trials[at].variant.name for at, one in found.items() if one.explains and not one.outside}
    later = [at for at in hopeful if at not in found and trials[at].variant.name not in complete]
    found.update(zip(later, _through(work, [trials[at] for at in later], grid), strict=True))
    return [found.get(at, one) for at, one in enumerate(seen) if at in found or at not in hopeful]


def _one_a_variant(seen: Sequence[Tried], hopeful: Sequence[int]) -> list[int]:
    """Of each variant the first constants, unless later ones leave less of the sample, or reproduce more of it than chance would."""
    best: dict[str, int] = {}
    for at in hopeful:
        name = seen[at].trial.variant.name
        if name not in best or _is_better(seen[at], seen[best[name]]):
            best[name] = at
    return sorted(best.values())


def _is_better(one: Tried, before: Tried) -> bool:
    unequal = before.of - before.equal
    return (one.outside, one.of - one.equal + _DEVIATIONS * unequal**0.5) < (before.outside, unequal)


def _through(work: Work, trials: Sequence[Trial], grid: str) -> list[Tried]:
    """Each trial through the whole module, those that fail no further than it takes to see that, but for the nearest where all do."""
    if not trials:
        return []
    rows, columns = work.output.rows, work.output.columns
    found = [Tried(trial, 0, 0, 0, Touched(np.zeros(rows, bool), np.zeros(columns, bool))) for trial in trials]
    going = list(range(len(trials)))
    for block in blocks(work, trials[0].formula, {}, grid):
        for at in going:
            found[at] = _added(found[at], block)
        going = [at for at in going if found[at].outside <= allowed(rows * columns)] or [min(going, key=lambda at: _distance(found[at]))]
    return [one if one.of == rows * columns else one._replace(touched=None) for one in found]


def _distance(one: Tried) -> tuple[bool, int]:
    """Of trials that fail: a mistake is no name for what it does not explain."""
    return one.trial.fault, one.outside


def _added(seen: Tried, block: Block) -> Tried:
    equal, outside = compared(seen.trial, block)
    more = int(outside.sum())
    if more and seen.touched is not None:
        seen.touched.tokens[block.token : block.token + len(outside)] |= outside.any(axis=1)
        seen.touched.columns[block.column : block.column + outside.shape[1]] |= outside.any(axis=0)
    return seen._replace(of=seen.of + equal.size, equal=seen.equal + int(equal.sum()), outside=seen.outside + more)


def counted(trial: Trial, block: Block) -> Tried:
    """What a trial reproduces of one block."""
    equal, outside = compared(trial, block)
    return Tried(trial, equal.size, int(equal.sum()), int(outside.sum()))


def compared(trial: Trial, block: Block) -> tuple[Array, Array]:
    """Which elements of a block a trial reproduces bit for bit, and which lie outside its interval; none where it makes another shape."""
    weight = block.given.weights.get("weight")
    if trial.formula.by_weight_rows and weight is not None and len(weight) != block.recorded.shape[1]:
        return _NONE
    if trial.variant.compared is not None:
        return trial.variant.compared(block.given._replace(config=dict(trial.config)), block.recorded)
    given, recorded = block.wide(trial.config)
    emulated = emulate.Emulated(*trial.variant.run(given)[0])
    if emulated.value.shape != recorded.shape:
        return _NONE
    equal = emulate.bit_equal(recorded, emulated)
    return equal, np.zeros_like(equal) if equal.all() else ~emulate.explained(recorded, emulated)


def formulas_of(work: Work) -> list[Formula]:
    """The formulas that the work can be, those that are known; every parameter must be used. Raises CannotReplay where none is left."""
    known = [FORMULAS[name] for name in work.operators if name in FORMULAS]
    found = [formula for formula in known if formula.consumes([*work.weights, *work.unused])]
    if known and not found:
        raise CannotReplay(word("replay_unused_parameters", entry=work.entry, names=list(work.unused)))
    if not found:
        raise CannotReplay(word("replay_no_formula", module=work.entry))
    return found
