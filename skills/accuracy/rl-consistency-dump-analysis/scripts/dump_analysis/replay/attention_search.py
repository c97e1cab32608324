"""Which variant and which constants explain a table, a rotation or an attention."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np

from dump_analysis.replay import attention_fit, rotary_search, search, trials
from dump_analysis.replay.attention_noise import plausible
from dump_analysis.replay.blocks import Block, blocks
from dump_analysis.replay.formulas import FORMULAS, Formula, Variant
from dump_analysis.replay.formulas.attention import WINDOW
from dump_analysis.replay.formulas.attention_kernels import SCALE, SOFT_CAP
from dump_analysis.replay.formulas.rotary import MAGNITUDE, PAIRS, THETA, frequency_name
from dump_analysis.replay.modules import Work
from dump_analysis.replay.noise import Noise
from dump_analysis.replay.one_side import Constant
from dump_analysis.replay.recorded import CannotReplay
from dump_analysis.replay.sampled import sample_of
from dump_analysis.replay.trials import Trial, Tried
from dump_analysis.wording import word

NONE = float("inf")  # a window or a cap that is none
_USUAL_BASES = (1e4, 1e6, 5e5, 1e5, 5e6, 1e7, 8e6, 2.5e5, 5e4, 1.5e5)
_FINEST, _COARSEST = 1e-7, 64.0  # relative widths of intervals
_HALVINGS = 5
_SCANS = (1e-2, 1e-3, 1e-4, 1e-5)  # relative widths about a fitted scale
_NEAREST = 3  # sets of constants with which mistakes are tried
_KEPT = 4  # sets of constants that are tried on everything
_WRITTEN = 0.02  # relative distance of a written scale from the fitted one
_LARGEST = 2.0**24  # window or cap that nothing tells from none
_SHARES = (0.5, 0.25, 0.75, 0.4)  # of the columns of a head, that models turn

Config = Mapping[str, float]
Stage = Callable[[Sequence[Tried], str], list[Trial]]


class Found(NamedTuple):
    """What explains a work best, the names of all variants that do, the constants, and those that were stated otherwise."""

    work: Work
    grid: str
    best: Tried
    holding: frozenset[str]
    constants: dict[str, Constant]
    contradicted: dict[str, float]
    noise: Noise | None = None


def found_for(work: Work, stated: Config, *hints: Config) -> Found:
    """Try constants by stages until a variant explains the work. ``hints``: those that explain the other side, and other layers.

    Raises CannotReplay where no variant runs, or where a rotation follows from no base and its frequencies are not told well enough.
    """
    grid, formula = trials.stored_grid(work.output), FORMULAS[work.operators[0]]
    sample = sample_of(next(blocks(work, formula, {}, grid)))
    seen: list[Tried] = []
    for stage in _stages(work, formula, stated, hints):
        sampled = [trials.counted(trial, sample) for trial in stage(seen, grid)]
        seen += sampled
        held = trials.tried(work, [one.trial for one in sampled if one.explains], grid)
        seen = [one for one in seen if not one.explains] + held
        if any(one.explains for one in held):
            break
    if not seen:
        raise CannotReplay(word("replay_no_variant", entry=work.entry))
    best = search.best(seen) or seen[0]
    if not best.explains:
        best = trials.tried(work, [best.trial], grid)[0]
    if not best.explains and PAIRS in best.trial.config and THETA not in best.trial.config:
        raise CannotReplay(word("replay_no_base", entry=work.entry))
    if not best.explains and "key" in _roles(work):
        return _by_noise(work, best, stated, hints, grid)
    holding = frozenset(one.trial.variant.name for one in seen if one.explains and not one.trial.fault)
    constants = _constants(work, best, stated, hints, grid) if best.explains and not best.trial.fault else {}
    contradicted = {name: stated[name] for name, constant in constants.items() if name in stated and not constant.holds(stated[name])}
    return Found(work, grid, best, holding, constants, contradicted)


def _by_noise(work: Work, best: Tried, stated: Config, hints: Sequence[Config], grid: str) -> Found:
    """No variant explains the work: what is left against the noise of rounding, and the constants that it allows."""
    seen = plausible(work, best.trial.formula, _starts(work, stated, hints), grid)
    if not seen.noise.is_rounding:
        return Found(work, grid, best, frozenset(), {}, {}, seen.noise)
    variant = next(one for one in best.trial.formula.variants if one.function == seen.function)
    trial = Trial(best.trial.formula, variant, seen.config)
    nearest = trials.tried(work, [trial], grid)[0]
    contradicted = {name: stated[name] for name, constant in seen.constants.items() if name in stated and not constant.holds(stated[name])}
    return Found(work, grid, nearest, frozenset(), seen.constants, contradicted, seen.noise)


def _roles(work: Work) -> tuple[str, ...]:
    return work.heads.roles if work.heads is not None else ()


# --- stages ---


def _stages(work: Work, formula: Formula, stated: Config, hints: Sequence[Config]) -> list[Stage]:
    """What to try, one after another: right variants with usual constants, mistakes, constants that the record points to, mistakes."""
    first = next(blocks(work, formula, {}, "float32"))
    if "key" not in _roles(work):
        return _rotation_stages(work, formula, first, stated, hints)
    starts = _starts(work, stated, hints)
    near = partial(_near, work, formula, starts[0])
    return [partial(_right, first, formula, starts), partial(_mistaken, first, formula), near, partial(_mistaken, first, formula)]


def _rotation_stages(work: Work, formula: Formula, first: Block, stated: Config, hints: Sequence[Config]) -> list[Stage]:
    """A table that was recorded is taken as it is; one that follows from positions is tried with the usual bases and numbers of pairs."""
    most = _most_pairs(work)
    if most is None:
        return [partial(_right, first, formula, [{}]), partial(_mistaken, first, formula)]
    told = [known[PAIRS] for known in (stated, *hints) if known.get(PAIRS, most) < most] if work.heads is not None else []
    counts = list(dict.fromkeys([*told, float(most)]))
    fewer = [float(int(most * share)) for share in _SHARES if work.heads is not None]
    stages: list[Stage] = [partial(_right, first, formula, _turns(counts, stated, hints)), partial(_mistaken, first, formula)]
    stages += [partial(_right, first, formula, _turns(fewer, stated, hints))] if fewer else []
    return [*stages, *(partial(rotary_search.measured, work, formula, int(count)) for count in counts)]


def _most_pairs(work: Work) -> int | None:
    """Pairs of a table that follows from positions, at most; None where one was recorded."""
    if work.heads is None:
        return work.output.columns // (2 if work.operators[0] == "rotary_table" else 1)
    return work.heads.width // 2 if "position" in _roles(work) else None


def _turns(counts: Sequence[float], stated: Config, hints: Sequence[Config]) -> list[Config]:
    """Frequencies that are stated, those of the other side where no base gives them, and the usual bases, for each number of pairs."""
    found: list[Config] = []
    known = [stated, *(hint for hint in hints if THETA not in hint)]
    for count in counts:
        scaled = [one for each in known if (one := _scaled(each, int(count))) is not None]
        found += [*scaled, *({**one, MAGNITUDE: 1.0} for one in scaled)]
        found += [{THETA: base, PAIRS: count, MAGNITUDE: 1.0} for base in _bases(stated, hints)]
    return _distinct(found)


def _right(first: Block, formula: Formula, configs: Sequence[Config], _seen: Sequence[Tried], grid: str) -> list[Trial]:
    given = [(config, first.given._replace(config=dict(config), dtype=grid)) for config in configs]
    return [Trial(formula, variant, config) for config, one in given for variant in formula.fitting(one)]


def _mistaken(first: Block, formula: Formula, seen: Sequence[Tried], grid: str) -> list[Trial]:
    """Every named mistake with the constants of the nearest trials."""
    nearest = sorted(seen, key=lambda one: one.outside / one.of)
    configs = _distinct([one.trial.config for one in nearest])[:_NEAREST]
    given = [(config, first.given._replace(config=dict(config), dtype=grid)) for config in configs]
    return [Trial(formula, variant, config, True) for config, one in given for variant in formula.faults if variant.applies(one)]


def _near(work: Work, formula: Formula, usual: Config, seen: Sequence[Tried], grid: str) -> list[Trial]:
    """Constants to which the record points, as people and programs write them: those with which most of a sample is explained."""
    if not seen:
        return []
    cores, function = attention_fit.cores_of(work, formula, usual, grid)
    block = sample_of(next(blocks(work, formula, usual, grid)))
    variants = [variant for variant in formula.fitting(block.given) if variant.function == function]
    wanted = [near for one in attention_fit.candidates(cores, usual) for near in _written(one, usual)]
    found = [_nearest(formula, variants, config, block) for config in _distinct(wanted)]
    found.sort(key=_outside)
    if not found[0].explains:
        found.insert(0, _scanned(found[0].trial, block))
    configs = [one.trial.config for one in found[:_KEPT]]
    return [Trial(formula, variant, config) for config in configs for variant in variants]


def _nearest(formula: Formula, variants: Sequence[Variant], config: Config, block: Block) -> Tried:
    return min((trials.counted(Trial(formula, variant, config), block) for variant in variants), key=_outside)


def _distinct(configs: Sequence[Config]) -> list[Config]:
    return list({tuple(sorted(config.items())): config for config in configs}.values())


def _scanned(trial: Trial, block: Block) -> Tried:
    """The trial with the scale that explains most, by a scan that narrows."""
    best = trials.counted(trial, block)
    for reach in _SCANS:
        scales = best.trial.config[SCALE] * (1 + reach * np.linspace(-1, 1, 17))
        near = [trials.counted(trial._replace(config={**trial.config, SCALE: float(at)}), block) for at in scales]
        best = min([best, *near], key=_outside)
    return best


def _outside(tried: Tried) -> int:
    return tried.outside


def _written(config: Config, usual: Config) -> list[Config]:
    """With the scale as it stands, in few digits, as so many times the usual one, and as the inverse root of a whole number."""
    scale, one = config[SCALE], usual[SCALE]
    scales = [
        scale,
        *(float(f"{scale:.{digits}g}") for digits in (1, 2, 3)),
        *(one * float(f"{scale / one:.{digits}g}") for digits in (2, 3)),
    ]
    scales.append(float(np.sqrt(1 / max(1, round(1 / scale**2)))))
    return [{**config, SCALE: at} for at in dict.fromkeys(scales) if abs(at - scale) <= _WRITTEN * scale]


def _bases(stated: Config, hints: Sequence[Config]) -> list[float]:
    return list(dict.fromkeys([*(known[THETA] for known in (stated, *hints) if THETA in known), *_USUAL_BASES]))


def _scaled(known: Config, pairs: int) -> Config | None:
    """The frequencies of so many pairs, where they are known one by one."""
    names = [frequency_name(pair) for pair in range(pairs)]
    if not all(name in known for name in names) or frequency_name(pairs) in known:
        return None
    return {**{name: known[name] for name in names}, PAIRS: float(pairs), MAGNITUDE: known.get(MAGNITUDE, 1.0)}


def _starts(work: Work, stated: Config, hints: Sequence[Config]) -> list[Config]:
    """The usual constants, those of the other side, and those of other layers."""
    usual = usual_attention(work, stated)
    return _distinct([usual, *({**usual, **{name: hint[name] for name in usual if name in hint}} for hint in hints)])


def usual_attention(work: Work, stated: Config) -> Config:
    """What is stated, and where nothing is one over the root of the heads' width, no window and no cap."""
    assert work.heads is not None
    scale = stated.get(SCALE, work.heads.width**-0.5)
    return {SCALE: scale, WINDOW: stated.get(WINDOW, NONE), SOFT_CAP: stated.get(SOFT_CAP, NONE)}


