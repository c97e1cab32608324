"""The gates of stages 0 to 9: open over a folder in which all is done, shut by each thing that is not, with what repairs it."""

from __future__ import annotations

import contextlib
import json
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from collection.collecting import ACTOR, EDITED, Collected, digest
from dump_collection import quotes
from dump_collection.stages import gates
from laying import lay_out
from msprobe_files.errors import DumpError
from running import run_collection

SAMPLE = "qwen2-hf-vllm-clean"


@pytest.fixture
def done(tmp_path: Path) -> Collected:
    pair = lay_out(SAMPLE, tmp_path)
    folder = tmp_path / "run"
    folder.mkdir()
    return Collected(folder, pair.train, pair.infer)


@pytest.mark.parametrize("stage", range(8))
def test_where_all_is_done_the_gate_is_open_and_says_what_is_next(done: Collected, stage: int) -> None:
    assert len(done.open(stage)) < 2000


def put(value: Any, path: str, what: Any) -> None:
    *above, last = path.split(".")
    for part in above:
        value = value[part]
    value[last] = what


# stage, the file, the field, what it holds instead, and what is said
OF_THE_CARD: list[tuple[int, str, Any, str]] = [
    (0, "model", "TBD", "model: 'TBD' is no fact"),
    (0, "train.path", "/path/to/trainer", "train.path: '/path/to/trainer' is no fact"),
    (0, "hardware", "<hardware>", "hardware: '<hardware>' is no fact"),
    (0, "model", None, "model: null"),
    (0, "goal", "everything", "goal: expected one of unknown, first_divergence, full, found 'everything'"),
    (0, "sample.prompt_length", 0, "sample.prompt_length: expected a whole number from 1 on or unknown, found 0"),
    (0, "parallel.train.tp", "1", "parallel.train.tp: expected a whole number from 1 on or unknown, found '1'"),
    (0, "dumps.infer.rank", -1, "dumps.infer.rank: expected a whole number from 0 on or unknown, found -1"),
    (0, "password", "x", "password: unknown key"),
    (0, "stages.5.state", "skipped", "stage 5 is skipped, and none of the stages 0 to 7 may be"),
    (1, "cards.before", "free", "cards.before quotes no command with its output"),
    (1, "cards.after", {"command": "npu-smi info", "output": ""}, "cards.after quotes no command with its output"),
    (1, "cards.idle_memory", "unknown", "cards.idle_memory is not known"),
    (1, "cards.stopped_processes", ["pkill -f EngineCore 4711"], "cards.stopped_processes[0] was stopped by a broad name"),
    (1, "cards.stopped_processes", ["EngineCore"], "cards.stopped_processes[0] names no process id"),
    (1, "environments.infer.msprobe", "26.2.0", "environments.infer.msprobe quotes no command that printed a version"),
    (1, "environments.infer.msprobe", {"command": "pip show mindstudio-probe", "output": "WARNING: Package(s) not found"},
     "environments.infer.msprobe quotes no command that printed a version"),
    (1, "environments.train.activation", "unknown", "environments.train.activation is not known"),
    (1, "log_location", "unknown", "log_location is not known"),
    (1, "baseline_command", "unknown", "baseline_command is not known"),
    (2, "authorisations.AUTH_RUN_DUMP_JOB.state", "unknown", "authorisations without an answer: AUTH_RUN_DUMP_JOB"),
    (1, "cards.before", {"command": "unknown", "output": "unknown"}, "cards.before quotes no command with its output"),
    (1, "cards.idle_memory", {}, "cards.idle_memory is not known"),
    (1, "log_location", " ", "log_location is not known"),
    (2, "authorisations.AUTH_RESTORE_CODE.date", None, "authorisations without a date: AUTH_RESTORE_CODE"),
    (2, "authorisations.AUTH_RESTORE_CODE.date", "unknown", "authorisations without a date: AUTH_RESTORE_CODE"),
    (2, "authorisations.AUTH_RESTORE_CODE.date", True, "authorisations without a date: AUTH_RESTORE_CODE"),
    (3, "train.framework", [], "train.framework is not known"),
    (3, "train.version", "unknown", "train.version is not known"),
    (3, "site.main_forward", "actor.py:5 compute_log_prob", "line 5 of actor.py does not hold 'compute_log_prob': it stands in line 4"),
    (3, "site.main_forward", "actor.py:4 can_reuse_log_probs", "does not hold 'can_reuse_log_probs': it stands nowhere in that file"),
    (3, "site.main_forward", "actor.py:400 compute_log_prob", "site.main_forward: actor.py has 8 lines, not 400"),
    (3, "site.main_forward", "worker.py:4 compute_log_prob", "site.main_forward: worker.py is not there below"),
    (3, "site.main_forward", "actor.py:4", 'site.main_forward: names no symbol: write "actor.py:4 SYMBOL"'),
    (3, "site.main_forward", "in the actor", 'site.main_forward: expected "FILE:LINE SYMBOL"'),
    (3, "site.log_prob", "actor.py:4", "site.log_prob: line 4 of actor.py does not hold 'log_prob'"),
    (4, "sample.prompt_length", "unknown", "sample.prompt_length is not known"),
    (7, "authorisations.AUTH_RUN_DUMP_JOB.state", "denied", "AUTH_RUN_DUMP_JOB is denied: this stage cannot be done"),
    (7, "association", "unknown", "association names no unit of each side, found 'unknown'"),
    (7, "association", {"by": "request_id"}, "association names no unit of each side"),
    (7, "dumps.train.step", "unknown", "association names no unit of each side"),
    (7, "dumps.infer.path", "unknown", "association names no unit of each side"),
    (7, "dumps.infer.step", 3, "association: on infer no dump has step 3 and rank 0"),
    (6, "authorisations.AUTH_EDIT_TARGET_CODE.state", "denied", "AUTH_EDIT_TARGET_CODE is denied"),
]  # fmt: skip


