"""Linears whose kernel is in no list, in all layers of a side: what they need of the bound, whether they follow, and what stands out.

Kernels and faults are made here in float64 and rounded where a kernel of that kind rounds.
"""

from collections.abc import Callable

import numpy as np
import pytest
from dump_analysis.floats import Array
from dump_analysis.replay import calibration
from dump_analysis.replay.calibration import Recorded
from dump_analysis.replay.emulate import to_format
from dump_analysis.replay.formulas import FORMULAS, Given
from dump_analysis.replay.one_side import Replayed, replay
from dump_analysis.tensors import Files
from works import work

DTYPE = "bfloat16"
TOKENS, INNER, WIDTH, LAYERS = 64, 512, 192, 4
Kernel = Callable[[Array, Array], Array]
Fault = Callable[[Array], Array]


# --- kernels ---


def cut(numbers: Array, bits: int) -> Array:
    """Towards nought to so many bits."""
    unit = 2.0 ** (np.floor(np.log2(np.maximum(np.abs(numbers), 1e-300))) + 1 - bits)
    return np.trunc(numbers / unit) * unit


def exact(x: Array, weight: Array) -> Array:
    return x @ weight.T


def cutting(bits: int, step: int) -> Kernel:
    """A sum that is cut after every few terms."""

    def run(x: Array, weight: Array) -> Array:
        total = np.zeros((len(x), len(weight)))
        for at in range(0, x.shape[1], step):
            total = cut(total + x[:, at : at + step] @ weight[:, at : at + step].T, bits)
        return total

    return run


def in_blocks(x: Array, weight: Array) -> Array:
    """Blocks of 64 terms and their sum in float16."""
    total = np.zeros((len(x), len(weight)))
    for at in range(0, x.shape[1], 64):
        total = to_format(total + to_format(x[:, at : at + 64] @ weight[:, at : at + 64].T, "float16"), "float16")
    return total


def in_three_parts(x: Array, weight: Array) -> Array:
    """Three partial sums, each rounded as it is stored, as ranks or a split of K leave them."""
    total: Array = np.zeros((len(x), len(weight)))
    for one, two in zip(np.array_split(x, 3, axis=1), np.array_split(weight, 3, axis=1), strict=True):
        total = to_format(total + to_format(one @ two.T, DTYPE), DTYPE)
    return total


def in_eight_bits(x: Array, weight: Array) -> Array:
    """Both factors in 4 bits of precision, scaled by the largest of the whole: no rounding of data alone, for weights are constants."""
    (one, of_one), (two, of_two) = (_in_eight_bits(numbers) for numbers in (x, weight))
    found: Array = one @ two.T * of_one * of_two
    return found


def _in_eight_bits(numbers: Array) -> tuple[Array, float]:
    """And what they are to be multiplied by."""
    scale = float(np.abs(numbers).max()) / 448.0
    unit = 2.0 ** (np.floor(np.log2(np.maximum(np.abs(numbers / scale), 2.0**-6))) - 3)
    return np.round(numbers / scale / unit) * unit, scale


EVEN: dict[str, Kernel] = {"in_blocks": in_blocks, "in_three_parts": in_three_parts}
ONE_SIDED: dict[str, Kernel] = {"cut_to_14": cutting(14, 8)}
UNLISTED = {**EVEN, **ONE_SIDED}


# --- faults, put into what a kernel made ---


def one_column(made: Array) -> Array:
    found = made.copy()
    found[:, 7] *= 1.01
    return found


def one_token(made: Array) -> Array:
    found = made.copy()
    found[11] *= 1.02
    return found


def one_percent(made: Array) -> Array:
    return made * 1.01


def one_in_a_thousand(made: Array) -> Array:
    return made * 1.001


def lost_bias(made: Array) -> Array:
    return made + np.random.default_rng(5).standard_normal(made.shape[1]) * 0.02


FAULTS = [one_column, one_token, one_percent, lost_bias]


def layers(
    kernel: Kernel, faulty: tuple[int, ...] = (), fault: Fault = one_percent, mean: float = 0.0, count: int = LAYERS
) -> list[Replayed]:
    """The same linear of several layers, replayed; a fault in some."""
    found = []
    for layer in range(count):
        rng = np.random.default_rng(layer)
        x = to_format(rng.standard_normal((TOKENS, INNER)) * (1 + layer) + mean, DTYPE)
        weight = to_format(rng.standard_normal((WIDTH, INNER)) / INNER**0.5, DTYPE)
        made = kernel(x, weight)
        made = to_format(fault(made) if layer in faulty else made, DTYPE)
        found.append(replay(work(("linear",), made, [x], {"weight": weight}), {}))
    return found


def calibrated(replays: list[Replayed]) -> list[Replayed]:
    files = Files()
    found = calibration.calibrated([Recorded(f"layers.{at}.down.out", one, files) for at, one in enumerate(replays)], {})
    return [one for one in found if isinstance(one, Replayed)]


# --- what a kernel needs ---


