"""An attention that no variant explains, against the noise that rounding makes: for kernels that are not in the list."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from dump_analysis.replay import attention_fit
from dump_analysis.replay.blocks import blocks
from dump_analysis.replay.formulas import Formula
from dump_analysis.replay.formulas.attention import WINDOW
from dump_analysis.replay.formulas.attention_kernels import SCALE, SOFT_CAP
from dump_analysis.replay.modules import Work
from dump_analysis.replay.noise import Noise, Sums
from dump_analysis.replay.one_side import Constant

_DEVIATIONS = 6.0  # of a fitted scale
# A kernel may cut where others round: all its scores, or all its probabilities, are then smaller by up to half the spacing of the format.
_BIAS = {"bfloat16": 2.0**-9, "float16": 2.0**-12, "float32": 2.0**-25}
NONE = float("inf")


class Plausible(NamedTuple):
    """What is left, with which constants, and by which function q and k were turned."""

    noise: Noise
    constants: dict[str, Constant]
    config: Mapping[str, float]
    function: str


def plausible(work: Work, formula: Formula, starts: Sequence[Mapping[str, float]], grid: str) -> Plausible:
    """Of some sets of constants that which leaves least; where all leave more than rounding, those to which the record points."""
    cores, function = attention_fit.cores_of(work, formula, starts[0], grid)
    first = min((judged(work, formula, start, grid, function) for start in starts), key=lambda one: one.noise.rms)
    if first.noise.is_rounding:
        return first
    usual = starts[-1]
    wanted = [config for config in attention_fit.candidates(cores, usual) if config[SOFT_CAP] == usual[SOFT_CAP]]
    nearest = min(wanted, key=lambda config: attention_fit.distance(cores, config))
    second = judged(work, formula, nearest, grid, function)
    return second if second.noise.is_rounding else min(first, second, key=lambda one: one.noise.rms)


def judged(work: Work, formula: Formula, config: Mapping[str, float], grid: str, function: str) -> Plausible:
    """What is left with some constants."""
    sums, along, against = Sums(work.output.rows, work.output.columns), 0.0, 0.0
    for block in blocks(work, formula, config, grid):
        core = attention_fit.core_of(block, function)
        z, expected = core.deviations(config), core.expected(config)
        sums.add(z, expected, block.token, block.column)
        slope = np.nan_to_num(core.slope(config, SCALE))
        along += float((slope * np.nan_to_num(z)).sum())
        against += float((slope * slope).sum())
    noise = sums.noise()
    return Plausible(noise, _constants(work, config, (along, against), noise, grid), config, function)


def _constants(work: Work, config: Mapping[str, float], slopes: tuple[float, float], noise: Noise, grid: str) -> dict[str, Constant]:
    """The scale with the interval that its tangent and a bias of the kernel allow, and the window; a weak cap hides in the noise."""
    scale, window = config[SCALE], config[WINDOW]
    along, against = slopes
    off, deviation = (along / against, max(noise.rms, 1e-3) / np.sqrt(against)) if against else (0.0, np.inf)
    reach = _DEVIATIONS * deviation + _BIAS[grid]
    interval = tuple(float(scale * (1 + off + sign * reach)) for sign in (-1, 1))
    longest = max(one.stop - one.start for one in work.heads.sequences) if work.heads is not None else 0
    windows = (window, window) if np.isfinite(window) else (float(longest), NONE)
    return {SCALE: Constant(scale, (interval[0], interval[1]), False), WINDOW: Constant(window, windows, False)}