@pytest.mark.parametrize(("stage", "field", "value", "said"), OF_THE_CARD)
def test_a_field_of_the_card_shuts_its_stage(done: Collected, stage: int, field: str, value: Any, said: str) -> None:
    put(done.card, field, value)
    assert [line for line in done.gaps(stage) if line.startswith(f"stage {stage}: ") and said in line], done.check(stage).stderr
    if stage > 0:
        done.open(stage - 1)


@pytest.mark.parametrize("field", ["association", "dumps.train.path", "target_metric", "official_range", "parameters"])
def test_what_is_not_known_yet_does_not_shut_stage_0(done: Collected, field: str) -> None:
    put(done.card, field, "unknown")
    done.open(0)


def test_the_empty_card_is_open_at_stage_0_and_shut_at_each_later_one(done: Collected) -> None:
    template = Path(run_collection.__globals__["COLLECTION"]).parent / "references/task_card.json"
    done.card = json.loads(template.read_text())
    done.open(0)
    for stage in (1, 2, 3, 4, 7):
        assert any(line.startswith(f"stage {stage}: ") for line in done.gaps(stage))


def test_without_a_card_the_template_is_named(done: Collected) -> None:
    done.card = None  # type: ignore[assignment]
    (line,) = done.gaps(7)
    assert line.startswith("stage 0: task_card.json is missing. Copy references/task_card.json of this skill to ")


def test_a_broken_card_is_one_line_and_exit_2(done: Collected) -> None:
    done.write()
    (done.folder / "task_card.json").write_text('{"schema": ')
    ran = run_collection("check_stage.py", "--stage", "0", "--workdir", done.folder)
    assert (ran.returncode, ran.stdout, len(ran.stderr.splitlines())) == (2, "", 1)


@pytest.mark.parametrize(
    ("arguments", "said"), [(("--stage", "10"), "there are the stages 0 to 9"), (("--stage", "0", "--workdir", "none"), "no folder none")]
)
def test_no_such_stage_or_folder_is_exit_2(arguments: tuple[str, ...], said: str) -> None:
    ran = run_collection("check_stage.py", *arguments)
    assert (ran.returncode, said in ran.stderr) == (2, True)


# --- 1 to 4 ---


def test_processes_are_stopped_with_leave_only(done: Collected) -> None:
    done.card["cards"]["stopped_processes"] = ["4711 EngineCore, kill -15 4711 in container rl-infer"]
    done.open(1)
    done.card["authorisations"]["AUTH_STOP_RUNNING_SERVICES"]["state"] = "denied"
    (line,) = done.gaps(1)
    assert "AUTH_STOP_RUNNING_SERVICES is denied: this stage cannot be done" in line


