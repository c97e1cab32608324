"""Constants of an attention that the usual ones do not explain, from how its record differs from the truth.

A kernel need not be known: what is left is measured against the noise that rounding makes. Where probabilities are rounded at any
point, an output errs by sigma^2 = ULP^2 / 12 + (U^2 / 3) sum_j (p_j v_j)^2, U half the spacing of the format below 2; scores that are
rounded add (U s)^2 / 3 to each squared relative error.
"""

from collections.abc import Mapping, Sequence
from itertools import islice
from typing import NamedTuple

import numpy as np

from dump_analysis.floats import Array
from dump_analysis.replay import emulate, heads
from dump_analysis.replay.blocks import Block, blocks
from dump_analysis.replay.formulas.attention import CAUSAL, WINDOW, handed, seen_by, sink_of
from dump_analysis.replay.formulas.attention_kernels import SCALE, SOFT_CAP, moments
from dump_analysis.replay.formulas.kinds import Formula
from dump_analysis.replay.formulas.rotary import INTERLEAVED, TURNS, Table, is_stored
from dump_analysis.replay.modules import Work

NONE = float("inf")
_BLOCKS = 6  # heads, or parts of them, that are fitted to
_MOST_ROWS = 256  # of each
_TANGENT = 1e-4  # relative step of a numeric slope
_STEPS = 6  # of Newton
_OFF = (3.0, 30.0, 300.0)  # a row's mean squared deviation from which it does not follow
_GAIN = 0.9  # of the mean squared deviation that a constant must come under to be taken
_CAPS = (50.0, 30.0, 20.0)
_FIRST_ROWS = 4
_FURTHEST = 8.0  # that a fitted constant may be from the usual one, as a factor
_UNTURNED = 5  # inputs of an attention that is not a stretch

Config = Mapping[str, float]


class Core(NamedTuple):
    """One head: turned q [R, D] and k [T, D], v, numbers of the queries, keys that count, what was recorded, and the sink."""

    q: Array
    k: Array
    v: Array
    rows: Array
    valid: Array
    recorded: Array
    sink: float | None
    dtype: str

    def deviations(self, config: Config) -> Array:
        """(recorded - truth) / sigma of every element, [R, V]."""
        truth, sigma = self._truth(config)
        found: Array = (self.recorded - truth) / sigma
        return found

    def expected(self, config: Config) -> Array:
        """The truth over sigma."""
        truth, sigma = self._truth(config)
        found: Array = truth / sigma
        return found

    def slope(self, config: Config, name: str) -> Array:
        """By how much the truth moves, over sigma, as the logarithm of a constant does."""
        beside, _ = self._truth({**config, name: config[name] * (1 + _TANGENT)})
        truth, sigma = self._truth(config)
        found: Array = (beside - truth) / sigma / _TANGENT
        return found

    def _truth(self, config: Config) -> tuple[Array, Array]:
        seen = seen_by(self.rows, self.valid, config[WINDOW], CAUSAL)
        truth, spread = moments(self.q, self.k, self.v, seen, config, self.sink)
        return truth, np.sqrt(emulate.ulp(truth, self.dtype) ** 2 / 12 + _UNIT[self.dtype] ** 2 / 3 * spread)


_OPEN = {WINDOW: NONE}
_UNIT = {"bfloat16": 2.0**-8, "float16": 2.0**-11, "float32": 2.0**-24}


def cores_of(work: Work, formula: Formula, usual: Config, grid: str) -> tuple[list[Core], str]:
    """Some heads of an attention, or of a stretch whose q and k are turned by the pairing that comes nearest, and its function's name."""
    cut = [_cut(block) for block in islice(blocks(work, formula, usual, grid), _BLOCKS)]
    if len(cut[0].given.inputs) == _UNTURNED:
        return [core_of(block, "") for block in cut], ""
    turned = [([core_of(block, function) for block in cut], function) for function in ("", INTERLEAVED)]
    return min(turned, key=lambda one: distance(one[0], usual))


def _cut(block: Block) -> Block:
    some = slice(0, _MOST_ROWS)
    return block._replace(given=block.given._replace(inputs=heads.cut_to(block.given.inputs, some)), recorded=block.recorded[some])


