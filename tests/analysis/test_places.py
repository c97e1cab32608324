"""Names of places by their role, on networks whose modules bear numbers: what each tensor is, is known by construction."""

from pathlib import Path

import networks
import numpy as np
import pytest
from dump_analysis import sides
from dump_analysis.mapping import proposal
from dump_analysis.mapping.joining import join
from dump_analysis.mapping.joining.joined import JoinedSides
from dump_analysis.mapping.naming import places
from networks import LAYERS, Array, Network, Recording

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
    found = places.names_of(rows, joined.train, joined.infer).names
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


# --- layers that the stream does not show ---

QUIET = np.float32(1e-30)  # an addend of this size is lost in the stream


def quiet_weights(*modules: str, ones: bool) -> dict[str, Array]:
    """Weights of the plain network in which these modules add nothing that the stream can hold; with ``ones``, all gains are alike."""
    weights = networks.weights_of(Network())
    return {
        name: np.ones_like(value) if ones and "norm" in name else value * QUIET if name in modules else value
        for name, value in weights.items()
    }


def joined_pair(root: Path, train: Recording, infer: Recording) -> JoinedSides:
    joined = join.join(sides.open_side("train", [train.write(root / "train")]), sides.open_side("infer", [infer.write(root / "infer")]))
    return joined._replace(rows=sorted(joined.rows, key=lambda row: (row.train.ready, row.train.time)))


def untrue(joined: JoinedSides, train: Recording) -> dict[str, set[str]]:
    """Names whose row the trainer did not record where its network says that it is -> where it was recorded."""
    role = {entry: name for name, entry in train.roles.items()}
    taken = {"attn_core": "o_proj.input", "act_mul": "down.input", "resid_attn": "post_norm.input"}
    found = {}
    for name, row in zip(places.names_of(joined.rows, joined.train, joined.infer).names, joined.rows, strict=True):
        stem = name.removesuffix(".out")
        layer, _, part = stem.rpartition(".")
        wanted = f"{layer}.output" if part == "resid_mlp" else f"{layer}.{taken[part]}" if part in taken else f"{stem}.output"
        wanted = "lm_head.output" if name == "logits" else wanted
        recorded = {f"{role[spot.entry]}.{spot.io}" for spot in row.train.spots}
        if wanted not in recorded and not name.startswith("Module."):
            found[name] = recorded
    return found


@pytest.mark.parametrize("ones", [False, True])
@pytest.mark.parametrize(
    "quiet",
    [
        *[(f"layers.{n}.o_proj", f"layers.{n}.down") for n in range(LAYERS)],
        *[(f"layers.{n}.{part}",) for n in range(LAYERS) for part in ("o_proj", "down")],
        ("layers.1.down", "layers.2.o_proj"),
    ],
    ids="+".join,
)
def test_a_layer_that_changes_nothing_moves_no_name(tmp_path: Path, quiet: tuple[str, ...], ones: bool) -> None:
    """Its output is its input, so that two stations are one node: later layers slipped by one, and attention became MLP."""
    weights = quiet_weights(*quiet, ones=ones)
    train, infer = networks.trainer(Network(), weights), networks.engine(Network(), weights)
    joined = joined_pair(tmp_path, train, infer)
    names, doubtful = places.names_of(joined.rows, joined.train, joined.infer)
    assert not untrue(joined, train)
    wanted = {f"layers.{n}.{part}.out" for n in range(LAYERS) for part in ("q", "k", "v", "attn_core", "o_proj", "gate", "up", "down")}
    assert wanted <= set(names)
    assert doubtful, "nothing says that the stream does not show the layers"


def test_layers_that_are_one_and_change_nothing_are_not_the_end(tmp_path: Path) -> None:
    """Two equal layers at the end add nothing: the first one's norm was taken for the final norm, and its q for the logits."""
    weights = quiet_weights("layers.1.o_proj", "layers.1.down", ones=True)
    weights |= {name.replace("layers.1.", "layers.2."): value for name, value in weights.items() if name.startswith("layers.1.")}
    train, infer = networks.trainer(Network(), weights), networks.engine(Network(), weights)
    joined = joined_pair(tmp_path, train, infer)
    assert not untrue(joined, train)
    assert "layers.1.q.out" in places.names_of(joined.rows, joined.train, joined.infer).names


def without_norms(infer: Recording, outputs: int) -> Recording:
    """The engine as it is recorded without its norms, each layer with so many outputs."""
    for role, entry in infer.roles.items():
        if "norm" in role:
            del infer.entries[entry]
            del infer.trace[entry]
        elif role.count(".") == 1:
            infer.entries[entry]["output"] = infer.entries[entry]["output"][:outputs]
    return infer


