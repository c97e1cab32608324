"""Shards laid out by a checkpoint: where no side holds a matrix whole, its rows tell in which order they lie."""

from pathlib import Path

import numpy as np
import pytest
import sharding
from checkpoints import of_floats, write_safetensors
from dump_analysis import pipeline
from dump_analysis.artefacts.boundary_results import BoundaryResults
from dump_analysis.artefacts.semantic_mapping import SemanticMapping
from dump_analysis.mapping.ranks.reference import Reference, Segment
from msprobe_files.checkpoint import read
from networks import Network, Recording, engine, trainer, weights_of
from running import run_command
from test_ranks import said

PLAIN = Network(stale="o_proj")  # a fault in layer 1: EXACT before it, NOT_EXACT after


def renamed(root: Path) -> str:
    """The weights that ran, whole, under names that say nothing, in an order of their own."""
    weights = weights_of(PLAIN)
    weights = {f"w{at}": weights[name] for at, name in enumerate(sorted(weights, key=lambda name: name[::-1]))}
    return str(write_safetensors(root / "model.safetensors", of_floats(weights)).parent)


def turned(cut: sharding.Cut) -> sharding.Cut:
    """Rank 0 holds the second shards, rank 1 the first."""
    return lambda role, slot, at, values, rank: cut(role, slot, at, values, 1 - rank)


def compare(tmp: Path, train: str, infer: str, reference: str | None) -> tuple[SemanticMapping, BoundaryResults, list[str]]:
    pair = pipeline.open_pair([train], [infer])
    mapping, told = pipeline.propose_step(*pair, reference=reference)
    results, _ = pipeline.gate_step(*pair, mapping, "0" * 64, tmp / "results.json", quiet=True)
    return mapping, results, told.warnings


def sides() -> tuple[Recording, Recording]:
    weights = weights_of(PLAIN)
    return trainer(PLAIN, weights), engine(PLAIN, weights)


def test_shards_against_a_side_without_weights_lie_as_the_checkpoint_says(tmp_path: Path) -> None:
    """Catches ranks taken in the order of their numbers: nothing else tells where the other side recorded no matrix."""
    train, infer = sides()
    right = sharding.write_ranks(tmp_path / "infer", infer, sharding.without_weights(sharding.copies), [0])
    _, truth, _ = compare(tmp_path, train.write(tmp_path / "one"), right, None)
    left = sharding.write_ranks(tmp_path / "train", train, turned(sharding.trainer_shards))
    mapping, results, told = compare(tmp_path, left, right, renamed(tmp_path / "reference"))
    assert said(results) == said(truth)
    assert truth.counts["EXACT"] >= 4
    assert any("in the checkpoint's matrices in the order of ranks 1, 0" in line for line in told)
    assert mapping.ranks is not None
    assert mapping.ranks.train is not None
    assert "weights" in mapping.ranks.train.basis
    _, without, _ = compare(tmp_path, left, right, None)
    assert said(without) != said(truth)  # else the checkpoint would prove nothing here


def test_both_sides_in_parts_are_whole_as_the_checkpoint_is(tmp_path: Path) -> None:
    """Catches a side laid out as the other one, which is laid out wrong itself: q of rank 1 is not the first half of any model's."""
    train, infer = sides()
    left = sharding.write_ranks(tmp_path / "train", train, turned(sharding.trainer_shards))
    right = sharding.write_ranks(tmp_path / "infer", infer, turned(sharding.engine_shards))
    _, truth, _ = compare(tmp_path, train.write(tmp_path / "t"), infer.write(tmp_path / "i"), None)
    mapping, results, _ = compare(tmp_path, left, right, renamed(tmp_path / "reference"))
    assert said(results) == said(truth)
    assert mapping.ranks is not None
    for plan in (mapping.ranks.train, mapping.ranks.infer):
        assert plan is not None
        parts = [[part.rank for part in one.order] for one in plan.tensors if one.how == "cat"]
        assert {ranks[0] for ranks in parts} == {1}


