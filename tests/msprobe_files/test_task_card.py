"""The task card: the empty one as both skills ship it, and what is said of a wrong one."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any, Dict

import pytest
from handmade import SAMPLES
from msprobe_files import task_card
from msprobe_files.errors import DumpError

SKILLS = SAMPLES.parent.parent / "skills" / "accuracy"
# The fields that the skills' references promise, in their order.
FIELDS = [
    "schema",
    "goal",
    "model",
    "train",
    "infer",
    "hardware",
    "environments",
    "workdir",
    "baseline_command",
    "log_location",
    "product_root",
    "constraints",
    "sample",
    "evidence_tool",
    "scope",
    "stop_condition",
    "target_metric",
    "parallel",
    "authorisations",
    "cards",
    "site",
    "official_range",
    "dumps",
    "association",
    "parameters",
    "known_traps",
    "stages",
    "notes",
]


def changed(path: str, value: Any) -> Dict[str, Any]:
    """The empty card with one field set."""
    card: Dict[str, Any] = copy.deepcopy(task_card.empty())
    *above, last = path.split(".")
    place = card
    for key in above:
        place = place[key]
    place[last] = value
    return card


def without(path: str) -> Dict[str, Any]:
    card = changed(path, None)
    *above, last = path.split(".")
    place = card
    for key in above:
        place = place[key]
    del place[last]
    return card


@pytest.mark.parametrize("skill", ["rl-consistency-dump-analysis", "rl-prefill-consistency-dump"])
def test_the_empty_card_is_the_one_that_the_skills_ship(skill: str) -> None:
    """The file is what people copy, the function what commands write: they must not part, not even in order."""
    shipped = (SKILLS / skill / "references" / "task_card.json").read_text("utf-8")
    assert task_card.text_of(task_card.empty()) == shipped
    assert list(json.loads(shipped)) == FIELDS


def test_the_empty_card_knows_nothing_and_is_right() -> None:
    """No field may have an invented default."""
    card = task_card.empty()
    assert task_card.problems(card) == []
    assert {value["state"] for value in card["authorisations"].values()} == {"unknown"}
    assert {value["state"] for value in card["stages"].values()} == {"open"}
    assert sorted(card["stages"]) == list("0123456789")
    assert [key for key, value in card.items() if isinstance(value, str) and value != "unknown"] == ["schema", "notes"]


def test_every_card_is_a_new_one() -> None:
    """Shared inner objects would carry one run's answers into the next card."""
    card = task_card.empty()
    card["environments"]["train"]["ssh"] = "host"
    card["stages"]["0"]["state"] = "passed"
    card["constraints"].append("x")
    assert task_card.empty()["environments"]["infer"]["ssh"] == "unknown"
    assert card["environments"]["infer"]["ssh"] == "unknown"
    assert card["stages"]["1"]["state"] == "open"
    assert task_card.empty()["constraints"] == []


@pytest.mark.parametrize(
    "card",
    [
        changed("goal", "full"),
        changed("goal", "first_divergence"),
        changed("authorisations.AUTH_RUN_DUMP_JOB", {"state": "granted", "date": "2026-11-29"}),
        changed("stages.3", {"state": "skipped", "product": "probe.json", "digest": "0" * 64}),
        changed("site", {"forward_step": "train.py:12", "anything": "to add"}),
        changed("parallel.train.tp", 8),
        changed("known_traps", ["proc folders"]),
    ],
)
def test_a_filled_card_is_right(card: Dict[str, Any]) -> None:
    assert task_card.problems(card) == []


@pytest.mark.parametrize(
    "path", ["goal", "train.version", "parallel.infer.ep", "authorisations.AUTH_RESTORE_CODE", "stages.9.digest", "notes"]
)
def test_a_missing_field_is_named_with_its_path(path: str) -> None:
    assert task_card.problems(without(path)) == [path + ': missing (write "unknown" where it is not known)']


@pytest.mark.parametrize("path", ["model", "environments.infer.ssh", "dumps.train.path", "constraints", "environments", "notes"])
def test_null_is_not_how_a_card_says_unknown(path: str) -> None:
    assert task_card.problems(changed(path, None)) == [path + ': null (write "unknown" where it is not known)']


@pytest.mark.parametrize("path", ["password", "train.token", "dumps.infer.host", "stages.10", "authorisations.AUTH_ALL.state"])
def test_an_unknown_field_is_named_with_its_path(path: str) -> None:
    """Credentials have no field: one that is written in anyway must be pointed at."""
    above = path.rsplit(".", 1)[0]
    if above == "authorisations.AUTH_ALL":
        assert task_card.problems(changed(above, {"state": "granted"})) == [above + ": unknown key"]
    else:
        value = {"state": "open"} if path == "stages.10" else "secret"
        assert task_card.problems(changed(path, value)) == [path + ": unknown key"]


@pytest.mark.parametrize(
    ("path", "value", "words"),
    [
        ("schema", "task_card/2", "schema: expected 'task_card/1', found 'task_card/2'"),
        ("goal", "fast", "goal: expected one of unknown, first_divergence, full, found 'fast'"),
        (
            "authorisations.AUTH_RUN_DUMP_JOB.state",
            "yes",
            "authorisations.AUTH_RUN_DUMP_JOB.state: expected one of unknown, granted, denied",
        ),
        (
            "authorisations.AUTH_RUN_DUMP_JOB.state",
            True,
            "authorisations.AUTH_RUN_DUMP_JOB.state: expected one of unknown, granted, denied",
        ),
        ("stages.4.state", "done", "stages.4.state: expected one of open, passed, skipped, found 'done'"),
        ("train", "verl", "train: expected an object, found str"),
        ("stages", [], "stages: expected an object, found list"),
        ("environments.train", "here", "environments.train: expected an object, found str"),
        ("site", "forward_step: train.py:12", "site: expected an object, found str"),
        ("constraints", "none", "constraints: expected a list, found str"),
        ("cards.stopped_processes", "pid 7", "cards.stopped_processes: expected a list, found str"),
    ],
)
def test_a_wrong_value_is_named_with_its_path(path: str, value: Any, words: str) -> None:
    assert any(problem.startswith(words) for problem in task_card.problems(changed(path, value)))


def test_every_problem_is_told_at_once() -> None:
    card = changed("goal", "fast")
    del card["model"]
    card["extra"] = 1
    assert [problem.split(":")[0] for problem in task_card.problems(card)] == ["model", "extra", "goal"]


def test_a_card_comes_back_from_disk(tmp_path: Path) -> None:
    card = changed("model", "千问 2")
    path = tmp_path / "task_card.json"
    path.write_text(task_card.text_of(card), "utf-8")
    assert "千问 2" in path.read_text("utf-8")
    assert task_card.read(str(path)) == card


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{}", "schema: expected 'task_card/1', found None"),
        ("[]", "expected a JSON object, found a list"),
        ("not json", "at byte "),
        (task_card.text_of(changed("goal", "fast")), "goal: expected one of"),
    ],
)
def test_a_file_that_is_no_card_is_refused(tmp_path: Path, text: str, words: str) -> None:
    (tmp_path / "task_card.json").write_text(text, "utf-8")
    with pytest.raises(DumpError) as caught:
        task_card.read(str(tmp_path / "task_card.json"))
    assert words in str(caught.value)
    assert "task_card.json" in str(caught.value)
