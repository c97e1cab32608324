"""Routed sums as torch programs compute them, each rounding where one of the engines does, against the formula that recomputes them.

The programs are written for themselves: loops over tokens and experts in torch, the truth of routers in float64. Whatever the order of
torch's sums on this processor, the bounds must hold what they give.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import pytest
import torch
from dump_analysis.floats import Array
from dump_analysis.replay import routed_told
from dump_analysis.replay.experts import RoutedExperts
from dump_analysis.replay.formulas import FORMULAS
from dump_analysis.replay.formulas.routed_experts import ROUTED, WEIGHTED
from dump_analysis.replay.formulas.router_shares import SHARES
from dump_analysis.replay.formulas.routing import ROUTERS
from dump_analysis.replay.modules import Work
from dump_analysis.replay.one_side import Replayed
from dump_analysis.replay.routed_exchange import with_experts_exchanged
from dump_analysis.replay.routed_search import replay_as, replay_routed
from dump_analysis.replay.unexplained import told as told_unexplained
from dump_analysis.replay.unexplained import unknown_kernel
from dump_analysis.replay.usual import norms_of
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.nn import functional
from works import matrix

TOKENS, HIDDEN, MIDDLE, EXPERTS = 24, 48, 40, 8
Program = Callable[["Model", Tensor, Tensor, Tensor], Tensor]


class Model(NamedTuple):
    """Experts: gate over up [E, 2 I, H] and down [E, H, I], bfloat16."""

    first: Tensor
    last: Tensor


def model(seed: int, experts: int = EXPERTS) -> Model:
    random = torch.Generator().manual_seed(seed)
    first = torch.randn(experts, 2 * MIDDLE, HIDDEN, generator=random) * HIDDEN**-0.5
    last = torch.randn(experts, HIDDEN, MIDDLE, generator=random) * MIDDLE**-0.5
    return Model(first.bfloat16(), last.bfloat16())


def inputs(seed: int, experts: int = EXPERTS, tokens: int = TOKENS) -> tuple[Tensor, Tensor]:
    """What the experts take, and logits without ties."""
    random = torch.Generator().manual_seed(1000 + seed)
    return torch.randn(tokens, HIDDEN, generator=random).bfloat16(), torch.randn(tokens, experts, generator=random)


# --- routers ---


def softmax_then_top(logits: Tensor, count: int) -> tuple[Tensor, Tensor]:
    shares, experts = logits.float().softmax(-1).topk(count)
    return shares / shares.sum(-1, keepdim=True), experts


def top_then_softmax(logits: Tensor, count: int) -> tuple[Tensor, Tensor]:
    best, experts = logits.float().topk(count)
    return best.softmax(-1), experts


def softmax_of_all(logits: Tensor, count: int) -> tuple[Tensor, Tensor]:
    shares, experts = logits.float().softmax(-1).topk(count)
    return shares, experts


def sigmoid_normalised(logits: Tensor, count: int) -> tuple[Tensor, Tensor]:
    shares, experts = logits.float().sigmoid().topk(count)
    return shares / shares.sum(-1, keepdim=True), experts


def sigmoid(logits: Tensor, count: int) -> tuple[Tensor, Tensor]:
    shares, experts = logits.float().sigmoid().topk(count)
    return shares, experts


PROGRAMS_OF_ROUTERS = {
    "softmax_normalised": (softmax_then_top, top_then_softmax), "softmax_of_all": (softmax_of_all,),
    "sigmoid_normalised": (sigmoid_normalised,), "sigmoid": (sigmoid,),
}  # fmt: skip


# --- experts ---


def rounded_each(made: Model, x: Tensor, shares: Tensor, experts: Tensor) -> Tensor:
    """Every step of an expert in bfloat16, shares and sum in float32."""
    total = torch.zeros(len(x), HIDDEN)
    for nth in range(experts.shape[1]):
        for token, expert in enumerate(experts[:, nth].tolist()):
            gate, up = (made.first[expert] @ x[token]).chunk(2)
            total[token] += shares[token, nth] * (made.last[expert] @ (functional.silu(gate) * up)).float()
    return total.bfloat16()


def fused(made: Model, x: Tensor, shares: Tensor, experts: Tensor) -> Tensor:
    """Products in float32, rounded between the matrices; shares rounded, the output of an expert not."""
    total = torch.zeros(len(x), HIDDEN)
    for nth in range(experts.shape[1]):
        for token, expert in enumerate(experts[:, nth].tolist()):
            gate, up = (made.first[expert].float() @ x[token].float()).chunk(2)
            inner = (functional.silu(gate) * up).bfloat16().float()
            total[token] += shares[token, nth].bfloat16().float() * (made.last[expert].float() @ inner)
    return total.bfloat16()


def in_sixteen_bits(made: Model, x: Tensor, shares: Tensor, experts: Tensor) -> Tensor:
    """Shares and products in bfloat16, too; added in float32."""
    return _looped(made, x, shares.bfloat16(), experts, torch.float32)


def loop(made: Model, x: Tensor, shares: Tensor, experts: Tensor) -> Tensor:
    """A loop over experts that adds in bfloat16, as index_add_ does."""
    return _looped(made, x, shares, experts, torch.bfloat16)


def _looped(made: Model, x: Tensor, shares: Tensor, experts: Tensor, total: torch.dtype) -> Tensor:
    found = torch.zeros(len(x), HIDDEN, dtype=total)
    for expert in range(len(made.first)):
        token, nth = (experts == expert).nonzero(as_tuple=True)
        gate, up = (x[token] @ made.first[expert].T).chunk(2, -1)
        out = (functional.silu(gate) * up) @ made.last[expert].T
        found.index_add_(0, token, (out * shares[token, nth, None]).bfloat16().to(total))
    return found.bfloat16()


def weighted_inside(made: Model, x: Tensor, shares: Tensor, experts: Tensor) -> Tensor:
    """The share multiplied in before the second matrix, experts added in bfloat16."""
    found = torch.zeros(len(x), HIDDEN, dtype=torch.bfloat16)
    for expert in range(len(made.first)):
        token, nth = (experts == expert).nonzero(as_tuple=True)
        gate, up = (x[token] @ made.first[expert].T).chunk(2, -1)
        inner = (functional.silu(gate) * up * shares[token, nth, None]).bfloat16()
        found.index_add_(0, token, inner @ made.last[expert].T)
    return found


PROGRAMS: dict[str, Program] = {
    "experts_rounded+summed_once": rounded_each,
    "experts_float32+shares_rounded+summed_once": fused,
    "experts_rounded+shares_rounded+products_rounded+summed_once": in_sixteen_bits,
    "experts_rounded+products_rounded+summed_stepwise": loop,
    "weighted_inside+summed_stepwise": weighted_inside,
}


# --- works ---


def array(made: Tensor) -> Array:
    found: Array = made.double().numpy()
    return found


def experts_of(made: Model) -> RoutedExperts:
    first = tuple((matrix("first", array(one), "bfloat16"),) for one in made.first)
    return RoutedExperts(first, tuple(matrix("last", array(one), "bfloat16") for one in made.last))


def routed(made: Model, x: Tensor, logits: Tensor, output: Tensor, *, shared: Tensor | None = None) -> Work:
    given = [matrix("x", array(x), "bfloat16"), matrix("logits", array(logits), "float32")]
    given += [matrix("shared", array(shared), "bfloat16")] if shared is not None else []
    recorded = matrix("out", array(output), "bfloat16")
    return Work("Module.moe.M.forward.0", (), (ROUTED,), recorded, tuple(given), {}, "recorded", (), "pre_call", experts=experts_of(made))


def told(found: Replayed) -> tuple[str, int, float]:
    return found.best.trial.variant.name, int(found.constants["top_k"].value), found.constants["routed_scale"].value


@pytest.mark.parametrize("way", PROGRAMS)
@pytest.mark.parametrize("router", [router.name for router in ROUTERS])
def test_a_program_is_recognised_by_its_sum(way: str, router: str) -> None:
    """Router, number of experts and rounding points, from logits and sum alone."""
    made, (x, logits) = model(1), inputs(1)
    for program in PROGRAMS_OF_ROUTERS[router]:
        found = replay_routed(routed(made, x, logits, PROGRAMS[way](made, x, *program(logits, 3))), {})
        assert found.explained
        assert told(found) == (f"{router}+silu+{way}", 3, 1.0)
        assert found.best.equal >= 0.99 * found.best.of


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 10**6), count=st.integers(1, EXPERTS), router=st.sampled_from([router.name for router in ROUTERS]))
def test_right_programs_are_explained_whatever_they_choose(seed: int, count: int, router: str) -> None:
    """No element is left of any right program: with one expert a token, with all of them, with logits near each other."""
    made, (x, logits) = model(seed), inputs(seed)
    for way, program in PROGRAMS.items():
        output = program(made, x, *PROGRAMS_OF_ROUTERS[router][0](logits * 0.3, count))
        found = replay_routed(routed(made, x, logits * 0.3, output), {})
        assert found.explained, (way, found.best)
        assert found.constants["top_k"].value == count


@pytest.mark.parametrize("scale", [2.5, 6.25, 1.0 / 3])
def test_a_factor_of_the_routed_sum_is_found(scale: float) -> None:
    """With its interval; what is stated is taken where it is in there, and contradicted where it is not."""
    made, (x, logits) = model(2), inputs(2)
    shares, experts = softmax_then_top(logits, 2)
    work = routed(made, x, logits, fused(made, x, shares * scale, experts))
    found = replay_routed(work, {"routed_scale": scale, "top_k": 2.0})
    assert found.explained
    assert found.contradicted == {}
    assert found.constants["routed_scale"].holds(scale)
    low, high = found.constants["routed_scale"].interval or (0.0, 0.0)
    assert high / low < 1.01
    assert replay_routed(work, {"routed_scale": 1.0}).contradicted == {"routed_scale": 1.0}


@pytest.mark.parametrize("rounds", [True, False])
def test_a_shared_expert_that_is_added_is_told(rounds: bool) -> None:
    """After the routed sum was rounded, or before; one that is not added leaves nothing that follows."""
    made, (x, logits) = model(3), inputs(3)
    shared = torch.randn(TOKENS, HIDDEN, generator=torch.Generator().manual_seed(3)).bfloat16()
    shares, experts = softmax_then_top(logits, 2)
    # The float32 sum before it is rounded: the program's own, with outputs of experts that are not rounded.
    total = sum(_unrounded(made, x, shares, experts, nth) for nth in range(2))
    output = (total.bfloat16() + shared) if rounds else (total + shared.float()).bfloat16()
    found = replay_routed(routed(made, x, logits, output, shared=shared), {})
    assert found.explained
    assert found.best.trial.variant.name.endswith("+shared_added" if rounds else "+shared_added_once")
    assert not replay_routed(routed(made, x, logits, total.bfloat16(), shared=shared), {}).explained


def _unrounded(made: Model, x: Tensor, shares: Tensor, experts: Tensor, nth: int) -> Tensor:
    found = []
    for token, expert in enumerate(experts[:, nth].tolist()):
        gate, up = (made.first[expert].float() @ x[token].float()).chunk(2)
        inner = (functional.silu(gate) * up).bfloat16().float()
        found.append(shares[token, nth] * (made.last[expert].float() @ inner))
    return torch.stack(found)


def test_equal_logits_are_settled_by_the_sum() -> None:
    """Of experts with one logit either may be chosen; a program that takes the last of them is no other program."""
    made, (x, logits) = model(4), inputs(4)
    logits = (logits * 2).round() / 2  # many ties
    last = torch.argsort(logits, dim=-1, stable=True).flip(-1)[:, :3]  # of equal ones the last
    chosen = logits.softmax(-1).gather(1, last)
    shares = chosen / chosen.sum(-1, keepdim=True)
    first = torch.argsort(-logits, dim=-1, stable=True)[:, :3]
    tied = (first.sort(-1).values != last.sort(-1).values).any(-1)
    assert 3 < int(tied.sum()) < TOKENS
    found = replay_routed(routed(made, x, logits, fused(made, x, shares, last)), {})
    assert found.explained
    assert found.best.equal >= 0.99 * found.best.of
    taken = found.work.inputs[3].read(0, TOKENS)
    assert (taken == last.sort(-1).values.numpy()).all()


def test_a_token_that_goes_to_an_expert_without_a_tie_does_not_follow() -> None:
    """One token of all: its row, and nothing else, is what nothing explains."""
    made, (x, logits) = model(5), inputs(5)
    shares, experts = softmax_then_top(logits, 2)
    experts[7, 1] = logits[7].argmin()
    found = replay_routed(routed(made, x, logits, rounded_each(made, x, shares, experts)), {})
    assert not found.best.explains
    assert found.where is not None
    assert found.where.tokens == (7,)


@pytest.mark.parametrize("order", [[0, 3, 2, 1, 4, 5, 6, 7], [2, 3, 4, 5, 6, 7, 0, 1]])
def test_experts_in_another_order_are_found(order: list[int]) -> None:
    """Two exchanged, and all moved on as by a rank that holds others."""
    made, (x, logits) = model(6), inputs(6)
    other = Model(made.first[order], made.last[order])
    output = fused(other, x, *softmax_then_top(logits, 2))
    way = replay_routed(routed(other, x, logits, output), {}).best.trial
    again, ways = replay_as(routed(made, x, logits, output), way, {})
    assert not again.best.explains
    found = with_experts_exchanged(again, ways)
    assert found is not None
    assert found.experts_taken == tuple(order)
    assert found.best.trial.fault
    assert with_experts_exchanged(replay_routed(routed(made, x, logits, output * 1.1), {}), ways) is None


def test_up_that_is_taken_for_gate_is_found() -> None:
    """A loader that stacks up over gate, in every expert."""
    made, (x, logits) = model(13), inputs(13)
    other = Model(made.first.roll(MIDDLE, 1), made.last)
    output = fused(other, x, *softmax_then_top(logits, 2))
    way = replay_routed(routed(other, x, logits, output), {}).best.trial
    again, ways = replay_as(routed(made, x, logits, output), way, {})
    assert not again.best.explains
    found = with_experts_exchanged(again, ways)
    assert found is not None
    assert (found.best.trial.fault, found.experts_taken) == (True, None)
    assert found.best.trial.variant.name.startswith("gate_and_up_exchanged+")


def with_a_row_off(made: Model) -> Model:
    """Row 11 of the second matrix of expert 4 is 1.05 times what it was."""
    last = made.last.clone()
    last[4, 11] *= 1.05
    return made._replace(last=last)


def test_a_weight_of_one_expert_that_differs_does_not_follow() -> None:
    """One row of one expert's second matrix: its column in the tokens that the expert has."""
    made, (x, logits) = model(7), inputs(7)
    shares, experts = softmax_then_top(logits, 2)
    found = replay_routed(routed(made, x, logits, rounded_each(with_a_row_off(made), x, shares, experts)), {})
    assert not found.best.explains
    assert found.where is not None
    assert found.where.columns == (11,)
    assert set(found.where.tokens) <= set((experts == 4).any(-1).nonzero().flatten().tolist())


