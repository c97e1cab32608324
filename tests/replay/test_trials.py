"""Modules that are larger than a sample and than a block: what is proven of them is proven of all their elements."""

import numpy as np
import pytest
from dump_analysis.floats import Array
from dump_analysis.replay import blocks as parts
from dump_analysis.replay import search, trials
from dump_analysis.replay.emulate import bit_equal, explained, to_format, ulp
from dump_analysis.replay.formulas import FORMULAS, Formula, Given
from dump_analysis.replay.modules import Work
from dump_analysis.replay.one_side import replay
from works import matrix, work

TOKENS, WIDTH, EPS = 500, 256, 1e-6
DTYPE = "bfloat16"


def normal(seed: int, *shape: int, scale: float = 1.0) -> Array:
    return to_format(np.random.default_rng(seed).standard_normal(shape) * scale, DTYPE)


def normed(x: Array, gain: Array, eps: float) -> Array:
    """A norm of rows that is rounded before its gain, in float64: its own program."""
    middle = to_format(x / np.sqrt(np.mean(x**2, axis=1, keepdims=True) + eps), DTYPE)
    return to_format(middle * gain, DTYPE)


def norm(*, eps: float = EPS, scale: float = 0.05) -> tuple[Work, Array, Array]:
    """A norm's work, its input and its gain."""
    x, gain = normal(1, TOKENS, WIDTH, scale=scale), normal(2, WIDTH, scale=0.2) + 1.0
    gain = to_format(gain, DTYPE)
    return work(("rms_norm",), normed(x, gain, eps), (x,), {"weight": gain}), x, gain


def linear(tokens: int = 300, width: int = 64, rows: int = 700) -> tuple[Work, Array, Array]:
    x, weight = normal(3, tokens, width), normal(4, rows, width, scale=0.2)
    return work(("linear",), to_format(x @ weight.T, DTYPE), (x,), {"weight": weight}), x, weight


def changed(made: Work, token: int, column: int, by: float = 1.0) -> Work:
    """One element of the record some units in the last place off."""
    recorded = made.output.read(0, made.output.rows)
    recorded[token, column] += by * ulp(recorded[token, column], DTYPE)
    return made._replace(output=matrix("out", recorded, DTYPE))


# --- blocks ---