def test_a_long_quote_is_read_at_once() -> None:
    """What a card prints may be long; a pattern that tries every line against every other would hang the gate."""
    started = time.monotonic()
    for text in ("\n" * 30000, "$ npu-smi info\n" + "\n" * 30000, "# \n" * 30000):
        assert quotes.quotes_of(text) == []
    assert len(quotes.quotes_of("$ npu-smi info\n" + " \n" * 30000 + "free")) == 1
    assert time.monotonic() - started < 2


def test_a_quote_may_be_a_text_with_its_prompt_sign(done: Collected) -> None:
    done.card["cards"]["before"] = "$ npu-smi info\n| 0  910B | OK |"
    done.card["environments"]["train"]["msprobe"] = "26.2.0\n$ python3 -m pip show mindstudio-probe\nVersion: 26.2.0"
    done.open(1)


@pytest.mark.parametrize(
    "value",
    [
        "actor.py:4:def compute_log_prob(data):",
        {"at": "actor.py:4", "symbol": "compute_log_prob"},
        {"command": "grep -n compute_log_prob actor.py", "output": "actor.py:4:def compute_log_prob(data):"},
        "trainer/actor.py:4 compute_log_prob",
        "to add: get_prompts_only_batch in actor.py",
        "要加：actor.py 里的 get_prompts_only_batch",
    ],
)
def test_a_place_may_be_written_as_grep_prints_it(done: Collected, value: Any) -> None:
    done.card["site"]["main_forward"] = value
    done.open(3)


@pytest.mark.parametrize("name", ["prompt_cut", "main_forward", "request_id"])
def test_each_of_the_three_places_is_asked_for(done: Collected, name: str) -> None:
    del done.card["site"][name]
    (line,) = done.gaps(3)
    assert f"site.{name} is missing" in line


@pytest.mark.parametrize(
    ("switch", "instead"),
    [
        ("PROMPTS_ONLY=1 ", ""), ("PROMPTS_ONLY=1 ", "PROMPTS_ONLY=0 "), ("TORCHDYNAMO_DISABLE=1 ", ""),
        ("use_remove_padding=True", "use_remove_padding=False"), ("trainer.balance_batch=False ", ""),
        ("val_before_train=False", "val_before_train=True"), ("enforce_eager=True", "enforce_eager=False"),
    ],
)  # fmt: skip
def test_each_switch_of_the_command_is_asked_for(done: Collected, switch: str, instead: str) -> None:
    done.card["baseline_command"] = done.card["baseline_command"].replace(switch, instead)
    (line,) = done.gaps(4)
    assert "baseline_command does not set" in line
    assert switch.strip().split("=")[0].split(".")[-1] in line


def test_a_switch_may_stand_in_json(done: Collected) -> None:
    env = '{"env_vars": {"PROMPTS_ONLY": "1"}}'
    done.card["baseline_command"] = f"ray job submit --runtime-env-json='{env}' -- " + done.card["baseline_command"].replace(
        "PROMPTS_ONLY=1 ", ""
    )
    done.open(4)
    done.card["baseline_command"] = done.card["baseline_command"].replace('"1"', '"0"')
    assert len(done.gaps(4)) == 1


def test_switches_follow_the_framework_and_the_engine(done: Collected) -> None:
    done.card["train"]["framework"], done.card["infer"]["engine"] = "slime", "sglang"
    done.card["baseline_command"] = "PROMPTS_ONLY=1 TORCHDYNAMO_DISABLE=1 python3 train.py"
    gaps = done.gaps(4)
    assert [word for line in gaps for word in ("--disable-cuda-graph", "--data-pad-size-multiplier 1") if word in line] == [
        "--disable-cuda-graph",
        "--data-pad-size-multiplier 1",
    ]
    done.card["baseline_command"] += " disable_cuda_graph=False"
    assert any("--disable-cuda-graph" in line for line in done.gaps(4)), "switched off again"
    done.card["baseline_command"] += " --data-pad-size-multiplier 1 --sglang-disable-cuda-graph"
    done.open(4)
    done.card["baseline_command"] = done.card["baseline_command"].replace("multiplier 1 ", "multiplier 128 ")
    assert len(done.gaps(4)) == 1


def test_a_script_that_the_command_names_is_read(done: Collected) -> None:
    script = done.sources / "run.sh"
    script.write_text("export PROMPTS_ONLY=1\n" + done.card["baseline_command"].replace("PROMPTS_ONLY=1 ", "") + "\n")
    done.card["baseline_command"] = "bash run.sh"
    done.open(4)
    script.write_text(script.read_text().replace("export PROMPTS_ONLY=1", "# export PROMPTS_ONLY=1"))
    (line,) = done.gaps(4)
    assert "PROMPTS_ONLY=1" in line