@pytest.mark.parametrize("mean", [0.0, 1.0])
@pytest.mark.parametrize("kernel", list(EVEN.values()), ids=list(EVEN))
def test_an_even_kernel_in_all_layers_follows_by_the_bound(kernel: Kernel, mean: float) -> None:
    """Would catch a bound that is not widened, and one that is widened by the module itself alone."""
    before = layers(kernel, mean=mean)
    assert not any(one.follows for one in before)
    found = calibrated(before)
    assert all(one.follows and not one.explained for one in found)
    assert all(one.kernel is not None and not one.kernel.stands_out for one in found)
    scale = calibration.scale_of(found)
    assert scale is not None
    assert scale > 10


def test_the_bound_that_a_module_needs_is_the_one_that_its_interval_lacks() -> None:
    """The scale against a definition that is written otherwise: widened so far and no less, the interval explains the module's elements
    but for the one or two that chance is allowed."""
    (found, *_) = calibrated(layers(in_blocks))
    assert found.kernel is not None
    read = [one.read(0, one.rows) for one in (found.work.inputs[0], found.work.weights["weight"], found.work.output)]
    made = FORMULAS["linear"].variants[0].run(Given((read[0],), {"weight": read[1]}, "float32", {}))[0]
    reach = (made.high - made.low) / 2
    for scale, most in ((1.001 * found.kernel.scale, 1), (0.99 * found.kernel.scale, None)):
        low, high = (to_format(made.value + sign * scale * reach, DTYPE) for sign in (-1, 1))
        outside = int(((read[2] < low) | (read[2] > high)).sum())
        assert outside <= most if most is not None else outside > 1


@pytest.mark.parametrize("kernel", list(ONE_SIDED.values()), ids=list(ONE_SIDED))
def test_a_one_sided_kernel_follows_from_nothing_and_is_no_fault(kernel: Kernel) -> None:
    """Would catch a bound that swallows a gain; an accumulator that cuts and a factor are not told apart."""
    found = calibrated(layers(kernel))
    assert not any(one.follows for one in found)
    assert all(one.kernel is not None and one.kernel.errs_as_kernels and not one.kernel.stands_out for one in found)
    assert all(one.kernel.gain < 0.9995 for one in found if one.kernel is not None)


def test_another_function_in_all_layers_is_no_kernel() -> None:
    """Would catch weights in 8 bits that are taken for rounding."""
    found = calibrated(layers(in_eight_bits))
    assert not any(one.follows for one in found)
    assert all(one.kernel is not None and not one.kernel.errs_as_kernels for one in found)


@pytest.mark.parametrize("fault", [one_column, one_token, one_percent, one_in_a_thousand, lost_bias])
@pytest.mark.parametrize("kernel", [exact, *EVEN.values(), *ONE_SIDED.values()], ids=["exact", *UNLISTED])
def test_a_fault_in_all_layers_is_not_swallowed(kernel: Kernel, fault: Fault) -> None:
    """What all modules have in common calibrates them: the fault with them. Three parts are rounded before the fault is put in, and a
    thousandth is then less than half a unit."""
    if (kernel, fault) == (in_three_parts, one_in_a_thousand):
        fault = one_percent
    assert not any(one.follows for one in calibrated(layers(kernel, tuple(range(LAYERS)), fault)))


# --- a fault in one layer ---


@pytest.mark.parametrize("count", [3, 4])
@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("kernel", list(UNLISTED.values()), ids=list(UNLISTED))
def test_a_fault_in_one_layer_stands_out(kernel: Kernel, fault: Fault, count: int) -> None:
    """Would catch a constant that the faulty layer has made wide, also where it is one of two others."""
    found = calibrated(layers(kernel, (1,), fault, count=count))
    assert [one.kernel is not None and one.kernel.stands_out for one in found] == [layer == 1 for layer in range(count)]
    assert not found[1].follows
    even = kernel in EVEN.values()
    assert [one.follows for one in found if one is not found[1]] == [even] * (count - 1)


@pytest.mark.parametrize("fault", [*FAULTS, one_in_a_thousand])
def test_nothing_is_widened_where_the_kernel_is_known(fault: Fault) -> None:
    """Would catch a fault that the other layers, which all follow, are made to acquit."""
    found = calibrated(layers(exact, (1,), fault))
    assert [one.explained for one in found] == [layer != 1 for layer in range(LAYERS)]
    assert (found[1].follows, found[1].kernel) == (False, None)


def test_a_bound_that_is_a_little_too_narrow_convicts_no_layer() -> None:
    """An accumulator that the bound fits but for some elements of some layers: they need no more than the others."""
    kernel = cutting(22, 16)
    before = layers(kernel, mean=1.0)
    assert 0 < sum(not one.follows for one in before) <= LAYERS // 2
    assert all(one.follows for one in calibrated(before))


def test_two_modules_are_too_few_to_tell() -> None:
    found = calibrated(layers(in_blocks, count=2))
    assert [one.kernel for one in found] == [None, None]
    assert calibration.scale_of(found) is None
