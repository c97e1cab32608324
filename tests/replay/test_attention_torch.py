"""Attention and rotation one head at a time: truth against torch, each kernel against a program of its own."""

import math

import numpy as np
import pytest
import torch
from attention_programs import HEAD, INFINITE, TOKENS, Attended, Turned, attended, frequencies, heads_of, turned
from dump_analysis.floats import Array
from dump_analysis.replay import emulate, rotary_frequencies
from dump_analysis.replay.formulas import FORMULAS, Given
from dump_analysis.replay.formulas.fast_exponential import fast_exp
from hypothesis import given as drawn
from hypothesis import settings
from hypothesis import strategies as st
from programs import wide

KERNELS = ["float32", "probabilities_rounded", "eager", "eager_scaled_inside", "flash", "flash_32"]
ATTENTION, ROTARY, TABLE = (FORMULAS[name] for name in ("attention", "rotary", "rotary_table"))


def left(operator: str, variant: str, given: Given, recorded: Array) -> int:
    """How many elements a variant leaves."""
    formula = FORMULAS[operator]
    found = next(one for one in (*formula.variants, *formula.faults) if one.name == variant)
    assert found.applies(given)
    return int((~emulate.explained(recorded, emulate.Emulated(*found.run(given)[0]))).sum())


# --- attention ---


