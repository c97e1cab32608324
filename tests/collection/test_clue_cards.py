"""The clue cards of the collection skill: each has its way out, what it lets an agent copy runs, and what it names is there."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest
from laying import SAMPLES
from running import COLLECTION, run_collection

REFERENCES = COLLECTION.parent / "references"
CARDS = ["new-framework.md", "slime.md", "verl.md", "vime.md"]


def text(name: str) -> str:
    return (REFERENCES / name).read_text(encoding="utf-8")


def blocks(name: str, language: str) -> list[str]:
    return re.findall(rf"^ *```{language}\n(.*?)^ *```$", text(name), re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("name", CARDS)
def test_a_card_says_what_to_do_where_the_site_has_no_such_symbol(name: str) -> None:
    """And proves its symbols by grep, on a site that may have another version."""
    assert re.search(r"^## \d+ 如果现场没有$", text(name), re.MULTILINE)
    assert sum(block.count("grep ") for block in blocks(name, "sh")) >= 4
    assert len(text(name).splitlines()) <= 250


@pytest.mark.parametrize("name", CARDS)
def test_shell_that_a_card_shows_is_shell(name: str) -> None:
    """Copied as it stands; names in capitals are the site's."""
    shown = blocks(name, "sh")
    assert shown
    for block in shown:
        ran = subprocess.run(["sh", "-n"], input=block, capture_output=True, text=True, check=False)
        assert ran.returncode == 0, ran.stderr


@pytest.mark.parametrize("name", CARDS)
def test_python_that_a_card_shows_is_python(name: str) -> None:
    for block in blocks(name, "python"):
        lines = block.splitlines()
        indent = len(lines[0]) - len(lines[0].lstrip())
        compile("\n".join(line[indent:] for line in lines), name, "exec")


@pytest.mark.parametrize("name", CARDS)
def test_json_that_a_card_shows_in_a_line_is_json(name: str) -> None:
    """msprobe ignores keys that it does not know, so a slip costs a whole capture."""
    for shown in re.findall(r'`("slice": \[.*?\])`', text(name)):
        numbers = re.sub(r"N\+1", "191", shown).replace("N", "190").replace('"dim": D', '"dim": 1')
        assert all(set(one) == {"dim", "size", "begin", "end"} for one in json.loads("{" + numbers + "}")["slice"])


def test_checks_that_cards_name_are_checks(tmp_path: Path) -> None:
    """A name that no report holds sends the agent looking for it."""
    clean = SAMPLES / "qwen2-hf-vllm-clean"
    ran = run_collection("check_dump_pair.py", "--train", clean / "train", "--infer", clean / "infer", "--workdir", tmp_path, "--json")
    known = {one["id"] for one in json.loads(ran.stdout)["checks"]}
    like = re.compile(r"`((?:no|one|step0|head|tokens|weights|inputs|tensors)_[a-z0-9_]+|forward_ran|dump_found|prompt_only|eager)`")
    named = {found for card in CARDS for found in like.findall(text(card))}
    assert len(named) > 10
    assert named <= known


@pytest.mark.parametrize("name", CARDS)
def test_a_card_sends_nobody_to_another_file(name: str) -> None:
    """References are one step from SKILL.md; a chain of them is not followed."""
    assert not re.findall(r"\]\([^)]*\.md\)", text(name))
    assert not {found for found in re.findall(r"`([a-z-]+\.md)`", text(name)) if found in CARDS or (REFERENCES / found).exists()}
