"""Two rounds that were run inside a real vLLM: planned again, proven again and judged again from the committed dumps."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from laying import SAMPLES, lay_out
from running import COLLECTION, SCRIPTS

from loop import looping
from loop.looping import Manner, Pair

SAMPLE = SAMPLES / "qwen2-hf-vllm-rounds"
ROUNDS = {"cut1": Manner("infer", forced=False), "forced1": Manner("infer", forced=True)}
CHEAP = ("--despite", "weights", "config")
ROUNDING = [f"layers.{layer}.{name}" for layer in range(3) for name in ("attn_core.out", "input_norm.out", "post_norm.out")]


def command(script: Path, arguments: list[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, script, *arguments], capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def analysed(tmp_path_factory: pytest.TempPathFactory) -> Pair:
    """The pair before any round."""
    root = tmp_path_factory.mktemp("vllm")
    laid = lay_out("qwen2-hf-vllm-rounds", root)
    (root / "w").mkdir()

    def again(side: str, config: Path) -> None:
        """The engine's run was made once, outside of here."""

    pair = Pair(root / "w", laid.train, laid.infer, command, again)
    looping.analyse(pair, replay=True)
    return pair


@pytest.fixture(params=list(ROUNDS))
def run(request: pytest.FixtureRequest, analysed: Pair, tmp_path: Path) -> tuple[str, Pair]:
    """A round planned, its sources prepared, and the engine's dump where the run would have put it."""
    name = request.param
    shutil.copytree(analysed.work, tmp_path / "w")
    pair = analysed._replace(work=tmp_path / "w")
    looping.planned(pair, ROUNDS[name], *CHEAP)
    folder = pair.work / "round1"
    looping.told(command(COLLECTION / "apply_stub_instruction.py", _arguments(pair)))
    shutil.copytree(pair.infer, folder / "dump")
    shutil.copytree(SAMPLE / name / "infer", folder / "dump", dirs_exist_ok=True)
    return name, pair


def _arguments(pair: Pair, *more: str) -> list[str]:
    folder = pair.work / "round1"
    given = ["--source-dump", str(pair.train), "--target-dump", str(pair.infer), "--output-dir", str(folder)]
    return ["--instruction", str(folder / "stub_instruction.json"), *given, *more]


def _verify(pair: Pair) -> subprocess.CompletedProcess[str]:
    return command(COLLECTION / "apply_stub_instruction.py", _arguments(pair, "--verify", str(pair.work / "round1/dump")))


def test_a_real_round_is_planned_proven_and_judged(run: tuple[str, Pair]) -> None:
    """The plan writes the instruction that was run; its effect is proven; the judgement is what the faults make it."""
    name, pair = run
    written = (pair.work / "round1/stub_instruction.json").read_bytes()
    assert written == (SAMPLE / name / "stub_instruction.json").read_bytes()
    ran = _verify(pair)
    assert ran.returncode == 0, ran.stderr
    result = looping.judged(pair, 1)
    assert result == looping.read(SAMPLE / name / "round_result.json")
    assert result["effective"] is True
    told = command(SCRIPTS / "judge_round.py", [*pair.dumps, "--workdir", str(pair.work), "--round", "1", "--lang", "zh-CN"]).stdout
    faults = [row["boundary"] for row in [*result["local"], *result["downstream"]] if row["character"] == "logic"]
    assert [line.split("：")[1].split("（")[0] for line in told.splitlines()[1 : 1 + len(faults)]] == faults  # before any rounding
    assert ("另有 1 处" in told) is (name == "forced1")
    KNOWN[name](result)


def _cut(result: dict[str, Any]) -> None:
    """Behind the cut nothing of the norm's weight is left: down_proj is equal, and only the scale and the last norm's rounding follow."""
    assert result["isolated"]["status"] == "EXACT"
    assert result["confirmed"] == ["F4"]
    status = {row["boundary"]: (row["status"], row["character"]) for row in result["downstream"]}
    assert status["layers.2.down.out"] == ("EXACT", None)
    assert status["layers.2.resid_mlp"] == ("NOT_EXACT", "logic")
    assert [boundary for boundary, (_, character) in status.items() if character == "logic"] == ["layers.2.resid_mlp"]


def _forced(result: dict[str, Any]) -> None:
    """From equal inputs each module is equal but for the engine's own rounding points and the two faults."""
    differ = {row["boundary"]: row["character"] for row in result["local"] if row["status"] != "EXACT"}
    faults = ["layers.1.post_norm.out", "layers.2.resid_mlp"]
    assert [boundary for boundary, character in differ.items() if character == "logic"] == faults
    assert set(differ) - set(faults) <= {*ROUNDING, "final_norm.out"}
    assert {differ[boundary] for boundary in set(differ) - set(faults)} == {"rounding"}


KNOWN = {"cut1": _cut, "forced1": _forced}


def test_a_source_that_was_another_is_not_effective(run: tuple[str, Pair]) -> None:
    """One element of one prepared file: what the engine received was not that."""
    _, pair = run
    file = next((pair.work / "round1/stub_source_round1").rglob("*.input.0.pt"))
    tensor = torch.load(file, weights_only=True)
    tensor[0, 0] += 1
    torch.save(tensor, file)
    _again_as_prepared(pair, file)
    ran = _verify(pair)
    assert ran.returncode == 1
    assert "the new dump records another tensor" in ran.stderr
    result = looping.judged(pair, 1)
    assert (result["effective"], result["downstream"], result["local"], result["confirmed"]) == (False, [], [], [])
    assert result["why_not"]["text"]


def _again_as_prepared(pair: Pair, file: Path) -> None:
    """As if the source had been made so: its digest in the state of the round is the file's."""
    import hashlib

    path = pair.work / "round1/stub_outcome.json"
    outcome = looping.read(path)
    for item in outcome["prepared"]:
        if item["file"].endswith(file.name):
            item["digest"] = hashlib.sha256(file.read_bytes()).hexdigest()
    path.write_text(json.dumps(outcome))


def test_without_the_override_the_first_dump_again_proves_nothing(run: tuple[str, Pair]) -> None:
    """The engine's dump of before, handed as that of the round."""
    _, pair = run
    judge = [*pair.dumps, "--workdir", str(pair.work), "--round", "1", "--round-dump", str(pair.infer), "--exit-code"]
    ran = command(SCRIPTS / "judge_round.py", judge)
    assert ran.returncode in (2, 3), ran
