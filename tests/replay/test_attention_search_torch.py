"""Constants, mistakes and noise of whole attentions and rotations, as works of several heads."""

from typing import Any

import numpy as np
import pytest
import torch
from attention_programs import HEAD, TOKENS, attended, frequencies, heads_of, turned, unknown_kernel
from dump_analysis.floats import Array
from dump_analysis.replay import heads
from dump_analysis.replay.attention_search import Found, found_for
from dump_analysis.replay.attention_side import replayed, without_other_length
from dump_analysis.replay.heads import Heads, Sequence
from dump_analysis.replay.modules import Work
from dump_analysis.replay.recorded import Matrix, held
from dump_analysis.replay.stated_rotation import at_length
from programs import DTYPES, wide
from torch import Tensor
from toys import arithmetic

COUNT = 4  # heads


def matrix(name: str, parts: list[Tensor]) -> Matrix:
    dtype = str(parts[0].dtype).removeprefix("torch.")
    return held(name, dtype, np.concatenate([wide(part) for part in parts], 1))


def attention(made: list[tuple[Tensor, Tensor, Tensor, Tensor]], sequences: tuple[Sequence, ...] | None = None) -> Work:
    """Heads side by side: q, k, v and the output of each."""
    q, k, v, out = (matrix(name, [head[at] for head in made]) for at, name in enumerate(("q", "k", "v", "out")))
    tokens = q.rows
    layout = Heads(HEAD, HEAD, ("query", "key", "value"), sequences or (Sequence(0, tokens, 0, tokens),))
    return Work("attention", (), ("attention",), out, (q, k, v), {}, "absent", (), "pre_call", heads=layout)


def by_kernel(kernel: str, scale: float, window: int | None, cap: float | None, tokens: int = TOKENS) -> Work:
    each = [attended(100 + seed, "bfloat16", kernel, scale=scale, window=window, cap=cap, tokens=tokens) for seed in range(COUNT)]
    return attention([(one.q, one.k, one.v, one.made) for one in each])


def by_unknown(scale: float, window: int | None, factor: float = 1.0) -> Work:
    """``factor``: on the result for token 17."""
    made = []
    for seed in range(COUNT):
        q, k, v = heads_of(200 + seed, "bfloat16", 90)
        out = unknown_kernel(q, k, v, arithmetic.visible(90, window=window), DTYPES["bfloat16"], scale)
        out[17] = (out[17].float() * factor).to(out.dtype)
        made.append((q, k, v, out))
    return attention(made)


def value(found: Found, name: str) -> float:
    return found.constants[name].value


@pytest.mark.parametrize("kernel", ["eager", "float32", "flash"])
@pytest.mark.parametrize(("scale", "window", "cap"), [(24**-0.5, None, None), (24**-0.5, 9, 50.0), (0.25, 9, None), (0.275, None, 30.0)])
def test_constants_that_nobody_stated_are_found(kernel: str, scale: float, window: int | None, cap: float | None) -> None:
    """A fit that is biased by rounding, a window that hides a scale, a cap that hides in the noise."""
    found = found_for(by_kernel(kernel, scale, window, cap), {}, {})
    assert found.best.explains
    assert not found.best.trial.fault
    assert found.best.trial.variant.name == kernel
    assert value(found, "attention_scale") == pytest.approx(scale, rel=2e-4)
    assert value(found, "attention_window") == (window or float("inf"))
    low, high = found.constants["attention_soft_cap"].interval or (0.0, 0.0)
    assert low <= (cap or float("inf")) <= high


def test_what_is_stated_is_said_to_be_and_what_contradicts_it_too() -> None:
    work = by_kernel("float32", 0.3, None, None)
    stated = found_for(work, {"attention_scale": 0.3}, {})
    assert stated.constants["attention_scale"].stated
    assert stated.contradicted == {}
    against = found_for(work, {"attention_scale": 0.25, "attention_soft_cap": 5.0}, {})
    assert against.contradicted == {"attention_scale": 0.25, "attention_soft_cap": 5.0}
    assert value(against, "attention_scale") == pytest.approx(0.3, rel=1e-4)


def test_an_unknown_kernel_is_plausible_and_no_more() -> None:
    """A kernel of no list: convicted, or taken for one that is in it."""
    found = found_for(by_unknown(HEAD**-0.5, None), {}, {})
    assert not found.best.explains
    assert found.noise is not None
    assert found.noise.is_rounding
    low, high = found.constants["attention_scale"].interval or (0.0, 0.0)
    assert low <= HEAD**-0.5 <= high
    assert high / low < 1.01