@pytest.mark.parametrize(("window", "cap", "sink"), [(None, None, None), (7, None, None), (None, 3.0, None), (5, 2.0, 0.5)])
def test_the_truth_is_softmax_of_what_is_seen(window: int | None, cap: float | None, sink: float | None) -> None:
    """A mask that is off by one, a cap on the wrong side of the scale, a sink that is given a value."""
    q, k, v = (one.double() for one in heads_of(1, "bfloat16"))
    scores = torch.einsum("rd,td->rt", q, k) / math.sqrt(HEAD)
    scores = scores if cap is None else cap * torch.tanh(scores / cap)
    distance = torch.arange(TOKENS)[:, None] - torch.arange(TOKENS)[None, :]
    hidden = (distance < 0) | (distance >= (window or TOKENS))
    scores = scores.masked_fill(hidden, -math.inf)
    if sink is not None:
        scores, v = torch.cat([scores, torch.full((TOKENS, 1), sink).double()], 1), torch.cat([v, torch.zeros(1, HEAD).double()])
    expected = torch.softmax(scores, -1) @ v
    given = Attended(*heads_of(1, "bfloat16"), v, "bfloat16").given(attention_window=window or INFINITE, attention_soft_cap=cap or INFINITE)
    if sink is not None:
        given = given._replace(weights={"sinks": np.array([sink])})
    assert np.allclose(ATTENTION.truth(given)[0], expected.numpy(), rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
@pytest.mark.parametrize("kernel", KERNELS)
def test_a_kernel_is_explained_to_the_last_element(kernel: str, dtype: str) -> None:
    """A rounding point in the wrong place, a bound that is too tight; and the other kernels leave much."""
    done = attended(3, dtype, kernel, tokens=70, scale=0.3)
    given = done.given(attention_scale=0.3)
    counts = {name: left("attention", name, given, done.recorded) for name in KERNELS}
    assert counts[kernel] == 0
    others = [count for name, count in counts.items() if name != kernel]
    assert min(others) > 20


@pytest.mark.parametrize("kernel", ["float32", "eager", "flash"])
def test_caps_and_windows_are_explained(kernel: str) -> None:
    done = attended(5, "bfloat16", kernel, window=9, cap=2.5)
    config = {"attention_window": 9.0, "attention_soft_cap": 2.5}
    assert left("attention", kernel, done.given(**config), done.recorded) == 0
    for name, wrong in (("attention_window", 10.0), ("attention_window", 8.0), ("attention_soft_cap", 2.6)):
        assert left("attention", kernel, done.given(**{**config, name: wrong}), done.recorded) > 5


@settings(max_examples=25, deadline=None)
@drawn(st.integers(0, 10_000), st.sampled_from(["float32", "eager", "flash", "probabilities_rounded"]), st.floats(0.05, 2.0))
def test_no_element_is_left_whatever_the_numbers(seed: int, kernel: str, scale: float) -> None:
    """Bounds that hold for some seeds only."""
    done = attended(seed, "bfloat16", kernel, scale=scale)
    assert left("attention", kernel, done.given(attention_scale=scale), done.recorded) <= 1


@pytest.mark.parametrize(("kernel", "factor"), [("float32", 1.001), ("flash", 1.001), ("eager", 1.01)])
def test_a_scale_that_is_hardly_off_is_refused(kernel: str, factor: float) -> None:
    """A bound so wide that it acquits. (Where scores are rounded, 1.001 times a scale gives the same scores.)"""
    done = attended(7, "bfloat16", kernel, scale=HEAD**-0.5 * factor)
    assert left("attention", kernel, done.given(), done.recorded) > 2


@pytest.mark.parametrize(("ahead", "name"), [(1, "mask_one_ahead"), (TOKENS, "not_causal")])
def test_a_wrong_mask_is_named(ahead: int, name: str) -> None:
    done = attended(9, "bfloat16", "flash", ahead=ahead)
    assert left("attention", "flash", done.given(), done.recorded) > 100
    assert left("attention", f"{name}+flash", done.given(), done.recorded) == 0


def test_padding_takes_part_in_a_kernel_and_is_not_seen() -> None:
    """Keys around a sequence that are masked change nothing; those of others are not handed over; both are seen by mistake only."""
    done = attended(11, "bfloat16", "flash")
    given = done.given()
    inner = slice(8, 30)
    rows = given.inputs[3][: inner.stop - inner.start]
    for mark in (0.0, -1.0):
        valid = np.full_like(given.inputs[4], mark)
        valid[inner] = 1.0
        around = given._replace(inputs=(given.inputs[0][inner], *given.inputs[1:3], rows + inner.start, valid))
        alone = given._replace(inputs=(*(one[inner] for one in given.inputs[:3]), rows, np.ones((len(rows), 1))))
        assert np.allclose(ATTENTION.truth(around)[0], ATTENTION.truth(alone)[0], rtol=0, atol=1e-12)
        assert left("attention", "others_seen+flash", around, done.recorded[inner]) == 0
        assert left("attention", "flash", around, done.recorded[inner]) > 100


def test_the_fast_exponential_is_near_and_on_its_grid() -> None:
    """Wrong coefficients, or bits put together wrongly. Error and grid: Malossi et al. 2015; 0 below -87.3."""
    x = np.linspace(-80, 0, 20001).astype(np.float32).astype(np.float64)
    found = fast_exp(x)
    assert np.abs(found / np.exp(x) - 1).max() < 1.2e-4
    assert not np.array_equal(found, np.exp(x).astype(np.float32))
    assert (fast_exp(np.array([-90.0, -200.0])) == 0).all()
    assert fast_exp(np.array([0.0]))[0] == pytest.approx(1.0, abs=1.1e-4)


# --- rotation ---


def as_given(done: Turned, *, recorded_table: bool = True, base: float = 10000.0) -> Given:
    if recorded_table:
        return Given((wide(done.x), wide(done.cos), wide(done.sin)), {}, done.dtype, {})
    return Given((wide(done.x), wide(done.positions)), {}, done.dtype, {"rope_theta": base, "rope_pairs": float(done.cos.shape[1])})


@pytest.mark.parametrize("interleaved", [False, True])
@pytest.mark.parametrize("pairs", [HEAD // 2, HEAD // 4])
def test_a_rotation_is_a_product_of_complex_numbers(interleaved: bool, pairs: int) -> None:
    """Pairs that are taken wrongly, a sign, columns that must pass."""
    done = turned(1, "bfloat16", interleaved=interleaved, pairs=pairs)
    x = done.x.double()
    part = x[:, : 2 * pairs]
    z = torch.complex(part[:, ::2], part[:, 1::2]) if interleaved else torch.complex(part[:, :pairs], part[:, pairs:])
    z = z * torch.complex(done.cos.double(), done.sin.double())
    expected = torch.stack([z.real, z.imag], -1).reshape(TOKENS, -1) if interleaved else torch.cat([z.real, z.imag], 1)
    variant = next(one for one in ROTARY.variants if one.function == ("interleaved" if interleaved else ""))
    found = ROTARY.truth(as_given(done), variant)[0]
    assert np.allclose(found, torch.cat([expected, x[:, 2 * pairs :]], 1).numpy(), rtol=0, atol=1e-12)


@pytest.mark.parametrize("recorded_table", [False, True])
@pytest.mark.parametrize("interleaved", [False, True])
@pytest.mark.parametrize("rounded_table", [False, True])
@pytest.mark.parametrize("stepwise", [False, True])
def test_every_way_to_turn_is_told(stepwise: bool, rounded_table: bool, interleaved: bool, recorded_table: bool) -> None:
    """A variant that leaves elements of its own program, or that explains another's."""
    done = turned(2, "bfloat16", interleaved=interleaved, stepwise=stepwise, rounded_table=rounded_table)
    given = as_given(done, recorded_table=recorded_table)
    pairing, table = "interleaved+" if interleaved else "", "" if rounded_table else "table_float32+"
    own = f"{pairing}{table}{'rotated_stepwise' if stepwise else 'rotated_once'}"
    for variant in ROTARY.fitting(given):
        count = left("rotary", variant.name, given, wide(done.made))
        assert (count == 0) == (variant.name == own), (variant.name, count)


MISTAKEN = {"angles": "angles_bfloat16", "frequencies": "frequencies_bfloat16", "products": "products_bfloat16"}


@pytest.mark.parametrize("rounds", MISTAKEN)
def test_angles_in_a_small_format_are_a_mistake(rounds: str) -> None:
    """In what was turned and in the table; the right variants refuse both."""
    done = turned(4, "bfloat16", rounds=rounds)
    given, made = as_given(done, recorded_table=False), wide(done.made)
    assert left("rotary", "rotated_stepwise", given, made) > 20
    assert left("rotary", f"{MISTAKEN[rounds]}+rotated_stepwise", given, made) == 0
    config = {"rope_theta": 10000.0, "rope_pairs": float(HEAD // 2)}
    of_table, recorded = Given((wide(done.positions),), {}, "bfloat16", config), np.concatenate([wide(done.cos), wide(done.sin)], 1)
    assert left("rotary_table", "float32", of_table, recorded) > 20
    assert left("rotary_table", MISTAKEN[rounds], of_table, recorded) == 0


# --- frequencies ---


@settings(max_examples=20, deadline=None)
@drawn(st.floats(500.0, 2e7), st.integers(0, 1000), st.sampled_from(["bfloat16", "float16", "float32"]))
def test_frequencies_lie_in_their_intervals(base: float, seed: int, dtype: str) -> None:
    """From the table and from what was turned; the base is among those that all of them allow."""
    done = turned(seed, dtype, base=base)
    expected, positions = wide(frequencies(base, HEAD // 2)), np.arange(TOKENS, dtype=np.float64)
    of_table = rotary_frequencies.of_table(wide(done.cos), wide(done.sin), positions, dtype)
    x, made = wide(done.x), wide(done.made)
    halves = [one[:, None, : HEAD // 2] + 1j * one[:, None, HEAD // 2 :] for one in (x, made)]
    of_rotation = rotary_frequencies.of_rotation(halves[0], halves[1], positions, dtype)
    for found in (of_table, of_rotation):
        assert found is not None
        assert (found.low <= expected * (1 + 1e-7)).all()
        assert (found.high >= expected * (1 - 1e-7)).all()
    assert of_table is not None
    allowed = rotary_frequencies.base_of(of_table)
    assert allowed is not None
    assert allowed[0] * (1 - 1e-6) <= base <= allowed[1] * (1 + 1e-6)


def test_frequencies_that_no_base_gives_are_measured() -> None:
    """As those that are scaled for long contexts: the slow pairs are slower by a factor of eight."""
    inverse = frequencies(10000.0, HEAD // 2)
    inverse[4:] = inverse[4:] / 8
    done = turned(3, "bfloat16", inverse=inverse)
    found = rotary_frequencies.of_table(wide(done.cos), wide(done.sin), np.arange(TOKENS, dtype=np.float64), "bfloat16")
    assert found is not None
    assert (np.abs(found.middle / wide(inverse) - 1) < 0.01).all()
    assert rotary_frequencies.base_of(found) is None


def test_rounded_angles_have_no_frequencies() -> None:
    """An interval so wide that it explains angles that were rounded to eight bits."""
    done = turned(4, "bfloat16", rounds="products")
    assert rotary_frequencies.of_table(wide(done.cos), wide(done.sin), np.arange(TOKENS, dtype=np.float64), "bfloat16") is None
