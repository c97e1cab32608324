"""What the conclusion says of a pair whose modules were recomputed: each independent fault once, with its side, its size and its growth."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from dump_analysis import pipeline
from dump_analysis.artefacts.conclusion import Conclusion, Finding
from laying import Sample
from running import run_command
from toys import mapping
from toys.pairs import Dumped, Toys
from toys.switches import Side, Switches

SIDES: list[Side] = ["train", "infer"]


def concluded(dumped: Dumped, folder: Path, config: dict[str, float] | None = None) -> Conclusion:
    """Stages 2, 3, 4 and 7 with the mapping that is written by hand; ``config``: what both sides' configurations state."""
    (folder / "rows.json").write_text(json.dumps(mapping.rows(dumped.on)))
    configs: dict[str, str | None] = {}
    if config is not None:
        (folder / "config.json").write_text(json.dumps(config))
        configs = {side: str(folder / "config.json") for side in SIDES}
    train, infer = pipeline.open_pair([str(dumped.train)], [str(dumped.infer)])
    full, _ = pipeline.mapping_step(train, infer, folder / "rows.json")
    digest = pipeline.write_mapping(folder / pipeline.MAPPING, full, "en", None)
    pipeline.gate_step(train, infer, full, digest, folder / pipeline.RESULTS, quiet=True)
    pipeline.replay_step(train, infer, full, digest, folder / pipeline.REPLAY, configs, quiet=True)
    found, told = pipeline.conclude_step(folder, folder / pipeline.CONCLUSION, configs)
    assert told.warnings == []
    return found


def of(found: Conclusion, character: str) -> list[Finding]:
    return [finding for finding in found.findings if finding.character == character]


def test_every_fault_of_a_pair_is_a_finding_and_nothing_else_is(toys: Toys, tmp_path: Path) -> None:
    """C13: two faults on one side, two on the other, one of three modules; what they lead to is none."""
    dumped = toys.both(
        train=Switches((("gate_up_order", 0), ("one_token", 2))), infer=Switches((("eps", 1), ("one_channel", 1), ("missing_bias", 2)))
    )
    found = concluded(dumped, tmp_path, {"rms_norm_eps": 1e-6})
    logic = {finding.boundary: (finding.side, finding.layers, finding.cause.kind) for finding in of(found, "logic")}
    assert logic == {
        "layers.0.act_mul.out": ("train", [0], "replay_mistake"),
        "layers.1.input_norm.out": ("infer", [1], "replay_cause_constant"),
        "layers.1.o_proj.out": ("infer", [1], "replay_fits_columns"),
        "layers.2.q.out": ("infer", [2], "replay_in_modules"),
        "layers.2.down.out": ("train", [2], "replay_fits_tokens"),
    }
    assert (found.overall, found.consistency) == ("nonzero", "inconsistent")
    assert all("replay" in finding.confirmed_by for finding in of(found, "logic"))
    assert [finding.id for finding in found.findings] == [f"F{at}" for at in range(1, len(found.findings) + 1)]


@pytest.mark.parametrize("side", SIDES)
def test_a_lost_bias_is_one_finding(toys: Toys, tmp_path: Path, side: Side) -> None:
    """One cause in q, k and v: three findings would be three faults to look for."""
    (finding,) = of(concluded(toys.pair("missing_bias", side), tmp_path), "logic")
    assert finding.boundaries == ["layers.1.q.out", "layers.1.k.out", "layers.1.v.out"]
    assert (finding.side, finding.resolvable) == (side, "yes")
    assert "bias_missing" in finding.cause.text


@pytest.mark.parametrize("side", SIDES)
def test_a_lost_residual_is_one_finding(toys: Toys, tmp_path: Path, side: Side) -> None:
    """The engine's norm adds before it norms: what it returns beside the sum is wrong by the sum, and no second fault."""
    (finding,) = of(concluded(toys.pair("missing_residual", side), tmp_path), "logic")
    assert finding.boundaries == ["layers.1.resid_attn", *(["layers.1.post_norm.out"] if side == "infer" else [])]
    assert (finding.side, finding.cause.kind) == (side, "replay_fits_without")


@pytest.mark.parametrize("side", SIDES)
def test_a_constant_is_named_with_both_values(toys: Toys, tmp_path: Path, side: Side) -> None:
    """D01: the fault is as small as rounding and is none. One norm of seven computes with another eps than the rest of its side; the
    configuration says the same, and to which value it is to be set."""
    values = {"train": 1e-6, "infer": 1e-6, side: 1e-5}
    (found,) = of(concluded(toys.pair("eps", side), tmp_path), "logic")
    assert (found.side, found.fix, found.confirmed_by) == (side, None, ["replay"])
    assert found.cause.text == f"rms_norm eps is {values['train']:g} on train, {values['infer']:g} on infer"
    (known,) = of(concluded(toys.pair("eps", side), tmp_path, {"rms_norm_eps": 1e-6}), "logic")
    assert (known.side, known.confirmed_by) == (side, ["replay", "config"])
    assert known.fix is not None
    assert (known.fix.side, known.fix.action.values["value"]) == (side, 1e-6)


