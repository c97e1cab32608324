"""Trouble that people met in public, as tests: comparing, replay and conclusions (cases C and D), each told by the whole command.

The pairs are toys that the real msprobe dumped; each differs in what a report says that it differed in. Where one side is tested here,
test_replay_toys_torch.py walks both.
"""

from pathlib import Path

import pytest
from diagnosing import SIDES, diagnosed, kinds, on, without_parameters
from toys.pairs import Toys
from toys.switches import DEEP_LAYERS, Side, Switches


@pytest.mark.parametrize("side", SIDES)
def test_c05_positions_that_count_from_another_start(toys: Toys, tmp_path: Path, side: Side) -> None:
    """C05: one finding, which heals in attention: what differs behind it is rounding, and is not called its effect."""
    dumped = toys.pair("positions_off_by_one", side)
    found = diagnosed(dumped.train, dumped.infer, tmp_path)
    assert (found.code, found.logic["boundary"], found.logic["side"]) == (1, "positions", "unknown")
    assert {"positions_heal"} <= set(kinds(found.logic["evidence"]))
    assert "may_be_of_inputs" not in kinds(found.logic["evidence"])
    (told,) = [one for one in found.logic["evidence"] if one["kind"] == "positions_heal"]
    assert told["values"]["offset"] == (-1 if side == "train" else 1)
    assert {one["verdict"] for one in found.replay["modules"]} == {"same"}
    row = found.boundary("layers.0.attn_core.out")
    assert row["rel_l2"] < 2**-8
    assert row["ulp"]["max_at_row_scale"] <= 2


def test_c05_rotated_values_differ_by_an_angle(toys: Toys, tmp_path: Path) -> None:
    """C05: two engines record them: they differ greatly, and attention does not."""
    heads = {"hidden_size": 64, "num_attention_heads": 4}
    found = diagnosed(toys.side("infer"), toys.side("infer", on("positions_off_by_one")), tmp_path, configs=(heads, heads))
    assert (found.code, found.findings[0]["boundary"]) == (1, "positions")
    assert found.findings[0]["evidence"][1]["kind"] == "positions_heal"
    assert found.boundary("layers.0.q_rope.out")["rel_l2"] > 0.1
    assert found.boundary("layers.0.attn_core.out")["rel_l2"] < 2**-8
    assert [one["boundary"] for one in found.findings if one["character"] == "logic"] == ["positions"]


def test_c14_weights_that_are_not_in_the_dumps(toys: Toys, tmp_path: Path) -> None:
    """C14: of two faults the one that needs no weights is found on its side; what was not recomputed is said with its reason, and nothing
    says that all faults are found."""
    dumped = toys.both(infer=Switches((("eps", 1), ("gate_up_order", 2))))
    train, infer = (without_parameters(root, tmp_path / root.name) for root in (dumped.train, dumped.infer))
    found = diagnosed(train, infer, tmp_path)
    assert (found.code, found.results["weights"]) == (1, [])
    (finding,) = [one for one in found.findings if one["character"] == "logic"]
    assert (finding["boundary"], finding["side"]) == ("layers.2.act_mul.out", "infer")
    modules = {one["module"]: one for one in found.replay["modules"]}
    weightless = {f"layers.{layer}.{name}" for layer in range(3) for name in ("resid_attn", "resid_mlp", "act_mul", "attn_core")}
    assert {name for name, one in modules.items() if one["verdict"] in ("same", "logic")} == weightless
    for name in modules.keys() - weightless:
        assert (modules[name]["verdict"], kinds(modules[name]["would_decide"])) == ("unknown", ["replay_no_weight"])
    (weights,) = [one for one in found.conclusion["hypotheses"] if one["name"] == "weights_out_of_sync"]
    assert weights["state"] == "open"
    assert "replay_no_weight" in str(found.conclusion["would_decide"])
    assert found.conclusion["first_divergence"]["boundary"] == "layers.1.input_norm.out"
    (left,) = [one for one in found.findings if one["boundary"] == "layers.1.input_norm.out"]
    assert (left["character"], left["side"]) == ("unknown", "unknown")


@pytest.mark.parametrize("side", SIDES)
def test_c15_channels_that_are_paired_otherwise(toys: Toys, tmp_path: Path, side: Side) -> None:
    """C15: what is rotated is equal, the first token stays so, and the values follow from the other pairing."""
    dumped = toys.pair("interleaved_rotation", side)
    found = diagnosed(dumped.train, dumped.infer, tmp_path)
    assert (found.code, found.differing_weights()) == (1, [])
    assert found.logic["boundaries"] == [f"layers.{at}.attn_core.out" for at in range(3)]
    assert found.logic["side"] in (side, "unknown")
    (told,) = [one for one in found.logic["evidence"] if one["kind"] == "replay_functions"]
    assert ["interleaved" in told["values"][label] for label in SIDES] == [label == side for label in SIDES]
    assert [found.boundary(f"layers.0.{name}.out")["status"] for name in ("q", "k", "v")] == ["EXACT"] * 3
    assert found.boundary("layers.0.attn_core.out")["where"]["onset_token"] >= 1
    assert found.logic["size"]["unexplained"] == 0


