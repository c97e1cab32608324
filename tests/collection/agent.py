"""An agent that follows SKILL.md over a small trainer and a small engine: its commands as they stand there, its task card filled in."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import string
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from checkpoints import of_floats, write_safetensors
from running import COLLECTION

from .instructions import instruction, module, operand, replace
from .warm import Kill, Ran, Warm

SKILL = COLLECTION.parent
TEXT = (SKILL / "SKILL.md").read_text(encoding="utf-8")
SITE = Path(__file__).parent / "site"
EDITED, MADE = ("actor.py", "loss.py"), "capture.py"  # by SITE/edits.patch
REQUEST = "chatcmpl-7"
# What SKILL.md writes of another site, and what it is here.
HERE = {
    '"$SRC/verl/workers/actor.py"': " ".join(f'"$SRC/{name}"' for name in EDITED) + f' --created "$SRC/{MADE}"',
    "--framework verl": "--framework slime",
    "--framework vllm": "--framework sglang",
    "--prompt-length 190": "--prompt-length 24",
}
LAYER, STREAM = "Module.model.layers.1.Qwen2DecoderLayer.forward.0", "Module.model.layers.0.Qwen2DecoderLayer.forward.0.output.0"


class Place(NamedTuple):
    """Where everything is: below one folder, whose path msprobe takes."""

    base: Path

    @property
    def trainer(self) -> Path:
        return self.base / "trainer"

    @property
    def engine(self) -> Path:
        return self.base / "engine"

    @property
    def work(self) -> Path:
        return self.base / "work"

    @property
    def logs(self) -> Path:
        return self.base / "logs"

    @property
    def variables(self) -> dict[str, str]:
        """The shell variables of SKILL.md."""
        named = {"DUMPS": "dumps", "MODEL": "model", "TRAIN_CFG": "built/config.json", "TRAIN_CKPT": "built"}
        return {"WORK": str(self.work), "SRC": str(self.trainer), **{name: str(self.base / path) for name, path in named.items()}}


def section(stage: int) -> str:
    return next(part for part in re.split(r"^## 阶段 ", TEXT, flags=re.MULTILINE) if part.startswith(str(stage)))


def commands(stage: int) -> list[str]:
    """The command lines of a stage in their order, with this site's values."""
    blocks = re.findall(r"^```\n(.*?)^```$", section(stage), re.MULTILINE | re.DOTALL)
    text = "".join(blocks)
    for there, here in HERE.items():
        text = text.replace(there, here)
    return text.splitlines()


def checking(stage: int) -> str:
    """The command of a gate, as it stands before the stages."""
    (line,) = re.findall(r"^(python3 scripts/check_stage.py --stage )3(.*)$", TEXT, re.MULTILINE)
    return f"{line[0]}{stage}{line[1]}"


def switches(row: str) -> list[str]:
    """What a row of the table of switches writes in code style."""
    found = re.search(rf"^\| {re.escape(row)} \|(.*)\|$", section(4), re.MULTILINE)
    assert found, f"no row {row} in stage 4 of SKILL.md"
    return re.findall(r"`([^`]+)`", found.group(1))


# A model of the size that the site's programs have.
CONFIG = {
    "model_type": "llama", "hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2, "num_key_value_heads": 2, "head_dim": 4,
    "intermediate_size": 16, "vocab_size": 32, "rms_norm_eps": 1e-6, "rope_theta": 10000.0, "hidden_act": "silu",
    "tie_word_embeddings": False, "attention_bias": False, "mlp_bias": False, "torch_dtype": "bfloat16",
}  # fmt: skip
MODEL = {
    "model.embed_tokens.weight": np.arange(256.0).reshape(32, 8),
    "model.norm.weight": np.linspace(0.5, 1.5, 8),
    "lm_head.weight": np.arange(256.0, 0.0, -1.0).reshape(32, 8),
}