def test_who_is_right_is_not_said_where_each_side_follows_its_own_constant(sample: Callable[[str], Sample], tmp_path: Path) -> None:
    """D12: a real pair whose engine computes every norm with 1e-5, the trainer with 1e-6: the contracts differ, the dumps do not say whose
    is right; the configuration of one side, where it is given, does."""
    pair = sample("qwen2-hf-vllm-rms_eps")
    for stated, side in ((None, "unknown"), (1e-6, "infer"), (1e-5, "train")):
        (tmp_path / "config.json").write_text(json.dumps({"rms_norm_eps": stated} if stated else {}))
        configs: dict[str, str | None] = dict.fromkeys(SIDES, str(tmp_path / "config.json"))
        train, infer = pipeline.open_pair([str(pair.train)], [str(pair.infer)])
        full, _ = pipeline.mapping_step(train, infer, pair.mapping)
        digest = pipeline.write_mapping(tmp_path / pipeline.MAPPING, full, "en", None)
        pipeline.gate_step(train, infer, full, digest, tmp_path / pipeline.RESULTS, quiet=True)
        pipeline.replay_step(train, infer, full, digest, tmp_path / pipeline.REPLAY, configs, quiet=True)
        (finding,) = of(pipeline.conclude_step(tmp_path, tmp_path / pipeline.CONCLUSION, configs)[0], "logic")
        assert finding.side == side
        assert finding.cause.text == "rms_norm eps is 1e-06 on train, 1e-05 on infer"


def test_the_size_and_growth_are_the_findings_own(toys: Toys, tmp_path: Path) -> None:
    """A fault in layer 1 is local there and comes in from layer 2 on; before it there is nothing."""
    (finding,) = of(concluded(toys.pair("one_channel", "infer"), tmp_path), "logic")
    layers = {link.layer: (link.local, link.propagated) for link in finding.chain}
    assert layers[0] == (0.0, 0.0)
    local, propagated = layers[1]
    assert local is not None
    assert 1e-4 < local < 0.02  # 2 % of one of 64 columns
    assert propagated == 0.0
    assert layers[2][0] == 0.0
    assert layers[2][1] is not None
    assert layers[2][1] > 0
    # One of 64 columns, times 1.02: all its elements that are not too small to tell, and nothing beside it.
    assert finding.size.of == 24 * 64
    assert finding.size.unequal is not None
    assert 20 <= finding.size.unequal <= 24


@pytest.mark.parametrize("side", SIDES)
def test_rounding_points_are_one_finding_with_both_variants(toys: Toys, tmp_path: Path, side: Side) -> None:
    """D02, D03: dense, and no fault; each side's way is in words that people use."""
    partial = concluded(toys.pair("partial_sums", side), tmp_path)
    (finding,) = of(partial, "rounding")
    assert finding.boundaries == ["layers.1.o_proj.out", "layers.1.down.out"]
    assert (finding.side, finding.resolvable, finding.size.unexplained) == ("both", "no", 0)
    assert "2 partial sums are rounded, then added" in finding.cause.text
    assert not of(partial, "logic")
    order = concluded(toys.pair("norm_cast_order", side), tmp_path)
    (finding,) = of(order, "rounding")
    assert "before it is multiplied by the weight" in finding.cause.text
    assert [out.cause.values["name"] for out in finding.ruled_out] == ["eps"]


def test_replay_of_another_mapping_is_not_used(toys: Toys, tmp_path: Path) -> None:
    """Verdicts on other rows would be put at boundaries that they do not belong to."""
    concluded(toys.pair("eps", "infer"), tmp_path)
    replayed = json.loads((tmp_path / pipeline.REPLAY).read_text())
    replayed["mapping"]["digest"] = "f" * 64
    (tmp_path / pipeline.REPLAY).write_text(json.dumps(replayed))
    found, told = pipeline.conclude_step(tmp_path, tmp_path / pipeline.CONCLUSION, {})
    assert [pipeline.REPLAY in warning for warning in told.warnings] == [True]
    assert not of(found, "logic")
    assert pipeline.REPLAY not in [one.label for one in found.inputs]


def test_an_embedding_that_one_side_does_not_scale_is_one_finding(toys: Toys, tmp_path: Path) -> None:
    """Every module follows from its own inputs: what one side leaves out lies between them, and its configuration says so."""
    found = concluded(toys.both(train=Switches((("stream_scaled", 0),))), tmp_path, {"embedding_multiplier": 7.0625})
    (finding,) = of(found, "logic")
    assert (finding.boundary, finding.side, finding.cause.kind) == ("layers.0.input_norm.out", "infer", "replay_not_altered")


def test_what_recomputing_covers_keeps_no_equal_pair_undecided(toys: Toys, tmp_path: Path) -> None:
    """The trainer rotates outside modules and the engine records no head: both follow from what is around them. Without replay, nothing
    says so."""
    dumped, out = toys.both(), tmp_path / "out"
    ran = run_command("diagnose.py", "--train", dumped.train, "--infer", dumped.infer, "--output-dir", out, "--exit-code")
    assert ran.returncode == 0, ran.stderr
    found = json.loads((out / pipeline.CONCLUSION).read_text())
    assert (found["overall"], found["consistency"], found["would_decide"]) == ("evidence_missing", "consistent", [])
    assert found["summary"][0]["kind"] == "sum_exact_covered"
    assert found["evidence_missing"] != []
    assert all(gap["covered_by"] for gap in found["evidence_missing"])
    (out / pipeline.REPLAY).unlink()
    alone, _ = pipeline.conclude_step(out, out / pipeline.CONCLUSION, {})
    assert (alone.consistency, alone.summary[0].kind) == ("undecided", "sum_exact_gaps")
