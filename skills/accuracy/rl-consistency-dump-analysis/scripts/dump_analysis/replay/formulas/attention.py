"""softmax(q k^T scale) v of one head over the keys that each query may see: queries q [R, D], keys k [T, D], v [T, V] to [R, V].

inputs: q, k, v, the numbers of the queries among the keys [R, 1], and which keys count [T, 1]: 1, 0 (padding, which kernels mask), or
-1 (keys of others, which kernels are not handed). A query sees the keys up to its own number, the last ``attention_window`` of them
(infinite: all). ``attention_soft_cap`` c bounds scores to c tanh(score / c) (infinite: none). Weight ``sinks`` [1]: a score that takes
part in the sum of exponentials and has no value. Kernels and bounds: `attention_kernels`.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from dump_analysis.floats import Array
from dump_analysis.replay.emulate import Emulated, exactly
from dump_analysis.replay.formulas.attention_kernels import KERNELS, SCALE, SOFT_CAP, Kernel, head_of, truth
from dump_analysis.replay.formulas.kinds import Formula, Given, Variant

WINDOW = "attention_window"
CONFIG = (SCALE, WINDOW, SOFT_CAP)


class Mask(NamedTuple):
    """Which keys a query sees: up to ``ahead`` past its own number, and padding or not."""

    name: str
    source: str
    ahead: float = 0.0
    padding: bool = False


CAUSAL = Mask("", "")
MISTAKES = (
    Mask("mask_one_ahead", "a mask that lets each token see the next", 1.0),
    Mask("mask_one_behind", "a mask that hides each token from itself", -1.0),
    Mask("not_causal", "no causal mask", np.inf),
    Mask("others_seen", "padding that is not masked, or sequences that are not kept apart", padding=True),
)


def seen_by(rows: Array, valid: Array, window: float, mask: Mask = CAUSAL) -> Array:
    """Which keys each query sees, bool [R, T]. ``rows``: [R, 1], ``valid``: [T, 1]."""
    keys = np.arange(len(valid))[None, :]
    seen = (keys <= rows + mask.ahead) & (keys > rows - window)
    found: Array = seen if mask.padding else seen & (valid.T > 0)
    return found


def sink_of(given: Given) -> float | None:
    return float(given.weights["sinks"].reshape(-1)[0]) if "sinks" in given.weights else None


def handed(given: Given, mask: Mask) -> tuple[tuple[Array, ...], Array]:
    """What a kernel is handed of each key (k, v and their tables), and which keys each query of what is given sees."""
    _, k, v, rows, valid, *tables = given.inputs
    some = slice(None)
    if not mask.padding and (valid < 0).any():
        own = np.flatnonzero(valid[:, 0] >= 0)
        some = slice(int(own[0]), int(own[-1]) + 1)
        rows = rows - some.start
    seen = seen_by(rows, valid[some], given.config[WINDOW], mask)
    return (k[some], v[some], *(one[some] for one in tables[2:])), seen


def _truth(given: Given, mask: Mask) -> Array:
    (k, v), seen = handed(given, mask)
    return truth(given.inputs[0], k, v, seen, given.config, sink_of(given))


def _variant(name: str, kernel: Kernel, source: str, keys: int, mask: Mask) -> Variant:
    def run(given: Given) -> tuple[Emulated, ...]:
        (k, v), seen = handed(given, mask)
        head = head_of(exactly(given.inputs[0]), exactly(k), v, seen, given.config, sink_of(given))
        return (kernel(head, given.dtype),)

    def nominal(given: Given) -> tuple[Array, ...]:
        return (_truth(given, mask),)

    return Variant(name, source, run, applies_from(keys, mask), nominal=nominal)


def applies_from(keys: int, mask: Mask) -> Callable[[Given], bool]:
    """A kernel runs from so many keys on; padding can be seen where there is any."""
    return lambda given: len(given.inputs[1]) >= keys and (not mask.padding or bool((given.inputs[4] <= 0).any()))


def _nominal(given: Given) -> tuple[Array, ...]:
    return (_truth(given, CAUSAL),)


FORMULA = Formula(
    "attention",
    tuple(_variant(one.name, one.kernel, one.source, one.keys, CAUSAL) for one in KERNELS),
    _nominal,
    config=CONFIG,
    parameters=frozenset({"sinks"}),
    faults=tuple(_variant(f"{mask.name}+{one.name}", one.kernel, mask.source, one.keys, mask) for mask in MISTAKES for one in KERNELS),
)
