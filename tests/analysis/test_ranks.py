"""Ranks, stages and dump steps put together: the answer is that of the same forward recorded by one rank, boundary for boundary.

The truth is the unsharded recording; how it is cut stands in tests/sharding.py and is known by construction.
"""

import copy
import json
import shutil
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
import sharding
from dump_analysis import pipeline, sides
from dump_analysis.artefacts import io
from dump_analysis.artefacts.boundary_results import BoundaryResults
from dump_analysis.artefacts.semantic_mapping import SemanticMapping
from dump_analysis.mapping.ranks.choosing import choose
from dump_analysis.mapping.ranks.members import members_of
from dump_analysis.replicas import differing
from dumping import entry_of, of, of_bits, write_pt, write_unit
from msprobe_files.errors import DumpError
from networks import TOKENS, Network, Recording, engine, trainer, weights_of
from running import run_command

PLAIN = Network(stale="o_proj")  # a fault in layer 1: EXACT before it, NOT_EXACT after
Write = Callable[[Path, Recording], str]


@cache
def _records() -> tuple[Recording, Recording]:
    weights = weights_of(PLAIN)
    return trainer(PLAIN, weights), engine(PLAIN, weights)


def _single(root: Path, record: Recording) -> str:
    return record.write(root)


def _cut(how: sharding.Cut) -> Write:
    return lambda root, record: sharding.write_ranks(root, record, how)


def _chunks(*edges: int) -> Write:
    return lambda root, record: sharding.write_chunks(root, record, edges)


def _turned(cut: sharding.Cut) -> sharding.Cut:
    """Rank 0 holds the second shards, rank 1 the first."""
    return lambda role, slot, at, values, rank: cut(role, slot, at, values, 1 - rank)


LAYOUTS: dict[str, tuple[Write, Write]] = {
    "tensor parallel on both": (_cut(sharding.trainer_shards), _cut(sharding.engine_shards)),
    "tensor parallel engine": (_single, _cut(sharding.engine_shards)),
    "tensor parallel trainer": (_cut(sharding.trainer_shards), _single),
    "sequence parallel": (_cut(sharding.sequence_shards), _single),
    "context parallel": (_cut(sharding.zigzag_shards), _single),
    "pipeline stages": (lambda root, record: sharding.write_stages(root, record), _single),
    "stages in another order": (lambda root, record: sharding.write_stages(root, record, (1, 0)), _single),
    "stages against shards": (lambda root, record: sharding.write_stages(root, record), _cut(sharding.engine_shards)),
    "replicas": (_cut(sharding.copies), _single),
    "two chunks": (_single, _chunks(0, 7, TOKENS)),
    "three chunks": (_single, _chunks(0, 4, 8, TOKENS)),
    "four ranks, copied keys": (_single, lambda root, record: sharding.write_ranks(root, record, sharding.four_engine_shards, range(4))),
    "ranks in another order than their shards": (_cut(_turned(sharding.trainer_shards)), _single),
    "both in different orders": (_cut(_turned(sharding.trainer_shards)), _cut(sharding.engine_shards)),
    "gathered columns": (_cut(sharding.gathered_shards), _single),
    "replicas of shards": (lambda root, record: _replicated(root, record, sharding.trainer_shards), _cut(sharding.engine_shards)),
}


def _replicated(root: Path, record: Recording, cut: sharding.Cut) -> str:
    """Tensor and data parallel: ranks 2 and 3 hold what 0 and 1 hold."""
    return sharding.write_ranks(root, record, lambda role, slot, at, values, rank: cut(role, slot, at, values, rank % 2), range(4))


def compare(tmp: Path, train: str, infer: str) -> tuple[SemanticMapping, BoundaryResults, list[str]]:
    """The mapping that the dumps tell, what its rows compare to, and the warnings."""
    sides = pipeline.open_pair([train], [infer])
    mapping, told = pipeline.propose_step(*sides)
    results, _ = pipeline.gate_step(*sides, mapping, "0" * 64, tmp / "results.json", quiet=True)
    return mapping, results, told.warnings


def said(results: BoundaryResults) -> dict[str, Any]:
    """What is compared of every boundary and weight."""
    rows = [*results.boundaries, *results.weights]
    return {row.boundary: (row.status, row.unequal.count if row.unequal else None, row.max_abs_diff) for row in rows}


