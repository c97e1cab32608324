"""cos and sin of position times frequency, or the angles themselves: positions [T, 1] to [T, 2 pairs] (cos, then sin), or [T, pairs].

The constant ``rope_theta`` is the base, or there is one constant a frequency; ``rope_magnitude`` multiplies cos and sin. Bound: as in
`rotary`.
Sources: transformers 5.19 and Megatron-Core 0.16 compute both in float32 and round cos and sin to the stored format.
"""

import numpy as np

from dump_analysis.floats import Array
from dump_analysis.replay.emulate import Emulated
from dump_analysis.replay.formulas.kinds import Formula, Given, Variant
from dump_analysis.replay.formulas.rotary import MAGNITUDE, MISTAKES, PAIRS, RIGHT, Angles, angles_of, table_of


def _angles(given: Given, made: Angles) -> Emulated:
    return angles_of(given.inputs[0], given.config, made)


def _table(given: Given, made: Angles) -> Emulated:
    cos, sin = table_of(_angles(given, made), given.config.get(MAGNITUDE, 1.0))
    return Emulated(*(np.concatenate(parts, 1) for parts in zip(cos, sin, strict=True)))


def _variant(made: Angles, *, turned: bool) -> Variant:
    def run(given: Given) -> tuple[Emulated, ...]:
        return ((_table if turned else _angles)(given, made).to_format(given.dtype),)

    def nominal(given: Given) -> tuple[Array, ...]:
        return ((_table if turned else _angles)(given, RIGHT).value,)

    return Variant(made.name or "float32", made.source, run, nominal=nominal)


def _formula(operator: str, *, turned: bool) -> Formula:
    def nominal(given: Given) -> tuple[Array, ...]:
        return ((_table if turned else _angles)(given, RIGHT).value,)

    faults = tuple(_variant(made, turned=turned) for made in MISTAKES)
    return Formula(operator, (_variant(RIGHT, turned=turned),), nominal, config=(PAIRS,), faults=faults)


FORMULA = _formula("rotary_table", turned=True)
ANGLES = _formula("rotary_angles", turned=False)
