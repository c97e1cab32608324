"""What an agent reads beside SKILL.md: files, commands and flags that it names are there, and what it may copy runs."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import dumping
import numpy as np
import pytest
from running import ROOT, SCRIPTS, run_command

SKILL = ROOT / "skills/accuracy/rl-consistency-dump-analysis"
TEXTS = [SKILL / "SKILL.md", *sorted((SKILL / "references").glob("*.md"))]
MOST_LINES = {"SKILL.md": 330, "semantic-mapping.md": 150, "pitfalls.md": 120}


def blocks(path: Path, language: str) -> list[str]:
    """The fenced blocks of one language."""
    return re.findall(rf"^```{language}\n(.*?)^```$", path.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("path", TEXTS, ids=lambda path: path.name)
def test_files_that_a_text_names_are_there(path: Path) -> None:
    """A reference that was renamed leaves the agent without it; every reference is one step away."""
    named = re.findall(r"`(?:references/)?([\w-]+\.(?:md|json))`", path.read_text(encoding="utf-8"))
    references = {name for name in named if name.endswith(".md") and name not in ("SKILL.md", "layer_map.md", "alignment_report.md")}
    assert {name for name in references if not (SKILL / "references" / name).is_file()} == set()


@pytest.mark.parametrize("path", TEXTS, ids=lambda path: path.name)
def test_texts_stay_short(path: Path) -> None:
    """They are read whole, into a context that holds the analysis too."""
    assert len(path.read_text(encoding="utf-8").splitlines()) <= MOST_LINES.get(path.name, 250)


def flags_by_command(path: Path) -> dict[str, set[str]]:
    """What the text hands to each command, wherever a call of it stands."""
    found: dict[str, set[str]] = {}
    for name, rest in re.findall(r"python3 scripts/(\w+\.py)([^`\n]*)", path.read_text(encoding="utf-8")):
        found.setdefault(name, set()).update(re.findall(r"--[a-z-]+", rest))
    return found


@pytest.mark.parametrize("path", TEXTS, ids=lambda path: path.name)
def test_calls_that_a_text_shows_are_calls_that_there_are(path: Path) -> None:
    """A flag that a command does not know ends the agent's turn."""
    for name, flags in flags_by_command(path).items():
        told = run_command(name, "--help").stdout
        assert flags <= set(re.findall(r"--[a-z-]+", told)), name


@pytest.mark.parametrize("path", TEXTS, ids=lambda path: path.name)
def test_json_that_a_text_shows_is_json(path: Path) -> None:
    for block in blocks(path, "json"):
        assert json.loads(block), path.name
    assert any(blocks(text, "json") for text in TEXTS), "no text shows JSON any more: the fences have changed"


def test_the_script_for_logits_tells_a_permutation_from_a_scale(tmp_path: Path) -> None:
    """Copied as it stands: rows 0 and 1 permuted by columns, row 2 scaled, row 3 equal."""
    logits = np.array([[4, 1, 2, 3], [8, 5, 7, 6], [1, 2, 3, 4], [4, 3, 2, 1]], np.float32)
    other = logits.copy()
    other[:2] = other[:2, [1, 0, 2, 3]]
    other[2] *= 2
    for side, values in (("train", logits[None]), ("infer", other)):
        dumping.write_unit(tmp_path / side, dumping.outputs({"head": dumping.of(values, "bfloat16")}))
    steps = {"train": [{"op": "squeeze", "axis": 0}], "infer": []}
    row = {"boundary": "logits", "order": 0}
    row |= {side: {"sources": [{"name": dumping.output_of("head"), "steps": steps[side]}], "combine": None} for side in steps}
    mapping = {"schema": "semantic_mapping/1", "boundaries": [row]}
    (tmp_path / "semantic_mapping.json").write_text(json.dumps(mapping))
    (script,) = blocks(SKILL / "references/pitfalls.md", "sh")
    where = {"TRAIN": str(tmp_path / "train"), "INFER": str(tmp_path / "infer"), "WORK": str(tmp_path)}
    ran = subprocess.run(
        ["sh", "-c", script.replace("python3", sys.executable)],
        capture_output=True, text=True, check=False, cwd=SCRIPTS.parent, env={**os.environ, **where},
    )  # fmt: skip
    assert (ran.returncode, ran.stderr) == (0, "")
    assert ran.stdout.splitlines() == ["rows with equal argmax: 0.5", "rows equal once sorted: 0.75"]