@pytest.fixture(scope="module")
def one_rank(tmp_path_factory: pytest.TempPathFactory) -> BoundaryResults:
    """The truth: both sides recorded by one rank."""
    tmp = tmp_path_factory.mktemp("one")
    train, infer = _records()
    return compare(tmp, train.write(tmp / "train"), infer.write(tmp / "infer"))[1]


def test_the_truth_holds_equal_and_differing_boundaries(one_rank: BoundaryResults) -> None:
    """Against a truth that says nothing: an empty or all-equal comparison would pass every other test here."""
    assert one_rank.counts["EXACT"] >= 4
    assert one_rank.counts["NOT_EXACT"] > 30
    assert one_rank.first_divergence is not None
    assert [row.boundary for row in one_rank.weights if row.status != "EXACT"] == ["layers.1.o_proj.weight", "lm_head.weight"]


@pytest.mark.parametrize("layout", LAYOUTS)
def test_the_answer_is_that_of_one_rank(tmp_path: Path, one_rank: BoundaryResults, layout: str) -> None:
    """Catches shards joined in the wrong order, partial sums laid side by side, stages and chunks mixed up, and rows lost on the way."""
    writes = LAYOUTS[layout]
    train, infer = (write(tmp_path / label, record) for write, label, record in zip(writes, ("train", "infer"), _records(), strict=True))
    _, results, warnings = compare(tmp_path, train, infer)
    assert said(results) == said(one_rank)
    assert results.first_divergence is not None
    assert one_rank.first_divergence is not None
    assert results.first_divergence.boundary == one_rank.first_divergence.boundary
    assert results.first_divergence.predecessors_complete == one_rank.first_divergence.predecessors_complete
    assert not [line for line in warnings if "fit no way" in line or "differ between" in line]


def test_shards_without_weights_are_joined_by_what_they_compute(tmp_path: Path) -> None:
    """Catches a plan that needs matrices: an engine frees or packs them, and a partial sum then is told by the stream alone."""
    train, infer = _records()
    left = sharding.write_ranks(tmp_path / "train", train, sharding.without_weights(sharding.trainer_shards))
    right = sharding.write_ranks(tmp_path / "infer", infer, sharding.without_weights(sharding.engine_shards))
    whole = [
        sharding.write_ranks(tmp_path / label, record, sharding.without_weights(sharding.copies), [0])
        for label, record in (("t", train), ("i", infer))
    ]
    (_, results, _), (_, truth, _) = compare(tmp_path, left, right), compare(tmp_path, *whole)
    assert said(results) == said(truth)
    assert truth.counts["NOT_EXACT"] > 30


# --- units that belong to something else ---


def _other(record: Recording) -> Recording:
    """The same network on other tokens: every activation of another prompt."""
    made = copy.copy(record)
    made.entries = {
        entry: {**content, "input": list(content["input"]), "output": list(content["output"])} for entry, content in record.entries.items()
    }
    for content in made.entries.values():
        for slot in ("input", "output"):
            content[slot] = [
                of_bits(np.roll(t.storage.reshape(t.shape), 3, -2 if len(t.shape) > 1 and t.shape[-2] == TOKENS else -1), t.dtype)
                for t in content[slot]
            ]
    return made


def _zeros(record: Recording) -> dict[str, Any]:
    """What a start-up step records: every activation zero."""
    return {
        entry: {**content, **{slot: [of(np.zeros(t.shape), t.dtype) for t in content[slot]] for slot in ("input", "output")}}
        for entry, content in record.entries.items()
    }


def test_units_with_other_tokens_are_left_out_and_named(tmp_path: Path, one_rank: BoundaryResults) -> None:
    """Catches a replica with another prompt taken for a shard, and a step of zeros or of one token taken for the prefill (case B03)."""
    train, infer = _records()
    write_unit(tmp_path / "train", _other(train).entries, rank=1, trace=train.trace)
    train.write(tmp_path / "train")
    write_unit(tmp_path / "infer", _zeros(infer), step=0, trace=infer.trace)
    write_unit(tmp_path / "infer", infer.entries, step=1, trace=infer.trace)
    decode = sharding.write_chunks(tmp_path / "decode", infer, (TOKENS - 1, TOKENS))
    shutil.move(f"{decode}/step0", tmp_path / "infer/step2")
    mapping, results, warnings = compare(tmp_path, str(tmp_path / "train"), str(tmp_path / "infer"))
    assert said(results) == said(one_rank)
    assert {source.dump_step for row in mapping.boundaries for source in row.infer.sources} == {1}
    assert [line for line in warnings if "left out" in line] == [
        "train: left out, as their tokens are others, none, or do not adjoin those of the rest: step0/rank1",
        "infer: left out, as their tokens are others, none, or do not adjoin those of the rest: step0/rank0, step2/rank0",
    ]