def core_of(block: Block, function: str) -> Core:
    """One head, its q and k turned and rounded where they were not recorded so."""
    given = block.given._replace(config=_OPEN)
    q = given.inputs[0]
    (k, v, *table), _ = handed(given, CAUSAL)
    if table:
        stored = is_stored(table, given.dtype)
        turn = next(turn for turn in TURNS if turn.stepwise and (turn.function, turn.rounded_table) == (function, stored))
        q = turn.run(q, Table(*map(emulate.exactly, given.inputs[5:7])), given.dtype).value
        k = turn.run(k, Table(*map(emulate.exactly, table)), given.dtype).value
    valid = given.inputs[4]
    own = valid[valid[:, 0] >= 0]
    rows = given.inputs[3] - (0 if len(own) == len(valid) else int(np.argmax(valid[:, 0] >= 0)))
    return Core(q, k, v, rows, own, block.recorded, sink_of(given), given.dtype)


def distance(cores: Sequence[Core], config: Config) -> float:
    """The mean squared deviation: about 1 or less where the constants are right, whatever the kernel."""
    total = sum(float(np.nansum(core.deviations(config) ** 2)) for core in cores)
    return total / max(1, sum(core.recorded.size for core in cores))


def candidates(cores: Sequence[Core], start: Config) -> list[Config]:
    """Sets of constants to which the record points, those that come nearest first."""
    config, best = dict(start), distance(cores, start)
    for _ in range(2):
        for others in (_other_windows, _other_scales, _other_caps):
            found = min(others(cores, config), key=lambda one: distance(cores, one), default=config)
            if (reached := distance(cores, found)) < _GAIN * best:
                config, best = dict(found), reached
    caps = [config, *({**config, SOFT_CAP: cap} for cap in dict.fromkeys((start[SOFT_CAP], NONE, *_CAPS)))]  # a weak cap hides in the noise
    return [*(_with_fit(cores, one) for one in caps), *caps]


def _with_fit(cores: Sequence[Core], config: Config) -> Config:
    """With the scale that fits best."""
    return {**config, SCALE: _fitted(cores, config, SCALE)}


def _other_scales(cores: Sequence[Core], config: Config) -> list[Config]:
    return [_with_fit(cores, config)]


def _other_caps(cores: Sequence[Core], config: Config) -> list[Config]:
    return [_with_fit(cores, {**config, SOFT_CAP: cap}) for cap in (NONE, *_CAPS)]


def _other_windows(cores: Sequence[Core], config: Config) -> list[Config]:
    """Each window with the scale as it stands and with that of the first rows, which a window does not cut."""
    found: list[Config] = [{**config, WINDOW: NONE}, *({**config, WINDOW: float(at)} for at in _windows(cores, config))]
    count = _FIRST_ROWS
    while count < len(cores[0].recorded):
        early = _with_fit([_early(core, count) for core in cores], {**config, WINDOW: NONE})
        found += [{**early, WINDOW: float(at)} for at in _windows(cores, early)]
        count *= 2
    return found


def _early(core: Core, count: int) -> Core:
    return core._replace(q=core.q[:count], rows=core.rows[:count], recorded=core.recorded[:count])


def _windows(cores: Sequence[Core], config: Config) -> list[int]:
    """The first row that does not follow has lost its first key: about as many keys as there are before it.

    How far off a row must be is not known before the kernel is: several limits are tried.
    """
    squares = np.nanmean(cores[0].deviations({**config, WINDOW: NONE}) ** 2, axis=1)
    found: list[int] = []
    for limit in _OFF:
        off = np.flatnonzero(squares > limit)
        if len(off):
            first = int(cores[0].rows[off[0], 0]) - int(np.argmax(cores[0].valid[:, 0]))
            found += [at for at in (first, first - 1, first + 1) if at > 0]
    return list(dict.fromkeys(found))


def _fitted(cores: Sequence[Core], config: Config, name: str) -> float:
    """A positive constant by Newton's method on its logarithm."""
    value = start = config[name]
    for _ in range(_STEPS):
        along = against = 0.0
        for core in cores:
            base, beside = (core.deviations({**config, name: at}) for at in (value, value * (1 + _TANGENT)))
            slope = np.nan_to_num((base - beside) / _TANGENT)
            along += float((slope * np.nan_to_num(base)).sum())
            against += float((slope * slope).sum())
        if not against:
            return value
        step = float(np.clip(along / against, -0.5, 0.5))
        value = float(np.clip(value * np.exp(step), start / _FURTHEST, start * _FURTHEST))
        if abs(step) < 1e-8:
            break
    return value