def test_c15_what_was_rotated_differs_in_every_channel_but_in_the_first_token(toys: Toys, tmp_path: Path) -> None:
    """C15: two engines, which record it."""
    heads = {"hidden_size": 64, "num_attention_heads": 4}
    found = diagnosed(toys.side("infer"), toys.side("infer", on("interleaved_rotation")), tmp_path, configs=(heads, heads))
    assert found.code == 1
    assert found.findings[0]["boundary"] == "layers.0.q_rope.out"
    assert "interleaved" in found.findings[0]["cause"]["text"]
    where = found.boundary("layers.0.q_rope.out")["where"]
    assert (where["onset_token"], where["tokens"]["touched"], where["columns"]) == (1, 23, {"touched": 64, "of": 64})


def test_c15_rows_that_were_put_where_the_other_pairing_reads_them(toys: Toys, tmp_path: Path) -> None:
    """C15: the same function of the same weights in another order of channels."""
    dumped = toys.both(infer=on("interleaved_rotation", "pairs_apart"))
    found = diagnosed(dumped.train, dumped.infer, tmp_path)
    assert (found.code, found.findings, found.differing_weights()) == (0, [], [])
    assert [found.boundary(f"layers.0.{name}.out")["status"] for name in ("q", "k", "attn_core")] == ["EXACT"] * 3


def test_c16_a_window_that_no_prompt_fills(toys: Toys, tmp_path: Path) -> None:
    """C16: every boundary is exact, and the configurations state other windows: both are said, and that the dumps do not refute it."""
    dumped = toys.both()
    found = diagnosed(dumped.train, dumped.infer, tmp_path, configs=({"sliding_window": 4096}, {"sliding_window": 32768}))
    assert (found.code, found.conclusion["first_divergence"]) == (1, None)
    assert (found.logic["boundary"], found.logic["side"], found.logic["confirmed_by"]) == ("config.attention_window", "unknown", ["config"])
    assert found.logic["layers"] == [0, 1, 2]
    values = found.logic["cause"]["values"]
    assert (values["train"], values["infer"]) == (4096, 32768)
    assert "no effect here" in found.logic["cause"]["text"]
    (config,) = [one for one in found.conclusion["hypotheses"] if one["name"] == "config"]
    assert (config["state"], config["findings"]) == ("supported", ["F1"])
    assert "a window of 4096 for train" in found.conclusion["summary"][0]["text"]


def test_c16_windows_that_are_stated_alike(toys: Toys, tmp_path: Path) -> None:
    """C16, control: the same window on both sides, and another way to write it."""
    dumped = toys.both()
    found = diagnosed(dumped.train, dumped.infer, tmp_path, configs=({"sliding_window": 4096}, {"text_config": {"sliding_window": 4096.0}}))
    assert (found.code, found.findings) == (0, [])


@pytest.mark.parametrize("side", ["train"])
def test_d04_an_activation_that_is_fused_is_rounding(toys: Toys, tmp_path: Path, side: Side) -> None:
    """D04 a: a quarter of the elements differ, none by more than a step, and both ways are named."""
    dumped = toys.pair("fused_activation", side)
    found = diagnosed(dumped.train, dumped.infer, tmp_path)
    (finding,) = found.findings
    assert (found.code, finding["character"], finding["boundaries"]) == (0, "rounding", ["layers.1.act_mul.out"])
    assert finding["size"]["ulp_max"] == 1
    assert 0.2 < finding["size"]["unequal"] / finding["size"]["of"] < 0.35
    fused, stepwise = "activation and product in float32, rounded once", "the activation is rounded before it is multiplied"
    train, infer = (fused, stepwise) if side == "train" else (stepwise, fused)
    assert finding["cause"]["text"] == f"gated_activation: on train silu, {train}; on infer silu, {infer}"


@pytest.mark.parametrize("side", ["infer"])
def test_d04_another_activation_is_logic(toys: Toys, tmp_path: Path, side: Side) -> None:
    """D04 b: alike by its cosine; gelu explains the one side to the last element, silu the other."""
    dumped = toys.pair("gelu", side)
    found = diagnosed(dumped.train, dumped.infer, tmp_path)
    assert (found.code, found.logic["boundary"], found.logic["side"]) == (1, "layers.1.act_mul.out", side)
    assert found.logic["cause"]["kind"] == "replay_functions"
    told = found.logic["cause"]["values"]
    assert ["gelu_tanh" in told[label] for label in SIDES] == [label == side for label in SIDES]
    (module,) = [one for one in found.replay["modules"] if one["module"] == "layers.1.act_mul"]
    assert [module[label]["explained"] for label in SIDES] == [1.0, 1.0]
    row = found.boundary("layers.1.act_mul.out")
    assert row["unequal"]["share"] > 0.98
    assert row["cosine"] > 0.95


