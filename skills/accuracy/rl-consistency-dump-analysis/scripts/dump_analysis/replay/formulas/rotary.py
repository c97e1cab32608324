"""Pairs of columns turned by position times frequency: one head x [T, D] to the same shape; columns past the turned ones pass.

inputs: (x, cos, sin) with cos and sin [T, pairs] as they were recorded, (x, angles) with angles [T, pairs] in float32, or
(x, positions) with positions [T, 1] and the constant ``rope_theta``: frequencies theta^(-i / pairs), or
one constant a frequency. Pair i is columns (i, i + pairs), or
(2 i, 2 i + 1) in function "interleaved". A table that is made here is rounded to the stored format, or kept in float32.
Bound: angles err by `ANGLE_ROUNDOFFS` of themselves, cos and sin by two roundoffs more; products and sum by three of |x cos| + |x sin|.
Sources: transformers 5, Megatron-Core 0.16 and SGLang 0.5 on CPU round both products and the sum; vLLM 0.32 CPU rounds once.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from dump_analysis.floats import Array
from dump_analysis.replay.bounds import FLOAT32_ROUNDOFF
from dump_analysis.replay.emulate import Emulated, exactly, to_format
from dump_analysis.replay.formulas.kinds import Formula, Given, Variant

ANGLE_ROUNDOFFS = 4.0  # frequency (a power and a quotient) and product: 3 seen in torch 2.13 for theta of 1e4 to 1e7
_SCALED_ROUNDOFFS = 8.0  # of frequencies that are divided and blended: four operations more
_SUM_ROUNDOFFS = 3.0
INTERLEAVED = "interleaved"
# Names of the constants; the last is what cos and sin are multiplied by (YaRN's attention factor), 1 where there is none.
THETA, PAIRS, MAGNITUDE = "rope_theta", "rope_pairs", "rope_magnitude"
FREQUENCY = "rope_frequency"  # what people are told of one


class Table(NamedTuple):
    """cos and sin of every token and pair, [T, pairs] each."""

    cos: Emulated
    sin: Emulated


class Angles(NamedTuple):
    """Where angles are rounded, None: to float32 at most; ``ahead``: tokens by which positions are off."""

    name: str
    source: str
    frequency: str | None = None
    angle: str | None = None
    ahead: int = 0


RIGHT = Angles("", "transformers 5, vLLM 0.32, SGLang 0.5, Megatron-Core 0.16")
MISTAKES = (
    Angles(
        "angles_bfloat16", "a model cast to bfloat16 whole: frequencies and angles lose what tells tokens apart", "bfloat16", "bfloat16"
    ),
    Angles("frequencies_bfloat16", "a model cast to bfloat16 whole, its angles in float32", "bfloat16"),
    Angles("products_bfloat16", "positions times frequencies rounded to bfloat16", None, "bfloat16"),
    Angles("positions_one_ahead", "positions that count from one", ahead=1),
    Angles("positions_one_behind", "positions that lag", ahead=-1),
)


def frequencies(theta: float, pairs: int) -> Array:
    """theta^(-i / pairs), [pairs]."""
    found: Array = theta ** (-np.arange(pairs) / pairs)
    return found


def frequency_name(pair: int) -> str:
    """The constant that holds the frequency of a pair, where no base gives them all."""
    return f"{THETA}.{pair:03d}"


def angles_of(positions: Array, config: Mapping[str, float], made: Angles = RIGHT) -> Emulated:
    """Position times frequency, [T, pairs]: those of a base, or each as the constants say. ``positions``: [T, 1]."""
    pairs = int(config[PAIRS])
    own = frequencies(config[THETA], pairs) if THETA in config else np.array([config[frequency_name(pair)] for pair in range(pairs)])
    inverse, roundoffs = exactly(own[None, :]), ANGLE_ROUNDOFFS if THETA in config else _SCALED_ROUNDOFFS
    places = positions + made.ahead
    if made.frequency is not None:
        inverse = inverse.roundoffs(roundoffs).to_format(made.frequency)
    if made.angle is not None:
        places = to_format(places, made.angle)
    product = inverse.times(places).roundoffs(roundoffs if made.frequency is None else 1.0)
    return product if made.angle is None else product.to_format(made.angle)


def table_of(angles: Emulated, magnitude: float = 1.0) -> Table:
    """cos and sin in float32, times a number, not rounded further. Both change by no more than the angle does."""
    reach = np.maximum(angles.high - angles.value, angles.value - angles.low) + 2 * FLOAT32_ROUNDOFF
    both = (Emulated(value, value - reach, value + reach) for value in (np.cos(angles.value), np.sin(angles.value)))
    return Table(*(one if magnitude == 1.0 else one.times(magnitude).roundoffs(2) for one in both))


def turned(x: Array, table: Table, *, interleaved: bool, stepwise: bool, dtype: str) -> Emulated:
    """One head [T, D] turned and rounded to ``dtype``. ``stepwise``: both products are rounded, too."""
    pairs = table.cos.value.shape[1]
    left, right = _pairs(x, pairs, interleaved=interleaved)
    first = _sum(table.cos.times(left), table.sin.times(-right), dtype, stepwise=stepwise)
    second = _sum(table.cos.times(right), table.sin.times(left), dtype, stepwise=stepwise)
    rest = x[:, 2 * pairs :]
    return Emulated(*(_joined(one, two, rest, interleaved=interleaved) for one, two in zip(first, second, strict=True)))


def _pairs(x: Array, pairs: int, *, interleaved: bool) -> tuple[Array, Array]:
    if interleaved:
        return x[:, : 2 * pairs : 2], x[:, 1 : 2 * pairs : 2]
    return x[:, :pairs], x[:, pairs : 2 * pairs]


def _sum(one: Emulated, two: Emulated, dtype: str, *, stepwise: bool) -> Emulated:
    if stepwise:
        return one.to_format(dtype).plus(two.to_format(dtype)).to_format(dtype)
    reach = _SUM_ROUNDOFFS * FLOAT32_ROUNDOFF * (np.abs(one.value) + np.abs(two.value))
    return one.plus(two).widened(reach).to_format(dtype)


def _joined(first: Array, second: Array, rest: Array, *, interleaved: bool) -> Array:
    both = np.stack([first, second], -1).reshape(len(first), -1) if interleaved else np.concatenate([first, second], 1)
    return np.concatenate([both, rest], 1)


# --- what is given ---


def _is_recorded(given: Given) -> bool:
    return len(given.inputs) == 3


def _is_rebuilt(given: Given) -> bool:
    return len(given.inputs) == 2 and PAIRS in given.config


def _given_table(given: Given, made: Angles) -> Table:
    """The table that was recorded, or that follows from angles or positions, in float32."""
    if _is_recorded(given):
        return Table(exactly(given.inputs[1]), exactly(given.inputs[2]))
    if not _is_rebuilt(given):
        return table_of(exactly(given.inputs[1]), given.config.get(MAGNITUDE, 1.0))
    return table_of(angles_of(given.inputs[1], given.config, made), given.config.get(MAGNITUDE, 1.0))


def is_stored(table: Sequence[Array], dtype: str) -> bool:
    """Whether a recorded table lies on a format's grid."""
    return all(bool((to_format(part, dtype) == part).all()) for part in table)


