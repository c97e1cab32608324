"""The experts that a router chooses: their numbers [T, k] in any order; inputs as those of `router_shares`, without a choice.

A choice is right where it may be that of the greatest logits: experts that tie are as good as each other, and then all of a token is bit
equal to what it should be. Source: top-k of torch, in every router.
"""

import numpy as np

from dump_analysis.floats import Array
from dump_analysis.replay.emulate import Emulated, exactly
from dump_analysis.replay.formulas.kinds import Formula, Given, Variant
from dump_analysis.replay.formulas.router_logits import WAYS, Logits, greatest
from dump_analysis.replay.formulas.routing import TOP_K, chosen

CHOICE = "expert_choice"


def _variant(way: Logits) -> Variant:
    def best(given: Given) -> Array:
        found: Array = chosen(way.made(given).value, int(given.config[TOP_K])).astype(np.float64)
        return found

    def compared(given: Given, recorded: Array) -> tuple[Array, Array]:
        given = given._replace(inputs=tuple(made.astype(np.float64) for made in given.inputs))
        weights = {name: made.astype(np.float64) for name, made in given.weights.items()}
        right = greatest(way.made(given._replace(weights=weights)), recorded.astype(np.int64))
        equal = np.broadcast_to(right[:, None], recorded.shape)
        return equal, ~equal

    def run(given: Given) -> tuple[Emulated, ...]:
        return (exactly(best(given)),)

    return Variant(way.name or "greatest_logits", way.source, run, way.applies, nominal=lambda given: (best(given),), compared=compared)


_VARIANTS = tuple(map(_variant, WAYS))


def _nominal(given: Given) -> tuple[Array, ...]:
    return (next(one.run(given)[0].value for one in _VARIANTS if one.applies(given)),)


FORMULA = Formula(CHOICE, _VARIANTS, _nominal, config=(TOP_K,), parameters=frozenset({"weight"}))
