"""What a report tells of a round: by what the conclusion says of it, and by what lies in the round's folder."""

import hashlib
import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from dump_analysis.wording import word
from report_cases import CASES, DIGEST, Case
from running import SCRIPTS

TEMPLATE = SCRIPTS.parent / "references/templates/stub_instruction.example.json"
PLANNED: dict[str, Any] = {
    "round": 1, "kind": "cut", "target_side": "infer", "isolated": "layers.2.act_mul.out", "effective": None, "why_not": None,
    "differ": [], "contradicted": [], "stop": None,
}  # fmt: skip


def instruct(folder: Path, **more: Any) -> str:
    """The example of an instruction, as that of round 1 of the dumps by hand; the sha-256 of the file."""
    reason = msgspec.to_builtins(word("nothing_differs"))
    value = {**json.loads(TEMPLATE.read_text(encoding="utf-8")), "source_dump": {"label": "train", "digest": DIGEST}, "reason": reason}
    (folder / "round1").mkdir(parents=True)
    path = folder / "round1/stub_instruction.json"
    path.write_text(json.dumps({**value, **more}), encoding="utf-8")
    return hashlib.sha256(path.read_bytes()).hexdigest()


def case(*told: dict[str, Any], results: list[dict[str, Any]] | None = None) -> Case:
    """The pair with one fault; ``told``: rounds in its conclusion."""
    made = CASES["one_fault"]()
    made.told["rounds"], made.rounds = list(told), results or []
    return made


def section(made: Case, folder: Path) -> str:
    return made.rendered(folder, "en").markdown.split("## How was it confirmed?")[1].split("\n## ")[0]


def test_the_instruction_says_what_a_planned_round_asks_and_of_which_sides(tmp_path: Path) -> None:
    instruct(tmp_path)
    text = section(case(PLANNED), tmp_path)
    assert "- **1 Equal inputs behind `layers.2.act_mul.out`: infer ← train**" in text
    assert "nothing that was compared differs" in text
    assert "Planned; not run yet" in text


def test_an_instruction_that_no_conclusion_tells_is_no_round(tmp_path: Path) -> None:
    instruct(tmp_path)
    assert "layers.2.act_mul.out" not in section(case(), tmp_path)


@pytest.mark.parametrize(
    ("kind", "local", "title"),
    [
        ("forced", False, "All modules at once from equal inputs"),
        (None, True, "All modules at once from equal inputs"),
        (None, False, "Inputs overridden"),
    ],
)
def test_a_round_without_a_cut_is_told_by_its_kind_or_by_what_it_judged(kind: str | None, local: bool, title: str, tmp_path: Path) -> None:
    result = {**CASES["one_fault"]().rounds[0], "isolated": None, "kind": kind, "downstream": []}
    own = {"module": "layers.1.q", "boundary": "layers.1.q.out", "status": "EXACT", "character": None, "rel_l2": 0.0, "basis": None}
    result["local"] = [own] if local else []
    assert f"- **1 {title}**" in section(case(results=[result]), tmp_path)


def test_a_result_of_another_instruction_is_not_told(tmp_path: Path) -> None:
    """A round that was planned anew: what its older result says is not its own."""
    digest = instruct(tmp_path)
    result = CASES["one_fault"]().rounds[0]
    for named, told in ((digest, True), (hashlib.sha256(b"another").hexdigest(), False)):
        text = section(case(PLANNED, results=[{**result, "instruction": {"digest": named}}]), tmp_path)
        assert ("Override proven" in text) is told
        assert ("Planned; not run yet" in text) is not told


def test_a_round_of_other_dumps_is_not_told(tmp_path: Path) -> None:
    instruct(tmp_path, source_dump={"label": "train", "digest": hashlib.sha256(b"another").hexdigest()})
    assert "Override proven" not in section(case(results=[CASES["one_fault"]().rounds[0]]), tmp_path)
