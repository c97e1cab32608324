"""A product held against a record: what is said of every element must be what the emulation in float64 says of it."""

from collections.abc import Callable

import numpy as np
import pytest
from dump_analysis.floats import Array
from dump_analysis.replay.emulate import bit_equal, explained, to_format, ulp
from dump_analysis.replay.formulas import FORMULAS, Given, Variant
from hypothesis import given, settings
from hypothesis import strategies as st

T, N = 37, 53
LINEAR, CAPPED = FORMULAS["linear"], FORMULAS["soft_capped_linear"]
EVERY = (*LINEAR.variants, *LINEAR.faults, *CAPPED.variants)
VARIANTS = {variant.name: variant for variant in EVERY if variant.compared is not None}
DATA: dict[str, Callable[[Array], Array]] = {
    "mixed": lambda x: x,
    "one sign": lambda x: np.abs(x) + 1.0,
    "outliers": lambda x: x * np.where(np.arange(x.shape[1]) % 29 == 0, 300.0, 1.0),
    "cancelling": lambda x: x * np.where(np.arange(x.shape[1]) % 2, 1.0, -1.0) + 40.0,
    "tiny": lambda x: x * 2.0**-120,
    "vanishing": lambda x: x * np.exp2(-np.arange(x.shape[1]) % 100),
    "huge": lambda x: x * 2.0**100,
    "not finite": lambda x: np.where(np.arange(x.size).reshape(x.shape) == 5, np.inf, x),
    "no number": lambda x: np.where(np.arange(x.size).reshape(x.shape) == 7, np.nan, x),
}
RECORDS: dict[str, Callable[[np.random.Generator, Array, str], Array]] = {
    "as float64 has it": lambda lots, value, dtype: value,
    "a neighbour here and there": lambda lots, value, dtype: value + ulp(value, dtype) * (lots.random(value.shape) < 0.1),
    "neighbours": lambda lots, value, dtype: value + ulp(value, dtype) * lots.choice([-1.0, 1.0], value.shape),
    "another module": lambda lots, value, dtype: to_format(lots.standard_normal(value.shape), dtype),
    "no number": lambda lots, value, dtype: np.where(lots.random(value.shape) < 0.1, np.nan, value),
}


def given_of(seed: int, length: int, dtype: str, data: str) -> Given:
    """Inputs and weights on the grid of a format, in float32."""
    lots = np.random.default_rng(seed)
    x, weight = (to_format(DATA[data](lots.standard_normal((rows, length))), dtype) for rows in (T, N))
    bias = to_format(lots.standard_normal(N), dtype)
    single = [part.astype(np.float32) for part in (x, weight, bias)]
    return Given((single[0],), {"weight": single[1], "bias": single[2]}, dtype, {"soft_cap": 30.0})


def wide(made: Given) -> Given:
    weights = {name: part.astype(np.float64) for name, part in made.weights.items()}
    return made._replace(inputs=tuple(part.astype(np.float64) for part in made.inputs), weights=weights)


def both(variant: Variant, made: Given, record: Array) -> tuple[tuple[Array, Array], tuple[Array, Array]]:
    """What the short way says, and what the emulation of everything in float64 says: bit equal, outside."""
    assert variant.compared is not None
    emulated = variant.run(wide(made))[0]
    return variant.compared(made, record), (bit_equal(record, emulated), ~explained(record, emulated))


@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")
@pytest.mark.filterwarnings("ignore:overflow:RuntimeWarning")
@pytest.mark.parametrize("name", VARIANTS)
@pytest.mark.parametrize("data", DATA)
@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float32"])
def test_every_element_as_float64_has_it(dtype: str, data: str, name: str) -> None:
    """Would catch a reach that is too short for some data, a range that float32 leaves, and a record that is taken for another."""
    lots = np.random.default_rng(3)
    for length in (8, 192, 1000):
        made = given_of(length, length, dtype, data)
        value = VARIANTS[name].run(wide(made))[0].value
        for kind, record in RECORDS.items():
            found, wanted = both(VARIANTS[name], made, record(lots, value, dtype).astype(np.float32))
            for one, other in zip(found, wanted, strict=True):
                np.testing.assert_array_equal(one, other, err_msg=f"{length} {kind}")


def test_the_usual_products_have_the_short_way() -> None:
    """Would catch one that lost it, so that nothing here looks at it."""
    partials = {f"partials_{count}_rounded" for count in (2, 4, 8)}
    assert {"plain", "bias_in_acc", "bias_after_cast", "bias_missing", "cap_stepwise", "cap_once", *partials} == set(VARIANTS)


@given(seed=st.integers(0, 2**32 - 1), length=st.integers(1, 700), name=st.sampled_from(sorted(VARIANTS)), scale=st.integers(-30, 30))
@settings(max_examples=150, deadline=None)
def test_any_length_and_scale(seed: int, length: int, name: str, scale: int) -> None:
    """Would catch what only odd lengths and scales show."""
    lots, dtype = np.random.default_rng(seed), "bfloat16"
    made = given_of(seed, length, dtype, "mixed")
    made = made._replace(inputs=(made.inputs[0] * np.float32(2.0**scale),))
    value = VARIANTS[name].run(wide(made))[0].value
    record = RECORDS["a neighbour here and there"](lots, value, dtype).astype(np.float32)
    found, wanted = both(VARIANTS[name], made, record)
    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(one, other)


def test_what_lies_on_a_rounding_boundary() -> None:
    """Would catch a tie that float32 decides: sums of 1 + 2^-8 and of a little more or less, whose little float32 loses."""
    little = np.array([0.0, 2.0**-30, -(2.0**-30), 2.0**-26, -(2.0**-26)])
    weight = to_format(np.stack([np.ones(5), np.full(5, 2.0**-8), little], axis=1), "bfloat16")
    made = Given((np.ones((1, 3), np.float32),), {"weight": weight.astype(np.float32)}, "bfloat16", {})
    for record in (1.0, 1.0 + 2.0**-7):
        found, wanted = both(VARIANTS["plain"], made, np.full((1, 5), record, np.float32))
        np.testing.assert_array_equal(found[0], wanted[0])
        np.testing.assert_array_equal(found[1], wanted[1])
        assert found[0].tolist() == [[record == exact for exact in (1.0, 1.0 + 2.0**-7, 1.0, 1.0 + 2.0**-7, 1.0)]]


def test_weights_that_float32_does_not_hold() -> None:
    """Would catch numbers of float64 that are cut: 1 + 2^-40 is not 1."""
    weight = np.array([[1.0 + 2.0**-40, 2.0**-8]])
    made = Given((np.ones((1, 2)),), {"weight": weight}, "bfloat16", {})
    assert VARIANTS["plain"].compared is not None
    assert VARIANTS["plain"].compared(made, np.array([[1.0 + 2.0**-7]]))[0].all()