# --- 5 ---


def differ(done: Collected) -> None:
    items = [{"canonical": name, "status": "DIFF"} for name in ("config.pos_embedding", "config.rope_factor")]
    done.parameters["items"] += items
    done.parameters.update(aligned=False, mismatch_points=[{"id": "P1", "items": [item["canonical"] for item in items]}])


def test_an_unwaived_point_shuts_stages_5_and_6(done: Collected) -> None:
    differ(done)
    for stage in (5, 6, 7):
        assert any("stage 5: param_alignment_report.json: points neither aligned nor waived: P1" in line for line in done.gaps(stage))
    done.open(4)


@pytest.mark.parametrize("waived", [["P1"], ["config.pos_embedding", "config.rope_factor"]])
def test_a_point_is_waived_by_itself_or_by_all_its_items(done: Collected, waived: list[str]) -> None:
    differ(done)
    done.parameters["waivers"] = [{"id": name, "reason": "the user accepts it"} for name in waived]
    done.open(5)
    done.parameters["waivers"][0]["reason"] = " "
    assert "P1" in done.gaps(5)[0]


@pytest.mark.parametrize("status", ["DIFF", "MISSING_SIDE", "waived", "unknown", None])
def test_an_item_of_no_point_counts_as_well(done: Collected, status: Any) -> None:
    """Only EXACT is equal; what is called waived needs its waiver with the user's reason."""
    done.parameters["items"].append({"canonical": "config.eps", "status": status})
    (line,) = done.gaps(5)
    assert "points neither aligned nor waived: config.eps" in line
    done.parameters["waivers"] = [{"id": "config.eps", "reason": "the user accepts it"}]
    done.open(5)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda report: report["layers"].update(config="not_checked"), "layers.config is not checked"),
        (lambda report: report.update(items=[]), "compares nothing"),
        (lambda report: report.update(aligned=False), "aligned is False, and nothing is waived"),
    ],
)
def test_a_report_that_says_less_than_aligned_shuts(done: Collected, change: Callable[[Any], None], said: str) -> None:
    change(done.parameters)
    assert said in done.gaps(5)[0]


def test_parameters_come_before_any_edit(done: Collected) -> None:
    done.parameters = None  # type: ignore[assignment]
    assert "stage 5: param_alignment_report.json is missing: parameters come before any edit" in done.gaps(6)[0]


# --- 6 and 9 ---


@pytest.mark.parametrize(
    ("field", "value", "said"),
    [
        ("why", " ", "does not say what the edit is for"),
        ("stage", 1, "stage is 1"),
        ("before", {"digest": "0" * 64, "mode": "0644", "backup": "ledger/C7"}, "the bytes of before are not there (ledger/C7)"),
        ("after", None, "was recorded before the edit only"),
        ("after", {"digest": digest(ACTOR)}, "was changed since it was last looked at"),
        ("path", "trainer/gone.py", "is not there"),
        ("kind", "deleted", "is recorded as deleted and is there"),
    ],
)
def test_an_entry_of_the_ledger_is_whole(done: Collected, field: str, value: Any, said: str) -> None:
    done.ledger["changes"][0][field] = value
    (line,) = done.gaps(6)
    assert said in line
    assert "trainer/" in line


@pytest.mark.parametrize(
    ("field", "value", "said"),
    [
        ("before", None, "changes[0].kind: expected created (then before is null), modified or deleted, found 'modified'"),
        ("kind", "moved", "changes[0].kind: expected created (then before is null), modified or deleted, found 'moved'"),
        ("restored", "yes", "changes[0].restored: expected a value of type bool, found 'yes'"),
        ("path", "other/actor.py", "changes[0].path: expected one of the roots (trainer) and a path below it"),
        ("path", "trainer/a\0b", "changes[0].path: expected a path that the system can hold"),
    ],
)
@pytest.mark.parametrize("stage", [6, 9])
def test_a_ledger_that_its_own_command_refuses_opens_no_gate(done: Collected, stage: int, field: str, value: Any, said: str) -> None:
    """A gate that reads the ledger more loosely than restore does would be open over what cannot be restored."""
    done.ledger["changes"][0][field] = value
    ran = done.check(stage)
    assert (ran.returncode, ran.stdout) == (2, "")
    assert said in ran.stderr


