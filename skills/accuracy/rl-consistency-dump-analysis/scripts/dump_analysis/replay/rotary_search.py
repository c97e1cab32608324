"""Bases and frequencies of a rotation that the usual bases do not explain, measured from its table or from what it turned."""

from collections.abc import Mapping, Sequence
from itertools import islice

import numpy as np

from dump_analysis.floats import Array
from dump_analysis.replay import rotary_frequencies, trials
from dump_analysis.replay.blocks import Block, blocks
from dump_analysis.replay.formulas import Formula
from dump_analysis.replay.formulas.rotary import INTERLEAVED, MAGNITUDE, PAIRS, THETA, frequency_name
from dump_analysis.replay.modules import Work
from dump_analysis.replay.one_side import Constant
from dump_analysis.replay.rotary_frequencies import Frequencies
from dump_analysis.replay.sampled import sample_of
from dump_analysis.replay.search import rounded_to_usual
from dump_analysis.replay.trials import Trial, Tried

_MOST_TOKENS = 512  # from which frequencies are measured
_MOST_HEADS = 16  # to which frequencies are refined
_SCANNED = 33  # points of an interval
_BASE_ROUNDS = 5
_ROUNDS = 2  # of scans, each about the best point of the one before
# What cos and sin are multiplied by: by one, or by what YaRN makes of the usual factors (arXiv 2309.00071); a measured one within so much.
_MAGNITUDES = (1.0, *(0.1 * float(np.log(factor)) + 1.0 for factor in (2, 4, 8, 10, 16, 20, 32, 40, 64, 128)))
_CLOSE = 4e-3


def measured(work: Work, formula: Formula, pairs: int, _seen: Sequence[Tried], grid: str) -> list[Trial]:
    """Trials with the bases that the record allows, else with a frequency for each pair."""
    found: list[Trial] = []
    for variant in formula.variants:
        known = _measured(work, variant.function == INTERLEAVED, pairs, grid)
        if known is None:
            continue
        base = rotary_frequencies.base_of(known)
        for magnitude in _magnitudes(work, variant.function == INTERLEAVED, pairs):
            fixed = {PAIRS: float(pairs), MAGNITUDE: magnitude}
            if base is not None:
                found += _near_base(work, Trial(formula, variant, {THETA: base[0], **fixed}), base, grid)
            found.append(_refined(work, Trial(formula, variant, fixed), known, grid))
    return found


def frequencies_of(work: Work, trial: Trial, hints: Mapping[str, float], grid: str) -> dict[str, Constant]:
    """The frequency of each pair, as the record allows it: comparable whatever base or scaling made them.

    ``hints``: those of the other side. Of pairs that do not follow from these, no interval is as narrow as what refused them.
    """
    if PAIRS not in trial.config:
        return {}
    known = _measured(work, trial.variant.function == INTERLEAVED, int(trial.config[PAIRS]), grid)
    if known is None:
        return {}
    names = [frequency_name(pair) for pair in range(len(known.low))]
    middle = np.array([trial.config.get(name, at) for name, at in zip(names, known.middle, strict=True)])
    low, high = known
    if THETA not in trial.config and all(name in hints for name in names):
        given = _with(trial, np.array([hints[name] for name in names]))
        off = sum(_left_by_pair(given, block) for block in _samples(work, given, grid)) > 0
        low, high = np.where(off, middle, low), np.where(off, middle, high)
    each = zip(names, middle, low, high, strict=True)
    return {name: Constant(float(at), (float(least), float(most)), False) for name, at, least, most in each}


def _samples(work: Work, trial: Trial, grid: str) -> list[Block]:
    return [sample_of(block) for block in islice(blocks(work, trial.formula, trial.config, grid), _MOST_HEADS)]