def test_only_a_dummy_step_is_no_answer(tmp_path: Path) -> None:
    """Catches zeros compared with activations: every difference would be the value itself (case B03)."""
    train, infer = _records()
    for step in range(2):
        write_unit(tmp_path / "infer", _zeros(infer), step=step, trace=infer.trace)
    with pytest.raises(DumpError, match="the infer dump records no token ids, by which its 2 units would be told apart"):
        compare(tmp_path, train.write(tmp_path / "train"), str(tmp_path / "infer"))


def test_two_steps_with_the_same_tokens_are_not_told_apart(tmp_path: Path) -> None:
    """Catches a step chosen in silence where two prefills of one prompt were recorded (case B04): ids stay open, the others are named."""
    train, infer = _records()
    for step in (3, 5):
        write_unit(tmp_path / "infer", infer.entries, step=step, trace=infer.trace)
    mapping, results, warnings = compare(tmp_path, train.write(tmp_path / "train"), str(tmp_path / "infer"))
    assert any("step 3 is compared" in line and line.endswith("5") for line in warnings)
    gap = next(row for row in mapping.evidence_missing if row.boundary == "input_ids")
    assert gap.reason.kind == "steps_alike"
    assert results.first_divergence is not None
    assert not results.first_divergence.predecessors_complete


def test_two_prompts_of_one_batch_are_no_context_parallel_ranks(tmp_path: Path) -> None:
    """Catches replicas with a prompt each, whose ids follow each other in the engine's batch, joined as pieces of one prompt."""
    first, second = np.array([11, 3, 19, 7, 13, 2, 17, 5]), np.array([43, 31, 59, 37, 53, 29, 47, 41])
    train = tmp_path / "train"
    for rank, ids in enumerate((first, second)):
        write_unit(train, {entry_of("a"): {"input": [of(ids[None], "int64")], "output": [of(np.outer(ids, np.ones(16)))]}}, rank=rank)
    both, places = np.concatenate([first, second]), np.concatenate([np.arange(8), np.arange(8)])
    packed = {"input": [of(both, "int64"), of(places, "int64")], "output": [of(np.outer(both, np.ones(16)))]}
    write_unit(tmp_path / "infer", {entry_of("b"): packed})
    members = [members_of(sides.open_side(label, [str(tmp_path / label)]))[0] for label in ("train", "infer")]
    chosen = choose(*members)
    assert chosen is not None
    assert [[member.place for member in step.members] for step in chosen[0].steps] == [["step0/rank0"]]


def test_tokens_from_a_cache_are_a_gap_whatever_the_rest_says(tmp_path: Path) -> None:
    """Catches rows compared by number where the engine computed the end of a prompt only, and that end called consistent (case B16)."""
    train, _ = _records()
    suffix = sharding.write_chunks(tmp_path / "infer", train, (4, TOKENS))
    mapping, results, warnings = compare(tmp_path, train.write(tmp_path / "train"), suffix)
    assert mapping.tokens is not None
    assert (mapping.tokens.train, mapping.tokens.infer) == ([[0, 4, TOKENS]], [[0, 0, TOKENS - 4]])
    assert {row.status for row in results.boundaries} == {"EXACT", "evidence_missing"}
    assert results.overall == "evidence_missing"
    gap = next(row for row in results.boundaries if row.boundary == "input_ids.cached_tokens")
    assert gap.reason is not None
    assert gap.reason.values == {"side": "infer", "n": 4}
    assert any("prefix cache off and a fresh engine" in line for line in warnings)


# --- ranks that are missing, differ, or do not fit ---