def test_sums_that_err_a_little_more_than_float32_are_another_kernel() -> None:
    """An accumulator of fewer bits in the first product: a rounding inside that falls the other way moves a token, and is no fault."""
    made, (x, logits) = model(14), inputs(14, tokens=64)
    noise = torch.Generator().manual_seed(14)
    shares, experts = softmax_then_top(logits, 2)
    total = torch.zeros(len(x), HIDDEN)
    for nth in range(2):
        for token, expert in enumerate(experts[:, nth].tolist()):
            sums = made.first[expert].float() @ x[token].float()
            gate, up = (sums + 6e-6 * (2 * torch.rand(sums.shape, generator=noise) - 1)).bfloat16().chunk(2)
            out = made.last[expert].float() @ (functional.silu(gate) * up).float()
            total[token] += shares[token, nth] * out.bfloat16().float()
    found = replay_routed(routed(made, x, logits, total.bfloat16()), {})
    assert not found.best.explains
    assert found.kernel is not None
    assert unknown_kernel(found, norms_of([found], {}), single=False)
    (wider,) = (one for one in told_unexplained("infer", found) if one.kind == "replay_experts_wider")
    assert wider.values["scale"] == 8


# --- recorded shares ---


def test_shares_follow_from_what_the_router_was_handed() -> None:
    """Over all experts, from x and the router's matrix: logits in float32 or rounded, scaled or not."""
    x, _ = inputs(8)
    weight = (torch.randn(EXPERTS, HIDDEN, generator=torch.Generator().manual_seed(8)) * 0.2).bfloat16()
    for rounds in (False, True):
        logits = x.float() @ weight.float().T
        logits = logits.bfloat16().float() if rounds else logits
        for router, (program, *_) in PROGRAMS_OF_ROUTERS.items():
            shares, experts = program(logits, 3)
            dense = torch.zeros(TOKENS, EXPERTS).scatter(1, experts, shares * 2.5)
            found = replay_routed(_shares(dense, experts, [x], weight), {"routed_scale": 2.5})
            assert found.explained
            assert found.best.trial.variant.name == f"{router}+logits_{'rounded' if rounds else 'float32'}"
            assert (found.constants["top_k"].value, found.constants["routed_scale"].value) == (3, 2.5)


