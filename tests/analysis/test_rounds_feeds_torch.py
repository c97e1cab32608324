"""What takes an argument's place, against torch: where both sides are equal, it is the argument itself, bit for bit."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from dump_analysis import pipeline
from dump_analysis.artefacts import semantic_mapping
from dump_analysis.artefacts.boundary_results import BoundaryResults
from dump_analysis.artefacts.common import SideName
from dump_analysis.artefacts.io import read
from dump_analysis.rounds.cuts import cuts_of
from dump_analysis.rounds.feeds import Feeds, feeds_of
from dump_analysis.rounds.levels import open_in
from dump_analysis.rounds.reach import Reach
from dump_analysis.rounds.sums import adding_up
from dump_analysis.sides import Side
from msprobe_files.operands import Operand
from msprobe_files.units import tensor_path
from running import run_command
from torch import Tensor
from toys.pairs import Toys

TWO_RANKS = "several/qwen3-megatron_tp2-sglang_tp2-clean"
SIDES: list[SideName] = ["train", "infer"]


def made(operand: Operand, side: Side, shape: tuple[int, ...]) -> Tensor:
    """An operand applied by torch to files that torch reads."""
    if operand.combine == "zeros":
        return torch.full(shape, -0.0, dtype=torch.bfloat16)
    parts = []
    for source in operand.sources:
        (place,) = (one for one in side.by_name[source.name] if source.rank in (None, one.unit.place.rank))
        value = torch.load(tensor_path(place.unit, place.record), weights_only=True)
        for op in source.steps or ():
            if op.op == "squeeze":
                value = value.squeeze(op.axis)
            elif op.op == "slice":
                value = value.narrow(op.axis, op.start or 0, (value.shape[op.axis] if op.stop is None else op.stop) - (op.start or 0))
            elif op.op == "take":
                value = value.index_select(op.axis, torch.tensor(op.picked))
            elif op.op == "reshape":
                value = value.reshape(op.shape)
            elif op.op == "permute":
                value = value.permute(op.axes)
            else:
                value = value.to(getattr(torch, op.dtype))
        parts.append(value)
    return torch.cat(parts, operand.axis or 0) if operand.combine == "cat" else sum(parts[1:], parts[0])


def argument_of(feed_argument: object) -> Tensor:
    place = feed_argument.place  # type: ignore[attr-defined]
    return torch.load(tensor_path(place.unit, place.record), weights_only=True)


def analysed(train: str, infer: str, folder: Path) -> tuple[dict[SideName, Feeds], BoundaryResults]:
    ran = run_command("diagnose.py", "--train", train, "--infer", infer, "--output-dir", folder)
    assert ran.returncode == 0, ran.stderr
    mapping = semantic_mapping.read(folder / "semantic_mapping.json")
    pair = pipeline.open_pair([train], [infer])
    return {side: feeds_of(mapping.boundaries, *pair, side) for side in SIDES}, read(folder / "boundary_results.json", BoundaryResults)[0]


@pytest.fixture(scope="module")
def clean(toys: Toys, tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[SideName, Feeds], BoundaryResults]:
    """The clean pair, equal in every boundary."""
    dumped = toys.both()
    return analysed(str(dumped.train), str(dumped.infer), tmp_path_factory.mktemp("clean"))


@pytest.fixture(scope="module")
def two_ranks(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[SideName, Feeds], BoundaryResults]:
    """Both sides cut over two ranks."""
    from running import ROOT

    sample = ROOT / "tests/samples" / TWO_RANKS
    return analysed(str(sample / "train"), str(sample / "infer"), tmp_path_factory.mktemp("two"))


@pytest.mark.parametrize("target", SIDES)
@pytest.mark.parametrize("pair", ["clean", "two_ranks"])
def test_where_both_sides_are_equal_an_argument_gets_what_it_held(pair: str, target: SideName, request: pytest.FixtureRequest) -> None:
    """Stream, branch, fused projections, rows of the head, each rank's columns: shape, format and every bit."""
    feeds, results = request.getfixturevalue(pair)
    exact = {row.boundary for row in results.boundaries if row.status == "EXACT"}
    compared = 0
    for feed in feeds[target].feeds:
        value, held = made(feed.operand, feeds[target].source, feed.argument.tensor.shape), argument_of(feed.argument)
        assert (tuple(value.shape), value.dtype) == (tuple(held.shape), held.dtype), feed.seat
        if set(feed.boundaries) <= exact:
            assert torch.equal(value, held), feed.seat
            compared += 1
    assert compared > (40 if pair == "clean" else 10)