def test_a_link_that_was_replaced_is_compared_as_a_link(done: Collected) -> None:
    """The digest of a link is that of its target's name, not of the bytes that it leads to."""
    done.ledger = None  # type: ignore[assignment]
    shutil.rmtree(done.folder / "ledger")
    (done.sources / "actor.py").write_text(ACTOR)
    link = done.sources / "alias.py"
    link.symlink_to("actor.py")

    def ledger(*arguments: str | Path) -> None:
        ran = run_collection("change_ledger.py", *arguments, "--workdir", done.folder)
        assert ran.returncode == 0, ran.stderr

    ledger("record", "--root", done.sources, "--stage", "6", "--why", "debugger", link)
    (done.sources / "actor.py").write_text(EDITED)  # through the link: the link itself stays
    ledger("diff")
    done.open(6)
    link.unlink()
    link.symlink_to("elsewhere.py")
    (line,) = done.gaps(6)
    assert "trainer/alias.py was changed since it was last looked at" in line
    ledger("restore", "--keep", link)
    ledger("restore")
    ledger("verify")
    done.open(9)


def test_an_edited_file_that_does_not_compile_shuts(done: Collected) -> None:
    broken = ACTOR + "    def :\n"
    (done.sources / "actor.py").write_text(broken)
    done.ledger["changes"][0]["after"]["digest"] = digest(broken)
    (line,) = done.gaps(6)
    assert "trainer/actor.py does not compile: line 7: " in line


ODD_SOURCES = {
    "warned of": ("x = 1 is 1\n", 0),
    "not ascii": ("é = 'é'\n", 0),
    "zero byte": ("x = 1\0\n", 1),
    "brackets": ("x = " + "(" * 3000 + ")" * 3000 + "\n", 1),
}


@pytest.mark.parametrize("name", list(ODD_SOURCES))
def test_odd_sources_give_a_gap_at_most(done: Collected, name: str) -> None:
    """Python's own warnings of a trainer's code are no gaps; what it cannot read is no fault of the tool."""
    source, gaps = ODD_SOURCES[name]
    (done.sources / "actor.py").write_bytes(source.encode())
    done.ledger["changes"][0]["after"]["digest"] = digest(source)
    done.card["site"]["main_forward"] = "to add"
    ran = done.check(6)
    lines = [line for line in ran.stderr.splitlines() if line != "s_push: parser stack overflow"]  # of the parser before Python 3.9
    assert (ran.returncode, len(lines)) == (gaps, gaps), ran.stderr
    assert all("run this gate with the Python that runs the file" in line for line in lines)


def test_lines_are_counted_as_grep_counts_them(done: Collected) -> None:
    """Old sources hold form feeds; only a line feed ends a line."""
    text = EDITED.replace("import torch\n", "import torch\x0c\x1c\r\u2028\n")
    (done.sources / "actor.py").write_bytes(text.encode())
    grep = subprocess.run(
        ["grep", "-n", "def compute_log_prob", done.sources / "actor.py"], capture_output=True, text=True, check=True
    ).stdout
    done.card["site"]["main_forward"] = "actor.py:" + grep
    done.open(5)


def test_one_dump_is_no_pair(done: Collected) -> None:
    done.card["dumps"]["infer"]["path"] = done.card["dumps"]["train"]["path"] + "/step0"
    assert "association: train and infer name one and the same dump" in done.gaps(7)[0]


def test_a_root_lies_where_the_ledger_says(done: Collected) -> None:
    """Trees of other people stand anywhere; the path of a change begins with its root's name."""
    elsewhere = done.folder.parent / "opt"
    shutil.move(str(done.sources), str(elsewhere))
    done.card["train"]["path"] = str(elsewhere)
    assert "is not there" in done.gaps(6)[0]
    done.ledger["places"] = [{"root": "trainer", "path": str(elsewhere)}]
    done.open(6)


def test_what_is_to_be_added_is_an_edit(done: Collected) -> None:
    done.ledger["changes"] = []
    (line,) = done.gaps(6)
    assert "records no edit, but the site says to add: prompt_cut, request_id" in line
    done.card["site"].update(prompt_cut="actor.py:4 compute_log_prob", request_id="actor.py:4 compute_log_prob")
    done.card["authorisations"]["AUTH_EDIT_TARGET_CODE"]["state"] = "denied"
    done.open(6)


