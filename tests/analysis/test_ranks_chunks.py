"""Chunks of one prompt in several dump steps: short ones, decoded tokens, gaps, and a rank that one step lacks."""

import shutil
from pathlib import Path

import pytest
import sharding
from dump_analysis.artefacts.boundary_results import BoundaryResults
from dump_analysis.mapping.whole import LOST
from dumping import write_unit
from editing import edit_json
from msprobe_files.errors import DumpError
from networks import TOKENS, Network, Recording, engine, trainer, weights_of
from running import run_command
from test_ranks import compare, said

PLAIN = Network(stale="o_proj")  # a fault in layer 1: EXACT before it, NOT_EXACT after


def sides() -> tuple[Recording, Recording]:
    weights = weights_of(PLAIN)
    return trainer(PLAIN, weights), engine(PLAIN, weights)


@pytest.fixture(scope="module")
def one_rank(tmp_path_factory: pytest.TempPathFactory) -> BoundaryResults:
    """The truth: both sides in one step of one rank."""
    tmp = tmp_path_factory.mktemp("one")
    train, infer = sides()
    return compare(tmp, train.write(tmp / "train"), infer.write(tmp / "infer"))[1]


@pytest.mark.parametrize("edges", [(0, 10, 12), (0, 11, 12), (0, 3, 12), (0, 1, 12), (0, 5, 7, 12), (0, 4, 6, 9, 12)], ids=str)
def test_chunks_of_a_few_tokens_are_joined(tmp_path: Path, one_rank: BoundaryResults, edges: tuple[int, ...]) -> None:
    """Catches the last tokens of a prompt left out as another one, and the first ones said to come from a cache."""
    train, infer = sides()
    right = sharding.write_chunks(tmp_path / "infer", infer, edges)
    _, results, told = compare(tmp_path, train.write(tmp_path / "train"), right)
    assert said(results) == said(one_rank)
    assert not [line for line in told if "left out" in line or "cache" in line.replace("(chunked prefill or a cached prefix)", "")]


@pytest.mark.parametrize("edges", [(0, 10, 12), (0, 11, 12), (0, 2, 12)], ids=str)
def test_short_chunks_of_shards_are_put_together(tmp_path: Path, one_rank: BoundaryResults, edges: tuple[int, ...]) -> None:
    """Catches partial sums of one token laid side by side: a row alone shows nothing of how ranks hold it."""
    train, infer = sides()
    left = train.write(tmp_path / "train")
    right = sharding.write_chunks(tmp_path / "infer", infer, edges, sharding.engine_shards)
    run_command("assemble_dump.py", "--train", left, "--infer", right, "--output-dir", tmp_path / "made")
    _, results, _ = compare(tmp_path, left, str(tmp_path / "made/infer"))
    assert said(results) == said(one_rank)


def test_logits_of_the_last_chunk_alone_are_compared(tmp_path: Path, one_rank: BoundaryResults) -> None:
    """Catches logits lost because the longest chunk, the first one, made none."""
    train, infer = sides()
    right = sharding.write_chunks(tmp_path / "infer", infer, (0, 7, TOKENS))
    entry = infer.roles["lm_head"]
    edit_json(Path(right) / "step0/rank0/dump.json", lambda dump: dump["data"].pop(entry))
    edit_json(Path(right) / "step0/rank0/construct.json", lambda trace: trace.pop(entry))
    _, results, _ = compare(tmp_path, train.write(tmp_path / "train"), right)
    assert said(results) == said(one_rank)


def test_decoded_tokens_are_no_chunks(tmp_path: Path) -> None:
    """Catches decode steps joined to the prefill where the trainer ran the response too: each holds the trainer's next token."""
    train, infer = sides()
    right = sharding.write_chunks(tmp_path / "infer", infer, (0, 8, 9, 10, 11, 12))
    mapping, _, told = compare(tmp_path, train.write(tmp_path / "train"), right)
    assert {source.dump_step for row in mapping.boundaries for source in row.infer.sources} == {0}
    assert mapping.tokens is not None
    assert mapping.tokens.coverage.joined == 8
    assert not [row for row in mapping.evidence_missing if row.boundary == LOST]  # they are none of the prompt
    assert [line for line in told if "left out" in line and "step1/rank0, step2/rank0" in line]


