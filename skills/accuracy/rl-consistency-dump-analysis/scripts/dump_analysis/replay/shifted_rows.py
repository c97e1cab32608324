"""Logits that follow from other rows of the head than their own: all shifted, as where padding of the vocabulary was cut wrongly."""

from typing import NamedTuple

import numpy as np

from dump_analysis.floats import Array
from dump_analysis.replay.bounds import sum_of_products
from dump_analysis.replay.emulate import Emulated, explained
from dump_analysis.replay.modules import Work
from dump_analysis.replay.own_weights import BIAS, WEIGHT

_TOKENS = 8  # that are looked at, evenly spread
_ROWS = 1 << 14  # of the weight at a time
_MOST = 0.5  # of the logits: by chance one in some hundred follows from another row


class Shift(NamedTuple):
    """Logit n follows from row n + ``by``, in this share of the logits."""

    by: int
    share: float


def shift_of(work: Work, grid: str) -> Shift | None:
    """The shift of most logits of a head without bias; None where there is none."""
    weight = work.weights.get(WEIGHT)
    if weight is None or BIAS in work.weights or weight.rows != work.output.columns or weight.rows < 2:
        return None
    tokens = np.unique(np.linspace(0, work.output.rows - 1, _TOKENS).astype(np.int64))
    recorded = np.concatenate([work.output.read(at, at + 1) for at in map(int, tokens)])
    x = np.concatenate([work.inputs[0].read(at, at + 1) for at in map(int, tokens)])
    starts = range(0, weight.rows, _ROWS)
    parts = [_products(x, weight.read(start, min(weight.rows, start + _ROWS))) for start in starts]
    made = Emulated(*(np.concatenate(each, axis=1) for each in zip(*parts, strict=True))).to_format(grid)
    by = _alike(recorded, made.value)
    rolled = Emulated(*(np.roll(one, -by, axis=1) for one in made))
    share = float(explained(recorded, rolled).all(axis=0).mean())
    return Shift(by, share) if by and share > _MOST else None


def _products(x: Array, weight: Array) -> Emulated:
    sums = x @ weight.T
    reach = sum_of_products(x, weight, sums)
    return Emulated(sums, sums - reach, sums + reach)


def _alike(recorded: Array, made: Array) -> int:
    """By how many columns the second is to be moved to the left to be most like the first: the peak of their cross-correlation."""
    count = made.shape[1]
    spectra = np.fft.rfft(np.nan_to_num(made), axis=1) * np.conj(np.fft.rfft(np.nan_to_num(recorded), axis=1))
    by = int(np.argmax(np.fft.irfft(spectra.sum(axis=0), count)))
    return by if 2 * by <= count else by - count