@pytest.mark.parametrize("sharded", [False, True], ids=["against one rank", "against all ranks"])
@pytest.mark.parametrize(("side", "rank"), [("train", 0), ("train", 1), ("infer", 0), ("infer", 1)])
def test_a_missing_rank_is_said_and_shards_are_not_compared(tmp_path: Path, side: str, rank: int, sharded: bool) -> None:
    """Catches half of a matrix called a changed weight: without its other ranks a shard says nothing of the whole."""
    paths = {}
    for label, record, cut in zip(("train", "infer"), _records(), (sharding.trainer_shards, sharding.engine_shards), strict=True):
        root = tmp_path / label
        ranks = [rank] if label == side else range(sharding.RANKS)
        paths[label] = sharding.write_ranks(root, record, cut, ranks) if label == side or sharded else record.write(root)
    mapping, results, warnings = compare(tmp_path, paths["train"], paths["infer"])
    assert [line for line in warnings if line.startswith(f"{side}: it holds a part of each matrix")]
    assert {row.boundary.split(".", 2)[-1] for row in mapping.weights} <= {"input_norm.weight", "post_norm.weight", "final_norm.weight"}
    assert {row.boundary for row in mapping.boundaries} >= {"input_ids", "embedding.out", "layers.0.resid_attn"}
    assert not [row for row in results.boundaries if row.boundary.endswith((".q.out", ".o_proj.out", ".gate.out")) and row.unequal]
    stems = {row.boundary.removesuffix(".out").rpartition(".")[2] for row in mapping.boundaries}
    assert stems <= {"input_ids", "positions", "embedding", "input_norm", "post_norm", "final_norm", "resid_attn", "resid_mlp"}
    assert results.overall == "nonzero"


def test_one_of_four_ranks_that_is_missing_is_said(tmp_path: Path) -> None:
    """Catches three quarters of a matrix, and heads of k and v that lie on two ranks, taken for all of it."""
    train, infer = _records()
    root = sharding.write_ranks(tmp_path / "infer", infer, sharding.four_engine_shards, (0, 1, 3))
    mapping, _, warnings = compare(tmp_path, train.write(tmp_path / "train"), root)
    assert [line for line in warnings if line.startswith("infer: it holds a part of each matrix")]
    assert not [row for row in mapping.weights if ".q." in row.boundary or ".k." in row.boundary]


def test_a_stage_that_nothing_leads_to_is_left_out(tmp_path: Path) -> None:
    """Catches the layers after a missing stage compared with those that the missing one held."""
    train, infer = _records()
    root = Path(sharding.write_stages(tmp_path / "train", train))
    entry = train.roles["layers.0"]
    path = root / f"step0/rank1/dump_tensor_data/{entry}.input.0.pt"  # what comes from the stage before is of another forward
    for taken in (path, *(root / f"step0/rank1/dump_tensor_data/{train.roles[role]}.input.0.pt" for role in ("layers.0.input_norm",))):
        write_pt(taken, of(np.random.default_rng(3).standard_normal((1, TOKENS, 32)).astype(np.float32)))
    mapping, _, warnings = compare(tmp_path, str(root), infer.write(tmp_path / "infer"))
    assert [line for line in warnings if "a pipeline stage between them is missing" in line and line.endswith("missing")]
    assert not [row for row in mapping.boundaries if row.boundary.startswith(("layers.2.", "final_norm"))]


@pytest.mark.parametrize("kind", ["missing", "cut"])
def test_a_file_that_one_rank_lacks_makes_no_finding(tmp_path: Path, kind: str) -> None:
    """Catches the part of the other rank called the whole, and its bias called a copy that differs."""
    train, infer = _records()
    root = Path(sharding.write_ranks(tmp_path / "infer", infer, sharding.engine_shards))
    path = root / f"step0/rank1/dump_tensor_data/{infer.roles['layers.0.qkv']}.output.0.pt"
    if kind == "missing":
        path.unlink()
    else:
        path.write_bytes(path.read_bytes()[:300])
    mapping, results, warnings = compare(tmp_path, train.write(tmp_path / "train"), str(root))
    assert not differing(mapping)
    assert {row.boundary for row in results.weights if row.status == "NOT_EXACT"} == {"layers.1.o_proj.weight"}
    assert [line for line in warnings if "fit no way of joining the ranks" in line]


def _spoiled(role: str, slot: str, cut: sharding.Cut, to: float = 0.5) -> sharding.Cut:
    def changed(of_role: str, of_slot: str, at: int | str, values: Any, rank: int) -> Any:
        made = cut(of_role, of_slot, at, values, rank)
        if (of_role, of_slot, rank) == (role, slot, 1):
            made = made.copy()
            made.reshape(-1)[2] += to
        return made

    return changed