def test_faults_beside_an_unknown_kernel_are_seen() -> None:
    """Its scale and window are measured; an altered token is more than rounding."""
    scaled = found_for(by_unknown(HEAD**-0.5 * 1.03, None), {}, {})
    low, high = scaled.constants["attention_scale"].interval or (0.0, 0.0)
    assert low <= HEAD**-0.5 * 1.03 <= high
    assert not low <= HEAD**-0.5 <= high
    assert value(found_for(by_unknown(HEAD**-0.5, 20), {}, {}), "attention_window") == 20.0
    altered = found_for(by_unknown(HEAD**-0.5, None, factor=1.05), {}, {})
    assert altered.noise is not None
    assert not altered.noise.is_rounding


# --- sequences ---


def _packed() -> tuple[Work, Work]:
    """Two sequences side by side; the second work says that they are one."""
    each = [
        [attended(300 + seed + 50 * at, "bfloat16", "float32", tokens=tokens) for at, tokens in ((0, 25), (1, 15))] for seed in range(COUNT)
    ]
    made = [tuple(torch.cat([getattr(one, name) for one in head]) for name in ("q", "k", "v", "made")) for head in each]
    sequences = (Sequence(0, 25, 0, 40, 0, 15, apart=True), Sequence(25, 40, 0, 40, 25, 0, apart=True))
    return attention(made, sequences), attention(made)  # type: ignore[arg-type]


def test_sequences_do_not_see_each_other() -> None:
    apart, together = (found_for(work, {}, {}) for work in _packed())
    assert apart.best.explains
    assert not together.best.explains


def test_sequences_that_do_see_each_other_are_a_mistake() -> None:
    """As where the bounds of packed sequences were lost."""
    each = [attended(400 + seed, "bfloat16", "float32") for seed in range(COUNT)]
    sequences = (Sequence(0, 25, 0, 40, 0, 15, apart=True), Sequence(25, 40, 0, 40, 25, 0, apart=True))
    found = found_for(attention([(one.q, one.k, one.v, one.made) for one in each], sequences), {}, {})
    assert (found.best.explains, found.best.trial.fault) == (True, True)
    assert found.best.trial.variant.name == "others_seen+float32"


