"""What a module's record leaves of the truth, measured in roundings and in the bound of its errors."""

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import NamedTuple

import numpy as np

from dump_analysis.floats import Array
from dump_analysis.replay import bounds, emulate, trials
from dump_analysis.replay.blocks import blocks, rows_in_cache, sample, spans
from dump_analysis.replay.formulas import Formula, Variant
from dump_analysis.replay.modules import Work
from dump_analysis.replay.noise import Noise, Sums
from dump_analysis.replay.trials import Trial

_WIDE = "float32"  # in which a variant runs without the roundings of the stored format
_LEAST = 0.5  # unit in the last place: one rounding
_TELLING = 10  # elements beyond the bound that one factor does not explain by chance
_FURTHEST = 4.0  # deviations for which an element counts at most: single ones are held against the bound itself, lines of many here
_NEARLY_NOTHING = 1e-300  # of a divisor that is nought
_DRIFT = 6.0  # deviations that the sum of a line's z may lie from nought


class Left(NamedTuple):
    """How many times the bound explains all elements but those that chance leaves; relative to the truth: root mean square, and the gain
    with its standard error; ``line``: the largest mean square of a token or a column over that of the whole; ``most``: the largest
    root mean square that a kernel which rounds inside makes; ``by_a_factor``: one factor of the truth explains every element, of
    which the truth leaves many.
    """

    scale: float
    relative: float
    gain: float
    stderr: float
    line: float
    most: float
    by_a_factor: bool

    @property
    def errs_as_kernels(self) -> bool:
        """Whether a kernel may leave so much, and no factor explains it."""
        return self.relative <= self.most and not self.by_a_factor


class Noises(NamedTuple):
    """What is left, against the noise of the calibrated bound and, for sums of products, of roundings to the stored format inside, which
    no module has calibrated; whether a line of tokens or columns errs to one side against the first."""

    by_bound: Noise
    by_format: Noise | None
    drifts: bool

    @property
    def rounding(self) -> Noise | None:
        """The noise by which it is rounding; None where it is more, or other."""
        first = self.by_format or self.by_bound
        return first if first.is_rounding and self.by_bound.is_even and not self.drifts else None


class _Part(NamedTuple):
    """Recorded less truth, the truth, its bound and the unit in the last place [tokens, columns]; where it begins."""

    left: Array
    truth: Array
    bound: Array
    unit: Array
    token: int
    column: int


def runs_on(work: Work, formula: Formula, config: Mapping[str, float]) -> tuple[Variant, ...]:
    """The variants that run on a work."""
    return formula.fitting(sample(work, formula, _WIDE).wide(config)[0])


def of(work: Work, trial: Trial, grid: str) -> Left:
    """Walks the whole module once."""
    rounding, found = _rounding(work, trial, grid), _Figures(work.output.rows, work.output.columns)
    for part in _parts(work, trial, grid):
        found.add(part, rounding)
    return found.left(_most_of_a_kernel(work, grid))


class _Figures:
    """Of a module, added up part by part."""

    def __init__(self, rows: int, columns: int) -> None:
        self._of, self._chance = max(rows * columns, 1), int(trials.allowed(rows * columns))
        self._needed, self._outside, self._factors = np.zeros(0), 0, (0.0, np.inf)
        self._left = self._truth = self._along = 0.0
        self._tokens, self._columns = np.zeros((2, rows)), np.zeros((2, columns))  # squares of what is left, and of the bound

    def add(self, part: _Part, rounding: float) -> None:
        beyond = np.maximum(np.abs(part.left) - rounding * part.unit, 0.0)
        over = np.divide(beyond, part.bound, out=np.where(beyond > 0, np.inf, 0.0), where=part.bound > 0)
        self._needed = np.sort(np.concatenate([self._needed, over.reshape(-1)]))[-self._chance - 1 :]
        self._outside += int((over > 1).sum())
        self._factors = _factors(part, rounding, self._factors)
        squares, allowed = part.left**2, part.bound**2
        self._left += float(squares.sum())
        self._truth += float((part.truth**2).sum())
        self._along += float((part.left * part.truth).sum())
        self._tokens[:, part.token : part.token + len(squares)] += squares.sum(1), allowed.sum(1)
        self._columns[:, part.column : part.column + squares.shape[1]] += squares.sum(0), allowed.sum(0)

    def left(self, most: float) -> Left:
        truth = max(self._truth, _NEARLY_NOTHING)
        gain = self._along / truth
        stderr = float(np.sqrt(max(self._left - gain * self._along, 0.0) / self._of / truth))
        shares = [squares / np.maximum(allowed, _NEARLY_NOTHING) for squares, allowed in (self._tokens, self._columns)]
        lines = max(float(share.max(initial=0.0)) for share in shares)
        whole = max(self._left / max(float(self._tokens[1].sum()), _NEARLY_NOTHING), _NEARLY_NOTHING)
        by_a_factor = self._outside >= _TELLING and self._factors[0] <= self._factors[1]
        scale = float(self._needed[0]) if self._needed.size else 0.0
        return Left(scale, float(np.sqrt(self._left / truth)), 1 + gain, stderr, lines / whole, most, by_a_factor)