class Turn(NamedTuple):
    """How a rotation is computed, and its name among variants."""

    interleaved: bool
    stepwise: bool
    rounded_table: bool

    @property
    def name(self) -> str:
        pairing = f"{INTERLEAVED}+" if self.interleaved else ""
        return f"{pairing}{'' if self.rounded_table else 'table_float32+'}{'rotated_stepwise' if self.stepwise else 'rotated_once'}"

    @property
    def function(self) -> str:
        return INTERLEAVED if self.interleaved else ""

    @property
    def source(self) -> str:
        return "transformers, Megatron-Core 0.16, SGLang 0.5 CPU" if self.stepwise else "vLLM 0.32 CPU, kernels that round once"

    def run(self, x: Array, table: Table, dtype: str) -> Emulated:
        """x [T, D] turned by a float32 or stored table."""
        if self.rounded_table:
            table = Table(table.cos.to_format(dtype), table.sin.to_format(dtype))
        return turned(x, table, interleaved=self.interleaved, stepwise=self.stepwise, dtype=dtype)


TURNS = tuple(Turn(*way) for way in ((False, True, True), (False, False, True), (False, True, False), (False, False, False)))
TURNS = (*TURNS, *(turn._replace(interleaved=True) for turn in TURNS))


def _variant(turn: Turn, made: Angles, applies: Callable[[Given], bool]) -> Variant:
    def run(given: Given) -> tuple[Emulated, ...]:
        return (turn.run(given.inputs[0], _given_table(given, made), given.dtype),)

    def nominal(given: Given) -> tuple[Array, ...]:
        return (truth(given.inputs[0], _given_table(given, RIGHT), interleaved=turn.interleaved),)

    name = f"{made.name}+{turn.name}" if made.name else turn.name
    return Variant(name, made.source if made.name else turn.source, run, applies, turn.function, nominal)


def truth(x: Array, table: Table, *, interleaved: bool) -> Array:
    """One head turned in float64."""
    cos, sin = table.cos.value, table.sin.value
    pairs = cos.shape[1]
    left, right = _pairs(x, pairs, interleaved=interleaved)
    return _joined(cos * left - sin * right, cos * right + sin * left, x[:, 2 * pairs :], interleaved=interleaved)


def _nominal(given: Given) -> tuple[Array, ...]:
    return (truth(given.inputs[0], _given_table(given, RIGHT), interleaved=False),)


def _runs(turn: Turn) -> Callable[[Given], bool]:
    """A table that was recorded says itself whether it is rounded."""
    return lambda given: not _is_recorded(given) or is_stored(given.inputs[1:], given.dtype) == turn.rounded_table


FORMULA = Formula(
    "rotary",
    tuple(_variant(turn, RIGHT, _runs(turn)) for turn in TURNS),
    _nominal,
    faults=tuple(_variant(turn, made, _is_rebuilt) for made in MISTAKES for turn in TURNS),
)
