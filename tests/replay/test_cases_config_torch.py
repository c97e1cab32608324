"""Trouble that people met in public, as tests: configuration and parameters that differ (cases A), each told by the whole command.

The pairs are toys that the real msprobe dumped; each differs in what a report says that it differed in. Where one side is tested here,
test_replay_toys_torch.py walks both.
"""

from pathlib import Path

import pytest
from diagnosing import diagnosed, kinds, on
from toys.pairs import Toys
from toys.switches import Side


def test_a01_a_rotary_base_that_fell_back_to_its_default(toys: Toys, tmp_path: Path) -> None:
    """A01: two engines record what they rotated: equal before it, in the first token, and in the pair that turns once a token; the base is
    named with both values, and the side where a configuration says which was meant."""
    heads = {"hidden_size": 64, "num_attention_heads": 4}
    sides = toys.side("infer"), toys.side("infer", on("rope_base"))
    found = diagnosed(*sides, tmp_path, configs=(heads, heads))
    assert found.code == 1
    finding = found.findings[0]
    assert (finding["boundary"], finding["character"], finding["side"]) == ("layers.0.q_rope.out", "logic", "unknown")
    assert finding["cause"]["text"] == "rotary rope_theta is 1e+04 on train, 1e+06 on infer"
    assert finding["layers"] == [0, 1, 2]
    assert [found.boundary(f"layers.0.{name}.out")["status"] for name in ("q", "k", "v")] == ["EXACT"] * 3
    where = found.boundary("layers.0.q_rope.out")["where"]
    assert (where["onset_token"], where["tokens"]["touched"]) == (1, 23)
    assert where["columns"] == {"touched": 56, "of": 64}  # of each of four heads all but the two columns of its first pair
    meant = {**heads, "rope_theta": 10000.0}
    known = diagnosed(*sides, tmp_path, configs=(meant, meant)).findings[0]
    assert (known["side"], known["confirmed_by"]) == ("infer", ["replay", "config"])


def test_a05_an_engine_that_ties_its_head_to_the_embedding(toys: Toys, tmp_path: Path) -> None:
    """A05: the engine records no head; its logits follow from its embedding, and not from the head that the trainer recorded."""
    dumped = toys.both(infer=on("tied_head"))
    found = diagnosed(dumped.train, dumped.infer, tmp_path)
    assert (found.code, found.differing_weights(), found.logic["boundary"], found.logic["side"]) == (1, [], "logits", "infer")
    assert (found.logic["cause"]["kind"], found.logic["confirmed_by"]) == ("replay_head_tied", ["replay"])


def test_a05_a_recorded_head_that_equals_its_embedding(toys: Toys, tmp_path: Path) -> None:
    """A05: both heads are recorded. The weight is the finding, with what it equals; the logits made of it are none of their own."""
    train, infer = toys.side("train"), toys.side("train", on("tied_head"))
    places = {"embedding.weight": "Module.model.embed_tokens.Embedding", "lm_head.weight": "Module.lm_head.Linear"}
    rows = {boundary: f"{entry}.forward.0.parameters.weight" for boundary, entry in places.items()}
    rows |= {"logits": "Module.lm_head.Linear.forward.0.output.0", "input_ids": "Module.model.embed_tokens.Embedding.forward.0.input.0"}
    mapping = [{"boundary": boundary, "train": name, "infer": name} for boundary, name in rows.items()]
    found = diagnosed(train, infer, tmp_path, mapping=mapping)
    assert (found.code, found.differing_weights()) == (1, ["lm_head.weight"])
    assert (found.logic["boundary"], found.logic["side"], found.logic["confirmed_by"]) == ("lm_head.weight", "infer", ["weights"])
    (told,) = [one for one in found.logic["evidence"] if one["kind"] == "weight_tied"]
    assert told["text"].startswith("infer's head equals its own embedding")