def test_a_fused_matrix_is_cut_as_the_checkpoint_cuts_it(tmp_path: Path) -> None:
    """Catches [q0 k0 v0 q1 k1 v1] where nothing but the checkpoint shows the parts; heads of k and v that two ranks hold count once."""
    rng = np.random.default_rng(7)
    q, k, v = (rng.standard_normal((rows, 24)).astype(np.float32) for rows in (32, 16, 16))
    shards = {}
    for rank in range(4):
        part = np.concatenate(
            [q[8 * rank : 8 * rank + 8], k[8 * (rank // 2) : 8 * (rank // 2) + 8], v[8 * (rank // 2) : 8 * (rank // 2) + 8]]
        )
        shards[f"s{rank}"] = part
    whole = read(write_safetensors(tmp_path / "w.safetensors", of_floats({"v": v, "k": k, "q": q})))
    held = read(write_safetensors(tmp_path / "s.safetensors", of_floats(shards)))
    found = Reference(whole.values()).runs([held[f"s{rank}"] for rank in range(4)])
    assert found is not None
    made = np.concatenate([shards[f"s{rank}"][start:stop] for rank, start, stop in found])
    assert (made == np.concatenate([q, k, v])).all()


def test_rows_that_are_equal_and_rows_of_padding_stay_with_theirs(tmp_path: Path) -> None:
    """Catches words that were never trained (equal rows) and rows behind the vocabulary taken for another matrix's."""
    rng = np.random.default_rng(8)
    words = rng.standard_normal((40, 24)).astype(np.float32)
    words[20:24] = words[3]
    words[30] = 0
    padded = np.concatenate([words, rng.standard_normal((2, 24)).astype(np.float32)])
    files = {"words": words, "tied": words[::-1].copy()}
    whole = read(write_safetensors(tmp_path / "w.safetensors", of_floats(files)))
    shards = read(write_safetensors(tmp_path / "s.safetensors", of_floats({"a": padded[:21], "b": padded[21:], "other": padded * 2})))
    reference = Reference(whole.values())
    assert reference.segments(shards["a"]) == [Segment(0, 21, 0, 0)]
    assert reference.segments(shards["b"]) == [Segment(0, 21, 0, 21)]
    assert reference.segments(shards["other"]) is None
    assert reference.order([shards["b"], shards["a"]]) == (1, 0)
    assert reference.order([shards["other"], shards["a"]]) is None


def test_a_checkpoint_that_tells_nothing_is_said(tmp_path: Path) -> None:
    """Catches a checkpoint of another model, or one that is not needed, passed over in silence."""
    train, infer = sides()
    left = sharding.write_ranks(tmp_path / "train", train, sharding.trainer_shards)
    right = infer.write(tmp_path / "infer")
    write_safetensors(tmp_path / "other/model.safetensors", of_floats({"w": np.random.default_rng(1).standard_normal((64, 32))}))
    _, _, told = compare(tmp_path, left, right, str(tmp_path / "other"))
    assert any("train: --reference tells nothing" in line for line in told)
    _, _, told = compare(tmp_path, train.write(tmp_path / "one"), right, str(tmp_path / "other"))
    assert any(line.startswith("--reference is not used") for line in told)


@pytest.mark.parametrize("command", ["diagnose.py", "assemble_dump.py", "propose_mapping.py"])
def test_commands_take_a_checkpoint_and_refuse_what_is_none(tmp_path: Path, command: str) -> None:
    """Catches a flag that one command lacks, and a traceback where the path holds no weights."""
    train, infer = sides()
    left = sharding.write_ranks(tmp_path / "train", train, sharding.trainer_shards)
    where = ["--output", tmp_path / "out.json"] if command == "propose_mapping.py" else ["--output-dir", tmp_path / "out"]
    given = ["--train", left, "--infer", infer.write(tmp_path / "infer"), *where]
    made = run_command(command, *given, "--reference", renamed(tmp_path / "reference"))
    assert made.returncode == 0, made.stderr
    (tmp_path / "empty").mkdir()
    failed = run_command(command, *given, "--reference", tmp_path / "empty")
    assert failed.returncode == 2
    assert "Cannot read the checkpoint empty: it holds no .safetensors" in failed.stderr
