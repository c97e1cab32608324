"""Values shaped as arguments, and what a boundary is made from: against numpy, and against the equations of a decoder layer."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
from dump_analysis.rounds import fitting
from dump_analysis.rounds.made_from import made_from
from hypothesis import given, settings
from hypothesis import strategies as st
from msprobe_files.operands import Op, Operand, Source

Array = np.ndarray


def run(operand: Operand, tensors: dict[str, Array], shape: tuple[int, ...] = ()) -> Array:
    """An operand applied by numpy alone, as the contract says."""
    parts = []
    for source in operand.sources:
        value = tensors[source.name]
        for op in source.steps or ():
            if op.op == "reshape":
                value = value.reshape(op.shape)
            elif op.op == "take":
                value = value.take(op.picked, axis=op.axis)
            elif op.op == "slice":
                cut = [slice(None)] * value.ndim
                cut[op.axis] = slice(op.start, op.stop)
                value = value[tuple(cut)]
            else:
                assert op.op == "squeeze"
                value = value.squeeze(op.axis)
        parts.append(value)
    if operand.combine == "zeros":
        return np.full(shape, -0.0)
    if operand.combine == "cat":
        return np.concatenate(parts, axis=operand.axis)
    return sum(parts[1:], parts[0])


@st.composite
def operands(draw: st.DrawFn) -> tuple[Operand, dict[str, Array]]:
    """One tensor, a sum or a cat of columns, each recorded with an axis of size 1 before its tokens or without."""
    tokens, count = draw(st.integers(1, 4)), draw(st.integers(1, 3))
    combine = draw(st.sampled_from(["sum", "cat"])) if count > 1 else None
    batched = draw(st.booleans())
    same = draw(st.integers(1, 5))
    made, sources = {}, []
    for at in range(count):
        width = same if combine != "cat" else draw(st.integers(1, 5))
        shape = (1, tokens, width) if batched else (tokens, width)
        made[f"t{at}"] = np.arange(math.prod(shape), dtype=float).reshape(shape) + 1000 * at
        sources.append(Source(f"t{at}", None, None, (Op("squeeze", axis=0),) if batched else ()))
    return Operand(sources, combine, -1 if combine == "cat" else None), made


def shapes(operand: Operand, tensors: dict[str, Array]) -> list[tuple[int, ...]]:
    return [tensors[source.name].shape for source in operand.sources]


@settings(deadline=None, derandomize=True)
@given(operands(), st.sampled_from([0, 1, 2]))
def test_a_value_in_another_shape_keeps_its_elements_in_their_order(made: tuple[Operand, dict[str, Array]], ones: int) -> None:
    operand, tensors = made
    value = run(operand, tensors)
    wanted = (1,) * ones + value.shape
    found = run(fitting.shaped(operand, shapes(operand, tensors), wanted), tensors)
    assert found.shape == wanted
    assert np.array_equal(found.reshape(-1), value.reshape(-1))


@settings(deadline=None, derandomize=True)
@given(operands(), st.data())
def test_columns_and_rows_of_a_value(made: tuple[Operand, dict[str, Array]], data: st.DataObject) -> None:
    operand, tensors = made
    value = run(operand, tensors)
    start = data.draw(st.integers(0, value.shape[1] - 1))
    stop = data.draw(st.integers(start + 1, value.shape[1]))
    cut = fitting.columns(operand, shapes(operand, tensors), start, stop)
    assert np.array_equal(run(cut, tensors), value[:, start:stop])
    assert fitting.shapes_of(operand, shapes(operand, tensors), cut) == [tensors[source.name].shape for source in cut.sources]
    picked = data.draw(st.lists(st.integers(0, value.shape[0] - 1), min_size=1, max_size=4))
    assert np.array_equal(run(fitting.rows(operand, shapes(operand, tensors), picked), tensors), value[picked])


@settings(deadline=None, derandomize=True)
@given(
    st.lists(
        operands().filter(lambda made: made[0].combine != "sum" and len(next(iter(made[1].values())).shape) == 2), min_size=2, max_size=3
    )
)
def test_values_side_by_side(parts: list[tuple[Operand, dict[str, Array]]]) -> None:
    """As a fused projection hands them on; each has its own tensors."""
    tokens = min(run(*part).shape[0] for part in parts)
    named: dict[str, Array] = {}
    operands_: list[tuple[Operand, list[tuple[int, ...]]]] = []
    for at, (operand, tensors) in enumerate(parts):
        named |= {f"{at}{name}": value[:tokens] for name, value in tensors.items()}
        own = Operand([source._replace(name=f"{at}{source.name}") for source in operand.sources], operand.combine, operand.axis)
        operands_.append((own, shapes(own, named)))
    value = np.concatenate([run(operand, named) for operand, _ in operands_], axis=1)
    found = run(fitting.side_by_side(operands_, (1, *value.shape)), named)
    assert np.array_equal(found, value[None])


def test_zeros_have_the_shape_of_their_sources_and_name_no_part_of_a_cat() -> None:
    """A cat's first part would state another shape than the argument's."""
    one = Operand([Source("a", None, None, ())])
    assert fitting.zeros_like(one) == Operand([Source("a", None, None, ())], "zeros")
    assert fitting.zeros_like(Operand([Source("a", None, None, ()), Source("b", None, None, ())], "cat", 1)).sources == ()


def test_a_cat_along_the_tokens_gives_no_rows() -> None:
    operand = Operand([Source("a", None, None, ()), Source("b", None, None, ())], "cat", 0)
    with pytest.raises(fitting.CannotFit):
        fitting.rows(operand, [(2, 3), (2, 3)], [0])


# --- what a boundary is made from ---

_LAYER = [
    "input_norm.out", "q.out", "k.out", "v.out", "attn_core.out", "o_proj.out", "resid_attn", "post_norm.out", "gate.out", "up.out",
    "act_mul.out", "down.out", "resid_mlp",
]  # fmt: skip
DENSE = ["input_ids", "positions", "embedding.out", *(f"layers.{n}.{name}" for n in (0, 1) for name in _LAYER), "final_norm.out", "logits"]


def sources(name: str, known: list[str]) -> set[str]:
    return made_from(name, {one: at for at, one in enumerate(known)}, 2)


@pytest.mark.parametrize(
    ("boundary", "expected"),
    [
        ("embedding.out", {"input_ids"}),
        ("layers.0.input_norm.out", {"embedding.out"}),
        ("layers.1.input_norm.out", {"layers.0.resid_mlp"}),
        ("layers.1.attn_core.out", {"layers.1.q.out", "layers.1.k.out", "layers.1.v.out", "positions"}),
        ("layers.1.resid_attn", {"layers.0.resid_mlp", "layers.1.o_proj.out"}),
        ("layers.0.resid_mlp", {"layers.0.resid_attn", "layers.0.down.out"}),
        ("final_norm.out", {"layers.1.resid_mlp"}),
        ("logits", {"final_norm.out"}),
    ],
)
def test_a_dense_layer_follows_its_equations(boundary: str, expected: set[str]) -> None:
    assert sources(boundary, DENSE) == expected


def test_what_was_not_compared_is_passed_through_to_what_it_is_made_from() -> None:
    """A fused pair without q, k, v and without the sum after attention: what lies before them counts."""
    known = [name for name in DENSE if not name.endswith((".q.out", ".k.out", ".v.out", "resid_attn"))]
    assert sources("layers.1.attn_core.out", known) == {"layers.1.input_norm.out", "positions"}
    assert sources("layers.1.resid_mlp", known) == {"layers.0.resid_mlp", "layers.1.o_proj.out", "layers.1.down.out"}


def test_a_mixture_of_experts_follows_its_router_and_its_experts() -> None:
    moe = ["router.logits", "router.experts", "experts.0.out", "experts.1.out", "moe.out", "resid_mlp"]
    known = [name for name in DENSE if not name.startswith("layers.1.")] + [f"layers.1.{name}" for name in (*_LAYER[:8], *moe)]
    assert sources("layers.1.moe.out", known) == {
        "layers.1.post_norm.out", "layers.1.router.logits", "layers.1.router.experts", "layers.1.experts.0.out", "layers.1.experts.1.out",
    }  # fmt: skip
    assert sources("layers.1.resid_mlp", known) == {"layers.1.resid_attn", "layers.1.moe.out"}
    assert sources("layers.1.experts.1.out", known) == {"layers.1.post_norm.out", "layers.1.router.logits", "layers.1.router.experts"}


def test_a_place_without_a_name_follows_from_all_before_it() -> None:
    known = [*DENSE[:6], "Module.model.mixer.Mixer.forward.0.output.0", *DENSE[6:]]
    assert sources(known[6], known) == set(DENSE[:6])


@settings(deadline=None, derandomize=True)
@given(st.lists(st.sampled_from(DENSE), unique=True, min_size=1))
def test_sources_always_come_before(names: list[str]) -> None:
    known = [name for name in DENSE if name in names]
    for name in known:
        assert all(known.index(one) < known.index(name) for one in sources(name, known))


def test_the_order_of_a_layer_is_that_of_its_equations() -> None:
    """Each place but the first is made, in the end, from the one before it or from what that one is made from."""
    for one, other in pairwise(DENSE[2:]):
        assert sources(one, DENSE) & {other} == set()