@pytest.mark.parametrize(
    ("role", "slot", "boundary", "character"),
    [
        ("layers.0.post_norm", "weight", "layers.0.post_norm.weight", "logic"),
        ("layers.1.post_norm", "output", "layers.1.post_norm.out", "unknown"),
    ],
)
def test_ranks_that_should_hold_copies_and_do_not_are_a_finding(
    tmp_path: Path, role: str, slot: str, boundary: str, character: str
) -> None:
    """Catches a rank with a wrong weight or a wrong all-reduce that is never looked at because rank 0 is right."""
    train, infer = _records()
    root = sharding.write_ranks(tmp_path / "train", train, _spoiled(role, slot, sharding.trainer_shards))
    run_command("diagnose.py", "--train", root, "--infer", infer.write(tmp_path / "infer"), "--output-dir", tmp_path / "out")
    found = json.loads((tmp_path / "out/conclusion.json").read_text())["findings"]
    ours = [finding for finding in found if finding["confirmed_by"] == ["replicas"]]
    assert [(finding["boundary"], finding["character"], finding["side"]) for finding in ours] == [(boundary, character, "train")]
    assert ours[0]["size"]["unequal"] == 1


@pytest.mark.parametrize(("role", "boundary"), [("layers.1.down", "layers.1.down.weight"), ("embedding", "embedding.weight")])
def test_a_copied_matrix_that_differs_on_one_rank_is_a_finding(tmp_path: Path, role: str, boundary: str) -> None:
    """Catches a matrix that every rank should hold whole taken for two shards because one element of it differs."""
    train, infer = _records()
    root = sharding.write_ranks(tmp_path / "train", train, _spoiled(role, "weight", sharding.copies))
    mapping, results, _ = compare(tmp_path, root, infer.write(tmp_path / "infer"))
    found = differing(mapping)
    assert [(one.boundary, one.side, one.certain, one.found.ranks, one.found.unequal) for one in found] == [
        (boundary, "train", True, [0, 1], 1)
    ]
    assert next(row for row in results.weights if row.boundary == boundary).status == "EXACT"  # rank 0 is compared


def test_a_copy_that_is_not_finite_has_no_largest_difference(tmp_path: Path) -> None:
    """Catches a NaN on one rank called a difference of 0."""
    train, infer = _records()
    root = sharding.write_ranks(tmp_path / "train", train, _spoiled("layers.0.post_norm", "weight", sharding.trainer_shards, float("nan")))
    mapping, _, _ = compare(tmp_path, root, infer.write(tmp_path / "infer"))
    assert [one.found.max_abs_diff for one in differing(mapping)] == [None]


def test_a_copy_that_differs_in_a_later_stage_is_called_by_its_boundary(tmp_path: Path) -> None:
    """Catches a finding under a name that no dump holds: ranks 2 and 3 are the second stage, whose layer is numbered anew."""
    train, infer = _records()
    sharding.write_stages(tmp_path / "stages", train)
    for stage in (0, 1):
        for twin in (0, 1):
            shutil.copytree(tmp_path / f"stages/step0/rank{stage}", tmp_path / f"train/step0/rank{2 * stage + twin}")
    entry = train.roles["layers.0.post_norm"]
    path = tmp_path / f"train/step0/rank3/dump_tensor_data/{entry}.parameters.weight.pt"
    values = train.entries[train.roles["layers.2.post_norm"]]["parameters"]["weight"]
    changed = values.storage.copy()
    changed.view("<f4")[5] += 1
    write_pt(path, values._replace(storage=changed))
    mapping, _, _ = compare(tmp_path, str(tmp_path / "train"), infer.write(tmp_path / "infer"))
    assert [(one.boundary, one.found.ranks) for one in differing(mapping)] == [("layers.2.post_norm.weight", [2, 3])]


# --- the plan as a file, and the assembled dump ---


def test_a_plan_gives_the_same_answer_as_the_proposal(tmp_path: Path, one_rank: BoundaryResults) -> None:
    """Catches a plan that cannot be read back, or says less than what was done."""
    train, infer = _records()
    left = sharding.write_ranks(tmp_path / "train", train, sharding.trainer_shards)
    right = sharding.write_ranks(tmp_path / "infer", infer, sharding.engine_shards)
    mapping, _, _ = compare(tmp_path, left, right)
    assert mapping.ranks is not None
    assert mapping.ranks.train is not None
    assert mapping.ranks.train.parallel.tp == 2
    plan = tmp_path / "plan.json"
    plan.write_bytes(msgspec.json.encode(io.builtins(mapping.ranks)))
    out = tmp_path / "out"
    run_command("diagnose.py", "--train", left, "--infer", right, "--plan", plan, "--output-dir", out)
    assert said(io.read(out / "boundary_results.json", BoundaryResults)[0]) == said(one_rank)


