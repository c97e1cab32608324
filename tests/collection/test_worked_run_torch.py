"""A whole collection as SKILL.md describes it: real msprobe, a trainer in its own source tree, an engine; and nothing is left."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from collection.agent import REQUEST, SITE, Agent, Place
from collection.killed_agent import Killed
from collection.trees import content
from collection.warm import Warm

LOGITS = {"train": "Module.lm_head.Linear.forward.0.output.0", "infer": "Module.logits_processor.LogitsProcessor.forward.0.output.0"}


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


def metrics(place: Place) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (place.logs / "train.log").read_text().splitlines()]


@pytest.mark.parametrize("kind", ["git", "plain"])
def test_who_follows_the_text_gets_two_dumps_and_leaves_no_trace(kind: str, warm: Warm, tmp_path: Path) -> None:
    """Every gate is shut before its stage and open after it; both trees are byte for byte what they were."""
    place = lay(tmp_path, git=kind == "git")
    before = {tree: content(tree) for tree in (place.trainer, place.engine)}
    said = git_says(place) if kind == "git" else ""
    agent = Agent(place, warm)
    for stage in range(10):
        agent.stage(stage)
    assert {tree: content(tree) for tree in (place.trainer, place.engine)} == before
    if kind == "git":
        assert git_says(place) == said


def test_a_kill_in_the_middle_of_anything_is_survived(warm: Warm, tmp_path: Path) -> None:
    """Commands, jobs and the agent's own writing are killed in every stage: going on succeeds, and so does going back at any point."""
    place = lay(tmp_path, git=True)
    agent = Killed(place, warm)
    for stage in range(10):
        agent.stage(stage)
        assert agent.kills[stage] >= 3
    assert [content(tree) for tree in agent.trees] == agent.untouched