class Agent:
    """One collection. Commands run as processes in a shell, jobs in forks of a process that has imported torch and msprobe."""

    def __init__(self, place: Place, warm: Warm) -> None:
        self.place, self.warm = place, warm
        self.card: dict[str, Any] = {}
        self.now, self.round0 = 0, "round0"
        self.ran: list[str] = []
        (place.base / "bin").mkdir()
        python = place.base / "bin/python3"
        python.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} "$@"\n')
        python.chmod(0o755)

    # --- what an agent does ---

    def shell(self, line: str) -> Ran:
        """A command line, run where SKILL.md says: in the folder of the skill."""
        environment = {**os.environ, **self.place.variables, "PATH": f"{self.place.base}/bin:{os.environ['PATH']}"}
        ran = subprocess.run(["bash", "-c", line], cwd=SKILL, env=environment, capture_output=True, text=True, check=False)
        return Ran(ran.returncode, ran.stdout, ran.stderr)

    def command(self, line: str, code: int = 0) -> Ran:
        """A command of the skill; how it ends is told beforehand, and its last line says what comes next."""
        self.ran.append(line)
        ran = self.shell(line)
        assert ran.returncode == code, f"{line}\n{ran}"
        assert "Traceback" not in ran.stderr
        assert code == 2 or ran.stdout.splitlines()[-1].startswith("next: "), ran
        return ran

    def job(self, line: str) -> str:
        """A launch command: environment, scripts, arguments; several joined by &&. What it printed as errors."""
        told = ""
        for part in line.split(" && "):
            ran = self.run(part)
            assert ran.returncode == 0, ran.stderr
            told += ran.stderr
        return told

    def run(self, part: str, kill: Kill | None = None) -> Ran:
        """``NAME=value … python3 SCRIPT …`` in a fork."""
        words = shlex.split(string.Template(part).substitute(self.place.variables))
        at = words.index("python3")
        environment = dict(word.split("=", 1) for word in words[:at])
        cwd = SKILL if words[at + 1].startswith("scripts/") else self.place.base
        return self.warm.run(words[at + 1 :], environment=environment, cwd=cwd, kill=kill)

    def write(self, name: str, value: Mapping[str, Any]) -> None:
        (self.place.work / name).write_text(json.dumps(value, indent=2, ensure_ascii=False), encoding="utf-8")

    def edit(self) -> None:
        """The patch, by either of the tools that pitfall P11 names."""
        tool = ["git", "apply"] if (self.place.trainer / ".git").is_dir() else ["patch", "-p1", "-s", "-i"]
        subprocess.run([*tool, SITE / "edits.patch"], cwd=self.place.trainer, check=True)
        (compiling,) = re.findall(r"`([^`]* -m py_compile) 文件`", section(6))
        for name in (*EDITED, MADE):
            assert self.shell(f'{compiling} "$SRC/{name}"').returncode == 0

    def gate(self, stage: int) -> list[str]:
        """The gaps of a gate, or why it cannot be checked; nothing where it is open."""
        ran = self.shell(checking(stage))
        assert (ran.returncode != 0) == bool(ran.stderr), ran
        return ran.stderr.splitlines()

    # --- the stages ---

    def stage(self, number: int) -> None:
        """One stage: its gate is shut before, by itself and nothing before it, and open after."""
        self.now = number
        shut = self.gate(number)
        assert shut, f"gate {number} is open before anything was done"
        assert number == 0 or [line for line in shut if not line.startswith(f"stage {number}: ")] == []
        getattr(self, f"_stage_{number}")()
        gaps = self.gate(number)
        assert not gaps, gaps

    def _fill(self, **fields: Any) -> None:
        self.card.update(fields)
        self.write("task_card.json", self.card)

    def _stage_0(self) -> None:
        for line in commands(0):
            self.shell(line)
        self.card = json.loads((self.place.work / "task_card.json").read_text(encoding="utf-8"))
        self._fill(
            goal="full", model="qwen2-toy", hardware="cpu", workdir=str(self.place.base), product_root=str(self.place.base / "dumps"),
            baseline_command=self.launch(), log_location=str(self.place.logs), evidence_tool="msprobe PrecisionDebugger",
            train={"framework": "own, flags as slime's", "version": "1.0", "backend": "own", "path": str(self.place.trainer)},
            infer={"engine": "own, flags as sglang's", "version": "1.0", "path": str(self.place.engine)},
            scope="one prompt, one prefill", stop_condition="two comparable dumps",
            sample={"id": REQUEST, "prompt_source": "seeded", "prompt_length": "unknown"},
        )  # fmt: skip

    def _stage_1(self) -> None:
        line = "python3 -m pip show mindstudio-probe"
        told = {"command": line, "output": self.shell(line).stdout}
        for side in ("train", "infer"):
            self.card["environments"][side].update(activation="the interpreter of this test", msprobe=told)
        seen = {"command": "uptime -p", "output": self.shell("uptime -p").stdout}
        self.job(self.launch())
        self._fill(cards={"before": seen, "after": seen, "idle_memory": "none: a CPU", "stopped_processes": []})

    def _stage_2(self) -> None:
        names = re.findall(r"`(AUTH_\w+)`", section(2))
        self._fill(authorisations={name: {"state": "granted", "date": "2026-11-30"} for name in names})

    def _stage_3(self) -> None:
        self._look()

    def _look(self) -> None:
        """The three places as grep prints them: the first by the line of SKILL.md, the others by following it."""
        (first,) = re.findall(r"`(grep -rn \"[^`]*\")`", section(3))
        greps = {
            "prompt_cut": f"{first} | grep 'def compute_log_prob'",
            "main_forward": 'grep -n "log_probs = self._forward" actor.py /dev/null | head -1',
            "request_id": "grep -n request_id batch.py /dev/null",
        }
        self._fill(site={key: self.shell(f'cd "$SRC" && {grep}').stdout.strip() for key, grep in greps.items()})

    def launch(self, switched: str = "", config: str = "") -> str:
        """The engine, then the trainer; ``switched``: the trainer's switches; ``config``: the engine's msprobe configuration."""
        rollout, logs = self.place.base / "rollout.json", self.place.logs
        engine = f"{self.place.engine}/serve.py {rollout} --log {logs}/engine.log" + (f" --msprobe-dump-config {config}" if config else "")
        padding = " ".join(switches("slime、vime")[:1]) if "PROMPTS_ONLY" in switched else ""
        trainer = f"{self.place.trainer}/train.py {rollout} --log {logs}/train.log {padding}"
        (quiet,) = re.findall(r"每次运行都带 `(\w+=1)`", section(1))
        return f"{quiet} python3 {engine} && {quiet} {switched} python3 {trainer}"

    @property
    def switched(self) -> str:
        return " ".join(word for word in switches("都要") if "=" in word)

    def _stage_4(self) -> None:
        self.card["sample"]["prompt_length"] = len(json.loads((self.place.base / "rollout.json").read_text())["prompt"])
        self._fill(baseline_command=self.launch(self.switched, f"{self.place.work}/msprobe_infer.json"))

    def _stage_5(self) -> None:
        """Both sides hold the same configuration and the same checkpoint."""
        for name in ("model", "built"):
            write_safetensors(self.place.base / name / "model.safetensors", of_floats(MODEL))
            (self.place.base / name / "config.json").write_text(json.dumps(CONFIG), encoding="utf-8")
        (compare,) = commands(5)
        self.command(compare)

    def _stage_6(self) -> None:
        record, diff, *configurations = commands(6)
        self.command(record)
        self.command('python3 scripts/change_ledger.py record --workdir "$WORK" --root ' + shlex.quote(str(self.place.engine)))
        self.edit()
        self.command(diff)
        self._look()
        self.configure(configurations)

    def configure(self, lines: Sequence[str]) -> None:
        """A configuration for each side, for a folder of dumps that is not there yet."""
        for line in lines:
            self.command(line.replace("/round0/", f"/{self.round0}/"))

    def _stage_7(self) -> None:
        noted = self.collect()
        for side in ("train", "infer"):
            self.card["dumps"][side] = {"path": f"{self.place.base}/dumps/{self.round0}/{side}", "step": 0, "rank": 0}
        (check,) = commands(7)
        self._fill()
        self.command(check)
        self._fill(association=self._association(noted))

    def _association(self, noted: str) -> dict[str, Any]:
        """A prefill step of one request in the engine's log, and the step of the trainer that notes the same request."""
        dispatched = json.loads((self.place.logs / "engine.log").read_text().splitlines()[-1])
        (request,) = (re.sub("-[0-9a-f]{8}$", "", one) for one in dispatched["request_ids"])
        (step,) = (
            step for step in map(json.loads, re.findall(r'^\{"dump_step".*$', noted, re.MULTILINE)) if request in step["request_ids"]
        )
        units = {"train": {"step": step["dump_step"], "rank": 0}, "infer": {"step": dispatched["step"], "rank": 0}}
        return {"by": "request_id", "request_id": request, **units}

    def collect(self) -> str:
        """The run with its switches, and DUMP_ON=1; what the trainer noted of it."""
        config = f"{self.place.work}/msprobe_infer.json"
        return self.job(self.launch(f"{self.switched} DUMP_ON=1 DUMP_CONFIG={self.place.work}/msprobe_train.json", config))

    def _stage_8(self) -> None:
        dry, prepare, verify = commands(8)
        (self.place.work / "round1").mkdir()
        self.write("round1/stub_instruction.json", into_engine(24, 64))
        self.command(dry)
        self.command(prepare)
        self.override()
        self.command(verify)

    def override(self) -> None:
        """The engine again, everything as before but its configuration."""
        engine, _ = self.launch("", f"{self.place.work}/round1/msprobe_load.json").split(" && ")
        self.job(engine)

    def _stage_9(self) -> None:
        restore, verify = commands(9)
        self.command(restore)
        self.command(verify)
        self._fill(baseline_command=self.launch())
        for line in self.gate(9):
            what, _, folder = line.partition("Remove this folder by its name: ")
            assert "stub_source_round1" in what
            shutil.rmtree(folder)


def into_engine(tokens: int, width: int) -> dict[str, Any]:
    """The trainer's stream as the hidden states of the engine's layer 1, and -0.0 as its residual."""
    one, shape = {"op": "squeeze", "axis": 0}, [tokens, width]
    hidden, residual = operand((STREAM, one)), operand((STREAM, one), combine="zeros")
    return instruction("train", "infer", module(LAYER, replace(1, hidden, shape), replace(2, residual, shape)))