def _shares(dense: Tensor, experts: Tensor, given: list[Tensor], weight: Tensor | None) -> Work:
    read = [matrix("given", array(one), "bfloat16" if one.dtype == torch.bfloat16 else "float32") for one in given]
    chosen = matrix("chosen", experts.numpy(), "int64")
    weights = {"weight": matrix("weight", array(weight), "bfloat16")} if weight is not None else {}
    output = matrix("shares", array(dense), "float32")
    return Work("Module.router.R.forward.0", (), (SHARES,), output, (*read, chosen), weights, "recorded", (), "pre_call")


def test_a_choice_that_is_not_the_greatest_does_not_follow() -> None:
    """Shares at an expert that has a smaller logit: a bias, or another route, that nothing recorded."""
    _, logits = inputs(9)
    shares, experts = softmax_then_top(logits, 2)
    experts[3, 0] = logits[3].argmin()
    dense = torch.zeros(TOKENS, EXPERTS).scatter(1, experts, shares)
    found = replay_routed(_shares(dense, experts, [logits], None), {})
    assert not found.best.explains
    assert found.where is not None
    assert found.where.tokens == (3,)


def test_a_sum_of_recorded_shares_follows_from_them() -> None:
    """Whatever the router computed: of the shares that were recorded, and not of logits."""
    made, (x, logits) = model(10), inputs(10)
    shares, experts = sigmoid(logits, 2)
    dense = torch.zeros(TOKENS, EXPERTS).scatter(1, experts, shares)
    work = routed(made, x, logits, weighted_inside(made, x, shares, experts))
    work = work._replace(operators=(WEIGHTED,), inputs=(work.inputs[0], matrix("shares", array(dense), "float32")))
    found = replay_routed(work, {})
    assert found.explained
    assert found.best.trial.variant.name == "silu+weighted_inside+summed_stepwise"