def test_stage_9_is_shut_until_the_ledger_is_verified(done: Collected) -> None:
    (line,) = done.gaps(9)
    assert "change_ledger.json is open: not restored: trainer/actor.py" in line
    assert "change_ledger.py restore --workdir" in line
    done.ledger["changes"][0]["restored"] = True
    done.ledger["state"] = "restored"
    (line,) = done.gaps(9)
    assert "change_ledger.json is 'restored', not verified" in line
    assert "change_ledger.py verify --workdir" in line
    done.ledger["state"] = "verified"
    done.open(9)


def test_stage_9_is_owed_whatever_came_before(done: Collected) -> None:
    done.ledger["state"], done.ledger["changes"][0]["restored"] = "verified", True
    done.parameters, done.pair = None, None  # type: ignore[assignment]
    done.card["association"] = "unknown"
    done.open(9)
    done.card["authorisations"]["AUTH_RESTORE_CODE"]["state"] = "denied"
    assert "AUTH_RESTORE_CODE is denied" in done.gaps(9)[0]


def test_stage_9_is_shut_while_a_source_folder_is_left(done: Collected) -> None:
    done.ledger["state"], done.ledger["changes"][0]["restored"] = "verified", True
    left = done.folder / "round1/.stub_source_round1.x.part/step0"  # as a kill leaves it
    left.mkdir(parents=True)
    (line,) = done.gaps(9)
    assert "round1/.stub_source_round1.x.part is left" in line
    done.card["authorisations"]["AUTH_CLEAN_APPROVED_DIRS"]["state"] = "denied"
    assert len(done.gaps(9)) == 2


def test_stage_9_without_a_ledger_is_shut(done: Collected) -> None:
    done.ledger = None  # type: ignore[assignment]
    assert "change_ledger.json is missing: nothing shows that nothing was edited" in done.gaps(9)[0]


# --- 7 ---


def test_a_failed_check_of_the_pair_names_the_stage_to_go_back_to(done: Collected) -> None:
    done.pair["comparable"] = False
    done.pair["checks"][1].update(ok=False, evidence={"kind": "x", "values": {}, "text": "256 rows against 190"})
    (line,) = done.gaps(7)
    assert "eager: 256 rows against 190. Go back to stage 4, repair, dump again" in line


def test_comparable_must_be_what_the_checks_say(done: Collected) -> None:
    done.pair["checks"][1]["ok"] = False
    assert "eager: a dump cannot say it" in done.gaps(7)[0]
    done.pair["checks"][1]["ok"] = None
    done.pair["comparable"] = False
    assert "comparable is False" in done.gaps(7)[0]


def test_a_remark_without_a_stage_does_not_shut(done: Collected) -> None:
    done.pair["checks"][1].update(ok=False, back_to_stage=None)
    done.open(7)


def test_equal_token_ids_are_computed_again(done: Collected, tmp_path: Path) -> None:
    """The report is of an earlier pair, or was edited; the dumps that the card names ran other prompts."""
    other = lay_out("qwen2-hf-vllm-token_diff", tmp_path / "other")
    done.card["dumps"]["train"]["path"] = str(other.train)
    (line,) = done.gaps(7)
    assert "the two units did not run the same tokens: 13 of 14 on train and 14 on infer agree" in line
    done.card["association"] = {"by": "request_id", "request_id": "req-1"}
    assert len(done.gaps(7)) == 1


def test_the_real_report_of_a_padded_pair_shuts_stage_7(done: Collected, tmp_path: Path) -> None:
    done.pair = None  # type: ignore[assignment]
    done.card["dumps"]["train"]["path"] = str(lay_out("qwen2-hf-vllm-padding", tmp_path / "other").train)
    done.write()
    assert run_collection("check_dump_pair.py", "--workdir", done.folder).returncode == 1
    assert any("padding" in line and "Go back to stage 4" in line for line in done.gaps(7))


def test_the_report_is_of_the_dumps_that_are_associated(done: Collected, tmp_path: Path) -> None:
    """A report of other dumps, or of one that was dumped again into its folder, says nothing of these."""
    train = tmp_path / "train"
    shutil.copytree(done.card["dumps"]["train"]["path"], train)
    done.card["dumps"]["train"]["path"] = str(train)
    done.write()
    assert run_collection("check_dump_pair.py", "--workdir", done.folder).returncode == 0
    done.pair = None  # type: ignore[assignment]
    done.open(7)
    (path,) = train.rglob("dump.json")
    path.write_text(path.read_text() + "\n")
    (line,) = done.gaps(7)
    assert "dump_pair_report.json judged another dump than association names on train (step 0, rank 0). Check these units " in line
    assert run_collection("check_dump_pair.py", "--workdir", done.folder).returncode == 0
    done.open(7)