def test_each_module_of_the_engine_is_fed_but_what_the_trainer_does_not_record(
    clean: tuple[dict[SideName, Feeds], BoundaryResults],
) -> None:
    """Rotated q and k stand in no file of the trainer; of the head the engine's last row is found."""
    feeds, _ = clean
    left = {argument.entry.rpartition("layers.")[2][2:] + "." + argument.label for argument in feeds["infer"].left}
    assert left == {"self_attn.attn.Attention.forward.0.input.0", "self_attn.attn.Attention.forward.0.input.1"}
    assert feeds["train"].left == []
    head = feeds["infer"].of_entry("Module.logits_processor.LogitsProcessor.forward.0")
    assert [feed.boundaries for feed in head] == [("final_norm.out",)]
    fused = feeds["infer"].of_entry("Module.model.layers.1.mlp.act_fn.SiluAndMul.forward.0")
    assert [feed.boundaries for feed in fused] == [("layers.1.gate.out", "layers.1.up.out")]


def test_what_a_rotation_hands_on_is_given_where_its_own_arguments_are(clean: tuple[dict[SideName, Feeds], BoundaryResults]) -> None:
    """The engine's attention gets q and k from a rotation that no boundary holds on both sides; the trainer's from nothing that can be
    overridden. So attention behind a wrong q is seen from equal inputs on the engine alone."""
    feeds, results = clean
    attention = "Module.model.layers.1.self_attn.attn.Attention.forward.0"
    assert feeds["infer"].handed_by[attention] == {"Module.model.layers.0.self_attn.rotary_emb.RotaryEmbedding.forward.1"}
    compared = {row.boundary: row for row in results.boundaries if row.status == "EXACT"}
    for side, seen in (("infer", True), ("train", False)):
        everything, reach = {feed.seat for feed in feeds[side].feeds}, Reach(feeds[side])
        for name in ("q.out", "k.out", "v.out"):
            assert reach.is_given(f"layers.1.{name}", "layers.1.attn_core.out", everything) is seen
        given = {feed.seat for feed in feeds[side].feeds if not feed.alone}
        decided = reach.decided(compared, given, {"layers.1.q.out"})
        assert ("layers.1.attn_core.out" in decided) is seen
        assert {"layers.0.attn_core.out", "layers.2.attn_core.out"} <= decided


def test_what_the_trainer_shows_at_an_argument_alone_is_open_in_one_turn_and_overridden_in_the_other(
    clean: tuple[dict[SideName, Feeds], BoundaryResults],
) -> None:
    feeds, results = clean
    alone = {name for feed in feeds["train"].feeds for name in feed.alone}
    assert alone == {f"layers.{n}.{name}" for n in range(3) for name in ("attn_core.out", "resid_attn", "act_mul.out")}
    assert not any(feed.alone for feed in feeds["infer"].feeds)
    compared = {row.boundary: row for row in results.boundaries if row.status == "EXACT"}
    turns = [open_in(alone, compared, turn) for turn in (0, 1)]
    assert turns[0] | turns[1] == alone
    assert turns[0] & turns[1] == set()
    assert turns[1] == {f"layers.{n}.resid_attn" for n in range(3)}


@pytest.mark.parametrize("target", SIDES)
def test_complete_cuts_carry_stream_and_branch(clean: tuple[dict[SideName, Feeds], BoundaryResults], target: SideName) -> None:
    """The trainer takes the summed stream at a layer; the engine the stream and -0.0, at a layer and at the norm after attention."""
    feeds, _ = clean
    found = {
        cut.boundary: [(given.argument.entry, given.argument.label, given.operand.combine) for given in cut.given]
        for cut in cuts_of(feeds[target])
    }
    layer = "Module.model.layers.2.Qwen2DecoderLayer.forward.0"
    if target == "train":
        assert found["layers.1.resid_mlp"] == [(layer, "input.0", None)]
        assert "layers.1.resid_attn" not in found, "its argument is the norm's alone: the residual goes past it"
    else:
        norm = "Module.model.layers.1.post_attention_layernorm.RMSNorm.forward.0"
        assert found["layers.1.resid_mlp"] == [(layer, "input.1", None), (layer, "input.2", "zeros")]
        assert found["layers.1.resid_attn"] == [(norm, "input.0", None), (norm, "input.1", "zeros")]
    ends = [call for call, _, _ in found["layers.1.attn_core.out"]]
    assert "layers.1.Qwen2DecoderLayer" in ends[0], "the stream that goes past the branch is cut too"
    assert "layers.1.self_attn.o_proj" in ends[-1]


def test_a_residual_that_is_the_sum_of_its_parts_adds_nothing_of_its_own(toys: Toys, tmp_path: Path) -> None:
    """With the fault in o_proj every sum behind it differs and adds up; where the residual is lost, that sum does not."""
    for fault, lost in (("one_channel", set()), ("missing_residual", {"layers.1.resid_attn"})):
        dumped = toys.pair(fault, "train")
        folder = tmp_path / fault
        analysed(str(dumped.train), str(dumped.infer), folder)
        rows = semantic_mapping.read(folder / "semantic_mapping.json").boundaries
        sums = {f"layers.{n}.{name}" for n in range(3) for name in ("resid_attn", "resid_mlp")}
        assert sums - adding_up(rows, *pipeline.open_pair([str(dumped.train)], [str(dumped.infer)])) == lost
