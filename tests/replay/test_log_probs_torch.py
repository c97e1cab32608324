"""Log-probabilities from the dumps alone: joined by what they are, recomputed from the logits, and a temperature found (case D08)."""

import json
from pathlib import Path

import pytest
import torch
from dump_analysis import pipeline
from dump_analysis.artefacts.replay_results import ReplayResults
from dump_analysis.artefacts.semantic_mapping import Row
from running import run_command
from toys.pairs import Dumped, Toys
from toys.switches import PADDING, Switches

TOKENS, WORDS = 24, 128
NAME = "Module.log_probs.LogProbs.forward.0.output.0"


def proposed(dumped: Dumped, folder: Path) -> tuple[Row | None, ReplayResults]:
    """The row that the dumps tell, and what replay says of the pair."""
    train, infer = pipeline.open_pair([str(dumped.train)], [str(dumped.infer)])
    mapping, _ = pipeline.propose_step(train, infer)
    results, _ = pipeline.replay_step(train, infer, mapping, "0" * 64, folder / pipeline.REPLAY, {}, quiet=True)
    rows = [row for row in mapping.boundaries if any(NAME in {source.name for source in side.sources} for side in (row.train, row.infer))]
    assert [row.boundary for row in rows] == ["logprobs"] * len(rows)
    return (rows[0] if rows else None), results


def of(on: Switches, other: Switches, toys: Toys, folder: Path) -> tuple[Row, str, int]:
    row, results = proposed(toys.both(on, other), folder)
    assert row is not None
    (module,) = [one for one in results.modules if one.module == "logprobs"]
    return row, module.verdict, module.train.of


@pytest.mark.parametrize(("name", "values"), [("log_probs", 1), ("rolled_labels", 1), ("all_words", WORDS)])
def test_they_are_joined_and_follow(toys: Toys, tmp_path: Path, name: str, values: int) -> None:
    """Tokens that are dropped at the end or rolled to it, labels that are an argument or the ids one on, one word or every word."""
    on = Switches(((name, 0),))
    row, verdict, count = of(on, on, toys, tmp_path)
    assert (verdict, count) == ("same", (TOKENS - 1) * values)
    taken = [next(op for op in side.sources[0].steps or () if op.op == "slice") for side in (row.train, row.infer)]
    assert [(op.axis, op.start, op.stop) for op in taken] == [(0, 0, TOKENS - 1)] * 2


def test_rows_behind_padding_are_those_of_the_same_tokens(toys: Toys, tmp_path: Path) -> None:
    """Padding before the prompt on one side: a row of another token would not be equal."""
    padded = Switches((("padded", 0), ("log_probs", 0)))
    dumped = toys.both(padded, Switches((("log_probs", 0),)))
    row, verdict, count = of(padded, Switches((("log_probs", 0),)), toys, tmp_path)
    assert (verdict, count) == ("same", TOKENS - 1)
    (taken,) = [op for op in row.train.sources[0].steps or () if op.op == "slice"]
    assert (taken.start, taken.stop) == (PADDING, PADDING + TOKENS - 1)
    read = [torch.load(next(root.glob(f"step0/proc*/dump_tensor_data/{NAME}.pt"))) for root in (dumped.train, dumped.infer)]
    assert torch.equal(read[0].flatten()[taken.start : taken.stop], read[1])


def test_a_temperature_is_the_only_finding(toys: Toys, tmp_path: Path) -> None:
    """D08, the whole command: the model is right, the log-probabilities mean something else, and the temperature is named."""
    dumped = toys.pair("temperature", "train")
    ran = run_command("diagnose.py", "--train", dumped.train, "--infer", dumped.infer, "--output-dir", tmp_path, "--exit-code")
    assert ran.returncode == 1
    conclusion = json.loads((tmp_path / "conclusion.json").read_text())
    (finding,) = conclusion["findings"]
    assert (finding["boundary"], finding["character"]) == ("logprobs", "logic")
    assert "temperature is 0.7 on train, 1 on infer" in finding["cause"]["text"]


def test_what_is_not_handed_logits_is_no_log_probability(toys: Toys, tmp_path: Path) -> None:
    """A side without them: nothing of the other side may take their place."""
    row, results = proposed(toys.both(Switches((("log_probs", 0),))), tmp_path)
    assert row is None
    assert [one.module for one in results.modules if one.operator in ("log_prob", "log_softmax")] == []