@pytest.mark.parametrize("checks", [[], [{"id": "parses", "ok": "yes"}], [{"id": "parses"}]])
def test_a_report_without_answers_is_none(done: Collected, checks: list[Any]) -> None:
    done.pair["checks"] = checks
    assert "checks: expected answers of true, false or null to each" in done.gaps(7)[0]


def test_a_request_id_ties_units_too(done: Collected) -> None:
    unit = {"step": 0, "rank": 0}
    done.card["association"] = {"by": "request_id", "request_id": "chatcmpl-7", "train": unit, "infer": unit}
    done.card["dumps"]["train"]["step"] = done.card["dumps"]["infer"]["rank"] = "unknown"
    done.open(7)


def test_a_run_that_was_begun_again_leaves_two_units(done: Collected) -> None:
    """A single process dumps into a folder of its own; which of both is the dump must be said before it is handed over."""
    root = done.folder / "dumps"
    for name in ("proc11", "proc12"):
        shutil.copytree(next(Path(done.card["dumps"]["train"]["path"]).glob("step0/*")), root / "step0" / name)
    done.card["dumps"]["train"]["path"] = str(root)
    (line,) = done.gaps(7)
    assert "on train several dumps have step 0 and rank 0: step0/proc11, step0/proc12. " in line
    assert "name the folder of the whole one in dumps.train.path" in line
    done.card["dumps"]["train"]["path"] = str(root / "step0/proc12")
    done.open(7)


def test_dumps_are_seen_from_the_folder_of_the_collection(done: Collected) -> None:
    shutil.copytree(done.card["dumps"]["train"]["path"], done.folder / "dumps/train")
    done.card["dumps"]["train"]["path"] = "dumps/train"
    done.open(7)


def test_the_real_report_of_the_pair_opens_stage_7(done: Collected) -> None:
    done.pair = None  # type: ignore[assignment]
    assert "dump_pair_report.json is missing" in done.gaps(7)[0]
    assert run_collection("check_dump_pair.py", "--workdir", done.folder).returncode == 0
    done.open(7)


# --- 8 ---


def outcome(**more: Any) -> dict[str, Any]:
    effect = {
        "target_entry": "Module.a.A.forward.0",
        "input": "input.0",
        "overridden": True,
        "evidence": {"kind": "x", "values": {}, "text": "equal"},
    }
    new = {"label": "infer round 1", "path": "round1/dump", "digest": "0" * 64}
    told = {"schema": "stub_outcome/1", "round": 1, "instruction": {"digest": "1" * 64}, "load_config": {"path": "x"}}
    told["prepared"] = [
        {"file": "step0/rank0/dump_tensor_data/Module.a.A.forward.0.input.0.pt", "shape": [1], "dtype": "int8", "digest": "2" * 64}
    ]
    return {**told, "new_dump": new, "effect": [effect], "effective": True, "warnings": [], **more}


def lay(done: Collected, folder: str, value: Any) -> None:
    (done.folder / folder).mkdir(exist_ok=True)
    (done.folder / folder / "stub_outcome.json").write_text(json.dumps(value))


def test_every_round_is_proven(done: Collected) -> None:
    assert "stage 8: no round holds a stub_outcome.json" in done.gaps(8)[0]
    lay(done, "round1", outcome())
    done.open(8)
    failed = {**outcome()["effect"][0], "overridden": False, "evidence": {"kind": "x", "values": {}, "text": "the target kept its value"}}
    lay(done, "round2", outcome(effect=[failed], effective=False))
    (line,) = done.gaps(8)
    assert "round2/stub_outcome.json: Module.a.A.forward.0 input.0: the target kept its value. Mend that, run the target again" in line
    lay(done, "round2", outcome(new_dump=None, effect=[], effective=False))
    assert "round2/stub_outcome.json: no new dump was compared with the prepared files" in done.gaps(8)[0]
    lay(done, "round2", outcome(effect=[]))
    assert "round2/stub_outcome.json: no new dump was compared with the prepared files" in done.gaps(8)[0]
    lay(done, "round2", outcome(effective=False))
    assert "effective is False" in done.gaps(8)[0]
    lay(done, "round2", outcome(prepared=2 * outcome()["prepared"]))
    assert "round2/stub_outcome.json: no new dump was compared with the prepared files" in done.gaps(8)[0]


