"""The gate of stage 2: open on a mapping of these dumps, shut for each thing that a later stage would trip over."""

import json
import shlex
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from dump_analysis.pipeline import CONCLUSION, MAPPING, PROBE, REPLAY, RESULTS
from dump_analysis.stages import gates
from dump_analysis.stages.workdir import CARD
from editing import copy_side, edit_json, unit_of
from laying import Sample
from msprobe_files import task_card
from running import run_command

PAIR = "qwen2-hf-vllm-clean"
Change = Callable[[Any], object]


def write_card(folder: Path, train: Path, infer: Path) -> None:
    card = task_card.empty()
    card["dumps"]["train"]["path"], card["dumps"]["infer"]["path"] = str(train), str(infer)
    (folder / CARD).write_text(task_card.text_of(card))


@pytest.fixture(scope="module")
def mapped(sample: Callable[[str], Sample], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Stages 0 to 2 as the commands leave them: what comes later is not there."""
    folder, pair = tmp_path_factory.mktemp("mapped") / "work", sample(PAIR)
    where = ("--train", pair.train, "--infer", pair.infer, "--mapping", pair.mapping, "--output-dir", folder)
    ran = run_command("diagnose.py", *where)
    assert ran.returncode == 0, ran.stderr
    write_card(folder, pair.train, pair.infer)
    for name in (RESULTS, REPLAY, CONCLUSION):
        (folder / name).unlink()
    return folder


@pytest.fixture
def work(mapped: Path, tmp_path: Path) -> Path:
    """A copy of it to damage."""
    shutil.copytree(mapped, tmp_path / "work")
    return tmp_path / "work"


def only(folder: Path) -> gates.Gap:
    """The only gap, which is one of stage 2."""
    (gap,) = gates.check(2, folder).gaps
    assert gap.stage == 2
    return gap


def put(*path: "str | int", value: Any) -> Change:
    """A change of one field."""

    def change(mapping: Any) -> None:
        for part in path[:-1]:
            mapping = mapping[part]
        mapping[path[-1]] = value

    return change


def proposed(mapping: Any) -> None:
    """As if nobody had written a row of it."""
    for row in [*mapping["boundaries"], *mapping["weights"]]:
        row["basis"] = ["signature", "dataflow"]


def tokens(joined: int, train: int, infer: int) -> dict[str, Any]:
    coverage = {"joined": joined, "train": train, "infer": infer}
    return {"train": [[0, 0, joined]], "infer": [[0, 0, joined]], "coverage": coverage, "remarks": []}


def missing(text: str) -> list[dict[str, Any]]:
    return [
        {
            "boundary": "layers.0.q_rope.out",
            "order": 900,
            "reason": {"kind": "by_hand", "values": {}, "text": text},
            "train": [],
            "infer": [],
        }
    ]


def test_a_mapping_of_these_dumps_is_open(mapped: Path) -> None:
    """And the next command compares by it."""
    before = {path.name: path.read_bytes() for path in mapped.iterdir()}
    ran = run_command("check_stage.py", "--stage", "2", "--workdir", mapped)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert ran.stdout.splitlines()[0] == "stage 2 is open"
    assert "analyze_dump_boundaries.py" in ran.stdout.splitlines()[-1]
    assert {path.name: path.read_bytes() for path in mapped.iterdir()} == before


@pytest.mark.parametrize(
    "change",
    [
        proposed,
        put("tokens", value=tokens(14, 16, 14)),
        put("tokens", value=None),
        put("evidence_missing", value=missing("not recorded on train")),
        put("weights", value=[]),
    ],
)
def test_what_may_be_is_open(change: Change, work: Path) -> None:
    """A gate that is shut without need teaches people to pass it by."""
    edit_json(work / MAPPING, change)
    assert gates.check(2, work).gaps == []


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (put("train", value=None), ["does not say for which train dump"]),
        (put("infer", "digest", value="f" * 64), ["another infer dump than task_card.json names"]),
        (put("boundaries", value=[]), ["joins no boundary"]),
        (put("unmapped", value=None), ["does not list the tensors that stand in no row"]),
        (put("boundaries", 3, "basis", value=[]), ["rows without a basis: layers.0.input_norm.out"]),
        (put("weights", 0, "basis", value=[]), ["rows without a basis: embedding.weight"]),
        (put("evidence_missing", value=missing(" ")), ["without a reason: layers.0.q_rope.out"]),
        (put("tokens", value=tokens(0, 14, 14)), ["0 tokens are joined of 14 of train and 14 of infer", "one prompt"]),
        (put("tokens", value=tokens(15, 14, 16)), ["15 tokens are joined of 14 of train and 16 of infer"]),
    ],
)
def test_a_mapping_that_lacks_something_is_shut(change: Change, words: list[str], work: Path) -> None:
    edit_json(work / MAPPING, change)
    line = only(work).line
    assert line.startswith(f"stage 2: {MAPPING}")
    assert all(word in line for word in words), line
    assert ".py " in only(work).repair


def test_rows_against_the_order_of_both_sides_are_shut(work: Path) -> None:
    """Seen before anything is compared: a list turned around would name the last boundary as the first divergence."""

    def turn(mapping: Any) -> None:
        first, second = (next(row for row in mapping["boundaries"] if row["boundary"] == f"layers.{at}.o_proj.out") for at in (0, 1))
        first["order"], second["order"] = second["order"], first["order"]

    edit_json(work / MAPPING, turn)
    assert "stands after" in only(work).line
    assert "both sides made it before" in only(work).line


def test_two_rows_of_one_name_cannot_be_checked(work: Path) -> None:
    """No command can use such a file: which of the two is meant?"""
    edit_json(work / MAPPING, lambda mapping: mapping["weights"].append(mapping["weights"][0]))
    ran = run_command("check_stage.py", "--stage", "2", "--workdir", work)
    assert (ran.returncode, ran.stdout, ran.stderr.count("\n")) == (2, "", 1)
    assert "stands in two rows" in ran.stderr


# --- repairs ---


def repaired(work: Path, script: str) -> str:
    """Run the repair of the only gap by the script that is expected; the gate is open then. Returns the command."""
    command = only(work).repair.removeprefix("Run: ")
    assert Path(shlex.split(command)[1]).name == script, command
    ran = subprocess.run(command, shell=True, capture_output=True, text=True, check=False, cwd=work.parent)
    assert ran.returncode == 0, ran.stderr
    assert gates.check(2, work).gaps == []
    return command


def test_what_people_wrote_is_completed_and_never_proposed_anew(work: Path) -> None:
    """A proposal in its place would lose their rows."""
    edit_json(work / MAPPING, put("boundaries", 0, "note", value="checked by hand"))
    edit_json(work / MAPPING, put("unmapped", value=None))
    repaired(work, "diagnose.py")
    assert json.loads((work / MAPPING).read_text())["boundaries"][0]["note"] == "checked by hand"


@pytest.mark.parametrize("form", ["list", "older"])
def test_a_list_of_rows_in_place_of_the_mapping_is_completed(form: str, work: Path) -> None:
    """In either form that people write: the file's name alone does not make it the mapping of these dumps."""
    name = "Module.model.embed_tokens.*.output.0"
    row = {"boundary": "embedding.out", "train": name, "infer": name}
    old = {"name": "embedding.out", "train_glob": f"{name}.pt", "infer_glob": f"{name}.pt"}
    (work / MAPPING).write_text(json.dumps([row if form == "list" else old]))
    assert "was not completed on the dumps yet" in only(work).line
    repaired(work, "diagnose.py")
    assert json.loads((work / MAPPING).read_text())["boundaries"][0]["boundary"] == "embedding.out"


def test_rows_of_people_come_before_a_proposal(work: Path) -> None:
    shutil.move(work / MAPPING, work / "rows.json")
    assert "--mapping" in repaired(work, "diagnose.py")


def test_without_rows_a_mapping_is_proposed(work: Path) -> None:
    """Nobody has to write one."""
    (work / MAPPING).unlink()
    command = shlex.split(repaired(work, "propose_mapping.py"))
    assert [word for word in command if word.startswith("--")] == ["--train", "--infer", "--output"]
    assert command[-1] == str(work / MAPPING)


def test_a_proposal_for_another_dump_is_made_anew(work: Path, tmp_path: Path, sample: Callable[[str], Sample]) -> None:
    """The dump that the card names was taken again after the mapping was proposed."""
    edit_json(work / MAPPING, proposed)
    side = copy_side(sample(PAIR).train, tmp_path / "train")
    edit_json(unit_of(side) / "dump.json", lambda dump: dump["data"].popitem())
    write_card(work, side, sample(PAIR).infer)
    run_command("probe_dump.py", "--train", side, "--infer", sample(PAIR).infer, "--output", work / PROBE)
    assert "another train dump" in only(work).line
    repaired(work, "propose_mapping.py")


def test_from_an_empty_folder_to_an_answer_without_a_hand_written_row(sample: Callable[[str], Sample], tmp_path: Path) -> None:
    """By nothing but the commands that the gates print, and the paths of both dumps."""
    folder = tmp_path / "new work"  # a name that a shell would split
    folder.mkdir()
    write_card(folder, sample(PAIR).train, sample(PAIR).infer)
    done: list[str] = []
    while (gaps := gates.check(7, folder).gaps) and len(done) < 10:
        command = gaps[0].repair.partition("un: ")[2]
        ran = subprocess.run(command, shell=True, capture_output=True, text=True, check=False, cwd=tmp_path)
        assert ran.returncode == 0, (command, ran.stderr)
        done.append(Path(shlex.split(command)[1]).name)
    assert done == ["probe_dump.py", "propose_mapping.py", "analyze_dump_boundaries.py", "replay_boundaries.py", "conclude.py"]


def test_the_next_command_after_the_probe_needs_no_rows(work: Path) -> None:
    """`diagnose` proposes; where people wrote rows, it takes them."""
    assert "--mapping" not in gates.check(1, work).then
    (work / "rows.json").write_text("[]")
    assert "--mapping" in gates.check(1, work).then
