"""A whole collection as SKILL.md describes it: real msprobe, a trainer in its own source tree, an engine; and nothing is left."""

from __future__ import annotations

import json
import math
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
import torch
from collection.agent import REQUEST, SITE, Agent, Place, commands
from collection.killed_agent import Killed
from collection.trees import content
from collection.warm import Warm

LOGITS = {"train": "Module.lm_head.Linear.forward.0.output.0", "infer": "Module.logits_processor.LogitsProcessor.forward.0.output.0"}


class Collected(NamedTuple):
    """``ran``: command lines; ``runs``: what each run of the trainer logged; ``before``, ``after``: the trees, and what git says."""

    place: Place
    ran: list[str]
    runs: dict[str, list[dict[str, str]]]
    before: tuple[list[dict[str, tuple[str, int, bytes]]], str]
    after: tuple[list[dict[str, tuple[str, int, bytes]]], str]


@pytest.fixture(scope="module")
def warm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Warm]:
    with Warm(tmp_path_factory.mktemp("warm")) as running:
        yield running


def lay(base: Path, *, git: bool) -> Place:
    """Both trees, the model's configuration and a rollout; with git, work of the user's own that is not committed."""
    from toys import weights
    from toys.switches import CLEAN, LAYERS

    place = Place(base)
    shutil.copytree(SITE / "trainer", place.trainer)
    shutil.copytree(SITE / "engine", place.engine)
    if git:
        identity = ("-c", "user.name=user", "-c", "user.email=user@example.org")
        for words in (("init", "-q"), ("add", "-A"), (*identity, "commit", "-qm", "trainer")):
            subprocess.run(["git", *words], cwd=place.trainer, check=True)
    actor = place.trainer / "actor.py"
    actor.write_text(actor.read_text().replace("- 0.5", "- 0.25  # tried by hand") + "\n# TODO: entropy\n")
    actor.chmod(0o640)
    (place.trainer / "notes.txt").write_text("not in git\n")
    for folder in ("logs", "model"):
        (base / folder).mkdir()
    shape = {
        "hidden_size": weights.HIDDEN, "num_hidden_layers": LAYERS, "intermediate_size": weights.MIDDLE, "vocab_size": weights.VOCABULARY,
        "num_attention_heads": weights.HEADS, "num_key_value_heads": weights.GROUPS, "head_dim": weights.WIDTH, "torch_dtype": "bfloat16",
    }  # fmt: skip
    (base / "model/config.json").write_text(json.dumps(shape))
    rollout = {"request_id": REQUEST, "prompt": weights.prompt(CLEAN)[0].tolist(), "response": [5, 9, 77, 23, 41], "reward": 1.0}
    (base / "rollout.json").write_text(json.dumps(rollout))
    return place


def git_says(place: Place) -> str:
    asked = ("status --porcelain --ignored", "diff", "stash list", "log --oneline")
    return "".join(
        subprocess.run(["git", *line.split()], cwd=place.trainer, capture_output=True, text=True, check=True).stdout for line in asked
    )


def tensor(root: Path, name: str) -> torch.Tensor:
    (file,) = root.glob(f"step0/*/dump_tensor_data/{name}.pt")
    return torch.load(file, weights_only=True)


def metrics(place: Place) -> list[dict[str, str]]:
    """Both steps of the last run."""
    return [json.loads(line) for line in (place.logs / "train.log").read_text().splitlines()][-2:]


@pytest.fixture(scope="module", params=["git", "plain"])
def collected(request: pytest.FixtureRequest, warm: Warm, tmp_path_factory: pytest.TempPathFactory) -> Collected:
    """Stages 0 to 9 in their order; what is removed at the end is looked at before."""
    git = request.param == "git"
    place = lay(tmp_path_factory.mktemp(request.param), git=git)
    trees = (place.trainer, place.engine)
    before, said = [content(tree) for tree in trees], git_says(place) if git else ""
    agent = Agent(place, warm)
    for stage in range(7):
        agent.stage(stage)
    runs = {"untouched": metrics(place)}
    for name, switched in (("off", "DUMP_ON=0 PROMPTS_ONLY=0"), ("unset", ""), ("cut", "PROMPTS_ONLY=1")):
        agent.job(agent.launch(switched).split(" && ")[1])
        runs[name] = metrics(place)
    for stage in range(7, 10):
        agent.stage(stage)
    runs["recorded"] = metrics(place)
    left = [content(tree) for tree in trees], git_says(place) if git else ""
    return Collected(place, agent.ran, runs, (before, said), left)


def test_both_trees_are_what_they_were(collected: Collected) -> None:
    """Byte for byte, with modes and names, the user's work that is not committed, and git's own files."""
    assert collected.after == collected.before


def test_every_command_that_the_text_shows_was_run_in_its_order(collected: Collected) -> None:
    shown = [line for stage in range(10) for line in commands(stage) if line.startswith("python3 ")]
    assert len(shown) == 11
    assert [line for line in collected.ran if line in shown] == shown


def test_with_every_switch_off_the_loss_is_that_of_the_untouched_trainer(collected: Collected) -> None:
    """Bit for bit, in both steps, with the weights that they leave; with a switch on it is another, so this can fail."""
    untouched = collected.runs["untouched"]
    assert len(untouched) == 2
    assert collected.runs["off"] == collected.runs["unset"] == untouched
    assert collected.runs["cut"] != untouched


def test_a_recorded_run_trains_to_its_end(collected: Collected) -> None:
    """Loss and metrics have their fallbacks: the same as of a run that was cut and not recorded."""
    assert collected.runs["recorded"] == collected.runs["cut"]
    assert all(math.isfinite(float.fromhex(value)) for step in collected.runs["recorded"] for value in step.values())


def test_the_dumps_are_of_the_prompt_alone_and_the_override_cuts_the_fault_off(collected: Collected) -> None:
    """The engine is wrong in layer 0: with the trainer's stream handed to layer 1 its logits are the trainer's, bit for bit."""
    dumps, work = collected.place.base / "dumps/round0", collected.place.work
    train, infer = (tensor(dumps / side, LOGITS[side]) for side in ("train", "infer"))
    assert (train.shape[1], infer.shape[0]) == (24, 1)
    assert not torch.equal(train[0, -1], infer[0])
    assert torch.equal(train[0, -1], tensor(work / "round1/dump", LOGITS["infer"])[0])
    report, outcome = (json.loads((work / name).read_text()) for name in ("dump_pair_report.json", "round1/stub_outcome.json"))
    assert (report["comparable"], report["inputs_are"]) == (True, {"train": "pre_call", "infer": "pre_call"})
    assert [check["id"] for check in report["checks"] if check["ok"] is False] == []
    assert outcome["effective"] is True


def test_a_kill_in_the_middle_of_anything_is_survived(warm: Warm, tmp_path: Path) -> None:
    """Commands, jobs and the agent's own writing are killed in every stage: going on succeeds, and so does going back at any point."""
    place = lay(tmp_path, git=True)
    agent = Killed(place, warm)
    for stage in range(10):
        agent.stage(stage)
        assert agent.kills[stage] >= 3
    assert [content(tree) for tree in agent.trees] == agent.untouched