def test_an_instruction_that_was_not_carried_out_shuts(done: Collected) -> None:
    """Its command is one that runs as it stands, from any folder."""
    (done.folder / "round1").mkdir()
    (done.folder / "round1/stub_instruction.json").write_text("{}")
    assert f"--instruction {done.folder}/round1/stub_instruction.json --output-dir {done.folder}/round1" in done.gaps(8)[0]
    lay(done, "round2", outcome())
    (line,) = done.gaps(8)
    assert "stage 8: round1/stub_instruction.json was not carried out. Run: " in line


def test_a_round_is_of_the_instruction_beside_it_and_of_its_dump(done: Collected) -> None:
    lay(done, "round1", outcome())
    (done.folder / "round1/stub_instruction.json").write_text("{}")
    assert "was prepared from another instruction than the one beside it" in done.gaps(8)[0]
    (done.folder / "round1/stub_instruction.json").unlink()
    shutil.copytree(done.card["dumps"]["infer"]["path"], done.folder / "round1/dump")
    assert "the new dump was changed since it was verified" in done.gaps(8)[0]


def test_an_override_needs_leave_to_run(done: Collected) -> None:
    lay(done, "round1", outcome())
    done.card["authorisations"]["AUTH_RUN_DUMP_JOB"]["state"] = "denied"
    assert {line[:8] for line in done.gaps(8)} == {"stage 7:", "stage 8:"}


# --- with the real ledger, and with files that are damaged ---


def test_the_real_ledger_opens_stages_6_and_9(done: Collected) -> None:
    """Recorded, edited, looked at, restored, verified: each gate opens at its own command and not before."""
    done.ledger = None  # type: ignore[assignment]
    shutil.rmtree(done.folder / "ledger")
    actor = done.sources / "actor.py"
    actor.write_text(ACTOR)
    assert "change_ledger.json is missing" in done.gaps(6)[0]

    def ledger(*arguments: str | Path) -> None:
        ran = run_collection("change_ledger.py", *arguments, "--workdir", done.folder)
        assert ran.returncode == 0, ran.stderr

    ledger("record", "--root", done.sources, "--stage", "6", "--why", "debugger", actor)
    assert "was recorded before the edit only" in done.gaps(6)[0]
    actor.write_text(EDITED)
    ledger("diff")
    done.open(6)
    assert "not restored: trainer/actor.py" in done.gaps(9)[0]
    ledger("restore")
    assert "not verified" in done.gaps(9)[0]
    ledger("verify")
    done.open(9)
    assert actor.read_text() == ACTOR


def paths_in(value: Any, above: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Every place in a JSON value."""
    for key, inner in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        yield (*above, key)
        yield from paths_in(inner, (*above, key))


@pytest.mark.parametrize("name", ["card", "parameters", "ledger", "pair", "outcome"])
def test_a_damaged_artefact_is_a_gap_or_one_error_and_never_a_traceback(done: Collected, name: str) -> None:
    """Every field of every file replaced by null, a text, a list, an object and what no field holds in turn, or taken out."""
    lay(done, "round1", outcome())
    (done.folder / "round1/stub_instruction.json").write_text("{}")
    done.write()
    whole = outcome() if name == "outcome" else getattr(done, name)
    file = {"card": "task_card", "parameters": "param_alignment_report", "ledger": "change_ledger", "pair": "dump_pair_report"}.get(name)
    path = done.folder / (f"{file}.json" if file else "round1/stub_outcome.json")
    for place in paths_in(whole):
        for instead in (None, "x", [], {}, [1], {"y": 1}, "a\0b", "\ud800", float("nan"), 10**30, "taken out"):
            value = json.loads(json.dumps(whole))
            inside = value
            for key in place[:-1]:
                inside = inside[key]
            if instead == "taken out":
                del inside[place[-1]]
            else:
                inside[place[-1]] = instead
            path.write_text(json.dumps(value))
            reads_dumps = name != "card" or place[0] in ("dumps", "association", "authorisations")
            for stage in (8 if reads_dumps else 6, 9) if name in ("card", "ledger") else (8,):
                with contextlib.suppress(DumpError):
                    gates.check(stage, done.folder)