# --- near ties ---


def test_near_ties_are_listed_with_their_margins() -> None:
    """Two sides whose logits lie apart by rounding, one token on the two sides of a tie."""
    made, (x, logits) = model(11), inputs(11)
    order = logits[5].argsort(descending=True)
    logits[5, order[2]] = logits[5, order[1]] - 2.0**-9
    moved = logits.clone()
    moved[5, order[2]] = logits[5, order[1]] + 2.0**-9
    sides = [replay_routed(routed(made, x, one, fused(made, x, *softmax_then_top(one, 2))), {}) for one in (logits, moved)]
    assert routed_told.flips(sides[0], sides[0]) is None
    found = routed_told.flips(*sides)
    assert found is not None
    values = found.values
    assert (values["n"], values["of"], values["tokens"]) == (1, TOKENS, [5])
    np.testing.assert_allclose(values["margins"], [2.0**-9], rtol=5e-3)  # told with three digits
    assert values["usual"] > 10 * values["most"]


@pytest.mark.parametrize("operator", [ROUTED, WEIGHTED, SHARES])
def test_every_variant_has_a_name_of_its_own(operator: str) -> None:
    names = [variant.name for variant in FORMULAS[operator].variants]
    assert len(set(names)) == len(names)


def test_the_expert_whose_tokens_do_not_follow_is_named() -> None:
    """Another matrix of one expert, in one row; and none where tokens of all experts are off."""
    made, (x, logits) = model(12), inputs(12)
    shares, experts = softmax_then_top(logits, 1)
    found = replay_routed(routed(made, x, logits, rounded_each(with_a_row_off(made), x, shares, experts)), {})
    (told,) = routed_told.experts_hit("infer", found)
    assert told.values == {"side": "infer", "experts": [4], "of": EXPERTS}
    off = replay_routed(routed(made, x, logits, rounded_each(made, x, shares, experts) * 1.5 + x), {})
    assert routed_told.experts_hit("infer", off) == ()
