"""Mixtures of experts dumped by the real msprobe, diagnosed by the whole command: what was built in is what is found, and nothing else.

The engine's dump holds neither experts' weights nor a choice. Products are torch's: only what holds for any order of sums is asserted.
"""

from pathlib import Path
from typing import Any

import pytest
from diagnosing import Answer, diagnosed
from toys.arch.shapes import LAYERS
from toys.pairs import Toys

Json = dict[str, Any]
SUMS = [f"layers.{layer}.moe.out" for layer in range(LAYERS)]


def answer(toys: Toys, folder: Path, train: str, infer: str, configs: tuple[Json, Json] | None = None) -> Answer:
    return diagnosed(toys.architecture("train", train), toys.architecture("infer", infer), folder, configs=configs)


def logic(found: Answer) -> list[Json]:
    return [one for one in found.findings if one["character"] == "logic"]


def modules(found: Answer) -> dict[str, Json]:
    return {one["module"]: one for one in found.replay["modules"]}


def test_the_sums_of_a_clean_pair_follow(toys: Toys, tmp_path: Path) -> None:
    """The shares, the choice and the experts that the engine does not record hide nothing: its sums follow from them."""
    found = answer(toys, tmp_path, "mixture", "mixture")
    assert logic(found) == []
    for layer in range(LAYERS):
        made = modules(found)[f"layers.{layer}.moe"]
        assert made["verdict"] == "rounding"
        assert made["train"]["variant"] == "softmax_normalised+silu+experts_rounded+summed_once"
        assert made["infer"]["variant"] == "softmax_normalised+silu+experts_float32+shares_rounded+summed_once"
        assert (made["train"]["weights"], made["infer"]["weights"]) == ("recorded", "borrowed")
        assert made["span"]["from"] == [f"layers.{layer}.post_norm.out", f"layers.{layer}.router.logits"]
    covered = {one["boundary"]: one["covered_by"] for one in found.conclusion["evidence_missing"]}
    assert covered["layers.0.router.experts"] == covered["layers.0.router.weights"] == "layers.0.moe.out"


@pytest.mark.parametrize("side", ["train", "infer"])
def test_another_number_of_experts_is_told_with_both(toys: Toys, tmp_path: Path, side: str) -> None:
    """Its side only where a configuration contradicts it."""
    names = ("mixture_of_three", "mixture") if side == "train" else ("mixture", "mixture_of_three")
    found = answer(toys, tmp_path, *names)
    (finding,) = logic(found)
    assert (finding["boundary"], finding["boundaries"], finding["side"]) == (SUMS[0], SUMS, "unknown")
    own = {"train": 3 if side == "train" else 2, "infer": 3 if side == "infer" else 2}
    assert finding["cause"]["values"] == {"operator": "routed_experts", "name": "top_k", **own}


def test_a_number_of_experts_that_its_configuration_contradicts_is_that_side_s(toys: Toys, tmp_path: Path) -> None:
    configs = {"num_experts_per_tok": 2}, {"num_experts_per_tok": 2}
    found = answer(toys, tmp_path, "mixture", "mixture_of_three", configs)
    (finding,) = logic(found)
    assert (finding["boundary"], finding["side"]) == (SUMS[0], "infer")
    assert "config" in finding["confirmed_by"]


@pytest.mark.parametrize(("other", "router"), [("mixture_not_normalised", "softmax_of_all"), ("mixture_of_sigmoids", "sigmoid_normalised")])
def test_another_router_is_told_by_both_functions(toys: Toys, tmp_path: Path, other: str, router: str) -> None:
    found = answer(toys, tmp_path, "mixture", other)
    (finding,) = logic(found)
    assert (finding["boundary"], finding["boundaries"]) == (SUMS[0], SUMS)
    told = next(one for one in finding["evidence"] if one["kind"] == "replay_functions")
    assert (told["values"]["train"]["kind"], told["values"]["infer"]["kind"]) == ("routed_softmax_normalised", f"routed_{router}")


@pytest.mark.parametrize(("states", "side"), [(True, "infer"), (False, "train")])
def test_a_router_that_its_configuration_contradicts_is_that_side_s(toys: Toys, tmp_path: Path, states: bool, side: str) -> None:
    found = answer(toys, tmp_path, "mixture", "mixture_not_normalised", ({"norm_topk_prob": states},) * 2)
    (finding,) = logic(found)
    assert (finding["boundary"], finding["side"]) == (SUMS[0], side)
    assert f"replay_router_stated{'' if states else '_open'}" in {one["kind"] for one in finding["evidence"]}


def test_a_factor_of_the_routed_sum_applied_twice_is_one_finding(toys: Toys, tmp_path: Path) -> None:
    """2.5 on one side, 6.25 on the other: both are told, the configuration says whose is wrong."""
    configs = {"routed_scaling_factor": 2.5}, {"routed_scaling_factor": 2.5}
    found = answer(toys, tmp_path, "mixture_scaled", "mixture_scaled_twice", configs)
    (finding,) = logic(found)
    assert (finding["boundary"], finding["boundaries"], finding["side"]) == (SUMS[0], SUMS, "infer")
    values = finding["cause"]["values"]
    assert (values["name"], values["train"]) == ("routed_scale", 2.5)
    assert abs(values["infer"] - 6.25) < 0.05


def test_a_factor_that_one_side_lacks(toys: Toys, tmp_path: Path) -> None:
    found = answer(toys, tmp_path, "mixture", "mixture_scaled")
    (finding,) = logic(found)
    assert (finding["boundary"], finding["cause"]["values"]["train"]) == (SUMS[0], 1)
    assert abs(finding["cause"]["values"]["infer"] - 2.5) < 0.02


@pytest.mark.parametrize("side", ["train", "infer"])
def test_experts_that_stand_for_each_other_are_named(toys: Toys, tmp_path: Path, side: str) -> None:
    """The one side records its experts, in its own order; the other side's are not recorded."""
    names = ("mixture_exchanged", "mixture") if side == "train" else ("mixture", "mixture_exchanged")
    found = answer(toys, tmp_path, *names)
    (finding,) = logic(found)
    assert finding["boundaries"] == SUMS
    told = next(one for one in finding["evidence"] if one["kind"] == "replay_experts_exchanged")
    assert told["values"]["experts"] == [1, 2]