@pytest.mark.parametrize("side", ["train"])
def test_a08_a_window_that_counts_one_key_more(toys: Toys, tmp_path: Path, side: Side) -> None:
    """A08: as many tokens as the window holds are exact, and both windows are named."""
    dumped = toys.pair("window_off_by_one", side)
    found = diagnosed(dumped.train, dumped.infer, tmp_path)
    assert found.code == 1
    assert (found.logic["boundary"], found.logic["layers"], found.logic["side"]) == ("layers.1.attn_core.out", [1], "unknown")
    train, infer = (9, 8) if side == "train" else (8, 9)
    assert found.logic["cause"]["text"] == f"rotary_attention attention_window is {train} on train, {infer} on infer"
    assert found.boundary("layers.1.attn_core.out")["where"]["onset_token"] == 8


@pytest.mark.parametrize("side", ["train"])
def test_a15_an_embedding_multiplier_that_was_rounded(toys: Toys, tmp_path: Path, side: Side) -> None:
    """A15: a constant held in bfloat16 is no rounding, though no element is more than a step off; no configuration states it."""
    dumped = toys.pair("embedding_multiplier", side)
    found = diagnosed(dumped.train, dumped.infer, tmp_path)
    assert (found.code, found.differing_weights()) == (1, [])
    assert found.conclusion["first_divergence"]["boundary"] == "embedding.out"
    train, infer = ("7.071", "7.062") if side == "train" else ("7.062", "7.071")
    assert found.logic["cause"]["text"] == f"embedding scale is {train} on train, {infer} on infer"
    assert (found.logic["boundary"], found.logic["side"], found.logic["size"]["ulp_max"]) == ("embedding.out", "unknown", 1)
    row = found.boundary("embedding.out")
    assert sorted((row["direction"]["smaller"], row["direction"]["larger"])) == [0, row["unequal"]["count"]]
    (module,) = [one for one in found.replay["modules"] if one["module"] == "embedding"]
    low, high = module[side]["config"]["scale"]["interval"]
    assert low <= 50**0.5 <= high
    assert not low <= 7.0625 <= high


def test_a18_a_matrix_fused_by_groups_is_another_layout(toys: Toys, tmp_path: Path) -> None:
    """A18 a: each side reads its own layout rightly."""
    dumped = toys.both(train=on("fused_in_groups"))
    found = diagnosed(dumped.train, dumped.infer, tmp_path)
    assert (found.code, found.findings, found.differing_weights()) == (0, [], [])
    rows = {row["boundary"]: row["status"] for row in found.results["weights"]}
    assert [rows[f"layers.1.{name}.weight"] for name in "qkv"] == ["EXACT"] * 3


def test_a18_a_matrix_fused_without_its_groups(toys: Toys, tmp_path: Path) -> None:
    """A18 b: the same rows, and projections that are equal row by row, which the trainer reads as another order than a loader wrote."""
    dumped = toys.both(train=on("fused_in_groups", "fused_in_blocks"))
    found = diagnosed(dumped.train, dumped.infer, tmp_path)
    assert (found.code, found.differing_weights()) == (1, [])
    assert (found.logic["boundaries"], found.logic["side"]) == ([f"layers.{at}.attn_core.out" for at in range(3)], "train")
    (told,) = [one for one in found.logic["evidence"] if one["kind"] == "replay_qkv_read_in_groups"]
    assert told["values"]["groups"] == 2
    assert "rows of its fused q, k and v are in the wrong order" in found.logic["cause"]["text"]
    assert found.logic["size"]["unequal"] > 0.9 * found.logic["size"]["of"]


@pytest.mark.parametrize("side", ["infer"])
def test_a19_gate_and_up_that_were_exchanged(toys: Toys, tmp_path: Path, side: Side) -> None:
    """A19: another order of two matrices, and not another activation; the norm of what comes out hardly tells."""
    dumped = toys.pair("gate_up_order", side)
    found = diagnosed(dumped.train, dumped.infer, tmp_path)
    assert (found.code, found.differing_weights()) == (1, [])
    assert (found.logic["boundary"], found.logic["side"], found.logic["cause"]["kind"]) == ("layers.1.act_mul.out", side, "replay_mistake")
    assert "silu+gate_and_up_exchanged" in found.logic["cause"]["text"]
    assert "replay_functions" not in kinds(found.logic["evidence"])
    assert found.boundary("layers.1.act_mul.out")["cosine"] < 0.8