@pytest.mark.parametrize("side", ["train"])
def test_d05_a_norm_that_a_cosine_calls_equal(toys: Toys, tmp_path: Path, side: Side) -> None:
    """D05: where the stream has a root mean square of .02, eps scales the norm by 1.01, which a cosine does not see."""
    faulty, clean = Switches((("small_embeddings", 0), ("eps", 0))), Switches((("small_embeddings", 0),))
    dumped = toys.both(*((faulty, clean) if side == "train" else (clean, faulty)))
    found = diagnosed(dumped.train, dumped.infer, tmp_path)
    assert found.code == 1
    row = found.boundary("layers.0.input_norm.out")
    assert row["cosine"] > 0.9999
    assert row["norm_ratio"] == pytest.approx(1.0112 if side == "train" else 1 / 1.0112, abs=2e-3)
    assert (found.logic["boundary"], found.logic["side"]) == ("layers.0.input_norm.out", side)
    values = {"train": 1e-6, "infer": 1e-6, side: 1e-5}
    assert found.logic["cause"]["text"] == f"rms_norm eps is {values['train']:g} on train, {values['infer']:g} on infer"


@pytest.mark.parametrize("side", ["infer"])
def test_d05_one_row_of_many(toys: Toys, tmp_path: Path, side: Side) -> None:
    """D05: one token of 24 is scaled by 1.02: found as a row, with its factor."""
    dumped = toys.pair("one_token", side)
    found = diagnosed(dumped.train, dumped.infer, tmp_path)
    assert (found.code, found.logic["boundary"], found.logic["side"]) == (1, "layers.1.down.out", side)
    assert found.logic["cause"]["kind"] == "replay_fits_tokens"
    assert (found.logic["cause"]["values"]["at"], found.logic["cause"]["values"]["factors"]) == ([11], [1.02])
    row = found.boundary("layers.1.down.out")
    assert (row["where"]["pattern"], row["where"]["tokens"]["touched"], row["where"]["onset_token"]) == ("tokens", 1, 11)
    assert row["cosine"] > 0.9999


@pytest.mark.parametrize("side", SIDES)
def test_d05_attention_that_is_scaled(toys: Toys, tmp_path: Path, side: Side) -> None:
    """D05: a factor that no cosine shows, on values that no variant explains: logic, with the factor that the data hold."""
    dumped = toys.pair("attention_scaled", side)
    found = diagnosed(dumped.train, dumped.infer, tmp_path)
    assert (found.code, found.logic["boundary"], found.logic["side"]) == (1, "layers.1.attn_core.out", side)
    assert found.boundary("layers.1.attn_core.out")["cosine"] > 0.9999
    (told,) = [one for one in found.logic["evidence"] if one["kind"] == "one_scale"]
    assert told["values"]["scale"] == pytest.approx(1 / 1.4142 if side == "train" else 1.4142, abs=2e-3)


def test_d06_a_small_cause_with_a_large_effect(toys: Toys, tmp_path: Path) -> None:
    """D06: norms that round each step, in a deep chain that magnifies what it is handed: rounding to the end, told with its growth, and no
    fault of a deep layer."""
    norms = tuple(("norms_bfloat16", layer) for layer in range(DEEP_LAYERS))
    dumped = toys.both(train=on("deep"), infer=Switches((("deep", 0), *norms)))
    found = diagnosed(dumped.train, dumped.infer, tmp_path)
    assert (found.code, found.conclusion["consistency"]) == (0, "consistent")
    assert {one["character"] for one in found.findings} == {"rounding"}
    assert {boundary.split(".")[2] for one in found.findings for boundary in one["boundaries"]} == {"input_norm", "post_norm"}
    assert found.findings[0]["boundary"] == "layers.0.input_norm.out"
    assert "every step is rounded" in found.findings[0]["cause"]["text"]
    stream = [found.boundary(f"layers.{layer}.resid_mlp")["cosine"] for layer in range(DEEP_LAYERS)]
    assert stream == sorted(stream, reverse=True)
    assert stream[0] > 0.998
    assert stream[-1] < 0.7
    chain = found.findings[0]["chain"]
    assert [link["layer"] for link in chain] == list(range(DEEP_LAYERS))
    assert max(link["local"] for link in chain) < 2**-7
    assert chain[-1]["propagated"] > 0.5
    summary = found.conclusion["summary"][0]
    assert summary["kind"] == "sum_rounding_grown"
    assert (summary["values"]["boundary"], summary["values"]["end"] > 0.5) == ("logits", True)


def test_a_stated_constant_that_one_layer_shows_is_one_finding(toys: Toys, tmp_path: Path) -> None:
    """The other layers follow from either value: a finding of the configurations beside that of the layer would be one fault told twice."""
    dumped = toys.pair("eps", "infer")
    found = diagnosed(dumped.train, dumped.infer, tmp_path, configs=({"rms_norm_eps": 1e-6}, {"rms_norm_eps": 1e-5}))
    assert (found.code, found.logic["boundary"]) == (1, "layers.1.input_norm.out")
