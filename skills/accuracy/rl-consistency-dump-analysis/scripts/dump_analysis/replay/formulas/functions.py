"""The activations that feed-forward blocks use, in float64, and how far float32 may be from them."""

from collections.abc import Callable
from math import sqrt
from typing import NamedTuple

import numpy as np

from dump_analysis.floats import Array
from dump_analysis.replay.bounds import ACTIVATION_ROUNDOFFS, FLOAT32_ROUNDOFF, GELU_ROUNDOFFS
from dump_analysis.replay.emulate import Emulated
from dump_analysis.replay.formulas.erf import erf


class Activation(NamedTuple):
    """``name``: the function; ``run``: its value; ``reach``: roundoffs of |x| that are allowed beside those of the value."""

    name: str
    run: Callable[[Array], Array]
    reach: float

    def emulated(self, x: Array) -> Emulated:
        """Its value in float32, not rounded further."""
        value = self.run(x)
        by = FLOAT32_ROUNDOFF * (ACTIVATION_ROUNDOFFS * np.abs(value) + self.reach * np.abs(x))
        return Emulated(value, value - by, value + by)


def _silu(x: Array) -> Array:
    with np.errstate(over="ignore"):
        return x / (1.0 + np.exp(-x))


def _gelu_erf(x: Array) -> Array:
    return 0.5 * x * (1.0 + erf(x / sqrt(2.0)))


def _gelu_tanh(x: Array) -> Array:
    return 0.5 * x * (1.0 + np.tanh(sqrt(2.0 / np.pi) * (x + 0.044715 * x**3)))


def _gelu_sigmoid(x: Array) -> Array:
    return _silu(1.702 * x) / 1.702


def _relu(x: Array) -> Array:
    return np.maximum(x, 0.0)


def _relu_squared(x: Array) -> Array:
    return np.maximum(x, 0.0) ** 2


ACTIVATIONS = (
    Activation("silu", _silu, 0.0),
    Activation("gelu_tanh", _gelu_tanh, GELU_ROUNDOFFS),
    Activation("gelu_erf", _gelu_erf, GELU_ROUNDOFFS),
    Activation("gelu_sigmoid", _gelu_sigmoid, 0.0),
    Activation("relu", _relu, 0.0),
    Activation("relu_squared", _relu_squared, 0.0),
)