def test_parts_of_few_rows_are_the_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks of rows that lose a row, or count it wrongly."""
    work = by_kernel("flash", 0.25, 9, None)
    assert work.heads is not None
    whole = list(heads.parts(work.output, work.inputs, {}, work.heads))
    monkeypatch.setattr(heads, "_PART", 7 * TOKENS)
    monkeypatch.setattr(heads, "_HELD", 1)
    few = list(heads.parts(work.output, work.inputs, {}, work.heads))
    assert len(few) == len(whole) * 6
    assert np.array_equal(np.concatenate([part.recorded for part in few[:6]]), whole[0].recorded)
    assert np.array_equal(np.concatenate([part.inputs[3] for part in few[:6]]), whole[0].inputs[3])
    assert [part.token for part in few[:6]] == [0, 7, 14, 21, 28, 35]
    assert {part.column for part in few} == {part.column for part in whole}


# --- rotations ---


def rotation(inverse: Tensor | None = None, **how: Any) -> tuple[Work, Work]:
    """A rotation from positions, and its table. ``how``: see `turned`."""
    each = [turned(500 + seed, "bfloat16", inverse=inverse, tokens=60, **how) for seed in range(COUNT)]
    positions = held("positions", "float32", wide(each[0].positions))
    sequences = (Sequence(0, 60, 0, 60),)
    x, out = matrix("x", [one.x for one in each]), matrix("out", [one.made for one in each])
    layout = Heads(HEAD, HEAD, ("query", "position"), sequences)
    work = Work("rotary", (), ("rotary",), out, (x, positions), {}, "absent", (), "pre_call", heads=layout)
    table: Array = np.concatenate([wide(each[0].cos), wide(each[0].sin)], 1)
    made = Work("table", (), ("rotary_table",), held("table", "bfloat16", table), (positions,), {}, "absent", (), "pre_call")
    return work, made


@pytest.mark.parametrize("base", [10000.0, 50000.0, 12345.0])
def test_a_base_is_found(base: float) -> None:
    """Of what was turned and of the table, whether it is a usual one or not."""
    for work in rotation(base=base):
        found = found_for(work, {}, {})
        assert found.best.explains
        assert value(found, "rope_theta") == pytest.approx(base, rel=2e-3)
        low, high = found.constants["rope_theta"].interval or (0.0, 0.0)
        assert low <= base <= high


def test_scaled_frequencies_of_a_table_explain_what_was_turned_by_them() -> None:
    """No base gives them: measured from one side's table, tried on what the other side turned; other frequencies are told apart."""
    inverse = frequencies(10000.0, HEAD // 2)
    inverse[4:] = inverse[4:] / 8
    work, table = rotation(inverse)
    known = found_for(table, {}, {})
    assert known.best.explains
    assert "rope_theta" not in known.constants
    hints = {name: constant.value for name, constant in known.constants.items()}
    same = found_for(work, {}, hints)
    assert same.best.explains
    assert all(same.constants[name].holds(at) for name, at in hints.items())
    unscaled = found_for(rotation()[0], {}, hints)
    assert value(unscaled, "rope_theta") == 10000.0
    assert not all(unscaled.constants[name].holds(at) for name, at in hints.items())


@pytest.mark.parametrize("interleaved", [False, True])
@pytest.mark.parametrize("pairs", [4, 2, 6])
def test_a_rotation_of_some_columns_is_found(pairs: int, interleaved: bool) -> None:
    """How many columns are turned is no constant that a dump records: usual shares are tried, and what is stated comes first."""
    work, table = rotation(pairs=pairs, interleaved=interleaved)
    for stated in ({}, {"rope_pairs": float(pairs)}):
        found = found_for(work, stated, {})
        assert found.best.explains
        assert (value(found, "rope_theta"), value(found, "rope_pairs")) == (10000.0, pairs)
    assert value(found_for(table, {}, {}), "rope_pairs") == pairs
    assert found_for(work, {"rope_pairs": 8.0}, {}).contradicted == {"rope_pairs": 8.0}
    odd = found_for(rotation(pairs=5)[0], {"rope_pairs": 5.0}, {})
    assert value(odd, "rope_pairs") == 5


@pytest.mark.parametrize("magnitude", [1.138629436111989, 1.25])
def test_a_table_that_is_multiplied_is_found(magnitude: float) -> None:
    """YaRN's attention factor: of the table, of what was turned by it, and against a side that leaves it out."""
    inverse = frequencies(10000.0, HEAD // 2)
    inverse[3:] = inverse[3:] / 4
    work, table = rotation(inverse, magnitude=magnitude)
    known = found_for(table, {}, {})
    assert known.best.explains
    assert known.constants["rope_magnitude"].holds(magnitude)
    hints = {name: constant.value for name, constant in known.constants.items()}
    own = {f"rope_theta.{pair:03d}": float(at) for pair, at in enumerate(inverse)} | {"rope_pairs": 8.0, "rope_magnitude": magnitude}
    for stated, other in (({}, hints), (own, {})):
        found = found_for(work, stated, other)
        assert found.best.explains
        assert found.constants["rope_magnitude"].holds(magnitude)
        assert found.contradicted == {}
    without = found_for(rotation(inverse)[0], own, {})
    assert value(without, "rope_magnitude") == 1.0
    assert without.contradicted == {"rope_magnitude": magnitude}


def test_a_list_of_factors_that_another_length_states_contradicts_nothing() -> None:
    """Engines pick it by the longest prompt that they serve: it is named by its frequencies, and no configuration speaks against it."""
    plain = frequencies(10000.0, HEAD // 2)
    short, far = ([float(at) for at in plain / (1 + each * torch.arange(HEAD // 2))] for each in (0.1, 2.0))
    own, other = ({f"rope_theta.{pair:03d}": at for pair, at in enumerate(one)} for one in (short, far))
    same = {"rope_pairs": HEAD / 2, "rope_magnitude": 1.0}
    stated = at_length({**same, **own, "rope_length": 1e4, **{f"beyond.{name}": at for name, at in (same | other).items()}}, TOKENS)
    found = found_for(rotation(torch.tensor(far))[0], stated, same | other)
    assert found.best.explains
    assert found.contradicted
    assert without_other_length(replayed(found), same | other).contradicted == {}
    assert replayed(found_for(rotation(torch.tensor(short))[0], stated, same | other)).contradicted == {}
    third = replayed(found_for(rotation()[0], stated, same | other))
    assert without_other_length(third, same | other).contradicted == third.contradicted != {}