@pytest.mark.parametrize("layout", ["tensor parallel on both", "sequence parallel", "pipeline stages", "two chunks", "context parallel"])
def test_an_assembled_dump_reads_like_a_single_rank(tmp_path: Path, one_rank: BoundaryResults, layout: str) -> None:
    """Catches files that do not hold what the plan says; unchanged tensors are links, the dumps stay as they were."""
    writes = LAYOUTS[layout]
    roots = {label: write(tmp_path / label, record) for write, label, record in zip(writes, ("train", "infer"), _records(), strict=True)}
    before = {path: path.read_bytes() for root in roots.values() for path in Path(root).rglob("*") if path.is_file()}
    run_command("assemble_dump.py", "--train", roots["train"], "--infer", roots["infer"], "--output-dir", tmp_path / "made")
    made = {label: tmp_path / "made" / label if (tmp_path / "made" / label).is_dir() else Path(root) for label, root in roots.items()}
    _, results, warnings = compare(tmp_path, str(made["train"]), str(made["infer"]))
    assert said(results) == said(one_rank)
    assert not any("joined" in line for line in warnings)
    assert {path: path.read_bytes() for root in roots.values() for path in Path(root).rglob("*") if path.is_file()} == before
    assert any(path.stat().st_nlink > 1 for path in (tmp_path / "made").rglob("*.pt"))


def test_chunks_of_shards_are_put_together_as_files(tmp_path: Path, one_rank: BoundaryResults) -> None:
    """Catches shards of several steps lost: no row joins rows of columns, so the dump is assembled first, and the warning says so."""
    train, infer = _records()
    right = sharding.write_chunks(tmp_path / "infer", infer, (0, 7, TOKENS), sharding.engine_shards)
    left = train.write(tmp_path / "train")
    _, _, warnings = compare(tmp_path, left, right)
    assert [line for line in warnings if "cut by ranks and by tokens at once" in line and "assemble_dump.py" in line]
    run_command("assemble_dump.py", "--train", left, "--infer", right, "--output-dir", tmp_path / "made")
    assert sorted(path.name for path in (tmp_path / "made").iterdir()) == [
        *("assembly_plan.json", "assembly_plan.step0.json", "assembly_plan.step1.json", "infer")
    ]
    _, results, _ = compare(tmp_path, left, str(tmp_path / "made/infer"))
    assert said(results) == said(one_rank)


def test_assembling_needs_an_empty_folder_and_several_units(tmp_path: Path) -> None:
    """Catches a dump overwritten, and a copy made where nothing is to be joined."""
    train, infer = _records()
    left = sharding.write_ranks(tmp_path / "train", train, sharding.trainer_shards)
    right = infer.write(tmp_path / "infer")
    (tmp_path / "full/train").mkdir(parents=True)
    (tmp_path / "full/train/kept").write_text("kept")
    failed = run_command("assemble_dump.py", "--train", left, "--infer", right, "--output-dir", tmp_path / "full")
    assert failed.returncode == 2
    assert "it is not empty" in failed.stderr
    assert (tmp_path / "full/train/kept").read_text() == "kept"
    alone = run_command("assemble_dump.py", "--train", train.write(tmp_path / "one"), "--infer", right, "--output-dir", tmp_path / "none")
    assert alone.returncode == 2
    assert "each side is one unit already" in alone.stderr
    assert not (tmp_path / "none").exists()


def test_a_plan_that_does_not_fit_is_refused(tmp_path: Path) -> None:
    """Catches a plan of another dump followed half-way."""
    train, infer = _records()
    left = sharding.write_ranks(tmp_path / "train", train, sharding.trainer_shards)
    plan = {"train": {"units": [{"step": 0, "rank": 0}, {"step": 0, "rank": 7}], "tensors": []}}
    (tmp_path / "plan.json").write_text(json.dumps(plan))
    arguments = [
        "--train",
        left,
        "--infer",
        infer.write(tmp_path / "infer"),
        "--plan",
        tmp_path / "plan.json",
        "--output-dir",
        tmp_path / "out",
    ]
    failed = run_command("diagnose.py", *arguments)
    assert failed.returncode == 2
    assert "its plan names step0/rank7, and 0 such units are there" in failed.stderr
    (tmp_path / "plan.json").write_text(json.dumps({"train": {"unitz": []}}))
    failed = run_command("diagnose.py", *arguments)
    assert failed.returncode == 2
    assert "train: Object missing required field `units`" in failed.stderr