def _magnitudes(work: Work, interleaved: bool, pairs: int) -> list[float]:
    """What cos and sin are multiplied by, as most elements have it: a usual number near it, else a short one and itself."""
    count = min(work.output.rows, _MOST_TOKENS)
    made = work.output.read(0, count)
    if work.operators[0] == "rotary_angles":
        return [1.0]
    if work.heads is None:
        found = float(np.sqrt(np.median(made[:, :pairs] ** 2 + made[:, pairs:] ** 2)))
    else:
        before, after = (_complex(one, work.heads.width, pairs, interleaved) for one in (work.inputs[0].read(0, count), made))
        turned = np.abs(before) > 0
        found = float(np.median(np.abs(after[turned]) / np.abs(before[turned]))) if turned.any() else 1.0
    nearest = min(_MAGNITUDES, key=lambda one: abs(one - found))
    if abs(nearest - found) < _CLOSE * nearest:
        return [nearest]
    return list(dict.fromkeys([rounded_to_usual(found, found * (1 - _CLOSE), found * (1 + _CLOSE)), found]))


def _measured(work: Work, interleaved: bool, pairs: int, grid: str) -> Frequencies | None:
    positions = work.inputs[-1].read(0, work.inputs[-1].rows)[:_MOST_TOKENS, 0]
    count = len(positions)
    if work.heads is None:
        table = work.output.read(0, count)
        if work.operators[0] == "rotary_angles":
            return rotary_frequencies.of_angles(table, positions)
        half = table.shape[1] // 2
        return rotary_frequencies.of_table(table[:, :half], table[:, half:], positions, grid)
    before, after = (_complex(one.read(0, count), work.heads.width, pairs, interleaved) for one in (work.inputs[0], work.output))
    return rotary_frequencies.of_rotation(before, after, positions, grid)


def _complex(rows: Array, width: int, pairs: int, interleaved: bool) -> Array:
    """[tokens, heads, pairs]."""
    by_head = rows.reshape(len(rows), -1, width)[..., : 2 * pairs]
    left, right = (by_head[..., ::2], by_head[..., 1::2]) if interleaved else np.split(by_head, 2, axis=-1)
    found: Array = left + 1j * right
    return found


def _refined(work: Work, trial: Trial, known: Frequencies, grid: str) -> Trial:
    """The trial with the frequencies inside their intervals that leave the fewest elements: each pair has columns of its own."""
    blocks = _samples(work, trial, grid)
    low, high = known.low, known.high
    best = known.middle
    for _ in range(_ROUNDS):
        points = np.linspace(low, high, _SCANNED)
        left = np.stack([sum(_left_by_pair(_with(trial, point), block) for block in blocks) for point in points])
        at = left.argmin(axis=0)
        best = np.take_along_axis(points, at[None, :], 0)[0]
        step = (high - low) / (_SCANNED - 1)
        low, high = best - step, best + step
    return _with(trial, best)


def _near_base(work: Work, trial: Trial, base: tuple[float, float], grid: str) -> list[Trial]:
    """The base between two that leaves the fewest elements, by scans that narrow, and the shortest numbers near it."""
    blocks = _samples(work, trial, grid)
    low, high = np.log(base)
    best = trial
    for _ in range(_BASE_ROUNDS):
        points = np.exp(np.linspace(low, high, _SCANNED))
        tried = [trial._replace(config={**trial.config, THETA: float(at)}) for at in points]
        left = np.array([sum(trials.counted(one, block).outside for block in blocks) for one in tried])
        fewest = np.flatnonzero(left == left.min())
        at = int(fewest[len(fewest) // 2])
        best, step = tried[at], (high - low) / (_SCANNED - 1)
        low, high = np.log(points[fewest[0]]) - step, np.log(points[fewest[-1]]) + step
    near = rounded_to_usual(best.config[THETA], float(np.exp(low)), float(np.exp(high)))
    return [best._replace(config={**best.config, THETA: near}), best]


def _with(trial: Trial, frequencies: Array) -> Trial:
    return trial._replace(config={**trial.config, **{frequency_name(pair): float(at) for pair, at in enumerate(frequencies)}})


def _left_by_pair(trial: Trial, block: Block) -> Array:
    """How many elements of each pair a trial leaves, [pairs]."""
    columns = trials.compared(trial, block)[1].sum(axis=0)
    pairs = int(trial.config[PAIRS])
    if trial.variant.function == INTERLEAVED:
        found: Array = columns[: 2 * pairs].reshape(pairs, 2).sum(axis=1)
    else:
        found = columns[: 2 * pairs].reshape(-1, pairs).sum(axis=0)
    return found