# --- constants ---


def _constants(work: Work, best: Tried, stated: Config, hints: Sequence[Config], grid: str) -> dict[str, Constant]:
    block = sample_of(next(blocks(work, best.trial.formula, {}, grid)))
    found = {}
    for name, value in best.trial.config.items():
        if name.startswith(f"{THETA}."):
            continue
        if name == PAIRS or value == search.UNITS.get(name):
            found[name] = Constant(value, (value, value), stated.get(name) == value)
            continue
        interval = _interval(value, partial(_explains, best.trial, block, name))
        as_stated = name in stated and interval[0] <= stated[name] <= interval[1]
        found[name] = Constant(stated[name] if as_stated else value, interval, as_stated)
    scaled = next((hint for hint in hints if frequency_name(0) in hint), {})
    return found | rotary_search.frequencies_of(work, best.trial, scaled, grid)


def _explains(trial: Trial, block: Block, name: str, value: float) -> bool:
    return trials.counted(trial._replace(config={**trial.config, name: value}), block).explains


def _interval(value: float, explains: Callable[[float], bool]) -> tuple[float, float]:
    """The values about one that explains, all of which do. For none: from the smallest that is as good."""
    if not np.isfinite(value):
        return _lowest(explains), NONE
    return _edge(value, explains, -1), _edge(value, explains, 1)


def _lowest(explains: Callable[[float], bool]) -> float:
    """The smallest power of two that does as well as none."""
    at, low = _LARGEST, NONE
    while at >= 1 and explains(at):
        low, at = at, at / 2
    return low


def _edge(value: float, explains: Callable[[float], bool], sign: int) -> float:
    """The furthest value on one side, by steps that grow and then halve."""
    inside, step = 0.0, _FINEST
    while step <= _COARSEST and explains(value * (1 + step) ** sign):
        inside, step = step, step * 8
    for _ in range(_HALVINGS):
        middle = float(np.sqrt(max(inside, _FINEST / 8) * step))
        if explains(value * (1 + middle) ** sign):
            inside = middle
        else:
            step = middle
    return float(value * (1 + inside) ** sign)
