"""Small faults, put into what a formula is given: another weight, input or constant than the record was made of."""

import numpy as np
from dump_analysis.floats import Array
from dump_analysis.replay.emulate import to_format, ulp
from dump_analysis.replay.formulas import Given


def with_weight(given: Given, changed: Array) -> Given:
    """With another weight."""
    return given._replace(weights={**given.weights, "weight": changed})


def _stored(given: Given, numbers: Array) -> Array:
    return to_format(numbers, given.dtype)


def one_row(rng: np.random.Generator, given: Given, *, factor: float) -> Given:
    weight = given.weights["weight"].copy()
    at = rng.integers(len(weight))
    weight[at] = _stored(given, weight[at] * factor)
    return with_weight(given, weight)


def stale_row(rng: np.random.Generator, given: Given) -> Given:
    """2 % of one row's weights are one unit off, as one step of an optimizer leaves them."""
    weight = given.weights["weight"].copy()
    row, moved = rng.integers(len(weight)), rng.permutation(weight.shape[1])[: weight.shape[1] // 50]
    weight[row, moved] += ulp(weight[row, moved], given.dtype)
    return with_weight(given, weight)


def one_weight(rng: np.random.Generator, given: Given) -> Given:
    """One weight of typical size is one unit off."""
    weight = given.weights["weight"].copy()
    row = rng.integers(len(weight))
    at = np.argsort(np.abs(weight[row]))[int(0.7 * weight.shape[1])]
    weight[row, at] += ulp(weight[row, at], given.dtype)
    return with_weight(given, weight)


def few_weights(rng: np.random.Generator, given: Given) -> Given:
    """1e-5 of the weights are 5 % off."""
    weight = given.weights["weight"].copy()
    at = rng.permutation(weight.size)[: max(1, round(1e-5 * weight.size))]
    weight.reshape(-1)[at] = _stored(given, weight.reshape(-1)[at] * 1.05)
    return with_weight(given, weight)


def one_channel(rng: np.random.Generator, given: Given) -> Given:
    x = given.inputs[0].copy()
    at = rng.integers(x.shape[1])
    x[:, at] *= 1.004
    return given._replace(inputs=(x, *given.inputs[1:]))


def one_token(rng: np.random.Generator, given: Given) -> Given:
    x = given.inputs[0].copy()
    x[rng.integers(len(x))] *= 1.004
    return given._replace(inputs=(x, *given.inputs[1:]))


def one_input(rng: np.random.Generator, given: Given) -> Given:
    """One element of an input of typical size is one unit off."""
    x = given.inputs[0].copy()
    row = rng.integers(len(x))
    at = np.argsort(np.abs(x[row]))[int(0.7 * x.shape[1])]
    x[row, at] += ulp(x[row, at], given.dtype)
    return given._replace(inputs=(x, *given.inputs[1:]))


def lost_bias(rng: np.random.Generator, given: Given) -> Given:
    """A bias of 3e-5 of the output's deviation, which is 1, that the module did not add."""
    return given._replace(weights={**given.weights, "bias": rng.standard_normal(len(given.weights["weight"])) * 3e-5})
