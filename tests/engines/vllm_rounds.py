"""Rounds of a real engine, made into a sample: a trainer by transformers against vLLM with two faults, overridden by msprobe's ``load``.

    python tests/engines/vllm_rounds.py --python ENV/bin/python --work /tmp/rounds [--sample tests/samples/qwen2-hf-vllm-rounds]

``--python``: the environment of README.md; everything else runs by the interpreter that runs this. Without ``--sample`` nothing of the
repository is written. The pair, every instruction, every re-dump and every judgement are left in ``--work``.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

TESTS = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(TESTS))
from loop import looping  # noqa: E402

SIDE = Path(__file__).with_name("vllm_side.py")
CLEAN = TESTS / "samples/qwen2-hf-vllm-clean"
FAULTY = ["--down-scale", "2"]
# The single cuts and the forced round, each a loop of its own over the same pair.
MANNERS = {"cut": looping.Manner("infer", forced=False), "forced": looping.Manner("infer", forced=True)}
KEPT = ("stub_instruction.json", "round_result.json")


class Runs:
    """Models and dumps below ``work``."""

    def __init__(self, python: Path, work: Path) -> None:
        self.python, self.work = python, work

    def run(self, *arguments: str | Path) -> None:
        """One run in the engine's environment; what it prints is kept in log.txt."""
        with (self.work / "log.txt").open("a") as log:
            subprocess.run([self.python, SIDE, *arguments], check=True, stdout=log, stderr=log)

    def prepare(self) -> None:
        """Both models, and the pair before any round."""
        self.run("model", "--out", self.work / "clean")
        self.run("model", "--out", self.work / "faulty", "--norm-channel", "1")
        self.run("train", "--model", self.work / "clean", "--out", self.work / "train")
        self.run("infer", "--model", self.work / "faulty", "--out", self.work / "infer", *FAULTY)

    def pair(self, name: str) -> looping.Pair:
        """The pair, analysed in a folder of its own."""

        def again(side: looping.Side, config: Path) -> None:
            assert side == "infer", "the trainer is the source"
            dump = Path(looping.read(config)["dump_path"])
            self.run("infer", "--model", self.work / "faulty", "--out", dump, *FAULTY, "--config", config)

        work = self.work / name
        work.mkdir()
        return looping.Pair(work, self.work / "train", self.work / "infer", command, again)


def command(script: Path, arguments: list[str]) -> subprocess.CompletedProcess[str]:
    """A command of either skill."""
    return subprocess.run([sys.executable, script, *arguments], capture_output=True, text=True, check=False)


def make_sample(work: Path, sample: Path) -> None:
    """The engine's files that differ from the clean sample's, and of each round those that differ from the engine's before."""
    before = work / "infer"
    assert not _differing(work / "train", CLEAN / "train"), "the trainer's dump is not that of the clean sample"
    shutil.rmtree(sample / "infer", ignore_errors=True)
    _patch(before, CLEAN / "infer", sample / "infer")
    mapping = looping.read(CLEAN / "semantic_mapping.json")
    mapping["infer"]["digest"] = hashlib.sha256((before / "step0/rank0/dump.json").read_bytes()).hexdigest()
    (sample / "semantic_mapping.json").write_text(json.dumps(mapping, indent=2) + "\n", encoding="utf-8")
    for name in MANNERS:
        for folder in sorted((work / name).glob("round[0-9]*")):
            kept = sample / f"{name}{folder.name.removeprefix('round')}"
            shutil.rmtree(kept, ignore_errors=True)
            _patch(folder / "dump", before, kept / "infer")
            for file in KEPT:
                shutil.copyfile(folder / file, kept / file)


def _patch(side: Path, base: Path, target: Path) -> None:
    for file in _differing(side, base):
        place = target / file
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(side / file, place)


def _differing(side: Path, base: Path) -> list[Path]:
    """Files of a dump that a base does not hold byte for byte."""
    found = sorted(path.relative_to(side) for path in side.glob("step*/**/*") if path.is_file())
    return [file for file in found if not (base / file).is_file() or (base / file).read_bytes() != (side / file).read_bytes()]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", type=Path, required=True, help="the Python of the engine's environment")
    parser.add_argument("--work", type=Path, required=True, help="a folder that does not exist yet")
    parser.add_argument("--sample", type=Path, help="write the sample here")
    args = parser.parse_args()
    os.makedirs(args.work)
    runs = Runs(args.python, args.work.resolve())
    runs.prepare()
    for name, manner in MANNERS.items():
        pair = runs.pair(name)
        looping.analyse(pair, replay=True)
        ended = looping.rounds(pair, manner, "--despite", "weights", "config")
        for result in ended.results:
            print(name, json.dumps({key: result[key] for key in ("round", "effective", "isolated", "confirmed", "contradicted", "stop")}))
    if args.sample:
        make_sample(args.work.resolve(), args.sample)


if __name__ == "__main__":
    main()
