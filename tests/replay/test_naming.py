"""What names a record that no variant explains: the number that was put in is found, and nothing is named where there is none."""

import numpy as np
import pytest
from dump_analysis.artefacts.common import Worded
from dump_analysis.floats import Array
from dump_analysis.replay.formulas import FORMULAS
from dump_analysis.replay.modules import Work
from dump_analysis.replay.naming import named
from dump_analysis.replay.recorded import Matrix
from dump_analysis.replay.residual import Where
from dump_analysis.replay.trials import Trial
from hypothesis import given, settings
from hypothesis import strategies as st

ROWS, COLUMNS = 24, 16


class _Held:
    """Values as a stream of raw float32 elements, as a file would hand them out."""

    def __init__(self, values: Array) -> None:
        self._raw = values.astype("<f4").view("<u4").reshape(-1)

    def read(self, start: int, stop: int) -> Array:
        return self._raw[start:stop]


def matrix(name: str, values: Array) -> Matrix:
    return Matrix(name, "float32", values.shape[0], values.shape[1], _Held(values))  # type: ignore[arg-type]


def bf16(values: Array) -> Array:
    raw = np.asarray(values, "<f4").view("<u4").astype("<u8")
    return (((raw + 0x7FFF + ((raw >> 16) & 1)) >> 16 << 16).astype("<u4")).view("<f4").astype("f8")


def everywhere(tokens: tuple[int, ...] = tuple(range(ROWS)), columns: tuple[int, ...] = tuple(range(COLUMNS))) -> Where:
    return Where(tokens, columns, ROWS, COLUMNS)


def sum_of(recorded: Array, *addends: Array) -> Worded | None:
    inputs = tuple(matrix(f"addend{at}", addend) for at, addend in enumerate(addends))
    work = Work("sum", (), ("residual_add",), matrix("out", recorded), inputs, {}, "absent", (), "pre_call")
    formula = FORMULAS["residual_add"]
    return named(work, Trial(formula, formula.variants[0], {}), "bfloat16", everywhere(), "infer")


def linear(recorded: Array, x: Array, weight: Array, where: Where) -> Worded | None:
    weights = {"weight": matrix("weight", weight)}
    work = Work("linear", (), ("linear",), matrix("out", recorded), (matrix("x", x),), weights, "recorded", (), "pre_call")
    formula = FORMULAS["linear"]
    return named(work, Trial(formula, formula.variants[0], {}), "bfloat16", where, "train")


def drawn(seed: int) -> tuple[Array, Array]:
    draw = np.random.default_rng(seed)
    return bf16(draw.standard_normal((ROWS, 32))), bf16(draw.standard_normal((COLUMNS, 32)))


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 1000), factor=st.sampled_from([1.02, 0.5, 1.1, -1.0, 2.5]), second=st.booleans())
def test_a_scaled_addend_is_named_with_its_factor(seed: int, factor: float, second: bool) -> None:
    draw = np.random.default_rng(seed)
    addends = [bf16(draw.standard_normal((ROWS, COLUMNS))) for _ in range(2)]
    scaled = [bf16(factor * addend) if at == int(second) else addend for at, addend in enumerate(addends)]
    told = sum_of(bf16(scaled[0] + scaled[1]), *addends)
    assert told is not None
    assert told.kind == "replay_fits_addend"
    assert told.values["name"] == f"addend{int(second)}"
    assert told.values["low"] <= factor <= told.values["high"]
    assert told.values["factor"] == pytest.approx(factor, abs=2e-3)


def test_a_lost_addend_is_named() -> None:
    one, two = (bf16(np.random.default_rng(at).standard_normal((ROWS, COLUMNS))) for at in (1, 2))
    told = sum_of(two, one, two)
    assert told is not None
    assert (told.kind, told.values["name"]) == ("replay_fits_without", "addend0")


@pytest.mark.parametrize("factor", [1.02, 0.9, 3.0])
def test_one_factor_on_the_result_is_named(factor: float) -> None:
    x, weight = drawn(3)
    told = linear(bf16(factor * bf16(x @ weight.T)), x, weight, everywhere())
    assert told is not None
    assert (told.kind, told.values["factor"]) == ("replay_fits_gain", factor)


def test_scaled_columns_and_tokens_are_named() -> None:
    x, weight = drawn(4)
    right = bf16(x @ weight.T)
    columns = right.copy()
    columns[:, [3, 9]] = bf16(right[:, [3, 9]] * np.array([1.25, 0.75]))
    told = linear(columns, x, weight, everywhere(columns=(3, 9)))
    assert told is not None
    assert (told.kind, told.values["at"], told.values["factors"]) == ("replay_fits_columns", [3, 9], [1.25, 0.75])
    tokens = right.copy()
    tokens[5] = bf16(right[5] * 1.5)
    told = linear(tokens, x, weight, everywhere(tokens=(5,)))
    assert told is not None
    assert (told.kind, told.values["at"], told.values["factors"]) == ("replay_fits_tokens", [5], [1.5])


def test_a_bias_is_named_by_its_columns() -> None:
    """Three of the sixteen constants are 0: of these columns nothing is said."""
    x, weight = drawn(5)
    bias = bf16(np.random.default_rng(6).standard_normal(COLUMNS))
    bias[:3] = 0.0
    told = linear(bf16(x @ weight.T + bias), x, weight, everywhere())
    assert told is not None
    assert (told.kind, told.values["n"], told.values["of"]) == ("replay_fits_offsets", 13, COLUMNS)


@pytest.mark.parametrize("seed", range(10))
def test_nothing_is_named_where_nothing_fits(seed: int) -> None:
    """Another input, another weight, noise in every element: a factor that fits these would fit anything."""
    x, weight = drawn(seed)
    draw = np.random.default_rng(seed + 100)
    right = x @ weight.T
    noisy = bf16(right * (1 + 0.05 * draw.standard_normal(right.shape)))
    other = bf16(x @ bf16(weight + 0.1 * draw.standard_normal(weight.shape)).T)
    for recorded in (noisy, other, bf16(right[::-1])):
        assert linear(recorded, x, weight, everywhere()) is None
    one, two = (bf16(draw.standard_normal((ROWS, COLUMNS))) for _ in range(2))
    assert sum_of(bf16(one + two + 0.05 * draw.standard_normal(one.shape)), one, two) is None


def test_too_few_elements_name_nothing() -> None:
    """Of one or two tokens any column has a constant that fits."""
    x, weight = drawn(7)
    recorded = bf16(np.random.default_rng(8).standard_normal((2, COLUMNS)))
    assert linear(recorded, x[:2], weight, Where((0, 1), tuple(range(COLUMNS)), 2, COLUMNS)) is None


def test_a_module_that_is_left_out_is_named() -> None:
    x = bf16(np.random.default_rng(9).standard_normal((ROWS, COLUMNS)))
    weights = {"weight": matrix("weight", np.full((1, COLUMNS), 1.5))}
    work = Work("norm", (), ("rms_norm",), matrix("out", x), (matrix("x", x),), weights, "recorded", (), "pre_call")
    formula = FORMULAS["rms_norm"]
    told = named(work, Trial(formula, formula.variants[0], {"eps": 1e-6}), "bfloat16", everywhere(), "infer")
    assert told is not None
    assert (told.kind, told.values["name"]) == ("replay_fits_unchanged", "x")
