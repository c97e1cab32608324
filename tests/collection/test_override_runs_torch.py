"""Overrides carried out by the real msprobe on the toys: they take effect, the proof says so, and says so of nothing else."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import torch
from collection.instructions import instruction, module, operand, replace, write
from collection.loading import Loading
from running import run_collection

LAYER = "Module.model.layers.1.Qwen2DecoderLayer.forward.0"
STREAM = "Module.model.layers.0.Qwen2DecoderLayer.forward.0.output"
LOGITS = {"train": "Module.lm_head.Linear.forward.0.output.0", "infer": "Module.logits_processor.LogitsProcessor.forward.0.output.0"}
TOKENS = 24
FAULT = [("one_channel", 0)]


class Runs(NamedTuple):
    """The process that runs, and dumps of both sides, clean and with a fault in layer 0; three windows each."""

    process: Loading
    root: Path

    def dump(self, name: str) -> Path:
        return self.root / name


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Runs]:
    root = tmp_path_factory.mktemp("runs")
    with Loading(root) as process:
        for side in ("train", "infer"):
            for name, on in (("clean", []), ("faulty", FAULT)):
                config = root / f"{side}-{name}.json"
                options = {"scope": [], "list": [], "data_mode": ["forward"], "summary_mode": "statistics"}
                out = str(root / f"{side}-{name}")
                config.write_text(
                    json.dumps({"task": "tensor", "level": "L0", "dump_path": out, "rank": [], "step": [0], "tensor": options})
                )
                process.run(side, config, on=on)
        yield Runs(process, root)


def hidden() -> int:
    from toys import weights

    return int(weights.HIDDEN)


def into_engine() -> dict[str, Any]:
    """The trainer's stream as hidden states of the engine's layer 1, and -0.0 as its residual."""
    one, shape = {"op": "squeeze", "axis": 0}, [TOKENS, hidden()]
    return instruction(
        "train",
        "infer",
        module(LAYER, replace(1, operand((f"{STREAM}.0", one)), shape), replace(2, operand((f"{STREAM}.0", one), combine="zeros"), shape)),
    )


def into_trainer() -> dict[str, Any]:
    """The sum of the engine's two as the trainer's one."""
    shape = [1, TOKENS, hidden()]
    back = {"op": "reshape", "shape": shape}
    return instruction(
        "infer", "train", module(LAYER, replace(0, operand((f"{STREAM}.0", back), (f"{STREAM}.1", back), combine="sum"), shape))
    )


class Prepared(NamedTuple):
    folder: Path
    arguments: tuple[str | Path, ...]

    @property
    def config(self) -> Path:
        return self.folder / "msprobe_load.json"

    @property
    def outcome(self) -> dict[str, Any]:
        return json.loads((self.folder / "stub_outcome.json").read_text())

    def verify(self, *more: str | Path) -> Any:
        return run_collection("apply_stub_instruction.py", *self.arguments, "--verify", self.folder / "dump", *more)


def prepare(runs: Runs, folder: Path, value: dict[str, Any], *more: str) -> Prepared:
    source, target = f"{value['source_side']}-clean", f"{value['target_side']}-faulty"
    arguments = (
        "--instruction", write(folder, value), "--source-dump", runs.dump(source), "--target-dump", runs.dump(target),
        "--output-dir", folder / "round1",
    )  # fmt: skip
    ran = run_collection("apply_stub_instruction.py", *arguments, *more)
    assert ran.returncode == 0, ran.stderr
    return Prepared(folder / "round1", arguments)


def tensor(root: Path, name: str, step: int = 0) -> torch.Tensor:
    return torch.load(next(root.glob(f"step{step}/*/dump_tensor_data/{name}.pt")), weights_only=True)


@pytest.mark.parametrize("target", ["infer", "train"])
def test_an_override_takes_effect_and_cuts_off_the_fault(runs: Runs, tmp_path: Path, target: str) -> None:
    """Layer 0 of the target is faulty; with layer 1's inputs from the clean other side its logits are the clean ones, bit for bit."""
    made = prepare(runs, tmp_path, into_engine() if target == "infer" else into_trainer())
    log = runs.process.run(target, made.config, on=FAULT)
    assert "1/1 modules valid" in log
    clean, faulty = (tensor(runs.dump(f"{target}-{name}"), LOGITS[target]) for name in ("clean", "faulty"))
    assert not torch.equal(clean, faulty), "the fault does not reach the logits: nothing is tested"
    assert torch.equal(tensor(made.folder / "dump", LOGITS[target]), clean)
    ran = made.verify()
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.startswith("effective: yes")
    outcome = made.outcome
    assert outcome["effective"] is True
    assert [effect["overridden"] for effect in outcome["effect"]] == [True] * (2 if target == "infer" else 1)
    elements = TOKENS * hidden()
    assert outcome["effect"][0]["evidence"]["values"] == {"equal": elements, "of": elements}
    assert outcome["new_dump"]["label"] == f"{target} round 1"
    assert "not_verified" not in [warning["kind"] for warning in outcome["warnings"]]


