"""A round whose override did not take effect is caught, with the reason, and nothing behind it is judged. The real msprobe runs it."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest
import torch
from running import COLLECTION, SCRIPTS
from toys import late

from loop import looping, running, sides
from loop.fault_sets import Fault, FaultSet
from loop.looping import Manner, Pair

SET = FaultSet(0, (Fault("one_channel", "infer", 0), Fault("missing_bias", "infer", 1)))
PLAIN = ("window",)
NORM = "Module.model.layers.0.post_attention_layernorm.RMSNorm.forward.0"  # receives what the fault in layer 0 made
HEAD = "Module.logits_processor.LogitsProcessor.forward.0"  # another shape goes through it without an error


class Prepared(NamedTuple):
    """A round that is ready to run: the analysis, its folder, and the switches of the run that may be changed."""

    pair: Pair
    toys: sides.Toys

    @property
    def folder(self) -> Path:
        return self.pair.work / "round1"

    @property
    def source(self) -> Path:
        return self.folder / "stub_source_round1"

    @property
    def config(self) -> Path:
        return self.folder / "msprobe_load.json"

    def file(self, entry: str) -> Path:
        """The file of one of many inputs."""
        return next(self.source.rglob(f"{entry}.input.*.pt"))

    def renamed(self, by: str) -> None:
        """The norm's entry, in the configuration and in the source folder."""
        self.config.write_text(self.config.read_text().replace(NORM, by))
        for file in self.source.rglob(f"{NORM}.*.pt"):
            file.rename(file.with_name(file.name.replace(NORM, by)))


@pytest.fixture(scope="module")
def planned(toys: sides.Toys, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of an analysis with its first instruction: everything of the engine at once."""
    pair = toys.pair(SET, tmp_path_factory.mktemp("planned") / "w")
    looping.analyse(pair, replay=True)
    assert looping.planned(pair, Manner("infer", forced=True), *running.DESPITE)["rounds"]
    return pair.work


@pytest.fixture
def prepared(toys: sides.Toys, planned: Path, tmp_path: Path) -> Prepared:
    shutil.copytree(planned, tmp_path / "w")
    pair = toys.pair(SET, tmp_path / "w")
    looping.told(pair.command(COLLECTION / "apply_stub_instruction.py", _arguments(pair)))
    return Prepared(pair, toys)


def _arguments(pair: Pair) -> list[str]:
    folder = pair.work / "round1"
    return [
        "--instruction", str(folder / "stub_instruction.json"), "--source-dump", str(pair.train), "--target-dump", str(pair.infer),
        "--output-dir", str(folder),
    ]  # fmt: skip


def _missing(prepared: Prepared) -> None:
    next(prepared.source.rglob(f"{NORM}.input.0.pt")).unlink()


def _other_class(prepared: Prepared) -> None:
    prepared.renamed(NORM.replace("RMSNorm", "GemmaRMSNorm"))


def _other_call(prepared: Prepared) -> None:
    prepared.renamed(NORM[:-1] + "1")


def _other_shape(prepared: Prepared) -> None:
    torch.save(torch.load(prepared.file(HEAD), weights_only=True).repeat(2, 1), prepared.file(HEAD))


def _other_dtype(prepared: Prepared) -> None:
    torch.save(torch.load(prepared.file(HEAD), weights_only=True).float(), prepared.file(HEAD))


def _other_step(prepared: Prepared) -> None:
    (prepared.source / "step0").rename(prepared.source / "step1")


def _nothing(prepared: Prepared) -> None:
    pass


CASES: dict[str, tuple[Callable[[Prepared], None], tuple[str, ...], str]] = {
    "missing": (_missing, PLAIN, "kept its value"),
    "class": (_other_class, PLAIN, "kept its value"),
    "index": (_other_call, PLAIN, "kept its value"),
    "shape": (_other_shape, PLAIN, "records shape [2, 64], prepared is [1, 64]"),
    "dtype": (_other_dtype, PLAIN, "records dtype float32, prepared is bfloat16"),
    "step": (_other_step, PLAIN, "kept its value"),
    "again": (_nothing, ("window", "outside", "window"), "a forward between the two windows was overridden too"),
}


@pytest.mark.parametrize("case", CASES)
def test_a_round_without_effect_is_not_judged(prepared: Prepared, case: str) -> None:
    """While the target ran its source was not what had been prepared; afterwards it is as it was, so that the dump alone can tell."""
    spoil, forwards, reason = CASES[case]
    kept, config = prepared.folder / "kept", prepared.config.read_text()
    shutil.copytree(prepared.source, kept)
    spoil(prepared)
    prepared.toys.run("infer", prepared.config, SET, forwards)
    shutil.rmtree(prepared.source)
    kept.rename(prepared.source)
    prepared.config.write_text(config)
    ran = prepared.pair.command(
        COLLECTION / "apply_stub_instruction.py", [*_arguments(prepared.pair), "--verify", str(prepared.folder / "dump")]
    )
    assert ran.returncode == 1, ran
    assert reason in ran.stderr
    judge = [*prepared.pair.dumps, "--workdir", str(prepared.pair.work), "--round", "1", "--exit-code"]
    judged = prepared.pair.command(SCRIPTS / "judge_round.py", judge)
    assert judged.returncode == 3, judged
    result = looping.read(prepared.folder / "round_result.json")
    assert result["effective"] is False
    assert reason in json.dumps(result["why_not"])
    assert (result["downstream"], result["local"], result["confirmed"], result["contradicted"]) == ([], [], [], [])


def test_the_same_round_left_alone_has_its_effect(prepared: Prepared) -> None:
    """Without this the cases above would prove nothing."""
    prepared.toys.run("infer", prepared.config, SET, PLAIN)
    verify = [*_arguments(prepared.pair), "--verify", str(prepared.folder / "dump")]
    looping.told(prepared.pair.command(COLLECTION / "apply_stub_instruction.py", verify))
    result = looping.judged(prepared.pair, 1)
    assert result["effective"] is True
    assert result["local"]


def test_without_load_the_analysis_ends_with_what_replay_proved(toys: sides.Toys, tmp_path: Path) -> None:
    """msprobe before 26.2 ignores a load section silently: no round is planned into such a side, and what stays unconfirmed is said."""
    pair = toys.pair(SET, tmp_path / "w")
    pair = pair._replace(infer=late.late(pair.infer, tmp_path / "late"))
    looping.analyse(pair, replay=True)
    ended = looping.rounds(pair, Manner("infer", forced=True), *running.DESPITE)
    assert ended.results == []
    assert ended.plan["rounds"] == []
    assert "26.1" in json.dumps(ended.plan["remarks"])
    logic = [finding for finding in ended.conclusion["findings"] if finding["character"] == "logic"]
    assert [finding["boundary"] for finding in logic] == ["layers.0.o_proj.out", "layers.1.q.out"]
    assert all(finding["confirmed_by"] == ["replay"] and finding["rounds"] == [] for finding in logic)
    needless = {item["finding"] for item in ended.plan["not_needed"]}
    assert set(ended.plan["open"]) | needless >= {finding["id"] for finding in logic}, "a finding that no round confirmed, without a word"
    assert logic[1]["id"] in ended.plan["open"]
