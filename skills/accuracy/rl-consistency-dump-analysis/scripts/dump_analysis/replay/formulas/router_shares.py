"""What a router hands on: the shares of all experts [T, E], nought for those that are not chosen.

inputs: (router logits [T, E], chosen experts [T, k]), or (x [T, H], chosen experts) with the router's ``weight``. The experts that were
chosen count where they may be those of the greatest logits; else those are taken that should have been. Bounds: those of the logits,
whose error moves the logarithm of a share by no more than twice as much, and `SHARE_ROUNDOFFS`.
Sources: Megatron-Core 0.16 `TopKRouter` (probabilities over all experts), transformers 5.19 and SGLang 0.5 (shares of the chosen).
"""

from itertools import product

import numpy as np

from dump_analysis.floats import Array
from dump_analysis.replay.emulate import Emulated, exactly
from dump_analysis.replay.formulas.kinds import Formula, Given, Variant
from dump_analysis.replay.formulas.router_logits import WAYS, Logits, greatest
from dump_analysis.replay.formulas.routing import ROUTED_SCALE, ROUTERS, TOP_K, Router, chosen, shares_of

SHARES = "router_shares"


def _shares(router: Router, logits: Emulated, given: Given) -> tuple[Array, Emulated]:
    experts = np.sort(given.inputs[1].astype(np.int64), axis=1)
    experts = np.where(greatest(logits, experts)[:, None], experts, chosen(logits.value, experts.shape[1]))
    found = shares_of(router, logits.value, experts)
    reach = 2.0 * (logits.high - logits.low).max(axis=1, keepdims=True)
    return experts, found.widened(reach * found.value).times(given.config[ROUTED_SCALE]).roundoffs(1)


def _in_places(experts: Array, shares: Array, count: int) -> Array:
    found = np.zeros((len(experts), count))
    np.put_along_axis(found, experts, shares, axis=1)
    return found


def _variant(router: Router, way: Logits) -> Variant:
    def run(given: Given) -> tuple[Emulated, ...]:
        logits = way.made(given)
        experts, shares = _shares(router, logits, given)
        return (Emulated(*(_in_places(experts, part, logits.value.shape[1]) for part in shares.to_format(given.dtype))),)

    def nominal(given: Given) -> tuple[Array, ...]:
        logits = exactly(way.made(given).value)
        experts, shares = _shares(router, logits, given)
        return (_in_places(experts, shares.value, logits.value.shape[1]),)

    name = "+".join(part for part in (router.name, way.name) if part)
    return Variant(name, way.source, run, way.applies, router.name, nominal)


_VARIANTS = tuple(_variant(router, way) for way, router in product(WAYS, ROUTERS))


def _nominal(given: Given) -> tuple[Array, ...]:
    return next(one.nominal(given) for one in _VARIANTS if one.nominal is not None and one.applies(given))


FORMULA = Formula(SHARES, _VARIANTS, _nominal, config=(TOP_K, ROUTED_SCALE), parameters=frozenset({"weight"}))