def test_a_stream_that_ends_among_the_layers_has_no_final_norm(tmp_path: Path) -> None:
    """Neither norms nor residuals of the engine are recorded: what reads the last known station is a layer's norm, not the final one."""
    weights = networks.weights_of(Network())
    train, infer = networks.trainer(Network(), weights), without_norms(networks.engine(Network(), weights), 1)
    joined = joined_pair(tmp_path, train, infer)
    assert len(joined.rows) > LAYERS
    assert not untrue(joined, train)


def test_the_stream_is_the_sum_of_two_outputs_where_nothing_else_records_it(tmp_path: Path) -> None:
    """An engine's layers return branch and residual apart: with no norm recorded, the trainer's stream had no counterpart."""
    weights = networks.weights_of(Network())
    train, infer = networks.trainer(Network(), weights), without_norms(networks.engine(Network(), weights), 2)
    mapping = proposal.propose(
        sides.open_side("train", [train.write(tmp_path / "train")]), sides.open_side("infer", [infer.write(tmp_path / "infer")])
    ).mapping
    rows = {row.boundary: row for row in mapping.boundaries}
    for layer in range(LAYERS):
        row = rows[f"layers.{layer}.resid_mlp"]
        assert [source.name for source in row.train.sources] == [train.output(f"layers.{layer}")]
        assert row.infer.combine == "sum"
        assert [source.name for source in row.infer.sources] == [infer.output(f"layers.{layer}", at) for at in (0, 1)]
    assert "logits" in rows
    assert {gap.boundary for gap in mapping.evidence_missing} >= {"final_norm.out", "final_norm.weight"}


def test_the_sum_after_the_last_layer_is_found_with_norms_of_one_output(tmp_path: Path) -> None:
    """The next layer's norm takes the residual, so that all sums but the last are recorded."""
    weights = networks.weights_of(Network())
    train, infer = networks.trainer(Network(), weights), networks.engine(Network(), weights)
    for role, entry in infer.roles.items():
        if "norm" in role:
            infer.entries[entry]["output"] = infer.entries[entry]["output"][:1]
    joined = joined_pair(tmp_path, train, infer)
    names = places.names_of(joined.rows, joined.train, joined.infer).names
    last = joined.rows[names.index(f"layers.{LAYERS - 1}.resid_mlp")].infer
    assert last.combine == "sum"
    assert [source.name for source in last.sources] == [infer.output(f"layers.{LAYERS - 1}", at) for at in (0, 1)]
    assert sum(row.infer.combine == "sum" for row in joined.rows) == 1
    assert not untrue(joined, train)


def test_parameters_without_a_place_are_not_one_because_their_records_share_a_name(tmp_path: Path) -> None:
    """Numbered modules of two sides bear one name by chance; their shapes were never compared."""
    weights = quiet_weights("layers.1.o_proj", "layers.1.down", ones=True)
    train, infer = networks.trainer(Network(), weights), networks.engine(Network(), weights)
    mapping = proposal.propose(
        sides.open_side("train", [train.write(tmp_path / "train")]), sides.open_side("infer", [infer.write(tmp_path / "infer")])
    ).mapping
    records = {f"{entry}.parameters.weight" for entry in train.roles.values()}
    gaps = [gap for gap in mapping.evidence_missing if set(gap.train + gap.infer) & records]
    shared = [gap for gap in gaps if gap.train and gap.infer]
    assert not shared
    assert {gap.reason.kind for gap in gaps} == {"not_recorded"}
    names = [name for gap in gaps for name in gap.train + gap.infer]
    assert len(set(names)) < len(names), "no record's name stands on both sides: the test shows nothing"


def test_rows_numbered_by_their_place_bear_a_note(tmp_path: Path) -> None:
    """Where layers look alike to the stream a reader must see that the number is not from it."""
    weights = quiet_weights("layers.1.o_proj", "layers.1.down", ones=False)
    train, infer = networks.trainer(Network(), weights), networks.engine(Network(), weights)
    mapping = proposal.propose(
        sides.open_side("train", [train.write(tmp_path / "train")]), sides.open_side("infer", [infer.write(tmp_path / "infer")])
    ).mapping
    notes = {row.boundary: row.note for row in mapping.boundaries}
    assert "numbered by its place" in (notes["layers.1.q.out"] or "")
    assert notes["layers.0.q.out"] is None
