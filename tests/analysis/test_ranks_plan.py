"""An assembly plan that is handed in: for which dumps it was made, and what is believed of it when it was made for others."""

import json
from pathlib import Path
from typing import Any

import msgspec
import sharding
from dump_analysis import pipeline
from dump_analysis.artefacts import io
from dump_analysis.artefacts.assembly_plan import AssemblyPlan
from dump_analysis.replicas import differing
from networks import Network, engine, trainer, weights_of
from running import run_command
from test_ranks import _spoiled

PLAIN = Network()


def pair(root: Path, cut: sharding.Cut) -> tuple[str, str]:
    weights = weights_of(PLAIN)
    train = sharding.write_ranks(root / "train", trainer(PLAIN, weights), cut)
    return train, engine(PLAIN, weights).write(root / "infer")


def plan_of(roots: tuple[str, str], path: Path) -> Path:
    mapping, _ = pipeline.propose_step(*pipeline.open_pair([roots[0]], [roots[1]]))
    path.write_bytes(msgspec.json.encode(io.builtins(mapping.ranks)))
    return path


def with_plan(roots: tuple[str, str], plan: Path) -> tuple[AssemblyPlan, list[str], list[Any]]:
    mapping, told = pipeline.propose_step(*pipeline.open_pair([roots[0]], [roots[1]]), plan)
    assert mapping.ranks is not None
    return mapping.ranks, told.warnings, differing(mapping)


def test_a_plan_says_for_which_dump_it_was_made(tmp_path: Path) -> None:
    """Catches a plan without a digest, one that is not the dump's, and a warning where plan and dump belong together."""
    roots = pair(tmp_path, sharding.trainer_shards)
    plan = plan_of(roots, tmp_path / "plan.json")
    side, _ = pipeline.open_pair([roots[0]], [roots[1]])
    assert json.loads(plan.read_text())["train"]["dump"] == {"label": "train", "digest": side.digest}
    found, told, _ = with_plan(roots, plan)
    assert not any("plan was made for another" in line for line in told)
    assert found.train is not None
    assert "declared" not in found.train.basis
    run_command("assemble_dump.py", "--train", roots[0], "--infer", roots[1], "--output-dir", tmp_path / "made")
    assert json.loads((tmp_path / "made/assembly_plan.json").read_text())["train"]["dump"]["digest"] == side.digest


def test_a_plan_of_another_dump_is_declared_and_its_copies_are_looked_at_anew(tmp_path: Path) -> None:
    """Catches copies of this dump called different because those of another one were, and a real difference passed over."""
    sound = pair(tmp_path / "sound", sharding.trainer_shards)
    broken = pair(tmp_path / "broken", _spoiled("layers.0.post_norm", "weight", sharding.trainer_shards))
    dump = Path(broken[0]) / "step0/rank1/dump.json"
    dump.write_text(dump.read_text() + "\n")  # another digest: white space carries no meaning
    plans = [plan_of(roots, tmp_path / f"{at}.json") for at, roots in enumerate((sound, broken))]
    found, told, parted = with_plan(sound, plans[1])
    assert parted == []
    assert found.train is not None
    assert found.train.basis == ["declared"]
    assert [line for line in told if line.startswith("the assembly plan was made for another train dump")]
    _, _, parted = with_plan(broken, plans[0])
    assert [one.boundary for one in parted] == ["layers.0.post_norm.weight"]


def test_a_plan_that_people_wrote_needs_no_digest(tmp_path: Path) -> None:
    """Catches a hand-written plan refused, and what it says of copies believed without looking."""
    roots = pair(tmp_path, sharding.trainer_shards)
    plan = json.loads(plan_of(roots, tmp_path / "plan.json").read_text())
    del plan["train"]["dump"]
    plan["train"]["disagree"] = [{"name": plan["train"]["tensors"][0]["name"], "ranks": [0, 1], "unequal": 3, "max_abs_diff": 1.0}]
    (tmp_path / "plan.json").write_text(json.dumps(plan))
    _, told, parted = with_plan(roots, tmp_path / "plan.json")
    assert parted == []
    assert not any("plan was made for another" in line for line in told)