def test_another_request_with_the_same_beginning_is_no_chunk_of_it(tmp_path: Path) -> None:
    """Catches a shared system prompt called a part of the compared prompt that was left out."""
    train, infer = sides()
    write_unit(tmp_path / "infer", infer.entries, step=0, trace=infer.trace)
    other = sharding.write_chunks(tmp_path / "other", infer, (0, 8))
    shutil.move(f"{other}/step0", tmp_path / "infer/step1")
    mapping, _, told = compare(tmp_path, train.write(tmp_path / "train"), str(tmp_path / "infer"))
    assert not [row for row in mapping.evidence_missing if row.boundary == LOST]
    assert [line for line in told if "left out" in line and "step1/rank0" in line]


def test_chunks_past_a_gap_are_said_and_are_a_gap_of_the_answer(tmp_path: Path) -> None:
    """Catches a part of the prompt called the whole: the chunk in the middle was not dumped, what follows cannot be placed for sure."""
    train, infer = sides()
    right = sharding.write_chunks(tmp_path / "infer", infer, (0, 5, 8, TOKENS))
    shutil.rmtree(f"{right}/step1")
    mapping, results, told = compare(tmp_path, train.write(tmp_path / "train"), right)
    assert [line for line in told if "past tokens that no dump step holds" in line] == [
        "infer: chunks of the prompt lie past tokens that no dump step holds, and are compared with nothing: step2 8:12"
    ]
    assert mapping.tokens is not None
    assert mapping.tokens.coverage.joined == 5
    gap = next(row for row in results.boundaries if row.boundary == LOST)
    assert gap.status == "evidence_missing"
    assert results.first_divergence is not None
    assert not results.first_divergence.predecessors_complete


@pytest.mark.parametrize("step", [0, 1])
@pytest.mark.parametrize("rank", [0, 1])
def test_a_step_that_lacks_a_rank_is_left_out_and_said(tmp_path: Path, step: int, rank: int) -> None:
    """Catches half of the columns of one chunk joined to the whole of another, and its tokens said to come from a cache."""
    train, infer = sides()
    left = train.write(tmp_path / "train")
    right = sharding.write_chunks(tmp_path / "infer", infer, (0, 7, TOKENS), sharding.engine_shards)
    shutil.rmtree(f"{right}/step{step}/rank{rank}")
    mapping, results, told = compare(tmp_path, left, right)
    said_so = f"infer: in step{step} ranks are missing that the other chunks of the prompt have: its tokens are compared with nothing"
    assert [line for line in told if "ranks are missing" in line] == [said_so]
    assert not [line for line in told if "cache" in line]
    assert {source.dump_step for row in mapping.boundaries for source in row.infer.sources} == {1 - step}
    gaps = {row.boundary: row.reason for row in mapping.evidence_missing if row.boundary.startswith("input_ids")}
    assert list(gaps) == [LOST]
    assert gaps[LOST].text == said_so
    weights = {row.boundary for row in results.weights if row.status == "NOT_EXACT"}
    assert weights == {"layers.1.o_proj.weight"}


def test_chunks_that_are_all_too_short_are_one_clear_error(tmp_path: Path) -> None:
    """Catches a message about missing ids that does not say what is wrong with them."""
    train, infer = sides()
    right = sharding.write_chunks(tmp_path / "infer", infer, (0, 3, 6, 9, 12))
    with pytest.raises(DumpError, match="fewer than 4 integers are not taken for ids"):
        compare(tmp_path, train.write(tmp_path / "train"), right)