def test_a_distributed_target_reads_its_rank(runs: Runs, tmp_path: Path) -> None:
    """Its dump says rank0, so the source does; a target that ran alone before has a source that this one does not look for."""
    config = tmp_path / "distributed.json"
    config.write_text(json.dumps({**json.loads((runs.root / "infer-faulty.json").read_text()), "dump_path": str(tmp_path / "before")}))
    runs.process.run("infer", config, on=FAULT, distributed=True)
    made = prepare(runs, tmp_path, into_engine(), "--target-dump", str(tmp_path / "before"))
    assert [path.name for path in (made.folder / "stub_source_round1/step0").iterdir()] == ["rank0"]
    runs.process.run("infer", made.config, on=FAULT, distributed=True)
    assert torch.equal(tensor(made.folder / "dump", LOGITS["infer"]), tensor(runs.dump("infer-clean"), LOGITS["infer"]))
    assert made.verify().returncode == 0
    alone = tmp_path / "alone"
    alone.mkdir()
    made = prepare(runs, alone, into_engine())
    runs.process.run("infer", made.config, on=FAULT, distributed=True)
    ran = made.verify()
    assert ran.returncode == 1
    assert ran.stderr.count("the run wrote rank0, so load looked there, but the source lies in proc") == 2


def test_the_next_window_runs_free_again(runs: Runs, tmp_path: Path) -> None:
    """A decode step or a training forward after the prefill must not get the prefill's tensors."""
    made = prepare(runs, tmp_path, into_engine())
    runs.process.run("infer", made.config, ["window", "window", "window"], on=FAULT)
    faulty = tensor(runs.dump("infer-faulty"), LOGITS["infer"])
    assert torch.equal(tensor(made.folder / "dump", LOGITS["infer"], step=1), faulty)
    assert not (made.folder / "dump/step2").exists()
    ran = made.verify()
    assert (ran.returncode, "overridden_again" in json.dumps(made.outcome)) == (0, False), ran.stderr


def test_a_forward_between_windows_that_is_overridden_too_spoils_the_round(runs: Runs, tmp_path: Path) -> None:
    """msprobe's loader counts it to the step before; the call number that the next window begins with tells that it happened."""
    made = prepare(runs, tmp_path, into_engine())
    runs.process.run("infer", made.config, ["window", "outside", "window"], on=FAULT)
    ran = made.verify()
    assert ran.returncode == 1
    assert ran.stderr.count("a forward between the two windows was overridden too; end the run after the first one") == 2
    assert {effect["evidence"]["kind"] for effect in made.outcome["effect"]} == {"overridden_between"}
    assert made.outcome["effective"] is False


def test_a_second_window_of_the_step_runs_free(runs: Runs, tmp_path: Path) -> None:
    """It has call number 1, which msprobe replaces nothing of."""
    made = prepare(runs, tmp_path, into_engine())
    runs.process.run("infer", made.config, ["unstepped", "window"], on=FAULT)
    ran = made.verify()
    assert ran.returncode == 0, ran.stderr


def test_a_later_forward_with_the_same_tensors_is_said(runs: Runs, tmp_path: Path) -> None:
    """A configuration edited to one step alone goes on replacing; here the second window is made to dump as well."""
    made = prepare(runs, tmp_path, into_engine())
    config = json.loads(made.config.read_text())
    source = made.folder / "stub_source_round1"
    shutil.copytree(source / "step0", source / "step1")
    config["load"]["step"] = []
    made.config.write_text(json.dumps(config))
    runs.process.run("infer", made.config, ["window", "window"], on=FAULT)
    assert made.verify().returncode == 0
    again = [warning["values"] for warning in made.outcome["warnings"] if warning["kind"] == "overridden_again"]
    assert again == [{"entry": LAYER, "step": 1, "input": f"input.{at}"} for at in (1, 2)]


def test_a_source_that_went_missing_before_the_run_is_caught(runs: Runs, tmp_path: Path) -> None:
    """msprobe keeps the original value and goes on: a half override."""
    made = prepare(runs, tmp_path, into_engine())
    hidden_states = next((made.folder / "stub_source_round1").rglob("*.input.1.pt"))
    kept = hidden_states.with_name("kept")
    hidden_states.rename(kept)
    runs.process.run("infer", made.config, on=FAULT)
    ran = made.verify()
    assert ran.returncode == 1
    assert "input.1: the prepared file is gone" in ran.stderr
    kept.rename(hidden_states)
    ran = made.verify()
    assert ran.returncode == 1
    assert "input.1: the target kept its value of the earlier dump" in ran.stderr
    assert [effect["overridden"] for effect in made.outcome["effect"]] == [False, True]
    assert made.outcome["effective"] is False


