"""What the references say of numbers, commands and configurations is what the code does."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest
from dump_collection.msprobe_config import configuring, releases
from dump_collection.override_words import OVERRIDE_WORDS
from running import COLLECTION, run_collection

REFERENCES = COLLECTION.parent / "references"
CONFIG, PITFALLS = REFERENCES / "msprobe-config.md", REFERENCES / "pitfalls.md"
PARTS = ["症状", "原因", "处理", "预防"]


def test_every_pitfall_keeps_its_number_and_has_four_parts() -> None:
    """Other texts cite P18; P7 to P10 are reserved and hold nothing."""
    text = PITFALLS.read_text(encoding="utf-8")
    sections = dict(re.findall(r"^### (P\d+b?)　.*\n((?:(?!^#).*\n)*)", text, re.MULTILINE))
    reserved = {f"P{n}" for n in range(7, 11)}
    assert set(sections) == {f"P{n}" for n in range(1, 25)} - reserved | {"P6b"}
    for number, body in sections.items():
        assert re.findall(r"^- \*\*(.+?)\*\*：", body, re.MULTILINE) == PARTS, number
    table = text.partition("\n## ")[0]
    assert set(re.findall(r"P\d+b?", table.partition("| 症状 |")[2])) == set(sections), "each is found by its symptom"


@pytest.mark.parametrize("path", [CONFIG, PITFALLS], ids=lambda path: path.stem)
def test_every_command_exists_with_its_flags(path: Path) -> None:
    """Commands of this skill in code, whole or in passing; those of other parts of it are named by file alone."""
    text = path.read_text(encoding="utf-8")
    found = re.findall(r"(?:scripts/)?((?:change_ledger|make_msprobe_config)\.py)([^`\n]*)", text)
    assert found
    for name, rest in found:
        help_text = run_collection(name, "--help").stdout
        for flag in re.findall(r"--[a-z-]+", rest):
            assert f"{flag} " in help_text or f"{flag}\n" in help_text, f"{path.name}: {name} {flag}"


def test_the_commands_are_accepted_as_they_stand(tmp_path: Path) -> None:
    """Each whole command of the text runs, with its paths put below a folder of the test."""
    (tmp_path / "models/q").mkdir(parents=True)
    sizes = {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 2, "vocab_size": 99, "dtype": "bfloat16"}
    (tmp_path / "models/q/config.json").write_text(json.dumps(sizes))
    entry = "Module.model.layers.2.Qwen2DecoderLayer.forward.0"
    tensors = tmp_path / "run/stub_source_round1/step0/rank0/dump_tensor_data"
    tensors.mkdir(parents=True)
    (tensors / f"{entry}.input.1.pt").write_bytes(b"")
    calls = re.findall(r"^python3 scripts/(make_msprobe_config\.py .*)$", CONFIG.read_text(encoding="utf-8"), re.MULTILINE)
    assert len(calls) == 3
    for line in calls:
        name, *arguments = shlex.split(line)
        ran = run_collection(name, *[f"{tmp_path}{word}" if word.startswith("/") else word for word in arguments], cwd=tmp_path)
        assert ran.returncode == 0, ran.stderr


def test_the_configuration_shown_is_the_one_written() -> None:
    shown = [
        json.loads(block) for block in re.findall(r"^```json\n(.*?)^```", CONFIG.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    ]
    full = configuring.Wanted("full", "train", (), releases.release_of("26.2.0"), "/dumps/round0/train", (0,), None, (), True)
    assert configuring.make(full, None, allow_full_disk=False).config == shown[0]
    assert list(shown[1]["load"]) == ["path", "modules", "step", "rank", "dump_after_load"]


def test_every_reason_of_a_round_without_effect_has_its_remedy() -> None:
    """stub_outcome.json gives the kind; whoever looks it up must find what to do, and no kind that does not exist."""
    rows = re.findall(
        r"^\| (`[a-z_`、]+) \| (.+) \|$", (REFERENCES / "stubbing.md").read_text(encoding="utf-8").split("## 6 ")[1], re.MULTILINE
    )
    named = {kind for kinds, _ in rows for kind in re.findall(r"`(\w+)`", kinds)} - {"kind"}
    reasons = set(OVERRIDE_WORDS) - {"input_equals_prepared", "equal_before"}
    reasons -= {"inputs_left", "source_inputs_post_call", "source_other_dump", "load_not_proven", "no_dump_no_proof", "not_verified"}
    assert named == reasons
