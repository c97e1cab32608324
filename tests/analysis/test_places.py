"""Names of places by their role, on networks whose modules bear numbers: what each tensor is, is known by construction."""

from pathlib import Path

import networks
import pytest
from dump_analysis import sides
from dump_analysis.mapping import join, places
from networks import Network, Recording

ATTENTION = ("input_norm", "q", "k", "v", "attn_core", "o_proj")
LATENT = ("input_norm", "q_a", "q_a_norm", "q_b", "kv_a", "kv_a_norm", "kv_b", "attn_core", "o_proj")
MLP = ("post_norm", "gate", "up", "act_mul", "down")


def named(root: Path, network: Network) -> tuple[dict[str, str], Recording, Recording]:
    """Boundary -> the train entry whose output (or input, where no module makes the value) it is; both recordings."""
    weights = networks.weights_of(network)
    train, infer = networks.trainer(network, weights), networks.engine(network, weights)
    pair = sides.open_side("train", [train.write(root / "train")]), sides.open_side("infer", [infer.write(root / "infer")])
    joined = join.join(*pair)
    rows = sorted(joined.rows, key=lambda row: (row.train.ready, row.train.time))
    found = places.names_of(rows, joined.train, joined.infer)
    assert len(set(found)) == len(found), "a name stands twice"
    return dict(zip(found, [{spot.entry for spot in row.train.spots} for row in rows], strict=True)), train, infer


def wanted(train: Recording, parts: tuple[str, ...]) -> dict[str, str]:
    """Boundary -> an entry that takes or returns it."""
    taken = {"attn_core": "o_proj", "act_mul": "down"}
    made = {f"layers.{n}.{part}.out": train.roles[f"layers.{n}.{taken.get(part, part)}"] for n in range(networks.LAYERS) for part in parts}
    streams = {f"layers.{n}.resid_attn": train.roles[f"layers.{n}.post_norm"] for n in range(networks.LAYERS)}
    streams |= {f"layers.{n}.resid_mlp": train.roles[f"layers.{n}"] for n in range(networks.LAYERS)}
    return {"embedding.out": train.roles["embedding"], "final_norm.out": train.roles["final_norm"], **made, **streams}


@pytest.mark.parametrize(
    ("network", "parts"),
    [
        (Network(), ATTENTION + MLP),
        (Network(latent=True), LATENT + MLP),
        (Network(sandwich=True), (*ATTENTION, "attn_post_norm", *MLP, "mlp_post_norm")),
        (Network(routed=True), (*ATTENTION, "post_norm")),
    ],
    ids=["plain", "latent", "sandwich", "routed"],
)
def test_places_are_named_by_their_role(tmp_path: Path, network: Network, parts: tuple[str, ...]) -> None:
    """Would catch a name that rests on a module's name, a station that is skipped, gate taken for up, q_a taken for q."""
    found, train, _ = named(tmp_path, network)
    lost = {name: entry for name, entry in wanted(train, parts).items() if entry not in found.get(name, set())}
    assert not lost


def test_the_shared_key_of_latent_attention_has_a_name(tmp_path: Path) -> None:
    """The columns of kv_a that no norm reads: the trainer rotates them in code, so they are named by what is left over."""
    found, train, _ = named(tmp_path, Network(latent=True))
    for layer in range(networks.LAYERS):
        assert found[f"layers.{layer}.k_pe.out"] == {train.roles[f"layers.{layer}.kv_a"]}


def test_routed_experts_are_no_mlp(tmp_path: Path) -> None:
    """What adds to the stream is the experts' sum, and the narrow head before it the router's logits."""
    found, train, _ = named(tmp_path, Network(routed=True))
    for layer in range(networks.LAYERS):
        assert train.roles[f"layers.{layer}.router"] in found[f"layers.{layer}.router.logits"]
        assert train.roles[f"layers.{layer}.mlp"] in found[f"layers.{layer}.moe.out"]
    assert not [name for name in found if name.endswith(("down.out", "act_mul.out"))]
