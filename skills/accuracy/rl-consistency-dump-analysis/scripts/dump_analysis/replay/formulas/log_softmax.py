"""Log-probabilities of every word: log softmax(logits / temperature), logits [T, V] to the same shape.

inputs: (logits,) or (logits, padding): columns [T, P] that pad the vocabulary and belong in no normaliser.
Bound, in roundoffs: those of the quotient, of the differences from the greatest logit, of exp and log, and of a sum of V terms of one
sign (`bounds.sum_of_products`); torch 2.13 on 32000 words is at most 6.8e-6 from the truth, a quarter of it. Sources: torch 2.13
log_softmax computes 16-bit logits in float32 and rounds once; verl (verl/utils/torch_functional.py, post_process_logits) divides stored
logits by the temperature in place, so that the quotient is rounded to their format.
"""

from collections.abc import Callable

import numpy as np

from dump_analysis.floats import Array
from dump_analysis.replay.bounds import FLOAT32_ROUNDOFF
from dump_analysis.replay.emulate import GRIDS, Emulated, exactly, grid_of
from dump_analysis.replay.formulas.kinds import Formula, Given, Variant, always

Scaled = Callable[[Array, float], Emulated]


# --- the quotient ---
def _in_float32(logits: Array, temperature: float) -> Emulated:
    return exactly(logits) if temperature == 1.0 else exactly(logits / temperature).roundoffs(1)


def _rounded_to(grid: str) -> Scaled:
    return lambda logits, temperature: _in_float32(logits, temperature).to_format(grid)


def _on(grid: str) -> Callable[[Given], bool]:
    """Whether logits are of a 16-bit format, and a quotient of them is none by itself."""
    return lambda given: given.config["temperature"] != 1.0 and grid_of(given.inputs[0]) == grid


# --- the normaliser ---
def normaliser(scaled: Emulated) -> Emulated:
    """log sum exp over the columns: [T, 1]."""
    top = scaled.value.max(axis=1, keepdims=True)
    below = scaled.value - top
    parts = np.exp(below)
    total = parts.sum(axis=1, keepdims=True)
    shares = parts / total
    moved = np.maximum(scaled.high - scaled.value, scaled.value - scaled.low)
    carried = (shares * moved).sum(axis=1, keepdims=True) + FLOAT32_ROUNDOFF * (shares * np.abs(below)).sum(axis=1, keepdims=True)
    added = 2.0 * np.sqrt(parts.shape[1] * (1.0 + (shares * shares).sum(axis=1, keepdims=True)))
    logarithm = np.log(total)
    reach = carried + FLOAT32_ROUNDOFF * (added + 4.0 + 4.0 * (np.abs(top) + np.abs(logarithm)))
    return exactly(top + logarithm).widened(reach)


def _less(scaled: Emulated, normal: Emulated) -> Emulated:
    """scaled - normal, with the roundings of the difference, whichever of its terms are taken first."""
    reach = 2.0 * FLOAT32_ROUNDOFF * (np.abs(scaled.value) + np.abs(normal.value))
    return scaled.plus(Emulated(-normal.value, -normal.high, -normal.low)).widened(reach)


# --- putting them together ---
Picked = Callable[[Given, Emulated], Emulated]


def _all(_given: Given, scaled: Emulated) -> Emulated:
    return scaled


def _variant(picked: Picked, name: str, source: str, scale: Scaled, applies: Callable[[Given], bool] = always) -> Variant:
    def run(given: Given) -> tuple[Emulated, ...]:
        scaled = scale(given.inputs[0], given.config["temperature"])
        return (_less(picked(given, scaled), normaliser(scaled)).to_format(given.dtype),)

    return Variant(name, source, run, applies)


def _padded(picked: Picked, at: int) -> Variant:
    """``at``: which input the padding is."""

    def scaled_logits(given: Given) -> tuple[Array, Array]:
        every = np.concatenate([given.inputs[0], given.inputs[at]], axis=1)
        return given.inputs[0] / given.config["temperature"], every / given.config["temperature"]

    def run(given: Given) -> tuple[Emulated, ...]:
        own, every = (exactly(part).roundoffs(1) for part in scaled_logits(given))
        return (_less(picked(given, own), normaliser(every)).to_format(given.dtype),)

    def nominal(given: Given) -> tuple[Array, ...]:
        own, every = scaled_logits(given)
        return (picked(given, exactly(own)).value - normaliser(exactly(every)).value,)

    return Variant(
        "padding_in_normaliser", "a trainer that pads its vocabulary for its ranks and normalises over all of its columns", run,
        lambda given: len(given.inputs) > at, "padded columns in the normaliser", nominal,
    )  # fmt: skip


def formula_of(operator: str, picked: Picked, inputs: int) -> Formula:
    """The formula of all log-probabilities, or of those that ``picked`` takes; ``inputs``: how many there are without padding."""

    def nominal(given: Given) -> tuple[Array, ...]:
        scaled = exactly(given.inputs[0] / given.config["temperature"])
        return (picked(given, scaled).value - normaliser(scaled).value,)

    return Formula(
        operator,
        (
            _variant(picked, "float32_inside", "torch 2.13 log_softmax", _in_float32),
            *(_variant(picked, f"scaled_{grid}", "verl divides stored logits in place", _rounded_to(grid), _on(grid)) for grid in GRIDS),
        ),
        nominal,
        config=("temperature",),
        faults=(_padded(picked, inputs),),
    )


FORMULA = formula_of("log_softmax", _all, 1)