@pytest.mark.parametrize("operator", ["linear", "rms_norm"])
def test_blocks_cover_a_module_once(operator: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Would catch a part that is left out or counted twice, and inputs or weights that do not belong to their record."""
    made = linear()[0] if operator == "linear" else norm()[0]
    for name, size in (("_BLOCK", 7 * WIDTH), ("_INPUTS", 64 * 90), ("_WEIGHTS", 64 * 130), ("_SUMS", 90 * 50)):
        monkeypatch.setattr(parts, name, size)
    seen = np.zeros((made.output.rows, made.output.columns), int)
    count = 0
    for block in parts.blocks(made, FORMULAS[operator], {}, DTYPE):
        rows, columns = (slice(at, at + size) for at, size in zip((block.token, block.column), block.recorded.shape, strict=True))
        seen[rows, columns] += 1
        np.testing.assert_array_equal(block.recorded, made.output.read(0, made.output.rows)[rows, columns])
        np.testing.assert_array_equal(block.given.inputs[0], made.inputs[0].read(0, made.inputs[0].rows)[rows])
        if operator == "linear":
            np.testing.assert_array_equal(block.given.weights["weight"], made.weights["weight"].read(columns.start, columns.stop))
        count += 1
    assert (seen == 1).all()
    assert count > 20


@pytest.mark.parametrize("operator", ["linear", "rms_norm"])
def test_a_sample_is_a_part_of_the_module(operator: str) -> None:
    """Would catch rows of inputs, weights and record that do not belong together: each variant says of them what it says of the whole."""
    made = linear()[0] if operator == "linear" else norm()[0]
    formula = FORMULAS[operator]
    part = parts.sample(made, formula, DTYPE)
    assert 4000 < part.recorded.size < made.output.rows * made.output.columns / 3
    found = {trial.variant.name: trials.counted(trial, part) for trial in trials.trials_of(made, formula, [{"eps": EPS}], DTYPE)}
    right = "plain" if operator == "linear" else "cast_before_weight"
    assert found[right].equal == found[right].of
    assert all(one.outside > 0.1 * one.of for name, one in found.items() if name != right)


def test_a_sample_of_named_tokens() -> None:
    """Would catch one that leaves the tokens that tell."""
    made, x, _ = norm()
    part = parts.sample(made, FORMULAS["rms_norm"], DTYPE, np.array([17, 402]))
    np.testing.assert_array_equal(part.given.inputs[0], x[[17, 402]])


# --- trying ---


def whole(made: Work, formula: Formula, name: str, config: dict[str, float]) -> tuple[int, int]:
    """Bit-equal and outside elements of the whole, from one emulation of it."""
    variant = next(one for one in formula.variants if one.name == name)
    weights = {key: own.read(0, own.rows)[0] if own.rows == 1 else own.read(0, own.rows) for key, own in made.weights.items()}
    given = Given(tuple(one.read(0, one.rows) for one in made.inputs), weights, DTYPE, config)
    recorded, emulated = made.output.read(0, made.output.rows), variant.run(given)[0]
    return int(bit_equal(recorded, emulated).sum()), int((~explained(recorded, emulated)).sum())


@pytest.mark.parametrize("operator", ["linear", "rms_norm"])
def test_what_holds_is_counted_over_the_whole(operator: str) -> None:
    """Would catch counts that are a sample's."""
    made = changed((linear() if operator == "linear" else norm())[0], 123, 45)
    right, config = ("plain", {}) if operator == "linear" else ("cast_before_weight", {"eps": EPS})
    found = replay(made, config)
    equal, outside = whole(made, FORMULAS[operator], right, config)
    assert (found.best.trial.variant.name, found.best.of) == (right, made.output.rows * made.output.columns)
    assert (found.best.equal, found.best.outside) == (equal, outside) == (found.best.of - 1, 1)


@pytest.mark.parametrize("operator", ["linear", "rms_norm"])
@pytest.mark.parametrize("token", [0, 101, 299])
def test_a_fault_that_no_sample_shows(operator: str, token: int) -> None:
    """Would catch a verdict on what was sampled: two elements of one token are off, each by one unit in the last place."""
    made = changed(changed((linear() if operator == "linear" else norm())[0], token, 45), token, 251)
    found = replay(made, {} if operator == "linear" else {"eps": EPS})
    assert (found.explained, found.best.outside, found.best.of) == (False, 2, made.output.rows * made.output.columns)
    assert found.best.trial.variant.name == ("plain" if operator == "linear" else "cast_before_weight")
    assert found.where is not None
    assert (found.where.tokens, found.where.columns) == ((token,), (45, 251))


def test_a_constant_that_few_tokens_show() -> None:
    """Would catch the most usual constants being kept because a sample does not contradict them: one token has small values."""
    x, gain = normal(5, TOKENS, WIDTH, scale=30.0), np.ones(WIDTH)
    among = {int(at) for at in np.linspace(0, TOKENS - 1, parts._SAMPLE // WIDTH).astype(int)}
    token = next(at for at in range(200, TOKENS) if at not in among)
    x[token] = to_format(x[token] / 10000.0, DTYPE)
    found = replay(work(("rms_norm",), normed(x, gain, 1e-5), (x,), {"weight": gain}), {})
    assert found.explained
    assert found.constants["eps"].value == 1e-5


@pytest.mark.parametrize(("tokens", "scale", "seed"), [(14, 1.0, 6), (TOKENS, 2.0, 9)])
def test_constants_that_leave_one_element_yield_to_those_that_leave_none(tokens: int, scale: float, seed: int) -> None:
    """Would catch the most usual constants being kept because what they leave is allowed: of all elements one says 1e-5."""
    x, gain = normal(seed, tokens, WIDTH, scale=scale), np.ones(WIDTH)
    made = work(("rms_norm",), normed(x, gain, 1e-5), (x,), {"weight": gain})
    assert whole(made, FORMULAS["rms_norm"], "cast_before_weight", {"eps": 1e-6})[1] == 1
    found = replay(made, {})
    assert (found.constants["eps"].value, found.best.outside) == (1e-5, 0)


@pytest.mark.parametrize("eps", [1e-6, 1e-5, 3e-5])
def test_the_interval_of_a_constant_is_that_of_the_whole(eps: float) -> None:
    """Would catch an interval of what was sampled or of one block: its ends hold for all elements, and what lies beyond does not."""
    made = norm(eps=eps)[0]
    found = replay(made, {})
    assert found.constants["eps"].interval is not None
    low, high = found.constants["eps"].interval
    assert low <= eps <= high < 1.1 * eps
    most = trials.allowed(found.best.of)
    for value, holds in ((low, True), (high, True), (low * 0.999, False), (high * 1.001, False)):
        assert (whole(made, FORMULAS["rms_norm"], found.best.trial.variant.name, {"eps": value})[1] <= most) == holds, value


def test_of_constants_that_do_as_well_the_usual_one() -> None:
    """Would catch a choice by chance: with values of some tens no eps shows, and the interval says so."""
    found = replay(norm(scale=30.0)[0], {})
    assert found.constants["eps"].value == search.USUAL["eps"][0]
    assert found.constants["eps"].interval is not None
    assert found.constants["eps"].interval[0] < 1e-11


def test_blocks_that_rule_out_enough_are_gone_back_to(monkeypatch: pytest.MonkeyPatch) -> None:
    """Would catch an interval that ends where the first blocks end it."""
    wanted = replay(norm()[0], {}).constants["eps"].interval
    monkeypatch.setattr(search, "_MOST_TOKENS", 3)
    monkeypatch.setattr(parts, "_BLOCK", 2 * WIDTH)
    assert replay(norm()[0], {}).constants["eps"].interval == pytest.approx(wanted, rel=1e-3)


def test_a_grid_holds_for_all_blocks() -> None:
    """Would catch one that the first block decides: the last element alone is no bfloat16."""
    numbers = normal(6, TOKENS, WIDTH)
    assert trials.stored_grid(matrix("out", numbers, "float32")) == "bfloat16"
    numbers[-1, -1] = 1 + 2.0**-10
    assert trials.stored_grid(matrix("out", numbers, "float32")) == "float32"
    numbers[0, 0], numbers[-1, -1] = 1 + 2.0**-9, 1.0
    assert trials.stored_grid(matrix("out", np.clip(numbers, 2.0**-6, None), "float32")) == "float16"


@pytest.mark.parametrize("stated", [{}, {"eps": 1e-5}])
def test_a_constant_far_off_does_not_make_another_formula_right(stated: dict[str, float]) -> None:
    """Would catch that the formula which comes nearest with the usual constants alone has its constant looked for."""
    draw = np.random.default_rng(8)
    x = to_format(0.02 * draw.standard_normal((TOKENS, WIDTH)) - 0.02, DTYPE)
    gain = to_format(1.0 + 0.2 * draw.standard_normal(WIDTH), DTYPE)
    made = work(("rms_norm", "layer_norm"), normed(x, gain, 0.01), (x,), {"weight": gain})
    found = replay(made, stated)
    assert (found.best.trial.formula.operator, found.best.outside) == ("rms_norm", 0)
    assert found.constants["eps"].holds(0.01)


def test_a_constant_that_is_fitted_far_off_is_tried_all_the_same() -> None:
    """Would catch squares past the whole numbers of 64 bits, to which the fit of a function that is not the module's may lead."""
    made, _, _ = norm()
    formula = FORMULAS["rms_norm"]
    closest = trials.Trial(formula, formula.variants[0], {"eps": EPS})
    assert 4e12 in search.near(parts.sample(made, formula, DTYPE), closest, "eps", 4e12)
