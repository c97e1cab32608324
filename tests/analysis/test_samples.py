"""Real pairs: first divergence, conclusion and gaps equal what is known of each pair by other means."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from laying import SAMPLES, Sample
from running import run_command

PAIRS = sorted(path.parent.name for path in SAMPLES.glob("*/pair.json"))


@pytest.mark.parametrize("name", PAIRS)
def test_first_divergence_is_the_known_one(name: str, sample: Callable[[str], Sample], tmp_path: Path) -> None:
    """Truth: where the engines' own recordings part, or where a planted fault enters (expected.json)."""
    pair = sample(name)
    ran = run_command("diagnose.py", "--train", pair.train, "--infer", pair.infer, "--mapping", pair.mapping, "--output-dir", tmp_path)
    assert ran.returncode == 0, ran.stderr
    found = json.loads((tmp_path / "conclusion.json").read_text())["first_divergence"]
    assert (found and found["boundary"]) == pair.expected["first_divergence"]