def _factors(part: _Part, rounding: float, known: tuple[float, float]) -> tuple[float, float]:
    """The factors of the truth that every element allows, of those that the elements before allow."""
    some = part.truth != 0
    truth, half = part.truth[some], (rounding * part.unit + part.bound)[some] / np.abs(part.truth[some])
    ratio = 1 + part.left[some] / truth
    return max(known[0], float((ratio - half).max(initial=0.0))), min(known[1], float((ratio + half).min(initial=np.inf)))


def _most_of_a_kernel(work: Work, grid: str) -> float:
    """Partial sums that are kept in the stored format err by its unit, those in float32 by the root of their number in roundoffs."""
    return 2 * max(2.0 ** -emulate.PRECISION[grid], bounds.FLOAT32_ROUNDOFF * work.inputs[0].columns ** 0.5)


def _rounding(work: Work, trial: Trial, grid: str) -> float:
    """By how many units in the last place the variant's own roundings move a result, as a sample shows."""
    given, _ = sample(work, trial.formula, grid).wide(trial.config)
    made, truth = trial.variant.run(given)[0].value, trial.formula.truth(given, trial.variant)[0]
    return max(_LEAST, float((np.abs(made - truth) / _unit(made, truth, grid)).max()))


def _unit(one: Array, two: Array, grid: str) -> Array:
    return emulate.ulp(np.maximum(np.abs(one), np.abs(two)), grid)


def _parts(work: Work, trial: Trial, grid: str) -> Iterator[_Part]:
    for block in blocks(work, trial.formula, trial.config, _WIDE):
        given, recorded = block.wide(trial.config)
        made = trial.variant.run(given)[0]
        for start, stop in spans(len(recorded), rows_in_cache(recorded.shape[1])):
            value, record = made.value[start:stop], recorded[start:stop]
            good = np.isfinite(record) & np.isfinite(value)
            record, value = np.where(good, record, 0.0), np.where(good, value, 0.0)
            bound = np.where(good, (made.high[start:stop] - made.low[start:stop]) / 2, 0.0)
            yield _Part(record - value, value, bound, _unit(value, record, grid), block.token + start, block.column)


def noises(work: Work, trial: Trial, grid: str, usual: float) -> Noises:
    """Against deviations of the rounding, and a third of ``usual`` times the bound; and of what rounding inside to the format makes."""
    shape = work.output.rows, work.output.columns
    by_bound, by_format, drift = Sums(*shape), Sums(*shape), _Drift(*shape)
    rounding, unit = _rounding(work, trial, grid), 2.0 ** -emulate.PRECISION[grid]
    for part in _parts(work, trial, grid):
        squares = (2 * rounding * part.unit) ** 2 / 12
        inside = np.sqrt(squares + (unit * bounds.of_terms(part.bound, work.inputs[0].columns)) ** 2 / 3)
        by_format.add(part.left / inside, part.truth / inside, part.token, part.column)
        sigma = np.sqrt(squares + (usual * part.bound / 3) ** 2)
        z = np.clip(part.left / sigma, -_FURTHEST, _FURTHEST)
        by_bound.add(z, part.truth / sigma, part.token, part.column)
        drift.add(z, part.token, part.column)
    products = trial.formula.operator == "linear"
    return Noises(by_bound.noise(), by_format.noise() if products else None, drift.largest(_repeats(work)) >= 1)


class _Drift:
    """Sums of z along tokens and columns."""

    def __init__(self, tokens: int, columns: int) -> None:
        self._tokens, self._columns = np.zeros(tokens), np.zeros(columns)

    def add(self, z: Array, token: int, column: int) -> None:
        self._tokens[token : token + z.shape[0]] += z.sum(1)
        self._columns[column : column + z.shape[1]] += z.sum(0)

    def largest(self, repeats: float) -> float:
        """``repeats``: the sum of the squared numbers of equal tokens, which err alike."""
        over = (self._tokens / len(self._columns) ** 0.5, self._columns / repeats**0.5)
        return max(float(np.abs(one).max(initial=0.0)) for one in over) / _DRIFT


def _repeats(work: Work) -> float:
    found: Counter[bytes] = Counter()
    for start, stop in spans(work.output.rows, rows_in_cache(work.output.columns)):
        found.update(row.tobytes() for row in work.output.stored(start, stop))
    return float(sum(count * count for count in found.values()))