def test_a_run_without_the_configuration_is_caught(runs: Runs, tmp_path: Path) -> None:
    """As an msprobe before 26.2 does it: the load section has no effect, and no message."""
    made = prepare(runs, tmp_path, into_engine())
    config = json.loads(made.config.read_text())
    del config["load"]
    made.config.write_text(json.dumps(config))
    runs.process.run("infer", made.config, on=FAULT)
    ran = made.verify()
    assert ran.returncode == 1
    assert ran.stderr.count("the target kept its value of the earlier dump") == 2
    assert "effective: no, 0 of 2" in ran.stdout


def test_a_run_of_another_prompt_is_caught_by_its_shape(runs: Runs, tmp_path: Path) -> None:
    """Padding left in and the load section lost: the input has four tokens more than what was prepared."""
    made = prepare(runs, tmp_path, into_engine())
    config = json.loads(made.config.read_text())
    del config["load"]
    made.config.write_text(json.dumps(config))
    runs.process.run("infer", made.config, on=[("padding_left_in", 0)])
    ran = made.verify()
    assert ran.returncode == 1
    assert f"the new dump records shape [{TOKENS + 4}, {hidden()}], prepared is [{TOKENS}, {hidden()}]" in ran.stderr


def test_a_prepared_file_that_was_changed_proves_nothing(runs: Runs, tmp_path: Path) -> None:
    """It is what the run was given, so the new dump equals it; but it is not what the instruction asks for."""
    made = prepare(runs, tmp_path, into_trainer())
    file = next((made.folder / "stub_source_round1").rglob("*.pt"))
    torch.save(torch.load(file, weights_only=True) * 2, file)
    runs.process.run("train", made.config, on=FAULT)
    ran = made.verify()
    assert ran.returncode == 1
    assert "the prepared file was changed since it was written" in ran.stderr


def test_a_load_only_run_dumps_nothing(runs: Runs, tmp_path: Path) -> None:
    made = prepare(runs, tmp_path, into_engine(), "--no-dump")
    log = runs.process.run("infer", made.config, ["window", "window"], on=FAULT)
    assert "Load-only mode: module input override active" in log
    assert not (made.folder / "dump").exists()
    assert "no_dump_no_proof" in [warning["kind"] for warning in made.outcome["warnings"]]
    ran = made.verify()
    assert (ran.returncode, ran.stdout) == (2, "")
    assert "no such folder" in ran.stderr


@pytest.fixture
def second(runs: Runs, tmp_path: Path) -> Prepared:
    """A round for a target whose prefill is step 1 of its dump."""
    config = tmp_path / "second.json"
    plain = json.loads((runs.root / "infer-faulty.json").read_text())
    config.write_text(json.dumps({**plain, "dump_path": str(tmp_path / "second"), "step": [1]}))
    runs.process.run("infer", config, ["window", "window"], on=FAULT)
    arguments = (
        "--instruction", write(tmp_path, into_engine()), "--source-dump", runs.dump("train-clean"), "--target-dump", tmp_path / "second",
        "--output-dir", tmp_path / "round1",
    )  # fmt: skip
    ran = run_collection("apply_stub_instruction.py", *arguments)
    assert ran.returncode == 0, ran.stderr
    return Prepared(tmp_path / "round1", arguments)


def test_the_second_step_of_a_run_can_be_overridden(runs: Runs, second: Prepared) -> None:
    """Source and configuration are made for the step that the target's dump has; the windows before and after run free."""
    runs.process.run("infer", second.config, ["window", "window", "window"], on=FAULT)
    assert torch.equal(tensor(second.folder / "dump", LOGITS["infer"], step=1), tensor(runs.dump("infer-clean"), LOGITS["infer"]))
    assert torch.equal(tensor(second.folder / "dump", LOGITS["infer"], step=2), tensor(runs.dump("infer-faulty"), LOGITS["infer"]))
    ran = second.verify()
    assert ran.returncode == 0, ran.stderr


def test_a_forward_that_took_the_call_number_is_caught(runs: Runs, second: Prepared) -> None:
    """Between the windows of step 0 and 1 a validation forward uses up call 0: the window of step 1 misses the override."""
    runs.process.run("infer", second.config, ["window", "outside", "window"], on=FAULT)
    ran = second.verify()
    assert ran.returncode == 1
    assert "a forward outside start() and stop() took that call number" in ran.stderr


def test_a_run_that_never_reached_the_step_is_caught(runs: Runs, second: Prepared) -> None:
    """The dump that the run wrote holds another step than the source was made for."""
    config = json.loads(second.config.read_text())
    second.config.write_text(json.dumps({**config, "step": [0]}))
    runs.process.run("infer", second.config, ["window"], on=FAULT)
    ran = second.verify()
    assert ran.returncode == 1
    assert "the new dump holds step 0, not step 1, for which the source was prepared" in ran.stderr
