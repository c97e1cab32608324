"""A folder in which every stage is done: what the agent writes and what the commands make, over real dumps. Tests break one thing each."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from running import COLLECTION, run_collection

COMMAND = (
    "PROMPTS_ONLY=1 TORCHDYNAMO_DISABLE=1 python3 -m verl.trainer.main_ppo actor_rollout_ref.model.use_remove_padding=True "
    "trainer.balance_batch=False trainer.val_before_train=False actor_rollout_ref.rollout.enforce_eager=True"
)
ACTOR = "import torch\n\n\ndef compute_log_prob(data):\n    output = model(data)\n    return output\n"
EDITED = ACTOR.replace("    output = model(data)\n", "    debugger.start(model)\n    output = model(data)\n    debugger.stop()\n")


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


class Collected:
    """``card``, ``parameters``, ``ledger``, ``pair``: what stands in the folder, written by `check` before it runs the gate."""

    def __init__(self, folder: Path, train: Path, infer: Path) -> None:
        self.folder, self.sources = folder, folder / "trainer"
        self.sources.mkdir()
        (self.sources / "actor.py").write_text(EDITED)
        (folder / "ledger").mkdir()
        (folder / "ledger/C1").write_text(ACTOR)
        self.card = card(self.sources, train, infer)
        item = {"canonical": "config.num_layers", "train": {}, "infer": {}, "status": "EXACT", "priority": "structure", "kind": "value"}
        self.parameters: dict[str, Any] = {
            "schema": "param_alignment_report/1", "layers": dict.fromkeys(("config", "structure", "weights"), "checked"),
            "items": [item], "mismatch_points": [], "waivers": [], "aligned": True,
        }  # fmt: skip
        change = {
            "id": "C1", "path": "trainer/actor.py", "kind": "modified",
            "before": {"digest": digest(ACTOR), "mode": "0644", "backup": "ledger/C1"}, "after": {"digest": digest(EDITED)},
            "why": "start and stop around the log-prob forward", "stage": 6, "restored": False,
        }  # fmt: skip
        self.ledger: dict[str, Any] = {"schema": "change_ledger/1", "roots": ["trainer"], "changes": [change], "state": "open"}
        self.pair: dict[str, Any] = {
            "schema": "dump_pair_report/1",
            "checks": [
                {"id": "parses", "ok": True, "evidence": {"kind": "x", "values": {}, "text": "parses"}, "back_to_stage": None},
                {"id": "eager", "ok": None, "evidence": {"kind": "x", "values": {}, "text": "a dump cannot say it"}, "back_to_stage": 4},
            ],
            "inputs_are": {"train": "pre_call", "infer": "pre_call"},
            "comparable": True,
        }  # fmt: skip

    def write(self) -> None:
        named = {
            "task_card": self.card,
            "param_alignment_report": self.parameters,
            "change_ledger": self.ledger,
            "dump_pair_report": self.pair,
        }
        for name, value in named.items():
            if value is not None:
                (self.folder / f"{name}.json").write_text(json.dumps(value), encoding="utf-8")

    def check(self, stage: int) -> Any:
        self.write()
        return run_collection("check_stage.py", "--stage", str(stage), "--workdir", self.folder)

    def gaps(self, stage: int) -> list[str]:
        """The gaps of a gate that is shut; each is one line that says what repairs it, and the answer says the first one's repair."""
        ran = self.check(stage)
        lines: list[str] = ran.stderr.splitlines()
        assert ran.returncode == 1, ran.stdout + ran.stderr
        assert ran.stdout.startswith(f"stage {stage} is shut: {len(lines)} gap")
        assert all(line.startswith("stage ") and ". " in line for line in lines)
        assert ran.stdout.splitlines()[-1].replace("next: ", "", 1) in lines[0].replace("Run: ", "", 1)
        return lines

    def open(self, stage: int) -> str:
        """What an open gate says is next."""
        ran = self.check(stage)
        assert (ran.returncode, ran.stderr) == (0, ""), ran.stderr
        assert ran.stdout.startswith(f"stage {stage} is open\nnext: ")
        return str(ran.stdout)


def card(sources: Path, train: Path, infer: Path) -> dict[str, Any]:
    """The task card as an agent has filled it in."""
    filled: dict[str, Any] = json.loads((COLLECTION.parent / "references/task_card.json").read_text(encoding="utf-8"))
    filled.update(goal="full", model="qwen2", hardware="cpu", baseline_command=COMMAND, log_location="train.log", product_root="dumps")
    filled["train"] = {"framework": "verl", "version": "0.8.0", "backend": "fsdp", "path": str(sources)}
    filled["infer"] = {"engine": "vllm", "version": "0.32.0", "path": "unknown"}
    shown = {"command": "npu-smi info", "output": "| 0  910B | OK | 0 / 65536 |"}
    filled["cards"] = {"before": shown, "after": shown, "idle_memory": "3 MiB a card", "stopped_processes": []}
    for side in ("train", "infer"):
        told = {"command": "python3.11 -m pip show mindstudio-probe", "output": "Name: mindstudio-probe\nVersion: 26.2.0"}
        filled["environments"][side].update(activation="conda activate rl", msprobe=told)
        filled["dumps"][side].update(path=str({"train": train, "infer": infer}[side]), step=0, rank=0)
    filled["authorisations"] = {name: {"state": "granted", "date": "2026-11-29"} for name in filled["authorisations"]}
    filled["sample"] = {"id": "sample-0007", "prompt_source": "seeded", "prompt_length": 14}
    filled["site"] = {"prompt_cut": "to add", "main_forward": "actor.py:4 compute_log_prob", "request_id": "to add"}
    filled["association"] = "token_ids"
    return filled
