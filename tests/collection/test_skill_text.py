"""What an agent reads first: the commands, flags, files and pitfalls that SKILL.md names are there, and its example opens the gate."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from dump_collection.params import written
from dump_collection.stages import gates
from running import COLLECTION, run_collection

SKILL = COLLECTION.parent
TEXT = (SKILL / "SKILL.md").read_text(encoding="utf-8")


def test_the_front_matter_is_what_clients_read() -> None:
    """Name as the folder, a description within the limit of the format, no key besides the six."""
    head = TEXT.split("---\n")[1]
    assert re.findall(r"^name: (.*)$", head, re.MULTILINE) == [SKILL.name]
    assert set(re.findall(r"^([a-z-]+):", head, re.MULTILINE)) <= {
        "name", "description", "license", "compatibility", "metadata", "allowed-tools",
    }  # fmt: skip
    found = re.search(r"^description: >-\n((?:  .*\n)+)", head, re.MULTILINE)
    assert found
    description = " ".join(line.strip() for line in found.group(1).splitlines())
    assert 100 < len(description) <= 1024
    assert not set("<>") & set(description)


def test_it_is_short() -> None:
    assert len(TEXT.splitlines()) <= 230


def test_files_and_commands_that_it_names_are_there() -> None:
    named = set(re.findall(r"`(?:references/)?([\w-]+\.md)`", TEXT))
    assert {name for name in named if not (SKILL / "references" / name).is_file()} == set()
    commands = set(re.findall(r"`?([a-z_]+\.py)\b", TEXT)) - {"actor.py"}
    assert {name for name in commands if not (COLLECTION / name).is_file()} == set()
    assert commands == {path.name for path in COLLECTION.glob("*.py")}


@pytest.mark.parametrize("name", sorted(path.name for path in COLLECTION.glob("*.py")))
def test_flags_that_it_hands_to_a_command_are_known_to_it(name: str) -> None:
    """A flag that a command does not know ends the agent's turn."""
    told = set(re.findall(r"--[a-z-]+", run_collection(name, "--help").stdout))
    calls = re.findall(rf"python3 scripts/{re.escape(name)}([^`\n]*)", TEXT)
    assert calls, "it shows no call of this command"
    for rest in calls:
        assert set(re.findall(r"(?<=\s)--[a-z-]+", rest)) <= told, rest


def test_pitfalls_that_it_names_by_number_are_described() -> None:
    described = (SKILL / "references/pitfalls.md").read_text(encoding="utf-8")
    body = TEXT.split("## 阶段 5")[0] + TEXT.split("查门 5。")[1]  # a point of the parameters is called P1 as well
    numbers = set(re.findall(r"\bP\d+b?\b", body))
    assert numbers
    assert {number for number in numbers if not re.search(rf"\b{number}\b", described)} == set()


def test_each_stage_has_a_section_and_asks_for_its_gate() -> None:
    sections = re.split(r"^## 阶段 ", TEXT, flags=re.MULTILINE)[1:]
    assert [int(section[0]) for section in sections] == sorted(gates.GATES)
    for section in sections:
        assert f"查门 {section[0]}" in section, section[:20]


def test_the_waiver_that_it_shows_is_read(tmp_path: Path) -> None:
    """An agent copies it; a key that the command refuses would cost a turn."""
    (block,) = re.findall(r"^```json\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)
    (tmp_path / "waivers.json").write_text(block, encoding="utf-8")
    (waiver,) = written.waivers(str(tmp_path / "waivers.json"))
    assert waiver.item == "layers.weights"
