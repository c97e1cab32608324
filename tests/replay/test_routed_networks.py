"""Mixtures of experts of small networks whose modules bear numbers, recorded in every form: what is wrong is known by construction."""

from pathlib import Path

import networks
import pytest
from dump_analysis import pipeline
from dump_analysis.artefacts.replay_results import ModuleReplay
from networks import LAYERS, Network

LAYER = "layers.1."
RIGHT = ("same", "rounding")


def replayed(root: Path, network: Network, bare: str = "") -> dict[str, ModuleReplay]:
    """``bare``: the side, or both, that records no weight of an expert."""
    made = networks.weights_of(network)
    sides = networks.trainer(network, made), networks.engine(network, made)
    for side, label in zip(sides, ("train", "infer"), strict=True):
        for role in [role for role in side.roles if ".experts" in role and bare in (label, "both")]:
            side.entries[side.roles[role]]["parameters"] = {}
    paths = [str(side.write(root / label)) for label, side in zip(("train", "infer"), sides, strict=True)]
    train, infer = pipeline.open_pair([paths[0]], [paths[1]])
    mapping, _ = pipeline.propose_step(train, infer)
    results, _ = pipeline.replay_step(train, infer, mapping, "0" * 64, root / pipeline.REPLAY, {}, quiet=True)
    return {module.module: module for module in results.modules}


def routing(found: dict[str, ModuleReplay]) -> dict[str, str]:
    """The verdicts of what belongs to the mixture of the second layer; "right": float32 does not tell where a side rounds."""
    places = ("router", "router.weights", "router.experts", "moe")
    verdicts = {place: found[LAYER + place].verdict for place in places if LAYER + place in found}
    return {place: "right" if verdict in RIGHT else verdict for place, verdict in verdicts.items()}


@pytest.mark.parametrize(
    ("network", "operator"),
    [
        (Network(routed=True), "routed_experts"),
        (Network(routed=True, choices=("ids", "ids")), "weighted_experts"),
        (Network(routed=True, choices=("ids", "other order")), "routed_experts"),
        (Network(routed=True, choices=("map", "ids")), "weighted_experts"),
        (Network(routed=True, choices=("map", "map")), "weighted_experts"),
        (Network(routed=True, choices=("map", "ids"), apart=True, weighted=True), "routed_experts"),
        (Network(routed=True, choices=("ids", "ids"), apart=True), "weighted_experts"),
        (Network(routed=True, choices=("", "ids"), shared="plain"), "routed_experts"),
    ],
    ids=["logits", "ids", "ids in another order", "a map", "maps", "shares inside", "experts one by one", "a shared expert"],
)
def test_a_clean_pair_follows_in_whatever_form_it_was_recorded(tmp_path: Path, network: Network, operator: str) -> None:
    """Shares that both sides recorded are a module of their own; else the sum follows from the logits, those that there are."""
    found = replayed(tmp_path, network)
    assert set(routing(found).values()) == {"right"}
    for layer in range(LAYERS):
        made = found[f"layers.{layer}.moe"]
        assert (made.operator, made.train.unexplained, made.infer.unexplained) == (operator, 0, 0)
    for name in found:
        if ".experts." in name:
            assert found[name].verdict in RIGHT, name
    if network.choices == ("map", "map"):
        assert found[LAYER + "router.weights"].train.variant == "softmax_normalised+logits_float32"


def test_shares_that_are_not_normalised_are_told_where_they_are_made(tmp_path: Path) -> None:
    """Not at the sum, which follows from them; the layers around say which side it is."""
    found = replayed(tmp_path, Network(routed=True, choices=("ids", "ids"), fault="not normalised"))
    assert routing(found) == {"router": "right", "router.weights": "logic", "router.experts": "right", "moe": "right"}
    module = found[LAYER + "router.weights"]
    assert (module.side, module.infer.variant) == ("infer", "softmax_of_all")
    assert [told.kind for told in module.evidence] == ["replay_functions", "replay_function_elsewhere"]


def test_shares_of_exchanged_experts_are_the_router_s(tmp_path: Path) -> None:
    """The numbers are those of the greatest logits, the shares are each other's."""
    found = replayed(tmp_path, Network(routed=True, choices=("ids", "ids"), fault="ids exchanged"))
    assert routing(found) == {"router": "right", "router.weights": "logic", "router.experts": "right", "moe": "right"}
    assert found[LAYER + "router.weights"].side == "infer"


def test_a_router_off_its_own_logits_is_told_though_only_it_recorded_shares(tmp_path: Path) -> None:
    """The trainer records neither shares nor choice: the engine's sum follows from its shares, and these do not from its logits."""
    found = replayed(tmp_path, Network(routed=True, choices=("", "ids"), fault="ids exchanged"))
    module = found[LAYER + "moe"]
    assert (module.verdict, module.side) == ("logic", "infer")
    (told,) = (one for one in module.evidence if one.kind == "replay_unexplained")
    assert told.values["operator"] == "router_shares"


def test_logits_that_are_off_make_no_finding_of_what_follows_from_them(tmp_path: Path) -> None:
    """Other experts are chosen, as the logits say: no near tie, for something before is off."""
    found = replayed(tmp_path, Network(routed=True, choices=("ids", "ids"), fault="other expert"))
    assert routing(found) == {"router": "logic", "router.weights": "right", "router.experts": "right", "moe": "right"}
    assert [told.kind for told in found[LAYER + "router.experts"].evidence] == ["replay_flips_after"]


def test_a_stale_expert_is_its_weight_s_finding(tmp_path: Path) -> None:
    """Each side follows from its own: the sum is no second finding."""
    found = replayed(tmp_path, Network(routed=True, choices=("ids", "ids"), apart=True, stale="experts.1.down"))
    module = found[LAYER + "moe"]
    assert module.verdict == "logic"
    assert (module.train.unexplained, module.infer.unexplained) == (0, 0)
    assert module.evidence[0].kind == "replay_weights_differ"
    assert module.evidence[0].values["weight"] == LAYER + "experts.1.down.weight"


@pytest.mark.parametrize("bare", ["train", "infer"])
def test_experts_that_one_side_does_not_record_are_the_other_s(tmp_path: Path, bare: str) -> None:
    """One module an expert on one side, a stack on the other: each lends them."""
    found = replayed(tmp_path, Network(routed=True, choices=("ids", "ids")), bare=bare)
    for layer in range(LAYERS):
        module = found[f"layers.{layer}.moe"]
        assert module.verdict in RIGHT
        origins = {"train": module.train.weights, "infer": module.infer.weights}
        assert origins.pop(bare) == "borrowed"
        assert set(origins.values()) == {"recorded"}


def test_experts_that_nobody_recorded_are_missing(tmp_path: Path) -> None:
    """Unknown, and what is missing is told: no fault."""
    found = replayed(tmp_path, Network(routed=True, choices=("ids", "ids")), bare="both")
    module = found[LAYER + "moe"]
    assert module.verdict == "unknown"
    assert [told.kind for told in module.would_decide] == ["replay_no_weight"]
